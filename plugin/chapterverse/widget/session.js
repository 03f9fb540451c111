// @ts-check
// The conversation of this tab. If storage is blocked or full, it is kept in memory.

/** @type {() => Session} */
export const newSession = () => ({
  // `crypto.randomUUID` is for secure contexts only; the address of a blob ends with a random UUID everywhere.
  session_id: URL.createObjectURL(new Blob).slice(-36),
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

// Characters of a message that the API takes. The service cuts an answer in the same way before it signs it.
export const maxLength = 4000;

/** The words that come later, in the page's language. @type {(config: Config) => Promise<Later & Config>} */
export const more = async config => (
  { ...(await import(`./lang/more/${config.language}.js`)).default, ...config, ...config.strings });
