"""Code blocks in every highlighter's markup."""

from __future__ import annotations

import pytest

from chapterverse.model import Block, BlockKind
from chapterverse.readers.sections.html_page import read_fragment


def read(html: str) -> Block:
    sections = read_fragment(html, "T")
    assert [len(s.blocks) for s in sections] == [1]
    return sections[0].blocks[0]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<pre>a\n  b\n</pre>", "```\na\n  b\n```"),
        ('<pre><code class="language-py">x</code></pre>', "```py\nx\n```"),
        ('<pre class="language-c++"><code>x</code></pre>', "```c++\nx\n```"),
        ('<div class="language-py highlight"><pre><span></span><code>x</code></pre></div>', "```py\nx\n```"),
        (
            '<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>x\n</pre></div></div>',
            "```python\nx\n```",
        ),
        ('<div class="highlight-default"><div class="highlight"><pre>x</pre></div></div>', "```\nx\n```"),
        ('<div class="highlight highlight-source-shell"><pre>x</pre></div>', "```shell\nx\n```"),
        ('<pre class="mermaid"><code>graph LR; A--&gt;B</code></pre>', "```mermaid\ngraph LR; A-->B\n```"),
        (
            (
                '<div class="language-js"><button>Copy</button><span class="lang">js</span><pre class="shiki"><code>'
                '<span class="line">a</span>\n<span class="line">b</span></code></pre></div>'
            ),
            "```js\na\nb\n```",
        ),
        (
            (
                '<div class="language-js theme-code-block"><div class="codeBlockTitle_x">a.js</div><pre '
                'class="prism-code '
                'language-js"><code><div class="token-line">a<br></div><div '
                'class="token-line">b<br></div></code></pre></div>'
            ),
            '```js title="a.js"\na\nb\n```',
        ),
        (
            '<div class="highlight"><span class="filename">a "b".py</span><pre><code>x</code></pre></div>',
            "``` title=\"a 'b'.py\"\nx\n```",
        ),
        (
            (
                '<div class="highlight"><table class="highlighttable"><tr><th colspan="2" class="filename">'
                '<span class="filename">a.py</span></th></tr><tr><td class="linenos"><div '
                'class="linenodiv"><pre>1\n2</pre></div>'
                '</td><td class="code"><div><pre><span></span><code>a\n    '
                "b\n</code></pre></div></td></tr></table></div>"
            ),
            '``` title="a.py"\na\n    b\n```',
        ),
        ('<pre><span class="linenos">1</span>a\n<span class="linenos">2</span>b</pre>', "```\na\nb\n```"),
        (
            (
                '<div class="highlight"><table class="lntable"><tr><td class="lntd"><pre><code><span '
                'class="lnt">1</span></code>'
                '</pre></td><td class="lntd"><pre><code class="language-go">x</code></pre></td></tr></table></div>'
            ),
            "```go\nx\n```",
        ),
        ("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"),
        ("<pre>\n\n  a</pre>", "```\n\n  a\n```"),
        ("<pre>a\r\nb</pre>", "```\na\nb\n```"),
        (
            (
                '<div class="literal-block-wrapper"><div class="code-block-caption"><span>Cap</span><a '
                'class="headerlink" '
                'href="#c">¶</a></div><div class="highlight-sh"><pre>x</pre></div></div>'
            ),
            '```sh title="Cap"\nx\n```',
        ),
    ],
)
def test_fences(html: str, expected: str) -> None:
    block = read(html)
    assert block.kind is BlockKind.CODE
    assert block.text == expected
    assert block.text.startswith(f"{block.head}\n")
    assert block.text.endswith(f"\n{block.tail}")


def test_a_title_without_code_is_text() -> None:
    assert read('<div class="highlight"><span class="filename">a.py</span></div>').text == "a.py"


def test_an_empty_block_is_nothing() -> None:
    assert read_fragment("<pre><code>\n \n</code></pre>", "T") == ()
