"""FAQ and memory files: their entries, their mistakes, and how the index follows them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api import quill
from chapterverse.cli import app
from chapterverse.errors import ConfigurationError, InputError
from chapterverse.ext.knowledge.documents import read_faq, without_comments
from chapterverse.ext.site_check.status import derive
from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.ext.transfer import maintenance
from chapterverse.indexing import sync
from chapterverse.indexing.additions import find_documents
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import FAQ, MEMORY, Chunk
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse_api.contract import ChatQuery, ChatResponse, RetrievalRequest
from chapterverse_api.ext.agents.mcp.protocol import page_list
from chapterverse_api.ext.agents.tools.documentation import documentation_tools
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.service import Service

QUESTIONS = """---
topic: Orders
_version: 2
page: install.md
---
# About orders

## How do I `undo` an order? {#undo}

Write to *us*.

```sh
quill undo  # <!-- kept -->
```

## Who ships it?

- The press.<!-- secret -->
- Nobody else.
"""
FACT = "---\nimportance: 5\ntags: [ink]\nentity: enterprise\nscope: entity:enterprise\n---\nInk is free.\n"
FILES = {"faq/orders.md": QUESTIONS, "memory/ink.md": FACT}
PAGES = {"cache.md": quill.CACHE, "install.md": quill.INSTALL}


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = root / "docs/knowledge" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def target(root: Path) -> Target:
    settings = Settings(store=f"edge:{root / 'index'}")
    return Target(quill.SCOPE, open_store(settings), open_ledger(settings), base_url=quill.BASE)


def index(root: Path) -> tuple[Report, list[str]]:
    docs = root / "docs"
    docs.mkdir(parents=True, exist_ok=True)
    pages = [quill.source(path, text) for path, text in PAGES.items()]
    others, warnings = find_documents(Settings(), docs, root).sources(pages, quill.BASE)
    return sync.index([*pages, *others], target(root)), warnings


def chunks(root: Path, kind: str) -> list[Chunk]:
    return target(root).store.snapshot(quill.SCOPE).page(kind, "type")


def test_an_entry_is_a_chunk_word_for_word(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    report, warnings = index(tmp_path)
    assert (len(report.files.new), warnings, report.warnings) == (4, [], ())
    undo, ships = chunks(tmp_path, FAQ)
    assert undo.text == "Write to *us*.\n\n```sh\nquill undo  # <!-- kept -->\n```"
    assert ships.text == "- The press.\n- Nobody else."
    assert undo.heading_path == ("About orders", "How do I undo an order?")
    assert (undo.topic, undo.revision, undo.content_type, undo.language) == ("Orders", "2", "faq", "en")
    assert undo.source_file_path == "knowledge/faq/orders.md"
    [fact] = chunks(tmp_path, MEMORY)
    assert (fact.text, fact.importance, fact.tags, fact.entity) == ("Ink is free.", 5, ("ink",), "enterprise")
    assert (fact.scope, fact.source, fact.url) == ("entity:enterprise", "kb", "")
    head = target(tmp_path).head()
    assert head is not None
    assert (head.pages, head.languages) == (2, ("en",))


def test_files_are_edited_renamed_and_deleted_like_pages(tmp_path: Path) -> None:
    index(tmp_path)
    before = list(maintenance.export(target(tmp_path).store.snapshot(quill.SCOPE), canonical=True))
    write(tmp_path, FILES)
    index(tmp_path)
    assert index(tmp_path)[0].diff.empty
    folder = tmp_path / "docs/knowledge"
    write(tmp_path, {"faq/orders.md": QUESTIONS.replace("Nobody", "No one")})
    (folder / "memory/ink.md").rename(folder / "memory/free.md")
    report, _ = index(tmp_path)
    assert (len(report.diff.write), len(report.diff.embed)) == (2, 2)
    assert chunks(tmp_path, FAQ)[1].text.endswith("No one else.")
    assert [c.source_file_path for c in chunks(tmp_path, MEMORY)] == ["knowledge/memory/free.md"]
    for path in ("faq/orders.md", "memory/free.md"):
        (folder / path).unlink()
    index(tmp_path)
    assert list(maintenance.export(target(tmp_path).store.snapshot(quill.SCOPE), canonical=True)) == before


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("faq/a.md", "", "knowledge/faq/a.md holds no question: write each as a heading, and its answer below it."),
        (
            "faq/a.md",
            "# A?\n\n# B?\n\nYes.",
            "knowledge/faq/a.md: the question “A?” has no answer: write one below it.",
        ),
        ("faq/a.md", "Hi.\n\n# A?\n\nYes.", "knowledge/faq/a.md: the text above the first heading answers no question"),
        ("faq/a.md", "---\n[\n---\n# A?\n\nYes.", "The front matter of knowledge/faq/a.md is not valid YAML."),
        ("faq/a.md", "---\n- x\n---\n# A?\n\nYes.", "The front matter of knowledge/faq/a.md is a list: write a field"),
        ("memory/a.md", "---\nimportance 5\n---\nA.", "The front matter of knowledge/memory/a.md is a text: write a"),
        ("faq/a.md", "---\nimportance: 1\n---\n# A?\n\nYes.", "knowledge/faq/a.md: 'importance' is no field of a faq"),
        ("faq/a.md", "# A?\n\n" + "word " * 600, "knowledge/faq/a.md: the answer to “A?” is longer than 512 tokens"),
        ("memory/a.md", " \n", "knowledge/memory/a.md holds no fact: write one, or remove the file."),
        ("memory/a.md", "x" * 100_000, "knowledge/memory/a.md is longer than 512 tokens: write one fact a file."),
        (
            "memory/a.md",
            "---\nimportance: 10\n---\nA.",
            "knowledge/memory/a.md: importance must be a whole number from 1 to 5.",
        ),
        ("memory/a.md", "---\nentity: a/b\n---\nA.", "knowledge/memory/a.md: entity must be 1 to 64 letters"),
    ],
)
def test_a_bad_file_fails_alone_and_keeps_its_last_good_chunks(
    tmp_path: Path, path: str, text: str, sentence: str
) -> None:
    good = {**FILES, path: "# A?\n\nYes." if path.startswith("faq") else "A good fact."}
    write(tmp_path, good)
    index(tmp_path)
    before = [chunks(tmp_path, FAQ), chunks(tmp_path, MEMORY)]
    write(tmp_path, {path: text})
    report, _ = index(tmp_path)
    assert [w.startswith(sentence) for w in report.warnings] == [True], report.warnings
    assert [chunks(tmp_path, FAQ), chunks(tmp_path, MEMORY)] == before


def test_what_is_no_file_fails_alone_and_keeps_its_last_good_chunks(tmp_path: Path) -> None:
    folder = tmp_path / "docs/knowledge/faq"
    special: dict[str, tuple[Callable[[Path], object], str]] = {
        "pipe.md": (os.mkfifo, "is a pipe, a device or something else that is no regular file: remove it."),
        "socket.md": (_bind, "is a pipe, a device or something else that is no regular file: remove it."),
        "folder.md": (Path.mkdir, "is a pipe, a device or something else that is no regular file: remove it."),
        "dangling.md": (lambda f: f.symlink_to("nothing"), "is a link that leads nowhere: remove it."),
        "circle.md": (lambda f: f.symlink_to(f.name), "is a link that leads in a circle: remove it."),
        "outside.md": (
            lambda f: f.symlink_to("/etc/passwd"),
            "leads out of the project, so it is not read: put the file there.",
        ),
    }
    write(tmp_path, {**FILES, **{f"faq/{name}": f"# What is {name}?\n\nNo file." for name in special}})
    index(tmp_path)
    before = [chunks(tmp_path, FAQ), chunks(tmp_path, MEMORY)]
    for name, (make, _) in special.items():
        (folder / name).unlink()
        make(folder / name)
    report, _ = index(tmp_path)
    expected = [f"knowledge/faq/{name} {sentence}" for name, (_, sentence) in special.items()]
    assert sorted(report.warnings) == sorted(expected)
    assert [chunks(tmp_path, FAQ), chunks(tmp_path, MEMORY)] == before
    # The same folder is read as Markdown, of which these files are no pages.
    (tmp_path / "docs/guide.md").write_text("# Guide\n\nText.\n", encoding="utf-8")
    documents = find_documents(Settings(), tmp_path / "docs", tmp_path)
    reading = read_markdown_folder(tmp_path / "docs", quill.BASE, no_pages=documents.no_pages)
    assert [source.file_path for source in reading.sources] == ["guide.md"]


def _bind(file: Path) -> None:
    # A path of a socket may be too long for its address.
    with contextlib.chdir(file.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(file.name)


def test_a_link_to_no_folder_keeps_the_documents(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    index(tmp_path)
    folder = tmp_path / "docs/knowledge/faq"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to("nothing")
    with pytest.raises(InputError, match=r"faq is not a folder\."):
        index(tmp_path)
    assert len(chunks(tmp_path, FAQ)) == 2


def test_a_name_that_no_address_can_hold_is_told(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "faq/bell\a.md": "# A?\n\nYes."})
    [warning] = index(tmp_path)[1]
    assert warning.startswith(r"knowledge/faq/'bell\x07.md' is skipped")


def test_the_page_that_a_document_names(tmp_path: Path) -> None:
    pages = [quill.source(path, text) for path, text in PAGES.items()]
    for named, url in {
        "install.md": f"{quill.BASE}install/",
        "/install/#on-linux": f"{quill.BASE}install/#on-linux",
        f"{quill.BASE}install": f"{quill.BASE}install/",
        "gone.md": "",
        "https://elsewhere.example/install/": "",
    }.items():
        write(tmp_path, {"faq/a.md": f"---\npage: {named}\n---\n# A?\n\nYes."})
        sources, warnings = find_documents(Settings(), tmp_path / "docs", tmp_path).sources(pages, quill.BASE)
        assert sources[0].read().url == url
        assert bool(warnings) == (url == "")
        assert not warnings or f"names the page {named!r}, which the site does not have" in warnings[0]


def test_two_entries_with_one_question_are_one_warning(tmp_path: Path) -> None:
    write(tmp_path, {"faq/a.md": "# Who ships it?\n\nWe.", "faq/b.md": "# who ships it\n\nThey."})
    report, _ = index(tmp_path)
    assert report.warnings == (
        "knowledge/faq/a.md and knowledge/faq/b.md both answer the question “who ships it”: keep one.",
    )


def test_one_question_twice_in_a_file_is_one_warning_too(tmp_path: Path) -> None:
    entries = "# Who ships it?\n\nWe.\n\n# Who packs it?\n\nWe.\n\n"
    write(tmp_path, {"faq/a.md": entries + "# Who ships it?\n\nThey.\n\n# Who ships it\n\nNobody."})
    report, _ = index(tmp_path)
    assert report.warnings == (
        "knowledge/faq/a.md answers the question “Who ships it?” more than once: keep one answer.",
    )


def test_one_question_twice_to_the_letter_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, {"faq/a.md": "# Who ships it?\n\nWe.\n\n# Who ships it?\n\nThey."})
    report, _ = index(tmp_path)
    assert report.warnings == (
        "knowledge/faq/a.md answers the question “Who ships it?” more than once: keep one answer.",
    )


def test_an_imported_document_stays(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    index(tmp_path)
    rows = [
        json.loads(row) for row in maintenance.export(target(tmp_path).store.snapshot(quill.SCOPE), canonical=False)
    ]
    for row in rows[1:]:
        row["source"] = "import" if row["type"] == MEMORY else row["source"]
    maintenance.fill(maintenance.read_export([json.dumps(row) for row in rows], "x"), target(tmp_path))
    for path in FILES:
        (tmp_path / "docs/knowledge" / path).unlink()
    index(tmp_path)
    assert [c.text for c in chunks(tmp_path, MEMORY)] == ["Ink is free."]
    assert chunks(tmp_path, FAQ) == []
    assert index(tmp_path)[0].diff.empty
    states = derive(target(tmp_path).store, target(tmp_path).ledger, quill.SCOPE, [])
    assert {file.file_path: file.state for file in states.files}["knowledge/memory/ink.md"] == "Indexed"


def test_the_persona_may_stand_with_the_others(tmp_path: Path) -> None:
    write(tmp_path, {"persona/voice.md": "---\nname: Inky\ntopic: tone\nversion: 1.2\n---\nBe brief."})
    index(tmp_path)
    [persona] = chunks(tmp_path, "persona")
    assert (persona.source_file_path, persona.topic, persona.revision) == ("knowledge/persona/voice.md", "tone", "1.2")
    (tmp_path / "docs/persona.md").write_text("Be loud.", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="are both a persona: keep one"):
        index(tmp_path)


def test_a_folder_of_markdown_keeps_its_documents_apart(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "docs/index.md").write_text("# Home\n\nWelcome.", encoding="utf-8")
    (tmp_path / "docs/knowledge/base.md").write_text("# Base\n\nA page.", encoding="utf-8")
    arguments = ["index", str(tmp_path / "docs"), "--source", "--base-url", quill.BASE, "--json"]
    done = CliRunner().invoke(app, [*arguments, "--store", f"edge:{tmp_path / 'i'}", "--site", "quill"])
    report = json.loads(done.stdout)
    assert (report["pages"]["new"], report["chunks"]["total"]) == (4, 5)
    assert "names the page 'install.md', which the site does not have" in report["warnings"][0]
    with pytest.raises(ConfigurationError, match=r"There is no folder .* with knowledge"):
        find_documents(Settings(knowledge=str(tmp_path / "none")), None, tmp_path)


def test_the_chat_searches_answers_and_links_none_that_has_no_page(tmp_path: Path) -> None:
    entry = "# Who ships ordered zeppelins?\n\nZeppelins are shipped by the harbour office."
    write(tmp_path, {"faq/a.md": entry, "memory/a.md": "Zeppelins are shipped by nobody."})
    index(tmp_path)
    service = Service.open(Settings(store=f"edge:{tmp_path / 'index'}"))
    *_, answer = service.chat(ChatQuery(query="Who ships ordered zeppelins?"))
    assert isinstance(answer, ChatResponse)
    assert "harbour office" in answer.response
    assert "nobody" not in answer.response
    assert (answer.source_chunks[0].url, answer.sources_cited) == (None, [])


def test_a_title_is_no_question() -> None:
    assert read_faq("# T\n\n## A\n\nB", "x.md", "X")[0] == "T"
    with pytest.raises(InputError, match="the question “D” has no answer"):
        read_faq("# T\n\n## A\n\nB\n\n# D", "x.md", "X")


def test_a_comment_in_code_stays() -> None:
    assert without_comments("a<!-- b -->c\n\n```\n<!-- d -->\n```\n<!-- e") == "ac\n\n```\n<!-- d -->\n```\n"


def test_tools_read_pages_and_neither_the_entries_beside_them_nor_facts(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    index(tmp_path)
    service = quill.service(Settings(store=f"edge:{tmp_path / 'index'}"))
    (page,) = {str(r["uri"]) for r in page_list(None, service.resources.index)["resources"]} - {f"{quill.BASE}cache/"}
    assert page == f"{quill.BASE}install/"
    read = documentation_tools()["read_section"].run({"url": page, "max_tokens": 20_000}, ToolContext(service))
    texts = "\n".join(section["quote"] for section in read["sections"])
    assert read["chapter"] == "Installing Quill"
    assert "quill undo" not in texts


def test_a_document_of_one_entity_is_searched_only_by_its_scope(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    index(tmp_path)
    service = quill.service(Settings(store=f"edge:{tmp_path / 'index'}"))
    for filters, found in (({}, False), ({"scope": "entity:enterprise"}, True)):
        request = RetrievalRequest.model_validate({"query": "Is ink free?", "filters": filters})
        texts = [chunk.text for chunk in service.retrieve(request).retrieved_chunks]
        assert any("Ink is free." in text for text in texts) is found
