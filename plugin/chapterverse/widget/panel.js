// @ts-check
import { chat } from './client.js';
import { el, follow, icon } from './dom.js';
import { loadSession, newSession, recent, saveSession, store } from './session.js';
import { STRINGS } from './strings.js';
import { sheet } from './styles.js';
import { createTurn } from './turn.js';

/** @type {CreatePanel} */
export const createPanel = (root, launcher, config) => {
  const strings = { ...STRINGS, ...config, ...config.strings };
  const phone = matchMedia('(max-width:480px)');
  let session = loadSession();
  let selection = '';
  /** Stops the answer that is on its way. @type {AbortController | undefined} */
  let stop;

  /** @type {(name: Exclude<Icon, 'error'>, onclick: () => void) => HTMLButtonElement} */
  const button = (name, onclick) => el('button', { type: 'button', className: 'icon', title: strings[name], onclick }, icon(name));

  /** @type {(text: string) => void} */
  const quoteSelection = text => {
    selection = text.slice(0, 5000).toWellFormed();
    quote.hidden = !text;
    quoted.replaceChildren(el('span', {}, selection));
  };

  /** @type {(message: Omit<Message, 'timestamp'>) => Message} */
  const remember = said => {
    const message = { ...said, timestamp: new Date().toISOString() };
    session.messages.push(message);
    saveSession(session);
    return message;
  };

  /** @type {(question: Question, message: Message) => Turn} */
  const addTurn = (question, message) => {
    const turn = createTurn(strings, question, () => {
      if (stop) return;
      turn.node.remove();
      session.messages = session.messages.filter(other => other !== message);
      start(question);
    });
    welcome.remove();
    thread.append(turn.node);
    thread.scrollTop = turn.node.offsetTop - 12;
    return turn;
  };

  /** @type {(question: Question) => void} */
  const start = question => {
    if (stop || !(question.text || question.selection)) return;
    const message = remember({ role: 'user', content: question.text || `${question.selection?.slice(0, 4000)}` });
    ask(question, addTurn(question, message));
    (phone.matches ? dialog : field).focus();
  };

  const send = () => {
    start({ text: field.value.trim(), selection });
    if (!stop) return;
    field.value = '';
    quoteSelection('');
  };

  const showState = () => {
    const name = stop ? 'stop' : 'send';
    action.replaceChildren(icon(name));
    action.title = strings[name];
  };

  /** @type {(question: Question, turn: Turn) => Promise<void>} */
  const ask = async ({ text, selection }, turn) => {
    let frame = 0;
    let draft = '';
    stop = new AbortController();
    showState();
    turn.busy();
    try {
      const answer = await chat(config, {
        query: text || undefined,
        selected_text: selection || undefined,
        conversation_history: recent(session.messages),
        thread_id: session.session_id,
        page_url: (location.origin + location.pathname).slice(0, 2048),
      }, stop.signal, (name, data) => {
        if (name !== 'delta') return;
        draft += data.text;
        cancelAnimationFrame(frame);
        frame = requestAnimationFrame(() => turn.draft(draft));
      });
      cancelAnimationFrame(frame);
      live.textContent = turn.show(answer);
      const { response, mode, source_chunks, segments, status, turn_id, signature } = answer;
      remember({ role: 'assistant', content: response, mode, source_chunks, segments, status, turn_id, signature });
    } catch (error) {
      cancelAnimationFrame(frame);
      const failure = /** @type {Failure} */ (error);
      live.textContent = turn.fail(failure);
      if (/413|422/.test(failure.kind)) field.value ||= text;
    } finally {
      stop.abort();
      stop = undefined;
      showState();
    }
  };

  const showSession = () => {
    thread.replaceChildren(welcome);
    session.messages.forEach((message, at) => {
      if (message.role !== 'user') return;
      const turn = addTurn({ text: message.content }, message);
      const next = session.messages[at + 1];
      if (next?.role === 'assistant') turn.show({ ...next, response: next.content });
      else turn.fail({ kind: 'interrupted' });
    });
  };

  const reset = () => {
    stop?.abort();
    session = newSession();
    saveSession(session);
    showSession();
    field.focus();
  };

  const close = () => {
    dialog.close();
    launcher.ariaExpanded = 'false';
    store('chapterverse_open', '');
    launcher.focus();
  };

  const welcome = el('div', {}, el('p', {}, strings.greeting),
    (config.starters ?? []).map(text => el('button', { className: 'chip', onclick: () => start({ text }) }, text)));
  const thread = el('div', { className: 'thread', tabIndex: 0, role: 'region', ariaLabel: config.title });
  const live = el('div', { className: 'sr', ariaLive: 'polite' });
  const quoted = el('q', { className: 'clip' });
  const quote = el('div', { className: 'quote' }, quoted, button('unquote', () => quoteSelection('')));
  const field = el('textarea', { rows: 1, maxLength: 4000, placeholder: strings.placeholder, ariaLabel: strings.placeholder });
  const action = button('send', () => (stop ? stop.abort() : send()));
  const dialog = el('dialog', {
    ariaLabel: config.title,
    tabIndex: -1,
    // The event comes later than the call: answer only what the browser closed by itself, or focus is taken twice.
    onclose: () => launcher.ariaExpanded === 'true' && !dialog.open && close(),
    onclick: event => follow(event, () => phone.matches && close()),
    onkeydown(event) {
      const enter = event.key === 'Enter' && event.target === field && !event.shiftKey;
      if (event.isComposing || (event.key !== 'Escape' && !enter)) return;
      event.preventDefault();
      if (enter) send();
      else close();
    },
  },
  el('header', {}, el('h2', {}, config.title), button('reset', reset), button('close', close)),
  thread, el('form', {}, quote, el('div', { className: 'field' }, field, action)), live);

  root.adoptedStyleSheets.push(sheet);
  root.append(dialog);
  quoteSelection('');
  try {
    showSession();
  } catch {
    reset();
  }
  // A page that comes back as it was left knows nothing of what was said on the pages after it.
  addEventListener('pageshow', event => {
    if (!event.persisted) return;
    session = loadSession();
    showSession();
  });

  return {
    open(text, focus) {
      if (text) quoteSelection(text);
      if (!dialog.open) {
        if (phone.matches) dialog.showModal();
        dialog.setAttribute('open', '');
        thread.scrollTop = thread.scrollHeight;
      }
      launcher.ariaExpanded = 'true';
      store('chapterverse_open', '1');
      if (focus) field.focus();
    },
  };
};
