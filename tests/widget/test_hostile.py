"""Hostile answers: nothing runs, nothing is sent elsewhere, and only allowed content is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Dialog, Page, expect

from chapterverse.widget import bundle
from widget import corpus, pages
from widget.chat import ask
from widget.pages import answer, source
from widget.standin import Site, stream

Browse = Callable[..., Page]
Answers = list[list[dict[str, Any]]]

HOSTILE = (Path(__file__).parent / "hostile.js").read_text("utf-8")
BATCH = 500


def batches(count: int, seed: int = 0) -> Iterator[Answers]:
    answers = corpus.answers(count, seed)
    while batch := list(islice(answers, BATCH)):
        yield batch


def findings(page: Page, answers: Answers, module: str = "/widget/panel.js") -> list[str]:
    """Render answers in the page, and tell what should not be there beside the answer that made it."""
    found = page.evaluate(HOSTILE, {"module": module, "answers": answers})
    texts = ["".join(segment["text"] for segment in segments) for segments in answers]
    return [f"{what}, from {texts[index]!r}" if index is not None else what for index, what in found]


def test_a_hostile_answer_shows_only_what_is_allowed(browse: Browse) -> None:
    page = browse("/strict.html")
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    for batch in batches(corpus.RENDERS):
        assert findings(page, batch) == []
    assert dialogs == []


def test_every_family_and_every_context_is_rendered() -> None:
    texts = ["".join(segment["text"] for segment in answer) for answer in corpus.answers(2000)]
    for context in corpus.CONTEXTS:
        start = context.split("{}")[0]
        assert any(start in text for text in texts), context
    for words in (
        "javascript:",
        "onerror",
        "&#",
        "\u202e",
        "__proto__",
        "https://evil.example/p.png?q=",
        "[[",
        "> > > > ",
    ):
        assert any(words in text for text in texts), words
    # A stream's prefixes stand one behind the other.
    assert sum(after.startswith(before) for before, after in pairwise(texts)) > 200


def test_payloads_of_others_are_rendered_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAPTERVERSE_PAYLOADS", str(tmp_path))
    with pytest.raises(ValueError, match=r"holds no \*\.txt"):
        list(corpus.answers(1))
    (tmp_path / "more.txt").write_text("<blink>theirs</blink>\n\n", "utf-8")
    texts = ["".join(segment["text"] for segment in answer) for answer in corpus.answers(50)]
    assert any("theirs" in text for text in texts)


HTML_SINK = "child instanceof Node ? node.append(child) : node.insertAdjacentHTML('beforeend', "

#: Renderers with one mistake each: what stands in the module, and what stands there instead.
MUTANTS = {
    "any protocol": ("!/^https?:$/.test(url.protocol)", "false"),
    "an address as it came": ("href: url.href", "href: address"),
    "credentials": ("url.username || url.password", "false"),
    "HTML": ("node.append(child instanceof Node ? child : ", HTML_SINK),
    "hidden characters": (r"\p{Bidi_C}", ""),
    "images": ("whole[0] === '!'", "whole[0] === '!' && out.push(el('img', { src: target }))"),
    "attributes": ("el('code', { className:", "el('code', { id: body.join(''), className:"),
    "language": (r"([\w.+#-]{0,32})", "(.*)"),
    "depth": ("depth > 11", "depth > 110"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_careless_renderer_is_caught(
    context: Callable[..., BrowserContext], site: Site, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    right, wrong = MUTANTS[name]
    text = Path(bundle.__file__).with_name("render.js").read_text("utf-8")
    assert text.count(right) == 1
    monkeypatch.setitem(pages.PAGES, "/mutant/render.js", pages.Page(text.replace(right, wrong)))
    # A page without a policy of its own: the tags must be seen, not stopped.
    monkeypatch.setitem(
        pages.PAGES, "/lax.html", pages.Page("<!doctype html><title>Lax</title><link rel=icon href=data:,>")
    )
    page = context().new_page()
    page.route("**/*", lambda route: route.continue_() if route.request.url.startswith(site.url) else route.abort())
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(f"{site.url}/lax.html")
    caught = any(findings(page, batch, "/mutant/render.js") for batch in batches(2000, seed=1))
    page.close()
    assert caught


def test_through_the_chat_hostile_answers_are_only_text(browse: Browse, site: Site) -> None:
    page = browse("/strict.html")
    for number, segments in enumerate(corpus.answers(12, seed=2)):
        text = "".join(segment["text"] for segment in segments) or "x"
        chunk = source(1, chapter=text, section=text, snippet=text[:200], url=text)
        reply = answer(text, citations=["1"], source_chunks=[chunk], nearest=[chunk], follow_ups=[text])
        reply["segments"] = [*segments, {"text": f"\n\nDone {number}.", "citations": ["1", "__proto__"]}]
        site.replies.append(stream(reply, *(text[at : at + 3] for at in range(0, len(text), 3))))
        turn = ask(page, f"Question {number}?")
        expect(turn.locator(".answered")).to_be_visible()
        expect(turn).to_contain_text(f"Done {number}.")
        assert turn.evaluate(SEEN) == []
    page.reload()
    expect(page.locator(".turn").last).to_contain_text("Done 11.")
    assert page.locator(".turn").last.evaluate(SEEN) == []
    assert page.evaluate("window.hacked") is None


#: Elements, handlers and addresses in a turn that no answer may bring.
SEEN = """turn => {
  const names = 'script style img iframe object embed form base meta link math template video input chapter-verse';
  return [...turn.querySelectorAll('*')].flatMap(node => [
    names.split(' ').includes(node.localName) && node.localName,
    ...[...node.attributes].map(({ name }) => /^(on|src|action|ping|background|xlink)/.test(name) && name),
    node.localName === 'a' && !/^https?:$/.test(node.protocol) && node.href,
  ]).filter(Boolean);
}"""
