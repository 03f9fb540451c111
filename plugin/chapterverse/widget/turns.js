// @ts-check
// What an answer gets once it is there: its tools, its passages and doubts, and questions to go on with.
import { where } from './answer.js';
import { post } from './client.js';
import { addHeadTools } from './head.js';
import { addTips, fadeEdges, foldTabs, markSentences } from './passages.js';
import { el, icon, link } from './render.js';
import { more, saveSession } from './session.js';
import { conversation, toMarkdown } from './transcript.js';

const THUMB = 'M4 11h4v9H4zM8 11l4-8 2 7h6l-2 10H8';
const DRAWINGS = {
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  copy_answer: 'M9 9h11v11H9zM5 15V4h11',
  share: 'M12 15V3M8 7l4-4 4 4M5 12v8h14v-8',
  copy: 'M9 9h11v11H9zM5 15V4h11',
  up: THUMB,
  down: THUMB,
};
const REASONS = /** @type {const} */ (['wrong', 'incomplete', 'unclear', 'outdated', 'citation', 'other']);

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.code pre{grid-column:1}
.code sup{grid-area:2/2;align-self:end;margin:8px;line-height:1}
.scroll.more{background:linear-gradient(270deg,var(--_line),#0000 32px)}
.code:has(.more)::after{content:"";grid-area:1/1/3;place-self:stretch end;width:40px;background:linear-gradient(90deg,#0000,var(--_shade));pointer-events:none}
.scroll.more:dir(rtl){background:linear-gradient(90deg,var(--_line),#0000 32px)}
blockquote{padding-inline-start:10px;border-inline-start:3px solid var(--_line)}
li>*{margin:4px 0}
.cite~.cite{margin-inline-start:5px}
dialog .unconfirmed{border:1px dashed var(--_soft);background:0 0;color:var(--_soft);line-height:1.1}
h3,h4,h5,h6{margin:14px 0 8px;font-size:16px}
hr{border:0;border-top:1px solid var(--_line)}
.framing:has(+.card){color:var(--_soft);font-size:13px}
.tabs{display:flex;flex-wrap:wrap;gap:6px;margin-bottom:6px}
dialog .tabs .chip{margin:0;padding:3px 10px;font-size:13px}
mark,:not(pre)>code:has(mark){background:color-mix(in srgb,var(--_link) 22%,var(--_bg));color:inherit;border-radius:3px}
:not(pre)>code mark{background:0 0}
.asked{position:relative}
.asked .icon{position:absolute;top:0;inset-inline-end:100%}
@media(hover){.asked:not(:hover,:focus-within) .icon{opacity:0}}
.asked:has([aria-pressed=true]){outline:2px dashed}
.status [aria-pressed=true] svg{fill:var(--_link)}
.down svg{rotate:180deg}
.status .icon{padding:4px}
.status .copy_answer{margin-inline-start:auto}
.feedback fieldset{margin:0;padding:0;border:0}
label{display:flex;gap:8px;align-items:center}
.tip{position:absolute;inset-inline:18px;z-index:1;display:none;margin-top:20px;padding:8px 12px;border:1px solid var(--_line);border-radius:10px;
  background:var(--_bg);color:var(--_fg);box-shadow:0 4px 16px #0003;font-size:13px;font-weight:400;line-height:1.5;text-align:start}
.tip .chip{display:block}
.cite:hover+.tip,.cite:focus-visible+.tip,.shown+.tip{display:block}
.doubt{color:var(--_soft);text-decoration:underline dotted}
.crumb>span:last-child,.tip b{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden}
a.cite:hover,a:hover>.cite{background:var(--_fg);color:var(--_bg)}
a.crumb:hover{text-decoration:underline}
.source:hover{border-color:var(--_link)}
@media(hover:none){.cite{padding:9px 12px}sup{line-height:2.5}label{min-height:28px}}
h2{min-width:0;overflow:hidden;text-overflow:ellipsis}
@media(max-width:480px),(max-height:480px){.expand,.dock{display:none!important}}
.page svg{stroke-width:3}
.undo{border-color:#0000!important;color:var(--_soft)}
.chip:is(.undo,.searched){display:flex;align-items:center;gap:6px}
:is(.undo,.searched) svg{margin:0}
:is(.undo,.dock,.share):dir(rtl) svg{scale:-1 1}
.turn:not(:last-child) .next{display:none}
.crumb .cite,.source .cite{padding:1px 5px}
.chips{flex-wrap:wrap}
@media print{.code[hidden]{display:grid!important}}
@media(forced-colors:active){mark{outline:1px solid}}`);

/** Escape cancels an edit, and arrows browse earlier questions. @type {(panel: Panel) => void} */
const browseQuestions = panel => {
  const { field } = panel;
  let back = 0;
  field.onkeydown = event => {
    const { key } = event;
    const step = key === 'ArrowUp' ? 1 : key === 'ArrowDown' ? -1 : 0;
    if (!field.value) back = 0;
    if (event.isComposing || key === 'Enter') return;
    if (key === 'Escape' && panel.forget) panel.forget(true);
    else if (step && (back || !field.value)) {
      const asked = panel.session.messages.filter(({ role }) => role === 'user');
      back = Math.min(Math.max(back + step, 0), asked.length);
      field.value = back ? asked[asked.length - back].content : '';
    } else return void (back = 0);
    event.preventDefault();
    event.stopPropagation();
  };
};

/** What the panel gets even where the first question failed. @type {(panel: Panel) => Promise<void>} */
export const addControls = async panel => {
  if (!panel.root.adoptedStyleSheets.includes(sheet)) panel.root.adoptedStyleSheets.push(sheet);
  // Those who read by headings go from question to question, and from there into its answer, which begins a level below.
  for (const asked of panel.thread.querySelectorAll('.asked:not(:has([role]))')) {
    asked.prepend(el('div', { role: 'heading', ariaLevel: '2' }, [...asked.childNodes]));
  }
  addHeadTools(panel, await more(panel.config));
};

/** @type {(panel: Panel, turn: Turn) => Promise<void>} */
export const addTools = async (panel, turn) => {
  const { config, root, thread, field, live } = panel;
  const { question, message, cited, node, asked, body, foot, row } = turn;
  const answer = /** @type {Message} */ (turn.answer);
  const { turn_id } = answer;
  const strings = { ...panel.strings, ...await more(config) };
  const note = el('span');
  // No more than the session keeps, or a long conversation would make every next turn slower.
  while (thread.children[25]) thread.firstChild?.remove();
  await addControls(panel);
  browseQuestions(panel);
  markSentences(turn);
  foldTabs(body);
  fadeEdges(body);
  addTips(turn, strings);
  // The status says which part of the answer is missing.
  const reason = answer.status === 'partial' && strings[/** @type {'partial_cut'} */ (`partial_${answer.partial_reason}`)];
  if (reason) row.lastElementChild?.append(`: ${reason}`);

  /** Shows and announces a tool's result, on `place` too. @type {(key: keyof Later, place?: HTMLElement) => void} */
  const say = (key, place) => {
    note.textContent = strings[key];
    if (place) {
      place.title = strings[key];
      place.replaceChildren(icon(key === 'copied' ? 'answered' : 'error'));
    }
    live.textContent = strings[key];
  };

  /** @type {(text: string, place?: HTMLElement) => Promise<void>} */
  const copy = async (text, place) => {
    try {
      await navigator.clipboard.writeText(text);
      say('copied', place);
    } catch {
      say('not_copied', place);
    }
  };

  /** @type {(name: Tool, onclick: () => void, ariaPressed?: string) => HTMLButtonElement} */
  const tool = (name, onclick, ariaPressed) => (
    el('button', { className: `icon ${name}`, title: strings[name], onclick, ariaPressed }, icon(name, DRAWINGS[name])));

  const edit = tool('edit', () => {
    const { ariaPressed } = edit;
    panel.forget?.(true);
    const { value } = field;
    if (ariaPressed === 'true') return;
    panel.forget = giveUp => {
      edit.ariaPressed = 'false';
      panel.selection = '';
      panel.quote?.remove();
      panel.forget = null;
      if (giveUp) field.value = value;
      else if (node.isConnected) take();
    };
    edit.ariaPressed = 'true';
    field.value = question.text;
    if (panel.selection = question.selection ?? '') import('./selection.js').then(({ quoteSelection }) => quoteSelection(panel));
    field.focus();
  }, 'false');

  /** Removes the turn and all later ones from the conversation. */
  const take = () => {
    const { messages } = panel.session;
    messages.splice(Math.max(messages.indexOf(message), 0));
    while (node.isConnected) thread.lastChild?.remove();
  };

  const offerPerson = () => {
    if (!config.contact || foot.querySelector('.person')) return;
    foot.append(...contactLink(panel, strings));
  };

  const thumbs = /** @type {const} */ (['up', 'down']).map(rating => {
    const thumb = tool(rating, async () => {
      form.remove();
      const status = await send(rating);
      const here = root.activeElement === thumb;
      if (status === 404) {
        // The API has no such route, so feedback would be lost.
        for (const other of thumbs) other.remove();
        if (here) thread.focus();
      } else if (status === 204 && rating === 'down') {
        row.after(form);
        offerPerson();
        form.scrollIntoView({ block: 'nearest' });
        if (here) form.querySelector('input')?.focus();
      }
    }, `${answer.rating === rating}`);
    return thumb;
  });

  /** Resolves to the status of the response, 0 without one. @type {(rating: 'up' | 'down', more?: object) => Promise<number>} */
  const send = async (rating, more) => {
    const { status } = await post(config.endpoint, 'feedback', { turn_id, rating, ...more }).catch(Response.error);
    for (const thumb of thumbs) thumb.ariaPressed = `${status === 204 && thumb.matches(`.${rating}`)}`;
    if (status === 204) {
      answer.rating = rating;
      saveSession(panel.session);
    }
    // Thanks come after the last question.
    if (status !== 404 && (rating === 'up' || more || status !== 204)) say(status === 204 ? 'thanks' : 'not_sent');
    return status;
  };

  const form = el('form', {
    className: 'feedback',
    async onsubmit(event) {
      event.preventDefault();
      if (await send('down', Object.fromEntries(new FormData(form))) === 204) close();
    },
    onkeydown(event) {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
    },
  },
  el('fieldset', {}, el('legend', { className: 'status' }, strings.why), REASONS.map(value => (
    el('label', {}, el('input', { type: 'radio', name: 'reason', value }), strings[value])))),
  el('div', { className: 'field' }, el('textarea', { name: 'comment', maxLength: 2000, placeholder: strings.comment, ariaLabel: strings.comment })),
  el('button', { className: 'chip' }, strings.submit));
  const close = () => {
    form.remove();
    thumbs[1].focus();
  };

  row.append(
    tool('copy_answer', () => copy(toMarkdown(answer, cited, panel.strings))),
    tool('share', () => copy(address(message.content))),
    ...turn_id && `${config.feedback}` !== 'false' ? thumbs : [],
    note);
  if (answer.partial_reason === 'cut') row.after(el('button', { className: 'chip retry', onclick: () => panel.retry(turn) }, strings.retry));
  if (answer.status === 'not_in_docs') offerPerson();
  // A closest page has its link already.
  const near = [answer.nearest ?? []].flat().filter(page => page?.url).map(where);
  const next = [answer.follow_ups ?? []].flat().filter(text => text?.trim?.() && !near.includes(text));
  /** @type {(label: string, items: HTMLElement[]) => Node[]} */
  const offer = (label, items) => (items.length ? [el('p', { className: 'status' }, label), ...items] : []);
  // The title of a page is no question: it is there to be read.
  const pages = new Map([answer.nearest ?? [], answer.source_chunks ?? []].flat().filter(page => page?.url).map(page => [page.chapter, page]));
  /** @type {(label: string, asks: boolean) => Node[]} */
  const questions = (label, asks) => offer(label, next.filter(text => !pages.has(text) && /[?？؟]\s*$/.test(text) === asks).map(text => (
    el('button', { className: 'chip', onclick: () => panel.start({ text }) }, text))));
  // A heading is the subject of a question.
  foot.append(el('div', { className: 'next' }, questions(strings.follow_ups, true), questions(strings.subjects, false),
    offer(strings.read_next, next.filter(text => pages.has(text)).map(text => (
      link(pages.get(text)?.url?.replace(/#.*/, ''), 'chip', text))))));
  asked.append(edit);
  const { searched_as: searched } = answer;
  const query = `${searched?.query}`, original = `${searched?.original}`;
  if (searched?.reason === 'corrected') {
    // The API leaves a word in quotation marks as it is.
    const text = original.split(' ').map(word => (query.split(' ').includes(word) ? word : `"${word}"`)).join(' ');
    body.before(el('p', { className: 'status searched' }, strings.corrected.replace('{query}', () => query), ' ',
      el('button', { className: 'chip', onclick: () => panel.start({ text }) }, strings.original.replace('{original}', () => original))));
  }
  // The API decides whether a question leans on what was said, and a click asks it anew without that.
  if (searched?.reason === 'follow_up') {
    body.before(el('button', { className: 'chip searched', title: strings.alone, onclick: () => panel.start({ ...question, alone: true }) }, el('span', {}, strings.follow_up.replace('{query}', () => query)), icon('close')));
  }
  if (turn.single && answer.status === 'not_in_docs') {
    row.after(el('button', { className: 'chip', onclick() {
      const { single } = panel;
      panel.single = false;
      // While another answer comes nothing is asked, and the label stays.
      if (panel.start(question)) panel.narrow(false);
      else panel.single = single;
    } }, strings.unscope));
  }
  for (const code of body.querySelectorAll('.code')) {
    const button = tool('copy', () => copy(`${code.querySelector('pre')?.textContent}`, button));
    code.append(button);
  }
  if (body.querySelector('.card') && document.querySelector('link[type="text/markdown"]')) import('./links.js').then(({ linkQuotes }) => linkQuotes(body)).catch(() => {});
  if (body.querySelector('.code')) import('./highlight.js').then(({ highlight }) => highlight(root)).catch(() => {});
};

/** A link to a person, where the site's owner has set one: it shows first what is sent. @type {(panel: Panel, strings: Later) => Node[]} */
export const contactLink = (panel, strings) => {
  const { contact } = panel.config;
  if (!contact) return [];
  const plain = contact.replace('{text}', '');
  const chip = /^mailto:/i.test(plain) ? el('a', { href: plain, className: 'chip' }, strings.ask_person) : link(plain, 'chip', strings.ask_person);
  if (!('href' in chip)) return [];
  chip.classList.add('person');
  chip.onclick = event => {
    event.preventDefault();
    // No citation is followed.
    event.stopPropagation();
    import('./handoff.js').then(({ openHandoff }) => openHandoff(panel, chip, strings, `${location.origin}${location.pathname}\n\n${conversation(panel)}`)).catch(() => window.open(plain, '_blank', 'noopener'));
  };
  return [chip];
};

/** This page's address with a question, cut to fit. @type {(text: string) => string} */
const address = text => {
  const url = `${location.origin}${location.pathname}?ask=${encodeURIComponent(text.toWellFormed())}`;
  return text && url.length > 2000 ? address(text.replace(/\s*\S{0,30}$/u, '')) : url;
};
