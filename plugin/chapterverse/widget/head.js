// @ts-check
// What the head of the panel gets with the first answer: the page's menu, the export, the shapes, and a new chat.
import { el, icon } from './render.js';
import { newSession } from './session.js';
import { saveAsMarkdown } from './transcript.js';

const CONTROLS = {
  page_menu: 'M5 12h.1M12 12h.1M19 12h.1',
  export: 'M12 4v10M8 11l4 4 4-4M5 20h14',
  expand: 'M9 4H4v5M15 20h5v-5M4 4l6 6M20 20l-6-6',
  dock: 'M4 5h16v14H4zM14 5v14',
  reset: 'M12 5v14M5 12h14',
};

/** @type {(panel: Panel, strings: Later) => void} */
export const addHeadTools = (panel, strings) => {
  const { config, head, dialog, field } = panel;
  const inline = dialog.matches('.inline');
  if (!inline) import('./room.js').then(({ offerDock }) => offerDock(panel)).catch(() => {});
  if (head.querySelector('.reset')) return;

  /** @type {(name: keyof typeof CONTROLS, onclick: () => void, className?: string) => HTMLButtonElement} */
  const tool = (name, onclick, className = name) => (
    el('button', { type: 'button', className: `icon ${className}`, title: strings[name], onclick }, icon(name, CONTROLS[name])));

  const menu = tool('page_menu', () => {
    import('./menu.js').then(({ openMenu }) => openMenu(panel, menu)).catch(() => {});
  }, 'page');
  menu.ariaExpanded = 'false';
  const expand = tool('expand', () => panel.setShape(panel.shape === 'wide' ? '' : 'wide'));
  const dock = tool('dock', () => panel.setShape(panel.shape === 'side' ? '' : 'side'));
  expand.ariaPressed = `${panel.shape === 'wide'}`;
  dock.ariaPressed = `${panel.shape === 'side'}`;
  dock.hidden = panel.shape !== 'side';
  const reset = tool('reset', () => {
    const { session } = panel;
    panel.forget?.(true);
    panel.quote?.remove();
    panel.selection = '';
    panel.begin(newSession());
    import('./history.js').then(({ offerUndo }) => offerUndo(panel, session)).catch(() => {});
    field.focus();
  });
  const { copy = true, mcp = true, chatgpt = false, claude = false } = typeof config.menu === 'object' ? config.menu : {};
  const empty = `${config.menu}` === 'false' || !(copy || mcp || chatgpt || claude);
  head.firstElementChild?.after(...empty ? [] : [menu], tool('export', () => saveAsMarkdown(panel)), ...inline ? [] : [expand, dock], reset);
  // What is marked on the page must not lie under the panel.
  const uncover = () => {
    const [range] = CSS.highlights?.get('chapterverse') ?? [];
    if (range) import('./room.js').then(({ uncover }) => uncover(panel, /** @type {Range} */ (range), strings)).catch(() => {});
  };
  document.addEventListener('chapterverse-marked', uncover);
  // After a load it may be marked before the panel stands.
  panel.root.host.addEventListener('open', uncover, { once: true });
};
