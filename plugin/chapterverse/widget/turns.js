// @ts-check
// The parts of a conversation: restored turns, an answer's tools, retries, and the quotation of a question.
import { list, status, unfenced, where } from './answer.js';
import { post } from './client.js';
import { el, icon, link, render } from './render.js';
import { more, newSession, saveSession } from './session.js';

const THUMB = 'M4 11h4v9H4zM8 11l4-8 2 7h6l-2 10H8';
const DRAWINGS = {
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  copy_answer: 'M9 9h11v11H9zM5 15V4h11',
  share: 'M12 15V3M8 7l4-4 4 4M5 12v8h14v-8',
  copy: 'M9 9h11v11H9zM5 15V4h11',
  export: 'M12 4v10M8 11l4 4 4-4M5 20h14',
  up: THUMB,
  down: THUMB,
};
const REASONS = /** @type {const} */ (['wrong', 'incomplete', 'unclear', 'outdated', 'citation', 'other']);

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
h3,h4,h5,h6{margin:14px 0 8px;font-size:16px}
hr{border:0;border-top:1px solid var(--_line)}
table{width:max-content;border-collapse:collapse;font-size:14px}
th,td{border:1px solid var(--_line);max-width:15em;padding:6px 10px;text-align:start;vertical-align:top;overflow-wrap:anywhere}
th{background:var(--_shade)}
.unconfirmed{background:0 0;border:1px dashed var(--_soft);color:var(--_soft);cursor:help}
.sources{display:flex;flex-wrap:wrap;gap:6px;padding:0;list-style:none;font-size:13px}
.sources li{max-width:100%}
.source{display:flex;align-items:baseline;gap:8px;padding:3px 10px;border:1px solid var(--_line);border-radius:10px;text-decoration:none}
.source b{overflow:hidden;font-weight:400;text-overflow:ellipsis;white-space:nowrap}
.source:hover{border-color:var(--_link)}
.framing:has(+.card){color:var(--_soft);font-size:13px}
.card{border-radius:10px;overflow:hidden}
.code pre{grid-column:1}
.code::before{content:"";z-index:1;grid-area:1/1/3/2;align-self:stretch;width:14px;background:linear-gradient(90deg,#0000,var(--_shade));pointer-events:none}
.card>div{padding:12px 14px 1px}
.crumb{display:flex;gap:8px;align-items:baseline;padding:7px 14px;background:var(--_shade);font-size:13px;font-weight:600;line-height:1.4;text-decoration:none}
a.crumb:hover{text-decoration:underline}
mark,:not(pre)>code:has(mark){background:color-mix(in srgb,var(--_link) 22%,var(--_bg));color:inherit;border-radius:3px}
:not(pre)>code mark{background:0 0}
.crumb>span:last-child{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden}
.status>:empty{display:none}
.error{padding:8px 12px;border-inline-start:4px solid #d32f2f;border-radius:6px;background:var(--_shade);color:var(--_fg);font-size:15px}
.error svg{color:color-mix(in srgb,#d32f2f 55%,var(--_fg))}
.error span,.partial span,.degraded span{flex:1;min-width:50%}
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
dialog .quote .icon{background:0 0;color:inherit}
.tip{position:absolute;inset-inline:18px;z-index:1;display:none;margin-top:20px;padding:8px 12px;border:1px solid var(--_line);border-radius:10px;
  background:var(--_bg);color:var(--_fg);box-shadow:0 4px 16px #0003;font-size:13px;font-weight:400;line-height:1.5;text-align:start}
.tip b{display:block}
.cite:hover+.tip,.cite:focus-visible+.tip{display:block}
.turn:not(:last-child) .next{display:none}
.crumb .cite,.source .cite{padding:1px 5px}
.chips{flex-wrap:wrap}
.chips>:nth-child(3){flex:1 15em;max-width:max-content}
@media(forced-colors:active){mark{outline:1px solid}}`);

/** Loads what an answer or a failure will need, before the network can drop. @type {(panel: Panel) => ReturnType<typeof more>} */
export const prepare = ({ root, config }) => {
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  return more(config);
};

/** @type {Restore} */
export const restore = async (panel, session = loadSession()) => {
  panel.session = session;
  const { messages } = session;
  prepare(panel).catch(() => {});
  /** @type {Turn[]} */
  const turns = [];
  if (messages.length) panel.thread.replaceChildren();
  try {
    messages.forEach((message, at) => {
      if (message.role !== 'user') return;
      const turn = panel.addTurn({ text: message.content }, message);
      turns.push(turn);
      const next = messages[at + 1];
      if (next?.role === 'assistant') turn.show({ ...next, response: next.content });
      else turn.fail({ kind: 'interrupted' });
    });
  } catch {
    // Another script wrote it.
    panel.thread.replaceChildren();
    panel.session = newSession();
  }
  // With their tools: what comes later would move the reading position.
  await Promise.all(turns.map(({ ready }) => ready));
};

/** Offers to go back to the conversation before a new one. @type {(panel: Panel, before: Session) => Promise<void>} */
export const undo = async (panel, before) => {
  const { undo } = await more(panel.config);
  if (!before.messages[0] || panel.session.messages[0]) return;
  panel.thread.append(el('button', { className: 'chip', onclick() {
    saveSession(before);
    restore(panel, before);
    panel.field.focus();
  } }, undo));
};

/** @type {() => Session} */
const loadSession = () => {
  try {
    const { session_id, messages, created_at } = JSON.parse(sessionStorage.chatbot_session);
    if (/^[\w-]{1,64}$/.test(session_id)) return { session_id, messages: messages.filter(isMessage), created_at };
  } catch { /* Nothing is stored, or nothing that can be read. */ }
  return newSession();
};

/** @type {(message: any) => boolean} */
const isMessage = message => message?.content && /^(user|assistant)$/.test(message.role)
  && typeof message.content === 'string' && typeof message.timestamp === 'string';

/** @type {Recent} */
export const recent = messages => {
  const turns = messages.filter(({ role }, at) => (
    role === 'user' ? messages[at + 1]?.role === 'assistant' : messages[at - 1]?.role === 'user'));
  const latest = turns.slice(-10).map(({ role, content, timestamp, signature }) => (
    { role, content: content.slice(0, 4000).toWellFormed(), timestamp, signature }));
  while (latest.reduce((sum, { content }) => sum + content.length, 0) > 16000) latest.splice(0, 2);
  return latest;
};

/** @type {Quote} */
export const quote = async panel => {
  const { unquote } = await prepare(panel);
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

/** @type {Explain} */
export const explain = async (panel, { kind: found, detail, wait }, { question, message, node, foot, sources }) => {
  /** @type {any} */
  const strings = { ...panel.strings, ...await more(panel.config) };
  // Pages in place of answers: that of a firewall rejects the words of this one question, a proxy's says by its status
  // what is wrong, others are of logins.
  const kind = !(found < 0) ? found : found === -403 ? 451 : found < -499 ? 500 : strings[-found] ? -found : 401;
  const told = strings[navigator.onLine || kind === 'stopped' ? kind : 'offline'] ?? strings[kind > 499 ? 500 : 'unexpected'];
  const name = kind === 'stopped' ? 'stop' : 'error';
  const line = status(name, `${told} ${detail ?? ''}`);
  // A date would need synchronized clocks: with one, or an invalid value, there is no wait. Waits are limited.
  let left = Math.min(parseInt(`${wait}`) || 0, 600);

  const retry = el('button', { className: 'chip', onclick() {
    const { session } = panel;
    if (retry.ariaDisabled || !panel.start(question)) return;
    node.remove();
    session.messages = session.messages.filter(other => other !== message);
    saveSession(session);
  } });

  /** Counts down, and ends with the turn. */
  const tick = () => {
    retry.textContent = left > 0 ? strings.wait.replace('{n}', `${left}`) : strings.retry;
    retry.ariaDisabled = left > 0 ? 'true' : null;
    if (left-- > 0) setTimeout(() => retry.isConnected && tick(), 1000);
  };

  tick();
  foot.replaceChildren(line, retry);
  if (kind !== 'stopped') {
    // What had been found before it failed can be read.
    if (sources?.length) foot.append(el('p', { className: 'status' }, strings.nearest), list(strings.nearest, sources.slice(0, 3)));
    foot.append(...person(panel.config, strings));
  }
  if (/413|422/.test(kind)) {
    // The question itself was rejected: it goes back into the field for editing.
    retry.remove();
    panel.field.value ||= question.text;
  }
  return `${line.textContent} ${retry.ariaDisabled ? retry.textContent : ''}`;
};

/** A link to a person, where the site's owner has set one. @type {(config: Config, strings: { ask_person: string }) => Node[]} */
const person = ({ contact }, { ask_person }) => {
  if (!contact) return [];
  const anchor = /^mailto:/i.test(contact) ? el('a', { href: contact, className: 'chip' }, ask_person) : link(contact, 'chip', ask_person);
  return [anchor];
};

/** Escape cancels an edit, and arrows browse earlier questions. @type {(panel: Panel) => void} */
const listen = panel => {
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

/** @type {Equip} */
export const equip = async (panel, { question, message, answer, cited, revised, node, asked, body, foot, row }) => {
  const { config, root, thread, field } = panel;
  const { turn_id } = answer;
  const strings = await more(config);
  const note = el('span');
  listen(panel);

  /** Shows and announces a tool's result, on `place` too. @type {(key: keyof Later, place?: HTMLElement) => void} */
  const say = (key, place) => {
    note.textContent = strings[key];
    if (place) {
      place.title = strings[key];
      place.replaceChildren(icon(key === 'copied' ? 'answered' : 'error'));
    }
    /** @type {Element} */ (root.querySelector('[aria-live]')).textContent = strings[key];
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
    if (panel.selection = question.selection ?? '') quote(panel);
    field.focus();
  }, 'false');

  /** Removes the turn and all later ones from the conversation. */
  const take = () => {
    const { messages } = panel.session;
    messages.splice(Math.max(messages.indexOf(message), 0));
    while (node.isConnected) thread.lastChild?.remove();
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
        form.scrollIntoView({ block: 'nearest' });
        if (here) form.querySelector('input')?.focus();
      }
    }, 'false');
    return thumb;
  });

  /** Resolves to the status of the response, 0 without one. @type {(rating: 'up' | 'down', more?: object) => Promise<number>} */
  const send = async (rating, more) => {
    const { status } = await post(config.endpoint, 'feedback', { turn_id, rating, ...more }).catch(Response.error);
    for (const thumb of thumbs) thumb.ariaPressed = `${status === 204 && thumb.matches(`.${rating}`)}`;
    if (status !== 404) say(status === 204 ? 'thanks' : 'not_sent');
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
    tool('copy_answer', () => copy(markdown(answer, cited))),
    tool('share', () => copy(address(message.content))),
    ...turn_id && `${config.feedback}` !== 'false' ? thumbs : [],
    note);
  // Only an API of an older version sends a draft.
  if (revised) row.after(status('degraded', strings.revised));
  // A greeting is not refused, and nothing follows from it.
  const talk = answer.retrieval_used === false;
  if (answer.status === 'not_in_docs' && !talk) {
    foot.append(...person(config, strings));
    import('./menu.js').then(({ elsewhere }) => elsewhere(panel, foot, message.content)).catch(() => {});
  }
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
  if (!panel.root.querySelector('.export')) root.querySelector('h2')?.after(tool('export', () => save(panel)));
  if (!talk) {
    panel.follow?.remove();
    panel.follow = el('button', { type: 'button', className: 'chip', title: strings.alone, onclick() {
      panel.alone = true;
      panel.follow?.remove();
      field.focus();
    } }, el('span', {}, strings.follow_up.replace('{query}', () => question.text || unfenced(question.selection ?? ''))), icon('close'));
    panel.chips.append(panel.follow);
  }
  asked.append(edit);
  const { searched_as: searched } = answer;
  if (searched && /^(corrected|follow_up)$/.test(searched.reason)) {
    const { reason } = searched;
    const [query, original] = [`${searched.query}`, `${searched.original}`];
    // The API leaves a word in quotation marks as it is.
    const text = reason === 'follow_up' ? original : original.split(' ').map(word => (
      query.split(' ').includes(word) ? word : `"${word}"`)).join(' ');
    body.before(el('p', { className: 'status searched' }, strings[reason].replace('{query}', () => query), ' ',
      el('button', { className: 'chip', onclick: () => panel.start({ text, alone: reason === 'follow_up' }) },
        strings[reason === 'follow_up' ? 'alone' : 'original'].replace('{original}', () => original))));
  }
  for (const code of body.querySelectorAll('.code')) {
    const button = tool('copy', () => copy(`${code.querySelector('pre')?.textContent}`, button));
    code.append(button);
  }
  if (body.querySelector('.code')) import('./highlight.js').then(({ highlight }) => highlight(root)).catch(() => {});
  for (const marker of /** @type {NodeListOf<HTMLElement>} */ (body.querySelectorAll('sup .cite'))) {
    const { source } = marker;
    // Beside the link, or it would be part of its name.
    if (source) marker.after(el('span', { className: 'tip' }, el('b', {}, where(source)), plain(source.snippet)));
  }
};

/** A snippet, which is Markdown cut anywhere, without most of its signs. @type {(snippet?: string) => string} */
const plain = (snippet = '') => `${snippet}`.replace(/`{3}\S*|[*`|]|-{3,}/g, '');

/** Saves the conversation as a file. @type {(panel: Panel) => void} */
const save = ({ session, strings }) => {
  const text = session.messages.map(({ role, content, ...rest }) => {
    const { source_chunks: sources = [], segments = [] } = rest;
    const ids = new Set(segments.flatMap(({ citations }) => citations));
    const cited = [...ids].flatMap(id => sources.filter(source => source.id === id));
    return role === 'user' ? `## ${content.replace(/\s+/g, ' ')}` : markdown({ ...rest, response: content }, cited);
  }).join('\n\n');
  const href = URL.createObjectURL(new Blob([`# ${strings.title}\n\n${text}\n`], { type: 'text/markdown' }));
  Object.assign(document.createElement('a'), { href, download: 'conversation.md' }).click();
  URL.revokeObjectURL(href);
};

/** This page's address with a question, cut to fit. @type {(text: string) => string} */
const address = text => {
  const url = `${location.origin}${location.pathname}?ask=${encodeURIComponent(text.toWellFormed())}`;
  return text && url.length > 2000 ? address(text.replace(/\s*\S{0,30}$/u, '')) : url;
};

/** An answer as Markdown with its cited sections, by their checked addresses. @type {(answer: Answer, cited: Source[]) => string} */
const markdown = ({ response, segments = [] }, cited) => {
  const text = segments.map(({ text, citations }) => {
    const end = text.trimEnd();
    const marks = cited.map(({ id }, at) => (citations.includes(id) ? `[${at + 1}]` : '')).join('');
    // Right after a fence or a table row it would be part of it.
    return end + (marks && (/```$|\|$/.test(end) ? '\n\n' : ' ') + marks) + text.slice(end.length);
  }).join('');
  const sources = cited.map((source, at) => {
    const { href } = /** @type {HTMLAnchorElement} */ (link(source.url, ''));
    const name = where(source).replace(/[[\]]/g, '\\$&');
    return `${at + 1}. ${href ? `[${name}](${href})` : name}`;
  });
  return `${el('p', {}, [text || response, '', ...sources].join('\n')).textContent}`.trim();
};

const LETTERS = /[^\s!-/:-@[-`{-~…]/g;

/** @type {(text: string) => string} */
const letters = text => (text.match(LETTERS) ?? []).join('');

/** Marks the part of a rendered quote that the mark, a part of its Markdown, has become. @type {(root: Node, segment: Segment) => void} */
export const emphasize = (root, segment) => {
  const mark = `${segment.mark}`.replace(/^([-*+] )?\[[ x]\] /i, '');
  const wanted = letters(render([{ text: mark, citations: [] }], () => '').textContent);
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  /** @type {[Text, number][]} */
  const places = [];
  let text = '';
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    for (const { 0: letter, index } of node.data.matchAll(LETTERS)) {
      text += letter;
      places.push([node, index]);
    }
  }
  if (!wanted) return;
  // The same letters may stand before it.
  let at = text.indexOf(wanted);
  for (let n = letters(segment.text.slice(0, Math.max(segment.text.indexOf(mark), 0))).split(wanted).length; n > 1; n--) {
    const next = text.indexOf(wanted, at + 1);
    if (next < 0) break;
    at = next;
  }
  if (at < 0) return;
  const [first, start] = places[at];
  const [last, end] = places[at + wanted.length - 1];
  for (const node of new Set(places.slice(at, at + wanted.length).map(([node]) => node))) {
    const range = new Range();
    range.selectNodeContents(node);
    // The sign that ends the sentence belongs to it.
    if (node === last) range.setEnd(node, end + 1 + node.data.slice(end + 1).search(/[\s\p{L}\p{N}]|$/u));
    if (node === first) range.setStart(node, start);
    range.surroundContents(el('mark'));
  }
};
