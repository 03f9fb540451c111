"""What is cut from a page because only a password opens it."""

from __future__ import annotations

import base64
import os

import pytest

from chapterverse.readers.html.metadata import cut_ciphertext
from growth import assert_linear


def cipher(size: int = 100) -> str:
    return ";".join(base64.b64encode(os.urandom(each)).decode() for each in (16, size))


@pytest.mark.parametrize(
    "element",
    [
        '<div id="mkdocs-encrypted-content" style="display:none">{}</div>',
        '<div id="protected" style="color:red;display:none !important">\n{}\n</div>',
        "<template hidden>{}</template>",
        '<SPAN class=x hidden="">{}</SPAN>',
    ],
)
def test_ciphertext_and_the_scripts_with_its_keys_are_cut(element: str) -> None:
    page = "<h1>Rates</h1>{}<script>var keys = ['{}'];</script><p>Open.</p>"
    cut = {cut_ciphertext(page.format(element.format(cipher()), cipher())) for _ in range(3)}
    assert cut == {"<h1>Rates</h1><p>Open.</p>"}


@pytest.mark.parametrize(
    "content",
    [
        "<p>Text.</p><script>x()</script>",
        f"<pre>{cipher()}</pre>",
        '<div style="display:none">A text that a button opens.</div><script>x()</script>',
        '<div style="display:none"><p>abcdefghijklmnopqrstuvwxyz</p></div>',
        "<div hidden>short</div>",
    ],
)
def test_anything_else_stays(content: str) -> None:
    assert cut_ciphertext(content) == content


@pytest.mark.parametrize(
    "piece", ["<div hidden", "<div hidden>aaaaaaaaaaaaaaaaaaaa;", "<div style=display:", "<script", " hidden"]
)
def test_it_takes_linear_time(piece: str) -> None:
    assert_linear(lambda count: cut_ciphertext("<i hidden>" + "a" * 20 + "</i>" + piece * count), 4_000, 32_000)
