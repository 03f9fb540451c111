"""Questions in seven languages over small documentations in the same, each alone and all in one index.

`texts/` holds for each language the same twelve sections, questions with the section that answers them, and questions
about something else. They are written as people write and ask: in other words and forms, without accents, with umlauts
spelled out, in full-width letters, with question words around what is asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from api import quill
from chapterverse.store import Snapshot, only_scope, open_store
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchRequest, retrieve

TEXTS = {file.stem: json.loads(file.read_text("utf-8")) for file in (Path(__file__).parent / "texts").glob("*.json")}


@dataclass(frozen=True)
class Asked:
    """Results for one language's questions: shares of those with an answer, and of those without one."""

    language: str
    snapshot: Snapshot

    @cached_property
    def found(self) -> dict[str, Retrieval]:
        return {q: retrieve(self.snapshot, None, SearchRequest(q)) for q, _ in TEXTS[self.language]["questions"]}

    def first(self, most: int) -> float:
        """Return the share of questions whose section is among the first so many."""
        hits = [
            f"{self.language}/{section}.md"
            in [c.chunk.source_file_path for c in self.found[question].candidates[:most]]
            for question, section in TEXTS[self.language]["questions"]
        ]
        return sum(hits) / len(hits)

    @property
    def answered(self) -> float:
        return sum(map(is_answered, self.found.values())) / len(self.found)

    @property
    def answered_elsewhere(self) -> list[str]:
        return [
            q for q in TEXTS[self.language]["elsewhere"] if is_answered(retrieve(self.snapshot, None, SearchRequest(q)))
        ]


def is_answered(found: Retrieval) -> bool:
    return found.evidence >= found.calibration.floor


def index(root: Path, *languages: str) -> Snapshot:
    pages, spoken = {}, {}
    for language in languages:
        for name, (path, text) in TEXTS[language]["passages"].items():
            file = f"{language}/{name}.md"
            title, heading = path.split(" > ")
            pages[file], spoken[file] = f"# {title}\n\n## {heading}\n\n{text}\n", language
    store = open_store(quill.publish(root, pages, languages=spoken))
    return store.snapshot(only_scope(store))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return index(tmp_path_factory.mktemp("mixed"), *sorted(TEXTS))


def test_the_languages_that_readers_were_promised_are_there() -> None:
    assert {"de", "en", "es", "fr", "ja", "zh"} <= TEXTS.keys()
    for texts in TEXTS.values():
        assert len(texts["questions"]) >= 24
        assert len(texts["elsewhere"]) == 10
        assert {section for _, section in texts["questions"]} == texts["passages"].keys()


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_questions_find_their_sections(language: str, tmp_path: Path) -> None:
    asked = Asked(language, index(tmp_path, language))
    assert asked.first(3) == 1
    assert asked.first(1) >= 0.9
    assert asked.answered >= 0.7
    assert len(asked.answered_elsewhere) <= 1, asked.answered_elsewhere


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_questions_find_their_sections_among_all_languages(language: str, mixed: Snapshot) -> None:
    asked = Asked(language, mixed)
    assert asked.first(3) >= 0.95
    assert asked.first(1) >= 0.85
    assert asked.answered >= 0.8
    assert len(asked.answered_elsewhere) <= 1, asked.answered_elsewhere
