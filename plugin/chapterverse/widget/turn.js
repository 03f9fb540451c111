// @ts-check
import { el, icon, link } from './dom.js';
import { render } from './render.js';

/** @type {(section: Section) => string} */
const where = ({ chapter, section }) => (section && section !== chapter ? `${chapter} › ${section}` : chapter);

/** A snippet is Markdown, cut anywhere: its marks would only be in the way. @type {(snippet?: string) => string} */
const plain = (snippet = '') => snippet.replace(/`{3}\S*|[*`|]|-{3,}/g, '');

/** @type {(name: Icon, words: string) => HTMLElement} */
const status = (name, words) => el('p', { className: `status ${name}` }, icon(name), words);

/** @type {(label: string, sections: (Section & Partial<Source>)[]) => HTMLElement} */
const list = (label, sections) => el('ol', { className: 'sources', ariaLabel: label }, sections.map(section => (
  el('li', {}, link(section.url, 'source', el('span', { className: 'cite' }, section.id ?? '→'), el('b', {}, where(section)),
    el('span', { className: 'clip' }, plain(section.snippet)))))));

/** @type {CreateTurn} */
export const createTurn = (strings, { text, selection }, retry) => {
  const body = el('div');
  const foot = el('div');
  const asked = el('div', { className: 'asked' }, el('span', { className: 'sr' }, strings.you), text);
  if (selection) asked.prepend(el('q', { className: 'clip' }, selection));

  return {
    node: el('div', { className: 'turn' }, text || selection ? asked : [], body, foot),

    busy() {
      foot.replaceChildren(el('p', { className: 'status' }, strings.searching));
    },

    draft(markdown) {
      body.replaceChildren(render([{ text: markdown, citations: [] }], () => ''));
    },

    show({ response, source_chunks: sources = [], segments = [], status: state = 'answered', mode, nearest = [] }) {
      const parts = segments.length ? segments : [{ text: response, citations: [] }];
      body.replaceChildren(render(parts, index => el('sup', {}, sources.flatMap(source => {
        if (!parts[index].citations.includes(source.id)) return [];
        const marker = link(source.url, 'cite', source.id);
        marker.title = where(source);
        return marker;
      }))));
      foot.replaceChildren(status(state, strings[state === 'answered' && mode === 'selected_text' ? mode : state]));
      const words = `${foot.textContent}. ${render(parts, () => '').textContent}`;
      const cited = sources.filter(({ id }) => parts.some(({ citations }) => citations.includes(id)));
      foot.append(list(strings.sources, cited.length ? cited : sources));
      if (nearest.length) foot.append(el('p', { className: 'status' }, strings.nearest), list(strings.nearest, nearest));
      for (const code of navigator.clipboard ? body.querySelectorAll('.code') : []) {
        const copy = el('button', { async onclick() {
          await navigator.clipboard.writeText(code.querySelector('pre')?.textContent ?? '');
          copy.textContent = strings.copied;
        } }, strings.copy);
        code.append(copy);
      }
      return words;
    },

    fail({ kind, detail, wait }) {
      const told = strings[/** @type {403} */ (kind)] ?? strings[kind > 499 ? 500 : 'unexpected'];
      const words = [told, detail, Number(wait) > 0 && strings.wait.replace('{n}', `${wait}`)];
      // A draft that broke off was never checked; one that the reader stopped stays, and says so.
      if (kind !== 'stopped') body.replaceChildren();
      foot.replaceChildren(status('error', words.filter(Boolean).join(' ')));
      if (!/413|422/.test(kind)) foot.append(el('button', { className: 'chip', onclick: retry }, strings.retry));
      return `${foot.textContent}`;
    },
  };
};
