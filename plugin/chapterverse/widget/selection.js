// @ts-check
// The quotation of selected text or code above the field, as the next question's subject.
import { unfenced } from './answer.js';
import { el, icon } from './render.js';
import { more } from './session.js';

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.clip{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden;color:var(--_soft);font-size:13px;line-height:1.5}
q{flex:1;margin-bottom:6px;padding-inline-start:10px;border-inline-start:3px solid var(--_line);quotes:none;unicode-bidi:plaintext}
dialog .quote .icon{background:0 0;color:inherit}
.quote~.field .send{opacity:1}`);

/** @type {(panel: Panel) => Promise<void>} */
export const quoteSelection = async panel => {
  const { root, config } = panel;
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  const { unquote } = await more(config);
  // It may have been sent already.
  if (!panel.selection) return;
  panel.selection = panel.selection.trim().slice(0, 5000).toWellFormed();
  const clip = el('q', { className: 'clip' }, unfenced(panel.selection));
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
