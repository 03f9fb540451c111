// @ts-check
// The button: the only code that a page loads before a reader opens the chat. The rest is imported on demand.
import config from './config.js';

const sheet = new CSSStyleSheet();
// The top layer needs no z-index, but tools that judge a page don't know of it.
// What is important in here wins over all that a page declares, `*{all:unset!important}` included.
// --_on is black or white, with a contrast of 4.5:1 on the accent: no theme has a variable for every accent.
// Docusaurus (recognized by --ifm-spacing-vertical) has its "back to top" button in this corner: stay above it.
// Zensical has it at the bottom center: on a phone only a round button doesn't cover it.
sheet.replaceSync(`
:host{all:initial!important;display:block!important;color-scheme:inherit!important;font-family:inherit!important;
  --_bottom:var(--chapterverse-bottom,calc(20px + 3.75*var(--ifm-spacing-vertical,0px)));--_end:var(--chapterverse-end,20px);
  --_accent:var(--chapterverse-accent,var(--pst-color-primary,var(--md-primary-fg-color,var(--bs-primary,var(--ifm-color-primary,var(--vp-c-brand-3,var(--color-brand-primary,var(--_link,#4553c4))))))));
  --_y:clamp(0,(.1833 - y)*1e6,1);--_on:color(from var(--_accent) xyz-d65 calc(.95*var(--_y)) var(--_y) calc(1.089*var(--_y)))}
:host(chapter-verse){position:fixed!important;z-index:9999!important;inset-block-end:var(--_bottom)!important;inset-inline-end:var(--_end)!important}
.launcher{all:unset;display:flex;align-items:center;gap:8px;padding:10px 18px;border:1px solid #8884;border-radius:24px;
  background:var(--_accent);color:var(--_on);font-weight:600;font-size:15px;line-height:24px;cursor:pointer;box-shadow:0 4px 16px #0003}
.launcher::before{content:"";width:14px;height:10px;border:2px solid;border-radius:5px;border-end-start-radius:0}
.launcher:hover,.send:hover{filter:brightness(1.1)}
.launcher:focus-visible{outline:3px solid var(--_accent);outline-offset:2px}
.launcher[aria-expanded=true]{visibility:hidden}
.busy,[aria-busy=true]{animation:1s infinite alternate pulse}
@keyframes pulse{from{opacity:.8}}
@media(prefers-reduced-motion){*{animation:none!important}}
@media(max-width:480px){.launcher{padding:10px 13px;font-size:0;gap:0}}
:host::before,:host::after,:host::backdrop{display:none!important}
@media print{:host{display:none!important}}`);

// The script tag overrides the module.
Object.assign(config, [...document.scripts].find(({ src }) => src === import.meta.url)?.dataset);
config.language = /^(ar|de|es|fr|it|ja|nl|pl|pt|zh)(?![a-z])/i.exec(document.documentElement.lang)?.[1].toLowerCase() ?? 'en';
config.title ||= config.titles?.[config.language] ?? 'Ask the docs';

/** @type {Promise<Panel> | undefined} */
let panel;
/** The chat's host: a panel of its own, or an element of the page. @type {HTMLElement} */
let place;

/** Gives an element its shadow. @type {(host: HTMLElement) => HTMLElement} */
const attachShadow = host => {
  host.attachShadow({ mode: 'open' }).adoptedStyleSheets = [sheet];
  // The site's shortcuts would fire, because to them typing in here happens on our host element.
  for (const type of ['keydown', 'keyup', 'keypress']) host.addEventListener(type, event => event.stopPropagation());
  return host;
};

const own = document.createElement('chapter-verse');
const button = document.createElement('button');

/** The panel and the page's words, at once. */
const load = () => Promise.all([import('./panel.js'), import(`./lang/${config.language}.js`)]);

/** Puts the button into the top layer, where no overlay, transform or filter of the page reaches it. */
const mount = () => {
  document.body.append(own);
  own.showPopover();
};

/** Whether an API answers. A build without an `endpoint` names none. */
const isPresent = async () => config.endpoint != null || (await import('./origin.js')).isApiHere();

/** @type {Open} */
const open = async (question, focus = true) => {
  if (config.consent && !confirm(config.consent)) return;
  config.consent = '';
  // The host stays, empty: a host that is removed comes back.
  if (!await isPresent()) return button.remove();
  button.ariaBusy = 'true';
  try {
    const [{ createPanel }, { default: words }] = await load();
    panel ??= createPanel(place, button, config, words);
    await panel;
    button.textContent = config.title;
  } catch (error) {
    console.error(error);
    panel = undefined;
    button.textContent = config.strings?.unloaded ?? 'Chat did not load: reload the page';
  }
  button.ariaBusy = null;
  (await panel)?.open(question, focus);
};

/** Moves the chat to an element. @type {(element: HTMLElement) => void} */
const moveTo = element => {
  panel?.then(({ remove }) => remove());
  panel = undefined;
  place = element;
};

class Ask extends HTMLElement {
  connectedCallback() {
    moveTo(this.shadowRoot ? this : attachShadow(this));
    if (!config.consent) open(undefined, false);
  }

  disconnectedCallback() {
    if (place === this) moveTo(own);
  }
}

/** @type {(event: Event, selector: string) => unknown} */
const within = (event, selector) => /** @type {Element} */ (event.composedPath()[0]).closest?.(selector);

/** @type {(event: KeyboardEvent) => void} */
const press = event => {
  // The page's own use of these keys goes first.
  if (event.defaultPrevented || event.key !== 'i' || !(event.ctrlKey || event.metaKey) || `${config.shortcut}` === 'false'
    || within(event, 'input,textarea,select,[contenteditable]')) return;
  event.preventDefault();
  const selection = `${getSelection()}`;
  if (selection || button.ariaExpanded === 'false') open({ selection });
  else window.chapterverse.close();
};

const SIGNS = ['selectionchange', 'pointerover', 'focusin'];
/** Handles a selection, a pointer on code, or focus in the site's search. @type {(event: Event) => void} */
const notice = event => {
  if (config.consent || (getSelection()?.isCollapsed !== false && !within(event, 'pre,input'))) return;
  for (const type of SIGNS) document.removeEventListener(type, notice);
  import('./page.js').then(({ watchPage }) => watchPage(own, config, open)).catch(() => {});
};

if (!document.querySelector('chapter-verse') && (config.consent || await isPresent())) {
  button.className = 'launcher';
  button.textContent = config.title;
  button.ariaHasPopup = 'dialog';
  button.ariaExpanded = 'false';
  button.onclick = () => open();
  // The host hides its keys from the page.
  button.onkeydown = press;
  if (`${config.shortcut}` !== 'false') button.title = /Mac|iP/.test(navigator.platform) ? '⌘I' : 'Ctrl+I';
  button.onpointerenter = button.onfocus = () => config.consent || load().catch(() => {});
  own.popover = 'manual';
  place = attachShadow(own);
  own.shadowRoot?.append(button);
  mount();
  // Instant navigation may replace the whole body, or all that is in it.
  new MutationObserver(() => own.isConnected || mount()).observe(document, { childList: true, subtree: true });
  window.chapterverse = {
    open,
    ask: text => open({ text, send: true }),
    close: async () => (await panel)?.close(),
    context: text => config.context = text,
    on: (type, listener) => own.addEventListener(type, event => listener(/** @type {CustomEvent} */ (event).detail)),
  };
  addEventListener('keydown', press);
  for (const type of SIGNS) document.addEventListener(type, notice);
  let again;
  try {
    again = sessionStorage.chapterverse_open;
    // It was open before, so the reader has consented.
    if (again != null) config.consent = '';
    if (sessionStorage.chapterverse_cited) import('./page.js').catch(() => {});
  } catch { /* Storage is refused: the chat starts closed. */ }
  customElements.define('chapter-verse-ask', Ask);
  const url = new URL(location.href);
  const text = url.searchParams.get('ask');
  if (text) {
    // Once: not after a reload, and not while the page is prerendered.
    url.searchParams.delete('ask');
    history.replaceState(history.state, '', url);
    open({ text, send: !document.hidden });
  } else if (again) open(undefined, false);
}
