// @ts-check
// The room that the page makes for a panel beside it. Themes lay out by the window, which does not shrink: what they fix to
// it ends at the panel, and in a window that is too small for three columns the table of contents gives way.

const WIDTH = 'min(430px,40vw)';
const RULES = `@media(min-width:1000px){html{margin-inline-end:${WIDTH}!important}.VPNav,.page>.header{width:calc(100% - ${WIDTH})!important}}
@media(min-width:1000px) and (max-width:1599px){
.md-sidebar--secondary,.col:has(>.theme-doc-toc-desktop),.VPDoc .aside,.right-sidebar-container,.toc-drawer,.bd-sidebar-secondary{display:none!important}
.col:has(+.col>.theme-doc-toc-desktop),.main-pane{width:100%!important;max-width:100%!important;flex-basis:100%!important}
.VPDoc .content{min-width:0!important}}`;

/** Pixels of text that can be read. */
const LEAST = 320;
const TEXT = ':is(main,article,[role=main]) p';

const sheet = new CSSStyleSheet();
sheet.replaceSync(RULES);

/** Makes room, or takes it back, or refuses where the page would keep no column that can be read. @type {(docked: boolean, refuse: () => void) => void} */
export const make = (docked, refuse) => {
  const others = document.adoptedStyleSheets.filter(other => other !== sheet);
  document.adoptedStyleSheets = docked ? [...others, sheet] : others;
  if (!docked) return;
  const widest = Math.max(0, ...[...document.querySelectorAll(TEXT)].map(({ clientWidth }) => clientWidth));
  if (!widest || widest >= LEAST || !matchMedia('(min-width:1000px)').matches) return;
  // The pressed button goes: its neighbour has the focus then.
  const pressed = document.activeElement?.shadowRoot?.activeElement;
  if (pressed?.matches('.dock')) /** @type {HTMLElement} */ (pressed.previousElementSibling).focus();
  refuse();
};
