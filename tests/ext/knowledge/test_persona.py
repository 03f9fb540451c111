"""The persona: where it is found, what it may contain, how it is indexed, and that no search finds it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api import quill
from chapterverse.cli import app
from chapterverse.embedding import Embedder
from chapterverse.errors import ConfigurationError, InputError, UnreadablePage, UnsafePath
from chapterverse.ext.knowledge.documents import MAX_FILE_TOKENS, read_persona
from chapterverse.ext.knowledge.entries import from_text, persona_of, to_text
from chapterverse.ext.knowledge.folder import find_persona, no_pages, persona_path, persona_source
from chapterverse.ext.site_check.status import derive
from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.ext.transfer import maintenance
from chapterverse.indexing import sync
from chapterverse.indexing.additions import PERSONA_FILE
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import Chunk, Persona, Point, Source
from chapterverse.settings import Settings
from chapterverse.store import Snapshot, open_store
from chapterverse.text.lexical import query_vector

SAID = "---\nname: Inky\nlanguage: pt_br\n---\n\n# Tone\n\nBe brief. Say *zounds* now and then.\n"
INKY = Persona("Inky", "pt-br", "# Tone\n\nBe brief. Say *zounds* now and then.")
PAGES = {"cache.md": quill.CACHE, "install.md": quill.INSTALL}


def read(text: str | bytes) -> Persona:
    return read_persona(PERSONA_FILE, text if isinstance(text, bytes) else text.encode())[0]


def target(root: Path, embedder: Embedder | None = None) -> Target:
    settings = Settings(store=f"edge:{root / 'index'}")
    return Target(quill.SCOPE, open_store(settings), open_ledger(settings), embedder, base_url=quill.BASE)


def sources(root: Path, said: str | bytes | None = SAID) -> list[Source]:
    """Return two pages, and the persona if anything is said."""
    pages = [quill.source(path, text) for path, text in PAGES.items()]
    if said is None:
        return pages
    (root / PERSONA_FILE).write_bytes(said if isinstance(said, bytes) else said.encode())
    return [*pages, persona_source(root / PERSONA_FILE, quill.BASE, root)]


def index(root: Path, said: str | bytes | None = SAID, embedder: Embedder | None = None) -> Report:
    return sync.index(sources(root, said), target(root, embedder))


def snapshot(root: Path) -> Snapshot:
    return target(root).store.snapshot(quill.SCOPE)


def chunks(root: Path) -> list[Chunk]:
    return [point.chunk for point in snapshot(root).points()]


@pytest.mark.parametrize(
    ("said", "persona"),
    [
        (SAID, INKY),
        ("Be kind.", Persona(text="Be kind.")),
        ("---\nname: Inky\n---\n", Persona(name="Inky")),
        ("---\nlanguage: no\n---\n", Persona(language="no")),
        ("---\nname: '42: the answer'\n---\nx", Persona("42: the answer", "", "x")),
        ("\ufeff---\r\nname: Inky\r\n---\r\nBe\r\nkind.\r\n", Persona("Inky", "", "Be\nkind.")),
        ("Be <!-- evil --> kind.<!-- open", Persona(text="Be  kind.")),
        ("Be <!<!-- a -->-- evil --> kind.", Persona(text="Be  kind.")),
        ("Be <\u200b!-- evil --> k\u00adi\u202end.\U000e0065\U000e0076", Persona(text="Be  kind.")),
        ("---\n\nBe kind.\n\n---\n", Persona(text="---\n\nBe kind.\n\n---")),
    ],
)  # fmt: skip
def test_what_a_file_says(said: str, persona: Persona) -> None:
    assert read(said) == persona
    assert from_text(to_text(persona)) == persona


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "persona.md says nothing: write how the chat shall speak, or remove the file."),
        (b" \n<!-- later -->\n", "persona.md says nothing: write how the chat shall speak, or remove the file."),
        (b"---\nname:\n---\n", "persona.md says nothing: write how the chat shall speak, or remove the file."),
        (b"\0\1", "persona.md is not a text file."),
        (b"Sei nett, Gr\xfc\xdfe", "persona.md is not encoded in UTF-8."),
        (b"---\nname: [\n---\nx", "The front matter of persona.md is not valid YAML."),
        (b"---\nname: [a]\n---\nx", "The name in persona.md must be a text of 1 to 60 characters."),
        (b"---\nname: " + b"x" * 61 + b"\n---\nx", "The name in persona.md must be a text of 1 to 60 characters."),
        (
            b"---\n- name: Inky\n---\nx",
            "The front matter of persona.md is a list: write a field a line, such as language: en.",
        ),
        (b"---\nlanguage: very polite\n---\nx", "The language in persona.md must be a tag like en or pt-BR."),
        (
            b"---\ntone: kind\n---\nx",
            (
                "persona.md: 'tone' is no field of a persona: there are timestamp, source, scope, type, name, "
                "language, version, topic."
            ),
        ),
        (b"x " * 500, "persona.md is longer than 400 tokens and is sent with every question: shorten it."),
        (b"x" * 200_000, "persona.md is longer than 400 tokens and is sent with every question: shorten it."),
    ],
)
def test_what_a_file_can_not_say(said: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(said)
    assert str(caught.value) == told
    # Nothing is published without it, and an older one does not go on speaking for the owner.
    with pytest.raises(InputError) as raised:
        index(tmp_path, said)
    assert str(raised.value) == told
    assert target(tmp_path).head() is None


def test_the_longest_persona_is_one_chunk_whatever_the_model_takes(tmp_path: Path) -> None:
    said = " ".join(["word"] * (MAX_FILE_TOKENS - 20))
    embedder = quill.Terms()
    embedder.card = replace(embedder.card, limit=64)
    index(tmp_path, said, embedder)
    assert persona_of(snapshot(tmp_path)) == Persona(text=said)


def test_no_file_that_only_pretends_to_be_one(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "secret").write_text("the key")
    (docs / PERSONA_FILE).symlink_to(tmp_path / "secret")
    pages = [quill.source("cache.md", quill.CACHE)]
    with pytest.raises(UnsafePath):
        sync.index([*pages, persona_source(docs / PERSONA_FILE, quill.BASE, docs)], target(tmp_path))
    (docs / PERSONA_FILE).unlink()
    os.mkfifo(docs / PERSONA_FILE)
    with pytest.raises(UnsafePath):
        sync.index([*pages, persona_source(docs / PERSONA_FILE, quill.BASE, docs)], target(tmp_path))


def test_where_it_is_looked_for(tmp_path: Path) -> None:
    docs, beside, named = tmp_path / "docs", tmp_path, tmp_path / "voice.md"
    docs.mkdir()
    assert find_persona("", docs, beside) is None
    (beside / PERSONA_FILE).touch()
    assert find_persona("", docs, beside) == beside / PERSONA_FILE
    assert find_persona("", None, beside) == beside / PERSONA_FILE
    (docs / PERSONA_FILE).touch()
    assert find_persona("", docs, beside) == docs / PERSONA_FILE
    named.touch()
    assert find_persona(str(named), docs, beside) == named
    with pytest.raises(
        ConfigurationError, match=r"^There is no persona file gone\.md: name one that is there, or none\.$"
    ):
        find_persona("gone.md", docs, beside)


def test_its_place_says_nothing_of_this_machine(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    assert persona_path(docs / "team" / "voice.md", docs) == "team/voice.md"
    assert persona_path(tmp_path / PERSONA_FILE, docs) == "../persona.md"
    assert persona_path(Path("/somewhere/else.md"), docs) == "../else.md"
    assert persona_path(tmp_path / PERSONA_FILE, None) == PERSONA_FILE
    assert no_pages(docs / "team" / "voice.md", docs) == {PERSONA_FILE, "team/voice.md"}
    assert no_pages(None, docs) == {PERSONA_FILE}


@pytest.mark.parametrize("embedder", [None, quill.Terms()], ids=["words", "vectors"])
def test_it_stands_in_the_index_and_no_search_finds_it(tmp_path: Path, embedder: quill.Terms | None) -> None:
    report = index(tmp_path, embedder=embedder)
    live = snapshot(tmp_path)
    assert persona_of(live) == INKY
    (chunk,) = [c for c in chunks(tmp_path) if c.type == "persona"]
    assert (chunk.source_file_path, chunk.url, chunk.anchor_verified) == (PERSONA_FILE, f"{quill.BASE}?persona", False)
    # Counted as the chunk that it is, and as no page and no language.
    assert (live.head.pages, live.head.languages, live.head.chunks) == (2, ("en",), len(chunks(tmp_path)))
    assert report.to_json()["pages"] == {"seen": 3, "new": 3, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 0}
    for question in ("zounds", "persona", "Inky", "Be brief", "tone name language"):
        assert all(hit.chunk.type == "page" for hit in live.search_lexical(query_vector(question), 100))
        if embedder:
            found = live.search_dense(embedder.embed_query(question), 100)
            assert len(found) == len(chunks(tmp_path)) - 1
            assert all(hit.chunk.type == "page" for hit in found)


def test_a_persona_is_never_sent_to_a_model_for_vectors(tmp_path: Path) -> None:
    sent: list[str] = []

    class Listening(quill.Terms):
        def embed_documents(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
            sent.extend(texts)
            return super().embed_documents(texts)

    report = index(tmp_path, embedder=Listening())
    assert sent
    assert report.embedded == len(sent) == len(chunks(tmp_path)) - 1
    assert not any("zounds" in text for text in sent)


def test_the_rest_of_the_index_is_the_same_with_and_without_one(tmp_path: Path) -> None:
    found: list[list[Point]] = []
    calibrations = []
    for name, said in (("with", SAID), ("without", None)):
        root = tmp_path / name
        root.mkdir()
        index(root, said)
        points = snapshot(root).points()
        found.append([replace(p, chunk=p.chunk.stamp("")) for p in points if p.chunk.type == "page"])
        calibrations.append(snapshot(root).head.calibration["floor"])
    assert [p.lexical for p in found[0]] == [p.lexical for p in found[1]]
    assert [p.chunk.chunk_id for p in found[0]] == [p.chunk.chunk_id for p in found[1]]
    assert calibrations[0] == pytest.approx(calibrations[1], abs=0.02)


def test_builds_follow_the_file(tmp_path: Path) -> None:
    index(tmp_path)
    again = index(tmp_path)
    assert (again.generation, again.embedded, len(again.diff.write)) == (1, 0, 0)
    changed = index(tmp_path, "Be loud.")
    assert persona_of(snapshot(tmp_path)) == Persona(text="Be loud.")
    assert (changed.generation, len(changed.files.changed), len(changed.diff.delete)) == (2, 1, 1)
    removed = index(tmp_path, None)
    assert persona_of(snapshot(tmp_path)) == Persona()
    assert (removed.generation, removed.files.removed) == (3, (PERSONA_FILE,))
    assert all(chunk.type == "page" for chunk in chunks(tmp_path))


def test_a_persona_that_went_wrong_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    index(tmp_path)
    with pytest.raises(UnreadablePage):
        index(tmp_path, "x " * 500)
    assert persona_of(snapshot(tmp_path)) == INKY


def test_a_persona_alone_is_no_documentation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no page to index"):
        sync.index(sources(tmp_path)[-1:], target(tmp_path))


def test_status_lists_it_as_a_file(tmp_path: Path) -> None:
    index(tmp_path)
    opened = target(tmp_path)
    files = {f.file_path: (f.state, f.chunk_count) for f in derive(opened.store, opened.ledger, quill.SCOPE).files}
    assert files[PERSONA_FILE] == ("Indexed", 1)


def test_it_travels_with_an_export(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    embedder = quill.Terms()
    index(tmp_path, embedder=embedder)
    lines = list(maintenance.export(snapshot(tmp_path), canonical=False))
    maintenance.fill(maintenance.read_export(lines, "file"), target(there, embedder))
    assert persona_of(snapshot(there)) == INKY
    head, copied = snapshot(tmp_path).head, snapshot(there).head
    assert (copied.pages, copied.languages, copied.chunks) == (head.pages, head.languages, head.chunks)
    ways = [list(maintenance.export(snapshot(root), canonical=True)) for root in (tmp_path, there)]
    assert ways[0] == ways[1]
    # Reading every file again embeds nothing.
    assert sync.index(sources(tmp_path), target(there, embedder)).embedded == 0


def test_a_folder_of_sources_offers_it_as_no_page(tmp_path: Path) -> None:
    (tmp_path / "persona").mkdir()
    for path in (PERSONA_FILE, "index.md", "persona/index.md"):
        (tmp_path / path).write_text(f"# About {path}\n\nText.\n", encoding="utf-8")
    reading = read_markdown_folder(tmp_path, quill.BASE, no_pages=no_pages(None, tmp_path))
    assert [s.file_path for s in reading.sources] == ["index.md", "persona/index.md"]
    assert not reading.warnings
    (tmp_path / "index.md").unlink()
    (tmp_path / "persona" / "index.md").unlink()
    with pytest.raises(InputError, match="no Markdown file"):
        read_markdown_folder(tmp_path, quill.BASE, no_pages=no_pages(None, tmp_path))


def test_the_command_line_finds_names_and_forgets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\nWelcome to the teapot.\n", encoding="utf-8")
    (docs / PERSONA_FILE).write_text("Be loud.", encoding="utf-8")
    (tmp_path / "voice.md").write_text("Be silent.", encoding="utf-8")
    command = ["index", "docs", "--source", "--base-url", quill.BASE, "--store", "edge:index", "--json"]

    def run(*more: str, code: int = 0, **environment: str) -> str:
        done = CliRunner().invoke(app, [*command, *more], env=environment)
        assert done.exit_code == code, done.output
        return done.stdout

    def spoken() -> tuple[str, ...]:
        (head,) = open_store(Settings(store="edge:index")).heads()
        points = list(open_store(Settings(store="edge:index")).snapshot(head.scope).points())
        assert {p.chunk.source_file_path for p in points if p.chunk.type == "page"} == {"index.md"}
        return tuple(from_text(p.chunk.text).text for p in points if p.chunk.type == "persona")

    assert json.loads(run())["pages"]["seen"] == 2
    assert spoken() == ("Be loud.",)
    run("--persona", "voice.md")
    assert spoken() == ("Be silent.",)
    run(CHAPTERVERSE_PERSONA="voice.md")
    assert spoken() == ("Be silent.",)
    run("--persona", "gone.md", code=1)
    assert spoken() == ("Be silent.",)
    (docs / PERSONA_FILE).unlink()
    (tmp_path / PERSONA_FILE).write_text("Be brief.", encoding="utf-8")
    run()
    assert spoken() == ("Be brief.",)
    (tmp_path / PERSONA_FILE).unlink()
    run()
    assert spoken() == ()
