"""Handing a conversation to a person: what is sent is shown first, and leaves by the reader's own program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from widget.chat import ask
from widget.pages import answer
from widget.standin import Site, refused, stream
from widget.test_looks import faults

Browse = Callable[..., Page]
REFUSAL = stream(answer("Not in these docs.", status="not_in_docs", source_chunks=[]))
FORM = "https://forum.example.com/ask"


def opened(page: Page, question: str = "How do I lock?") -> Locator:
    """Ask what is refused, press "Ask a person", and return what is shown."""
    turn = ask(page, question)
    turn.get_by_role("link", name="Ask a person").click()
    box = turn.locator(".handoff")
    expect(box.get_by_role("textbox")).to_be_focused()
    return box


def followed(page: Page, link: Locator) -> None:
    """Follow a link that would leave the page, and stay."""
    page.evaluate("document.addEventListener('click', event => event.preventDefault(), { once: true })")
    link.click()


def copied(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_the_reader_sees_and_changes_a_mail_before_it_leaves(browse: Browse, site: Site) -> None:
    site.config["contact"] = "mailto:help@example.com"
    site.replies.append(REFUSAL)
    page = browse("/strict.html")
    box = opened(page)
    text = box.get_by_role("textbox", name="This is what you send.")
    shown = text.input_value()
    assert shown.startswith(f"{site.url}/strict.html\n\n# Ask the docs\n\n## How do I lock?\n\nNot in these docs.")
    send = box.get_by_role("link", name="Open in your mail program")
    mail = urlsplit(send.get_attribute("href") or "")
    fields = parse_qs(mail.query)
    assert (mail.scheme, mail.path, fields["subject"]) == ("mailto", "help@example.com", ["How do I lock?"])
    assert fields["body"][0].replace("\r\n", "\n").strip() == shown.strip()
    text.fill("Only this & that")
    assert parse_qs(urlsplit(send.get_attribute("href") or "").query)["body"] == ["Only this & that"]
    assert len(site.asked) == 1, "the chat itself sends nothing"


def test_what_is_too_long_for_a_link_is_copied_and_that_is_said(browse: Browse, site: Site) -> None:
    site.config["contact"] = "mailto:help@example.com?subject=Docs"
    site.replies.append(REFUSAL)
    page = browse(permissions=["clipboard-read", "clipboard-write"])
    box = opened(page)
    expect(box).not_to_contain_text("It is copied")
    long = "ä 😀\n" * 400
    box.get_by_role("textbox").fill(long)
    expect(box).to_contain_text("A link cannot carry this text. It is copied, and you paste it there.")
    send = box.get_by_role("link", name="Open in your mail program")
    expect(send).to_have_attribute("href", "mailto:help@example.com?subject=Docs&body=")
    followed(page, send)
    expect(page.locator("[aria-live=polite]")).to_have_text("Copied")
    assert copied(page) == long


def test_what_can_not_be_copied_is_selected_and_that_is_said(browse: Browse, site: Site) -> None:
    site.config["contact"] = FORM
    site.replies.append(REFUSAL)
    page = browse()
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as by plain HTTP
    box = opened(page)
    expect(box.get_by_role("status")).to_contain_text("It is copied")
    followed(page, box.get_by_role("link", name="Open the form"))
    expect(box.get_by_role("status")).to_have_text("Your browser did not allow copying.")


def test_a_mail_has_one_body_and_one_line_of_a_subject(browse: Browse, site: Site) -> None:
    site.config["contact"] = "mailto:help@example.com?body={text}"
    site.replies.append(REFUSAL)
    box = opened(browse(), "How do I\n\nlock?")
    box.get_by_role("textbox").fill("Please")
    send = box.get_by_role("link", name="Open in your mail program")
    expect(send).to_have_attribute("href", "mailto:help@example.com?body=Please&subject=How%20do%20I%20lock%3F")


def test_an_address_that_runs_is_not_offered(browse: Browse, site: Site) -> None:
    site.config["contact"] = "javascript:alert(1)"
    site.replies.append(REFUSAL)
    page = browse()
    turn = ask(page)
    turn.locator(".copy_answer, .status").first.wait_for()
    page.wait_for_load_state("networkidle")
    expect(turn.get_by_text("Ask a person")).to_have_count(0)


@pytest.mark.parametrize("place", ["", "?body={text}"])
def test_a_form_gets_the_text_in_its_place_or_by_the_clipboard(browse: Browse, site: Site, place: str) -> None:
    site.config["contact"] = FORM + place
    site.replies.append(REFUSAL)
    page = browse(permissions=["clipboard-read", "clipboard-write"])
    box = opened(page)
    send = box.get_by_role("link", name="Open the form")
    box.get_by_role("textbox").fill("Please & thanks")
    expect(send).to_have_attribute("href", f"{FORM}?body=Please%20%26%20thanks" if place else FORM)
    expect(send).to_have_attribute("rel", "noopener")
    followed(page, send)
    if not place:
        expect(page.locator("[aria-live=polite]")).to_have_text("Copied")
        assert copied(page) == "Please & thanks"


def test_it_is_offered_after_a_thumb_down_and_once(browse: Browse, site: Site) -> None:
    site.config["contact"] = FORM
    page = browse()
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    expect(turn.get_by_role("link", name="Ask a person")).to_have_count(0)
    for _ in range(2):
        turn.get_by_role("button", name="Not helpful").click()
        expect(turn.get_by_role("link", name="Ask a person")).to_have_count(1)


def test_escape_closes_it_and_a_second_press_too(browse: Browse, site: Site) -> None:
    site.config["contact"] = FORM
    site.replies.append(REFUSAL)
    page = browse()
    box = opened(page)
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    link = page.get_by_role("link", name="Ask a person")
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(box).to_be_visible()
    link.click()
    expect(box).to_have_count(0)


def test_without_a_contact_nothing_is_offered_and_nothing_loaded(browse: Browse, site: Site) -> None:
    site.replies += [REFUSAL, refused(500)]
    page = browse()
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    for _ in range(2):
        turn = ask(page)
        turn.locator(".status, .error").first.wait_for()
        expect(turn.get_by_role("link", name="Ask a person")).to_have_count(0)
    assert not [url for url in loaded if url.endswith("handoff.js")]


@pytest.mark.parametrize("path", ["/light.html", "/dark.html"])
@pytest.mark.parametrize("width", [1280, 320])
def test_axe_finds_nothing(browse: Browse, site: Site, path: str, width: int) -> None:
    site.config["contact"] = "mailto:help@example.com"
    site.replies.append(REFUSAL)
    page = browse(path, viewport={"width": width, "height": 700})
    box = opened(page)
    box.get_by_role("textbox").fill("x" * 3000)
    expect(box).to_contain_text("It is copied")
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder, f"handoff{path[1:-5]}{width}.png"))
    assert faults(page) == []
