"""The page of a report: parsed as XML, and opened in a browser."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from playwright.sync_api import Request

from chapterverse.ext.report.document import make_document
from chapterverse.ext.report.rendering import write_page
from chapterverse.ext.report.turns import AskedTurn

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = ("</style><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "&lt; ]]> <!--", "\ufffe\x00\x1b")

#: One at the beginning of twenty years, and one on each of the last 400 days.
DAYS = ["2008-01-01", *(str(date(2026, 11, 28) + timedelta(n)) for n in range(400))]


def page(**fields: Any) -> str:
    turns = [
        AskedTurn(f"t{n}", f"r{n}", f"2026-10-{1 + n:02}T00:00:00Z", text, "refused" if n % 2 else "answered", (text,))
        for n, text in enumerate([*HOSTILE, "https://docs.example/serve/#port", "javascript:alert(1)"])
    ]
    return write_page(make_document(turns, None, ["A note."], lambda *_: None)[0] | fields)


def test_no_text_breaks_out_of_its_place() -> None:
    tree = ElementTree.fromstring(page().removeprefix("<!DOCTYPE html>"))
    assert {element.tag for element in tree.iter()}.isdisjoint({"script", "img", "iframe", "object"})
    assert [e.get("href") for e in tree.iter("a")] == ["https://docs.example/serve/#port"]
    text = "".join(tree.itertext())
    assert HOSTILE[0] in text
    assert HOSTILE[1] in text


def test_nothing_asked_and_a_single_day_are_pages_too() -> None:
    for turns in ([], [AskedTurn("t", "r", "2026-10-01T00:00:00Z", None, "answered")]):
        document, _ = make_document(turns, None, [], lambda *_: None)
        assert ElementTree.fromstring(write_page(document).removeprefix("<!DOCTYPE html>")).find("body") is not None


def test_a_time_of_all_history_has_no_line_of_a_million_days() -> None:
    turns = [AskedTurn(f"t{y}", "r", f"{y:04}-01-01T00:00:00Z", None, "answered") for y in (1, 2026, 9999)]
    document, _ = make_document(turns, None, [], lambda *_: None)
    assert len(document["days"]) == 3
    # The halves are those of the time, not of the days that are shown.
    turns = [AskedTurn(f"t{n}", f"r{n > 0}", f"{day}T00:00:00Z", None, "answered") for n, day in enumerate(DAYS)]
    document, _ = make_document(turns, None, [], lambda *_: None)
    assert document["groups"][0]["trend"] == {"before": 1, "after": 1}
    assert document["days"][0]["day"] == "2027-01-01"


def note_address(asked: list[str], request: Request) -> None:
    asked.append(request.url)


def test_a_browser_opens_it_as_a_file_and_axe_finds_nothing(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page())
    for scheme in ("light", "dark"):
        context = chromium.new_context(bypass_csp=True, color_scheme=scheme)
        opened = context.new_page()
        asked: list[str] = []
        opened.on("request", partial(note_address, asked))
        opened.goto(file.as_uri())
        opened.evaluate(AXE.read_text())
        found = opened.evaluate("axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] })")
        assert [f"{v['id']}: {v['nodes'][0]['target']}" for v in found["violations"]] == []
        assert asked == [file.as_uri()]
        context.close()


def test_its_own_policy_lets_its_style_through(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page())
    opened = chromium.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.goto(file.as_uri())
    assert opened.evaluate("getComputedStyle(document.querySelector('figure')).margin") == "0px"
    assert said == []
    opened.close()
