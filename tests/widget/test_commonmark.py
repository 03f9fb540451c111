"""The renderer against markdown-it, CommonMark's reference in Python, on everyday Markdown.

What differs on purpose is left out of the comparison: headings begin at h3 and skip no level, code and tables are
boxed, an unnamed language is `text`, columns start where the language does unless they say otherwise, and a short row
of a table is not filled up. What differs because the renderer is small counts as different, and is

- an indented block: it is a paragraph, as models indent by mistake more often than to show code;
- reference links, which stay text; a title in parentheses or single quotes; entities but five;
- a run of four or more stars; more than eight ticks; a heading by a line below it;
- emphasis next to words without spaces between them, which ends where the writer of Chinese or Japanese meant it to;
- what goes on lazily with a heading or a table; bare addresses, which are links here.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from markdown_it import MarkdownIt
from playwright.sync_api import Page

from widget.everyday import document

#: How many documents are compared, and the share that must agree.
DOCUMENTS = int(os.environ.get("CHAPTERVERSE_DOCUMENTS", "1500"))
AGREE = 0.98

COMPARE = r"""async pairs => {
  const { render } = await import('/widget/panel.js');
  const shape = (node, into = []) => {
    for (const child of node.childNodes) {
      const name = child.nodeName.toLowerCase().replace(/^h\d/, 'heading');
      if (child.nodeType === 3) {
        if (node.localName === 'code' && node.parentNode.localName === 'pre') into.push(child.data.trimEnd());
        else into.push(child.data.replace(/[ \n\t]+/g, ' '));
      } else if (child.className === 'code' || child.className === 'scroll') shape(child, into);
      else {
        const traits = [name === 'a' && child.href, child.start > 1 && child.start,
          child.style.textAlign.replace('left', ''),
          /^language-(?!text)([\w.+#-]{1,32})/.exec(child.className)?.[1]];
        while (name === 'tr' && !child.lastChild?.firstChild) child.lastChild.remove();
        if (name !== 'tbody' || child.firstChild) into.push([name, ...traits.filter(Boolean), tidy(shape(child))]);
      }
    }
    return into;
  };
  const BLOCK = /^(p|h\d|ul|ol|blockquote|pre|hr|table|thead|tbody|li|tr|td|th|br)$/;
  const tidy = parts => {
    const out = [];
    for (const part of parts) {
      if (typeof part === 'string' && typeof out.at(-1) === 'string') out[out.length - 1] += part;
      else out.push(part);
    }
    const edge = part => part === undefined || (Array.isArray(part) && BLOCK.test(part[0]));
    return out.map((part, index) => {
      if (typeof part !== 'string') return part;
      let text = part.replace(/ +/g, ' ');
      if (edge(out[index - 1])) text = text.replace(/^ /, '');
      if (edge(out[index + 1])) text = text.replace(/ $/, '');
      return text;
    }).filter(part => part !== '');
  };
  const different = [];
  for (const [index, [text, html]] of pairs.entries()) {
    const box = document.createElement('div');
    box.append(render([{ text, citations: [] }], () => ''));
    // The boxes of a task list are an extension of it.
    const ours = JSON.stringify(tidy(shape(box))).replaceAll('☐ ', '[ ] ').replaceAll('☑ ', '[x] ');
    const theirs = JSON.stringify(tidy(shape(new DOMParser().parseFromString(html, 'text/html').body)));
    if (ours !== theirs) different.push([index, ours, theirs]);
  }
  return different;
}"""


def test_everyday_documents_are_what_commonmark_says(browse: Callable[..., Page]) -> None:
    reference = MarkdownIt("commonmark", {"html": False}).enable("table")
    texts = [document(seed) for seed in range(DOCUMENTS)]
    different = browse().evaluate(COMPARE, [[text, reference.render(text)] for text in texts])
    shown = "\n\n".join(f"{texts[index]!r}\nours   {ours}\ntheirs {theirs}" for index, ours, theirs in different[:5])
    assert len(different) <= (1 - AGREE) * DOCUMENTS, f"{len(different)} of {DOCUMENTS} differ, such as\n{shown}"
