"""The report as a document: parsed as XML and as HTML, and opened in a browser."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

import pytest

from chapterverse_api.ext.evaluation.comparison import Bar, compare_runs
from chapterverse_api.ext.evaluation.report import (
    by_chapter,
    count_evidence,
    count_ranks,
    load_template,
    render,
    worst,
)
from chapterverse_api.ext.evaluation.runs import QuestionResult, Result, Run
from evaluation.made import answer, answered, refusal, row, run, silent, unanswerable

if TYPE_CHECKING:
    from playwright.sync_api import Browser


AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"

HOSTILE = (
    "</title></style><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- ]]> &lt; &amp;",
    "\u202egnorw",
)
ADDRESS = "javascript:alert(document.domain)//https://x"

ROWS = (
    row("first", 1, evidence=0.99),
    row("late", 7, page=(2,), evidence=0.6, refused=True),
    row("lost", None, expected=("gone/#away",), missing=("gone/#away",), chapter=None, evidence=0.3),
    unanswerable("shut", refused=True),
    unanswerable("open", refused=False, evidence=0.8),
)

ANSWERED = answered(
    row("first", 1, answer=answer(confidence=0.8, nuggets=2, contained=1)),
    row("late", 7, answer=answer("partial", 0.6, cited=())),
    unanswerable("shut", refused=True, answer=refusal()),
    row("away", 1, answer=answer("degraded", degraded="The model was away.")),
    row("after", 1),
    interrupted=True,
)


def document(run: Run, *bars: Bar, before: Run | None = None) -> str:
    return render(load_template(), run, bars, compare_runs(run, before, silent) if before else None)


def tree(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html)


def text(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


class Loads(HTMLParser):
    """A page's scripts, loads and links, by the standard library's HTML parser."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [
            (tag, name, value or "")
            for name, value in attrs
            if name.startswith("on") or name in ("src", "href", "srcset", "style", "action", "data")
        ]
        if tag in ("script", "link", "iframe", "img", "object", "embed", "form", "base"):
            self.found.append((tag, "", ""))


@pytest.fixture(scope="module")
def hostile() -> str:
    rows = [
        row(
            f"{evil}{i}", None, question=evil, expected=(evil, ADDRESS), missing=(ADDRESS,), chapter=evil,
            results=(Result(1, 0.5, ADDRESS, evil, evil, "page"),),
        )
        for i, evil in enumerate(HOSTILE)
    ]  # fmt: skip
    return document(run(*rows, warnings=HOSTILE))


def test_hostile_text_is_text(hostile: str) -> None:
    page = tree(hostile)
    shown = [text(element) for element in page.iter("bdi")]
    assert set(HOSTILE) <= set(shown)
    assert not list(page.iter("script"))
    assert Loads(hostile).found == []
    assert "49" not in "".join(shown)


def test_an_address_that_is_none_is_no_link(hostile: str) -> None:
    assert not list(tree(hostile).iter("a"))
    assert ADDRESS in [text(element) for element in tree(hostile).iter("bdi")]
    links = list(tree(document(run(*ROWS))).iter("a"))
    assert {link.get("href") for link in links} == {"https://tea.example/brew/#0"}


def test_control_characters_are_shown_as_missing() -> None:
    html = document(run(row("a\x00\x1b\x85\ufffe", 1, question="Why\x07?\n\tNow")))
    assert {text(e) for e in tree(html).iter("bdi")} >= {"a\ufffd\ufffd\ufffd\ufffd", "Why\ufffd?\n\tNow"}


def test_all_questions_are_there() -> None:
    rows = [row(f"q{i}", i % 12 or None, question=f"Question number {i}?") for i in range(300)]
    table = next(t for t in tree(document(run(*rows))).iter("table") if t.get("class") == "questions")
    assert [text(summary) for summary in table.iter("summary")] == [f"Question number {i}?" for i in range(300)]


def test_it_is_one_file_that_loads_nothing() -> None:
    html = document(run(*ROWS), Bar("mrr", 0.5), before=run(*ROWS[:2]))
    assert {(tag, name) for tag, name, _ in Loads(html).found} == {("a", "href")}
    assert not re.search(r"url\(|@import|@font-face", html)
    style = next(tree(html).iter("style")).text or ""
    policy = next(m.get("content", "") for m in tree(html).iter("meta") if m.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_what_is_pointed_at_is_there() -> None:
    page = tree(document(run(*ROWS), Bar("mrr", 0.5), before=run(*ROWS[:2])))
    ids = [e.get("id") for e in page.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    named = {name for e in page.iter() for name in (e.get("aria-labelledby") or "").split()}
    assert named
    assert named <= set(ids)


def test_figures_bars_and_differences_are_told() -> None:
    html = document(run(*ROWS), Bar("mrr", 0.5), Bar("refused", 0.5), before=run(row("first", 3), *ROWS[1:4]))
    said = " ".join(text(tree(html)).split())
    assert "Of 3 questions that the documentation answers, a right section came first for 1" in said
    assert "missed: mrr is 0.381, its bar 0.500" in said
    assert "met: refused is 0.500, its bar 0.500" in said
    assert "Compared over the 4 questions that both runs hold. Only in this one: 1." in said
    assert "better first: section at 3, now 1, ndcg@10 0.500, now 1.000" in said
    assert "Not refused, though the documentation doesn’t answer them open" not in said
    assert "What of open?" in said


def test_answers_are_told() -> None:
    html = document(ANSWERED, Bar("citation_validity", 1.0), Bar("caught@negation", 0.8))
    page = tree(html)
    said = " ".join(text(page).split())
    assert "By extractive: 1 answered, 1 partial, 1 not_in_docs, 1 degraded." in said
    assert "met: citation_validity is 1.000, its bar 1.000" in said
    assert "missed: caught@negation is –, its bar 0.800" in said
    assert "1 of 2 answers hold an expected fact" in said
    assert "Note: Interrupted: the figures of answers are those of the first 4 questions." in said
    assert "Answer, answered, confidence 0.800, 2 of 2 citations hold, 1 of 2 facts: Take 80 degrees." in said
    table = next(t for t in page.iter("table") if t.get("aria-labelledby") == "confidence-caption")
    assert [[text(cell) for cell in line if text(cell).strip()] for line in list(table.iter("tr"))[1:]] == [
        ["0.600", "0.000", "1"],
        ["0.800", "1.000", "1"],
    ]


def test_hostile_answers_are_text() -> None:
    rows = [row(f"q{i}", 1, answer=answer(text=evil)) for i, evil in enumerate(HOSTILE)]
    html = document(answered(*rows, generator=HOSTILE[0]))
    assert set(HOSTILE) <= {text(element) for element in tree(html).iter("bdi")}
    assert {tag for tag, _, _ in Loads(html).found} <= {"a"}


def test_a_run_without_answers_says_nothing_of_them() -> None:
    assert "citation_validity" not in document(run(*ROWS))


@pytest.mark.parametrize(
    "rows", [[row("a", 1)], [row("a", 1, answer=refusal())], [row("a", 1, answer=answer("degraded", degraded="x"))]]
)
def test_any_run_with_answers_has_a_report(rows: list[QuestionResult]) -> None:
    page = tree(document(answered(*rows, caught={})))
    assert "None" not in [text(cell) for cell in page.iter("td")]


@pytest.mark.parametrize("rows", [[row("a", 1)], [row("a", None)], [unanswerable("a", refused=True)]])
def test_any_run_has_a_report(rows: list[QuestionResult]) -> None:
    page = tree(document(run(*rows)))
    assert page.tag == "html"
    assert "None" not in [text(cell) for cell in page.iter("td")]


def test_chapters_and_questions_stand_in_the_order_of_their_need() -> None:
    rows = [
        row("a", 1, chapter="Good"),
        row("b", None, chapter="Bad"),
        row("c", 2, chapter="Bad"),
        row("d", 1, chapter=None),
    ]
    assert [(c.title, c.questions) for c in by_chapter(rows)] == [("Bad", 2), (None, 1), ("Good", 1)]
    assert [r.id for r in worst(rows)] == ["b", "c"]
    assert len(worst([row(str(i), None) for i in range(50)])) == 10


def test_without_jinja_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from chapterverse_api.ext.evaluation.report import load_template\n"
        "from chapterverse.errors import ConfigurationError\n"
        "try: load_template()\n"
        "except ConfigurationError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == 'A report needs Jinja, which is missing: pip install "chapterverse[eval]".\n', done.stderr


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, hostile: str) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    (folder / "report.html").write_text(document(run(*ROWS * 3), Bar("mrr", 0.5), before=run(*ROWS[:2])), "utf-8")
    (folder / "hostile.html").write_text(hostile, "utf-8")
    (folder / "answers.html").write_text(document(ANSWERED, before=ANSWERED), "utf-8")
    return folder


@pytest.mark.parametrize("name", ["report", "hostile", "answers"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_it_can_be_read_by_everyone(
    chromium: Browser, reports: Path, name: str, scheme: Literal["light", "dark"], width: int
) -> None:
    # What axe itself brings along would be stopped by the page's policy.
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto((reports / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] })")
    assert [f"{v['id']}: {v['nodes'][0]['target']}" for v in found["violations"]] == []
    context.close()


def test_its_own_policy_lets_its_style_through_and_nothing_else(chromium: Browser, reports: Path) -> None:
    context = chromium.new_context()
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    for name in ("report", "hostile"):
        page.goto((reports / f"{name}.html").as_uri())
        assert page.locator("main").evaluate("node => getComputedStyle(node).maxWidth") == "1088px"
    assert said == []
    assert [url.rpartition("/")[2] for url in asked] == ["report.html", "hostile.html"]
    context.close()


RUN = run(
    row("a", 1, evidence=1.0),
    row("b", 1, page=(1,), evidence=0.97),
    row("c", 3, page=(1,), evidence=0.5),
    row("d", 14, page=(2,), evidence=0.31),
    row("e", None, evidence=0.0),
    unanswerable("f", refused=True, evidence=0.02),
    unanswerable("g", refused=False, evidence=0.52),
)


def test_ranks_are_counted() -> None:
    counts = [row for row in count_ranks(RUN) if any(row[1:])]
    assert counts == [("1", 2, 3), ("2", 0, 1), ("3", 1, 0), ("11+", 1, 0), ("none", 1, 1)]
    assert [step for step, *_ in count_ranks(RUN)] == [*map(str, range(1, 11)), "11+", "none"]


def test_evidence_is_counted_by_twentieths() -> None:
    assert count_evidence(RUN) == [
        ("0.00 to 0.05", 1, 1),
        ("0.30 to 0.35", 1, 0),
        ("0.50 to 0.55", 1, 1),
        ("0.95 to 1.00", 2, 0),
    ]
