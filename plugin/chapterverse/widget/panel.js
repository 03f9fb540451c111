// @ts-check
import { createTurn } from './answer.js';
import { chat } from './client.js';
import { el, icon } from './render.js';
import { kept, newSession, saveSession, store } from './session.js';
import { sheet } from './styles.js';

/** @type {CreatePanel} */
export const createPanel = async (place, launcher, config, words) => {
  const strings = { ...words, ...config, ...config.strings };
  const phone = matchMedia('(max-width:480px),(max-height:480px)');
  const { host } = /** @type {ShadowRoot} */ (launcher.getRootNode());
  const inline = place !== host;
  /** Whether questions include their page's version and language, and whether they search that page alone. */
  let [scoped, single] = [true, false];
  /** Stops the current answer. @type {AbortController | undefined} */
  let stop;
  /** The element focused before the panel. @type {HTMLElement} */
  let opener = launcher;
  /** How the panel stands, a half-typed question, and the reading position: kept for the tab. */
  let [shape, draft, top] = /** @type {[string, string, number]} */ ([config.layout ?? '', '', NaN]);
  try {
    [shape, draft = '', top] = JSON.parse(`${kept('chapterverse_view')}`);
  } catch { /* Nothing is kept, or another script wrote it. */ }

  /** @type {Emit} */
  const emit = (type, detail) => host.dispatchEvent(new CustomEvent(type, { detail }));

  /** @type {(name: 'close' | 'dock' | 'expand' | 'reset' | 'send', onclick: () => void) => HTMLButtonElement} */
  const button = (name, onclick) => el('button', { type: 'button', className: `icon ${name}`, title: strings[name], onclick }, icon(name));

  const showScope = () => {
    const { lang } = document.documentElement;
    const language = [...document.querySelectorAll('[hreflang]')].some(other => !['x-default', lang].includes(other.getAttribute('hreflang') ?? '')) && lang;
    const narrow = [config.version, language].filter(Boolean).join(' · ');
    const sent = `${config.scope}` !== 'false';
    scope.hidden = !(scoped && sent && narrow);
    scope.replaceChildren(el('span', {}, strings.within.replace('{scope}', () => narrow)), icon('close'));
    only.hidden = !sent;
    only.ariaPressed = `${single}`;
    const [title] = document.title.split(/ [|–—-] /);
    only.replaceChildren(el('span', {}, strings.only_page, single ? `: ${title}` : ''), single ? icon('close') : '');
  };

  /** @type {Promise<typeof import('./room.js')> | undefined} */
  let room;
  /** Lets the panel float, widen, or stand beside the page, which makes room. @type {(name?: string) => void} */
  const showShape = (name = shape) => {
    shape = name;
    dialog.className = inline ? 'inline' : name;
    expand.ariaPressed = `${name === 'wide'}`;
    dock.ariaPressed = `${name === 'side'}`;
    const docked = name === 'side' && dialog.open && !inline;
    if (docked) room ??= import('./room.js');
    room?.then(({ make }) => make(docked, () => {
      dock.hidden = true;
      showShape('');
    })).catch(() => room = undefined);
  };

  const keepView = () => {
    if (dialog.open) top = thread.scrollTop;
    store('chapterverse_view', JSON.stringify([shape, field.value, top]));
  };

  /** @type {(message: Omit<Message, 'timestamp'>) => Message} */
  const remember = said => {
    const message = { ...said, timestamp: new Date().toISOString() };
    panel.session.messages.push(message);
    saveSession(panel.session);
    return message;
  };

  const greet = () => {
    const here = document.querySelector('[data-chapterverse-starters]')?.getAttribute('data-chapterverse-starters');
    const starters = [here ?? [], config.starters ?? []].flatMap(some => {
      try {
        return JSON.parse(/** @type {string} */ (some));
      } catch {
        return typeof some === 'string' ? some.split('|') : some;
      }
    });
    // Where the site names none, the page's own headings are what it can be asked about.
    if (!starters[0]) {
      const headings = document.querySelectorAll(':is(main,article,[role=main]) h2[id]');
      starters.push(...[...headings].map(({ textContent }) => textContent.replace(/\s*[¶#]?\s*$/, '')).filter(text => text && !text[60]).slice(0, 3));
    }
    thread.replaceChildren(el('p', {}, strings.greeting),
      ...starters.map(text => el('button', { className: 'chip', onclick: () => panel.start({ text }) }, text)));
  };

  const reset = () => {
    const { session } = panel;
    stop?.abort();
    panel.forget?.(true);
    panel.quote?.remove();
    panel.follow?.remove();
    panel.selection = '';
    panel.alone = single = false;
    saveSession(panel.session = newSession());
    scoped = true;
    showScope();
    greet();
    import('./turns.js').then(({ undo }) => undo(panel, session)).catch(() => {});
    field.focus();
  };

  const restore = async () => {
    greet();
    if (kept('chatbot_session')) await (await import('./turns.js')).restore(panel);
  };

  const send = () => {
    const { selection } = panel;
    const text = field.value.trim();
    if (stop || !(text || selection)) return;
    panel.forget?.();
    panel.start({ text, selection, alone: panel.alone });
    panel.alone = false;
    field.value = panel.selection = '';
    panel.quote?.remove();
  };

  const showState = () => {
    const name = stop ? 'stop' : 'send';
    action.replaceChildren(icon(name));
    action.title = strings[name];
  };

  /** @type {(question: Question, turn: Turn) => Promise<void>} */
  const ask = async (question, turn) => {
    const { text, selection } = question;
    const { messages, session_id } = panel.session;
    const { lang } = document.documentElement;
    const page = (location.origin + location.pathname).slice(0, 2048);
    /** @type {Failure | undefined} */
    let failure;
    stop = new AbortController();
    showState();
    turn.busy();
    emit('ask', question);
    try {
      const answer = await chat(config, {
        query: text || undefined,
        selected_text: selection || undefined,
        user_context: config.context && `${config.context}`.slice(0, 1e4),
        conversation_history: messages[1] && !question.alone ? (await import('./turns.js')).recent(messages) : [],
        thread_id: question.alone ? undefined : session_id,
        ...(!only.hidden && {
          ...(scoped && { page_url: page, language: lang.slice(0, 35) || undefined, version: config.version }),
          // A page's address may be written with its file, and its sections have addresses of their own.
          ...(single && { filters: { $or: [page, page.replace(/index\.html$/, '')].flatMap(url => [{ url }, { url: { $prefix: `${url}#` } }]) } }),
        }),
      }, stop.signal, turn.hear);
      live.textContent = turn.show(answer);
      const { response, mode, source_chunks, segments, status, turn_id, signature } = answer;
      remember({ role: 'assistant', content: response, mode, source_chunks, segments, status, turn_id, signature });
      emit('answer', answer);
    } catch (error) {
      failure = /** @type {Failure} */ (error);
    }
    stop.abort();
    stop = undefined;
    showState();
    if (!failure) return;
    emit('error', failure);
    live.textContent = await turn.fail(failure);
  };

  const close = () => {
    if (inline || launcher.ariaExpanded !== 'true') return;
    keepView();
    launcher.ariaExpanded = 'false';
    store('chapterverse_open', '');
    dialog.close();
    showShape();
    (opener.isConnected ? opener : launcher).focus();
    emit('close');
  };

  const thread = el('div', { className: 'thread', tabIndex: 0, role: 'region', ariaLabel: strings.title });
  const live = el('div', { className: 'sr', ariaLive: 'polite' });
  const scope = el('button', { type: 'button', className: 'chip', title: strings.unscope, onclick() {
    scoped = false;
    showScope();
    field.focus();
  } });
  const only = el('button', { type: 'button', className: 'chip', onclick() {
    single = !single;
    showScope();
    field.focus();
  } });
  const field = el('textarea', { rows: 1, maxLength: 4000, placeholder: strings.placeholder, ariaLabel: strings.placeholder, value: draft });
  const action = button('send', () => (stop ? stop.abort() : send()));
  const chips = el('div', { className: 'chips' }, scope, only);
  const form = el('form', { className: 'ask' }, chips, el('div', { className: 'field' }, field, action), el('p', { className: 'small' }, strings.disclaimer));
  const expand = button('expand', () => showShape(shape === 'wide' ? '' : 'wide'));
  const dock = button('dock', () => showShape(shape === 'side' ? '' : 'side'));
  /** @type {HTMLDialogElement} */
  const dialog = el('dialog', {
    ariaLabel: strings.title,
    tabIndex: -1,
    // The event follows the call: handle it only if the browser closed the dialog, or the focus moves twice.
    onclose: () => dialog.open || close(),
    onclick(event) {
      const anchor = /** @type {Element} */ (event.target).closest('a');
      if (!anchor || anchor.target || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      if (phone.matches) close();
      // A wide panel would hide the passage.
      showShape(shape && 'side');
      import('./page.js').then(({ go }) => go(anchor), () => location.assign(anchor.href));
    },
    onkeydown(event) {
      const { key, target, shiftKey } = event;
      // Safari ends a composition before the Enter that ended it.
      if (event.isComposing || event.keyCode === 229) return;
      if (key === 'Escape') close();
      else if (target === field && key === 'Enter' && !shiftKey) send();
      else return;
      event.preventDefault();
    },
  },
  el('div', { className: 'head' }, el('h2', {}, strings.title), inline ? [] : [expand, dock], button('reset', reset), inline ? [] : button('close', close)), thread, form, live);

  /** @type {Panel} */
  const panel = {
    root: /** @type {ShadowRoot} */ (place.shadowRoot),
    config,
    strings,
    session: newSession(),
    selection: '',
    thread,
    field,
    form,
    chips,
    alone: false,

    addTurn(question, message) {
      const turn = createTurn(panel, question, message);
      if (!thread.querySelector('.turn')) thread.replaceChildren();
      thread.append(turn.node);
      // No more than the session keeps, or a long conversation would make every next turn slower.
      while (thread.children[25]) thread.firstChild?.remove();
      thread.scrollTop = turn.node.offsetTop;
      return turn;
    },

    start(question) {
      const { text, selection = '' } = question;
      if (stop || !(text || selection)) return false;
      const message = remember({ role: 'user', content: text || selection.slice(0, 4000) });
      ask(question, panel.addTurn(question, message));
      import('./turns.js').then(({ prepare }) => prepare(panel)).catch(() => {});
      (phone.matches ? dialog : field).focus();
      return true;
    },

    async open({ text = '', selection, send: now } = {}, focus = true) {
      if (!dialog.open) {
        const active = /** @type {HTMLElement} */ (document.activeElement);
        opener = active === host || active === document.body ? launcher : active;
        if (phone.matches && !inline) dialog.showModal();
        dialog.open = true;
        if (!panel.session.messages[0]) greet();
        thread.scrollTop = Number.isFinite(top) ? top : thread.scrollHeight;
        showShape();
        emit('open');
      }
      launcher.ariaExpanded = 'true';
      store('chapterverse_open', inline ? '' : '1');
      showScope();
      if (now && panel.start({ text, selection, alone: !selection })) return;
      if (selection?.trim()) {
        panel.selection = selection;
        await (await import('./turns.js')).quote(panel);
      }
      field.value = text || field.value;
      // On a touch screen the keyboard would hide the half of what there is to read.
      if (focus) (matchMedia('(hover:none)').matches ? dialog : field).focus();
    },

    close,

    remove() {
      stop?.abort();
      launcher.ariaExpanded = 'false';
      dialog.remove();
      showShape();
    },
  };

  showState();
  showScope();
  phone.onchange = () => dialog.open && (close(), panel.open());
  panel.root.adoptedStyleSheets.push(sheet);
  await restore();
  panel.root.append(dialog);
  import('./menu.js').then(({ menu }) => menu(panel)).catch(() => {});
  // A page from the back/forward cache lacks the messages of later pages.
  addEventListener('pageshow', event => event.persisted && restore());
  addEventListener('pagehide', keepView);
  // After a load the focus is on the page. What a site does with Escape goes first.
  addEventListener('keydown', event => event.key === 'Escape' && !event.defaultPrevented && document.activeElement === document.body && close());
  // Instant navigation changes the title, which names the page in the scope.
  new MutationObserver(showScope).observe(document.head, { childList: true, subtree: true, characterData: true });
  return panel;
};
