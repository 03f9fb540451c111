"""Proof of work in a browser: done silently, and reported like a limit where it can't be done."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from chapterverse_api.ext.work.proof_of_work import check_solution, make_challenge
from widget.chat import ask, open_chat
from widget.pages import answer
from widget.standin import Reply, Site, refused, stream

Browse = Callable[..., Page]
KEY, READER = b"0123456789abcdef" * 4, "c" * 32
QUESTION = "How do I lock?"


def asking_for_work() -> Reply:
    return refused(429, "Answer the challenge.", x_work=make_challenge(KEY, "docs", READER, time.time()))


def test_a_question_is_answered_after_the_work(browse: Browse, site: Site) -> None:
    site.replies.extend([asking_for_work(), stream(answer("Run `uv lock`.", citations=["1"]))])
    page = browse()
    open_chat(page)
    ask(page, QUESTION)
    expect(page.locator(".answered")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert site.asked[0] == site.asked[1]
    first, second = ({name.lower(): value for name, value in headers.items()} for headers in site.headers)
    assert "x-work" not in first
    assert check_solution(KEY, "docs", READER, second["x-work"], time.time()) is not None
    assert second["content-type"] == "application/json"


def test_a_rating_is_taken_after_the_work(browse: Browse, site: Site) -> None:
    site.receipts.append(asking_for_work())
    page = browse()
    open_chat(page)
    ask(page, QUESTION)
    thumb = page.locator(".turn").last.get_by_role("button", name="Helpful", exact=True)
    thumb.click()
    expect(thumb).to_have_attribute("aria-pressed", "true")
    assert len(site.opinions) == 2


@pytest.mark.parametrize("again", [False, True])
def test_where_the_work_does_not_help_the_limit_is_told(browse: Browse, site: Site, again: bool) -> None:
    site.replies.extend([asking_for_work()] * (1 + again))
    page = browse()
    if not again:
        # As on a page that came without encryption.
        page.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
        page.reload()
    open_chat(page)
    ask(page, QUESTION)
    expect(page.locator(".turn")).to_contain_text("Too many questions at once.")
    assert len(site.asked) == 1 + again


def test_the_work_is_loaded_only_where_it_is_wanted(browse: Browse, site: Site) -> None:
    page = browse()
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    site.replies.append(refused(429))
    open_chat(page)
    ask(page, QUESTION)
    expect(page.locator(".turn")).to_contain_text("Too many questions at once.")
    assert "panel.js" in loaded
    assert "work.js" not in loaded
