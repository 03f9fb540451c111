"""`chapterverse report`, over logs, a real index and a real database."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chapterverse.settings import Settings
from chapterverse_api.commands import ServiceSession
from chapterverse_api.ext.conversations.records import CitedSource, StoredRating, StoredTurn
from chapterverse_api.ext.conversations.table import RecordsTable, sqlite_database
from chapterverse_api.log import write_to
from ext.conversations.test_forget_command import run
from ext.report.made import CACHE, PORT, report, turn, write_log

HOSTILE = '</title> cache<script>alert(1)</script> =HYPERLINK("x") `| <img src=x onerror=alert(1)>'


pytestmark = pytest.mark.usefixtures("published")


def test_unanswered_questions_are_grouped_by_subject_with_what_the_nearest_section_lacks(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "log",
        turn(1, "invalidate cache on cloudfront", "not_in_docs", [CACHE]),
        turn(2, "how do I invalidate the cloudfront cache", "not_in_docs", [CACHE], day=4),
        turn(3, "Which port?"),
        turn(4, "which port", down=True),
    )
    document = report("--log", log)
    gap, port = document["groups"]
    assert gap["kind"] == "gap"
    assert (gap["readers"], gap["states"]["refused"], gap["trend"]) == (2, 2, {"before": 1, "after": 1})
    assert gap["nearest"] == {"title": "Deploy › Invalidate a cache", "chapter": "Deploy", "url": CACHE}
    assert gap["lacks"] == ["cloudfront"]
    assert (port["kind"], port["title"], port["readers"]) == ("section", "Serve › Choose a port", 2)
    assert port["states"] | {"refused": 0} == port["states"]
    assert port["states"]["thumbed_down"] == 1
    assert port["examples"] == ["Which port?"]
    assert [chapter["title"] for chapter in document["chapters"]] == ["Deploy", "Serve"]
    assert [day["asked"] for day in document["days"]] == [3, 0, 0, 1]


def test_one_reader_counts_once_however_often_he_asks(tmp_path: Path) -> None:
    often = [turn(n, "which port", thread="one") for n in range(1000)]
    (group,) = report("--log", write_log(tmp_path / "log", *often, turn(2000, "which port")))["groups"]
    assert (group["readers"], group["questions"]) == (2, 1001)


def test_a_question_that_is_asked_again_in_other_words_is_no_full_answer(tmp_path: Path) -> None:
    again = turn(1, "set the port of the server", thread="a"), turn(2, "which port does the server have", thread="a")
    other = turn(3, "set the port of the server", thread="b"), turn(4, "delete old files", thread="b")
    same = turn(5, "set the port of the server", thread="c"), turn(6, "Set the port of the server?", thread="c")
    document = report("--log", write_log(tmp_path / "log", *again, *other, *same))
    assert document["states"]["asked_again"] == 1


def test_without_texts_it_groups_by_section_and_says_how_to_get_more_first(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", turn(1), turn(2, status="not_in_docs", sections=[CACHE]), turn(3))
    code, out, _ = run("report", "--log", log, "--markdown")
    assert code == 0
    assert "CHAPTERVERSE_LOG_QUESTIONS=1" in out.splitlines()[0]
    assert [group["title"] for group in report("--log", log)["groups"]] == [
        "Deploy › Invalidate a cache",
        "Serve › Choose a port",
    ]


def test_what_is_not_ours_is_counted_and_said_once(tmp_path: Path) -> None:
    foreign = [b"REPORT RequestId: 1", b'{"event": "response_se', b"[1]", b"\xff\xfe", b"x" * 300_000, b"", b'{"a": 1}']
    odd = [json.dumps({"event": "response_sent", "turn_id": "t", "time": "2026-10-01T00:00:00Z", "status": s}).encode()
           for s in ("", 7, "exploded")]  # fmt: skip
    wrong = [b'{"event": "query_received", "turn_id": null}', b'{"event": "query_received", "turn_id": "u", "time": 5}']
    sent = {"event": "response_sent", "turn_id": "v", "status": "answered"}
    times: list[dict[str, str]] = [{}, {"time": "2026-99-99T00:00:00Z"}, {"time": "0000-01-01T00:00:00Z"}]
    wrong += [json.dumps(sent | time).encode() for time in times]
    earlier = turn(2, "which port", sections=None, thread="")
    log = write_log(tmp_path / "log", turn(1, "which port"), earlier, more=[*foreign, *odd, *wrong])
    document = report("--log", log)
    assert document["questions"] == 2
    assert document["notes"] == [
        "6 of 20 lines of the log are cut, or another program's.",
        "8 lines of the log say what this release doesn't know.",
        "1 answers name no section: an earlier release wrote them, or they cite none.",
        "1 questions are of no conversation, so each counts as a reader of its own.",
    ]


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    turns = [turn(n, f"why does thing {n % 7} not work", "not_in_docs", [CACHE], day=1 + n % 9) for n in range(60)]
    log = write_log(tmp_path / "log", *turns)
    shuffled = write_log(tmp_path / "shuffled", *turns[::-1])
    # The seed of hashes differs from process to process, and with it the order of sets.
    command = [
        sys.executable,
        "-c",
        "from chapterverse.cli import main; main()",
        "report",
        "--json",
        "--gaps",
        "gaps.md",
    ]
    written = set()
    for seed, name in enumerate((log, shuffled), 1):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        shown = subprocess.run([*command, "--log", name], check=True, capture_output=True, env=environment).stdout
        written.add((shown, (tmp_path / "gaps.md").read_bytes()))
    assert len(written) == 1


def test_a_long_address_stays_whole(tmp_path: Path) -> None:
    url = f"https://docs.example/{'long/' * 100}#end"
    (group,) = report("--log", write_log(tmp_path / "log", turn(1, sections=[url])))["groups"]
    assert group["sections"][0]["url"] == url


def test_hostile_questions_stay_text_in_every_form(tmp_path: Path) -> None:
    code = "def f(x):\n    return x\n" * 200
    questions = (HOSTILE, code, "cache \ud800\ufffe\x00 \u202e", "キャッシュを消す方法", "как очистить кэш cache")
    turns = [turn(n, q, "not_in_docs", ["javascript:alert(1)"]) for n, q in enumerate(questions)]
    log = write_log(tmp_path / "log", *turns)
    assert run("report", "--log", log, "--html", "page.html", "--gaps", "gaps.md")[0] == 0
    page, gaps = (tmp_path / "page.html").read_text(), (tmp_path / "gaps.md").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    markdown = run("report", "--log", log, "--markdown")[1]
    for text in (markdown, gaps):
        assert not [line for line in text.splitlines() if line.startswith(("=", "<", "+", "@"))]
        assert "`` </title> cache" in text


def test_names_and_keys_are_hidden_in_every_form(tmp_path: Path) -> None:
    said = "My name is Jane Roe and the Zappa cache key AKIAQWERTYUIOPASDFG2 is stale"
    log = write_log(tmp_path / "log", turn(1, said, "not_in_docs", [CACHE]))
    run("report", "--log", log, "--html", "page.html", "--gaps", "gaps.md")
    forms = [(tmp_path / name).read_text() for name in ("page.html", "gaps.md")]
    forms += [run("report", "--log", log, form)[1] for form in ("--json", "--markdown")]
    for form in forms:
        assert "cache key" in form
        assert "zappa" in form
        assert not [word for word in ("jane", "roe", "akiaqwerty") if word in form.lower()]
    assert "Jane Roe" in Path(log).read_text()


def keep(folder: Path, thread: str, turn: StoredTurn, days: int = 0) -> RecordsTable:
    then = datetime.now(UTC) - timedelta(days=days)
    table = RecordsTable(sqlite_database(folder / "records.sqlite"), 90, lambda: then)
    table.append(thread, turn)
    return table


def test_kept_conversations_tell_texts_and_ratings_and_what_is_forgotten_is_gone(tmp_path: Path) -> None:
    for thread, days in (("kept", 0), ("gone", 0), ("old", 40)):
        stored = StoredTurn(f"t-{thread}", f"{thread} port?", "A.", "answered", (CitedSource("x", PORT),))
        table = keep(tmp_path, thread, stored, days)
    table.rate(StoredRating("t-kept", "down"))
    table.forget("gone")
    records = f"sqlite:{tmp_path / 'records.sqlite'}"
    document = report("--records", records)
    (group,) = document["groups"]
    assert (group["examples"], group["states"]["thumbed_down"]) == (["kept port?"], 1)
    # A log without texts gains them.
    log = write_log(tmp_path / "log", turn(1))
    assert report("--records", records, "--log", log)["questions"] == 2


def test_of_a_turn_that_both_know_each_tells_what_the_other_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("turn-1", "turn-2"):
        table = keep(tmp_path, f"thread of {name}", StoredTurn(name, "which port?", "A.", "not_in_docs"))
    table.rate(StoredRating("turn-1", "down"))
    records = f"sqlite:{tmp_path / 'records.sqlite'}"
    # The end of one turn, and the rating of the other, which was changed later.
    log = write_log(tmp_path / "log", turn(1, down=True)[:1], turn(2, down=True)[-1:])
    document = report("--records", records, "--log", log)
    assert (document["questions"], document["states"]["refused"], document["states"]["thumbed_down"]) == (2, 2, 1)
    # What is forgotten keeps no rating in the report.
    assert document["readers"] == 2
    monkeypatch.setenv("CHAPTERVERSE_RECORDS", records)
    assert report("--log", log)["questions"] == 0
    assert report()["questions"] == 2


def test_since_leaves_out_what_was_asked_before(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", turn(1, day=3), turn(2, day=4))
    assert report("--log", log, "--since", "2026-10-04")["questions"] == 1
    assert run("report", "--log", log, "--since", "yesterday")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--log", "nowhere.log"), "The log nowhere.log can't be read: No such file or directory."),
        (("--log", "docs"), "The log docs can't be read: Is a directory."),
        ((), "There is nothing to report on: name a log by --log, or CHAPTERVERSE_RECORDS."),
        (("--records", "sqlite:no"), "No conversation is kept where --records or CHAPTERVERSE_RECORDS says."),
        (("--log", "x", "--gaps", "nowhere/g.md"), "nowhere/g.md can't be written: there is no such folder."),
    ],
)
def test_a_mistake_gets_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert run("report", *arguments) == (1, "", f"Error: {sentence}\n")


def test_an_empty_log_and_a_missing_index_are_no_mistakes(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert report("--log", "empty")["first"] == "Nothing was asked in this time."
    log = write_log(tmp_path / "log", turn(1, "which cache", "not_in_docs", [CACHE]))
    code, out, err = run("report", "--log", log, "--json", "--store", "edge:none")
    assert code == 0
    assert err.startswith("Warning: There is no index yet")
    assert json.loads(out)["groups"][0]["title"] == CACHE
    # Without an index there are no gaps, and the work list of earlier ones stays.
    (tmp_path / "gaps.md").write_text("A list.")
    code, _, err = run("report", "--log", log, "--gaps", "gaps.md", "--store", "edge:none")
    assert (code, err.startswith("Error: There is no index yet")) == (1, True)
    assert (tmp_path / "gaps.md").read_text() == "A list."


def test_a_log_may_come_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Path(write_log(tmp_path / "log", turn(1, "which port"))).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"2026-10-01T00:00:00Z " + log)))
    assert report("--log", "-")["questions"] == 1


def test_the_service_writes_what_a_report_reads(tmp_path: Path) -> None:
    stream = io.StringIO()
    handlers, logger = logging.getLogger("chapterverse").handlers[:], logging.getLogger("chapterverse")
    write_to(stream)
    session = ServiceSession.open(Settings(log_questions=True))
    session.answer(query="how do I choose the port")
    session.answer(query="how do I bake bread with a port of call on the moon")
    logger.handlers[:] = handlers
    (tmp_path / "log").write_text(stream.getvalue())
    document = report("--log", "log")
    assert document["states"]["answered"] == 1
    assert PORT in [place["url"] for group in document["groups"] for place in group["sections"]]
