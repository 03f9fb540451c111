"""Flaws of a sentence that a page's own words hide, by mechanism, beside what looks alike and is true."""

from __future__ import annotations

import pytest

from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.check.results import VerifiedDraft
from chapterverse_api.ext.check.verifier import verify
from ext.check.passages import equal_weights, passage


def checked(said: str, source: str, *cited: str) -> VerifiedDraft:
    return verify((Span(said, cited),), [passage("1", source, ("Guide",))], "en", equal_weights)


def checks(said: str, source: str) -> list[str]:
    return [span.check for span in checked(said, source, "1").spans]


VERSIONS = "Python 3.9, 3.10 and 3.11 are supported. The cache is kept for 30 days."
PORTS = "The server listens on port 8080, and metrics are on port 9090."
WORKERS = "| Workers | Jobs |\n| --- | --- |\n| 1 | 5 |\n| 2 | 10 |\n"


@pytest.mark.parametrize(
    ("said", "source", "expected"),
    [
        ("Supported versions of Python:\n\n- 3.9\n- 3.10\n- 3.11", VERSIONS, ["none", *["confirmed"] * 3]),
        ("Ports of the server:\n\n- 8080\n- 9090", PORTS, ["none", "confirmed", "confirmed"]),
        ("| Workers | Jobs |\n| --- | --- |\n| 1 | 5 |", WORKERS, ["confirmed", "none", "confirmed"]),
        ("It is 30.", VERSIONS, ["confirmed"]),
        ("**8080**", PORTS, ["confirmed"]),
        ("- 3.12\n- 9\n- 3.1", VERSIONS, ["unconfirmed"] * 3),
        ("- 80", PORTS, ["unconfirmed"]),
        ("| Workers | Jobs |\n| --- | --- |\n| 1 | 10 |", WORKERS, ["confirmed", "none", "unconfirmed"]),
    ],
)
def test_cited_numbers_alone_are_confirmed_by_a_clause_that_holds_them_all(
    said: str, source: str, expected: list[str]
) -> None:
    assert checks(said, source) == expected


def test_numbers_that_cite_nothing_are_confirmed_by_no_passage() -> None:
    found = checked("Supported versions of Python:\n\n- 3.9\n- 3.10\n- 3.11", VERSIONS)
    assert [span.citations for span in found.spans] == [()] * 4


EXPORTER = (
    "The exporter writes metrics every minute. Metrics are kept in memory until they are sent. Backups run nightly. "
    "Each cluster has one exporter."
)


@pytest.mark.parametrize(
    "said",
    [
        "The exporter writes metrics every minute after asking quarterly human compliance auditors.",
        "Metrics are kept in memory until they are sent using encrypted satellite relay bursts.",
        "The exporter writes metrics every minute for free tier users sharing one cluster account.",
        "Backups run nightly, and administrators receive an email when one of them fails.",
    ],
)
def test_a_tail_of_words_that_no_source_has_is_no_part_of_the_truth_before_it(said: str) -> None:
    assert checks(said, EXPORTER) == ["unconfirmed"]


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("The server connects to the client over port 8080.", "The client connects to the server over port 8080."),
        (
            "The scheduler sends a heartbeat to the worker every 10 seconds.",
            "The worker sends a heartbeat to the scheduler every 10 seconds.",
        ),
        ("Set `min_size` to 20 and `max_size` to 10.", "Set `min_size` to 10 and `max_size` to 20."),
        (
            "Requests that fail are retried up to 5 times, with a delay of three seconds.",
            "Requests that fail are retried up to three times, with a delay of 5 seconds.",
        ),
        (
            "The service listens on port 9090 by default and on port 8080 for metrics.",
            "The service listens on port 8080 by default and on port 9090 for metrics.",
        ),
        (
            "`push` copies remote changes to the local folder, and `pull` copies local changes to the remote.",
            "`push` copies local changes to the remote, and `pull` copies remote changes to the local folder.",
        ),
    ],
)
def test_words_that_change_places_contradict(said: str, source: str) -> None:
    assert checks(said, source) == ["unconfirmed"]
    # Not verbatim, or it would be confirmed without being measured.
    assert checks(f"In short, {source}", source) == ["confirmed"]


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("Members may read and delete projects.", "Members may read projects but not delete them."),
        ("Admins may read projects but not delete them.", "Admins may read and delete projects."),
        ("Guests may read and edit pages.", "Guests may read pages but not edit them."),
        (
            "Whether a job has ended isn't made clear by its exit code.",
            "The exit code says whether a job has ended.",
        ),
    ],
)
def test_a_denial_that_only_one_side_has_contradicts(said: str, source: str) -> None:
    assert checks(said, source) == ["unconfirmed"]


@pytest.mark.parametrize(
    "said",
    [
        "Nothing in Terraform Cloud covers drifted resources.",
        "Nothing your firewall does explains this; disable TLS.",
        "The reason for a crash is not made clear by its exit code.",
        "Whether a job has ended isn't made clear by its exit code.",
    ],
)
def test_what_the_subject_does_not_explain_is_a_claim(said: str) -> None:
    found = checked(said, EXPORTER)
    assert (found.claim_count, found.leaves_open) == (1, False)


@pytest.mark.parametrize(
    "said",
    [
        "Nothing here covers Windows.",
        "Nothing in the docs says whether turtles dream.",
        "Nothing in these sources explains it.",
        "Whether turtles dream is not made clear in the documentation.",
        "Whether turtles dream isn't made clear here.",
    ],
)
def test_what_the_docs_do_not_explain_is_none(said: str) -> None:
    found = checked(said, EXPORTER)
    assert (found.claim_count, found.leaves_open) == (0, True)


def test_a_sentence_of_another_passage_is_cited_from_there() -> None:
    said = "A plugin is a program that reads a page from standard input and writes it to standard output."
    writing = passage(
        "1", "Name the program in `quill.toml`. It gets the page as JSON.", ("Plugins", "Writing a plugin")
    )
    found = verify((Span(said, ("1",)),), [writing, passage("2", said, ("Plugins",))], "en", equal_weights)
    assert [span.citations for span in found.spans] == [("2",)]
