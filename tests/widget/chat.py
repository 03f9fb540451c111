"""A reader's actions in the chat."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from playwright.sync_api import Locator, Page

#: Whether the tab remembers the chat as open; storage may be refused.
WAS_OPEN = "(() => { try { return Boolean(sessionStorage.chapterverse_open) } catch { return false } })()"


def open_chat(page: Page) -> Locator:
    """Open the chat with its button."""
    page.get_by_role("button", name="Ask the docs").click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


def ask(page: Page, question: str = "How do I lock?") -> Locator:
    """Ask, and return the turn that the question made."""
    dialog = page.get_by_role("dialog")
    if page.evaluate(WAS_OPEN):
        # After a reload it opens by itself, which takes a moment.
        dialog.wait_for()
    elif not dialog.is_visible():
        open_chat(page)
    page.get_by_role("textbox", name="Ask a question").fill(question)
    page.keyboard.press("Enter")
    return page.locator(".turn").last


def stored(page: Page) -> dict[str, Any]:
    """Return the session as the tab keeps it."""
    session: dict[str, Any] = page.evaluate("JSON.parse(sessionStorage.chatbot_session)")
    return session


def check_session(session: dict[str, Any], response: str, signature: object) -> None:
    """Check the browser's stored turn against the contract."""
    assert session.keys() == {"session_id", "messages", "created_at"}
    assert UUID(session["session_id"]).version == 4
    question, reply = session["messages"]
    assert question.keys() == {"role", "content", "timestamp"}
    always = {"role", "content", "timestamp", "mode", "source_chunks", "segments", "status", "turn_id", "signature"}
    assert always <= reply.keys()
    assert reply.keys() <= always | {"nearest", "follow_ups", "searched_as", "partial_reason", "rating"}
    assert (reply["content"], reply["signature"]) == (response, signature)
