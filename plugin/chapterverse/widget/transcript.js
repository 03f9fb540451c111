// @ts-check
// Answers as Markdown, for the clipboard and for a file.
import { where } from './answer.js';
import { el, link } from './render.js';

/** An answer as Markdown with its cited sections, by their checked addresses. @type {(answer: Message, cited: Source[], strings: { unconfirmed: string }) => string} */
export const toMarkdown = ({ content, segments = [] }, cited, { unconfirmed }) => {
  const text = segments.map(({ text, citations, check }) => {
    const end = text.trimEnd();
    const marks = cited.map(({ id }, at) => (citations.includes(id) ? `[${at + 1}]` : '')).join('') + (check === 'unconfirmed' ? '[?]' : '');
    // Right after a fence or a table row it would be part of it.
    return end + (marks && (/```$|\|$/.test(end) ? '\n\n' : ' ') + marks) + text.slice(end.length);
  }).join('');
  const sources = cited.map((source, at) => {
    const { href } = /** @type {HTMLAnchorElement} */ (link(source.url, ''));
    const name = where(source).replace(/[[\]]/g, '\\$&');
    return `${at + 1}. ${href ? `[${name}](${href})` : name}`;
  });
  const doubt = segments.some(({ check }) => check === 'unconfirmed') ? [`\n[?] ${unconfirmed}`] : [];
  return `${el('p', {}, [text || content, '', ...sources, ...doubt].join('\n')).textContent}`.trim();
};

/** The conversation as Markdown. @type {(panel: Panel) => string} */
export const conversation = ({ session, strings }) => {
  const text = session.messages.map(message => {
    const { role, content, source_chunks: sources = [], segments = [] } = message;
    const ids = new Set(segments.flatMap(({ citations }) => citations));
    const cited = [...ids].flatMap(id => sources.filter(source => source.id === id));
    return role === 'user' ? `## ${content.replace(/\s+/g, ' ')}` : toMarkdown(message, cited, strings);
  }).join('\n\n');
  return `# ${strings.title}\n\n${text}\n`;
};

/** Saves the conversation as a file. @type {(panel: Panel) => void} */
export const saveAsMarkdown = panel => {
  const href = URL.createObjectURL(new Blob([conversation(panel)], { type: 'text/markdown' }));
  Object.assign(document.createElement('a'), { href, download: 'conversation.md' }).click();
  URL.revokeObjectURL(href);
};
