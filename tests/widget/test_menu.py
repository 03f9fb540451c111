"""The page's menu: its Markdown, other assistants, and the MCP server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from widget import pages
from widget.chat import ask
from widget.pages import answer
from widget.standin import Site, stream
from widget.test_actions import CLIPBOARD, clipboard, live
from widget.test_looks import faults

Browse = Callable[..., Page]

MARKDOWN = "# Locking\n\nRun `uv lock`.\n"
ALTERNATE = '<link rel="alternate" type="text/markdown" href="/locking/index.md">'
PICTURES = Path(__file__).parents[1] / "artifacts" / "widget"


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Put up a page with Markdown beside it, and an API that may be an MCP server. Return the page's path."""

    def put(*, mcp: bool = True, head: str = ALTERNATE) -> str:
        monkeypatch.setitem(pages.PAGES, "/described.html", pages.page(head))
        monkeypatch.setitem(pages.PAGES, "/locking/index.md", pages.Page(MARKDOWN))
        monkeypatch.setitem(pages.PAGES, "/v1/status", pages.Page(json.dumps({"mcp": mcp})))
        return "/described.html"

    return put


@pytest.fixture(autouse=True)
def assistants(site: Site) -> None:
    """Other assistants are off by default."""
    site.config["menu"] = {"chatgpt": True, "claude": True}


def opened(page: Page) -> Locator:
    """Open the menu, which is there after an answer, and return it."""
    ask(page).locator(".copy_answer").wait_for()
    page.get_by_role("button", name="This page elsewhere").click()
    menu = page.locator(".menu")
    menu.wait_for()
    return menu


def asked(link: Locator) -> str:
    """Return the words that a link takes along."""
    (text,) = parse_qs(urlsplit(str(link.get_attribute("href"))).query)["q"]
    return text


def test_the_menu_hands_the_page_on(browse: Browse, site: Site, described: Callable[..., str]) -> None:
    page = browse(described(), **CLIPBOARD)
    menu = opened(page)
    expect(menu.get_by_role("button", name="Copy the address of the MCP server")).to_be_visible()
    names = ["Copy as Markdown", "Open in ChatGPT", "Open in Claude", "Copy the address of the MCP server"]
    assert menu.locator(":scope > *").all_inner_texts() == names
    for name, host in (("ChatGPT", "chatgpt.com"), ("Claude", "claude.ai")):
        link = menu.get_by_role("link", name=f"Open in {name}")
        assert urlsplit(str(link.get_attribute("href"))).netloc == host
        assert asked(link) == f"Read {site.url}/locking/index.md and help me with it."
        assert (link.get_attribute("target"), "noreferrer" in str(link.get_attribute("rel"))) == ("_blank", True)
    menu.get_by_role("button", name="Copy as Markdown").click()
    expect(live(page)).to_have_text("Copied")
    expect(menu).to_have_count(0)
    assert clipboard(page) == MARKDOWN
    page.locator(".icon.page").click()
    menu.get_by_role("button", name="MCP").click()
    page.wait_for_function("async url => await navigator.clipboard.readText() === url", arg=f"{site.url}/mcp")


def test_a_page_without_markdown_is_handed_on_by_its_address(
    browse: Browse, site: Site, described: Callable[..., str]
) -> None:
    page = browse(described(mcp=False, head="") + "?secret=1#part")
    menu = opened(page)
    assert menu.locator(":scope > *").all_inner_texts() == ["Open in ChatGPT", "Open in Claude"]
    assert asked(menu.get_by_role("link", name="Claude")) == f"Read {site.url}/described.html and help me with it."


def test_each_entry_can_be_switched_off(browse: Browse, site: Site, described: Callable[..., str]) -> None:
    path = described()
    names = {"copy": "Copy as Markdown", "chatgpt": "Open in ChatGPT", "claude": "Open in Claude"}
    for entry, name in names.items():
        site.config["menu"] = {"chatgpt": True, "claude": True, entry: False, "mcp": False}
        menu = opened(page := browse(path))
        assert menu.locator(":scope > *").all_inner_texts() == [n for n in names.values() if n != name]
    for off in (False, "false", dict.fromkeys([*names, "mcp"], False)):
        site.config["menu"] = off
        page = browse(path)
        ask(page).locator(".copy_answer").wait_for()
        assert page.get_by_role("button", name="This page elsewhere").count() == 0


def test_no_other_assistant_is_offered_unless_the_owner_says_so(
    browse: Browse, site: Site, described: Callable[..., str]
) -> None:
    del site.config["menu"]
    menu = opened(browse(described()))
    menu.get_by_role("button", name="MCP").wait_for()
    assert menu.locator(":scope > *").all_inner_texts() == ["Copy as Markdown", "Copy the address of the MCP server"]


def test_a_menu_that_stays_empty_goes(browse: Browse, site: Site, described: Callable[..., str]) -> None:
    site.config["menu"] = {"copy": False, "chatgpt": False, "claude": False}
    page = browse(described(mcp=False))
    ask(page).locator(".copy_answer").wait_for()
    page.get_by_role("button", name="This page elsewhere").click()
    expect(page.locator(".icon.page")).to_have_count(0)


def test_the_menu_works_by_keyboard(browse: Browse, described: Callable[..., str]) -> None:
    page = browse(described())
    ask(page).locator(".copy_answer").wait_for()
    button = page.get_by_role("button", name="This page elsewhere")
    button.focus()
    page.keyboard.press("Enter")
    menu = page.locator(".menu")
    menu.get_by_role("button", name="MCP").wait_for()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(menu.get_by_role("button", name="Copy as Markdown")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("button", name="MCP")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(menu.get_by_role("link", name="Open in ChatGPT")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Enter")
    menu.wait_for()
    page.get_by_role("textbox", name="Ask a question").click()
    expect(menu).to_have_count(0)


def test_a_page_that_can_not_be_copied_says_so(browse: Browse, described: Callable[..., str]) -> None:
    page = browse(described(head='<link rel="alternate" type="text/markdown" href="/missing.md">'), **CLIPBOARD)
    opened(page).get_by_role("button", name="Copy as Markdown").click()
    expect(live(page)).to_have_text("Your browser did not allow copying.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_menu_is_accessible(browse: Browse, site: Site, described: Callable[..., str], scheme: Any) -> None:
    page = browse(described())
    page.evaluate("scheme => document.documentElement.style.colorScheme = scheme", scheme)
    site.replies.append(stream(answer("The docs don't say.", status="not_in_docs")))
    turn = ask(page, "Why is the sky blue?")
    turn.locator(".copy_answer").wait_for()
    assert turn.get_by_role("link", name="Open in").count() == 0
    page.get_by_role("button", name="This page elsewhere").click()
    page.locator(".menu").get_by_role("button", name="MCP").wait_for()
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"menu-{scheme}.png")
    assert faults(page) == []
