"""A reader's actions on an answer: copy it, share its question, edit the question, ask again."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from widget.chat import ask, stored
from widget.pages import answer, source
from widget.standin import Site, stream

Browse = Callable[..., Page]

CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}
#: What the browser says where a site may not write to the clipboard.
REFUSED = "void (navigator.clipboard.writeText = () => Promise.reject(new DOMException('no', 'NotAllowedError')))"


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def live(page: Page) -> Locator:
    return page.locator("[aria-live=polite]")


def copied(page: Page, turn: Locator) -> str:
    """Copy the answer, and return it as it reached the clipboard."""
    turn.get_by_role("button", name="Copy the answer").click()
    expect(turn.get_by_text("Copied", exact=True)).to_be_visible()
    expect(live(page)).to_have_text("Copied")
    return clipboard(page)


def test_an_answer_is_copied_as_markdown_with_the_sections_that_it_cites(browse: Browse, site: Site) -> None:
    page = browse(**CLIPBOARD)
    reply = answer(
        "Run `uv lock`. ",
        "Then `uv sync`.\n\nDone.",
        citations=["3", "1"],
        source_chunks=[source(n) for n in (1, 2, 3)],
    )
    reply["segments"][0]["citations"] = ["3", "9"]
    site.replies.append(stream(reply))
    assert copied(page, ask(page)) == (
        "Run `uv lock`. [1] Then `uv sync`.\n\nDone. [1][2]\n\n"
        f"1. [Locking › Section 3]({site.url}/second.html#s3)\n"
        f"2. [Locking › Section 1]({site.url}/second.html#s1)"
    )


def test_a_mark_never_becomes_part_of_a_fence_or_a_table(browse: Browse, site: Site) -> None:
    page = browse(**CLIPBOARD)
    reply = answer("```sh\nuv lock\n```\n\n", "| a |\n|---|\n| b |\n\n", "Done.", source_chunks=[source(1)])
    for segment in reply["segments"][:2]:
        segment["citations"] = ["1"]
    site.replies.append(stream(reply))
    assert copied(page, ask(page)).startswith(
        "```sh\nuv lock\n```\n\n[1]\n\n| a |\n|---|\n| b |\n\n[1]\n\nDone.\n\n1. [Locking"
    )


def test_what_is_copied_means_no_harm(browse: Browse, site: Site) -> None:
    page = browse(**CLIPBOARD)
    chunk = source(1, url="javascript:alert(1)", chapter="A\x1b]0;x\x07 [b](https://evil.example)", section=None)
    site.replies.append(stream(answer("Run \x1b[2J\u202eit\x00.", citations=["1"], source_chunks=[chunk])))
    text = copied(page, ask(page))
    assert text == "Run [2Jit. [1]\n\n1. A\\]0;x \\[b\\](https://evil.example)"


def test_an_answer_without_citations_is_copied_without_sections(browse: Browse, site: Site) -> None:
    page = browse(**CLIPBOARD)
    site.replies += [stream(answer("Hm.\n", status="not_in_docs")), stream(answer("Hm?", segments=[]))]
    assert copied(page, ask(page)) == "Hm."
    assert copied(page, ask(page)) == "Hm?"


def test_tools_are_there_again_after_a_load(browse: Browse) -> None:
    page = browse(**CLIPBOARD)
    ask(page).locator(".answered").wait_for()
    page.reload()
    assert copied(page, page.locator(".turn").last).startswith("You asked: How do I lock? [1]\n\n1. [Locking")


@pytest.mark.parametrize("name", ["Copy the answer", "Copy a link", "Copy"])
@pytest.mark.parametrize("refusal", [REFUSED, "Object.defineProperty(navigator, 'clipboard', { value: undefined })"])
def test_a_clipboard_that_is_refused_is_told(browse: Browse, site: Site, name: str, refusal: str) -> None:
    page = browse()
    page.evaluate(refusal)
    site.replies.append(stream(answer("```\nuv lock\n```")))
    turn = ask(page)
    turn.get_by_role("button", name=name, exact=name == "Copy").click()
    expect(turn.get_by_text("Your browser did not allow copying.")).to_be_visible()
    expect(live(page)).to_have_text("Your browser did not allow copying.")


def test_copying_leaves_the_focus_on_its_button(browse: Browse) -> None:
    page = browse(**CLIPBOARD)
    turn = ask(page)
    button = turn.get_by_role("button", name="Copy the answer")
    button.focus()
    page.keyboard.press("Enter")
    expect(turn.get_by_text("Copied", exact=True)).to_be_visible()
    expect(button).to_be_focused()


def shared(page: Page, turn: Locator) -> str:
    turn.get_by_role("button", name="Copy a link to this question").click()
    expect(turn.get_by_text("Copied", exact=True)).to_be_visible()
    return clipboard(page)


def test_a_question_is_shared_as_a_link_that_asks_it(browse: Browse, site: Site) -> None:
    page = browse("/second.html?utm_source=x#s2", **CLIPBOARD)
    link = shared(page, ask(page, "How do I lock & sync + 100 %?\nAt once?"))
    assert link == f"{site.url}/second.html?ask=How%20do%20I%20lock%20%26%20sync%20%2B%20100%20%25%3F%0AAt%20once%3F"
    page.evaluate("sessionStorage.clear()")
    page.goto(link)
    expect(page.locator(".answered")).to_be_visible()
    assert [query["query"] for query in site.asked] == ["How do I lock & sync + 100 %?\nAt once?"] * 2


@pytest.mark.parametrize(
    "question",
    ["lock everything " * 200, "ロック" * 700, "🔒" * 1500, "x" * 4000, "a b " * 1000],
    ids=lambda text: text[:3],
)
def test_a_link_is_never_longer_than_servers_take(browse: Browse, question: str) -> None:
    page = browse(**CLIPBOARD)
    link = shared(page, ask(page, question))
    assert 1700 < len(link) <= 2000
    text = page.evaluate("link => new URL(link).searchParams.get('ask')", link)
    assert question.startswith(text)
    assert text.endswith(("lock", "everything", "ロック"[len(text) % 3 - 1], "🔒", "x", "a", "b"))


EDIT = "Edit the question"


def test_editing_a_question_takes_its_turn_and_all_behind_it_away(browse: Browse, site: Site) -> None:
    page = browse()
    field = page.get_by_role("textbox", name="Ask a question")
    for question in ("one", "two", "three"):
        ask(page, question).locator(".answered").wait_for()
    turn = page.locator(".turn").nth(1)
    turn.locator(".asked").hover()
    turn.get_by_role("button", name=EDIT).click()
    expect(field).to_have_value("two")
    expect(field).to_be_focused()
    expect(page.locator(".turn")).to_have_count(3)
    page.keyboard.type(" and a half")
    page.keyboard.press("Enter")
    expect(page.locator(".answered")).to_have_count(2)
    expect(page.locator(".asked")).to_contain_text(["one", "two and a half"])
    assert [message["content"] for message in stored(page)["messages"] if message["role"] == "user"] == [
        "one",
        "two and a half",
    ]
    assert [message["content"] for message in site.asked[-1]["conversation_history"]] == ["one", "You asked: one"]
    ask(page, "four").locator(".answered").wait_for()
    expect(page.locator(".turn")).to_have_count(3)


@pytest.mark.parametrize("how", ["Escape", "press"])
def test_an_edit_that_is_given_up_leaves_everything_as_it_was(browse: Browse, how: str) -> None:
    page = browse()
    field = page.get_by_role("textbox", name="Ask a question")
    ask(page, "one").locator(".answered").wait_for()
    turn = page.locator(".turn")
    edit = turn.get_by_role("button", name=EDIT)
    field.fill("a draft")
    plain = turn.locator(".asked").evaluate("asked => getComputedStyle(asked).outlineStyle")
    edit.focus()
    page.keyboard.press("Enter")
    expect(edit).to_have_attribute("aria-pressed", "true")
    assert turn.locator(".asked").evaluate("asked => getComputedStyle(asked).outlineStyle") != plain
    if how == "Escape":
        page.keyboard.press("Escape")
    else:
        edit.click()
    expect(edit).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(field).to_have_value("a draft")
    field.fill("two")
    field.press("Enter")
    expect(page.locator(".answered")).to_have_count(2)
    field.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_one_question_is_edited_at_a_time(browse: Browse) -> None:
    page = browse()
    for question in ("one", "two"):
        ask(page, question).locator(".answered").wait_for()
    expect(page.get_by_role("button", name=EDIT)).to_have_count(2)
    first, second = page.get_by_role("button", name=EDIT).all()
    second.focus()
    page.keyboard.press("Enter")
    first.focus()
    page.keyboard.press("Enter")
    expect(second).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("textbox", name="Ask a question")).to_have_value("one")
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(1)


def test_a_new_chat_forgets_an_edit(browse: Browse) -> None:
    page = browse()
    ask(page, "one").locator(".answered").wait_for()
    page.get_by_role("button", name=EDIT).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="New chat").click()
    ask(page, "two").locator(".answered").wait_for()
    ask(page, "three").locator(".answered").wait_for()
    assert [message["content"] for message in stored(page)["messages"]][::2] == ["two", "three"]


def test_an_edit_brings_the_selected_text_back(browse: Browse, site: Site) -> None:
    page = browse()
    page.locator("#p1").dblclick(position={"x": 30, "y": 8})
    page.get_by_role("button", name="Ask about this").click()
    page.locator("form q").wait_for()
    ask(page, "What?").locator(".answered").wait_for()
    page.get_by_role("button", name=EDIT).focus()
    page.keyboard.press("Enter")
    expect(page.locator("form q")).to_be_visible()
    page.get_by_role("textbox", name="Ask a question").press("Enter")
    expect(page.locator(".answered")).to_have_count(1)
    page.wait_for_function("document.querySelector('chapter-verse').shadowRoot.querySelector('.answered')")
    assert [query["selected_text"] for query in site.asked] == ["Paragraph"] * 2


def test_a_selection_goes_with_a_question_that_is_sent_before_it_is_shown(browse: Browse, site: Site) -> None:
    page = browse()

    def continue_late(route: Route) -> None:
        sleep(1)
        route.continue_()

    page.route("**/turns.js", continue_late)
    page.locator("#p1").dblclick(position={"x": 30, "y": 8})
    page.get_by_role("button", name="Ask about this").click()
    # On a busy machine it takes a moment, and the button of the chat is gone in the middle of it.
    page.get_by_role("dialog").wait_for()
    ask(page, "What?").locator(".answered").wait_for()
    assert [query["selected_text"] for query in site.asked] == ["Paragraph"]
    page.locator(".copy_answer").wait_for()
    expect(page.locator("form q")).to_have_count(0)
    ask(page, "And then?").locator(".answered").wait_for()
    assert "selected_text" not in site.asked[1]


def test_the_pencil_shows_on_hover_and_on_focus_and_always_on_touch(browse: Browse) -> None:
    opacity = "button => getComputedStyle(button).opacity"
    page = browse()
    pencil = ask(page).get_by_role("button", name=EDIT)
    assert pencil.evaluate(opacity) == "0"
    pencil.focus()
    assert pencil.evaluate(opacity) == "1"
    page.get_by_role("textbox", name="Ask a question").focus()
    page.locator(".asked").hover()
    assert pencil.evaluate(opacity) == "1"
    touch = browse(has_touch=True, is_mobile=True, viewport={"width": 320, "height": 640})
    pencil = ask(touch).get_by_role("button", name=EDIT)
    assert pencil.evaluate(opacity) == "1"
    expect(pencil).to_be_in_viewport(ratio=1)


def test_suggestions_stand_below_the_latest_answer_alone(browse: Browse, site: Site) -> None:
    page = browse()
    site.replies.append(stream(answer("One.", follow_ups=["How do I sync?", "What is a lock?"])))
    ask(page).locator(".answered").wait_for()
    expect(page.get_by_text("Ask next")).to_be_visible()
    page.get_by_role("button", name="How do I sync?").click()
    expect(page.locator(".answered")).to_have_count(2)
    expect(page.get_by_text("Ask next")).to_be_hidden()
    expect(page.get_by_role("button", name="What is a lock?")).to_be_hidden()
    assert [query["query"] for query in site.asked] == ["How do I lock?", "How do I sync?"]


WRONG: tuple[Any, ...] = (None, "", 5, True, {"a": 1}, "x", [None], [5, {"a": 1}, ["y"]], [[]], [" "])


def test_suggestions_of_the_wrong_type_do_no_harm(browse: Browse, site: Site) -> None:
    page = browse()
    for value in WRONG:
        site.replies.append(stream(answer("One.", follow_ups=value)))
        ask(page).locator(".answered").wait_for()
        expect(page.locator(".turn").last.get_by_role("button", name="Copy the answer")).to_be_visible()
    texts = page.locator(".next .chip").all_text_contents()
    assert texts == ["x"]


def test_every_tool_is_large_enough_for_a_finger(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("```\nuv lock\n```", follow_ups=["More?"])))
    turn = ask(browse())
    turn.get_by_role("button", name="Helpful", exact=True).wait_for()
    buttons = turn.get_by_role("button").all()
    assert len(buttons) == 7
    for button in buttons:
        box = button.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 24
