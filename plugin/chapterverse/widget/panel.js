// @ts-check
import { createTurn } from './answer.js';
import { chat } from './client.js';
import { el, follow, icon } from './dom.js';
import { history, loadSession, newSession, saveSession, store } from './session.js';
import { STRINGS } from './strings.js';
import { sheet } from './styles.js';

/** @type {CreatePanel} */
export const createPanel = (root, launcher, config) => {
  const strings = { ...STRINGS, ...config.strings };
  const phone = matchMedia('(max-width:480px)');
  let session = loadSession();
  let selection = '';
  /** Stops the question that is being answered. @type {AbortController | undefined} */
  let control;

  /** @type {(name: Icon, words: string, click: () => void) => HTMLButtonElement} */
  const button = (name, words, click) => el('button', { type: 'button', class: 'icon', title: words, 'aria-label': words, click }, icon(name));
  /** @type {(question: Question) => Turn} */
  const addTurn = question => {
    const turn = createTurn(strings, question, () => ask(question, turn));
    if (!thread.querySelector('.turn')) thread.replaceChildren();
    thread.append(turn.node);
    thread.scrollTop = turn.node.offsetTop - 12;
    return turn;
  };

  const showSession = () => {
    thread.replaceChildren(el('div', {}, el('p', {}, config.greeting ?? strings.greeting), ...(config.starters ?? []).map(text => (
      el('button', { type: 'button', class: 'chip', click: () => start({ text, selection: '' }) }, text)))));
    /** @type {Turn | undefined} */
    let open;
    for (const message of session.messages) {
      if (message.role === 'user') {
        open?.fail({ kind: 'interrupted' });
        open = addTurn({ text: message.content, selection: '' });
      } else {
        (open ?? addTurn({ text: '', selection: '' })).show({ ...message, response: message.content });
        open = undefined;
      }
    }
    open?.fail({ kind: 'interrupted' });
  };

  const reset = () => {
    control?.abort({ kind: 'stopped' });
    session = newSession();
    saveSession(session);
    showSession();
    quoteSelection('');
    field.focus();
  };

  /** @type {(text: string) => void} */
  const quoteSelection = text => {
    selection = text.slice(0, 5000).toWellFormed();
    quote.hidden = !text;
    quoted.textContent = selection;
  };

  const send = () => {
    const text = field.value.trim();
    if (control || !(text || selection)) return;
    start({ text, selection });
    field.value = '';
    quoteSelection('');
  };

  /** @type {(message: Omit<Message, 'timestamp'>) => void} */
  const remember = message => {
    session.messages.push({ ...message, timestamp: new Date().toISOString() });
    saveSession(session);
  };

  /** @type {(question: Question) => void} */
  const start = question => {
    const turn = addTurn(question);
    ask(question, turn);
    remember({ role: 'user', content: question.text || question.selection.slice(0, 4000) });
  };

  const setBusy = () => {
    action.replaceChildren(icon(control ? 'stop' : 'send'));
    action.title = action.ariaLabel = strings[control ? 'stop' : 'send'];
  };

  /** @type {(question: Question, turn: Turn) => Promise<void>} */
  const ask = async (question, turn) => {
    if (control) return;
    let frame = 0;
    let draft = '';
    control = new AbortController();
    setBusy();
    turn.busy(strings.searching);
    field.focus();
    try {
      const query = {
        query: question.text || undefined,
        selected_text: question.selection || undefined,
        conversation_history: history(session.messages),
        thread_id: session.session_id,
        page_url: (location.origin + location.pathname).slice(0, 2048),
      };
      for await (const { sources, delta, answer } of chat(config.endpoint, query, control, config.timeout ?? 60)) {
        cancelAnimationFrame(frame);
        if (sources) turn.busy(strings.writing.replace('{n}', `${sources}`));
        if (delta) {
          draft += delta;
          frame = requestAnimationFrame(() => turn.draft(draft));
        }
        if (answer) {
          live.textContent = turn.show(answer);
          const { response, mode, source_chunks, segments, status, turn_id, signature } = answer;
          remember({ role: 'assistant', content: response, mode, source_chunks, segments, status, turn_id, signature });
        }
      }
    } catch (failure) {
      cancelAnimationFrame(frame);
      live.textContent = turn.fail(/** @type {Failure} */ (failure));
      if (!field.value && /^(invalid|too_large)$/.test(failure.kind)) field.value = question.text;
    } finally {
      control = undefined;
      setBusy();
    }
  };

  const close = () => {
    dialog.close();
    if (launcher.ariaExpanded !== 'true') return;
    launcher.ariaExpanded = 'false';
    store('chapterverse_open', '');
    launcher.focus();
  };

  const live = el('div', { class: 'sr', 'aria-live': 'polite' });
  const thread = el('div', { class: 'thread', tabindex: '0', role: 'region', 'aria-label': config.title });
  const quoted = el('span', { class: 'quoted' });
  const quote = el('div', { class: 'quote', role: 'group', 'aria-label': strings.quote }, quoted, button('close', strings.unquote, () => quoteSelection('')));
  const placeholder = config.placeholder ?? strings.placeholder;
  const field = el('textarea', { rows: '1', maxlength: '4000', placeholder, 'aria-label': placeholder, keydown(event) {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  } });
  const action = button('send', strings.send, () => (control ? control.abort({ kind: 'stopped' }) : send()));
  const dialog = el('dialog', {
    'aria-labelledby': 'title',
    tabindex: '-1',
    close,
    click: event => follow(event, () => phone.matches && close()),
    keydown(event) {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      close();
    },
  }, el('header', {}, el('h2', { id: 'title' }, config.title), button('reset', strings.reset, reset), button('close', strings.close, close)),
  thread, el('form', {}, quote, el('div', { class: 'field' }, field, action), el('p', { class: 'note' }, strings.note)), live);

  root.adoptedStyleSheets.push(sheet);
  root.append(dialog);
  quoteSelection('');
  try {
    showSession();
  } catch {
    reset();
  }
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
        else dialog.setAttribute('open', '');
      }
      launcher.ariaExpanded = 'true';
      store('chapterverse_open', '1');
      if (focus) field.focus();
    },
  };
};
