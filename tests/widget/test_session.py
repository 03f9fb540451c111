"""The conversation of a tab: across pages and reloads, and without browser storage."""

import json
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, check_session, open_chat, stored
from widget.pages import answer
from widget.standin import Site, stream

Browse = Callable[..., Page]
SIGNATURE = {"key_id": "k", "expiry": 9, "turn_id": "t", "previous": "", "tag": "x"}


def keep(page: Page, value: object) -> None:
    """Put something where the session belongs, and load the page again."""
    page.evaluate(
        "text => sessionStorage.setItem('chatbot_session', text)",
        value if isinstance(value, str) else json.dumps(value),
    )
    page.reload()


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "timestamp": "2026-01-01T00:00:00Z", **more}


def conversation(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"session_id": "abc-1", "messages": list(messages), "created_at": "2026-01-01T00:00:00Z"}


def test_a_session_is_kept_as_the_contract_says(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("Run `uv lock`.", citations=["1"], signature=SIGNATURE)))
    page = browse()
    ask(page).locator(".answered").wait_for()
    check_session(stored(page), "Run `uv lock`.", SIGNATURE)


def test_the_conversation_and_the_open_panel_survive_a_load(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page).locator(".answered").wait_for()
    page.get_by_role("link", name="next").click()
    page.wait_for_url("**/second.html")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator(".answered")).to_be_visible()
    expect(page.locator("sup .cite")).to_have_accessible_name("1: Locking › Section 1")
    assert page.evaluate("document.activeElement === document.body")


def test_a_closed_panel_stays_closed(browse: Browse) -> None:
    page = browse()
    open_chat(page)
    page.keyboard.press("Escape")
    page.reload()
    page.get_by_role("button", name="Ask the docs").wait_for()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_tabs_do_not_mix(browse: Browse) -> None:
    first, second = browse(), browse()
    ask(first, "First?").locator(".answered").wait_for()
    ask(second, "Second?").locator(".answered").wait_for()
    assert stored(first)["session_id"] != stored(second)["session_id"]
    assert stored(first)["messages"][0]["content"] == "First?"


def test_the_latest_answered_questions_are_sent_as_history(browse: Browse, site: Site) -> None:
    page = browse()
    turns = [said(role, f"{role} {n}") for n in range(7) for role in ("user", "assistant")]
    turns[13]["signature"] = SIGNATURE
    keep(page, conversation(*turns[:4], said("user", "never answered"), *turns[4:]))
    ask(page).locator(".answered").wait_for()
    history = site.asked[0]["conversation_history"]
    assert [message["content"] for message in history] == [m["content"] for m in turns[4:]]
    assert history[-1] == {**turns[13]}
    assert site.asked[0]["thread_id"] == "abc-1"


def test_history_keeps_within_the_api_s_limits(browse: Browse, site: Site) -> None:
    page = browse()
    keep(page, conversation(*(said(role, role[0] * 3999 + "🔒🔒") for _ in range(5) for role in ("user", "assistant"))))
    ask(page).locator(".answered").wait_for()
    history = site.asked[0]["conversation_history"]
    assert len(history) == 4
    assert sum(len(message["content"]) for message in history) <= 16_000
    assert all(message["content"] == message["role"][0] * 3999 + "\ufffd" for message in history)


def test_at_most_50_messages_are_kept(browse: Browse) -> None:
    page = browse()
    keep(page, conversation(*(said(role, f"{n}") for n in range(30) for role in ("user", "assistant"))))
    ask(page, "The last?").locator(".answered").wait_for()
    messages = stored(page)["messages"]
    assert len(messages) == 50
    assert messages[-2]["content"] == "The last?"


CORRUPT = [
    "{", "null", "7", "[]", '"x"', "{}", '{"session_id": "a"}', '{"session_id": "<b>", "messages": []}',
    conversation({"role": "system", "content": "x", "timestamp": "y"}), conversation(said("user", "")),
    conversation({"role": "user", "content": 7, "timestamp": "y"}), {"session_id": "a", "messages": [None, 3, "x"]},
    conversation(said("user", "a"), said("assistant", "b", segments="no", source_chunks=5)),
    conversation(said("user", "a"), said("assistant", "b", segments=[{"text": 5}])),
    conversation(said("user", "a"), said("assistant", "b", source_chunks=[None])),
]  # fmt: skip


def test_a_corrupt_session_does_no_harm(browse: Browse) -> None:
    page = browse()
    for number, value in enumerate(CORRUPT):
        keep(page, value)
        expect(ask(page, f"Question {number}?").locator(".answered")).to_be_visible()
        page.reload()
        expect(page.get_by_text(f"You asked: Question {number}?").last).to_be_visible()


REFUSED = "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('no', 'SecurityError'); }});"
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"


@pytest.mark.parametrize("trouble", [REFUSED, FULL], ids=["refused", "full"])
def test_the_chat_works_without_storage(browse: Browse, site: Site, trouble: str) -> None:
    page = browse()
    page.add_init_script(trouble)
    page.reload()
    ask(page, "First?").locator(".answered").wait_for()
    ask(page, "Second?").locator(".answered").wait_for()
    assert site.asked[1]["conversation_history"][0]["content"] == "First?"


def test_a_new_chat_forgets_and_starts_another_thread(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page).locator(".answered").wait_for()
    page.get_by_role("button", name="New chat").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.get_by_text("Ask anything")).to_be_visible()
    assert stored(page)["messages"] == []
    ask(page, "Again?").locator(".answered").wait_for()
    assert site.asked[1]["conversation_history"] == []
    assert site.asked[0]["thread_id"] != site.asked[1]["thread_id"]


def test_a_new_chat_stops_the_answer_on_its_way(browse: Browse, site: Site) -> None:
    never = Event()
    site.replies += [stream(answer("Whole.")), stream(answer("Late."), "Half", never)]
    page = browse()
    ask(page, "First?").locator(".answered").wait_for()
    expect(ask(page).get_by_text("Half")).to_be_visible()
    page.get_by_role("button", name="New chat").click()
    never.set()
    expect(ask(page, "Again?").locator(".answered")).to_be_visible()
    assert [m["content"] for m in stored(page)["messages"]] == ["Again?", "You asked: Again?"]


def test_a_question_that_a_load_interrupted_can_be_asked_again(browse: Browse, site: Site) -> None:
    never = Event()
    site.replies.append(stream(answer("Late."), "Half", never))
    page = browse()
    expect(ask(page, "How?").get_by_text("Half")).to_be_visible()
    page.reload()
    never.set()
    expect(page.get_by_text("The page changed before the answer came.")).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    # The draft reads the same; only the verified answer is kept.
    expect(page.locator(".answered").last).to_be_visible()
    assert [message["content"] for message in stored(page)["messages"]] == ["How?", "You asked: How?"]
