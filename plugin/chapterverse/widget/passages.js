// @ts-check
// What a finished answer shows of its sources and of its own doubts: the marked part of a quote, the look of a sentence
// without a source, and the passage at a number.
import { where } from './answer.js';
import { el, link, render } from './render.js';

const LETTERS = /[^\s!-/:-@[-`{-~…]/g;

/** @type {(text: string) => string} */
const letters = text => (text.match(LETTERS) ?? []).join('');

/** The letters that segments show. @type {(...segments: { text: string }[]) => string} */
const shown = (...segments) => letters(render(segments.map(({ text }) => ({ text, citations: [] })), () => '').textContent);

/** Wraps the part of a block that shows these letters, near the given number of letters. @type {(root: Node, wanted: string, near: number, wrapper: () => HTMLElement) => void} */
const wrap = (root, wanted, near, wrapper) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, node => (
    node.nodeName === 'SUP' ? NodeFilter.FILTER_REJECT : node instanceof Text ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP));
  /** @type {[Text, number][]} */
  const places = [];
  let text = '';
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    for (const { 0: letter, index } of node.data.matchAll(LETTERS)) {
      text += letter;
      places.push([node, index]);
    }
  }
  const before = text.lastIndexOf(wanted, near), after = text.indexOf(wanted, near);
  const at = before < 0 || (after >= 0 && after - near < near - before) ? after : before;
  if (!wanted || at < 0) return;
  const [first, start] = places[at];
  const [last, end] = places[at + wanted.length - 1];
  for (const node of new Set(places.slice(at, at + wanted.length).map(([node]) => node))) {
    const range = new Range();
    range.selectNodeContents(node);
    // The sign that ends the sentence belongs to it.
    if (node === last) range.setEnd(node, end + 1 + node.data.slice(end + 1).search(/[\s\p{L}\p{N}]|$/u));
    if (node === first) range.setStart(node, start);
    range.surroundContents(wrapper());
  }
};

/** Marks what answers in quotes, and shows which sentences have no source. @type {(turn: Turn) => void} */
export const markSentences = ({ groups, body }) => {
  for (const [at, group] of groups.entries()) {
    const root = body.children[at];
    const card = root.matches('.card') && root.lastElementChild;
    // The head of a card shows its first segment.
    const segments = card ? group.filter(({ kind }) => kind !== 'framing') : group;
    segments.forEach((segment, index) => {
      const { text, mark, check } = segment;
      const near = shown(...segments.slice(0, index)).length;
      if (card && mark) {
        const part = `${mark}`.replace(/^([-*+] )?\[[ x]\] /i, '');
        const start = shown({ text: text.slice(0, Math.max(text.indexOf(part), 0)) }).length;
        wrap(card, shown({ text: part }), near + start, () => el('mark'));
      } else if (check === 'unconfirmed') wrap(card || root, shown(segment), near, () => el('span', { className: 'doubt' }));
    });
  }
};

/** A snippet, which is Markdown cut anywhere, without most of its signs. @type {(snippet?: string) => string} */
const plain = (snippet = '') => `${snippet}`.replace(/`{3}\S*|[*`|]|-{3,}/g, '');

/** Puts a tip beside each number and each "?": a pointer and the focus show it, and so does a first tap. @type {(turn: Turn, strings: Later) => void} */
export const addTips = ({ body }, strings) => {
  for (const marker of /** @type {NodeListOf<HTMLElement>} */ (body.querySelectorAll('sup .cite'))) {
    const { source } = marker;
    const touch = matchMedia('(hover:none)').matches;
    const open = source && touch ? [Object.assign(link(source.url, 'chip', strings.open), { source })] : [];
    // Beside the link, or it would be part of its name.
    marker.after(el('span', { className: 'tip' }, ...source ? [el('b', {}, where(source)), plain(source.snippet)] : [marker.ariaLabel ?? ''], open));
    marker.addEventListener('click', event => {
      const shown = marker.classList.toggle('shown');
      if (!touch || !source || !shown) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
  body.addEventListener('click', ({ target }) => {
    for (const marker of body.querySelectorAll('.shown')) if (marker !== target) marker.classList.remove('shown');
  }, true);
};

/** Whether a paragraph names the language of the code behind it, as pages with tabs are read. Other names may be steps. @type {(node?: Element | null) => unknown} */
const isLabel = node => node?.matches('p:has(>strong:only-child)')
  && node.nextElementSibling?.querySelector('pre>code')?.className === `language-${node.textContent.trim().toLowerCase()}`;

/** Lets a sample of several formats stand once, behind their labels. @type {(body: HTMLElement) => void} */
export const foldTabs = body => {
  for (const start of body.querySelectorAll('p')) {
    /** @type {[HTMLElement, HTMLElement][]} */
    const tabs = [];
    for (let label = /** @type {any} */ (start); isLabel(label); label = tabs.at(-1)?.[1].nextElementSibling) {
      const sample = label.nextElementSibling;
      tabs.push([el('button', { type: 'button', className: 'chip', onclick: () => choose(sample) }, label.textContent), sample]);
    }
    if (!tabs[1]) continue;
    /** @type {(chosen?: HTMLElement) => void} */
    const choose = chosen => {
      for (const [button, sample] of tabs) {
        sample.hidden = sample !== chosen;
        button.ariaPressed = `${!sample.hidden}`;
      }
    };
    for (const [, sample] of tabs) sample.previousElementSibling?.remove();
    tabs[0][1].before(el('div', { className: 'tabs' }, tabs.map(([button]) => button)));
    choose((tabs.find(([, sample]) => sample.querySelector('mark')) ?? tabs[0])[1]);
  }
};

/** Shades the edge of what scrolls where there is more behind it. A mask would cut off the tips in a table. @type {(body: HTMLElement) => void} */
export const fadeEdges = body => {
  for (const box of body.querySelectorAll('pre,.scroll')) {
    const look = () => box.classList.toggle('more', box.scrollWidth - box.clientWidth - Math.abs(box.scrollLeft) > 1);
    box.addEventListener('scroll', look);
    new ResizeObserver(look).observe(box);
  }
};
