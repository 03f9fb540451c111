"""The contract of every ledger; a line in `LEDGERS` adds one."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.errors import ConfigurationError, IndexFault, IndexLocked
from chapterverse.ext.postgres.ledger import postgres_ledger
from chapterverse.ledger import Ledger, LedgerRow, open_ledger, rows_of
from chapterverse.model import Head, Scope
from chapterverse.settings import Settings
from fakes import postgres
from fakes.instead import instead
from ledger.rows import DOCS, NEXT, A, B, C, one_sentence, row

#: Makes the address of a new ledger; a folder of the test's own is at hand, and a server starts when first asked for.
LEDGERS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:{folder / 'deep' / 'ledger.sqlite'}",
    "postgres": lambda folder: postgres.server().database(),
}


@pytest.fixture(params=LEDGERS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return LEDGERS[request.param](tmp_path)


@pytest.fixture
def ledger(address: str) -> Ledger:
    return open_ledger(Settings(ledger=address))


def test_a_new_ledger_is_empty(ledger: Ledger) -> None:
    assert ledger.records(DOCS) == {}
    assert ledger.described(DOCS) == (0, "")


def test_rows_come_back_as_they_were_and_by_path(ledger: Ledger) -> None:
    odd = row("ünï/日本語 '\"; DROP TABLE--/x.md", chunk_count=0, generation=2**40)
    ledger.save(DOCS, 4, [C, odd, A], [])
    assert ledger.records(DOCS) == {"a.md": A, "c.md": C, odd.file_path: odd}
    assert list(ledger.records(DOCS)) == sorted(["a.md", "c.md", odd.file_path])
    assert ledger.described(DOCS)[0] == 4


def test_a_row_is_replaced(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    newer = row(
        "a.md",
        content_hash="c" * 64,
        chunk_count=9,
        generation=2,
        pipeline="d" * 64,
        last_indexed_at="2027-12-31T23:59:59Z",
    )
    ledger.save(DOCS, 2, [newer], [])
    assert ledger.records(DOCS) == {"a.md": newer, "b.md": B}


def test_a_row_is_removed(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    ledger.save(DOCS, 2, [], ["a.md", "never-there.md"])
    assert ledger.records(DOCS) == {"b.md": B}
    assert ledger.described(DOCS)[0] == 2


def test_a_path_that_is_removed_and_saved_at_once_is_there(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])
    ledger.save(DOCS, 2, [replace(A, chunk_count=5)], ["a.md"])
    assert ledger.records(DOCS)["a.md"].chunk_count == 5


def test_scopes_know_nothing_of_each_other(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])
    ledger.save(NEXT, 7, [replace(A, chunk_count=8), B], [])
    ledger.save(DOCS, 2, [], ["b.md"])
    assert ledger.records(DOCS) == {"a.md": A}
    assert ledger.records(NEXT)["a.md"].chunk_count == 8
    assert (ledger.described(DOCS)[0], ledger.described(NEXT)[0], ledger.described(Scope("other"))[0]) == (2, 7, 0)


def test_the_generation_can_be_saved_alone(ledger: Ledger) -> None:
    ledger.save(DOCS, 3, [], [])
    assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (3, {})


def test_what_one_connection_saves_the_other_sees(ledger: Ledger, address: str) -> None:
    other = open_ledger(Settings(ledger=address))
    ledger.save(DOCS, 1, [A], [])
    assert other.records(DOCS) == {"a.md": A}
    other.save(DOCS, 2, [B], ["a.md"])
    assert ledger.records(DOCS) == {"b.md": B}


@pytest.mark.parametrize("first", ["rows", "save"])
def test_rows_that_are_replaced_while_they_are_read_are_those_of_no_head(
    ledger: Ledger, address: str, first: str
) -> None:
    old, new = (Head(DOCS.site, DOCS.version, number, 1, 1, "", token=f"token {number}") for number in (1, 2))
    ledger.save(DOCS, 1, [A], [], old.token)
    assert rows_of(ledger, old) == {"a.md": A}
    assert rows_of(ledger, new) is None
    read, other = ledger.records, open_ledger(Settings(ledger=address))

    def records(scope: Scope) -> dict[str, LedgerRow]:
        rows = read(scope)
        other.save(DOCS, 2, [B], ["a.md"], new.token)
        return rows if first == "rows" else read(scope)

    assert rows_of(instead(ledger, records=records), new if first == "rows" else old) is None


@pytest.mark.parametrize(
    "bad",
    [
        row("x.md", chunk_count=-1),
        row("x.md", content_hash="short"),
        row("x.md", content_hash="a" * 65),
        row("x.md", content_hash="g" * 64),
        row("x.md", content_hash="A" * 64),
        row("x.md", content_hash="١" * 64),
        row("x.md", content_hash=None),
        row("x" * 513),
        row(""),
        row("x\0.md"),
        row("x\udcff.md"),
        row("x.md", pipeline="p" * 65),
        row("x.md", last_indexed_at="yesterday"),
        row("x.md", generation=2**63),
    ],
    ids=[
        "negative count", "short hash", "long hash", "no hex", "upper case", "other digits", "no hash", "long path",
        "no path", "NUL", "lone surrogate",
        "long pipeline", "no time", "generation too great",
    ],
)  # fmt: skip
def test_a_row_out_of_contract_is_refused_and_nothing_of_the_call_is_kept(ledger: Ledger, bad: LedgerRow) -> None:
    ledger.save(DOCS, 1, [A, B], [])
    with pytest.raises(IndexFault, match="is nothing that a ledger holds") as caught:
        ledger.save(DOCS, 2, [replace(A, chunk_count=99), C, bad], ["b.md"])
    assert one_sentence(caught.value)
    assert str(caught.value).isprintable()
    assert ledger.records(DOCS) == {"a.md": A, "b.md": B}
    assert ledger.described(DOCS)[0] == 1


def test_an_interrupted_save_keeps_nothing(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A], [])

    def interrupted() -> Iterator[LedgerRow]:
        yield replace(A, chunk_count=99)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.save(DOCS, 2, interrupted(), [])
    assert ledger.records(DOCS) == {"a.md": A}
    ledger.save(DOCS, 2, [B], [])
    assert ledger.described(DOCS)[0] == 2


def test_a_path_of_512_characters_fits(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [row("ü" * 512)], [])
    assert list(ledger.records(DOCS)) == ["ü" * 512]


@pytest.mark.parametrize("scope", [Scope("x\udcff"), Scope("x", "\udcff")], ids=["site", "version"])
def test_names_that_no_ledger_can_hold_are_told_in_one_sentence(ledger: Ledger, scope: Scope) -> None:
    ledger.save(DOCS, 1, [A], [])
    for use in (
        lambda: ledger.records(scope),
        lambda: ledger.described(scope),
        lambda: ledger.save(scope, 2, [B], []),
        lambda: ledger.save(DOCS, 2, [B], ["\udcff.md"]),
        lambda: ledger.save(DOCS, 2, [B], [], "\udcff"),
    ):
        with pytest.raises(IndexFault, match=r"can.t be stored|can.t store") as caught:
            use()
        assert one_sentence(caught.value)
    assert ledger.records(DOCS) == {"a.md": A}


def test_long_names_of_site_and_version_fit(ledger: Ledger) -> None:
    scope = Scope("ü" * 300, "feature/" + "long-" * 50)
    ledger.save(scope, 1, [A], [], "t" * 500)
    assert (ledger.records(scope), ledger.described(scope)[1]) == ({"a.md": A}, "t" * 500)


def test_the_token_is_that_of_the_last_save(ledger: Ledger) -> None:
    assert ledger.described(DOCS)[1] == ""
    ledger.save(DOCS, 1, [A], [], "first")
    ledger.save(NEXT, 1, [A], [], "other")
    assert (ledger.described(DOCS)[1], ledger.described(NEXT)[1]) == ("first", "other")
    ledger.save(DOCS, 1, [], [], "second")
    assert ledger.described(DOCS)[1] == "second"


def test_of_two_rows_with_one_path_the_last_stays(ledger: Ledger) -> None:
    ledger.save(DOCS, 1, [A, B, replace(A, chunk_count=7)], [])
    assert ledger.records(DOCS) == {"a.md": replace(A, chunk_count=7), "b.md": B}


def test_paths_are_sorted_by_code_point(ledger: Ledger) -> None:
    names = ["Z.md", "a.md", "B.md", "_.md", "é.md", "\uffff.md", "\U0001f600.md", "a-b.md", "a/b.md", "a b.md", "İ.md"]
    ledger.save(DOCS, 1, [row(name) for name in names], [])
    assert list(ledger.records(DOCS)) == sorted(names)


def test_paths_that_differ_in_case_or_composition_are_two(ledger: Ledger) -> None:
    names = {"a.md", "A.md", "é.md", "e\u0301.md", "a.md "}
    ledger.save(DOCS, 1, [row(name) for name in names], [])
    assert ledger.records(DOCS).keys() == names


def test_many_rows_are_kept_and_read_in_reasonable_memory(ledger: Ledger) -> None:
    count = 12_000
    rows = [row(f"guide/{i}.md", chunk_count=i) for i in range(count)]
    random.Random(1).shuffle(rows)
    ledger.save(DOCS, 1, rows, [])
    tracemalloc.start()
    found = ledger.records(DOCS)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == {r.file_path: r for r in rows}
    assert peak - held < held / 4
    ledger.save(DOCS, 2, [], [r.file_path for r in rows[1:]])
    assert list(ledger.records(DOCS)) == [rows[0].file_path]


def patient(address: str, seconds: float) -> Ledger:
    """Return a ledger that waits so long for another writer."""
    kind, _, place = address.partition(":")
    return Ledger.on_sqlite(Path(place), seconds) if kind == "sqlite" else postgres_ledger(address, seconds)


def test_a_writer_that_does_not_finish_is_told_as_a_lock(ledger: Ledger, address: str) -> None:
    ledger.save(DOCS, 1, [A], [])

    def while_another_writes() -> Iterator[LedgerRow]:
        yield C
        with pytest.raises(IndexLocked, match="Another process is writing") as caught:
            patient(address, 0.05).save(DOCS, 2, [B], ["a.md"])
        assert one_sentence(caught.value)
        assert patient(address, 0.05).records(DOCS) == {"a.md": A}

    ledger.save(DOCS, 3, while_another_writes(), [])
    assert (ledger.described(DOCS)[0], ledger.records(DOCS)) == (3, {"a.md": A, "c.md": C})
    patient(address, 0.05).save(DOCS, 4, [B], ["a.md"])
    assert ledger.records(DOCS) == {"b.md": B, "c.md": C}


SAVING = """
import sys
from chapterverse.ledger import LedgerRow, open_ledger
from chapterverse.model import Scope
from chapterverse.settings import Settings
ledger = open_ledger(Settings(ledger=sys.argv[1]))
sys.stdin.readline()
for i in range(20):
    rows = [LedgerRow(f"{sys.argv[2]}-{i}.md", "a" * 64, 1, "p", 1, "2026-01-02T03:04:05Z")]
    ledger.save(Scope("docs"), i, rows, ["never.md"])
"""


def test_processes_that_make_the_same_ledger_at_once_agree(ledger: Ledger, address: str) -> None:
    command = [sys.executable, "-c", SAVING, address]
    workers = [subprocess.Popen([*command, str(i)], stdin=subprocess.PIPE, text=True) for i in range(4)]
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=60)
    assert [w.returncode for w in workers] == [0] * 4
    assert len(ledger.records(DOCS)) == 80


HISTORIES = itertools.count()
PATHS = st.sampled_from([f"{i}.md" for i in range(8)])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.dictionaries(PATHS, st.integers(0, 99)), st.sets(PATHS)), max_size=6))
def test_any_history_is_what_a_dictionary_would_hold(
    ledger: Ledger, steps: list[tuple[dict[str, int], set[str]]]
) -> None:
    # Each history has a scope of its own, beside all those before it.
    scope = Scope(f"site of {next(HISTORIES)}")
    model: dict[str, LedgerRow] = {}
    for generation, (changed, removed) in enumerate(steps, 1):
        rows = {p: row(p, chunk_count=n, generation=generation) for p, n in changed.items()}
        ledger.save(scope, generation, rows.values(), removed)
        model = {p: r for p, r in model.items() if p not in removed} | rows
        assert ledger.records(scope) == model
    assert ledger.described(scope)[0] == len(steps)


@pytest.mark.parametrize("uri", ["sqlite:", "postgresql:", "postgres:", "x", ":", "mysql://user:secret@host/db"])
def test_an_address_that_no_ledger_has(uri: str) -> None:
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_LEDGER is nothing") as caught:
        open_ledger(Settings(ledger=uri))
    assert "secret" not in str(caught.value)
