// @ts-check
// One question's place in the conversation: its bubble, the answer as it comes, its state and its sources.
import { el, icon, link, render } from './render.js';

/** @type {(section: Section) => string} */
export const where = ({ chapter, section }) => (section && section !== chapter ? `${chapter} › ${section}` : chapter);

/** @type {(name: Icon, words: string | Node) => HTMLElement} */
export const status = (name, words) => el('p', { className: `status ${name}` }, icon(name), el('span', {}, words));

/** A link that knows its source, for the passage to show and to mark. @type {(source: Section & Partial<Source>, ...rest: [string, ...Content[]]) => HTMLElement} */
const reference = (source, ...rest) => Object.assign(link(source.url, ...rest), { source });

/** @type {List} */
export const list = (label, sections, numbers = []) => el('ol', { className: 'sources', ariaLabel: label }, sections.map((section, at) => (
  el('li', {}, reference(section, 'source', el('span', { className: 'cite' }, numbers[at] ?? '→'), el('b', {}, where(section)))))));

/** A heading path in bold of its own: the service sends one before a quote. */
const CRUMB = /^\s*\*\*(?:[^*\\]|\\.)+\*\*\s*$/;

/** @type {(segment: Segment) => boolean} */
const isCrumb = ({ kind, text }) => kind === 'framing' && CRUMB.test(text);

/** Splits segments into what is shown together: a heading path with a quote or text, or a stretch of text. @type {(parts: Segment[]) => Segment[][]} */
const grouped = parts => {
  /** @type {Segment[][]} */
  const groups = [];
  for (const part of parts) {
    const last = groups.at(-1)?.at(-1);
    const alone = !last || (part.kind === 'quote' ? !isCrumb(last) : last.kind === 'quote' || isCrumb(part));
    if (alone) groups.push([part]);
    else groups.at(-1)?.push(part);
  }
  return groups;
};

/** @type {CreateTurn} */
export const createTurn = (panel, question, message) => {
  const { strings } = panel;
  const { text, selection } = question;
  const asked = el('div', { className: 'asked' },
    selection ? el('q', { className: 'clip' }, unfenced(selection)) : [], el('span', { className: 'sr' }, strings.you), text);
  const body = el('div');
  const foot = el('div');
  const node = el('div', { className: 'turn' }, text || selection ? asked : [], body, foot);
  /** The segments shown, and the number of them in each child of the body. @type {Segment[]} */
  let parts = [];
  /** @type {number[]} */
  let sizes = [];
  /** @type {Source[]} */
  let sources = [];
  /** The ids of what is cited, in the order of the text: their places are the numbers that the reader sees. @type {string[]} */
  let order = [];
  let frame = 0;

  /** @type {(segment: Segment) => Node} */
  const markers = ({ citations, check }) => el('sup', {}, order.flatMap((id, at) => {
    if (!citations.includes(id)) return [];
    const source = /** @type {Source} */ (sources.find(source => source.id === id));
    const marker = reference(source, 'cite', `${at + 1}`);
    marker.ariaLabel = `${at + 1}: ${where(source)}`;
    return marker;
  }), check === 'unconfirmed' ? el('span', { className: 'cite unconfirmed', role: 'img', ariaLabel: strings.unconfirmed, title: strings.unconfirmed }, '?') : []);

  /** @type {(group: Segment[]) => HTMLElement} */
  const block = group => {
    const crumb = isCrumb(group[0]) ? render([{ ...group[0], citations: [] }], () => '').textContent.trim() : '';
    const parts = crumb ? group.slice(1) : group;
    const [first] = parts;
    if (!crumb && first.kind !== 'quote') {
      const framing = group.every(({ kind }) => kind === 'framing');
      return el('div', { className: framing ? 'framing' : '' }, render(group, index => markers(group[index])));
    }
    const source = sources.find(({ id }) => first?.citations.includes(id));
    // The head has the number already.
    const rest = parts.map(part => ({ ...part, citations: part.citations.filter(id => id !== source?.id) }));
    const quote = el('div', {}, render(rest, index => markers(rest[index])));
    if (first?.mark) import('./turns.js').then(({ emphasize }) => emphasize(quote, first)).catch(() => {});
    return el('div', { className: 'card' }, source
      ? reference({ ...source, snippet: `${first.mark || first.text}`.slice(0, 500) }, 'crumb',
        el('span', { className: 'cite' }, `${order.indexOf(source.id) + 1}`), el('span', {}, crumb || where(source)))
      : el('span', { className: 'crumb' }, crumb), quote);
  };

  /** Shows what has come. Blocks that stay equal stay the same nodes, with the reader's selection and focus in them. */
  const paint = () => {
    order = [...new Set(parts.flatMap(({ citations }) => citations))].filter(id => sources.some(source => source.id === id));
    sizes = grouped(parts).map((group, at) => {
      if (group.length !== sizes[at]) {
        const made = block(group);
        const old = body.children[at] ?? body.appendChild(el('div'));
        let same = 0;
        while (old.childNodes[same]?.isEqualNode(made.childNodes[same])) same++;
        while (old.childNodes[same]) old.lastChild?.remove();
        old.append(...[...made.childNodes].slice(same));
        old.className = made.className;
      }
      return group.length;
    });
  };

  return {
    node,

    busy() {
      foot.replaceChildren(el('p', { className: 'status' }, strings.searching));
    },

    hear(name, data) {
      if (name === 'meta' && Array.isArray(data?.sources)) sources = data.sources.filter((/** @type {any} */ source) => source?.id);
      if (name !== 'delta' || typeof data?.text !== 'string') return;
      // An API of an older version sends text alone, unchecked.
      parts.push({ ...data, citations: [data.citations ?? []].flat() });
      foot.replaceChildren();
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(paint);
    },

    show(answer) {
      const { response, source_chunks = [], segments = [], status: state = 'answered', mode, nearest = [] } = answer;
      const draft = parts.map(({ text }) => text).join('');
      const final = segments.length ? segments : [{ text: response, citations: [] }];
      cancelAnimationFrame(frame);
      // What was shown stays unless something else has come.
      if (JSON.stringify([parts, sources]) !== JSON.stringify([final, source_chunks])) {
        sizes = [];
        body.replaceChildren();
      }
      [parts, sources] = [final, source_chunks];
      paint();
      // The framing says already that it is quoted from the docs.
      const quoted = parts.some(({ kind }) => kind === 'quote') && state === 'answered';
      const words = strings[state === 'answered' && mode === 'selected_text' ? mode : state] ?? '';
      // So does the reply to a greeting, for which nothing was searched.
      const silent = quoted || (state === 'not_in_docs' && answer.retrieval_used === false);
      const row = silent ? el('p', { className: 'status answered' }, el('span', { className: 'sr' }, quoted ? words : '')) : status(state, words);
      foot.replaceChildren(row);
      const told = [...quoted ? [] : foot.childNodes, render(parts, () => '')].map(({ textContent }) => textContent).join('. ');
      const cited = order.flatMap(id => sources.filter(source => source.id === id));
      // The head of a card names and links its source.
      const heads = [...body.querySelectorAll('.crumb')].map(head => /** @type {any} */ (head).source?.id);
      const rest = cited.filter(({ id }) => !heads.includes(id));
      const listed = cited.length ? rest : sources;
      if (listed.length) foot.append(list(strings.sources, listed, listed.map(({ id }, at) => `${order.indexOf(id) + 1 || at + 1}`)));
      const near = nearest.filter(({ url }) => cited.every(source => source.url !== url));
      if (near.length) foot.append(el('p', { className: 'status' }, strings.nearest), list(strings.nearest, near));
      this.ready = import('./turns.js').then(({ equip }) => (
        equip(panel, { question, message, answer, cited, revised: !!draft && draft.trim() !== response.trim(), node, asked, body, foot, row }))).catch(() => {});
      return told;
    },

    async fail(failure) {
      cancelAnimationFrame(frame);
      try {
        paint();
      } catch {
        // The answer itself was of wrong types.
        parts = [];
        body.replaceChildren();
      }
      // What was checked stays to be read; the draft of an older API does only if the reader stopped it.
      if (failure.kind !== 'stopped' && !parts.every(({ check }) => check)) body.replaceChildren();
      return import('./turns.js').then(({ explain }) => explain(panel, failure, { question, message, node, foot, sources })).catch(() => {
        // A longer message would have to be loaded from an unreachable server.
        foot.replaceChildren(status('error', strings.network));
        panel.field.value ||= text;
        return strings.network;
      });
    },
  };
};

/** A selected code block without its fences. @type {(selection: string) => string} */
export const unfenced = selection => selection.replace(/^```\n|\n```$/g, '');
