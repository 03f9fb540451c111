// @ts-check
// The links in a quote: the index has only their texts, and the Markdown beside the cited page their addresses.
import { link } from './render.js';

const LINK = /(?<!!)\[((?:[^[\]\\]|\\.)+)\]\((?:<([^<>\s]+)>|((?:[^\s()<>]|\([^\s()<>]*\))+))\)/g;
const CODE = /(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)/g;
/** Fewer letters around a link may be anywhere. */
const LEAST = 16;

/** What a page and its Markdown have in common. @type {(text: string) => string} */
const letters = text => text.replace(/[^\p{L}\p{N}]|[\u{10000}-\u{10FFFF}]/gu, '');

/** The Markdown of each page. @type {Map<string, Promise<string>>} */
const pages = new Map();

/** Its file is named after that of the page, which an address may leave out. @type {(page: string) => Promise<string>} */
const read = async page => {
  for (const file of page.endsWith('/') ? ['index.md'] : ['.md', '/index.md']) {
    const reply = await fetch(page.replace(/\.html$/, '') + file);
    if (reply.ok) return reply.text();
  }
  return '';
};

/** Yields the place of each link among the letters of a quote, with its address. @type {(quote: string, markdown: string) => Iterable<[number, number, string]>} */
const find = function* (quote, markdown) {
  for (let line of markdown.split('\n')) {
    /** @type {[number, number, string][]} */
    const links = [];
    let shown = '', end = 0;
    // Brackets in code make no link.
    line = line.replace(CODE, code => code.replace(/[[\]]/g, ' '));
    for (const { 0: whole, 1: text, 2: angled, 3: url = angled, index } of line.matchAll(LINK)) {
      const start = (shown += letters(line.slice(end, index))).length;
      links.push([start, (shown += letters(text)).length, url]);
      end = index + whole.length;
    }
    shown += letters(line.slice(end));
    for (const [start, end, url] of links) {
      // A quote may begin or end beside it.
      for (const [from, to] of [[start - LEAST, end + LEAST], [start - LEAST, end], [start, end + LEAST]]) {
        const around = shown.slice(Math.max(0, from), to);
        const at = around.length < LEAST ? -1 : quote.indexOf(around);
        if (at < 0) continue;
        const first = at + start - Math.max(0, from);
        yield [first, first + end - start, url.replaceAll('&amp;', '&')];
        break;
      }
    }
  }
};

/** @type {(card: Element, markdown: string) => void} */
const put = (card, markdown) => {
  const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
  /** @type {[Text, number][]} */
  const places = [];
  let quote = '';
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (node.parentElement?.closest('a,sup,pre')) continue;
    for (let at = 0; at < node.length; at++) {
      if (!letters(node.data[at])) continue;
      quote += node.data[at];
      places.push([node, at]);
    }
  }
  let before = places.length;
  // From the last one on, as a link divides its text. Of two that overlap one is put.
  for (const [start, end, url] of [...find(quote, markdown)].sort((a, b) => b[0] - a[0])) {
    if (end <= start || end > before) continue;
    const [node, from] = places[start], [last, to] = places[end - 1];
    if (node !== last) continue;
    before = start;
    const range = new Range();
    range.setStart(node, from);
    range.setEnd(node, to + 1);
    const anchor = link(url, '', `${range}`);
    range.deleteContents();
    range.insertNode(anchor);
  }
};

/** @type {(body: Element) => Promise<void>} */
export const linkQuotes = async body => {
  for (const card of body.querySelectorAll('.card')) {
    const { url } = /** @type {any} */ (card.querySelector('.crumb'))?.source ?? {};
    const { origin, pathname } = new URL(url ?? '', location.href);
    if (origin !== location.origin) continue;
    if (!pages.has(pathname)) pages.set(pathname, read(origin + pathname));
    put(card, await /** @type {Promise<string>} */ (pages.get(pathname)));
  }
};
