// @ts-check
// The page's menu: its Markdown for the clipboard, links that hand it to another assistant, and the address of its MCP server.
import { el, icon, link } from './render.js';
import { more } from './session.js';

const DRAWING = 'M5 12h.1M12 12h.1M19 12h.1';
/** Nothing is loaded from there: a reader who follows the link takes the question along. */
const ASSISTANTS = /** @type {const} */ ({
  chatgpt: ['ChatGPT', 'https://chatgpt.com/?q='],
  claude: ['Claude', 'https://claude.ai/new?q='],
});

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.menu{padding:6px 10px;border-bottom:1px solid var(--_line);font-size:14px}
dialog .menu>*{display:block;box-sizing:border-box;width:100%;padding:7px 8px;border-radius:6px;color:inherit;text-decoration:none}
dialog .menu>:is(:hover,:focus-visible){background:var(--_tint)}
.page svg{stroke-width:3}
.elsewhere{display:flex;flex-wrap:wrap;column-gap:6px}`);

/** Whether the site's owner left an entry on. @type {(config: Config, name: MenuEntry) => boolean} */
const isOn = ({ menu }, name) => `${menu}` !== 'false' && (typeof menu !== 'object' || menu[name] !== false);

/** The page's Markdown, where there is any. */
const markdown = () => /** @type {HTMLLinkElement | null} */ (document.querySelector('link[rel=alternate][type="text/markdown"]'))?.href;

/** Cut to fit into an address. @type {(text: string) => string} */
const encoded = text => {
  const code = encodeURIComponent(text.toWellFormed());
  return code.length > 1900 ? encoded(text.slice(0, -50)) : code;
};

/** @type {(config: Config, strings: Later, className: string, question?: string) => HTMLElement[]} */
const assistants = (config, strings, className, question) => {
  const url = markdown() ?? location.origin + location.pathname;
  const prompt = strings[question ? 'prompt_question' : 'prompt'].replace('{url}', () => url).replace('{question}', () => `${question}`);
  return /** @type {const} */ (['chatgpt', 'claude']).filter(name => isOn(config, name)).map(name => {
    const [title, address] = ASSISTANTS[name];
    return link(address + encoded(prompt), className, strings.open_in.replace('{name}', title));
  });
};

/** Offers a question without an answer to other assistants. @type {Elsewhere} */
export const elsewhere = async ({ root, config }, foot, question) => {
  const strings = await more(config);
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  foot.append(el('div', { className: 'elsewhere' }, assistants(config, strings, 'chip', question)));
};

/** Puts the menu's button into the head of the panel. @type {(panel: Panel) => Promise<void>} */
export const menu = async ({ root, config }) => {
  const strings = await more(config);
  const live = /** @type {Element} */ (root.querySelector('[aria-live]'));
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
    return [...copy ? [copy] : [], ...assistants(config, strings, '')];
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
  const button = el('button', { type: 'button', className: 'icon page', title: strings.page_menu, ariaExpanded: 'false', onclick() {
    if (list.isConnected) return close();
    // Instant navigation changes the page under the panel.
    list.replaceChildren(...entries());
    button.title = strings.page_menu;
    button.replaceChildren(icon('menu', DRAWING));
    button.ariaExpanded = 'true';
    // In the flow, where it covers nothing.
    button.parentElement?.after(list);
    /** @type {HTMLElement | null} */ (list.querySelector('a,button'))?.focus();
    if (isOn(config, 'mcp')) addServer().catch(() => {}).then(() => list.children[0] || (close(), button.remove()));
  } }, icon('menu', DRAWING));
  // What there will be to choose, without the MCP server, which is asked for later.
  if (`${config.menu}` !== 'false' && (isOn(config, 'mcp') || entries()[0])) root.querySelector('h2')?.after(button);
};
