from __future__ import annotations

import pytest

from chapterverse_api import phrases


@pytest.mark.parametrize(("tag", "like"), [("de-AT", "de"), ("DE", "de"), ("pt-BR", "pt"), ("zh-Hant", "zh")])
def test_a_region_speaks_its_language(tag: str, like: str) -> None:
    assert phrases.for_language(tag) == phrases.for_language(like) != phrases.for_language("en")


@pytest.mark.parametrize("tag", ["", "xx", "tlh", "-"])
def test_a_language_we_do_not_speak_is_answered_in_english(tag: str) -> None:
    assert phrases.for_language(tag) == phrases.for_language("en")
