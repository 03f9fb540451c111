// @ts-check
/** "Ask about this", beside text that is selected on the page; the launcher loads it with the first selection. */

/** How long a selection must rest, in milliseconds: touch handles and Shift+arrows move it step by step. */
const REST = 250;

/** @type {Offer} */
export const offer = (root, config, open) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`.offer{position:fixed;border-radius:18px;padding:6px 14px;font-size:14px;line-height:20px}
.offer::before,.offer[hidden]{display:none}`);
  root.adoptedStyleSheets.push(sheet);

  const button = document.createElement('button');
  button.className = 'launcher offer';
  button.textContent = config.strings?.offer ?? 'Ask about this';
  button.hidden = true;
  root.prepend(button);

  let text = '';
  let pressed = false;
  let timer = 0;

  const update = () => {
    text = selectedText(root);
    button.hidden = !text;
    place();
  };

  const place = () => {
    if (button.hidden) return;
    const box = lastLine();
    // Below the line: above it, phones show their own menu.
    const top = Math.min(box.bottom + 10, innerHeight - button.offsetHeight - 8);
    const left = Math.min(box.right - button.offsetWidth / 2, innerWidth - button.offsetWidth - 8);
    button.style.top = `${Math.max(8, top)}px`;
    button.style.left = `${Math.max(8, left)}px`;
  };

  const settle = () => {
    clearTimeout(timer);
    timer = setTimeout(() => pressed || update(), REST);
  };

  // Pressing the button must not move the focus, which would drop the selection that it is about.
  button.addEventListener('pointerdown', event => event.preventDefault());
  button.addEventListener('mousedown', event => event.preventDefault());
  button.addEventListener('click', () => {
    button.hidden = true;
    open(text, true);
  });
  document.addEventListener('selectionchange', settle);
  document.addEventListener('pointerdown', event => (pressed = event.pointerType === 'mouse'), true);
  for (const type of ['pointerup', 'pointercancel']) {
    document.addEventListener(type, () => {
      pressed = false;
      settle();
    }, true);
  }
  for (const type of ['scroll', 'resize']) addEventListener(type, place, { capture: true, passive: true });
  settle();
};

/** What is selected on the page: not in a field, and not in the chat. @type {(root: ShadowRoot) => string} */
const selectedText = root => {
  const active = document.activeElement;
  const away = active === root.host || active?.matches('input, textarea, [contenteditable]');
  if (away || getSelection()?.isCollapsed) return '';
  const text = `${getSelection()}`.trim();
  return /[\p{L}\p{N}]/u.test(text) ? text : '';
};

const lastLine = () => {
  const range = /** @type {Selection} */ (getSelection()).getRangeAt(0);
  return [...range.getClientRects()].at(-1) ?? range.getBoundingClientRect();
};
