"""A page load loses nothing of the conversation, and what is stored is taken like a model's text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from widget import corpus
from widget.chat import ask, stored
from widget.pages import QUOTED, answer, of_segments, segment, source
from widget.standin import Site, checked, stream
from widget.test_hostile import SEEN
from widget.test_session import conversation, keep, said

Browse = Callable[..., Page]

TREE = """turn => [...turn.querySelectorAll('*')].map(node => [
  node.localName, node.className?.baseVal ?? node.className, node.getAttribute('href'), node.ariaLabel, node.title,
  node.ariaPressed, node.childElementCount ? '' : node.textContent].join('|'))"""

ANSWERS = {
    "whole": of_segments(
        segment("Run it. ", "2"),
        segment("It is quick. ", check="unconfirmed"),
        segment("Then sync.\n\n```sh\nuv sync\n```\n\n", "1"),
        follow_ups=["How do I sync?", "Timeouts"],
        searched_as={"query": "How do I lock", "reason": "corrected", "original": "How do I lokc"},
    ),
    "quoted": QUOTED,
    "partial": answer("Hm.", status="partial", partial_reason="left_open", citations=["1"], nearest=[source(3)]),
    "refused": answer("Nothing.", status="not_in_docs", source_chunks=[], nearest=[source(2)], follow_ups=["Locks"]),
    "greeting": answer("Hello.", status="not_in_docs", source_chunks=[], retrieval_used=False),
    "degraded": answer("So.", status="degraded", citations=["2"]),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_load_changes_nothing_that_is_shown(browse: Browse, site: Site, name: str) -> None:
    site.replies.append(checked(ANSWERS[name]))
    page = browse("/strict.html")
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    helpful = turn.get_by_role("button", name="Helpful", exact=True)
    helpful.click()
    expect(helpful).to_have_attribute("aria-pressed", "true")
    assert stored(page)["messages"][1]["rating"] == "up"
    page.wait_for_timeout(200)
    heads = page.locator(".head button").evaluate_all("all => all.map(node => node.title)")
    chips = page.locator(".chips").inner_text()
    before = [line for line in turn.evaluate(TREE) if "Thank you" not in line]
    page.reload()
    page.get_by_role("dialog").wait_for()
    turn.locator(".copy_answer").wait_for()
    page.wait_for_timeout(200)
    empty = "span|||||" + "|"
    after = turn.evaluate(TREE)
    assert [line for line in after if line != empty] == [line for line in before if line != empty]
    assert page.locator(".head button").evaluate_all("all => all.map(node => node.title)") == heads
    assert page.locator(".chips").inner_text() == chips
    expect(turn.get_by_text("Not in these docs")).to_have_count(int(name == "refused"))


def hostile_session(seed: int) -> dict[str, Any]:
    """Return a conversation that has hostile text wherever it can have text."""
    messages = []
    for segments in corpus.answers(12, seed=seed):
        text = "".join(segment["text"] for segment in segments) or "x"
        part = {"chapter": text, "section": text, "snippet": text, "url": text, "id": "1"}
        messages += [
            said("user", text),
            said(
                "assistant",
                text,
                segments=[*segments, segment(text, "1", kind="quote", mark=text[:30])],
                source_chunks=[part],
                nearest=[part],
                follow_ups=[text],
                status="partial",
                partial_reason=text,
                turn_id=text,
                mode=text,
                rating=text,
                searched_as={"query": text, "original": text, "reason": "corrected"},
                signature={"key_id": text},
            ),
        ]
    return conversation(*messages)


@pytest.mark.parametrize("seed", [5, 6])
def test_a_stored_conversation_that_means_harm_is_only_text(browse: Browse, site: Site, seed: int) -> None:
    page = browse("/strict.html")
    page.evaluate("sessionStorage.chapterverse_open = '1'")
    session = hostile_session(seed)
    keep(page, session)
    page.get_by_role("dialog").wait_for()
    expect(page.locator(".turn")).to_have_count(len([m for m in session["messages"] if m["role"] == "user"]))
    page.locator(".copy_answer").last.wait_for()
    for turn in page.locator(".turn").all():
        assert turn.evaluate(SEEN) == []
    expect(ask(page, "And now?").locator(".answered")).to_be_visible()
    # What the API would reject is not sent.
    assert all("signature" not in message for message in site.asked[0]["conversation_history"])
    assert page.evaluate("window.hacked") is None


VALUES: tuple[Any, ...] = (None, 5, True, "x", [], {}, [None], ["x"], [{}], {"length": 3}, [[]], [{"text": 5}])


def test_a_stored_conversation_of_any_types_does_no_harm(browse: Browse) -> None:
    whole = {**ANSWERS["whole"], "role": "assistant", "content": "Run it.", "partial_reason": "cut", "rating": "up"}
    page = browse()
    page.evaluate("sessionStorage.chapterverse_open = '1'")
    turns = [
        message
        for key in whole
        for value in VALUES[::2]
        for message in (said("user", key), {**whole, key: value})
        if key not in ("role", "timestamp", "content")
    ]
    for at in range(0, len(turns), 50):
        part = turns[at : at + 50]
        keep(page, conversation(*part))
        page.get_by_role("dialog").wait_for()
        expect(page.locator(".turn")).to_have_count(len(part) // 2)
        expect(page.locator(".copy_answer")).to_have_count(len(part) // 2)


@pytest.mark.parametrize(
    "view", [["sr", "x", 5], ["chip", {}, "a"], [["side"], ["x"], None], [None, "<b>x</b>", -1e9], [5, 5, 5], "wide"]
)
def test_a_stored_view_that_means_harm_is_a_view(browse: Browse, view: object) -> None:
    page = browse()
    page.evaluate("([view]) => Object.assign(sessionStorage, { chapterverse_view: view, chapterverse_open: '1' })",
                  [json.dumps(view)])  # fmt: skip
    page.reload()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert dialog.evaluate("node => node.className") in ("", "side", "wide")
    box = dialog.bounding_box()
    assert box
    assert box["width"] >= 400


@pytest.mark.parametrize("text", [*corpus.POLYGLOTS[:4], "a" * 2_000_000, "\ud800" * 9, "[" * 50_000])
def test_a_stored_passage_that_means_harm_is_looked_for_quickly(browse: Browse, text: str) -> None:
    page = browse("/strict.html#%")
    page.evaluate(
        "text => { sessionStorage.chapterverse_cited = text }", text.format(run="1", host="x") if "{" in text else text
    )
    page.reload()
    page.wait_for_timeout(600)
    assert page.evaluate("CSS.highlights.size") == 0
    expect(ask(page).locator(".answered")).to_be_visible()


def test_what_is_copied_and_saved_names_what_has_no_source(browse: Browse, site: Site) -> None:
    page = browse(permissions=["clipboard-read", "clipboard-write"])
    site.replies.append(checked(of_segments(segment("Run it. ", "1"), segment("It is quick.", check="unconfirmed"))))
    turn = ask(page)
    turn.get_by_role("button", name="Copy the answer").click()
    expect(turn.get_by_text("Copied", exact=True)).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == (
        f"Run it. [1] It is quick. [?]\n\n1. [Locking › Section 1]({site.url}/second.html#s1)\n\n"
        "[?] No source found for this"
    )


def test_a_question_without_an_answer_is_offered_again_after_a_load(browse: Browse, site: Site) -> None:
    page = browse()
    site.replies.append(stream(answer("Whole.")))
    ask(page, "First?").locator(".answered").wait_for()
    keep(page, conversation(said("user", "Lost?")))
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answered")).to_be_visible()
    assert [message["content"] for message in stored(page)["messages"]] == ["Lost?", "You asked: Lost?"]
