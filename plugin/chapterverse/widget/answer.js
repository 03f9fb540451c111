// @ts-check
// One question's place in the conversation: its bubble, the answer as it comes, its state and its sources. A stored answer
// is drawn by the same functions.
import { el, icon, link, render } from './render.js';

/** @type {(section: Section) => string} */
export const where = ({ chapter, section }) => (section && section !== chapter ? `${chapter} › ${section}` : chapter);

/** @type {(name: Icon, words: string | Node) => HTMLElement} */
export const status = (name, words) => el('p', { className: `status ${name}` }, icon(name), el('span', {}, words));

/** A link that knows its source, for the passage to show and to mark. @type {(source: Section & Partial<Source>, ...rest: [string, ...Content[]]) => HTMLElement} */
const reference = (source, ...rest) => Object.assign(link(source.url, ...rest), { source });

/** @type {List} */
export const list = (label, sections, numbers = []) => el('ol', { className: 'sources', ariaLabel: label }, sections.map((section, at) => (
  el('li', {}, reference(section, 'source', el('span', { className: 'cite' }, numbers[at] ?? '›'), el('b', {}, where(section)))))));

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

/** A selected code block without its fences. @type {(selection: string) => string} */
export const unfenced = selection => selection.replace(/^```\n|\n```$/g, '');

/** @type {CreateTurn} */
export const createTurn = (panel, question, message) => {
  const { strings } = panel;
  const { text, selection } = question;
  const asked = el('div', { className: 'asked' },
    selection ? el('q', { className: 'clip' }, unfenced(selection)) : [], el('span', { className: 'sr' }, strings.you), text);
  // Lists and tables of an answer stand by its own direction.
  const body = el('div', { dir: 'auto' });
  const foot = el('div');
  const node = el('div', { className: 'turn' }, text || selection ? asked : [], body, foot);
  const progress = el('p', { className: 'status busy' });
  /** The segments shown, and the number of them in each child of the body. @type {Segment[]} */
  let parts = [];
  /** @type {number[]} */
  let sizes = [];
  /** @type {Source[]} */
  let sources = [];
  /** The ids of what is cited, in the order of the text: their places are the numbers that the reader sees. @type {string[]} */
  let order = [];
  let frame = 0;
  let timer = 0;

  /** @type {(segment: Segment) => Node} */
  const markers = ({ citations, check }) => el('sup', {}, order.flatMap((id, at) => {
    if (!citations.includes(id)) return [];
    const source = /** @type {Source} */ (sources.find(source => source.id === id));
    const marker = reference(source, 'cite', `${at + 1}`);
    marker.ariaLabel = `${at + 1}: ${where(source)}`;
    return marker;
  }), check === 'unconfirmed' ? el('button', { type: 'button', className: 'cite unconfirmed', ariaLabel: strings.unconfirmed }, '?') : []);

  /** @type {(group: Segment[]) => HTMLElement} */
  const block = group => {
    const crumb = isCrumb(group[0]) ? `${render([{ ...group[0], citations: [] }], () => '').textContent}`.trim() : '';
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
    return el('div', { className: 'card' }, source
      ? reference({ ...source, snippet: `${first.mark || first.text}`.slice(0, 500) }, 'crumb',
        el('span', { className: 'cite' }, `${order.indexOf(source.id) + 1}`), el('span', {}, crumb || where(source)))
      : el('span', { className: 'crumb' }, crumb), quote);
  };

  /** Shows what has come. Blocks that stay equal stay the same nodes, with the reader's selection and focus in them. */
  const paint = () => {
    order = [...new Set(parts.flatMap(({ citations }) => citations))].filter(id => sources.some(source => source.id === id));
    turn.groups = grouped(parts);
    sizes = turn.groups.map((group, at) => {
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

  const settle = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };

  /** Says what happens now, and after a while that it still does. @type {(words: string) => void} */
  const say = words => {
    clearTimeout(timer);
    progress.replaceChildren(el('span', {}, words));
    if (!progress.isConnected) foot.replaceChildren(progress);
    timer = setTimeout(say, 8000, strings.still_working);
  };

  /** @type {Turn} */
  const turn = {
    question,
    message,
    node,
    asked,
    body,
    foot,
    row: foot,
    groups: [],
    get sources() {
      return sources;
    },
    cited: [],

    busy: () => say(strings.searching),

    hear(name, data) {
      if (name === 'meta' && Array.isArray(data?.sources)) {
        sources = data.sources.filter((/** @type {any} */ source) => source?.id);
        if (sources[0]) say(strings.reading.replace('{section}', () => where(sources[0])));
      }
      // A search of the model's own, as it starts.
      if (name === 'tool' && data?.query && !('ok' in data)) say(`${strings.searching} ${data.query}`);
      // What has no `check` is the unchecked draft of an API of an older version.
      if (name !== 'delta' || typeof data?.text !== 'string' || !data.check) return;
      parts.push({ ...data, citations: [data.citations ?? []].flat() });
      say('…');
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(paint);
    },

    show(answer) {
      const { content, source_chunks = [], segments = [], status: state, mode, nearest = [] } = answer;
      const final = segments.length ? segments : [{ text: content, citations: [] }];
      settle();
      // What was shown stays unless something else has come.
      if (JSON.stringify([parts, sources]) !== JSON.stringify([final, source_chunks])) {
        sizes = [];
        body.replaceChildren();
      }
      [parts, sources] = [final, source_chunks];
      paint();
      const doubts = parts.filter(({ check }) => check === 'unconfirmed').length;
      const key = state !== 'answered' ? (turn.single && state === 'not_in_docs' ? 'not_on_page' : state) : doubts ? (doubts > 1 ? 'except_many' : 'except')
        : mode === 'selected_text' ? mode : parts.some(({ kind }) => kind === 'quote') ? 'quoted' : state;
      const words = (strings[/** @type {'except'} */ (key)] ?? '').replace('{n}', `${doubts}`);
      // A greeting has no state.
      turn.row = state ? status(state, words) : el('p', { className: 'status' });
      foot.replaceChildren(turn.row);
      // The framing of a quoted answer says already where it is from.
      const told = `${state && key !== 'quoted' ? `${words}. ` : ''}${render(parts, () => '').textContent}`;
      turn.cited = order.flatMap(id => sources.filter(source => source.id === id));
      // The head of a card names and links its source.
      const heads = [...body.querySelectorAll('.crumb')].map(head => /** @type {any} */ (head).source?.id);
      const rest = turn.cited.filter(({ id }) => !heads.includes(id));
      const listed = turn.cited[0] ? rest : sources;
      if (listed.length) foot.append(list(strings.sources, listed, listed.map(({ id }, at) => `${order.indexOf(id) + 1 || at + 1}`)));
      const near = nearest.filter(({ url }) => turn.cited.every(source => source.url !== url));
      // After a greeting they are no results, but what there is to read.
      if (near.length) foot.append(state ? el('p', { className: 'status' }, strings.nearest) : '', list(state ? strings.nearest : '', near));
      turn.answer = answer;
      return state ? told : [told, ...near.map(where)].join('\n');
    },

    fail(kind, words) {
      settle();
      try {
        paint();
      } catch {
        // The answer itself was of wrong types.
        parts = [];
        body.replaceChildren();
      }
      const line = status(kind === 'stopped' ? 'stop' : 'error', words);
      /** @type {HTMLElement} */
      const retry = el('button', { className: 'chip retry', onclick: () => retry.ariaDisabled || panel.retry(turn) }, strings.retry);
      foot.replaceChildren(line, retry);
      return line;
    },
  };
  return turn;
};
