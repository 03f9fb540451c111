// @ts-check
// Markdown's everyday subset as DOM nodes, in linear time. What it does not know, raw HTML above all, stays text.
import { el, link } from './dom.js';

// A citation's place: its segment's number between code points that no text may hold.
const MARK = /\uFDD0(\d+)\uFDD1/g;
const TOKEN = [
  MARK,
  /(`+)/,
  /(\*{1,3}|_{1,3})/,
  /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(<?((?:[^\s()<>\\]|\\.|\([^\s()]*\))*)>?(?: "[^"]*")?\)/,
  /(https?:\/\/[^\s<>`\uFDD0]*[\w/&=#%-])/,
  /\\([!-/:-@[-`{-~])/,
  /\\\n/,
].map(part => part.source).join('|');
const FENCE = /^ *(`{3,}(?=[^`]*$)|~{3,})\s*([\w.+#-]{0,32})/;
const HEADING = /^ {0,3}(#{1,6})(?:\s(.*))?$/;
const DIVIDER = /^ {0,3}([-*_])(?:[ \t]*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(?: {1,4}(?=\S)|\s|$)/;

/** @type {Render} */
export const render = (segments, cite) => {
  const text = segments.map((segment, index) => {
    const own = segment.text.replace(/[\uFDD0\uFDD1]/g, '');
    // Behind a table row's last pipe a citation would be a cell of its own.
    const end = own.trimEnd().replace(/\|$/, '').length;
    return segment.citations.length ? `${own.slice(0, end)}\uFDD0${index}\uFDD1${own.slice(end)}` : own;
  });
  return blocks(text.join('').slice(0, 65536).split(/\r\n?|\n/), cite, 0);
};

/** @type {(line?: string) => string[]} */
const cells = (line = '') => {
  const row = [''];
  for (const part of line.trim().match(/\\.?|[^\\|]+|\|/g) ?? []) {
    if (part === '|') row.push('');
    else row[row.length - 1] += part === '\\|' ? '|' : part;
  }
  return row.slice(+!row[0], row.at(-1) ? undefined : -1);
};

/** @type {Blocks} */
const blocks = (lines, cite, depth) => {
  const out = document.createDocumentFragment();
  let at = 0;

  /** Moves past lines for as long as they pass. @type {(test: (line: string) => unknown) => string[]} */
  const take = test => {
    const from = at;
    while (at < lines.length && test(lines[at])) at++;
    return lines.slice(from, at);
  };
  /** The number of columns of the table that begins here. */
  const columns = () => {
    const rule = lines[at].includes('|') ? cells(lines[at + 1]) : [];
    return rule.length === cells(lines[at]).length && rule.every(cell => /^\s*:?-+:?\s*$/.test(cell)) && rule.length;
  };
  /** The list that this line is an item of, by the end of its bullet. */
  const bullet = () => at < lines.length && !DIVIDER.test(lines[at]) && ITEM.exec(lines[at])?.[1].at(-1);
  const prose = () => lines[at].trim() && !columns()
    && ![FENCE, HEADING, DIVIDER, QUOTE, ITEM].some(start => start.test(lines[at]));

  const item = () => {
    const { length } = /** @type {string[]} */ (ITEM.exec(lines[at]))[0];
    const margin = new RegExp(`^(?:\t| {${length}})`);
    const first = lines[at++].slice(length);
    let gap = false;
    const rest = take(line => {
      const inside = !line.trim() || margin.test(line) || (!gap && prose());
      gap = !line.trim();
      return inside;
    });
    return el('li', {}, blocks([first, ...rest.map(line => line.replace(margin, ''))], cite, depth + 1));
  };

  while (at < lines.length) {
    const line = lines[at];
    const list = bullet();
    const [, hashes, title = ''] = HEADING.exec(line) ?? [];
    const [opening, ticks, language] = FENCE.exec(line.replace(MARK, '')) ?? [];
    const width = columns();
    if (!line.trim()) {
      at++;
      continue;
    }
    if (depth > 11 || prose()) {
      at++;
      const text = [line, ...take(prose)].join('\n').trim().split('\n');
      // Two spaces at its end break a line as a backslash does.
      out.append(el('p', {}, inline(text.map(one => one.trim() + (one.endsWith('  ') ? '\\' : '')).join('\n'), cite)));
    } else if (opening) {
      const from = at++;
      const indent = new RegExp(`^ {0,${opening.search(/\S/)}}`);
      const body = take(one => !one.trim().startsWith(ticks)).map(one => one.replace(MARK, '').replace(indent, ''));
      const code = el('code', { className: `language-${language || 'text'}` }, body.join('\n'));
      out.append(el('div', { className: 'code' }, el('pre', { tabIndex: 0 }, code)));
      // Among code a citation would be code: it follows.
      const marks = lines.slice(from, ++at).join('').match(MARK);
      if (marks) out.append(el('p', {}, inline(marks.join(''), cite)));
    } else if (hashes) {
      at++;
      // The panel's own title is an h2: an answer's h1 and h2 stand below it.
      const name = /** @type {'h3'} */ (`h${hashes.length < 3 ? hashes.length + 2 : hashes.length}`);
      out.append(el(name, {}, inline(title.trim().replace(/(^|\s)#+$/, ''), cite)));
    } else if (list) {
      const node = '.)'.includes(list) ? el('ol', { start: parseInt(line) }) : el('ul');
      while (bullet() === list) node.append(item());
      out.append(node);
    } else if (width) {
      const [head, , ...body] = take(row => row.includes('|')).map((row, index) => (
        el('tr', {}, cells(row).slice(0, width).map(cell => el(index ? 'td' : 'th', {}, inline(cell.trim(), cite))))));
      const table = el('table', {}, el('thead', {}, head), el('tbody', {}, body));
      out.append(el('div', { className: 'scroll', tabIndex: 0 }, table));
    } else if (QUOTE.test(line)) {
      const body = take(quoted => QUOTE.test(quoted)).map(quoted => quoted.replace(QUOTE, ''));
      out.append(el('blockquote', {}, blocks(body, cite, depth + 1)));
    } else {
      at++;
      out.append(el('hr'));
    }
    out.append('\n');
  }
  return out;
};

/** @type {Inline} */
const inline = (text, cite, linked = false) => {
  /** @type {(Node | string)[]} */
  const out = [];
  // Few, so that hostile text does not nest deeper.
  /** What may still open emphasis. @type {{ at: number, sign: string, size: number }[]} */
  const open = [];
  const token = new RegExp(TOKEN, 'g');
  const ticks = Map.groupBy([...text.matchAll(/`+/g)].reverse(), ([run]) => run.length);

  /** @type {(run: string) => void} */
  const code = run => {
    const ends = ticks.get(run.length) ?? [];
    while (ends.length && ends[ends.length - 1].index < token.lastIndex) ends.pop();
    const raw = ends.length ? text.slice(token.lastIndex, ends[ends.length - 1].index) : '';
    if (!raw) return void out.push(run);
    token.lastIndex += raw.length + run.length;
    const shown = raw.replace(MARK, '');
    out.push(el('code', {}, shown.trim() && /^\s.*\s$/s.test(shown) ? shown.slice(1, -1) : shown));
    for (const [, mark] of raw.matchAll(MARK)) out.push(cite(+mark));
  };

  /** @type {(run: string, at: number) => void} */
  const emphasis = (run, at) => {
    const sign = run[0];
    const before = text[at - 1] ?? ' ';
    const after = text[at + run.length] ?? ' ';
    const opens = /\S/.test(after) && (sign === '*' || !/[\p{L}\d]/u.test(before));
    const closes = /\S/.test(before) && (sign === '*' || !/[\p{L}\d]/u.test(after));
    let size = run.length;
    while (closes && size && open.some(opener => opener.sign === sign)) {
      const opener = open[open.length - 1];
      if (opener.sign !== sign) open.pop();
      else {
        const use = Math.min(size, opener.size, 2);
        out.push(el(use > 1 ? 'strong' : 'em', {}, out.splice(opener.at + 1)));
        out[opener.at] = sign.repeat(opener.size -= use);
        if (!opener.size) open.pop();
        size -= use;
      }
    }
    if (opens && size && open.push({ at: out.length, sign, size }) > 12) open.shift();
    out.push(sign.repeat(size));
  };

  let at = 0;
  for (let found; (found = token.exec(text)); at = token.lastIndex) {
    const [whole, mark, run, signs, label, target, url, escaped] = found;
    out.push(text.slice(at, found.index));
    if (mark) out.push(cite(+mark));
    else if (run) code(run);
    else if (signs) emphasis(signs, found.index);
    else if (label !== undefined) {
      const content = inline(label, cite, true);
      if (linked || whole[0] === '!') out.push(el('span', {}, content));
      else out.push(link(target.replace(MARK, '').replace(/\\(.)/g, '$1'), '', content));
    } else if (url) out.push(linked ? url : link(url, '', url));
    else out.push(escaped ?? el('br'));
  }
  return [...out, text.slice(at)];
};
