// @ts-check
// The parts of a conversation: restored turns, an answer's tools, retries, and the quotation of a question.
import { post } from './client.js';
import { el, icon } from './render.js';
import { newSession, saveSession, words } from './session.js';

const THUMB = 'M4 11h4v9H4zM8 11l4-8 2 7h6l-2 10H8';
const DRAWINGS = {
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  copy_answer: 'M9 9h11v11H9zM5 15V4h11',
  share: 'M12 15V3M8 7l4-4 4 4M5 12v8h14v-8',
  up: THUMB,
  down: THUMB,
};
const REASONS = /** @type {const} */ (['wrong', 'incomplete', 'unclear', 'outdated', 'citation', 'other']);

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.asked{position:relative}
.asked .icon{position:absolute;top:0;inset-inline-end:100%}
@media(hover){.asked:not(:hover,:focus-within) .icon{opacity:0}}
.asked:has([aria-pressed=true]){outline:2px dashed}
[aria-pressed=true] svg{fill:var(--_link)}
.down svg{rotate:180deg}
.code button{position:absolute;top:6px;right:6px;padding:2px 9px;border-radius:7px;background:var(--_bg)}
fieldset{border:0}
label{display:block}
.tip{position:absolute;inset-inline:18px;display:none;margin-top:16px;padding:2px 9px;border:1px solid;background:var(--_bg);color:var(--_fg)}
.cite:hover .tip,.cite:focus-visible .tip{display:block}
.turn:not(:last-child) .next{display:none}
.error{color:color-mix(in srgb,#d32f2f 55%,var(--_fg))}`);

/** @type {Restore} */
export const restore = panel => {
  panel.session = loadSession();
  const { messages } = panel.session;
  if (messages.length) panel.thread.replaceChildren();
  try {
    messages.forEach((message, at) => {
      if (message.role !== 'user') return;
      const turn = panel.addTurn({ text: message.content }, message);
      const next = messages[at + 1];
      if (next?.role === 'assistant') turn.show({ ...next, response: next.content });
      else turn.fail({ kind: 'interrupted' });
    });
  } catch {
    // Another script wrote it.
    panel.thread.replaceChildren();
    panel.session = newSession();
  }
};

/** @type {() => Session} */
const loadSession = () => {
  try {
    const { session_id, messages, created_at } = JSON.parse(sessionStorage.chatbot_session);
    if (/^[\w-]{1,64}$/.test(session_id)) return { session_id, messages: messages.filter(isMessage), created_at };
  } catch { /* Nothing is stored, or nothing that can be read. */ }
  return newSession();
};

/** @type {(message: any) => boolean} */
const isMessage = message => message?.content && /^(user|assistant)$/.test(message.role)
  && typeof message.content === 'string' && typeof message.timestamp === 'string';

/** @type {Recent} */
export const recent = messages => {
  const turns = messages.filter(({ role }, at) => (
    role === 'user' ? messages[at + 1]?.role === 'assistant' : messages[at - 1]?.role === 'user'));
  const latest = turns.slice(-10).map(({ role, content, timestamp, signature }) => (
    { role, content: content.slice(0, 4000).toWellFormed(), timestamp, signature }));
  while (latest.reduce((sum, { content }) => sum + content.length, 0) > 16000) latest.splice(0, 2);
  return latest;
};

/** @type {Quote} */
export const quote = async panel => {
  const { unquote } = await words(panel.config, 'more/');
  // It may have been sent already.
  if (!panel.selection) return;
  const clip = el('q', { className: 'clip' }, panel.selection = panel.selection.trim().slice(0, 5000).toWellFormed());
  panel.quote?.remove();
  panel.quote = el('div', { className: 'field quote' }, clip, el('button', { type: 'button', className: 'icon', title: unquote, onclick() {
    panel.selection = '';
    panel.quote?.remove();
    panel.field.focus();
  } }, icon('close')));
  panel.form.prepend(panel.quote);
  // Screen readers read the quotation with the field.
  panel.field.ariaDescribedByElements = [clip];
};

/** @type {Explain} */
export const explain = async (panel, { kind, detail, wait }, { question, message, node, foot }) => {
  /** @type {any} */
  const strings = { ...panel.strings, ...await words(panel.config, 'more/') };
  const told = strings[navigator.onLine || kind === 'stopped' ? kind : 'offline'] ?? strings[kind > 499 ? 500 : 'unexpected'];
  const name = kind === 'stopped' ? 'stop' : 'error';
  const status = el('p', { className: `status ${name}` }, icon(name), `${told} ${detail ?? ''}`);
  // A date would need synchronized clocks: with one, or an invalid value, there is no wait. Waits are limited.
  let left = Math.min(parseInt(`${wait}`) || 0, 600);

  const retry = el('button', { className: 'chip', onclick() {
    const { session } = panel;
    if (retry.ariaDisabled || !panel.start(question)) return;
    node.remove();
    session.messages = session.messages.filter(other => other !== message);
    saveSession(session);
  } });

  /** Counts down, and ends with the turn. */
  const tick = () => {
    retry.textContent = left > 0 ? strings.wait.replace('{n}', `${left}`) : strings.retry;
    retry.ariaDisabled = left > 0 ? 'true' : null;
    if (left-- > 0) setTimeout(() => retry.isConnected && tick(), 1000);
  };

  tick();
  foot.replaceChildren(status, retry);
  if (/413|422/.test(kind)) {
    // The question itself was rejected: it goes back into the field for editing.
    retry.remove();
    panel.field.value ||= question.text;
  }
  return `${status.textContent} ${retry.ariaDisabled ? retry.textContent : ''}`;
};

/** Escape cancels an edit, and arrows browse earlier questions. @type {(panel: Panel) => void} */
const listen = panel => {
  const { field } = panel;
  let back = 0;
  field.onkeydown = event => {
    const { key } = event;
    const step = key === 'ArrowUp' ? 1 : key === 'ArrowDown' ? -1 : 0;
    if (!field.value) back = 0;
    if (event.isComposing || key === 'Enter') return;
    if (key === 'Escape' && panel.forget) panel.forget(true);
    else if (step && (back || !field.value)) {
      const asked = panel.session.messages.filter(({ role }) => role === 'user');
      back = Math.min(Math.max(back + step, 0), asked.length);
      field.value = back ? asked[asked.length - back].content : '';
    } else return void (back = 0);
    event.preventDefault();
    event.stopPropagation();
  };
};

/** @type {Equip} */
export const equip = async (panel, { question, message, answer, node, asked, body, foot }) => {
  const { config, root, thread, field } = panel;
  const { turn_id } = answer;
  const strings = await words(config, 'more/');
  const shown = /** @type {HTMLAnchorElement[]} */ ([...foot.querySelectorAll('.source')]);
  const note = el('span');
  if (!root.adoptedStyleSheets.includes(sheet)) {
    root.adoptedStyleSheets.push(sheet);
  }
  listen(panel);

  /** Shows and announces a tool's result. @type {(key: keyof Later, place?: HTMLElement) => void} */
  const say = (key, place = note) => {
    place.textContent = strings[key];
    /** @type {Element} */ (root.querySelector('[aria-live]')).textContent = strings[key];
  };

  /** @type {(text: string, place?: HTMLElement) => Promise<void>} */
  const copy = async (text, place) => {
    try {
      await navigator.clipboard.writeText(text);
      say('copied', place);
    } catch {
      say('not_copied', place);
    }
  };

  /** @type {(name: Tool, onclick: () => void, ariaPressed?: string) => HTMLButtonElement} */
  const tool = (name, onclick, ariaPressed) => (
    el('button', { className: `icon ${name}`, title: strings[name], onclick, ariaPressed }, icon(name, DRAWINGS[name])));

  const edit = tool('edit', () => {
    const { ariaPressed } = edit;
    panel.forget?.(true);
    const { value } = field;
    if (ariaPressed === 'true') return;
    panel.forget = giveUp => {
      edit.ariaPressed = 'false';
      panel.selection = '';
      panel.quote?.remove();
      panel.forget = null;
      if (giveUp) field.value = value;
      else if (node.isConnected) take();
    };
    edit.ariaPressed = 'true';
    field.value = question.text;
    if (panel.selection = question.selection ?? '') quote(panel);
    field.focus();
  }, 'false');

  /** Removes the turn and all later ones from the conversation. */
  const take = () => {
    const { messages } = panel.session;
    messages.splice(Math.max(messages.indexOf(message), 0));
    while (node.isConnected) thread.lastChild?.remove();
  };

  const thumbs = /** @type {const} */ (['up', 'down']).map(rating => {
    const thumb = tool(rating, async () => {
      form.remove();
      const status = await send(rating);
      const here = root.activeElement === thumb;
      if (status === 404) {
        // The API has no such route, so feedback would be lost.
        for (const other of thumbs) other.remove();
        if (here) thread.focus();
      } else if (status === 204 && rating === 'down') {
        row.after(form);
        if (here) form.querySelector('input')?.focus();
      }
    }, 'false');
    return thumb;
  });

  /** Resolves to the status of the response, 0 without one. @type {(rating: 'up' | 'down', more?: object) => Promise<number>} */
  const send = async (rating, more) => {
    const { status } = await post(config.endpoint, 'feedback', { turn_id, rating, ...more }).catch(Response.error);
    for (const thumb of thumbs) thumb.ariaPressed = `${status === 204 && thumb.matches(`.${rating}`)}`;
    if (status !== 404) say(status === 204 ? 'thanks' : 'not_sent');
    return status;
  };

  const form = el('form', {
    async onsubmit(event) {
      event.preventDefault();
      if (await send('down', Object.fromEntries(new FormData(form))) === 204) close();
    },
    onkeydown(event) {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
    },
  },
  el('fieldset', {}, el('legend', { className: 'status' }, strings.why), REASONS.map(value => (
    el('label', {}, el('input', { type: 'radio', name: 'reason', value }), strings[value])))),
  el('div', { className: 'field' }, el('textarea', { name: 'comment', maxLength: 2000, placeholder: strings.comment, ariaLabel: strings.comment })),
  el('button', { className: 'chip' }, strings.submit));
  const close = () => {
    form.remove();
    thumbs[1].focus();
  };

  const row = el('p', { className: 'status' },
    tool('copy_answer', () => copy(markdown(answer, shown))),
    tool('share', () => copy(address(message.content))),
    turn_id && `${config.feedback}` !== 'false' ? thumbs : [],
    note);
  const next = [answer.follow_ups ?? []].flat().filter(text => text?.trim?.());
  foot.append(row, el('div', { className: 'next' },
    next[0] ? el('p', { className: 'status' }, strings.follow_ups) : [],
    next.map(text => el('button', { className: 'chip', onclick: () => panel.start({ text }) }, text))));
  asked.append(edit);
  const { searched_as: searched } = answer;
  if (searched && /^(corrected|follow_up)$/.test(searched.reason)) {
    const { reason } = searched;
    const [query, original] = [`${searched.query}`, `${searched.original}`];
    // The API leaves a word in quotation marks as it is.
    const text = reason === 'follow_up' ? original : original.split(' ').map(word => (
      query.split(' ').includes(word) ? word : `"${word}"`)).join(' ');
    body.before(el('p', { className: 'status searched' }, strings[reason].replace('{query}', () => query), ' ',
      el('button', { className: 'chip', onclick: () => panel.start({ text, alone: reason === 'follow_up' }) },
        strings[reason === 'follow_up' ? 'alone' : 'original'].replace('{original}', () => original))));
  }
  for (const code of body.querySelectorAll('.code')) {
    const button = el('button', { onclick: () => copy(`${code.querySelector('pre')?.textContent}`, button) }, strings.copy);
    code.append(button);
  }
  for (const marker of body.querySelectorAll('sup .cite')) {
    const source = shown.find(({ firstChild }) => firstChild?.textContent === marker.textContent)?.cloneNode(true);
    if (source) marker.append(el('span', { className: 'tip' }, [...source.childNodes].slice(1)));
  }
};

/** This page's address with a question, cut to fit. @type {(text: string) => string} */
const address = text => {
  const url = `${location.origin}${location.pathname}?ask=${encodeURIComponent(text.toWellFormed())}`;
  return text && url.length > 2000 ? address(text.replace(/\s*\S{0,30}$/u, '')) : url;
};

/**
 * An answer as Markdown with its cited sections, by their checked names and addresses.
 * @type {(answer: Answer, shown: HTMLAnchorElement[]) => string}
 */
const markdown = ({ response, segments = [], source_chunks: sources = [] }, shown) => {
  const cited = sources.filter(({ id }) => segments.some(({ citations }) => citations.includes(id)));
  const text = segments.map(({ text, citations }) => {
    const end = text.trimEnd();
    const marks = cited.map(({ id }, at) => (citations.includes(id) ? `[${at + 1}]` : '')).join('');
    // Right after a fence or a table row it would be part of it.
    return end + (marks && (/```$|\|$/.test(end) ? '\n\n' : ' ') + marks) + text.slice(end.length);
  }).join('');
  const list = cited.map((_, at) => {
    const { href, children } = shown[at];
    const name = `${children[1].textContent}`.replace(/[[\]]/g, '\\$&');
    return `${at + 1}. ${href ? `[${name}](${href})` : name}`;
  });
  return `${el('p', {}, [text || response, '', ...list].join('\n')).textContent}`.trim();
};
