// @ts-check
import { chat } from './client.js';
import { el, icon, link, render } from './render.js';
import { kept, newSession, saveSession, store, words } from './session.js';
import { sheet } from './styles.js';

/** @type {CreatePanel} */
export const createPanel = async (place, launcher, config) => {
  const strings = await words(config);
  const phone = matchMedia('(max-width:480px),(max-height:480px)');
  const { host } = /** @type {ShadowRoot} */ (launcher.getRootNode());
  const inline = place !== host;
  /** Whether questions include their page. */
  let scoped = true;
  /** Stops the current answer. @type {AbortController | undefined} */
  let stop;
  /** The element focused before the panel. @type {HTMLElement} */
  let opener = launcher;

  /** @type {Emit} */
  const emit = (type, detail) => host.dispatchEvent(new CustomEvent(type, { detail }));

  /** @type {(name: 'close' | 'reset' | 'send', onclick: () => void) => HTMLButtonElement} */
  const button = (name, onclick) => el('button', { type: 'button', className: 'icon', title: strings[name], onclick }, icon(name));

  const showScope = () => {
    const language = document.querySelector('[hreflang]') && document.documentElement.lang;
    const page = [document.title.split(/ [|–—-] /)[0], config.version, language];
    scope.hidden = !scoped || `${config.scope}` === 'false';
    scope.replaceChildren(strings.from_page.replace('{page}', () => page.filter(Boolean).join(' · ')), icon('close'));
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
    thread.replaceChildren(el('p', {}, strings.greeting),
      ...starters.map(text => el('button', { className: 'chip', onclick: () => panel.start({ text }) }, text)));
  };

  const reset = () => {
    stop?.abort();
    panel.forget?.(true);
    panel.quote?.remove();
    panel.selection = '';
    saveSession(panel.session = newSession());
    scoped = true;
    showScope();
    greet();
    field.focus();
  };

  const restore = async () => {
    greet();
    if (kept('chatbot_session')) (await import('./turns.js')).restore(panel);
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
    action.title = strings[name];
  };

  /** @type {(question: Question, turn: Turn) => Promise<void>} */
  const ask = async (question, turn) => {
    const { text, selection } = question;
    const { messages, session_id } = panel.session;
    const { lang } = document.documentElement;
    /** @type {Failure | undefined} */
    let failure;
    let frame = 0;
    let draft = '';
    stop = new AbortController();
    showState();
    turn.busy();
    emit('ask', question);
    try {
      const answer = await chat(config, {
        query: text || undefined,
        selected_text: selection || undefined,
        conversation_history: messages[1] && !question.alone ? (await import('./turns.js')).recent(messages) : [],
        thread_id: question.alone ? undefined : session_id,
        ...(!scope.hidden && {
          page_url: (location.origin + location.pathname).slice(0, 2048),
          language: lang.slice(0, 35) || undefined,
          version: config.version,
        }),
      }, stop.signal, (name, data) => {
        if (name !== 'delta') return;
        draft += data.text ?? '';
        cancelAnimationFrame(frame);
        frame = requestAnimationFrame(() => turn.draft(draft));
      });
      cancelAnimationFrame(frame);
      live.textContent = turn.show(answer, draft);
      const { response, mode, source_chunks, segments, status, turn_id, signature } = answer;
      remember({ role: 'assistant', content: response, mode, source_chunks, segments, status, turn_id, signature });
      emit('answer', answer);
    } catch (error) {
      failure = /** @type {Failure} */ (error);
    }
    cancelAnimationFrame(frame);
    stop.abort();
    stop = undefined;
    showState();
    if (!failure) return;
    emit('error', failure);
    live.textContent = await turn.fail(failure);
  };

  const close = () => {
    if (inline || launcher.ariaExpanded !== 'true') return;
    launcher.ariaExpanded = 'false';
    store('chapterverse_open', '');
    dialog.close();
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
  const field = el('textarea', { rows: 1, maxLength: 4000, placeholder: strings.placeholder, ariaLabel: strings.placeholder });
  const action = button('send', () => (stop ? stop.abort() : send()));
  const form = el('form', {}, scope, el('div', { className: 'field' }, field, action));
  /** @type {HTMLDialogElement} */
  const dialog = el('dialog', {
    ariaLabel: strings.title,
    className: inline ? 'inline' : config.layout,
    tabIndex: -1,
    // The event follows the call: handle it only if the browser closed the dialog, or the focus moves twice.
    onclose: () => dialog.open || close(),
    onclick(event) {
      const anchor = /** @type {Element} */ (event.target).closest('a');
      if (!anchor || anchor.target || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      if (phone.matches) close();
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
  el('div', { className: 'head' }, el('h2', {}, strings.title), button('reset', reset), inline ? [] : button('close', close)), thread, form, live);

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

    addTurn(question, message) {
      const turn = createTurn(panel, question, message);
      if (!thread.querySelector('.turn')) thread.replaceChildren();
      thread.append(turn.node);
      thread.scrollTop = turn.node.offsetTop - 12;
      return turn;
    },

    start(question) {
      const { text, selection = '' } = question;
      if (stop || !(text || selection)) return false;
      const message = remember({ role: 'user', content: text || selection.slice(0, 4000) });
      ask(question, panel.addTurn(question, message));
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
        thread.scrollTop = thread.scrollHeight;
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
      if (focus) field.focus();
    },

    close,

    remove() {
      stop?.abort();
      launcher.ariaExpanded = 'false';
      dialog.remove();
    },
  };

  showState();
  form.addEventListener('focusin', showScope);
  phone.onchange = () => dialog.open && (close(), panel.open());
  await restore();
  panel.root.adoptedStyleSheets.push(sheet);
  panel.root.append(dialog);
  // A page from the back/forward cache lacks the messages of later pages.
  addEventListener('pageshow', event => event.persisted && restore());
  return panel;
};

/** @type {(section: Section) => string} */
const where = ({ chapter, section }) => (section && section !== chapter ? `${chapter} › ${section}` : chapter);

/** A section's place and snippet, which is Markdown cut anywhere. @type {(section: Section & Partial<Source>) => HTMLElement[]} */
const passage = section => [
  el('b', {}, where(section)),
  el('span', { className: 'clip' }, (section.snippet ?? '').replace(/`{3}\S*|[*`|]|-{3,}/g, '')),
];

/** @type {(name: Icon, words: string | Node) => HTMLElement} */
const status = (name, words) => el('p', { className: `status ${name}` }, icon(name), words);

/** @type {(label: string, sections: (Section & Partial<Source>)[]) => HTMLElement} */
const list = (label, sections) => el('ol', { className: 'sources', ariaLabel: label }, sections.map(section => (
  el('li', {}, link(section.url, 'source', el('span', { className: 'cite' }, section.id ?? '→'), passage(section))))));

/** @type {CreateTurn} */
const createTurn = (panel, question, message) => {
  const { strings } = panel;
  const { text, selection } = question;
  const asked = el('div', { className: 'asked' },
    selection ? el('q', { className: 'clip' }, selection) : [], el('span', { className: 'sr' }, strings.you), text);
  const body = el('div');
  const foot = el('div');
  const node = el('div', { className: 'turn' }, text || selection ? asked : [], body, foot);

  return {
    node,

    busy() {
      foot.replaceChildren(el('p', { className: 'status' }, strings.searching));
    },

    draft(markdown) {
      body.replaceChildren(render([{ text: markdown, citations: [] }], () => ''));
    },

    show(answer, draft) {
      const { response, source_chunks: sources = [], segments = [], status: state = 'answered', mode, nearest = [] } = answer;
      const parts = segments.length ? segments : [{ text: response, citations: [] }];
      body.replaceChildren(render(parts, index => el('sup', {}, sources.flatMap(source => {
        if (!parts[index].citations.includes(source.id)) return [];
        const marker = link(source.url, 'cite', source.id);
        marker.ariaLabel = `${source.id}: ${where(source)}`;
        return marker;
      }))));
      foot.replaceChildren(status(state, strings[state === 'answered' && mode === 'selected_text' ? mode : state] ?? ''));
      if (draft && draft.trim() !== response.trim()) foot.append(status('degraded', strings.revised));
      const words = [...foot.childNodes, render(parts, () => '')].map(({ textContent }) => textContent).join('. ');
      const cited = sources.filter(({ id }) => parts.some(({ citations }) => citations.includes(id)));
      foot.append(list(strings.sources, cited.length ? cited : sources));
      if (nearest.length) foot.append(el('p', { className: 'status' }, strings.nearest), list(strings.nearest, nearest));
      import('./turns.js').then(({ equip }) => equip(panel, { question, message, answer, node, asked, body, foot })).catch(() => {});
      return words;
    },

    async fail(failure) {
      // An aborted draft was never checked; one that the reader stopped stays, with a note.
      if (failure.kind !== 'stopped') body.replaceChildren();
      return import('./turns.js').then(({ explain }) => explain(panel, failure, { question, message, node, foot })).catch(() => {
        // A longer message would have to be loaded from an unreachable server.
        foot.replaceChildren(status('error', strings.network));
        panel.field.value ||= text;
        return strings.network;
      });
    },
  };
};
