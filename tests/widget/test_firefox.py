"""The widget's security and session in Firefox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import browser_path
from widget import corpus
from widget.chat import check_session
from widget.conftest import WATCH
from widget.firefox import Firefox, Tab
from widget.pages import QUOTED, answer, page, source
from widget.standin import Site, checked, stream
from widget.test_hostile import HOSTILE, SEEN, batches
from widget.test_isolation import HIT, LATER, SHEETS
from widget.test_session import CORRUPT, FULL, REFUSED, SIGNATURE, conversation, said
from widget.test_stored import hostile_session

pytestmark = pytest.mark.browser

Browse = Callable[..., Tab]
StandIn = Callable[[str], None]
TURNS = "[...document.querySelector('chapter-verse').shadowRoot.querySelectorAll('.turn')]"


@pytest.fixture(scope="session")
def firefox(node: Path) -> Iterator[Firefox]:
    """A headless Firefox for the whole run. Where there is none, a test that needs it is skipped, or fails in CI."""
    running = Firefox(node, browser_path("firefox"))
    yield running
    running.close()


@pytest.fixture
def browse(firefox: Firefox, site: Site) -> Iterator[Browse]:
    """Open a page of the site. At the end no page has thrown, broken its policy or asked anybody else for anything."""
    tabs: list[Tab] = []

    def open_page(path: str = "/", script: str = "") -> Tab:
        tabs.append(firefox.open(site.url + path, WATCH + script))
        return tabs[-1]

    yield open_page
    violations = [violation for tab in tabs for violation in tab.evaluate("() => window.violations")]
    heard = [tab.close() for tab in tabs]
    assert violations == []
    assert [error for each in heard for error in each["thrown"]] == []
    assert [dialog for each in heard for dialog in each["dialogs"]] == []
    # Firefox reports a font of its own, which is in no file of ours.
    assert [url for each in heard for url in each["requests"] if not url.startswith((site.url, "data:font/"))] == []


def ask(tab: Tab, question: str) -> None:
    """Ask, and wait for the whole answer."""
    tab.click("textarea")
    tab.type(question)
    tab.press("Enter")
    tab.wait(".turn:last-of-type .answered")


def open_chat(tab: Tab) -> None:
    tab.click(".launcher")
    tab.wait("textarea")


def stored(tab: Tab) -> Any:
    return tab.evaluate("() => JSON.parse(sessionStorage.chatbot_session)")


def shown(tab: Tab) -> list[str]:
    """Return the text of each turn in the chat."""
    texts: list[str] = tab.evaluate(f"() => {TURNS}.map(turn => turn.textContent)")
    return texts


def test_a_hostile_answer_shows_only_what_is_allowed(browse: Browse) -> None:
    tab = browse("/strict.html")
    for batch in batches(corpus.RENDERS):
        assert tab.evaluate(HOSTILE, {"module": "/widget/panel.js", "answers": batch}) == []


def test_a_careless_page_is_caught(firefox: Firefox, site: Site) -> None:
    tab = firefox.open(f"{site.url}/strict.html", WATCH)
    with pytest.raises(RuntimeError, match="TypeError"):
        tab.evaluate("() => { document.body.innerHTML = '<img src=x onerror=alert(1)>'; }")
    tab.evaluate("() => { document.body.append(Object.assign(new Image(), { src: 'http://evil.example/' })); }")
    tab.evaluate("() => { setTimeout(() => { throw new Error('careless'); }); alert('seen'); }")
    assert len(tab.evaluate("() => new Promise(done => setTimeout(() => done(window.violations), 100))")) == 2
    heard = tab.close()
    assert heard["dialogs"] == ["seen"]
    assert any("careless" in error for error in heard["thrown"])
    assert heard["requests"][0] == f"{site.url}/strict.html"


def test_the_chat_works_under_a_strict_policy(browse: Browse, site: Site) -> None:
    tab = browse("/strict.html")
    open_chat(tab)
    for number, segments in enumerate(corpus.answers(5, seed=3)):
        text = "".join(segment["text"] for segment in segments) or "x"
        chunk = source(1, chapter=text, section=text, snippet=text[:200], url=text)
        reply = answer(text, citations=["1"], source_chunks=[chunk], nearest=[chunk], follow_ups=[text])
        reply["segments"] = [*segments, {"text": f"\n\nDone {number}.", "citations": ["1"]}]
        site.replies.append(stream(reply, *(text[at : at + 3] for at in range(0, len(text), 3))))
        ask(tab, f"{number}?")
        assert f"Done {number}." in shown(tab)[-1]
    assert tab.evaluate(f"() => {TURNS}.flatMap({SEEN})") == []
    assert tab.evaluate("() => window.hacked") is None


def test_a_session_is_kept_as_the_contract_says(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("Run `uv lock`.", citations=["1"], signature=SIGNATURE)))
    tab = browse()
    open_chat(tab)
    ask(tab, "How?")
    check_session(stored(tab), "Run `uv lock`.", SIGNATURE)


def test_the_conversation_and_the_open_panel_survive_a_navigation(browse: Browse, site: Site) -> None:
    tab = browse()
    open_chat(tab)
    ask(tab, "How?")
    tab.goto(f"{site.url}/second.html")
    tab.wait(".answered")
    assert "You asked: How?" in shown(tab)[0]


def test_tabs_do_not_mix(browse: Browse) -> None:
    first, second = browse(), browse()
    for tab, question in ((first, "First?"), (second, "Second?")):
        open_chat(tab)
        ask(tab, question)
    assert stored(first)["session_id"] != stored(second)["session_id"]
    assert stored(first)["messages"][0]["content"] == "First?"
    assert [len(shown(tab)) for tab in (first, second)] == [1, 1]


def test_at_most_50_messages_are_kept(browse: Browse) -> None:
    tab = browse()
    old = conversation(*(said(role, f"{n}") for n in range(30) for role in ("user", "assistant")))
    keep(tab, old)
    open_chat(tab)
    ask(tab, "The last?")
    assert len(stored(tab)["messages"]) == 50
    assert stored(tab)["messages"][-2]["content"] == "The last?"


def keep(tab: Tab, value: object) -> None:
    """Put something where the session belongs, and load the page again."""
    tab.evaluate(
        "it => { sessionStorage.setItem('chatbot_session', it); sessionStorage.removeItem('chapterverse_open'); }",
        value if isinstance(value, str) else json.dumps(value),
    )
    tab.reload()


def test_a_corrupt_session_does_no_harm(browse: Browse) -> None:
    tab = browse()
    for number, value in enumerate(CORRUPT):
        keep(tab, value)
        open_chat(tab)
        ask(tab, f"{number}?")
        assert f"You asked: {number}?" in shown(tab)[-1]


@pytest.mark.parametrize("trouble", [REFUSED, FULL], ids=["refused", "full"])
def test_the_chat_works_without_storage(browse: Browse, site: Site, trouble: str) -> None:
    tab = browse(script=trouble)
    open_chat(tab)
    ask(tab, "First?")
    ask(tab, "Second?")
    assert site.asked[1]["conversation_history"][0]["content"] == "First?"


@pytest.mark.parametrize("sheets", [[SHEETS["all"]], LATER.values()], ids=["all", "later"])
def test_style_sheets_of_the_page_neither_hide_nor_move_the_chat(
    browse: Browse, standin_page: StandIn, sheets: Iterable[str]
) -> None:
    standin_page(page(head=f"<style>{''.join(sheets)}</style>").html)
    tab = browse("/tagged.html")
    open_chat(tab)
    ask(tab, "How?")
    hit = f"() => ({HIT})(document.querySelector('chapter-verse').shadowRoot.querySelector('.send'))"
    assert tab.evaluate(hit)


def test_quotes_are_cards_with_the_answer_marked(browse: Browse, site: Site) -> None:
    site.replies.append(checked(QUOTED))
    tab = browse("/strict.html")
    open_chat(tab)
    ask(tab, "How?")
    tab.wait("mark")
    marked = f"() => {TURNS}.flatMap(turn => [...turn.querySelectorAll('.card')].map(card => ("
    marked += "[...card.querySelectorAll('mark')].map(mark => mark.textContent).join(''))))"
    assert tab.evaluate(marked) == [
        "Run uv lock to make a new one.",
        "Takes the newest version of every package that the other packages allow.",
    ]


def test_a_stored_conversation_that_means_harm_is_only_text(browse: Browse) -> None:
    tab = browse("/strict.html")
    tab.evaluate("it => { sessionStorage.setItem('chatbot_session', it); sessionStorage.chapterverse_open = '1'; }",
                 json.dumps(hostile_session(7)))  # fmt: skip
    tab.reload()
    tab.wait(".turn:last-of-type .copy_answer")
    assert tab.evaluate(f"() => {TURNS}.flatMap({SEEN})") == []
    assert tab.evaluate("() => window.hacked") is None
    ask(tab, "And now?")
