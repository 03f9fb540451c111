// @ts-check
// The button: all that a page costs before a reader opens the chat. The rest is imported on demand.
import config from './config.js';

const sheet = new CSSStyleSheet();
// --_on is black or white, whichever reads on the accent at 4.5:1: no theme names one for every accent.
sheet.replaceSync(`
:host{all:initial;color-scheme:inherit;font-family:inherit;position:fixed;z-index:var(--chapterverse-z-index,1040);
  inset-block-end:var(--chapterverse-bottom,20px);inset-inline-end:var(--chapterverse-end,20px);
  --_accent:var(--chapterverse-accent,var(--md-primary-fg-color,var(--bs-primary,var(--ifm-color-primary,var(--vp-c-brand-3,var(--color-brand-primary,#4553c4))))));
  --_y:clamp(0,(.1833 - y)*1e6,1);--_on:color(from var(--_accent) xyz-d65 calc(.95*var(--_y)) var(--_y) calc(1.089*var(--_y)))}
.launcher{all:unset;display:flex;align-items:center;gap:8px;padding:11px 18px 11px 14px;border:1px solid #8884;border-radius:24px;
  background:var(--_accent);color:var(--_on);font:600 15px/24px system-ui;font-family:inherit;cursor:pointer;box-shadow:0 1px 3px #0003,0 6px 20px #0003}
.launcher::before{content:"";width:14px;height:10px;border:2px solid;border-radius:5px 5px 5px 0}
.launcher:hover{filter:brightness(1.1)}
.launcher:focus-visible{outline:3px solid;outline-offset:2px}
.launcher[aria-expanded=true]{visibility:hidden}
@media print{:host{display:none!important}}`);

class ChapterVerse extends HTMLElement {
  constructor() {
    super();
    const root = this.attachShadow({ mode: 'open' });
    const button = document.createElement('button');
    button.className = 'launcher';
    button.ariaHasPopup = 'dialog';
    button.ariaExpanded = 'false';
    button.append(config.title);
    root.adoptedStyleSheets = [sheet];
    root.append(button);

    /** @type {Panel | undefined} */
    let panel;
    /** @type {Panel['open']} */
    const open = async (selection, focus) => {
      try {
        const { createPanel } = await import('./panel.js');
        panel ??= createPanel(root, button, config);
        panel.open(selection, focus);
      } catch (error) {
        console.error(error);
        button.textContent = config.strings?.unloaded ?? 'Chat did not load: reload the page';
      }
    };
    button.onclick = () => open('', true);
    button.onpointerenter = button.onfocus = () => import('./panel.js').catch(() => {});
    // The site's shortcuts see typing in here as typing on our host element, so they would fire.
    for (const type of ['keydown', 'keyup', 'keypress']) this.addEventListener(type, event => event.stopPropagation());

    const selected = () => {
      if (getSelection()?.isCollapsed !== false) return;
      document.removeEventListener('selectionchange', selected);
      import('./selection.js').then(({ offer }) => offer(root, config, open), () => {});
    };
    document.addEventListener('selectionchange', selected);
    try {
      if (sessionStorage.chapterverse_open) open('', false);
    } catch { /* Storage is refused: the chat starts closed. */ }
  }
}

if (!customElements.get('chapter-verse')) {
  customElements.define('chapter-verse', ChapterVerse);
  if (!document.querySelector('chapter-verse')) document.body.append(new ChapterVerse());
}
