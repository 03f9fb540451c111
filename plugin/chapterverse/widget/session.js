// @ts-check
// The conversation of this tab. If storage is blocked or full, it is kept in memory.

/** @type {() => Session} */
export const newSession = () => ({
  session_id: crypto.getRandomValues(new Uint32Array(4)).join('-'),
  messages: [],
  created_at: new Date().toISOString(),
});

/** @type {(session: Session) => void} */
export const saveSession = session => {
  session.messages = session.messages.slice(-50);
  store('chatbot_session', JSON.stringify(session));
};

/** @type {(key: string) => unknown} */
export const kept = key => {
  try {
    return sessionStorage[key];
  } catch { /* Storage is refused. */ }
};

/** @type {(key: string, value: string) => void} */
export const store = (key, value) => {
  try {
    sessionStorage[key] = value;
  } catch { /* In memory, then. */ }
};

/** The interface's words in the page's language, English by default. @type {FindWords} */
export const words = async (/** @type {Config} */ config, part = '') => {
  const [language] = /^(ar|de|es|fr|it|ja|nl|pl|pt|zh)(?![a-z])/i.exec(document.documentElement.lang) ?? ['en'];
  const { default: own } = await import(`./lang/${part}${language.toLowerCase()}.js`);
  return { ...own, ...config, ...config.strings };
};
