// @ts-check
// The page around the chat: questions about its content, its search field, and the cited passages.
import { kept, more, store } from './session.js';

/** The text that a page and its Markdown have in common. */
const CHARACTERS = /[^\s!-/:-@[-`{-~…]/g;

const sheet = new CSSStyleSheet();
document.adoptedStyleSheets.push(sheet);

/** Search fields or their containers. */
const SEARCH = '[type=search],[role=search],[role=combobox],[name=q],[class*=search i]';
/** Where their results are: Material, MkDocs, DocSearch (Docusaurus, VitePress), VitePress' own, Pagefind. Others, as
 * Zensical, name the list by `aria-controls`. */
const RESULTS = `.md-search-result,.DocSearch-Dropdown,.VPLocalSearchBox .results,.pagefind-ui__drawer,
  #mkdocs-search-results,#properdocs-search-results,[data-chapterverse-results]`;

let looking = 0;

/** @type {WatchPage} */
export const watchPage = (host, config, open) => {
  const strings = more(config);
  const button = document.createElement('button');
  /** The element last pointed at, tapped or focused. @type {Element} */
  let over = document.querySelector('pre:hover') ?? document.body;
  /** The element focused before the offer. @type {HTMLElement} */
  let origin;
  /** The offered code block or selected text. @type {any} */
  let area;
  let text = '';
  /** Offers that were taken or declined. */
  let gone = '';
  let held = 0;
  let timer = 0;

  const update = async () => {
    const { offer, offer_code } = await strings;
    if (button.matches(':hover,:focus')) return;
    const selection = /** @type {Selection} */ (getSelection());
    const active = /** @type {Element} */ (document.activeElement);
    area = selection.isCollapsed || active.matches('input,textarea')
      ? over.closest('pre') ?? active.closest('pre')
      : selection.getRangeAt(0);
    text = area ? (area.localName ? code(area) : `${selection}`).trim() : '';
    gone = text && gone;
    button.textContent = area?.localName ? offer_code : offer;
    if (text === gone || !/\p{L}/u.test(text)) return button.remove();
    host.shadowRoot?.prepend(button);
    return place();
  };

  const place = () => {
    if (!button.isConnected) return;
    const { top, bottom, left, right } = area.getBoundingClientRect();
    const { offsetWidth } = button;
    const last = innerHeight - 38;
    const rtl = (area.localName ? area : document.body).matches(':dir(rtl)');
    // The open panel would hide it.
    const panel = host.shadowRoot?.querySelector('dialog[open]')?.getBoundingClientRect();
    const x = rtl ? Math.max(left, panel?.right ?? 0) : Math.min(right, panel?.left ?? innerWidth) - offsetWidth;
    // Below a selection there is room for a phone's handles. A selection that fills the window has it outside.
    const y = area.localName ? below(area, x) : bottom + 24;
    button.style.top = `${y < last ? y : area.localName ? Math.max(last, top) : top - 38}px`;
    button.style.left = `${Math.max(8, Math.min(x, innerWidth - offsetWidth - 8))}px`;
  };

  /** Where it is off the code, the next line, and the theme's own buttons. @type {(block: Element, x: number) => number} */
  const below = (block, x) => {
    const { bottom } = block.getBoundingClientRect();
    const range = new Range();
    range.selectNodeContents(block);
    const lines = [...range.getClientRects()].filter(({ width }) => width);
    const end = Math.max(...lines.map(line => line.bottom));
    /** @type {Element | null} */
    let after = block;
    while (after && !after.nextElementSibling) after = after.parentElement;
    const next = after?.nextElementSibling?.getBoundingClientRect().top ?? 0;
    const room = (next > end ? next : Infinity) - button.offsetHeight - 2;
    // It hangs on the lower edge if there is room, or stands beside a short last line, or covers the end of a long one.
    if (Math.min(bottom - 6, room) >= end) return Math.min(bottom - 6, room);
    const short = lines.every(line => line.bottom < end - 4 || line.right < x - 8);
    return short ? Math.min(bottom - button.offsetHeight - 4, room) : room;
  };

  /** @type {(event: any) => void} */
  const notice = ({ target, buttons = held }) => {
    held = buttons;
    place();
    if (target.closest) over = target;
    clearTimeout(timer);
    // A selection grows step by step: wait until it is stable and no mouse button is down.
    timer = setTimeout(() => held || update(), 250);
  };

  const hide = () => {
    gone = text;
    button.remove();
  };

  /** @type {(event: KeyboardEvent) => void} */
  const press = event => {
    const { key } = event;
    const target = /** @type {any} */ (event.composedPath()[0]);
    if (key === 'Escape') hide();
    if (key === 'Tab' && area?.localName && button.isConnected) {
      // The offer is at the end of the page, but next in the focus order after its code.
      if (target === button) {
        origin.focus();
        hide();
      } else if (area.contains(target) && !event.shiftKey) {
        origin = target;
        button.focus();
        event.preventDefault();
      }
    }
    const asked = key === 'Enter' && !event.isComposing && target.closest?.(SEARCH) && /^\s*\/ask\s+(.*\S)/.exec(target.value);
    if (!asked) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    hand(target, asked[1]);
  };

  /** Gives a question from the site's search to the chat. @type {(field: HTMLInputElement, text: string) => void} */
  const hand = (field, text) => {
    // React ignores an assigned value.
    field.setRangeText('', 0, field.value.length);
    const options = { key: 'Escape', bubbles: true, composed: true };
    field.dispatchEvent(new Event('input', options));
    field.dispatchEvent(new KeyboardEvent('keydown', options));
    // A modal dialog, such as Zensical's, gets Escape only from the browser.
    field.closest('dialog')?.requestClose?.();
    open({ text, send: true });
  };

  const row = document.createElement('button');
  row.type = 'button';
  row.className = 'chapterverse-row';
  // Its own styles: a search may have a shadow root.
  row.style.cssText = `display:block;box-sizing:border-box;width:100%;padding:.6em 1em;border:0;border-bottom:1px solid #8884;background:none;color:inherit;
    font:600 14px/1.6 sans-serif;font-family:inherit;text-align:start;cursor:pointer;overflow:hidden;text-overflow:ellipsis;white-space:nowrap`;
  let rowTimer = 0;

  /** Makes the first row of the site's results ask the chat. Results come when they like: look a few times. @type {(field: HTMLInputElement, looks?: number) => void} */
  const offerRow = async (field, looks = 5) => {
    const { ask_row } = await strings;
    const text = field.value.trim();
    const root = /** @type {Document} */ (field.getRootNode());
    const controlled = root.getElementById(field.getAttribute('aria-controls') ?? '');
    const results = [...root.querySelectorAll(RESULTS), controlled].find(node => node?.checkVisibility());
    // What a list holds must be its items.
    const inside = !results?.matches('ul,ol,[role=listbox]');
    row.textContent = ask_row.replace('{query}', () => text);
    row.onclick = () => hand(field, text);
    if (!text) return row.remove();
    if (results && (inside ? results.firstElementChild : results.previousElementSibling) !== row) results[inside ? 'prepend' : 'before'](row);
    clearTimeout(rowTimer);
    if (looks) rowTimer = setTimeout(offerRow, 200, field, looks - 1);
  };

  addEventListener('input', event => {
    const field = /** @type {any} */ (event.composedPath()[0]);
    if (field.localName === 'input' && field.closest(SEARCH)) offerRow(field);
  });

  button.className = 'launcher offer';
  button.style.cssText = 'position:fixed;padding:1px 11px;width:max-content;font-size:13px';
  // Pressing it must not move the focus, which would clear the selection.
  button.onmousedown = event => event.preventDefault();
  button.onclick = () => {
    hide();
    open({ selection: area.localName ? `\`\`\`\n${text.slice(0, 4950)}\n\`\`\`` : text });
  };
  for (const type of ['mouseover', 'mousedown', 'mouseup', 'focusin', 'selectionchange', 'scroll', 'resize']) addEventListener(type, notice, true);
  addEventListener('keydown', press, true);
  update();
};

/** The text of a code block, without line numbers and buttons. @type {(block: Element) => string} */
const code = block => {
  const copy = /** @type {Element} */ (block.cloneNode(true));
  for (const node of copy.querySelectorAll('br,button,.linenos,.lineno,.ln')) node.replaceWith(node.matches('br') ? '\n' : '');
  return copy.textContent;
};

/** Goes to a citation's target and marks the cited passage. @type {(anchor: HTMLAnchorElement, panel: Panel) => void} */
export const followCitation = (anchor, panel) => {
  const { href } = anchor;
  const from = location.href;
  const text = anchor.source?.snippet ?? '';
  if (panel.phone.matches) panel.close();
  // A wide panel would hide most of the page.
  if (panel.shape === 'wide') panel.setShape('side');
  // Instant navigation sees clicks on the page's links only.
  const outside = Object.assign(document.createElement('a'), { href });
  clear();
  store('chapterverse_cited', text);
  document.body.append(outside);
  outside.click();
  outside.remove();
  seek(text, from === href ? '' : from);
};

/** Polls for three seconds: no event reports that both address and content have changed. @type {(text: string, from?: string, looks?: number) => void} */
const seek = (text, from, looks = 30) => {
  looking = setTimeout(() => {
    if (location.href !== from) {
      // Tab continues from the target, as after a link of the page.
      const active = /** @type {HTMLElement} */ (document.activeElement);
      if (from && active.shadowRoot) active.blur();
      from = '';
      store('chapterverse_cited', '');
      if (mark(text)) return;
    }
    if (looks) seek(text, from, looks - 1);
  }, 100);
};

/** What the address names. */
const findTarget = () => {
  const { hash } = location;
  try {
    return hash ? document.getElementById(decodeURIComponent(hash.slice(1))) : document.body;
  } catch {
    return null;
  }
};

/** Marks `text`, or the longest part of it, after the cited heading. @type {(text: string) => unknown} */
const mark = text => {
  const heading = findTarget();
  if (!heading) return false;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  walker.currentNode = heading;
  /** @type {[Node, number][]} */
  const places = [];
  let page = '';
  while (!page[5e4] && walker.nextNode()) {
    const { currentNode } = walker;
    if (currentNode.parentElement?.closest('nav,script')) continue;
    for (const { 0: character, index } of `${currentNode.nodeValue}`.matchAll(CHARACTERS)) {
      page += character;
      places.push([currentNode, index]);
    }
  }
  const cited = `${text.slice(0, 1000).replace(/\]\(\S*\)/g, '').match(CHARACTERS)?.join('')}`;
  let best = '';
  for (let end = 1; end <= cited.length; end++) {
    const longer = cited.slice(end - best.length - 1, end);
    if (page.includes(longer)) best = longer;
  }
  if (!best[19]) return false;
  const at = page.indexOf(best);
  const range = new Range();
  range.setStart(...places[at]);
  const [node, offset] = places[at + best.length - 1];
  range.setEnd(node, offset + 1);
  // A quiet tint in the color of the page's links, light or dark.
  const { color } = getComputedStyle(document.querySelector(':is(main,article,[role=main]) a[href]') ?? document.body);
  sheet.replaceSync(`::highlight(chapterverse){background:color-mix(in srgb,${color} 25%,#0000)}`);
  CSS.highlights?.set('chapterverse', new Highlight(range));
  const { top } = range.getBoundingClientRect();
  const block = top < 64 || top > innerHeight - 64 ? 'center' : 'nearest';
  range.startContainer.parentElement?.scrollIntoView({ block });
  document.dispatchEvent(new Event('chapterverse-marked'));
  return true;
};

const clear = () => {
  clearTimeout(looking);
  CSS.highlights?.delete('chapterverse');
};

addEventListener('keydown', event => {
  if (event.key !== 'Escape') return;
  // It closes the chat only where it has no mark to remove.
  if (CSS.highlights?.has('chapterverse')) event.preventDefault();
  clear();
}, true);
addEventListener('pagehide', clear);

const cited = kept('chapterverse_cited');
if (cited) seek(`${cited}`);
