"""Suggested questions: from the docs, never the question itself, each answered by its own section."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from api import quill
from chapterverse.calibration import Calibration
from chapterverse.indexing import sync
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.target import Target
from chapterverse.ledger import Ledger
from chapterverse.settings import Settings
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import ChatQuery, ChatResponse, Message
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.search import suggestions
from chapterverse_api.search.suggestions import (
    MAX_SUGGESTION_CHARS,
    MAX_SUGGESTION_SECONDS,
    MAX_SUGGESTIONS,
    is_descriptive,
    plain_heading,
    suggest,
)
from chapterverse_api.service import Service
from fakes.qdrant_server import QdrantServer
from fakes.qdrant_server.stores import store_on

ROTATION = """# Rotating the credentials

Credentials of a deployment are rotated every thirty days by the scheduler.

## Rotating credentials by hand

Run `quill rotate` and wait until every worker has read the new credentials.

## How long running builds keep old ones

A running build keeps the credentials that it began with until it ends.

## Overview

Credentials are files. Each of the credentials has an owner.

## Revoking stolen credentials at once

Run `quill revoke`; a build that uses revoked credentials fails.

## 4.2.0

Credentials are now written in one piece.

## Who may read the credential files

Only the owner of a deployment may read its credentials.
"""
QUESTION = "Which command rotates credentials by hand?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("index"), {**quill.PAGES, "rotation.md": ROTATION})


@pytest.fixture(scope="module")
def service(settings: Settings) -> Service:
    return quill.service(settings)


def of(pages: Mapping[str, str], folder: Path, question: str) -> ChatResponse:
    return quill.ask(quill.service(quill.publish(folder, {**quill.PAGES, **pages})), question)


def test_suggestions_are_headings_of_sections_that_are_not_cited(service: Service) -> None:
    answer = quill.ask(service, QUESTION)
    headings = {line.lstrip("# ") for line in ROTATION.splitlines() if line.startswith("#")}
    assert 1 <= len(answer.follow_ups) <= MAX_SUGGESTIONS
    assert {text.rpartition(" › ")[2] for text in answer.follow_ups} <= headings
    cited = {s.section for s in answer.source_chunks if s.url in answer.sources_cited}
    assert not cited & {text.rpartition(" › ")[2] for text in answer.follow_ups}


def test_what_is_suggested_is_answered_from_its_section(service: Service) -> None:
    first = quill.ask(service, QUESTION)
    told = [
        Message(role="user", content=QUESTION),
        Message(role="assistant", content=first.response, signature=first.signature),
    ]
    for text in first.follow_ups:
        for history in ([], told):
            answer = quill.ask(service, text, conversation_history=history)
            best = next(s for s in answer.source_chunks if s.id == "1")
            assert answer.status in ("answered", "partial")
            assert best.section == text.rpartition(" › ")[2]


def test_what_was_asked_is_not_suggested_again(service: Service) -> None:
    first = quill.ask(service, QUESTION)
    asked = first.follow_ups[0]
    history = [
        Message(role="user", content=asked),
        Message(role="assistant", content="So.", timestamp="2026"),
    ]
    again = quill.ask(service, QUESTION, conversation_history=history)
    assert asked not in again.follow_ups
    assert asked not in quill.ask(service, asked).follow_ups


def test_headings_that_say_nothing_are_not_suggested(service: Service) -> None:
    said = {text for q in (QUESTION, "When are credentials rotated?") for text in quill.ask(service, q).follow_ups}
    assert said
    assert not [text for text in said if "Overview" in text or "4.2.0" in text]


def test_a_section_that_would_not_be_found_first_is_not_suggested(service: Service, tmp_path: Path) -> None:
    heading = "How long running builds keep old ones"
    decoy = f"# {heading}\n\n" + f"{heading}? Old running builds keep long.\n\n" * 3
    assert heading in quill.ask(service, QUESTION).follow_ups
    answer = of({"rotation.md": ROTATION, "decoy.md": decoy}, tmp_path, QUESTION)
    assert heading not in answer.follow_ups
    assert answer.follow_ups


def test_what_is_on_no_page_suggests_nothing(service: Service) -> None:
    answer = quill.ask(service, "Who won the cup final of 1966 in football?")
    assert (answer.status, answer.follow_ups) == ("not_in_docs", [])


def test_beside_a_selection_nothing_is_suggested(service: Service) -> None:
    page = f"{quill.BASE}rotation/"
    answer = quill.ask(service, QUESTION, selected_text="Run `quill rotate` to rotate credentials.", page_url=page)
    assert (answer.status, answer.follow_ups) == ("answered", [])


def test_a_late_answer_waits_for_none(service: Service) -> None:
    answer = quill.whole(service.chat(ChatQuery(query=QUESTION), deadline=Deadline(0)))
    assert (answer.status, answer.follow_ups) == ("answered", [])


def turns_on(server: QdrantServer, folder: Path) -> tuple[Turn, Turn]:
    """Index a page there and return two turns that have searched it: what a snapshot found once it knows."""
    store = store_on(server, tries=1)
    ledger = Ledger.on_sqlite(folder / "ledger.sqlite")
    target = Target(quill.SCOPE, store, ledger, None, ChunkSizes(), quill.BASE)
    sync.index([quill.source("rotation.md", ROTATION)], target)

    def opened() -> Turn:
        resources = quill.service(Settings(), store=store, generator=Extractive()).resources
        turn = Turn.open(ChatQuery(query=QUESTION), resources)
        turn.search()
        return turn

    return opened(), opened()


def suggested(turn: Turn) -> list[str]:
    """Return what is suggested beside an answer that cites the first passage."""
    found = turn.sources.found
    return suggest(found, {found.passages[0].chunk_id}, [QUESTION], turn.deadline)


def test_a_store_that_fails_now_fails_no_answer(tmp_path: Path) -> None:
    with QdrantServer() as server:
        one, other = turns_on(server, tmp_path)
        assert suggested(one)
    assert suggested(other) == []
    assert suggested(one)


def test_nobody_waits_for_suggestions_of_a_slow_store(tmp_path: Path) -> None:
    with QdrantServer() as server:
        one, other = turns_on(server, tmp_path)
        assert len(suggested(one)) > 1
        server.before = lambda _: time.sleep(2 * MAX_SUGGESTION_SECONDS)
        # The search that is under way when the time is over is the last.
        assert len(suggested(other)) == 1


def test_a_hostile_heading_is_shown_as_plain_text(tmp_path: Path) -> None:
    page = (
        "# Rotating the credentials\n\nCredentials are rotated every thirty days.\n\n"
        "## Rotating **stolen** [credentials](https://evil.example/a) `at once`\n\nRevoke the credentials.\n\n"
        "## Rotating credentials, see https://evil.example/\n\nCredentials again.\n\n"
        f"## Rotating credentials {'very ' * 20}often\n\nCredentials and credentials.\n"
    )
    said = of({"rotation.md": page}, tmp_path, "How often are credentials rotated?").follow_ups
    assert said
    assert not [text for text in said if "://" in text or len(text) > MAX_SUGGESTION_CHARS or set("*`[]()") & set(text)]


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("Cache location", "Cache location"),
        ("**Cache** `location`", "Cache location"),
        ("*A* ***b*** ~~c~~ ``d``", "A b c d"),
        ("The [cache](https://x.example/a_b) of [it][1]", "The cache of it"),
        ("![logo](a.png) Cache", "logo Cache"),
        ("no-unsafe-* complaints of a*b", "no-unsafe-* complaints of a*b"),
        ("__init__ and snake_case", "__init__ and snake_case"),
        ("node_type.<name>.max", "node_type.<name>.max"),
        ("a\x1b[2Jb\u202ec\x00d\u200be\u2028f", "a[2Jbcde f"),
        ("می‌خواهم", "می‌خواهم"),
        ("日本語の見出し", "日本語の見出し"),
        ("", ""),
    ],
)
def test_a_heading_as_plain_text(heading: str, text: str) -> None:
    assert plain_heading(heading) == text


@pytest.mark.parametrize(
    "heading",
    [
        *("Overview", "1. Overview", "OVERVIEW!", "See also", "What's next?", "Einführung", "Voir aussi", "概要"),
        *("", "1.2.0", "v3", "2026-01-02", "Go 1.22", "Step 3: Restart", "2) Restart", "See https://x.example/", "…"),
    ],
)
def test_a_heading_that_says_nothing(heading: str) -> None:
    assert not is_descriptive(heading)


@pytest.mark.parametrize(
    "heading", ["Cache location", "Overview of caching", "検索", "Что нового в кэше", "404 pages", "CI/CD"]
)
def test_a_heading_that_says_something(heading: str) -> None:
    assert is_descriptive(heading)


def test_a_long_heading_is_read_in_linear_time() -> None:
    for hostile in ("[" * 50_000, "*a" * 50_000, "`" * 50_001, "**" * 40_000 + "a", "](" * 40_000):
        assert len(plain_heading(hostile)) <= 4 * MAX_SUGGESTION_CHARS


def test_a_full_cache_is_left_to_the_threads_that_read_it(service: Service) -> None:
    snapshot = service.resources.index.snapshot()
    calibration = Calibration.from_json(snapshot.head.calibration)
    suggestions._search_first("Rotating credentials", "", snapshot, calibration)
    read = suggestions._FIRST_SECTIONS[snapshot]
    read.update({(f"Heading {number}", ""): None for number in range(suggestions._CACHE_SIZE)})
    suggestions._search_first("Rolling back", "", snapshot, calibration)
    assert ("Rotating credentials", "") in read
    assert suggestions._FIRST_SECTIONS[snapshot].keys() == {("Rolling back", "")}
