"""`chapterverse remember`: files in the folder of knowledge, and nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from chapterverse.cli import app
from chapterverse.ext.knowledge.documents import read_knowledge
from chapterverse.indexing.additions import find_documents
from chapterverse.model import MEMORY
from chapterverse.settings import Settings

FACT = "The *enterprise* edition: no limit?"


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner(env={"CHAPTERVERSE_KNOWLEDGE": "", **environment}).invoke(app, ["remember", *arguments])


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())


def test_it_writes_a_file_that_the_index_reads(site: Path) -> None:
    done = run(FACT, "--importance", "5", "--tag", "a: b", "--tag", "ö", "--entity", "enterprise", "--json")
    name = "docs/knowledge/memory/the-enterprise-edition-no-limit.md"
    assert json.loads(done.stdout) == {"file": name, "removed": False}
    assert files(site) == [name]
    [source] = find_documents(Settings(), site / "docs", site).sources([], "https://docs.example/")[0]
    page = source.read()
    assert page.sections[0].blocks[0].text == FACT
    assert page.tags == ("a: b", "ö")
    assert page.created_at is not None
    assert (page.facts["importance"], page.facts["entity"], page.facts["scope"]) == (
        5,
        "enterprise",
        "entity:enterprise",
    )


def test_no_file_is_overwritten_and_one_is_removed(site: Path) -> None:
    for _ in range(3):
        assert run(FACT).exit_code == 0
    folder = site / "docs/knowledge/memory"
    assert [p.name.removeprefix("the-enterprise-edition-no-limit") for p in sorted(folder.iterdir())] == [
        "-2.md",
        "-3.md",
        ".md",
    ]
    assert run("--remove", "the-enterprise-edition-no-limit-2.md").exit_code == 0
    done = run("--remove", str(folder / "the-enterprise-edition-no-limit.md"), "--json")
    assert json.loads(done.stdout)["removed"] is True
    assert [path.name for path in folder.iterdir()] == ["the-enterprise-edition-no-limit-3.md"]


def test_the_folder_of_knowledge(site: Path) -> None:
    assert run(FACT, "--knowledge", "notes").exit_code == 0
    assert run(FACT, CHAPTERVERSE_KNOWLEDGE="others").exit_code == 0
    assert [path.split("/")[0] for path in files(site)] == ["notes", "others"]
    (site / "docs").rmdir()
    done = run(FACT)
    assert (done.exit_code, type(done.exception).__name__) == (1, "ConfigurationError")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "Give either a TEXT or --remove FILE"),
        (("a", "--remove", "b.md"), 2, "Give either a TEXT or --remove FILE"),
        (("a", "--importance", "10"), 2, "--importance"),
        (("a", "--entity", "a/b"), 1, "entity must be 1 to 64 letters"),
        (("a", "--tag", ""), 1, "tags must be a list"),
        ((" \n",), 1, "holds no fact"),
        (("x" * 100_000,), 1, "longer than 512 tokens"),
        (("--remove", "none.md"), 1, "There is no memory none.md"),
        (("--remove", "docs/page.md"), 1, "docs/page.md is no memory"),
        (("--remove", "docs/knowledge/memory/../../page.md"), 1, "is no memory"),
        (("--remove", "docs/knowledge/memory"), 1, "is no memory"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    site: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    (site / "docs/page.md").write_text("# Page", encoding="utf-8")
    (site / "docs/knowledge/memory").mkdir(parents=True)
    before = files(site)
    done = run(*arguments)
    assert done.exit_code == code
    assert sentence in done.output + str(done.exception)
    assert files(site) == before


def test_a_link_is_removed_and_not_its_target(site: Path) -> None:
    (site / "docs/page.md").write_text("# Page", encoding="utf-8")
    (site / "docs/knowledge/memory").mkdir(parents=True)
    (site / "docs/knowledge/memory/link.md").symlink_to(site / "docs/page.md")
    assert run("--remove", "link.md").exit_code == 0
    assert files(site) == ["docs/page.md"]


def test_what_looks_like_front_matter_is_text(site: Path) -> None:
    assert run("--", "---\nimportance: 9\n---\nInk is free.").exit_code == 0
    [name] = (site / "docs/knowledge/memory").iterdir()
    content = name.read_bytes()
    content_hash = hashlib.sha256(content).hexdigest()
    page = read_knowledge(name.parent, name.name, kind=MEMORY, content_hash=content_hash, path="x", language="en")
    assert (page.facts["importance"], "importance: 9" in page.sections[0].blocks[0].text) == (3, True)
