// @ts-check
// Hands the conversation to a person: the reader sees and changes what is sent, and his own mail program or browser sends it.
import { el } from './render.js';

/** Characters of an address that every mail program and browser passes on. */
const MOST = 1900;

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.handoff textarea{max-height:150px}
.handoff .status{margin:8px 0}`);

/** Shows below its link what is sent; a second press closes it. @type {(panel: Panel, chip: HTMLElement, strings: Later, conversation: string) => void} */
export const openHandoff = (panel, chip, strings, conversation) => {
  const { root, live, config, session } = panel;
  const contact = config.contact ?? '';
  const shown = chip.nextElementSibling;
  if (shown?.classList.contains('handoff')) return shown.remove();
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  const mail = /^mailto:/i.test(contact);
  const asked = session.messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const subject = mail && !/[?&]subject=/i.test(contact) ? `&subject=${encodeURIComponent(asked.replace(/\s+/g, ' ').slice(0, 100).toWellFormed())}` : '';
  const text = el('textarea', { value: conversation, ariaLabel: strings.handoff, oninput: () => note() });
  const hint = el('p', { className: 'status', role: 'status' });
  const send = el('a', { className: 'chip', target: mail ? '_self' : '_blank', rel: 'noopener' }, mail ? strings.handoff_mail : strings.handoff_form);

  /** The address with the text in it, or with nothing if it is too long or has no place for it. @type {() => [href: string, carries: boolean]} */
  const address = () => {
    const body = encodeURIComponent(text.value.toWellFormed().replace(/\n/g, '\r\n'));
    const base = contact + (mail && !contact.includes('{text}') ? `${contact.includes('?') ? '&' : '?'}body={text}` : '') + subject;
    const whole = base.replace('{text}', body);
    return base.includes('{text}') && whole.length <= MOST ? [whole, true] : [base.replace('{text}', ''), false];
  };
  const note = () => {
    const [href, carries] = address();
    send.href = href;
    const told = carries ? '' : strings.handoff_copy;
    // Again it would be read again.
    if (hint.textContent !== told) hint.textContent = told;
  };
  // Without waiting: the browser asks for it at once, and the link is followed meanwhile.
  send.onclick = async () => {
    if (address()[1]) return;
    try {
      await navigator.clipboard.writeText(text.value);
      live.textContent = strings.copied;
    } catch {
      // It is refused, or the page came by plain HTTP.
      hint.textContent = strings.not_copied;
      text.select();
    }
  };
  const box = el('div', { className: 'handoff', onkeydown(event) {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    box.remove();
    chip.focus();
  } }, el('p', { className: 'status' }, strings.handoff), el('div', { className: 'field' }, text), hint, send);
  note();
  chip.after(box);
  text.focus({ preventScroll: true });
  box.scrollIntoView({ block: 'nearest' });
};
