from __future__ import annotations

import math
from pathlib import Path

import pytest

from api import quill
from chapterverse.calibration import Synonym, WeightedQuestion
from chapterverse.model import SparseVector
from chapterverse_api.commands import ServiceSession
from chapterverse_api.search.ranking import SHARE, add_synonyms

IDF = {1: 4.0, 2: 1.0}
VECTOR = SparseVector((1, 2), (1.0, 1.0))


def terms(*synonyms: Synonym) -> tuple[dict[int, float], SparseVector]:
    return add_synonyms(WeightedQuestion((((1,),), ((2,),)), (4.0, 1.0), synonyms=synonyms), IDF, VECTOR)


def test_a_question_without_synonyms_is_searched_as_it_stands() -> None:
    assert terms() == (IDF, VECTOR)


def test_a_synonym_counts_a_share_of_its_idf() -> None:
    values, vector = terms(Synonym((0,), 4.0, 9, 3.0))
    assert values == {**IDF, 9: pytest.approx(SHARE * 3.0)}
    assert vector == SparseVector((1, 2, 9), (1.0, 1.0, SHARE))


def test_a_rare_synonym_of_a_frequent_word_counts_no_more_than_that_word() -> None:
    values, vector = terms(Synonym((1,), 1.0, 9, 5.0))
    assert values[9] == pytest.approx(SHARE * 1.0)
    weight = dict(zip(vector.indices, vector.values, strict=True))[9]
    assert math.isclose(weight * 5.0, values[9])


def test_a_synonym_that_the_question_has_itself_counts_as_its_own_word() -> None:
    assert terms(Synonym((1,), 1.0, 1, 4.0)) == (IDF, VECTOR)


def test_of_two_words_with_one_synonym_the_rarer_one_counts() -> None:
    both = (Synonym((1,), 1.0, 9, 3.0), Synonym((0,), 4.0, 9, 3.0))
    assert terms(*both)[0][9] == terms(*reversed(both))[0][9] == pytest.approx(SHARE * 3.0)


PAGES = {
    "images.md": "# Media\n\n## Image size\n\nThe command `press` resizes an image.\n",
    "pages.md": "# Pages\n\n## Order\n\nPages follow the order of their names.\n",
    "links.md": "# Links\n\n## Broken links\n\nThe build reports each link that leads nowhere.\n",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> ServiceSession:
    return quill.service(quill.publish(tmp_path_factory.mktemp("index"), {**quill.PAGES, **PAGES}))


def test_other_words_than_those_of_the_docs_find_the_section_and_its_sentence(service: ServiceSession) -> None:
    answer = service.answer(query="shrink pictures")
    assert answer["status"] in ("answered", "partial")
    assert answer["sources_cited"][0].endswith("/images/#image-size")
    assert any("resizes an image" in (segment.get("mark") or "") for segment in answer["segments"])


def test_what_is_defined_is_searched_by_its_own_words(service: ServiceSession) -> None:
    assert service.search("what is a picture", 5, {}) == []


@pytest.mark.parametrize("language", ["de", "ja"])
def test_only_english_questions_have_synonyms(language: str, tmp_path: Path) -> None:
    settings = quill.publish(tmp_path, PAGES, languages=dict.fromkeys(PAGES, language))
    assert quill.service(settings).search("shrink pictures", 5, {}) == []
