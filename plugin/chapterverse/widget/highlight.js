// @ts-check
// Colors the code of answers as the page colors its own code. The colors are read from a hidden probe with the classes of
// Pygments and Chroma, highlight.js and Prism; one expression finds the tokens of all languages. No node changes: the
// browser paints ranges. Without such styles, or in a browser that cannot paint ranges, code stays as it is.

const CLASSES = {
  comment: 'c1 hljs-comment token comment',
  string: 's2 hljs-string token string',
  number: 'mi hljs-number token number',
  keyword: 'k hljs-keyword token keyword',
};
const KINDS = /** @type {(keyof typeof CLASSES)[]} */ (Object.keys(CLASSES));

/** Languages whose comments begin with a number sign; in others they begin with slashes. */
const HASHED = /-(py|(ba|z|power)?sh|console|ya?ml|toml|ini|conf|rb|ruby|perl|r$|docker|make|env|nix|elixir)/;
const PLAIN = /-(text|txt|plain|md|markdown)$/;
/** A terminal's session, in which a program's own words are prose. */
const SESSION = /-(console|shell-?session)$/;
const KEYWORDS = `abstract and as assert async await bool boolean break case catch char class const continue def default defer
  del do elif else enum except export extends false False finally float fn for foreach from func function go if impl implements
  import in instanceof int interface is lambda let match mod module mut namespace new nil None nonlocal not null of or package
  pass private protected pub public raise return self static string struct super switch then this throw trait true True try
  type typeof use using var void where while with yield`;
// What is not closed ends with the text, so that each character is read once.
const REST = String.raw`\/\*[^]*?(?:\*\/|$)|<!--[^]*?(?:-->|$))|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\`[^\`]*\`)`
  + String.raw`|(?<![\w.-])(\d[\d._]*)(?![\w-])`;
const WORDS = String.raw`|(?<![\w.$-])(${KEYWORDS.trim().replace(/\s+/g, '|')})(?![\w-])`;

/** @type {(name: string) => RegExp} */
const tokens = name => (
  new RegExp(`((?<!\\S)${HASHED.test(name) ? '#(?![\\w{[])' : '\\/\\/'}.*|${REST}${SESSION.test(name) ? '' : WORDS}`, 'g'));

const sheet = new CSSStyleSheet();

/** Paints all code of the conversation anew. @type {(root: ShadowRoot) => void} */
export const highlight = root => {
  // Forced colors put a box behind each range.
  if (!globalThis.Highlight || matchMedia('(forced-colors:active)').matches) return;
  const ranges = KINDS.map(() => new Highlight());
  for (const code of root.querySelectorAll('.code code')) {
    const { className, firstChild } = code;
    if (PLAIN.test(className) || !(firstChild instanceof Text)) continue;
    for (const found of firstChild.data.matchAll(tokens(className))) {
      const range = new Range();
      range.setStart(firstChild, found.index);
      range.setEnd(firstChild, found.index + found[0].length);
      ranges[found.findIndex((group, at) => at && group) - 1].add(range);
    }
  }
  KINDS.forEach((kind, at) => CSS.highlights.set(`chapterverse-${kind}`, ranges[at]));
  if (!root.adoptedStyleSheets.includes(sheet)) {
    root.adoptedStyleSheets.push(sheet);
    // A switch between light and dark.
    for (const node of [document.documentElement, document.body]) new MutationObserver(paint).observe(node, { attributes: true });
  }
  paint();
};

/** The colors of the page when those of its code were read. */
let scheme = '';

/** Reads the colors of the page's code, unless its own are the same. */
const paint = () => {
  // Themes change attributes at each scroll.
  const { color, backgroundColor } = getComputedStyle(document.body);
  if (scheme === (scheme = color + backgroundColor)) return;
  const probe = document.createElement('div');
  probe.className = 'highlight';
  probe.hidden = true;
  const code = document.createElement('code');
  code.className = 'hljs language-js';
  const spans = ['', ...Object.values(CLASSES)].map(className => Object.assign(document.createElement('span'), { className }));
  code.append(...spans);
  probe.appendChild(document.createElement('pre')).append(code);
  (document.querySelector('main,article') ?? document.body).append(probe);
  const [own, ...colors] = spans.map(span => getComputedStyle(span).color);
  probe.remove();
  sheet.replaceSync(KINDS.map((kind, at) => (
    colors[at] === own ? '' : `::highlight(chapterverse-${kind}){color:${colors[at]}}`)).join(''));
};
