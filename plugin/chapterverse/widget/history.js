// @ts-check
// The conversation that the tab keeps: read as text of strangers, drawn again, sent along, and offered after a new one.
import { el, icon } from './render.js';
import { maxLength, more, newSession, saveSession } from './session.js';

/** @type {Restore} */
export const restore = async (panel, session = readSession()) => {
  panel.session = session;
  const { messages } = session;
  /** @type {Turn[]} */
  const turns = [];
  if (messages.length) panel.thread.replaceChildren();
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'user') continue;
    const turn = panel.addTurn({ text: message.content }, message);
    turns.push(turn);
    const next = messages[at + 1];
    if (next?.role === 'assistant') panel.draw(turn, next);
    else turn.ready = panel.explain(turn, { kind: 'interrupted' });
  }
  // With their tools: what comes later would move the reading position.
  await Promise.all(turns.map(({ ready }) => ready));
};

/** Offers to go back to the conversation before a new one. @type {(panel: Panel, before: Session) => Promise<void>} */
export const offerUndo = async (panel, before) => {
  const { undo } = await more(panel.config);
  if (!before.messages[0] || panel.session.messages[0]) return;
  panel.thread.append(el('button', { className: 'chip undo', onclick() {
    saveSession(before);
    restore(panel, before);
    panel.field.focus();
  } }, icon('undo', 'M9 7l-5 5 5 5M4 12h16'), undo));
};

/** @type {Recent} */
export const recent = messages => {
  const turns = messages.filter(({ role }, at) => (
    role === 'user' ? messages[at + 1]?.role === 'assistant' : messages[at - 1]?.role === 'user'));
  const latest = turns.slice(-10).map(({ role, content, timestamp, signature }) => (
    { role, content: content.slice(0, maxLength).toWellFormed(), timestamp, signature }));
  while (latest.reduce((sum, { content }) => sum + content.length, 0) > 16000) latest.splice(0, 2);
  return latest;
};

/** Any script of the page may have written it. @type {() => Session} */
const readSession = () => {
  try {
    const { session_id, messages, created_at } = JSON.parse(sessionStorage.chatbot_session);
    if (/^[\w-]{1,64}$/.test(session_id)) return { session_id, messages: listOf(messages, readMessage).slice(-50), created_at: text(created_at) };
  } catch { /* Nothing is stored, or nothing that can be read. */ }
  return newSession();
};

/** @type {(value: any, longest?: number) => string} */
const text = (value, longest = 1e5) => (typeof value === 'string' ? value.slice(0, longest) : '');

/** Reads the values of a list, without those that are nothing. @type {<T>(values: any, read: (value: any) => T | undefined | '' | null) => T[]} */
const listOf = (values, read) => (Array.isArray(values) ? values.slice(-500).flatMap(value => read(value) || []) : []);

/** One of the words, or nothing. @type {<T extends string>(value: any, ...words: T[]) => T | undefined} */
const oneOf = (value, ...words) => words.find(word => word === value);

/** @type {(value: any) => Section | undefined} */
const readSection = value => value && { chapter: text(value.chapter, 500), section: text(value.section, 500) || null, url: text(value.url, 2048) || null };

/** @type {(value: any) => Source | undefined} */
const readSource = value => value?.id && { ...readSection(value), id: text(value.id, 50), snippet: text(value.snippet, 500) };

/** @type {(value: any) => Segment | undefined} */
const readSegment = value => value?.text && {
  text: text(value.text),
  citations: listOf(value.citations, id => text(id, 50)),
  kind: oneOf(value.kind, 'quote', 'prose', 'framing'),
  check: oneOf(value.check, 'confirmed', 'unconfirmed', 'none'),
  mark: text(value.mark) || null,
};

/** The API rejects a question with any other signature. @type {(value: any) => object | undefined} */
const readSignature = value => {
  const { key_id, expiry, turn_id, previous, tag } = value ?? {};
  const valid = [key_id, turn_id, previous, tag].every(part => /^[\w-]{0,64}$/.test(part)) && Number.isSafeInteger(expiry);
  return valid ? { key_id, expiry, turn_id, previous, tag } : undefined;
};

/** @type {(value: any) => Message | undefined} */
const readMessage = value => {
  const role = oneOf(value?.role, 'user', 'assistant');
  const content = text(value?.content, 65536);
  const timestamp = text(value?.timestamp, 64);
  if (!role || !content.trim() || !timestamp) return undefined;
  if (role === 'user') return { role, content, timestamp };
  const { searched_as: searched } = value;
  const reason = oneOf(searched?.reason, 'corrected', 'follow_up');
  /** @type {Message} */
  const message = {
    role,
    content,
    timestamp,
    mode: oneOf(value.mode, 'rag', 'selected_text'),
    source_chunks: listOf(value.source_chunks, readSource),
    segments: listOf(value.segments, readSegment),
    status: oneOf(value.status, 'answered', 'partial', 'not_in_docs', 'degraded'),
    turn_id: text(value.turn_id, 64) || undefined,
    signature: readSignature(value.signature),
    nearest: listOf(value.nearest, readSection),
    follow_ups: listOf(value.follow_ups, question => text(question, 500)),
    searched_as: reason && { query: text(searched.query, maxLength), original: text(searched.original, maxLength), reason },
    partial_reason: oneOf(value.partial_reason, 'left_open', 'unconfirmed', 'may_help', 'cut', 'language', 'choice') ?? null,
    rating: oneOf(value.rating, 'up', 'down'),
  };
  return message;
};
