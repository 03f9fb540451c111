"""Markdown as DOM nodes: supported syntax, plain text, and the time for hostile text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

Browse = Callable[..., Page]

RENDER = """async segments => {
  const { render } = await import('/widget/panel.js');
  const box = document.createElement('div');
  box.append(render(segments, index => `[${index}]`));
  for (const outer of [box, ...box.querySelectorAll('li, blockquote')]) {
    for (const child of [...outer.childNodes]) if (/^\\n+$/.test(child.data)) child.remove();
  }
  return box.innerHTML;
}"""


def rendered(page: Page, *texts: str | tuple[str, str]) -> str:
    """Render segments; one that is given as a pair is cited."""
    segments = [
        {"text": t, "citations": []} if isinstance(t, str) else {"text": t[0], "citations": ["1"]} for t in texts
    ]
    html: str = page.evaluate(RENDER, segments)
    return html


def pre(text: str, language: str = "text", mark: str = "") -> str:
    return f'<div class="code"><pre tabindex="0"><code class="language-{language}">{text}</code></pre>{mark}</div>'


def table(*rows: str) -> str:
    head, *body = rows
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table></div>"
    )


def aligned(name: str, side: str, text: str) -> str:
    return f'<{name} style="text-align: {side};">{text}</{name}>'


def link(url: str, text: str) -> str:
    return f'<a class="" href="{url}" title="a.org" target="_blank" rel="noopener noreferrer nofollow ugc">{text}</a>'


EVERYDAY = {
    # Paragraphs and lines
    "one\ntwo\n\nthree": "<p>one\ntwo</p><p>three</p>",
    "one  \ntwo\\\nthree": "<p>one<br>two<br>three</p>",
    "ends in C:\\\n\nand in two spaces  ": "<p>ends in C:\\</p><p>and in two spaces</p>",
    "a\r\nb\r\rc": "<p>a\nb</p><p>c</p>",
    # Emphasis, code
    "*a* _b_ **c** __d__": "<p><em>a</em> <em>b</em> <strong>c</strong> <strong>d</strong></p>",
    "***e***": "<p><em><strong>e</strong></em></p>",
    "**a *b***, *a **b***": "<p><strong>a <em>b</em></strong>, <em>a <strong>b</strong></em></p>",
    "snake_case_name, 2 * 3 * 4, **open": "<p>snake_case_name, 2 * 3 * 4, **open</p>",
    "**Note:** `**kwargs` and `*`": "<p><strong>Note:</strong> <code>**kwargs</code> and <code>*</code></p>",
    "**重要**です": "<p><strong>重要</strong>です</p>",
    "`` a ` b `` and ` ` ` x": "<p><code>a ` b</code> and <code> </code> ` x</p>",
    "`a\nb`": "<p><code>a\nb</code></p>",
    "f(*args, **kwargs)\n\n**/*.md": "<p>f(*args, **kwargs)</p><p>**/*.md</p>",
    "**a*b**, *a**b*": "<p><strong>a*b</strong>, <em>a**b</em></p>",
    "**重要：**です和**「重要」**です": "<p><strong>重要：</strong>です和<strong>「重要」</strong>です</p>",
    # Headings: the panel's title is an h2
    "# A\n## B ##\n### C\n#### D\n###### F": "<h3>A</h3><h4>B</h4><h5>C</h5><h6>D</h6><h6>F</h6>",
    "#hashtag\n####### seven": "<p>#hashtag\n####### seven</p>",
    "text\n# A": "<p>text</p><h3>A</h3>",
    "# C# and **F#**": "<h3>C# and <strong>F#</strong></h3>",
    # Rules and quotes
    "a\n\n---\n\n* * *": "<p>a</p><hr><hr>",
    "> a\n> > b\n>\n> c": "<blockquote><p>a</p><blockquote><p>b</p></blockquote><p>c</p></blockquote>",
    "> # A\n> - b": "<blockquote><h3>A</h3><ul><li>b</li></ul></blockquote>",
    "> a\nlazily\n\nb": "<blockquote><p>a\nlazily</p></blockquote><p>b</p>",
    "> ```\n> a\n> ```\nb": f"<blockquote>{pre('a')}</blockquote><p>b</p>",
    # Lists
    "- a\n- b\n\n- c": "<ul><li><p>a</p></li><li><p>b</p></li><li><p>c</p></li></ul>",
    "- a\n\n  ~~~\n  x\n  ~~~\n- b": f"<ul><li><p>a</p>{pre('x')}</li><li><p>b</p></li></ul>",
    "- a\n  ~~~\n  x\n\n  y\n  ~~~\n- b": f"<ul><li>a{pre('x' + chr(10) * 2 + 'y')}</li><li>b</li></ul>",
    "3. a\n4. b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "It was in\n1986. A year": "<p>It was in\n1986. A year</p>",
    "- a\n  - b\n    - c\n- d": (
        "<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ul>"
    ),
    "- a\n    - b": "<ul><li>a<ul><li>b</li></ul></li></ul>",
    "- a\n\t- b": "<ul><li>a<ul><li>b</li></ul></li></ul>",
    "1. a\n   wrapped\nlazily\n\n   more\n\nafter": (
        '<ol start="1"><li><p>a\nwrapped\nlazily</p><p>more</p></li></ol><p>after</p>'
    ),
    "text\n- a\n+ b": "<p>text</p><ul><li>a</li></ul><ul><li>b</li></ul>",
    "- a\n\n  ```sh\n  x\n    y\n  ```": f"<ul><li><p>a</p>{pre('x' + chr(10) + '  y', 'sh')}</li></ul>",
    "-not\n1.not": "<p>-not\n1.not</p>",
    # Fences
    "```python\na = 1\n\n# no *heading*\n```": pre("a = 1\n\n# no *heading*", "python"),
    "~~~\n```\n~~~\nb": pre("```") + "<p>b</p>",
    "````md\n```\nx\n```\n````": pre("```\nx\n```", "md"),
    "```js title=\"x\"\nunclosed": pre("unclosed", "js"),
    "```\n\tmake\n```": pre("\tmake"),
    "```<b>\nx\n```": pre("x"),
    # Tables
    "| a | b | c |\n| :-- | --: | :-: |\n| `x` | 2 | 3 | 4 |\n| one |\n\nafter": (
        table(
            "<th>a</th>" + aligned("th", "right", "b") + aligned("th", "center", "c"),
            "<td><code>x</code></td>" + aligned("td", "right", "2") + aligned("td", "center", "3"),
            "<td>one</td>",
        )
        + "<p>after</p>"
    ),
    "a | b\n--|--\n`x\\|y` | \\*": table("<th>a</th><th>b</th>", "<td><code>x|y</code></td><td>*</td>"),
    "text\n| a |\n| - |\n| b |": "<p>text</p>" + table("<th>a</th>", "<td>b</td>"),
    "a | b\n--- | --- | ---": "<p>a | b\n--- | --- | ---</p>",
    # Links
    "[a](https://a.org/x_(y) \"t\") <https://a.org/?q=1>.": (
        f"<p>{link('https://a.org/x_(y)', 'a')} {link('https://a.org/?q=1', 'https://a.org/?q=1')}.</p>"
    ),
    "见https://a.org/b。以及": f"<p>见{link('https://a.org/b', 'https://a.org/b')}。以及</p>",
    "(see https://a.org/b.)": f"<p>(see {link('https://a.org/b', 'https://a.org/b')}.)</p>",
    "[`list[int]`](/a#b)": '<p><a class="" href="{site}/a#b"><code>list[int]</code></a></p>',
    "[ ] [b] [c](d e) [f][g]": "<p>[ ] [b] [c](d e) [f][g]</p>",
    # Escapes, and what is not Markdown
    r"\*a\* \[b](c) \\ \x": r"<p>*a* [b](c) \ \x</p>",
    "<b>a</b> <!-- b -->": "<p>&lt;b&gt;a&lt;/b&gt; &lt;!-- b --&gt;</p>",
    "&lt;b&gt; &amp;lt; &#60; &copy &quot;": '<p>&lt;b&gt; &amp;lt; &amp;#60; &amp;copy "</p>',
    "`&lt;` \\&lt;": "<p><code>&amp;lt;</code> &amp;lt;</p>",
    "<script>alert(1)</script>": "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
    "![the *alt*](https://evil.example/x.png)": '<p><span class="">the <em>alt</em></span></p>',
    "a\u202eb\u2066c\x00d\ufdd01\ufdd1": "<p>abcd1</p>",
    "": "",
}  # fmt: skip


def test_everyday_markdown(browse: Browse, site: Any) -> None:
    page = browse()
    wrong = {}
    for text, html in EVERYDAY.items():
        got = rendered(page, text)
        if got != html.replace("{site}", site.url):
            wrong[text] = got
    assert wrong == {}


CITED = {
    (("One. ", ), ): "<p>One.[0]</p>",
    (("One. ", ), ("Two.", )): "<p>One.[0] Two.[1]</p>",
    (("**One", ), "** two"): "<p><strong>One[0]</strong> two</p>",
    (("**One.**", ), ("*two*", )): "<p><strong>One.</strong>[0]<em>two</em>[1]</p>",
    (("# One\n", ), ("two\n\n", )): "<h3>One[0]</h3><p>two[1]</p>",
    (("- a\n", ), ("- b\n", )): "<ul><li>a[0]</li><li>b[1]</li></ul>",
    (("```\na\n```\n", ), "b"): pre("a", mark="[0]") + "<p>b</p>",
    (("```\na", ), "\nb\n```"): pre("a\nb", mark="[0]"),
    ("```sh", ("\na\n```", )): pre("a", "sh", "[1]"),
    (("`a", ), "b` c"): "<p><code>ab</code>[0] c</p>",
    (("| a |\n|--|\n| b |\n", ), "| c |"): table("<th>a</th>", "<td>b [0]</td>", "<td>c</td>"),
    (("see https://a.org/b", ), "."): f"<p>see {link('https://a.org/b', 'https://a.org/b')}[0].</p>",
    (("[a](/b", ), ")"): '<p><a class="" href="{site}/b">a</a></p>',
}  # fmt: skip


def test_a_citation_stands_where_its_segment_ends(browse: Browse, site: Any) -> None:
    page = browse()
    wrong = {}
    for parts, html in CITED.items():
        got = rendered(page, *(part if isinstance(part, str) else (part[0], "") for part in parts))
        if got != html.replace("{site}", site.url):
            wrong[parts] = got
    assert wrong == {}


REFUSED_ADDRESSES = [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)",
    "\x01javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd",
    "blob:https://a.org/x", "mailto:a@b.c", "https://user:secret@a.org/", "https://a.org\\@b.org",
    "https://a.org/\u202ecod", "https://a.org/\u200b", "https://", "https://a.org/" + "x" * 2050, "", "about:blank",
    "ftp://a.org/",
]  # fmt: skip


def test_an_address_that_is_not_plain_http_is_no_link(browse: Browse) -> None:
    page = browse()
    program = """async addresses => {
      const { link } = await import('/widget/panel.js');
      return addresses.filter(address => link(address, '', 'x').localName !== 'span');
    }"""
    assert page.evaluate(program, [*REFUSED_ADDRESSES, None]) == []


HOSTILE = {
    "stars": "*a ", "stars closed": "*a* ", "star run": "*", "mixed": "*a _b ", "nested": "**a *b ",
    "closers": "a* b_ ", "underscores": "_", "brackets": "[", "closing brackets": "]", "links": "[a](",
    "link texts": "[a", "nested links": "[[a](b", "link spaces": "[a]( ", "link parentheses": "[a](b(c)",
    "link titles": '[a](b "', "images": "![", "ticks": "` `` ``` ", "growing ticks": "", "tick run": "`",
    "quotes": ">", "quote lines": "> a\n", "lists": "- ", "deep lists": "", "items": "- a\n", "numbers": "1. ",
    "tables": "|", "table rows": "| a |\n", "wide table": "", "rules": "- - ", "dashes": "-", "hashes": "#",
    "hash words": "# ", "fences": "```\n", "escapes": "\\", "angles": "<", "urls": "https://",
    "url dots": "https://a.", "spaces": " ", "spaced": "a ", "tabs": "\t", "newlines": "\n", "hard breaks": "a  \n",
    "marks": "\ufdd01\ufdd1", "entities": "&#", "backslash newlines": "\\\n", "surrogates": "\ud83d",
    "named entities": "&lt;", "lazy quotes": "> a\nb\n", "lazy items": "- a\nb\n",
    "loose items": "- a\n\n", "escaped pipes": "\\|", "closing hashes": "# # ", "spaces before hashes": "# a  #",
    "angled urls": "<https://a", "ticks of many lengths": "` `` ``` ```` ````` `````` ``````` ",
}  # fmt: skip


def hostile(name: str, size: int) -> str:
    if name == "growing ticks":
        return "a".join("`" * n for n in range(1, int((2 * size) ** 0.5)))
    if name == "deep lists":
        return "\n".join("  " * n + "- a" for n in range(int(size**0.5)))
    if name == "wide table":
        return "|a" * (size // 8) + "\n" + "|-" * (size // 8) + "\n" + "|b" * (size // 4)
    return (HOSTILE[name] * size)[:size]


#: Other work on the machine and a collection of garbage slow down one round; a quadratic method all of them.
ROUNDS = 8

TIME = """async text => {
  const { render } = await import('/widget/panel.js');
  const times = [0, 1, 2].map(() => {
    const start = performance.now();
    const nodes = render([{ text, citations: [] }], () => '');
    return [performance.now() - start, nodes];
  });
  let depth = 0;
  for (let node = times[0][1]; node; node = node.firstChild) depth++;
  return [Math.min(...times.map(([time]) => time)), depth];
}"""


def test_hostile_text_takes_linear_time_and_nests_no_deeper(browse: Browse) -> None:
    page = browse()
    slow, deep = {}, {}
    for name in HOSTILE:
        for _ in range(ROUNDS):
            (half, _), (full, depth) = (page.evaluate(TIME, hostile(name, size)) for size in (32_000, 64_000))
            # What takes a few milliseconds is measured too coarsely.
            if full < 20 or full <= 2.5 * half:
                break
        else:
            slow[name] = (half, full)
        if depth > 60:
            deep[name] = depth
    assert slow == {}
    assert deep == {}
