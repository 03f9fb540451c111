"""Quotes: verbatim, without a check where nothing in them can be markup, and without foreign markup otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from api import quill
from chapterverse_api.contract import ChatResponse

#: What a page of others may hold, with what a reader must not get of it.
HOSTILE = {
    "an image behind a bracket": ("!\\[]![tea][p]", "!["),
    "a link to nowhere": ("[tea](<javascript:alert(1)> (x", "]("),
    "an element of JSX": ("<Whistle platforms={['kettle', 'pot']} />", "<Whistle"),
    "an image of JSX": ("<img\nsrc={fetch('https://evil.example.net/p.png')}\nalt=\"tea\"\n/>", "<img"),
}


def answer(root: Path, text: str) -> ChatResponse:
    pages = {**quill.PAGES, "kettle.md": f"# Kettle\n\n## Whistle\n\nThe kettle whistles for tea: {text}\n"}
    return quill.ask(quill.service(quill.publish(root, pages)), "When does the kettle whistle?")


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_quote_brings_no_foreign_markup(attack: str, tmp_path: Path) -> None:
    text, forbidden = HOSTILE[attack]
    said = answer(tmp_path, text)
    assert "The kettle whistles for tea" in said.response
    assert forbidden not in said.response
    assert said.sources_cited


@pytest.mark.parametrize("text", ["call Stopper.__call__ first.", "see dashboard.example.org->search", "`a[b](c) <x>`"])
def test_a_quote_keeps_the_words_of_its_source(text: str, tmp_path: Path) -> None:
    said = answer(tmp_path, text)
    assert f"The kettle whistles for tea: {text}" in said.response
    assert [segment.check for segment in said.segments if segment.kind == "quote"] == ["confirmed"]


def test_a_quote_needs_no_room(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path)
    program = (
        "import sys; from chapterverse.settings import Settings; from chapterverse_api.contract import ChatQuery;"
        "from chapterverse_api.service import Service; service = Service.open(Settings(store=sys.argv[1]));"
        "*_, said = service.chat(ChatQuery(query='How do I clear the cache?')); print(said.status, *sys.modules)"
    )
    run = [sys.executable, "-c", program, settings.store]
    status, *loaded = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1].split()
    assert status == "answered"
    assert "chapterverse_api.answer.drafting" in loaded
    assert [
        name for name in loaded if name.startswith(("chapterverse_api.ext.check", "chapterverse_api.ext.models"))
    ] == []
