// @ts-check
// A failure in more words: what an HTTP status means, how long to wait, what had been found, and whom to ask.
import { list } from './answer.js';
import { el } from './render.js';
import { more } from './session.js';

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.error{border-radius:6px;color:var(--_fg);font-size:15px}
.error svg{color:color-mix(in srgb,#d32f2f 55%,var(--_fg))}
.error span{flex:1;min-width:50%}`);

/** @type {(panel: Panel, turn: Turn, failure: Failure) => Promise<string>} */
export const explain = async (panel, turn, { kind: found, detail, wait }) => {
  if (!panel.root.adoptedStyleSheets.includes(sheet)) panel.root.adoptedStyleSheets.push(sheet);
  /** @type {any} */
  const strings = { ...panel.strings, ...await more(panel.config) };
  // Pages in place of answers: that of a firewall rejects the words of this one question, a proxy's says by its status
  // what is wrong, others are of logins.
  const kind = !(found < 0) ? found : found === -403 ? 451 : found < -499 ? 500 : strings[-found] ? -found : 401;
  const told = `${strings[kind] ?? strings[kind > 499 ? 500 : 'unexpected']} ${detail ?? ''}`.trim();
  // What is said already stays, with a button that may be pressed now.
  const shown = /** @type {HTMLElement | null} */ (turn.foot.querySelector('.error,.stop'));
  const line = shown?.textContent === told ? shown : turn.fail(kind, told);
  const retry = /** @type {HTMLElement} */ (line.nextElementSibling);
  // A date would need synchronized clocks: with one, or an invalid value, there is no wait. Waits are limited.
  let left = Math.min(parseInt(`${wait}`) || 0, 600);

  /** Counts down, and ends with the turn. */
  const tick = () => {
    retry.textContent = left > 0 ? strings.wait.replace('{n}', `${left}`) : strings.retry;
    retry.ariaDisabled = left > 0 ? 'true' : null;
    if (left-- > 0) setTimeout(() => retry.isConnected && tick(), 1000);
  };

  tick();
  import('./turns.js').then(({ addControls, contactLink }) => {
    addControls(panel);
    if (kind !== 'stopped') turn.foot.append(...contactLink(panel, strings));
  }).catch(() => {});
  // What had been found before it failed can be read.
  if (kind !== 'stopped' && turn.sources[0]) {
    turn.foot.append(el('p', { className: 'status' }, strings.nearest), list(strings.nearest, turn.sources.slice(0, 3)));
  }
  // A site that may not ask may not ask again, and a question that was rejected goes back into the field for editing.
  if (/^(403|413|422)$/.test(kind)) retry.remove();
  if (/^(413|422)$/.test(kind)) panel.field.value ||= turn.question.text;
  return `${line.textContent} ${retry.ariaDisabled ? retry.textContent : ''}`;
};
