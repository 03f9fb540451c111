from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.model import SparseVector
from chapterverse.text.lexical import (
    AVERAGE_LENGTH,
    K1,
    B,
    document_vector,
    query_vector,
    question_language,
    question_words,
    terms_of,
    words,
)
from growth import assert_linear

ANYTHING = st.text(st.characters(codec=None), max_size=200)
CODE = st.text(st.sampled_from("aB1_.-:/@'’+#字é \n"), max_size=200)
LANGUAGES = ["en", "de", "fr", "es", "da", "fi", "it", "nl", "no", "pl", "pt", "ro", "ru", "sv", "tr", "ja", "xx", ""]


def terms(text: str, language: str = "en") -> frozenset[int]:
    return terms_of(words(text, language))


def surfaces(text: str, language: str = "en") -> list[str]:
    return [word.surface for word in words(text, language)]


def finds(question: str, text: str, language: str = "en") -> bool:
    """Whether every word of the question is among the text's terms, whole or in all its parts."""
    held = terms(text, language)
    return all(w.terms[0] in held or set(w.terms[1:] or w.terms) <= held for w in words(question, language))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("navigation.instant", ["navigation.instant", "instant navigation", "NAVIGATION.INSTANT"]),
        ("fooBarBaz", ["fooBarBaz", "foobarbaz", "foo bar baz", "bar"]),
        ("HTTPServer", ["httpserver", "http server"]),
        ("snake_case_name", ["snake_case_name", "snake case", "name"]),
        ("__init__.py", ["init.py", "__init__.py", "py"]),
        ("--dry-run", ["dry-run", "--dry-run", "dry run"]),
        ("docs/getting-started/index.md", ["getting-started", "docs/getting-started/index.md", "index.md"]),
        ("C++", ["c++", "C++"]),
        ("C#", ["c#"]),
        ("python3.11", ["python3.11", "python 3.11", "python"]),
        ("user@example.com", ["user@example.com", "example.com"]),
        ("std::vector", ["std::vector", "vector"]),
        ("v1.2.3", ["v1.2.3", "1.2.3"]),
    ],
)
def test_identifiers_are_found_whole_and_in_parts(written: str, asked: list[str]) -> None:
    for question in asked:
        assert finds(question, f"Set {written} now."), question


@pytest.mark.parametrize("other", ["C", "C#", "c--"])
def test_an_identifier_is_not_its_neighbor(other: str) -> None:
    assert not finds("C++", other)


def test_the_whole_identifier_comes_first() -> None:
    (word,) = words("fooBar")
    (whole,) = words("foobar")
    assert word.terms[0] == whole.terms[0]
    assert len(word.terms) == 3


def test_punctuation_around_words_is_nothing() -> None:
    assert surfaces("…(chunks)! — [index]; **ledger**. #tag /path/ -flag 'x'") == [
        "chunks", "index", "ledger", "tag", "path", "flag", "x",
    ]  # fmt: skip
    assert surfaces("!!! ... ___ --- @ # '") == []


@pytest.mark.parametrize(
    ("language", "sentence", "kept"),
    [
        ("en", "How do I configure the port, and why don't you?", ["configure", "port"]),
        ("en", "It’s what they’ll say", ["they’ll", "say"]),
        ("de", "Wie kann ich den Port ändern und wo ist er?", ["port", "ändern"]),
        ("fr", "Comment puis-je changer le port de l'index ?", ["changer", "port", "l'index"]),
        ("fr", "Qu’est-ce qu'il faut faire, et où a-t-il été ?", []),
        ("es", "¿Cómo puedo cambiar el puerto?", ["cambiar", "puerto"]),
        ("it", "Come posso cambiare la porta dell'indice?", ["cambiare", "porta", "dell'indice"]),
        ("nl", "Hoe kan ik de poort wijzigen?", ["poort", "wijzigen"]),
        ("pt", "Como posso mudar a porta?", ["mudar", "porta"]),
        ("de", "Koennte man fuer mich pruefen?", ["pruefen"]),
        ("zh", "怎么修改端口？", ["修改", "改端", "端口"]),
        ("zh-Hant", "如何修改", ["修改"]),
        ("ja", "ポートを変えるには", ["ポート", "変"]),
        ("ko", "포트를 어떻게 바꾸나요", ["포트", "바꾸"]),
        ("en-GB", "the port", ["port"]),
    ],
)
def test_function_words_are_left_out(language: str, sentence: str, kept: list[str]) -> None:
    assert surfaces(sentence, language) == kept


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "configuring", "configures"),
        ("en", "chunk's", "chunks"),
        ("de", "Häuser", "hauser"),
        ("fr", "l'index", "index"),
        ("fr", "configurée", "configurées"),
        ("fr", "configurez-le", "configurez"),
        ("fr", "d’index.html", "index.html"),
        ("it", "dell'indice", "indice"),
        ("de", "Schlüssel", "Schluessel"),
        ("de", "Größe", "Groesse"),
        ("es", "configuración", "configuracion"),
        ("ja", "サーバー", "サーバ"),
        ("ja", "ＡＰＩ８０", "API80"),
        ("ja", "ｲﾝﾃﾞｯｸｽ", "インデックス"),
        ("ru", "настройки", "настройка"),
        ("en", "café", "cafe\u0301"),
        ("en", "naïve", "naive"),
        ("xx", "über", "uber"),
    ],
)
def test_forms_of_a_word_share_a_term(language: str, one: str, other: str) -> None:
    assert terms(one, language) == terms(other, language)


def test_a_language_without_a_stemmer_keeps_words_as_they_are() -> None:
    assert terms("running", "xx") != terms("runs", "xx")


def test_numbers_are_not_stemmed() -> None:
    assert terms("1000") != terms("100")


def test_scripts_without_spaces_are_read_two_characters_at_a_time() -> None:
    assert surfaces("日本語", "ja") == ["日本", "本語"]
    assert surfaces("字") == ["字"]
    assert surfaces("使用API接口") == ["使用", "api", "接口"]
    assert surfaces("한국어 검색") == ["한국어", "검색"]
    assert finds("本語", "日本語の文章", "ja")
    assert finds("데이터", "데이터베이스를", "ko")


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        ("de", "Index der Suche", "Der Suchindex"),
        ("de", "Suchindex", "Der SuchIndex"),
        ("de", "Größen von Dateien", "Die Dateigröße"),
        ("fr", "donnees", "les données"),
        ("fr", "données", "les donnees"),
        ("fr", "oublié", "j'oublie"),
        ("ja", "データベースサーバー", "データベースのサーバ"),
    ],
)
def test_a_question_finds_other_forms(language: str, question: str, text: str) -> None:
    held = terms(text, language)
    assert all(held & set(word.terms) for word in words(question, language))


def test_signs_on_letters_are_part_of_the_word() -> None:
    assert surfaces("हिन्दी में खोज।", "hi") == ["हिन्दी", "में", "खोज"]
    assert terms("שָׁלוֹם", "he") == terms("שלום", "he")
    assert terms("x\u0302") == terms("x")


def test_english_words_have_one_form() -> None:
    assert [len(w.terms) for w in words("Suchindex données résumé benutzername")] == [1, 1, 1, 1]


# Vectors


def assert_sound(vector: SparseVector) -> None:
    assert len(vector.indices) == len(vector.values)
    assert list(vector.indices) == sorted(set(vector.indices))
    assert all(0 <= i < 2**32 for i in vector.indices)
    assert all(v > 0 and math.isfinite(v) for v in vector.values)


@settings(deadline=None)
@given(st.lists(ANYTHING, max_size=3), st.one_of(ANYTHING, CODE), st.sampled_from(LANGUAGES))
def test_vectors_are_sorted_unique_and_finite(path: list[str], text: str, language: str) -> None:
    assert_sound(document_vector(path, text, language))
    assert_sound(query_vector(text, [language, "en"]))


@settings(deadline=None)
@given(CODE, st.sampled_from(LANGUAGES))
def test_a_text_is_found_by_its_own_words(text: str, language: str) -> None:
    assert set(query_vector(text, [language]).indices) == set(document_vector((), text, language).indices)


def test_weights_are_bm25_with_a_fixed_average_length() -> None:
    (term,) = terms("chunk")
    vector = document_vector((), "chunk chunk index")
    norm = K1 * (1 - B + B * 3 / AVERAGE_LENGTH)
    assert dict(zip(vector.indices, vector.values, strict=True))[term] == pytest.approx(2 * (K1 + 1) / (2 + norm))


def test_a_vector_depends_on_that_chunk_alone() -> None:
    before = document_vector(("Guide",), "Set the port.")
    for i in range(50):
        document_vector((f"Other {i}",), f"Different text {i}")
    assert document_vector(("Guide",), "Set the port.") == before


def test_words_of_the_path_count_more_and_once_for_each_heading() -> None:
    (term,) = terms("ledger")

    def weight(path: tuple[str, ...], text: str) -> float:
        vector = document_vector(path, text)
        return dict(zip(vector.indices, vector.values, strict=True)).get(term, 0.0)

    assert weight(("Ledger",), "words") > weight((), "ledger words") > 0
    assert weight(("Ledger", "Ledger"), "words") == weight(("Ledger",), "words")


@pytest.mark.parametrize("text", ["", " \n", "…", "the of and", "_", "'"])
def test_a_text_without_words_has_an_empty_vector(text: str) -> None:
    assert document_vector((), text) == query_vector(text) == SparseVector((), ())


def test_a_question_is_read_by_the_rules_of_every_language() -> None:
    both = set(query_vector("Häuser running", ["de", "en"]).indices)
    assert both == terms("Häuser running", "de") | terms("Häuser running", "en")


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("wie kann ich die Datenbank sichern", {"datenbank", "sichern"}),
        ("what is the port of this server", {"port", "server"}),
        ("how do processes die", {"processes", "die"}),
        ("die casting", {"casting"}),
        ("怎么修改端口", {"修改", "改端", "端口"}),
        ("", set()),
    ],
)
def test_function_words_of_the_question_are_left_out_in_every_reading(question: str, kept: set[str]) -> None:
    assert {word.surface for word in question_words(question, ["en", "de", "zh", "en-GB"])} == kept


def test_a_question_to_no_language_has_no_words() -> None:
    assert list(question_words("port", [])) == []


# Hostile input, threads, cost


@pytest.mark.parametrize(
    "pattern", ["a.", "a-'", "aB", "a_", "字", "'", "--", "a...", "é", "x+", "a/b:", "1a", "\u0301", "’a"]
)
def test_hostile_text_takes_linear_time(pattern: str) -> None:
    assert_linear(lambda size: assert_sound(document_vector((), (pattern * size)[:size])), 10_000, 100_000)


def test_long_tokens_are_not_remembered() -> None:
    from chapterverse.text.lexical import _word

    before = _word.cache_info().currsize
    for i in range(50):
        list(words(f"{i}" + "x" * 4000))
    assert _word.cache_info().currsize == before


def test_threads_stem_as_one_does() -> None:
    vocabulary = [f"{stem}{ending}" for stem in ("configur", "index", "relat", "gener") for ending in
                  ("ation", "ations", "ing", "ed", "es", "able", "ability", "ally", "izing", "ational")]  # fmt: skip
    batches = [" ".join(f"{w}{i}q {w}" for w in vocabulary) for i in range(40)]
    program = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from chapterverse.text.lexical import words
sys.setswitchinterval(1e-6)
batches = {batches!r}
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda text: [w.terms for w in words(text)], batches))
print(hash(tuple(map(tuple, found))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    alone = hash(tuple(tuple(w.terms for w in words(text)) for text in batches))
    assert int(done.stdout) == alone


def test_no_stemmer_is_loaded_before_a_word_is_read() -> None:
    program = """
import sys
from chapterverse.text import lexical
assert "snowballstemmer" not in sys.modules
list(lexical.words("running"))
assert "snowballstemmer" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_stems_are_the_same_where_pystemmer_is_installed(tmp_path: Path) -> None:
    # Its release may have other rules than the one that an index was made with.
    (tmp_path / "Stemmer.py").write_text("def algorithms(): return []\nStemmer = None\n")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from chapterverse.text.lexical import stem
import Stemmer
assert [stem("configurations", "en"), stem("maisons", "fr")] == ["configur", "maison"]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_threads_may_load_a_stemmer_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: frozenset(terms("nehirlerin", "tr")), range(32)))
    assert len(found) == 1


def test_contractions_without_their_apostrophe_are_function_words_of_questions_alone() -> None:
    assert [w.surface for w in question_words("whats the id, i dont see it", ["en"])] == ["id", "see"]
    assert [w.surface for w in words("Whats new")] == ["whats", "new"]
    assert [w.surface for w in question_words("die whats", ["de"])] == ["whats"]


def test_a_question_that_tells_no_language_is_english_where_the_index_has_english() -> None:
    assert question_language("kubernetes", ["de", "en"]) == question_language("doesnt start", ["de", "en"]) == "en"
    assert question_language("kubernetes", ["de", "fr"]) == "de"
    assert question_language("wie geht das", ["de", "en"]) == "de"
