// @ts-check
// Elements, icons and links, and a renderer of Markdown's everyday subset in linear time. Unknown syntax, such as raw
// HTML, stays text.

export const ICONS = {
  close: 'M6 6l12 12M18 6L6 18',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M8 8h8v8H8z',
  answered: 'M5 12l5 5 9-10',
  partial: 'M12 4a8 8 0 0 0 0 16zM12 4a8 8 0 0 1 0 16',
  not_in_docs: 'M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M6.5 6.5l11 11',
  degraded: 'M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M12 8v5M12 16v.1',
  error: 'M12 4l9 16H3zM12 10v4M12 17v.1',
};

/** @type {El} */
export const el = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  for (const child of children.flat()) {
    node.append(child instanceof Node ? child : `${child}`.replace(/[\p{Bidi_C}\uFDD0\uFDD1]|(?![\t\n])\p{Cc}/gu, ''));
  }
  return node;
};

/** @type {(name: string, drawing?: string) => SVGElement} */
export const icon = (name, drawing = ICONS[/** @type {Icon} */ (name)]) => {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS(svg.namespaceURI, 'path');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.ariaHidden = 'true';
  path.setAttribute('d', drawing);
  svg.append(path);
  return svg;
};

/** @type {Link} */
export const link = (address, className, ...children) => {
  const url = /^[^\s\\\p{C}]{1,2048}$/u.test(address ?? '') && URL.parse(address ?? '', location.href);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return el('span', { className }, ...children);
  const node = el('a', { className, href: url.href }, ...children);
  if (url.origin === location.origin) return node;
  return Object.assign(node, { title: url.host, target: '_blank', rel: 'noopener noreferrer nofollow ugc' });
};

// A citation's place: its segment's number between code points that texts can't contain.
const MARK = /\uFDD0(\d+)\uFDD1/g;
const TOKEN = new RegExp([
  MARK,
  // An unclosed run of ticks is searched once per length, so lengths are limited.
  /(?<!`)(`{1,8})(?!`)([^]*?[^`])\2(?!`)/,
  /(\*+|_+)/,
  /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(<?((?:[^\s()<>\\]|\\.|\([^\s()]*\))*)>?(?: "[^"]*")?\)/,
  /<(https?:[^\s<>]*)>/,
  // Only ASCII: in scripts without spaces the sentence would continue inside the address.
  /(https?:\/\/[!#-;=?-_a-~]*[\w/&=#%-])/,
  /\\([!-/:-@[-`{-~])/,
  /&(amp|lt|gt|quot|nbsp);/,
  /(?:  |\\)\n/,
].map(part => part.source).join('|'), 'gi');
const FENCE = /^ *(`{3,}(?=[^`]*$)|~{3,})\s*([\w.+#-]{0,32})/;
const HEADING = /^ {0,3}(#{1,6})(?:\s(.*))?$/;
const DIVIDER = /^ {0,3}([-*_])(?:[ \t]*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(?: {1,4}(?=\S)|\s|$)/;
// A number at the start of a line in the middle of a paragraph may be a number.
const BULLET = /^ {0,3}([-*+]|1[.)])\s+\S/;

/** The numbers of signs of the headings around the next one. @type {number[]} */
let outline = [];

/** @type {Render} */
export const render = (segments, cite) => {
  outline = [];
  const text = segments.map((segment, index) => {
    const own = segment.text.replace(/[\uFDD0\uFDD1]/g, '');
    // After a table row's last pipe a citation would be a cell of its own.
    return segment.citations.length || segment.check === 'unconfirmed' ? own.replace(/\|?\s{0,9}$/, `\uFDD0${index}\uFDD1$&`) : own;
  });
  return blocks(text.join('').slice(0, 65536).split(/\r\n?|\n/), cite, 0);
};

/** @type {(line?: string) => string[]} */
const cells = (line = '') => line.trim().replace(/^\||(?<!\\)\|$/g, '').split(/(?<!\\)\|/)
  .map(cell => cell.replaceAll('\\|', '|').trim());

/** Whether a line belongs to a paragraph, ignoring quotes and bullets. @type {(line: string, ...more: RegExp[]) => unknown} */
const plain = (line, ...more) => line.trim()
  && ![FENCE, HEADING, DIVIDER, ...more].some(start => start.test(line));

/** @type {Blocks} */
const blocks = (lines, cite, depth) => {
  const out = new DocumentFragment();
  let at = 0;

  /** Consumes lines while they pass the test. @type {(test: (line: string) => unknown) => string[]} */
  const take = test => {
    const from = at;
    while (at < lines.length && test(lines[at])) at++;
    return lines.slice(from, at);
  };
  /** The delimiter row of the table that begins here. */
  const columns = () => {
    const rule = lines[at].includes('|') ? cells(lines[at + 1]) : [];
    return rule.length === cells(lines[at]).length && rule.every(cell => /^:?-+:?$/.test(cell)) && rule;
  };
  /** The list of this line's item, by the end of its bullet. */
  const bullet = () => !DIVIDER.test(lines[at]) && ITEM.exec(lines[at])?.[1].at(-1);
  const prose = (item = ITEM) => plain(lines[at], QUOTE, item) && !columns();
  /** Whether this line continues the last paragraph of a quote or an item. */
  const lazy = () => prose() && plain(lines[at - 1].replace(/^[\s>]+/, ''));

  const paragraph = () => el('p', {}, inline([lines[at++], ...take(() => prose(BULLET))].join('\n').trim(), cite));

  /** @type {(opening: string, ticks: string, language: string) => Node} */
  const fence = (opening, ticks, language) => {
    const from = at++;
    const indent = new RegExp(`^ {0,${opening.search(/\S/)}}`);
    const end = new RegExp(`^ *${ticks}+\\s*(\uFDD0|$)`);
    const body = take(line => !end.test(line)).map(line => line.replace(MARK, '').replace(indent, ''));
    const code = el('code', { className: `language-${language || 'text'}` }, body.join('\n'));
    return el('div', { className: 'code' }, el('pre', { tabIndex: 0 }, code), marks(lines.slice(from, ++at).join(''), cite));
  };

  /** @type {(sign: string) => Node} */
  const list = sign => {
    const start = parseInt(lines[at]);
    /** @type {Node[][]} */
    const items = [];
    let loose = false;
    while (bullet() === sign) {
      const { length } = /** @type {string[]} */ (ITEM.exec(lines[at]))[0];
      const margin = new RegExp(`^(?:\t| {${length}})`);
      loose ||= !!items.length && !lines[at - 1].trim();
      const first = lines[at++].slice(length).replace(/^\[ ] /, '☐ ').replace(/^\[x] /i, '☑ ');
      const rest = take(line => !line.trim() || margin.test(line) || lazy()).map(line => line.replace(margin, ''));
      items.push([...blocks([first, ...rest], cite, depth + 1).childNodes]);
    }
    loose ||= items.flat().some(({ textContent }) => textContent === '\n\n');
    // The items of a tight list are lines, not paragraphs.
    const nodes = items.map(item => el('li', {}, loose ? item : item.flatMap(node => (
      node.nodeName === 'P' ? [...node.childNodes] : node))));
    return start >= 0 ? el('ol', { start }, nodes) : el('ul', {}, nodes);
  };

  /** @type {(rule: string[]) => Node} */
  const table = rule => {
    const [head, , ...body] = [lines[at++], lines[at++], ...take(() => prose())].map((row, index) => (
      el('tr', {}, cells(row).slice(0, rule.length).map((text, column) => el(index ? 'td' : 'th', /** @type {any} */ (
        rule[column].endsWith('-:') && { style: `text-align:${rule[column][0] === ':' ? 'center' : 'right'}` }
      ), inline(text, cite))))));
    return el('div', { className: 'scroll', tabIndex: 0 }, el('table', {}, el('thead', {}, head), el('tbody', {}, body)));
  };

  const block = () => {
    const line = lines[at];
    const [, hashes, title = ''] = HEADING.exec(line) ?? [];
    const [opening, ticks, language] = FENCE.exec(line) ?? [];
    const sign = bullet();
    const rule = columns();
    if (depth > 11) return paragraph();
    if (opening) return fence(opening, ticks, language);
    if (sign) return list(sign);
    if (rule) return table(rule);
    if (QUOTE.test(line)) {
      const quoted = take(one => QUOTE.test(one) || lazy()).map(one => one.replace(QUOTE, ''));
      return el('blockquote', {}, blocks(quoted, cite, depth + 1));
    }
    if (!hashes && !DIVIDER.test(line)) return paragraph();
    at++;
    if (!hashes) return el('hr');
    // The panel's own title is an h2: an answer's headings start below it, and skip no level.
    outline = [...outline.filter(size => size < hashes.length), hashes.length];
    const name = /** @type {'h3'} */ (`h${Math.min(2 + outline.length, 6)}`);
    return el(name, {}, inline(title.replace(/(^|\s)#+\s*$/, '').trim(), cite));
  };

  while (at < lines.length) {
    if (lines[at].trim()) out.append(out.firstChild && !lines[at - 1].trim() ? '\n\n' : '\n', block());
    else at++;
  }
  return out;
};

/** @type {(name: string) => string} */
const decode = name => '&<>"\xA0'[['amp', 'lt', 'gt', 'quot', 'nbsp'].indexOf(name)];

/** Citations inside code, where they would be code: they follow it. @type {Inline} */
const marks = (code, cite) => inline((code.match(MARK) ?? []).join(''), cite);

/**
 * CommonMark's flanking runs, except for East Asian scripts, whose words touch each other and their emphasis.
 * @type {(sign: string, inner: string, outer: string) => boolean}
 */
const flanks = (sign, inner, outer) => /\S/.test(inner)
  && (/[\s\p{P}\p{S}\u2E80-\uFFFF]/u.test(outer) || (sign === '*' && /[^\p{P}\p{S}]/u.test(inner)));

/** @type {Inline} */
const inline = (text, cite, linked = false) => {
  /** @type {(Node | string)[]} */
  const out = [];
  // Limited, so that hostile text can't nest deeper.
  /** Possible openers of emphasis. @type {{ at: number, sign: string, size: number, length: number, closes: boolean }[]} */
  const open = [];

  /** @type {(run: string, at: number) => void} */
  const emphasis = ({ 0: sign, length }, at) => {
    const before = text[at - 1] ?? ' ';
    const after = text[at + length] ?? ' ';
    const opens = length < 4 && flanks(sign, after, before);
    const closes = flanks(sign, before, after);
    let size = length;
    while (closes && size) {
      // A run that can open and close must not close one that doesn't match: `**/*.md` is no emphasis.
      const index = open.findLastIndex(opener => opener.sign === sign && ((opener.length + length) % 3 || !(opens || opener.closes)));
      if (index < 0) break;
      const opener = open[index];
      const use = Math.min(size, opener.size, 2);
      out.push(el(use > 1 ? 'strong' : 'em', {}, out.splice(opener.at + 1)));
      out[opener.at] = sign.repeat(opener.size -= use);
      open.length = index + +!!opener.size;
      size -= use;
    }
    if (opens && size && open.push({ at: out.length, sign, size, length, closes }) > 12) open.shift();
    out.push(sign.repeat(size));
  };

  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, mark, ticks, raw, signs, label, target, angled, bare, escaped, name] = found;
    const url = angled ?? bare;
    out.push(text.slice(at, found.index));
    if (mark) out.push(cite(+mark));
    else if (ticks) out.push(el('code', {}, raw.replace(MARK, '').replace(/^ (.+) $/s, '$1')), ...marks(raw, cite));
    else if (signs) emphasis(signs, found.index);
    else if (name) out.push(decode(name));
    else if (escaped) out.push(escaped);
    else if (whole.endsWith('\n')) out.push(el('br'));
    else {
      // Images, and links inside links, get no address.
      const address = linked || whole[0] === '!' ? '' : target?.replace(MARK, '').replace(/\\(.)/g, '$1').replaceAll('&amp;', '&');
      out.push(link(address ?? url, '', target === undefined ? url : inline(label, cite, true)));
    }
    at = found.index + whole.length;
  }
  return [...out, text.slice(at)];
};
