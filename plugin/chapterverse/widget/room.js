// @ts-check
// The shapes of the panel, and the room that the page makes for a panel beside it. Themes lay out by the window, which
// does not shrink: what they fix to it ends at the panel, and in a window that is too small for three columns the table of
// contents gives way.
import { el } from './render.js';

const WIDTH = 'min(clamp(430px,30vw,480px),40vw)';
const page = new CSSStyleSheet();
page.replaceSync(`@media screen and (min-width:1000px){html{margin-inline-end:${WIDTH}!important}.VPNav,.page>.header,.wy-grid-for-nav{width:calc(100% - ${WIDTH})!important}
.page>.main,.main>.content{min-width:0!important}.main>.content{width:auto!important}}
@media screen and (min-width:1000px) and (max-width:1599px){
.md-sidebar--secondary,.col:has(>.theme-doc-toc-desktop),.right-sidebar-container,.toc-drawer,.bd-sidebar-secondary{display:none!important}
.col:has(+.col>.theme-doc-toc-desktop),.main-pane{width:100%!important;max-width:100%!important;flex-basis:100%!important}
.VPDoc .content{min-width:0!important}}
@media screen and (min-width:1000px) and (max-width:1855px){.VPDoc .aside{display:none!important}}`);

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.wide{width:min(860px,100% - 40px);height:auto;inset-block:20px}
.side{inset-block:0;inset-inline-end:0;width:min(clamp(430px,30vw,480px),100%);height:auto;border-radius:0}
@media(min-width:1000px){.side{width:${WIDTH}}}
.pill{position:fixed;inset-block-end:var(--_bottom);inset-inline-end:var(--_end)}`);

/** Pixels of text that can be read. */
const LEAST = 320;
const BLOCKS = ':is(main,article,[role=main]) :is(h1,h2,h3,h4,p,li,dt,dd,pre,td,th)';

/** Makes room beside the page, or takes it back. @type {(docked: boolean) => void} */
const makeRoom = docked => {
  const others = document.adoptedStyleSheets.filter(other => other !== page);
  document.adoptedStyleSheets = docked ? [...others, page] : others;
};

/** The edges between which text is seen: what scrolls or hides ends its text. @type {(block: Element) => { left: number, right: number }} */
const edges = block => {
  const range = new Range();
  range.selectNodeContents(block);
  let { left, right } = range.getBoundingClientRect();
  // Some themes let the code scroll, and others what it is in.
  for (let node = /** @type {Element | null} */ (block.querySelector(':scope>code') ?? block); node && node !== document.body; node = node.parentElement) {
    if (getComputedStyle(node).overflowX === 'visible') continue;
    const box = node.getBoundingClientRect();
    [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
  }
  return { left, right };
};

/** Whether the page has made room: no text lies under the panel, and a column is left that can be read. */
const hasRoom = () => {
  const { clientWidth } = document.documentElement;
  const width = Math.min(Math.max(430, 0.3 * innerWidth), 480, 0.4 * innerWidth);
  const rtl = document.documentElement.matches(':dir(rtl)');
  const blocks = [...document.querySelectorAll(BLOCKS)].filter(block => block.checkVisibility());
  const columns = blocks.filter(block => block.matches('p:not(table p)')).map(block => block.clientWidth);
  return (!columns[0] || Math.max(...columns) >= LEAST) && blocks.slice(0, 1000).every(block => {
    const { left, right } = edges(block);
    return left >= right || (rtl ? left >= width - 1 : right <= clientWidth - width + 1);
  });
};

/** Whether the panel could stand beside the page. Nothing is painted meanwhile. @type {(panel: Panel) => boolean} */
const canDock = ({ shape, dialog }) => {
  if (!matchMedia('(min-width:1000px)').matches) return false;
  const docked = shape === 'side' && dialog.open;
  makeRoom(true);
  const room = hasRoom();
  makeRoom(docked);
  return room;
};

/** Offers to dock, where there is room. @type {(panel: Panel) => void} */
export const offerDock = panel => {
  const { root, head } = panel;
  if (!root.adoptedStyleSheets.includes(sheet)) {
    root.adoptedStyleSheets.push(sheet);
    let timer = 0;
    addEventListener('resize', () => {
      clearTimeout(timer);
      timer = setTimeout(offerDock, 200, panel);
    });
  }
  const dock = /** @type {HTMLElement | null} */ (head.querySelector('.dock'));
  if (!dock) return;
  const room = canDock(panel);
  // A button that goes leaves the focus to its neighbour.
  if (!room && root.activeElement === dock) /** @type {HTMLElement} */ (dock.previousElementSibling).focus();
  dock.hidden = !room;
};

/** Lets the panel float, widen, or stand beside the page. @type {(panel: Panel, name: string) => void} */
export const setShape = (panel, name) => {
  const { dialog, head } = panel;
  if (dialog.matches('.inline')) return;
  // In a small window it covers the page anyway.
  const wanted = name === 'side' && matchMedia('(min-width:1000px)').matches && !canDock(panel) ? '' : name;
  panel.shape = wanted;
  dialog.className = wanted;
  for (const [button, shape] of [['.expand', 'wide'], ['.dock', 'side']]) {
    for (const node of head.querySelectorAll(button)) node.ariaPressed = `${wanted === shape}`;
  }
  makeRoom(wanted === 'side' && dialog.open);
  offerDock(panel);
};

/** Keeps the panel off a marked passage: docked, or else shrunk to a button that leads back. @type {(panel: Panel, range: Range, strings: Later) => void} */
export const uncover = (panel, range, { back }) => {
  const { dialog, root, phone } = panel;
  const isCovered = () => {
    const box = dialog.getBoundingClientRect();
    return [...range.getClientRects()].some(({ left, right, top, bottom }) => (
      left < box.right && right > box.left && top < box.bottom && bottom > box.top));
  };
  if (!dialog.open || phone.matches || dialog.matches('.inline') || !isCovered()) return;
  setShape(panel, 'side');
  range.startContainer.parentElement?.scrollIntoView({ block: 'center' });
  if (!isCovered()) return;
  const pill = el('button', { type: 'button', className: 'launcher pill', onclick() {
    pill.remove();
    dialog.hidden = false;
    dialog.focus();
  } }, back);
  root.querySelector('.pill')?.remove();
  root.append(pill);
  dialog.hidden = true;
};
