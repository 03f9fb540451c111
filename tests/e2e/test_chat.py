"""A reader on real sites: asks, reads the answer, follows its citation, asks again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.sites import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

MATERIAL = "{name: material, font: false, features: [navigation.instant]}"
# Its highlighter comes from another origin, which a test can't and a reader shouldn't have to ask.
STOCK = "{name: mkdocs, highlightjs: false}"
SITES = [
    pytest.param(MATERIAL, "mkdocs", id="material"),
    pytest.param(STOCK, "mkdocs", id="stock"),
    pytest.param(STOCK, "properdocs", id="properdocs"),
]
QUESTION = "How do I rotate a signing key?"


def ask(page: Page, question: str) -> None:
    """Ask in the open panel and wait for the verified answer."""
    turns = page.locator(".turn").count()
    page.locator("chapter-verse textarea").fill(question)
    page.locator("chapter-verse textarea").press("Enter")
    turn = page.locator(".turn").nth(turns)
    turn.locator(".copy_answer, .status.error").first.wait_for()


def open_chat(page: Page) -> None:
    page.locator("chapter-verse .launcher").last.click()
    page.locator("chapter-verse textarea").wait_for()


@pytest.mark.parametrize(("theme", "generator"), SITES)
def test_a_question_is_answered_and_its_citation_leads_to_the_heading(
    served: Callable[[str, str], Site], visit: Callable[[str], Page], theme: str, generator: str
) -> None:
    site = served(theme, generator)
    page = visit(f"{site.url}/")
    open_chat(page)
    ask(page, QUESTION)

    turn = page.locator(".turn").last
    assert "harbor keys rotate" in turn.inner_text()
    source = turn.locator("a.crumb").first
    assert "Keys › Rotating a signing key" in source.inner_text()

    source.click()
    page.wait_for_url("**/guide/keys/#rotating-a-signing-key")
    heading = page.locator("#rotating-a-signing-key")
    heading.wait_for()
    # The conversation is still there, and the panel is still open.
    page.locator("chapter-verse textarea").wait_for()
    assert QUESTION in page.locator(".turn").first.inner_text()


def test_material_navigates_instantly_and_the_panel_stays(
    served: Callable[[str, str], Site], visit: Callable[[str], Page]
) -> None:
    site = served(MATERIAL, "mkdocs")
    page = visit(f"{site.url}/")
    page.evaluate("window.sameDocument = true")
    open_chat(page)
    ask(page, QUESTION)
    page.locator(".turn a.crumb").first.click()
    page.locator("#rotating-a-signing-key").wait_for()
    assert page.evaluate("window.sameDocument") is True


def test_what_the_docs_do_not_say_is_refused(served: Callable[[str, str], Site], visit: Callable[[str], Page]) -> None:
    page = visit(f"{served(MATERIAL, 'mkdocs').url}/")
    open_chat(page)
    ask(page, "Which vaccine do I need for Thailand?")
    assert page.locator(".turn .status.not_in_docs").count() == 1


def test_a_selection_is_answered(served: Callable[[str, str], Site], visit: Callable[[str], Page]) -> None:
    page = visit(f"{served(STOCK, 'mkdocs').url}/guide/docks/")
    page.get_by_text("A dock receives crates").first.select_text()
    page.locator("chapter-verse .offer").click()
    page.locator("chapter-verse textarea").wait_for()
    ask(page, "Which port does a dock listen on?")
    turn = page.locator(".turn").last
    assert "7007" in turn.inner_text()
    assert turn.locator("a.crumb").count() == 1


def test_a_session_survives_a_full_navigation_in_the_contract_s_form(
    served: Callable[[str, str], Site], visit: Callable[[str], Page]
) -> None:
    site = served(STOCK, "mkdocs")
    page = visit(f"{site.url}/")
    open_chat(page)
    ask(page, QUESTION)
    page.goto(f"{site.url}/guide/docks/")
    page.locator(".turn a.crumb").first.wait_for()
    session = json.loads(page.evaluate("sessionStorage.getItem('chatbot_session')"))
    assert set(session) == {"session_id", "messages", "created_at"}
    assert [m["role"] for m in session["messages"]] == ["user", "assistant"]
    assert session["messages"][1]["source_chunks"][0]["url"].startswith(site.url)


@pytest.mark.parametrize(("theme", "generator"), SITES)
def test_every_anchor_of_the_index_is_in_the_built_page(
    served: Callable[[str, str], Site], theme: str, generator: str
) -> None:
    from chapterverse.model import Scope
    from chapterverse.settings import Settings
    from chapterverse.store import open_store

    site = served(theme, generator)
    store = open_store(Settings(store=f"edge:{site.folder.parent / 'index'}"))
    urls = {point.chunk.url for point in store.snapshot(Scope("harbor")).points()}
    assert any("#" in url for url in urls)
    for url in urls:
        path, _, anchor = url.removeprefix("https://harbor.example/docs/").partition("#")
        html = (site.folder / path / "index.html").read_text()
        assert not anchor or re.search(rf'id="{re.escape(anchor)}"', html), url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_our_own_documentation_answers_and_is_pictured(
    served: Callable[[str, str], Site], visit: Callable[..., Page], scheme: str
) -> None:
    page = visit(f"{served('ours', 'mkdocs').url}/", color_scheme=scheme, reduced_motion="reduce")
    open_chat(page)
    ask(page, "What happens when the answer is not in the docs?")
    assert page.locator(".turn .answered").count() == 1
    assert page.locator(".turn a.crumb").count() >= 1
    page.locator(".thread").evaluate("thread => thread.scrollTo(0, thread.scrollHeight)")
    picture = Path(__file__).parents[1] / "artifacts" / f"chat-{scheme}.png"
    picture.parent.mkdir(exist_ok=True)
    page.screenshot(path=picture)
