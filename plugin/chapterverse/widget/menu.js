// @ts-check
// The page's menu: its Markdown for the clipboard, links that hand it to another assistant, and the address of its MCP server.
import { el, icon, link } from './render.js';
import { more } from './session.js';

/** Nothing is loaded from there: a reader who follows the link takes the question along. */
const ASSISTANTS = /** @type {const} */ ({
  chatgpt: ['ChatGPT', 'https://chatgpt.com/?q='],
  claude: ['Claude', 'https://claude.ai/new?q='],
});

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.menu{padding:6px 10px;border-bottom:1px solid var(--_line);font-size:14px}
dialog .menu>*{display:block;box-sizing:border-box;width:100%;padding:7px 8px;border-radius:6px;color:inherit;text-decoration:none}
dialog .menu>:is(:hover,:focus-visible){background:var(--_tint)}`);

/** Whether the site's owner left an entry on; other assistants are off by default. @type {(config: Config, name: MenuEntry) => boolean} */
const isOn = ({ menu }, name) => (typeof menu === 'object' ? menu[name] : undefined) ?? !(name in ASSISTANTS);

/** The page's Markdown, where there is any. */
const markdown = () => /** @type {HTMLLinkElement | null} */ (document.querySelector('link[rel=alternate][type="text/markdown"]'))?.href;

/** Cut to fit into an address. @type {(text: string) => string} */
const encoded = text => {
  const code = encodeURIComponent(text.toWellFormed());
  return code.length > 1900 ? encoded(text.slice(0, -50)) : code;
};

/** @type {(config: Config, strings: Later) => HTMLElement[]} */
const assistants = (config, strings) => {
  const prompt = strings.prompt.replace('{url}', () => markdown() ?? location.origin + location.pathname);
  return /** @type {const} */ (['chatgpt', 'claude']).filter(name => isOn(config, name)).map(name => {
    const [title, address] = ASSISTANTS[name];
    return link(address + encoded(prompt), '', strings.open_in.replace('{name}', title));
  });
};

/** Opens the menu of this button, which from then on opens and closes it. @type {(panel: Panel, button: HTMLElement) => Promise<void>} */
export const openMenu = async ({ root, config, live }, button) => {
  const strings = await more(config);
  const drawing = button.firstChild ?? '';
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);

  /** @type {(label: string, text: () => Promise<string>) => HTMLElement} */
  const copying = (label, text) => el('button', { type: 'button', async onclick() {
    try {
      // The browser asks for it at once, and waits for the text itself.
      const blob = text().then(content => new Blob([content], { type: 'text/plain' }));
      await navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob })]);
      live.textContent = strings.copied;
    } catch {
      live.textContent = strings.not_copied;
    }
    close();
    button.title = `${live.textContent}`;
    button.replaceChildren(icon(live.textContent === strings.copied ? 'answered' : 'error'));
  } }, label);

  /** @type {() => HTMLElement[]} */
  const entries = () => {
    const page = markdown();
    const copy = page && isOn(config, 'copy') && copying(strings.copy_page, async () => {
      const reply = await fetch(page);
      return reply.ok ? reply.text() : Promise.reject(reply);
    });
    return [...copy ? [copy] : [], ...assistants(config, strings)];
  };

  /** Adds the address of the MCP server, if the API says that it is one. */
  const addServer = async () => {
    const api = config.endpoint ?? '';
    const { mcp } = await fetch(`${api}/v1/status`).then(reply => reply.json());
    if (mcp === true) list.append(copying(strings.copy_mcp, async () => new URL(`${api}/mcp`, location.href).href));
  };

  const close = () => {
    if (list.contains(root.activeElement)) button.focus();
    list.remove();
    button.ariaExpanded = 'false';
  };

  const list = el('div', {
    className: 'menu',
    role: 'group',
    ariaLabel: strings.page_menu,
    onkeydown(event) {
      const items = /** @type {HTMLElement[]} */ ([...list.children]);
      const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
      if (event.key === 'Escape') close();
      else if (step) items.at((items.indexOf(/** @type {HTMLElement} */ (root.activeElement)) + step) % items.length)?.focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    onclick: event => /** @type {Element} */ (event.target).closest('a') && close(),
  });
  list.addEventListener('focusout', ({ relatedTarget }) => (
    [list, button].some(node => node.contains(/** @type {Node | null} */ (relatedTarget))) || close()));
  const toggle = () => {
    if (list.isConnected) return close();
    // Instant navigation changes the page under the panel.
    list.replaceChildren(...entries());
    button.title = strings.page_menu;
    button.replaceChildren(drawing);
    button.ariaExpanded = 'true';
    // In the flow, where it covers nothing.
    button.parentElement?.after(list);
    /** @type {HTMLElement | null} */ (list.querySelector('a,button'))?.focus();
    const asked = isOn(config, 'mcp') ? addServer().catch(() => {}) : Promise.resolve();
    return void asked.then(() => list.children[0] || (close(), button.remove()));
  };
  button.onclick = toggle;
  toggle();
};
