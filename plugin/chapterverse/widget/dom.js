// @ts-check
export const ICONS = {
  close: 'M6 6l12 12M18 6L6 18',
  unquote: 'M6 6l12 12M18 6L6 18',
  reset: 'M12 5v14M5 12h14',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M8 8h8v8H8z',
  answered: 'M5 12l5 5 9-10',
  partial: 'M12 4a8 8 0 0 0 0 16zM12 4a8 8 0 0 1 0 16',
  not_in_docs: 'M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M6.5 6.5l11 11',
  degraded: 'M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M12 8v5M12 16v.1',
  error: 'M12 4l9 16H3zM12 10v4M12 17v.1',
};

/** @type {El} */
export const el = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  for (const child of children.flat()) {
    node.append(child instanceof Node ? child : `${child}`.replace(/[\p{Bidi_C}\uFDD0\uFDD1]|(?![\t\n])\p{Cc}/gu, ''));
  }
  return node;
};

/** @type {(name: Icon) => SVGElement} */
export const icon = name => {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS(svg.namespaceURI, 'path');
  svg.setAttribute('viewBox', '0 0 24 24');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
};

/** @type {Link} */
export const link = (address, className, ...children) => {
  const url = /^[^\s\\\p{C}]{1,2048}$/u.test(address ?? '') && URL.parse(address ?? '', location.href);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return el('span', { className }, ...children);
  const node = el('a', { className, href: url.href }, ...children);
  if (url.origin === location.origin) return node;
  return Object.assign(node, { title: url.host, target: '_blank', rel: 'noopener noreferrer nofollow ugc' });
};

/** @type {Follow} */
export const follow = (event, before) => {
  const anchor = /** @type {Element} */ (event.target).closest('a');
  if (!anchor || anchor.target || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  before();
  const outside = el('a', { href: anchor.href });
  document.body.append(outside);
  outside.click();
  outside.remove();
};
