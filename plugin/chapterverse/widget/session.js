// @ts-check
// The conversation of this tab. Where storage is refused, full or corrupt, it lives in memory.

/** @type {() => Session} */
export const newSession = () => ({
  session_id: crypto.getRandomValues(new Uint32Array(4)).join('-'),
  messages: [],
  created_at: new Date().toISOString(),
});

/** @type {() => Session} */
export const loadSession = () => {
  try {
    const { session_id, messages, created_at } = JSON.parse(sessionStorage.chatbot_session);
    if (/^[\w-]{1,64}$/.test(session_id)) return { session_id, messages: messages.filter(isMessage), created_at };
  } catch { /* Nothing is stored, or nothing that can be read. */ }
  return newSession();
};

/** @type {(message: any) => boolean} */
const isMessage = message => message?.content && /^(user|assistant)$/.test(message.role)
  && typeof message.content === 'string' && typeof message.timestamp === 'string';

/** @type {(session: Session) => void} */
export const saveSession = session => {
  session.messages = session.messages.slice(-50);
  store('chatbot_session', JSON.stringify(session));
};

/** @type {(key: string, value: string) => void} */
export const store = (key, value) => {
  try {
    sessionStorage[key] = value;
  } catch { /* In memory, then. */ }
};

/** @type {Recent} */
export const recent = messages => {
  const turns = messages.filter(({ role }, at) => (
    role === 'user' ? messages[at + 1]?.role === 'assistant' : messages[at - 1]?.role === 'user'));
  const latest = turns.slice(-10).map(({ role, content, timestamp, signature }) => (
    { role, content: content.slice(0, 4000).toWellFormed(), timestamp, signature }));
  while (latest.reduce((sum, { content }) => sum + content.length, 0) > 16000) latest.splice(0, 2);
  return latest;
};
