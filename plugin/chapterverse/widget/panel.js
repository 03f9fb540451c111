// @ts-check
import { createTurn } from './answer.js';
import { chat } from './client.js';
import { el, icon } from './render.js';
import { kept, maxLength, newSession, saveSession, store } from './session.js';
import { sheet, takeColors } from './styles.js';

/** @type {CreatePanel} */
export const createPanel = async (place, launcher, config, words) => {
  const strings = { ...words, ...config, ...config.strings };
  const phone = matchMedia('(max-width:480px),(max-height:480px)');
  const { host } = /** @type {ShadowRoot} */ (launcher.getRootNode());
  const inline = place !== host;
  /** Whether questions include their page's version and language. */
  let scoped = true;
  /** Stops the current answer. @type {AbortController | undefined} */
  let stop;
  /** The element focused before the panel. @type {HTMLElement} */
  let opener = launcher;
  /** How the panel stands, a half-typed question, and the reading position: kept for the tab. @type {any[]} */
  let [shape, draft, top] = [config.layout];
  try {
    [shape, draft, top] = JSON.parse(`${kept('chapterverse_view')}`);
  } catch { /* Nothing is kept, or another script wrote it. */ }

  /** @type {Emit} */
  const emit = (type, detail) => host.dispatchEvent(new CustomEvent(type, { detail }));

  const showScope = () => {
    const { lang } = document.documentElement;
    const language = [...document.querySelectorAll('[hreflang]')].some(other => !['x-default', lang].includes(other.getAttribute('hreflang') ?? '')) && lang;
    const narrow = [config.version, language].filter(Boolean).join(' · ');
    const sent = `${config.scope}` !== 'false';
    scope.hidden = !(scoped && sent && narrow);
    scope.replaceChildren(el('span', {}, strings.within.replace('{scope}', () => narrow)), icon('close'));
    only.hidden = !sent;
    only.ariaPressed = `${panel.single}`;
    const [title] = document.title.split(/ [|–—-] /);
    only.replaceChildren(el('span', {}, strings.only_page, panel.single ? `: ${title}` : ''), panel.single ? icon('close') : '');
  };

  /** On a phone the keyboard would hide what there is to read. */
  const focus = () => (phone.matches ? dialog : field).focus();

  const keepView = () => {
    if (dialog.open) top = thread.scrollTop;
    store('chapterverse_view', JSON.stringify([panel.shape, field.value, top]));
  };

  /** @type {(message: Message) => void} */
  const keep = message => {
    panel.session.messages.push(message);
    saveSession(panel.session);
  };

  const greet = async () => {
    const chips = el('div');
    thread.replaceChildren(el('p', {}, strings.greeting.replace('{site}', () => strings.site)), chips);
    /** @type {HTMLElement | null} */
    const here = document.querySelector('[data-chapterverse-starters]');
    const starters = [here?.dataset.chapterverseStarters ?? [], config.starters ?? []].flatMap(some => {
      try {
        return JSON.parse(/** @type {string} */ (some));
      } catch {
        return /** @type {any} */ (some).split?.('|') ?? some;
      }
    });
    // Where the site names none, the page's own headings are what it can be asked about, else what the search finds.
    if (!starters[0]) {
      const headings = document.querySelectorAll(':is(main,article,[role=main]) :is(h2[id],section[id]>h2)');
      starters.push(...[...headings].map(({ textContent }) => textContent.replace(/[\s\u200B]+/g, ' ').replace(/[ ¶#]+$/, '')).filter(text => text && !text[60]).slice(0, 3));
    }
    // Without such a file, nothing is asked for by no name.
    if (!starters[0]) await import(/** @type {string} */ (config.starters_file)).then(found => starters.push(...found.default), () => {});
    chips.append(...starters.map(text => el('button', { className: 'chip', onclick: () => panel.start({ text }) }, text)));
  };

  const restore = async () => {
    greet();
    if (kept('chatbot_session')) await (await import('./history.js')).restore(panel);
  };

  const send = () => {
    const { selection } = panel;
    const text = field.value.trim();
    if (stop || !(text || selection)) return;
    panel.forget?.();
    panel.start({ text, selection });
    field.value = panel.selection = '';
    panel.quote?.remove();
  };

  const showState = () => {
    const name = stop ? 'stop' : 'send';
    action.replaceChildren(icon(name));
    action.className = `icon ${name}`;
    action.title = strings[name];
  };

  /** @type {(turn: Turn) => Promise<void>} */
  const ask = async turn => {
    const { question } = turn;
    const { text, selection } = question;
    const { lang } = document.documentElement;
    const page = (location.origin + location.pathname).slice(0, 2048);
    /** @type {Failure | undefined} */
    let failure;
    stop = new AbortController();
    addEventListener('offline', () => stop?.abort('offline'), { signal: stop.signal });
    showState();
    turn.single = panel.single;
    turn.busy();
    emit('ask', question);
    try {
      const answer = await chat(config, {
        query: text || undefined,
        selected_text: selection || undefined,
        user_context: config.context && `${config.context}`.slice(0, 1e4),
        conversation_history: panel.session.messages[1] && !question.alone ? (await import('./history.js')).recent(panel.session.messages) : [],
        thread_id: question.alone ? undefined : panel.session.session_id,
        ...(scoped && !only.hidden && { page_url: page, language: lang.slice(0, 35) || undefined, version: config.version }),
        // A page's address may be written with its file, and its sections have addresses of their own.
        ...(turn.single && { filters: { $or: [page, page.replace(/index\.html$/, '')].flatMap(url => [{ url }, { url: { $prefix: `${url}#` } }]) } }),
      }, stop.signal, turn.hear);
      const { response, retrieval_used, mode, source_chunks, segments, status, turn_id, signature, nearest, follow_ups, searched_as, partial_reason } = answer;
      /** @type {Message} */
      const message = {
        role: 'assistant', content: response, timestamp: new Date().toISOString(),
        mode, source_chunks, segments, turn_id, signature, nearest, follow_ups, searched_as, partial_reason,
        // A greeting is not refused: nothing was searched for it.
        status: status === 'not_in_docs' && retrieval_used === false ? undefined : status,
      };
      live.textContent = panel.draw(turn, message);
      keep(message);
      emit('answer', answer);
    } catch (error) {
      failure = /** @type {Failure} */ (error);
    }
    stop.abort();
    stop = undefined;
    showState();
    if (!failure) return;
    emit('error', failure);
    live.textContent = await panel.explain(turn, failure);
  };

  const close = () => {
    if (inline || launcher.ariaExpanded !== 'true') return;
    keepView();
    launcher.ariaExpanded = 'false';
    store('chapterverse_open', '');
    dialog.close();
    if (panel.shape) panel.setShape(panel.shape);
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
  const only = el('button', { type: 'button', className: 'chip', onclick: () => panel.narrow(!panel.single) });
  const field = el('textarea', { rows: 1, maxLength, placeholder: strings.placeholder, ariaLabel: strings.placeholder, value: typeof draft === 'string' ? draft.slice(0, maxLength) : '' });
  const action = el('button', { type: 'button', onclick: () => (stop ? stop.abort() : send()) });
  const chips = el('div', { className: 'chips' }, scope, only);
  const form = el('form', { className: 'ask' }, chips, el('div', { className: 'field' }, field, action), el('p', { className: 'small' }, strings.disclaimer));
  // What a conversation needs beside it comes with its first answer.
  const head = el('div', { className: 'head' }, el('h2', {}, strings.title),
    inline ? [] : el('button', { type: 'button', className: 'icon', title: strings.close, onclick: close }, icon('close')));
  /** @type {HTMLDialogElement} */
  const dialog = el('dialog', {
    className: inline ? 'inline' : '',
    ariaLabel: strings.title,
    tabIndex: -1,
    // The event follows the call: handle it only if the browser closed the dialog, or the focus moves twice.
    onclose: () => dialog.open || close(),
    onclick(event) {
      const anchor = /** @type {Element} */ (event.target).closest('a');
      if (!anchor || anchor.target || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      import('./page.js').then(({ followCitation }) => followCitation(anchor, panel), () => location.assign(anchor.href));
    },
    onkeydown(event) {
      const { key, target, shiftKey } = event;
      // Safari ends a composition before the Enter that ended it.
      if (event.isComposing || event.keyCode === 229) return;
      if (key === 'Escape' || (key === 'i' && (event.ctrlKey || event.metaKey) && config.shortcut !== false)) close();
      else if (target === field && key === 'Enter' && !shiftKey) send();
      else return;
      event.preventDefault();
    },
  },
  head, thread, form, live);

  /** @type {Panel} */
  const panel = {
    root: /** @type {ShadowRoot} */ (place.shadowRoot),
    config,
    strings,
    session: newSession(),
    shape: /^(side|wide)$/.test(shape) && !inline ? shape : '',
    selection: '',
    dialog,
    head,
    thread,
    field,
    form,
    chips,
    live,
    phone,
    single: false,

    addTurn(question, message) {
      const turn = createTurn(panel, question, message);
      if (!thread.querySelector('.turn')) thread.replaceChildren();
      thread.append(turn.node);
      thread.scrollTop = turn.node.offsetTop;
      return turn;
    },

    draw(turn, message) {
      const told = turn.show(message);
      turn.ready = import('./turns.js').then(({ addTools }) => addTools(panel, turn)).catch(() => {});
      return told;
    },

    async explain(turn, { kind, ...rest }) {
      const name = navigator.onLine || kind === 'stopped' ? kind : 'offline';
      /** The words for a lost network are there. @type {string} */
      const words = /** @type {any} */ (strings)[name];
      if (words) turn.fail(name, words);
      try {
        return await (await import('./failure.js')).explain(panel, turn, { kind: name, ...rest });
      } catch {
        return turn.fail(name, words ?? strings.network).textContent;
      }
    },

    retry(turn) {
      const { session } = panel;
      if (!panel.start(turn.question)) return;
      turn.node.remove();
      session.messages = session.messages.filter(other => other !== turn.message && other !== turn.answer);
      saveSession(session);
    },

    start(question) {
      const { text, selection = '' } = question;
      if (stop || !(text || selection)) return false;
      /** @type {Message} */
      const message = { role: 'user', content: text || selection.slice(0, maxLength), timestamp: new Date().toISOString() };
      keep(message);
      ask(panel.addTurn(question, message));
      focus();
      return true;
    },

    narrow(single) {
      panel.single = single;
      showScope();
      focus();
    },

    begin(session) {
      stop?.abort();
      scoped = true;
      panel.narrow(false);
      saveSession(panel.session = session);
      greet();
    },

    async setShape(name) {
      try {
        (await import('./room.js')).setShape(panel, name);
      } catch { /* It keeps its shape, then. */ }
    },

    async open({ text = '', selection, send: now } = {}, focused = true) {
      if (!dialog.open) {
        takeColors(/** @type {HTMLElement} */ (panel.root.host));
        const active = /** @type {HTMLElement} */ (document.activeElement);
        opener = active === host || active === document.body ? launcher : active;
        if (phone.matches && !inline) dialog.showModal();
        dialog.open = true;
        if (!panel.session.messages[0]) greet();
        thread.scrollTop = Number.isFinite(top) ? top : thread.scrollHeight;
        if (panel.shape) panel.setShape(panel.shape);
        emit('open');
      }
      launcher.ariaExpanded = 'true';
      store('chapterverse_open', inline ? '' : '1');
      showScope();
      if (now && panel.start({ text, selection, alone: !selection })) return;
      if (selection?.trim()) {
        panel.selection = selection;
        await (await import('./selection.js')).quoteSelection(panel);
      }
      field.value = text || field.value;
      // On a touch screen the keyboard would hide the half of what there is to read.
      if (focused) (matchMedia('(hover:none)').matches ? dialog : field).focus();
    },

    close,

    remove() {
      stop?.abort();
      launcher.ariaExpanded = 'false';
      dialog.remove();
      if (panel.shape) panel.setShape(panel.shape);
    },
  };

  showState();
  showScope();
  phone.onchange = () => dialog.open && (close(), panel.open());
  panel.root.adoptedStyleSheets.push(sheet);
  await restore();
  panel.root.append(dialog);
  // A page from the back/forward cache lacks the messages of later pages.
  addEventListener('pageshow', event => event.persisted && restore());
  addEventListener('pagehide', keepView);
  // After a load the focus is on the page. What a site does with Escape goes first.
  addEventListener('keydown', event => event.key === 'Escape' && !event.defaultPrevented && document.activeElement === document.body && close());
  // Instant navigation changes the title, which names the page in the scope.
  new MutationObserver(showScope).observe(document.head, { childList: true, subtree: true, characterData: true });
  return panel;
};
