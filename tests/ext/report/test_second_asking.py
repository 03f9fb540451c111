"""Questions that are asked again, by the command and after a build."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from chapterverse.indexing.additions import find_documents
from chapterverse.indexing.index_run import Site, update_index
from chapterverse.indexing.options import Options
from chapterverse.readers.built_site import read_site
from chapterverse.settings import Settings
from chapterverse_api.ext.conversations.records import StoredTurn
from chapterverse_api.ext.conversations.table import RecordsTable, sqlite_database
from ext.conversations.test_forget_command import run
from ext.report.made import CACHE, PORT, report, turn, write_log, write_site
from fakes.openai_server import KEY, OpenAIServer
from fakes.s3_server import shared
from fakes.secrets import secret

pytestmark = pytest.mark.usefixtures("published")

BASE = "https://docs.example/"
PORT_QUESTION, CACHE_QUESTION = "how do I choose the port", "how do I invalidate a cache"


def change_docs(folder: Path, *, serve: bool) -> None:
    """Publish the docs with one of their two pages."""
    for name in ("serve", "deploy"):
        (folder / "docs" / name / "index.html").unlink(missing_ok=True)
    write_site(folder / "new")
    name = "serve" if serve else "deploy"
    (folder / "new" / name / "index.html").rename(folder / "docs" / name / "index.html")
    shutil.rmtree(folder / "new")
    assert run("index", "docs", "--base-url", "https://docs.example/", "-q")[0] == 0


def test_asking_again_names_what_closed_and_broke_and_an_unchanged_index_is_not_asked(tmp_path: Path) -> None:
    change_docs(tmp_path, serve=False)
    refused = turn(1, PORT_QUESTION, "not_in_docs", [PORT])
    log = write_log(tmp_path / "log", refused, turn(2, CACHE_QUESTION, "answered", [CACHE]))
    again = report("--log", log, "--ask-again")["asked_again"]
    # Readers may have got a model's answer, so only its own count.
    assert again == {
        "first": "Of 0 questions that were asked again: 0 closed, 0 changed, 0 broke. For the first time 2 were asked.",
        "closed": [],
        "changed": [],
        "broke": [],
    }
    unchanged = report("--log", log, "--ask-again")["asked_again"]
    assert unchanged == {"first": "The index is that of the last time, so nothing was asked again."}
    (kept,) = Settings().local_folder.glob("asked-*.json")
    assert not [
        word for word in ("port?", "choose the", "cache", "stay for") if word in kept.read_text().replace("-cache", "")
    ]
    assert kept.stat().st_mode & 0o777 == 0o600
    change_docs(tmp_path, serve=True)
    # Nothing is kept, so nothing is lost, if a result can't be written.
    assert run("report", "--log", log, "--ask-again", "--gaps", "nowhere/g.md")[0] == 1
    assert run("report", "--log", log, "--ask-again", "--gaps", "gaps.md")[0] == 0
    page = (tmp_path / "chapterverse-report.html").read_text()
    assert "Gaps that closed" in page
    assert "Answers that broke" in page
    change_docs(tmp_path, serve=False)
    again = report("--log", log, "--ask-again")["asked_again"]
    assert [row["question"] for row in again["closed"]] == [CACHE_QUESTION]
    assert [row["question"] for row in again["broke"]] == [PORT_QUESTION]
    assert run("report", "--log", log, "--ask-again", "--markdown")[0] == 0
    # What is not in the report any more is not kept any more.
    report("--log", write_log(tmp_path / "log", refused), "--ask-again")
    assert len(json.loads(kept.read_text())["rows"]) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", '{"index": 1, "rows": {"a": {"sections": null}}}', '{"index": "", "rows": [[1]]}']
)
def test_what_was_kept_and_cannot_be_read_is_made_anew(tmp_path: Path, text: str) -> None:
    log = write_log(tmp_path / "log", turn(1, PORT_QUESTION))
    report("--log", log, "--ask-again")
    (kept,) = Settings().local_folder.glob("asked-*.json")
    kept.write_text(text)
    assert "For the first time 1 were asked" in report("--log", log, "--ask-again")["asked_again"]["first"]


def test_without_texts_nothing_is_asked_again(tmp_path: Path) -> None:
    again = report("--log", write_log(tmp_path / "log", turn(1)), "--ask-again")["asked_again"]
    assert again["first"].startswith("Nothing was asked again, because no text of a question is known")


def test_what_is_asked_is_masked_and_answers_of_a_part_of_the_system_are_neither_compared_nor_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "log", turn(1, f"My name is Jane Roe, {PORT_QUESTION}"))
    with OpenAIServer() as server:
        monkeypatch.setenv("CHAPTERVERSE_OPENAI_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("CHAPTERVERSE_EMBEDDER", "openai:text-embedding-3-small")
        assert run("index", "docs", "--base-url", BASE, "-q")[0] == 0
        server.history.clear()
        report("--log", log, "--ask-again")
        sent = str([request.body for request in server.history])
    assert PORT_QUESTION in sent
    assert "Jane" not in sent
    (kept,) = Settings().local_folder.glob("asked-*.json")
    kept.unlink()
    code, _, err = run("report", "--log", log, "--ask-again", "--json")
    assert code == 1
    assert "Error: The questions can't be asked again now: The embedder could not be reached" in err
    assert not any(json.loads(kept.read_text())["rows"].values())


class Said:
    """A log of a build."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, message: str, /) -> None:
        self.lines.append(message)

    def warning(self, message: str, /) -> None:
        self.lines.append(f"warning: {message}")

    def debug(self, message: str, /, *, exc_info: bool) -> None: ...


def build(settings: Settings, said: Said) -> str:
    """Act as a plugin at the end of a build; return what the report says."""
    said.lines.clear()
    documents = find_documents(settings, None, Path())
    settings = settings.override(report=True, site="docs-example")
    update_index(Site(read_site(Path("docs"), BASE), documents, settings, 256), said)
    return "; ".join(line for line in said.lines if "asked" in line or "report" in line)


def keep(records: Path, thread: str, question: str) -> RecordsTable:
    table = RecordsTable(sqlite_database(records), 30)
    table.append(thread, StoredTurn(f"turn of {thread}", question, "No.", "not_in_docs"))
    return table


def test_a_build_asks_again_and_no_failure_stops_it(tmp_path: Path) -> None:
    said, records = Said(), tmp_path / "records.sqlite"
    assert build(Settings(), said).startswith("Nothing was asked again, because no text")
    settings = Settings(records=f"sqlite:{records}")
    keep(records, "one", PORT_QUESTION)
    table = keep(records, "two", CACHE_QUESTION)
    assert build(settings, said).endswith("For the first time 2 were asked.")
    page = settings.local_folder / "chapterverse-report.html"
    assert page.stat().st_mode & 0o777 == 0o600
    # It asks nothing and writes nothing after a build that changes nothing.
    written = page.stat().st_ino
    assert build(settings, said) == ""
    assert page.stat().st_ino == written
    # What is forgotten is in no page, and nor is its digest kept.
    table.forget("two")
    assert build(settings, said) == "The index is that of the last time, so nothing was asked again."
    assert CACHE_QUESTION not in page.read_text()
    (kept,) = settings.local_folder.glob("asked-*.json")
    assert len(json.loads(kept.read_text())["rows"]) == 1
    (tmp_path / "docs" / "serve" / "index.html").unlink()
    assert build(settings, said) == "Of 1 questions that were asked again: 0 closed, 0 changed, 1 broke."
    assert table.thread("one").turns[-1].answer == "No."
    table.forget("one")
    build(settings, said)
    assert not page.exists()
    assert json.loads(kept.read_text())["rows"] == {}
    records.write_text("no database")
    assert build(settings, said).startswith("warning: The report was not made: The file")


def test_a_build_finds_its_conversations_by_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path / "records.sqlite", "one", PORT_QUESTION)
    with shared().entered(tmp_path) as aws:
        named = secret(aws, {"CHAPTERVERSE_RECORDS": f"sqlite:{tmp_path / 'records.sqlite'}"})
        assert build(Settings(secrets_arn=named), Said()).endswith("For the first time 1 were asked.")


def test_two_sites_in_one_store_have_answers_of_their_own(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", turn(1, PORT_QUESTION))
    report("--log", log, "--ask-again")
    assert run("index", "docs", "--base-url", BASE, "--site", "other", "-q")[0] == 0
    for site in ("other", "other"):
        report("--log", log, "--ask-again", "--site", site)
    assert len([*Settings().local_folder.glob("asked-*.json")]) == 2


def test_a_preview_makes_no_report(tmp_path: Path) -> None:
    options = Options(below={"report": True})
    assert options.settings(tmp_path, "Tea", None).report
    assert not options.settings(tmp_path, "Tea", None, preview=True).report
