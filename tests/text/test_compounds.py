from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.text.segmentation import divide


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("suchindex", ("such", "index")),
        ("suchergebnissen", ("such", "ergebnis")),
        ("benutzername", ("benutzer", "name")),
        ("zugriffsrechte", ("zugriff", "recht")),
        ("datenbankverbindung", ("datenbank", "verbindung")),
        ("kopfzeile", ("kopf", "zeile")),
        ("suchindexgröße", ("such", "index", "grosse")),
        ("schlüsselwort", ("schlussel", "wort")),
        ("schluesselwort", ("schlussel", "wort")),
        ("quelldateien", ("quell", "datei")),
        ("neuaufbau", ("neu", "aufbau")),
        ("sicherheitslücke", ("sicherheit", "lucke")),
        ("produktionsumgebung", ("produktion", "umgebung")),
    ],
)
def test_compounds_are_divided(word: str, parts: tuple[str, ...]) -> None:
    assert divide(word) == parts


@pytest.mark.parametrize(
    "word",
    [
        "index", "server", "dateien", "einstellungen", "kontrolle", "programmieren", "portierung", "informationen",
        "verfügbarkeit", "administrator", "wiederherstellung", "x" * 200,
    ],
)  # fmt: skip
def test_other_words_stay_whole(word: str) -> None:
    assert divide(word) == ()


@given(st.text(st.sampled_from("suchindexdateinamesenüöäßx"), max_size=80))
def test_parts_are_two_or_more_and_not_longer_than_the_word(word: str) -> None:
    parts = divide(word)
    assert len(parts) != 1
    assert all(parts)
    assert sum(map(len, parts)) <= len(word.replace("ß", "ss"))
