"""Real builds by Sphinx with the extension, and their results in the index and in the site."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import projects
from chapterverse.indexing.options import OPTIONS
from projects import DOWN, STORE, chat_in, starters_in

BASE = "https://tea.example/docs/"
PAGES = {
    "index.rst": "Tea\n===\n\nWelcome to the teapot.\n\n.. toctree::\n\n   guide/brew\n   guide/clean\n",
    "guide/brew.rst": "Brewing\n=======\n\nHot water first.\n\nGreen tea\n---------\n\nEighty degrees are enough.\n",
    "guide/clean.rst": "Cleaning\n========\n\nVinegar dissolves lime.\n",
}


@dataclass(frozen=True)
class Project(projects.Project):
    """A Sphinx project in its own folder."""

    def configure(self, options: dict[str, Any] | None = None, **config: Any) -> None:
        """Write conf.py; `options` are the extension's own, and the API is at the site's own origin."""
        whole = {
            "project": "Tea Pot",
            "extensions": ["chapterverse.sphinx"],
            "html_baseurl": BASE,
            "chapterverse": {"endpoint": "/", **(options or {})},
            "exclude_patterns": ["site"],
            **config,
        }
        (self.root / "conf.py").write_text("\n".join(f"{k} = {v!r}" for k, v in whole.items()), encoding="utf-8")

    def build(self, *arguments: str, builder: str = "html", code: int = 0, **environment: str) -> str:
        """Build in a process of its own, as Sphinx keeps state, and return its output."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "READTHEDOCS"))}
        command = [sys.executable, "-m", "sphinx", "-b", builder, *arguments, str(self.root), str(self.root / "site")]
        done = subprocess.run(
            command, cwd=self.root, env={**kept, "NO_COLOR": "1", **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        assert "Traceback" not in done.stdout
        return done.stdout

    def chat(self) -> dict[str, Any]:
        config = chat_in(self.root / "site/_static/chapterverse")
        assert config.pop("site") == "Tea Pot"
        return config


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write(PAGES)
    project.configure()
    return project


def warnings(said: str) -> list[str]:
    return [line.partition("WARNING: ")[2] for line in said.splitlines() if "WARNING" in line]


@pytest.mark.parametrize(("builder", "page"), [("html", "guide/brew.html"), ("dirhtml", "guide/brew/index.html")])
def test_a_build_is_indexed_and_every_page_loads_the_widget(project: Project, builder: str, page: str) -> None:
    said = project.build("-W", builder=builder, PYTHONWARNINGS="error:::chapterverse.sphinx")
    assert "Indexed 3 pages (3 new" in said
    address = f"{BASE}{page.removesuffix('index.html')}"
    assert {c.url for c in project.chunks()} == {
        f"{BASE}{'' if builder == 'dirhtml' else 'index.html'}#tea",
        f"{address}#brewing",
        f"{address}#green-tea",
        f"{address.replace('brew', 'clean')}#cleaning",
    }
    pages = [file for file in (project.root / "site").rglob("*.html") if "_static" not in file.parts]
    assert len(pages) >= 5
    for file in pages:
        tags = re.findall(r"<script[^>]*chapterverse[^>]*>", file.read_text("utf-8"))
        assert len(tags) == 1, file
        assert 'type="module"' in tags[0]
    assert project.chat() == {"endpoint": "/", "title": "Ask the docs"}
    seen = project.check()
    assert {kind: [f.says for f in seen.of(kind)] for kind in seen.counts} == {}


def test_an_empty_chat_offers_questions_that_the_index_answers(project: Project) -> None:
    lime = "Cleaning\n========\n\nWhy does lime form?\n-------------------\n\nWater holds it.\n"
    project.write({"guide/clean.rst": lime})
    project.build()
    folder = project.root / "site/_static/chapterverse"
    assert starters_in(folder) == {"": ["Why does lime form?"]}
    written = (folder / "starters.js").stat().st_mtime_ns
    project.build()
    assert (folder / "starters.js").stat().st_mtime_ns == written
    project.chat()


def test_a_build_that_writes_only_what_changed_indexes_all_pages(project: Project) -> None:
    project.build()
    project.write({"guide/brew.rst": PAGES["guide/brew.rst"].replace("Eighty", "Seventy")})
    assert "Indexed 3 pages (0 new, 1 changed, 0 removed)" in project.build()
    assert "Indexed 3 pages (0 new, 0 changed, 0 removed)" in project.build()
    assert any("Seventy degrees" in chunk.text for chunk in project.chunks())


def test_exclude_and_include_name_sources_or_pages(project: Project) -> None:
    project.write(
        {"own.rst": ":nosearch:\n:orphan:\n\nOwn\n===\n\nNot for all.\n", "tags/index.rst": ":orphan:\n\nTags\n====\n"}
    )
    project.configure({"exclude": ["guide/*.rst", "!guide/clean.rst"]})
    said = project.build()
    assert project.pages() == {"index.html", "guide/clean.html"}
    assert "Left out: tags/index.html (tag listing)" in said
    project.configure({"exclude": ["guide/brew.html"], "include": ["tags/"]})
    project.build()
    assert project.pages() == {"index.html", "guide/clean.html", "tags/index.html"}


def test_what_a_published_build_lacks_is_told_and_fails_one_that_takes_warnings_for_errors(project: Project) -> None:
    project.configure({"endpoint": None}, html_baseurl="")
    told = warnings(project.build())
    assert [warning.partition(",")[0] for warning in told] == [
        "chapterverse: endpoint is not set",
        "chapterverse: html_baseurl is not set",
    ]
    assert not (project.root / STORE).exists()
    project.build("-W", code=1)
    assert warnings(project.build("-W", CHAPTERVERSE_ENDPOINT="/", READTHEDOCS_CANONICAL_URL=BASE)) == []
    assert {chunk.url.partition("#")[0] for chunk in project.chunks()} >= {f"{BASE}guide/brew.html"}
    (project.root / "chapterverse.toml").write_text('base_url = "https://pot.example/"\nendpoint = "/"\n')
    assert warnings(project.build("-W")) == []
    assert {chunk.url.partition("#")[0] for chunk in project.chunks()} >= {"https://pot.example/guide/brew.html"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stroe": "edge:x"}, "There is no option 'stroe': the nearest is store."),
        ({"exclude": "a.rst"}, "The option 'exclude' must be a list of patterns."),
        ({"enabled": "no"}, "The option 'enabled' must be true or false."),
        ({"chunk_tokens": True}, "The option 'chunk_tokens' must be a number."),
        ({"endpoint": "api.example.com"}, "The endpoint must be an address like https://api.example.com"),
        ({"widget": {"layout": "left"}}, "widget.layout must be floating or side."),
    ],
)
def test_an_option_that_can_not_be_used_fails_the_build_in_one_sentence(
    project: Project, options: dict[str, Any], sentence: str
) -> None:
    project.configure(options)
    assert f"chapterverse: {sentence}" in " ".join(project.build(code=1).split())
    assert not (project.root / STORE).exists()


def test_an_index_that_can_not_be_written_fails_the_build_only_with_strict(project: Project) -> None:
    project.configure({"embedder": "best"})
    (warning,) = warnings(project.build())
    assert warning.startswith("chapterverse: The index was not updated: CHAPTERVERSE_EMBEDDER is 'best'")
    project.configure({"embedder": "best", "strict": True})
    assert "chapterverse: CHAPTERVERSE_EMBEDDER is 'best'" in " ".join(project.build(code=1).split())


def test_a_store_that_is_down_fails_the_build_that_counts_warnings(project: Project) -> None:
    failed = "The index can't be read: 127.0.0.1 could not be reached"
    (warning,) = warnings(project.build("-W", code=1, **DOWN))
    assert warning.startswith(f"chapterverse: The index was not updated: {failed}")
    assert failed in project.build(**DOWN)
    for more in ({"GITHUB_EVENT_NAME": "pull_request"}, {"CHAPTERVERSE_PUBLISH": ""}):
        said = project.build("-W", **{**DOWN, **more})
        assert warnings(said) == []
        assert "chapterverse: Nothing was indexed: " in said


@pytest.mark.parametrize("options", [{"enabled": False}, {"publish": False}])
def test_a_build_may_leave_the_index_alone(project: Project, options: dict[str, Any]) -> None:
    project.configure(options)
    project.build("-W")
    assert not (project.root / STORE).exists()
    assert (project.root / "site/_static/chapterverse").exists() is options.get("enabled", True)


def test_agents_get_files_of_the_pages_and_a_second_build_makes_the_same(project: Project) -> None:
    project.write({"draft.rst": ":orphan:\n:nosearch:\n\nDraft\n=====\n\nNot yet.\n"})
    project.build("-W")
    out = project.root / "site"
    made = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*.md")}
    skill = ".well-known/agent-skills/tea-pot-docs/SKILL.md"
    assert made.keys() == {"index.md", "guide/brew.md", "guide/clean.md", skill}
    assert 'type="text/markdown" href="brew.md"' in (out / "guide/brew.html").read_text("utf-8")
    assert "Draft" not in (out / "llms-full.txt").read_text("utf-8")
    project.build("-W")
    assert {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*.md")} == made


def test_a_project_without_a_name_has_a_chat_that_names_no_site(project: Project) -> None:
    (project.root / "conf.py").write_text('extensions = ["chapterverse.sphinx"]\nchapterverse = {"endpoint": "/"}\n')
    project.build()
    assert "site" not in chat_in(project.root / "site/_static/chapterverse")


def test_a_persona_is_indexed(project: Project) -> None:
    project.write({"persona.md": "Be loud, says the owner.\n"})
    project.build("-W")
    assert [c.type for c in project.chunks() if c.source_file_path == "persona.md"] == ["persona"]


def test_a_builder_of_something_else_has_no_chat(project: Project) -> None:
    project.build("-W", builder="text")
    assert not (project.root / STORE).exists()
    assert not (project.root / "site/_static").exists()


def test_the_options_are_those_of_the_mkdocs_plugin() -> None:
    from chapterverse.mkdocs import ChapterVerseConfig

    # MkDocs has a switch of its own for each plugin.
    assert list(OPTIONS) == ["enabled", *(name for name, _ in ChapterVerseConfig._schema)]
