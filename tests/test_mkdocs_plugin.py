"""Real builds by MkDocs and ProperDocs, and their results in the index and in the site."""

from __future__ import annotations

import fcntl
import html
import io
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from mkdocs.__main__ import cli

from chapterverse.model import Head
from chapterverse.readers.built_site import read_site
from chapterverse.store import open_store
from chapterverse.widget.bundle import names, titles
from cli.shell import run
from fakes.environment import replaced_environment
from projects import DOWN, STORE, Project, chat_in, check, starters_in

CANARY = "canary-4f1e9c"
INDEXED = re.compile(
    r"Indexed (\d+) pages(?: and \d+ documents?)? \((\d+) new, (\d+) changed, (\d+) removed\), (\d+) chunks "
    r"\((\d+) new, (\d+) kept, (\d+) moved, (\d+) removed\), (\d+) embedded, [\d.]+ s"
)

PAGES = {
    "index.md": "# Home\n\nWelcome to the teapot.\n",
    "guide/brew.md": "# Brewing\n\nHot water first.\n\n## Green tea\n\nEighty degrees are enough.\n",
    "guide/clean.md": "# Cleaning\n\nVinegar dissolves lime.\n",
}


@dataclass(frozen=True)
class Site(Project):
    """A project of MkDocs."""

    def write(self, files: Mapping[str, str]) -> None:
        super().write({f"docs/{path}": text for path, text in files.items()})

    def configure(self, options: Mapping[str, Any] | None = None, **config: Any) -> None:
        """Write mkdocs.yml; `options` are the plugin's own, and the API is at the site's own origin."""
        whole = {
            "site_name": "Tea Pot",
            "site_url": "https://tea.example.com/docs/",
            "plugins": ["search", {"chapterverse": {"endpoint": "/", **(options or {})}}],
            **config,
        }
        (self.root / "mkdocs.yml").write_text(yaml.safe_dump(whole), encoding="utf-8")

    def build(self, *arguments: str, code: int = 0, **environment: Any) -> str:
        """Build with MkDocs in this process and return the log; its exceptions fail the test."""
        said, left = io.StringIO(), 0
        with chdir(self.root), replaced_environment(clean(environment)), redirect_stdout(said), redirect_stderr(said):
            try:
                cli(["build", *arguments])
            except SystemExit as end:
                left = end.code if isinstance(end.code, int) else 0
        assert left == code, said.getvalue()
        return said.getvalue()

    def spawn(self, *command: str, code: int = 0, python: tuple[str, ...] = ()) -> str:
        """Run a tool in a separate process and return its output."""
        done = subprocess.run(
            [sys.executable, *python, "-m", *command],
            cwd=self.root, env=clean(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        return done.stdout

    def heads(self, store: str = STORE) -> list[Head]:
        return open_store(self.settings(store)).heads()

    def html(self, path: str) -> str:
        return (self.root / "site" / path).read_text(encoding="utf-8")

    def chat(self) -> dict[str, Any]:
        """Return the configuration of the site's only widget."""
        config = chat_in(self.root / "site/assets/chapterverse")
        assert config.pop("site") == "Tea Pot"
        return config

    def texts(self) -> str:
        return "\n".join(chunk.text for chunk in self.chunks())


def clean(more: Mapping[str, str] = {}) -> dict[str, str]:
    """Return this environment without settings of ours but those given."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "MIKE_", "COHERE_"))}
    # The theme's advice about its own future is no warning of ours.
    return {**kept, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true", **more}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write(PAGES)
    site.configure()
    return site


def counts(said: str) -> tuple[int, ...]:
    """Return the numbers of the summary line: four of pages, five of chunks, and how many were embedded."""
    (line,) = [line for line in said.splitlines() if "Indexed" in line]
    found = INDEXED.search(line)
    assert found, line
    return tuple(map(int, found.groups()))


def index(site: Site, *arguments: str) -> Any:
    """Run the command `index` into the store of the plugin, and return its report."""
    with chdir(site.root), replaced_environment(clean()):
        said, _ = run("index", *arguments, "--store", f"edge:{STORE}", "--site", "tea-pot", "--json")
    return json.loads(said)


def warnings(said: str) -> list[str]:
    return [line for line in said.splitlines() if "WARNING" in line]


@pytest.mark.parametrize("theme", ["mkdocs", "readthedocs", "material"])
def test_a_build_is_indexed_and_every_page_loads_the_widget(site: Site, theme: str) -> None:
    site.configure(theme={"name": theme})
    said = site.build()
    assert counts(said) == (3, 3, 0, 0, 4, 4, 0, 0, 0, 4)
    assert warnings(said) == []
    assert {(c.source_file_path, c.url) for c in site.chunks()} == {
        ("index.md", "https://tea.example.com/docs/#home"),
        ("guide/brew.md", "https://tea.example.com/docs/guide/brew/#brewing"),
        ("guide/brew.md", "https://tea.example.com/docs/guide/brew/#green-tea"),
        ("guide/clean.md", "https://tea.example.com/docs/guide/clean/#cleaning"),
    }
    assert all(c.anchor_verified and c.language == "en" for c in site.chunks())
    pages = sorted((site.root / "site").rglob("*.html"))
    assert {"404.html", "index.html"} <= {p.name for p in pages}
    for page in pages:
        tags = re.findall(r"<script[^>]*chapterverse[^>]*>", page.read_text(encoding="utf-8"))
        assert len(tags) == 1, page
        assert 'type="module"' in tags[0]
        src = re.search(r'src="([^"]+)"', tags[0])
        assert src
        path = src[1].removeprefix("/docs/") if page.name == "404.html" else src[1]
        start = site.root / "site" if page.name == "404.html" else page.parent
        assert (start / path).resolve().is_file(), (page, path)


def test_the_site_holds_the_whole_widget_and_its_configuration(site: Site) -> None:
    site.configure(
        {"endpoint": "https://api.example.com", "widget": {"title": "Ask </script> us", "starters": ["Tea?"]}}
    )
    site.build()
    (folder,) = (site.root / "site" / "assets" / "chapterverse").glob("*/*")
    assert "lang/en.js" in names()
    assert {f.relative_to(folder).as_posix() for f in folder.rglob("*.js")} == {*names()}
    assert site.chat() == {
        "endpoint": "https://api.example.com",
        "title": "Ask </script> us",
        "starters": ["Tea?"],
    }


def test_every_option_of_the_widget_reaches_its_configuration(site: Site) -> None:
    chosen = {
        "strings": {"send": "Ask", 403: "Not here."}, "layout": "side", "shortcut": False, "consent": "Is that well?",
        "timeout": 20, "scope": False, "feedback": False, "greeting": "Hej", "placeholder": "Fråga",
    }  # fmt: skip
    site.configure({"endpoint": "https://api.example.com", "widget": {**chosen, "title": None}})
    assert warnings(site.build("--strict")) == []
    assert site.chat() == {
        **chosen,
        "endpoint": "https://api.example.com",
        "title": "Ask the docs",
        "strings": {"send": "Ask", "403": "Not here."},
    }


@pytest.mark.parametrize("widget", [None, {}, {"layout": "floating", "shortcut": True, "timeout": 60, "starters": []}])
def test_a_widget_without_options_has_its_defaults(site: Site, widget: object) -> None:
    site.configure({"widget": widget})
    site.build()
    assert site.chat() == {"endpoint": "/", "title": "Ask the docs"}


@pytest.mark.parametrize(("locale", "title"), [("de", "Doku befragen"), ("pt_BR", "Perguntar aos docs")])
def test_a_chat_without_a_title_has_that_of_the_themes_language(site: Site, locale: str, title: str) -> None:
    site.configure(theme={"name": "mkdocs", "locale": locale})
    site.build()
    assert site.chat()["title"] == title


def test_a_chat_in_a_language_that_has_no_title_leaves_it_to_the_page(site: Site) -> None:
    site.configure(theme={"name": "mkdocs", "locale": "ko"})
    site.build()
    assert site.chat()["titles"]["en"] == "Ask the docs"


@pytest.mark.parametrize(
    ("widget", "sentence"),
    [
        ({"layout": "left"}, "widget.layout must be floating or side."),
        ({"starters": ["Tea?", 7]}, "widget.starters must be a list of texts of 1 to 200 characters."),
        ({"titel": "Ask"}, "There is no option 'widget.titel': use title, "),
        ({"strings": {"sned": "Ask"}}, "There is no string 'sned' for widget.strings: the nearest is send."),
    ],
)
def test_an_option_of_the_widget_that_can_not_be_used_fails_the_build_in_one_sentence(
    site: Site, widget: dict[str, Any], sentence: str
) -> None:
    site.configure({"widget": widget})
    (error,) = [line for line in site.build(code=1).splitlines() if line.startswith("ERROR")]
    assert error.partition(" -  ")[2].startswith(f"chapterverse: {sentence}")
    assert not (site.root / "site").exists()


STARTERS = '---\nchapterverse:\n  starters:\n    - How hot is <green> tea?\n    - Who\'s "Earl" Grey?\n---\n'


@pytest.mark.parametrize("theme", ["mkdocs", "material"])
def test_a_page_offers_its_own_starters_and_no_search_and_no_index_sees_them(site: Site, theme: str) -> None:
    site.configure(theme={"name": theme})
    site.build()
    search = site.html("search/search_index.json")
    site.write({"guide/brew.md": STARTERS + PAGES["guide/brew.md"]})
    assert counts(site.build("--strict")) == (3, 0, 0, 0, 4, 0, 4, 0, 0, 0)
    assert site.html("search/search_index.json") == search
    page = site.html("guide/brew/index.html")
    elements = re.findall(r'<div hidden data-chapterverse-starters="([^"]*)"></div>', page)
    assert [json.loads(html.unescape(e)) for e in elements] == [["How hot is <green> tea?", 'Who\'s "Earl" Grey?']]
    assert "Eighty degrees" in page.partition("data-chapterverse-starters")[0]
    assert "data-chapterverse-starters" not in site.html("index.html")


QUESTIONS = {
    "index.md": "# Home\n\n## See also\n\nWelcome to the teapot.\n",
    "guide/brew.md": "# Brewing\n\nIt can brew twice.\n\n## Brewing green\u200b tea\n\nEighty degrees are enough.\n",
    "guide/clean.md": "# Cleaning\n\n## Why does lime form?\n\nWater holds it.\n\n## Overview\n\nVinegar.\n",
    "guide/pour.md": "# Pouring\n\n## How to pour without a drip\n\nHold the lid.\n",
}
OFFERED = {"": ["How do I brew green tea?", "Why does lime form?", "How do I pour without a drip?"]}


def test_an_empty_chat_offers_questions_that_the_index_answers(site: Site) -> None:
    site.write(QUESTIONS)
    site.build()
    assert starters_in(site.root / "site/assets/chapterverse") == OFFERED
    site.chat()


def test_a_build_without_changes_takes_the_questions_of_the_last_one(site: Site) -> None:
    site.write(QUESTIONS)
    site.build()
    with sqlite3.connect(site.root / STORE / "builds.sqlite") as kept:
        kept.execute("UPDATE kept_1 SET text = ? WHERE key LIKE '%starters%'", ('{"": ["Kept?"]}',))
    site.build()
    assert starters_in(site.root / "site/assets/chapterverse") == {"": ["Kept?"]}
    site.write({"guide/pour.md": "# Pouring\n\n## How to pour with care\n\nHold the lid.\n"})
    site.build()
    assert starters_in(site.root / "site/assets/chapterverse")[""][2] == "How do I pour with care?"


def test_a_site_that_is_deployed_before_it_is_indexed_has_the_questions_of_the_last_index(site: Site) -> None:
    site.write(QUESTIONS)
    site.build()
    # Fails after the site is written, and before it is indexed.
    site.write({"guide/pour.md": "# Pouring\n\n[gone](gone.md)\n"})
    site.build("--strict", code=1)
    assert starters_in(site.root / "site/assets/chapterverse") == OFFERED


def test_a_build_that_may_not_publish_reads_no_index(site: Site) -> None:
    site.write(QUESTIONS)
    site.build()
    site.build(CHAPTERVERSE_PUBLISH="0")
    assert starters_in(site.root / "site/assets/chapterverse") == {}


def test_starters_that_are_none_are_told_once_and_the_page_is_built(site: Site) -> None:
    site.write({"index.md": "---\nchapterverse: {starters: How?}\n---\n" + PAGES["index.md"]})
    said = site.build()
    (warning,) = warnings(said)
    assert warning.endswith("index.md: chapterverse.starters must be a list of texts of 1 to 200 characters.")
    assert "Welcome to the teapot." in site.html("index.html")
    assert "data-chapterverse-starters" not in site.html("index.html")
    assert counts(said)[0] == 3


def test_a_page_that_is_not_indexed_offers_its_starters_all_the_same(site: Site) -> None:
    site.write({"index.md": "---\nchapterverse: {exclude: true, starters: [How?]}\n---\n" + PAGES["index.md"]})
    site.build()
    assert "index.md" not in site.pages()
    assert site.html("index.html").count("data-chapterverse-starters") == 1
    site.configure({"enabled": False})
    site.build()
    assert "data-chapterverse-starters" not in site.html("index.html")


def test_the_widget_is_there_whatever_exclude_docs_says(site: Site) -> None:
    site.configure(exclude_docs="assets/\n*.js\n")
    site.build()
    assert list((site.root / "site" / "assets" / "chapterverse").rglob("launcher.js"))


def test_a_second_build_embeds_and_writes_nothing(site: Site) -> None:
    # MkDocs' own theme writes the time into a page.
    site.configure(theme="material")
    site.build()
    before = {p: p.stat().st_mtime_ns for p in (site.root / STORE).rglob("*")}
    assert counts(site.build()) == (3, 0, 0, 0, 4, 0, 4, 0, 0, 0)
    assert {p: p.stat().st_mtime_ns for p in (site.root / STORE).rglob("*")} == before


def test_only_what_changed_is_embedded_and_what_is_gone_is_gone(site: Site) -> None:
    site.build()
    site.write({"guide/brew.md": PAGES["guide/brew.md"].replace("Eighty", "Seventy")})
    (site.root / "docs/guide/clean.md").unlink()
    assert counts(site.build()) == (2, 0, 1, 1, 3, 1, 2, 0, 2, 1)
    assert "Seventy degrees" in site.texts()
    assert "Vinegar" not in site.texts()


def test_a_renamed_page_is_moved_and_not_embedded(site: Site) -> None:
    site.build()
    (site.root / "docs/guide/clean.md").rename(site.root / "docs/guide/scrub.md")
    assert counts(site.build()) == (3, 1, 0, 1, 4, 0, 3, 1, 0, 0)
    assert {c.url for c in site.chunks() if "Vinegar" in c.text} == {
        "https://tea.example.com/docs/guide/scrub/#cleaning"
    }


def test_another_address_rewrites_the_citations(site: Site) -> None:
    site.build()
    site.configure(site_url="https://pot.example.org/")
    assert counts(site.build())[-1] == 0
    assert all(c.url.startswith("https://pot.example.org/") for c in site.chunks())


def test_a_strict_build_that_fails_publishes_nothing(site: Site) -> None:
    site.build()
    site.write({"index.md": "# Home\n\nSee [nothing](nowhere.md).\n"})
    assert "Indexed" not in site.build("--strict", code=1)
    assert "Welcome to the teapot." in site.texts()


def test_a_strict_build_that_passes_publishes(site: Site) -> None:
    assert counts(site.build("--strict"))[0] == 3


def test_a_dirty_build_publishes_nothing(site: Site) -> None:
    site.build()
    site.write({"index.md": "# Home\n\nChanged.\n"})
    assert "Indexed" not in site.build("--dirty")
    assert site.pages() == set(PAGES)
    assert "Changed." not in site.texts()


BREAKING = """
import sys

def on_page_context(context, page, config, nav):
    if page.file.src_uri == "guide/clean.md":
        raise {error}
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("KeyboardInterrupt()", 1),
        pytest.param("SystemExit(3)", 3, marks=pytest.mark.slow),
        pytest.param("ValueError()", 1, marks=pytest.mark.slow),
    ],
)
def test_a_build_that_breaks_off_publishes_nothing(site: Site, error: str, code: int) -> None:
    site.build()
    (site.root / "hook.py").write_text(BREAKING.format(error=error), encoding="utf-8")
    site.configure(hooks=["hook.py"])
    assert "Indexed" not in site.spawn("mkdocs", "build", code=code)
    assert site.pages() == set(PAGES)


NO_ADDRESS = "chapterverse: site_url is not set, so a citation would have no address and nothing is indexed."
NO_API = (
    "chapterverse: endpoint is not set, so the chat of the published site has no API to ask: name its address, or set "
    "`endpoint: /` if it is at the site's own origin."
)


def test_without_a_site_url_the_build_says_why_nothing_is_indexed_and_a_strict_one_fails(site: Site) -> None:
    site.configure(site_url=None)
    said = site.build()
    (warning,) = warnings(said)
    assert warning.endswith(NO_ADDRESS)
    assert not (site.root / STORE).exists()
    assert NO_ADDRESS in site.build("--strict", code=1)
    site.configure({"strict": True}, site_url=None)
    assert f"Error: {NO_ADDRESS}" in site.build(code=1)
    # Without an index a site needs no address.
    site.configure({"publish": False}, site_url=None)
    assert warnings(site.build("--strict")) == []


def test_a_build_that_names_no_api_says_so_once_and_a_strict_one_fails(site: Site) -> None:
    site.configure({"endpoint": None})
    said = site.build()
    (warning,) = warnings(said)
    assert warning.endswith(NO_API)
    assert counts(said)[0] == 3
    # Then the launcher looks for an API at the site's own origin before it shows itself.
    assert site.chat()["endpoint"] is None
    assert NO_API in site.build("--strict", code=1)
    assert warnings(site.build("--strict", CHAPTERVERSE_ENDPOINT="https://Api.example.com/")) == []
    assert site.chat()["endpoint"] == "https://api.example.com"
    site.configure({"endpoint": None, "enabled": False})
    assert warnings(site.build("--strict")) == []


def test_an_endpoint_that_is_no_address_fails_the_build(site: Site) -> None:
    site.configure({"endpoint": "api.example.com"})
    assert "chapterverse: The endpoint must be an address like https://api.example.com" in site.build(code=1)


def test_an_unknown_option_fails_the_build_with_the_nearest_name(site: Site) -> None:
    site.configure({"stroe": "edge:x", "exlude": ["a.md"]})
    said = site.build(code=1)
    assert "option 'stroe': There is no option 'stroe': the nearest is store." in said
    assert "option 'exlude': There is no option 'exlude': the nearest is exclude." in said
    assert not (site.root / "site").exists()


def test_plugins_may_be_a_mapping(site: Site) -> None:
    site.configure(plugins={"search": {}, "chapterverse": {"endpoint": "/", "exclude": ["guide/clean.md"]}})
    assert counts(site.build("--strict"))[0] == 2


def test_a_disabled_plugin_leaves_no_trace(site: Site) -> None:
    site.configure({"enabled": False})
    assert "Indexed" not in site.build()
    assert not (site.root / ".cache").exists()
    assert "chapterverse" not in site.html("index.html")
    assert not (site.root / "site/assets/chapterverse").exists()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_build_told_not_to_publish_still_has_its_widget(site: Site, by: str) -> None:
    site.configure({"publish": False} if by == "option" else {})
    variable: dict[str, Any] = {"CHAPTERVERSE_PUBLISH": "0"} if by == "variable" else {}
    site.build(**variable)
    assert not (site.root / ".cache").exists()
    assert "chapterverse" in site.html("index.html")


def test_a_store_that_is_not_embedded_is_only_written_when_told_to(site: Site) -> None:
    site.configure({"store": "edg:typo"})
    told = "Nothing was indexed: 'edg:typo' is not embedded and needs `publish: true` or CHAPTERVERSE_PUBLISH=1."
    assert told in site.build()
    site.configure({"store": "edg:typo", "publish": False})
    assert "ndexed" not in site.build()


def test_a_variable_outranks_its_option(site: Site) -> None:
    site.configure({"publish": False, "store": "edge:there"})
    site.build(CHAPTERVERSE_PUBLISH="1", CHAPTERVERSE_STORE="edge:here")
    assert site.heads("here")
    assert not (site.root / "there").exists()


def test_the_file_of_the_project_fills_in_and_what_is_overridden_is_said_once(site: Site) -> None:
    (site.root / "chapterverse.toml").write_text(
        'store = "edge:file"\nchunk_tokens = 70\nbase_url = "https://x.example"\n'
    )
    site.configure({"chunk_tokens": 64})
    assert site.build("--strict").count("mkdocs.yml overrides chunk_tokens, base_url of chapterverse.toml.") == 1
    assert site.heads("file")
    site.configure({"chunk_tokens": 64}, site_url=None)
    site.build("--strict")
    assert "https://x.example/" in [head.base_url for head in site.heads("file")]
    (site.root / "chapterverse.toml").write_text("stor = 1\n")
    assert "chapterverse.toml line 1: There is no option 'stor': the nearest is store." in site.build(code=1)


def test_paths_are_relative_to_the_configuration(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    Site(elsewhere).build("-f", str(site.root / "mkdocs.yml"))
    assert site.heads()
    assert list(elsewhere.iterdir()) == []


@contextmanager
def publishing(site: Site) -> Iterator[None]:
    """Hold the lock of the site's index, as another build does."""
    with next((site.root / STORE).rglob("publish.lock")).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_locked_store_is_told_and_the_build_succeeds(site: Site) -> None:
    site.build()
    site.write({"index.md": "# Home\n\nChanged.\n"})
    with publishing(site):
        (warning,) = warnings(site.build())
    assert "The index was not updated: Another process is publishing" in warning
    assert counts(site.build())[2] == 1


def test_with_strict_a_locked_store_fails_the_build_in_one_sentence(site: Site) -> None:
    site.configure({"strict": True})
    site.build()
    site.write({"index.md": "# Home\n\nChanged.\n"})
    with publishing(site):
        said = site.build(code=1)
    (error,) = [line for line in said.splitlines() if line.startswith("Error")]
    assert error.startswith("Error: chapterverse: Another process is publishing")


def test_a_store_that_is_down_fails_a_strict_build_in_one_sentence(site: Site) -> None:
    site.configure({"strict": False})
    failed = "The index can't be read: 127.0.0.1 could not be reached or broke off."
    said = site.build("--strict", code=1, **DOWN)
    assert [line for line in said.splitlines() if line.startswith("Error")] == [f"Error: chapterverse: {failed}"]
    assert "Traceback" not in said
    (warning,) = warnings(site.build(**DOWN))
    assert warning.endswith(f"chapterverse: The index was not updated: {failed}")


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"GITHUB_EVENT_NAME": "pull_request"}, "a pull request is being built"),
        ({"CHAPTERVERSE_PUBLISH": ""}, "needs `publish: true`"),
        # The site's own store by another variable.
        (
            {"GITHUB_EVENT_NAME": "pull_request", "CHAPTERVERSE_PREVIEW_STORE": DOWN["CHAPTERVERSE_STORE"]},
            "which no pull request may write",
        ),
    ],
)
def test_a_strict_build_that_may_not_publish_never_fails(site: Site, environment: dict[str, Any], reason: str) -> None:
    site.configure({"strict": True})
    said = site.build("--strict", **{**DOWN, **environment})
    assert warnings(said) == []
    assert re.search(f"INFO .*chapterverse: Nothing was indexed: .*{re.escape(reason)}", said)


def test_the_strict_build_of_a_pull_request_needs_no_api(site: Site) -> None:
    site.configure({"endpoint": None})
    assert warnings(site.build("--strict", **DOWN, GITHUB_EVENT_NAME="pull_request")) == []


@pytest.mark.parametrize(
    ("options", "environment", "sentence"),
    [
        ({"store": "nowhere", "publish": True}, {}, "CHAPTERVERSE_STORE is 'nowhere'"),
        ({"embedder": "best"}, {}, "CHAPTERVERSE_EMBEDDER is 'best'"),
        ({"embedder": "cohere"}, {}, "COHERE_API_KEY"),
        ({"chunk_tokens": 7}, {}, "chunk_tokens must be between 32 and 512."),
        ({"store": "edge:mkdocs.yml/x"}, {}, ""),
    ],
)
def test_what_can_not_be_indexed_is_told_and_the_build_succeeds(
    site: Site, options: dict[str, Any], environment: dict[str, Any], sentence: str
) -> None:
    site.configure(options)
    (warning,) = warnings(site.build(**environment))
    assert "The index was not updated: " in warning
    assert sentence in warning


@pytest.mark.parametrize(
    ("options", "environment"),
    [({}, {"CHAPTERVERSE_PUBLISH": "perhaps"}), ({"chunk_tokens": "many"}, {}), ({"exclude": "a.md"}, {})],
)
def test_a_configuration_that_can_not_be_read_is_one_sentence(
    site: Site, options: dict[str, Any], environment: dict[str, Any]
) -> None:
    site.configure(options)
    assert "error" in site.build(code=1, **environment).lower()


def test_pages_that_their_author_keeps_out_are_kept_out(site: Site) -> None:
    site.write(
        {
            "search.md": "---\nsearch:\n  exclude: true\n---\n# A\n\nSecretone.\n",
            "own.md": "---\nchapterverse:\n  exclude: true\n---\n# B\n\nSecrettwo.\n",
            "glob/x.md": "# C\n\nSecretthree.\n",
            "glob/keep.md": "# D\n\nOpenfour.\n",
            "draft.md": "# E\n\nSecretfive.\n",
            "excluded.md": "# F\n\nSecretsix.\n",
            "unlisted.md": "# G\n\nOpenseven.\n",
        }
    )
    site.configure(
        {"exclude": ["glob/*", "!glob/keep.md"]},
        draft_docs="draft.md",
        exclude_docs="excluded.md",
        not_in_nav="unlisted.md",
        nav=["index.md", "guide/brew.md", "guide/clean.md", "search.md", "own.md", "glob/x.md", "glob/keep.md"],
    )
    site.build()
    assert "Secret" not in site.texts()
    assert {"glob/keep.md", "unlisted.md"} <= site.pages()


@pytest.mark.parametrize("ledger", ["here", "elsewhere"])
def test_a_clean_build_has_no_stale_page(site: Site, ledger: str) -> None:
    """Material renders lists of posts, tags and dates behind the content that the plugin read."""
    post = "---\ndate: {}-03-04\ncategories: [News]\ntags: [tea]\n---\n# Cup {}\n\nA cup.\n\n<!-- more -->\n\nA lid.\n"
    site.write({f"blog/posts/{year}.md": post.format(year, year) for year in range(2014, 2027)})
    site.write(
        {
            "blog/index.md": "# Blog\n\nWhat happens here.\n",
            "tags.md": "# Tags\n\n<!-- material/tags -->\n",
            "index.md": "---\ntags: [tea]\n---\n" + PAGES["index.md"],
            "own.md": "---\nsearch: {exclude: true}\n---\n# Own\n\nNot for all.\n",
        }
    )
    plugins = ["search", "blog", "tags", {"chapterverse": {"endpoint": "/", "exclude": ["guide/clean/"]}}]
    config: dict[str, Any] = {"theme": {"name": "material"}, "plugins": plugins, "markdown_extensions": ["attr_list"]}
    site.configure(**config)
    site.build("--strict")
    assert site.pages().isdisjoint({"guide/clean.md", "own.md"})
    if ledger == "elsewhere":
        for file in (site.root / STORE).glob("ledger*"):
            file.unlink()
    seen = site.check()
    assert {kind: [f.says for f in seen.of(kind)] for kind in seen.counts} == {}
    assert seen.way == "plugin"

    # The next build changes a page and is not published.
    site.write({"guide/brew.md": PAGES["guide/brew.md"].replace("enough.", "plenty.")})
    site.build(CHAPTERVERSE_PUBLISH="0")
    seen = site.check()
    assert [f.says for f in seen.of("stale")] == ["guide/brew/index.html changed since it was indexed."]
    assert next(seen.lines()).endswith("Build the site again, with the plugin and where it may publish.")


def test_a_page_that_does_not_show_its_text_is_not_indexed(site: Site) -> None:
    (site.root / "overrides").mkdir()
    template = '{% extends "main.html" %}{% block content %}<h1>Brew!</h1>{% endblock %}'
    (site.root / "overrides/home.html").write_text(template, encoding="utf-8")
    site.write({"index.md": "---\ntemplate: home.html\n---\n" + PAGES["index.md"]})
    site.configure(theme={"name": "material", "custom_dir": "overrides"})
    said = site.build("--strict")
    assert "Left out: index.md (its page doesn't show its text)" in said
    assert site.pages() == {"guide/brew.md", "guide/clean.md"}
    assert "dead_citation" not in site.check().counts


ENCRYPTION = {"encryptcontent": {"hljs": False, "arithmatex": False, "mermaid2": False, "selfhost": False}}
SECRET_PART = """\
---
password: hunter2
inject_id: protected
---
# Rates

Everybody may read that rates exist.

/// html | div#protected
## Rates of partners

Secretpart for Zanzibar.
///
"""


@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("theme", ["mkdocs", pytest.param("material", marks=pytest.mark.slow)])
def test_what_a_password_protects_is_in_no_index_and_in_no_file(site: Site, theme: str, ours_first: bool) -> None:
    site.write({"whole.md": "---\npassword: hunter2\n---\n# Whole\n\nSecretpage.\n", "part.md": SECRET_PART})
    ours = {"chapterverse": {"endpoint": "/"}}
    plugins = ["search", *([ours, ENCRYPTION] if ours_first else [ENCRYPTION, ours])]
    site.configure(plugins=plugins, theme={"name": theme}, markdown_extensions=["pymdownx.blocks.html"])
    # The plugin keeps its keys in the process.
    said = site.spawn("mkdocs", "build")
    assert "Left out: whole.md (its page doesn't show its text)" in said
    assert site.pages() == {*PAGES, "part.md"}
    assert "Everybody may read" in site.texts()
    assert not site.check().of("dead_citation")
    stored = [p for folder in ("site", ".cache") for p in (site.root / folder).rglob("*") if p.is_file()]
    assert any(p.name == "llms.txt" for p in stored)
    assert not [p for p in stored if b"Secretpa" in p.read_bytes() and p.name != "search_index.json"]
    # Each build encrypts with other keys.
    before = site.html("part/index.html")
    assert counts(site.spawn("mkdocs", "build"))[1:4] == (0, 0, 0)
    assert site.html("part/index.html") != before


def test_a_page_that_redirects_its_readers_is_not_indexed(site: Site) -> None:
    (site.root / "overrides").mkdir()
    template = (
        '{% extends "main.html" %}{% block extrahead %}<meta http-equiv="refresh" content="0; url=../">{% endblock %}'
    )
    (site.root / "overrides/gone.html").write_text(template, encoding="utf-8")
    site.write({"gone.md": "---\ntemplate: gone.html\n---\n# Gone\n\nThis was moved.\n"})
    site.configure(theme={"name": "material", "custom_dir": "overrides"})
    assert "Left out: gone.md (redirect)" in site.build()
    assert site.pages() == set(PAGES)


def test_what_a_later_plugin_changes_is_indexed_as_readers_see_it(site: Site) -> None:
    (site.root / "hooks.py").write_text(
        "def on_page_context(context, page, config, nav):\n    page.content = page.content.replace('lime', 'chalk')\n"
        "def on_post_page(output, page, config):\n    return output.replace('Vinegar', 'Lemon juice')\n"
    )
    site.configure(hooks=["hooks.py"])
    site.build()
    assert "Lemon juice dissolves chalk." in site.texts()
    assert "Lemon juice dissolves chalk." in (site.root / "site/guide/clean/index.md").read_text("utf-8")


def test_a_page_that_is_removed_or_not_written_is_named(site: Site) -> None:
    (site.root / "hooks.py").write_text(
        "import os\n"
        "def on_post_page(output, page, config):\n    return '' if page.url == 'guide/clean/' else output\n"
        "def on_post_build(config):\n    os.remove(config.site_dir + '/guide/brew/index.html')\n"
    )
    site.configure(hooks=["hooks.py"])
    said = site.build()
    assert "Left out: guide/brew.md (its page was not written)" in said
    assert "Left out: guide/clean.md (its page was not written)" in said
    assert site.pages() == {"index.md"}


def test_static_pages_are_no_pages_of_the_site(site: Site) -> None:
    site.write({"coverage/report.html": "<html><body><main><h1>Report</h1><p>Uncovered.</p></main></body></html>"})
    site.build()
    # Those of an older build have marks, made for another place.
    shutil.copytree(site.root / "site/guide", site.root / "docs/1.0/guide", ignore=shutil.ignore_patterns("*.md"))
    site.build()
    assert (site.root / "site/coverage/report.html").is_file()
    assert site.pages() == set(PAGES)
    reading = read_site(site.root / "site")
    assert {source.file_path for source in reading.sources} == set(PAGES)
    assert reading.left_out["coverage/report.html"] == "no page of the site"
    assert reading.left_out["1.0/guide/brew/index.html"] == "a page of another build"
    included = read_site(site.root / "site", include=["coverage/*"])
    assert {source.file_path for source in included.sources} == {*PAGES, "coverage/report.html"}


@pytest.mark.parametrize("arguments", [{}, {"use_directory_urls": False}, {"theme": {"name": "material"}}])
def test_both_roads_lead_to_one_index(site: Site, arguments: dict[str, Any]) -> None:
    site.write(
        {
            "facts.md": "---\ntitle: Of <it>\ntags: [a]\ndate: 2026-03-04\n---\nSome text & `code`.\n",
            "größe+1.md": "# G\n\nX.\n",
        }
    )
    site.configure(**arguments)
    site.build()
    chunks = site.chunks()
    report = index(site, "site")
    assert report["pages"] == {"seen": 6, "new": 0, "changed": 0, "unchanged": 5, "removed": 0, "skipped": 1}
    assert site.chunks() == chunks


def test_agents_get_files_of_the_pages_that_are_indexed_and_a_second_build_makes_the_same(site: Site) -> None:
    site.write({"draft.md": "---\nsearch:\n  exclude: true\n---\n# Draft\n\nNot yet.\n"})
    site.build("--strict")
    out = site.root / "site"
    made = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.suffix in (".md", ".txt")}
    lists = {"llms.txt", "llms-full.txt", ".well-known/agent-skills/tea-pot-docs/SKILL.md"}
    assert made.keys() == {"index.md", "guide/brew/index.md", "guide/clean/index.md", *lists}
    assert 'type="text/markdown" href="index.md"' in (out / "guide/brew/index.html").read_text("utf-8")
    assert "text/markdown" not in (out / "draft/index.html").read_text("utf-8")
    site.build("--strict")
    assert {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.suffix in (".md", ".txt")} == made
    shutil.rmtree(out)
    said = site.spawn("mkdocs", "build", "--strict", python=("-X", "importtime"))
    assert {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.suffix in (".md", ".txt")} == made
    assert "chapterverse.readers.built_site" in said
    assert "chapterverse.readers.sections" not in said, "a page was parsed"
    site.configure({"agents": False})
    site.build("--strict")
    assert not [p for p in out.rglob("*") if p.suffix == ".md" or p.name.startswith("llms")]


def test_what_a_page_is_warned_of_is_told_by_each_build(site: Site) -> None:
    site.write({"nul.md": "# Nul\n\n" + "Ten words and a byte that is no text at all. " * 9 + "\0\n"})
    (site.root / "nul.html").write_bytes(b"")
    first = warnings(site.build())
    assert first
    assert warnings(site.build()) == first
    assert warnings(site.build()) == first


def test_patterns_name_sources_or_pages(site: Site) -> None:
    site.configure({"exclude": ["guide/*/index.html", "!guide/brew.md"]})
    site.build()
    assert site.pages() == {"index.md", "guide/brew.md"}


def test_a_persona_is_indexed_and_never_a_page(site: Site) -> None:
    site.write({"persona.md": "Be loud, says the owner.\n"})
    said = site.build("--strict")
    assert counts(said)[:4] == (3, 4, 0, 0)
    assert "Indexed 3 pages and 1 document (4 new" in said
    assert not (site.root / "site/persona").exists()
    assert "Be loud" not in "".join(p.read_text("utf-8") for p in (site.root / "site").rglob("*.html"))
    assert "Be loud" not in (site.root / "site/search/search_index.json").read_text("utf-8")
    assert [c.type for c in site.chunks() if c.source_file_path == "persona.md"] == ["persona"]
    (head,) = site.heads()
    assert (head.pages, head.languages) == (3, ("en",))
    assert counts(site.build("--strict"))[5] == 0

    # One that is named takes its place, and the other is no page for that.
    site.write({"guide/voice.md": "Be silent, says the owner.\n"})
    site.configure({"persona": "docs/guide/voice.md"})
    site.build("--strict")
    assert [(c.source_file_path, c.text[-26:]) for c in site.chunks() if c.type == "persona"] == [
        ("guide/voice.md", "Be silent, says the owner.")
    ]
    assert not (site.root / "site/persona").exists()
    assert not (site.root / "site/guide/voice").exists()

    (site.root / "docs/persona.md").unlink()
    (site.root / "docs/guide/voice.md").unlink()
    site.configure()
    (site.root / "persona.md").write_text("Be brief, says the owner.\n", encoding="utf-8")
    site.build("--strict")
    assert [c.source_file_path for c in site.chunks() if c.type == "persona"] == ["../persona.md"]
    (site.root / "persona.md").unlink()
    site.build("--strict")
    assert {c.type for c in site.chunks()} == {"page"}


def test_answers_beside_the_pages_are_indexed_and_published_only_by_the_navigation(site: Site) -> None:
    site.write({"knowledge/faq/tea.md": "---\npage: guide/brew.md\n---\n# How hot?\n\nEighty degrees.\n"})
    site.build("--strict")
    assert not (site.root / "site/knowledge").exists()
    faq = [c for c in site.chunks() if c.type == "faq"]
    assert [(c.source_file_path, c.url.endswith("/guide/brew/")) for c in faq] == [("knowledge/faq/tea.md", True)]
    assert site.heads()[0].pages == 3
    site.configure({"documents": {"enable_faq": False}})
    site.build("--strict")
    assert not (site.root / "site/knowledge").exists()
    assert {c.type for c in site.chunks()} == {"page"}
    site.configure({"documents": {"faq_top_k": 11}})
    assert "documents.faq_top_k must be a whole number from 1 to 10." in site.build(code=1)


@pytest.mark.slow
def test_what_is_listed_beyond_the_site_is_indexed(site: Site) -> None:
    (site.root / "notes.txt").write_text("Lime comes off with vinegar.", encoding="utf-8")
    site.configure({"also": ["notes.txt", {"file": "docs/index.md"}, "https://127.0.0.1:1/"]})
    first, second, third = warnings(site.build())
    assert "notes.txt is no file of the docs, so its citations lead to " in first
    assert "index.md of `also` is a page of the site already." in second
    assert "127.0.0.1 is at a private address, which nobody outside could fetch." in third
    (notes,) = [c for c in site.chunks() if c.source == "import"]
    assert (notes.source_file_path, notes.text) == ("notes.txt", "Lime comes off with vinegar.")
    site.configure({"also": ["none.txt"]})
    assert "also names the file none.txt, which is not there." in site.build(code=1)
    site.configure()
    site.build("--strict")
    assert all(c.source == "kb" for c in site.chunks())


def test_a_persona_that_can_not_be_read_is_told(site: Site) -> None:
    site.write({"persona.md": "word " * 500})
    (warning,) = warnings(site.build())
    told = "persona.md is longer than 400 tokens and is sent with every question: shorten it."
    assert warning.endswith(f"The index was not updated: {told}")
    site.configure({"persona": "gone.md"})
    assert "gone.md: name one that is there, or none." in site.build(code=1)


@pytest.mark.parametrize("theme", ["mkdocs", "material"])
def test_parts_that_their_author_keeps_out_of_search_are_kept_out(site: Site, theme: str) -> None:
    site.write(
        {
            "parts.md": "# Parts\n\nOpen one.\n\n## Hidden { data-search-exclude }\n\nSecretone.\n\n"
            "### Below\n\nSecrettwo.\n\n## Seen\n\nOpen two.\n\nSecretthree.\n{ data-search-exclude }\n"
        }
    )
    site.configure(markdown_extensions=["attr_list"], theme={"name": theme})
    site.build()
    texts = site.texts()
    assert "Open one." in texts
    assert "Open two." in texts
    assert "Secret" not in texts
    # Nor does `check` miss them, whose search may have stripped the attribute, and wherever the ledger is.
    assert site.check().counts == {}
    for file in (site.root / STORE).glob("ledger*"):
        file.unlink()
    assert site.check().counts == {}


def test_a_link_out_of_the_docs_is_never_indexed(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("# Secret\n\nSecretone.\n", encoding="utf-8")
    (site.root / "docs/leak.md").symlink_to(outside)
    (site.root / "docs/environ.md").symlink_to("/proc/self/environ")
    (site.root / "docs/inside.md").symlink_to("index.md")
    said = site.build(SECRET_OF_THE_BUILD=CANARY)
    assert sorted(w.rpartition(" -  ")[2].partition(" is a link")[0].split()[-1] for w in warnings(said)) == [
        "environ.md",
        "leak.md",
    ]
    assert site.pages() == {*PAGES, "inside.md"}
    stored = b"".join(f.read_bytes() for f in (site.root / STORE).rglob("*") if f.is_file())
    assert CANARY.encode() not in stored
    assert b"Secretone" not in stored


def test_no_secret_of_the_environment_is_in_the_site_or_the_index(site: Site) -> None:
    site.build(
        COHERE_API_KEY=CANARY, QDRANT_API_KEY=CANARY, CHAPTERVERSE_SIGNING_KEY=CANARY, AWS_SECRET_ACCESS_KEY=CANARY
    )
    for folder in ("site", ".cache"):
        for file in (site.root / folder).rglob("*"):
            assert not file.is_file() or CANARY.encode() not in file.read_bytes()


def test_facts_of_a_page_reach_its_chunks(site: Site) -> None:
    front = "---\ntitle: Titled\ntags: [one, two]\ndate: 2026-03-04\nchapterverse:\n  content_type: faq\n---\n"
    site.write(
        {"facts.md": f"{front}Some text.\n", "odd.md": "---\ntags: word\ndate: soon\nchapterverse: yes\n---\nOther.\n"}
    )
    site.configure(theme={"name": "mkdocs", "locale": "pt_BR"})
    site.build()
    facts = next(c for c in site.chunks() if c.source_file_path == "facts.md")
    assert (facts.chapter_title, facts.tags, facts.content_type) == ("Titled", ("one", "two"), "faq")
    assert facts.created_at == "2026-03-04T00:00:00Z"
    assert facts.language == "pt-BR"
    assert facts.url == "https://tea.example.com/docs/facts/"
    odd = next(c for c in site.chunks() if c.source_file_path == "odd.md")
    assert (odd.tags, odd.content_type) == (("word",), "documentation")


def test_listings_are_named_and_left_out_and_other_pages_have_their_kind(site: Site) -> None:
    post = "---\ndate: 2026-03-04\ncategories: [News]\ntags: [tea]\n---\n# Post\n\nA new cup.\n"
    site.write(
        {
            "blog/index.md": "# Blog\n\nWhat happens here.\n",
            "blog/posts/first.md": post,
            "tags.md": "# Tags\n\n<!-- material/tags -->\n",
            "changelog.md": "# Changelog\n\n## 1.1\n\nNew cups.\n\n## 1.0\n\nCups.\n",
            "odd.md": "---\nchapterverse:\n  content_type: tutorial\n---\nA lid.\n",
        }
    )
    plugins = ["blog", "tags", {"chapterverse": {"endpoint": "/"}}]
    site.configure(theme={"name": "material"}, plugins=plugins)
    said = site.build()
    types = {chunk.source_file_path: chunk.content_type for chunk in site.chunks()}
    assert types == {
        "index.md": "home",
        "guide/brew.md": "documentation",
        "guide/clean.md": "documentation",
        "blog/index.md": "news",
        "blog/posts/first.md": "news",
        "changelog.md": "news",
        "odd.md": "documentation",
    }
    for line in ("blog/archive/2026.md (archive)", "blog/category/news.md (category listing)", "tags.md (tag listing)"):
        assert f"Left out: {line}" in said
    (warning,) = warnings(said)
    assert "odd.md: content_type 'tutorial' is unknown and not used; it may be documentation, api," in warning
    kept = {"chapterverse": {"include": ["tags.md"]}}
    site.configure(theme={"name": "material"}, plugins=["blog", "tags", kept])
    site.build()
    assert {chunk.content_type for chunk in site.chunks() if chunk.source_file_path == "tags.md"} == {"category"}


def test_every_page_left_out_is_named_with_the_reason(site: Site) -> None:
    site.write({"quiet.md": "---\nsearch:\n  exclude: true\n---\nHush.\n", "old/a.md": "Old.\n"})
    site.configure({"exclude": ["old/"]})
    said = site.build()
    lines = [line.partition("Left out: ")[2] for line in said.splitlines() if "Left out: " in line]
    assert lines == ["old/a.md (excluded by a pattern)", "quiet.md (asks not to be indexed)"]
    assert warnings(said) == []


def test_a_link_to_a_file_of_the_repository_is_indexed(site: Site) -> None:
    (site.root / ".git").mkdir()
    (site.root / ".git/config").write_text("# Token\n")
    (site.root / "README.md").write_text("# Read me\n\nAbout the pot.\n")
    (site.root / "docs/about.md").symlink_to("../README.md")
    (site.root / "docs/leak.md").symlink_to("../.git/config")
    (warning,) = warnings(site.build())
    assert "leak.md is a link out of the project" in warning
    assert site.pages() == {*PAGES, "about.md"}


def test_plain_urls(site: Site) -> None:
    site.configure(use_directory_urls=False)
    site.build()
    assert "https://tea.example.com/docs/guide/brew.html#green-tea" in {c.url for c in site.chunks()}


def test_a_site_without_pages_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path)
    (tmp_path / "docs").mkdir()
    site.configure()
    (warning,) = warnings(site.build())
    assert "There is no page to index" in warning


def test_the_last_page_is_never_removed_by_an_empty_build(site: Site) -> None:
    site.build()
    shutil.rmtree(site.root / "docs")
    (site.root / "docs").mkdir()
    assert "There is no page to index" in warnings(site.build())[0]
    assert site.pages() == set(PAGES)


@pytest.mark.parametrize("structure", ["folder", pytest.param("suffix", marks=pytest.mark.slow)])
@pytest.mark.parametrize("ours_first", [pytest.param(True, marks=pytest.mark.slow), False])
def test_every_language_of_static_i18n_is_indexed_and_a_fallback_once(
    tmp_path: Path, structure: str, ours_first: bool
) -> None:
    site = Site(tmp_path)
    home, brew, accueil = "# Home\n\nWelcome.\n", "# Brewing\n\nHot water.\n", "# Accueil\n\nBienvenue.\n"
    if structure == "folder":
        site.write({"en/index.md": home, "en/brew.md": brew, "fr/index.md": accueil})
    else:
        site.write({"index.md": home, "brew.md": brew, "index.fr.md": accueil})
    languages = [
        {"locale": "en", "name": "English", "default": True, "build": True},
        {"locale": "fr", "name": "Français", "build": True},
    ]
    i18n = {"i18n": {"docs_structure": structure, "fallback_to_default": True, "languages": languages}}
    ours: dict[str, Any] = {"chapterverse": {"endpoint": "/"}}
    site.configure(theme={"name": "material"}, plugins=["search", *([ours, i18n] if ours_first else [i18n, ours])])
    said = site.build()
    assert said.count("Indexed") == 1
    found = {(c.language, c.url.removeprefix("https://tea.example.com/docs/")) for c in site.chunks()}
    assert found == {("en", "#home"), ("en", "brew/#brewing"), ("fr", "fr/#accueil")}
    assert counts(site.build())[-1] == 0
    for page, title in (
        ("index.html", "Ask the docs"),
        ("fr/index.html", titles()["fr"]),
        ("fr/brew/index.html", titles()["fr"]),
    ):
        (launcher,) = re.findall(r'src="(\S+/launcher\.js)"', site.html(page))
        config = (site.root / "site" / page).parent / Path(launcher).parent / "config.js"
        assert f'"title": "{title}"' in config.read_text("utf-8")


def test_a_version_of_mike_is_a_scope_of_its_own(site: Site) -> None:
    site.build(MIKE_DOCS_VERSION="1.0")
    assert site.chat()["version"] == "1.0"
    site.write({"index.md": "# Home\n\nNew in two.\n"})
    site.build(MIKE_DOCS_VERSION="2.0")
    assert [(h.site, h.version, h.pages) for h in site.heads()] == [("tea-pot", "1.0", 3), ("tea-pot", "2.0", 3)]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["before", "after", "unlisted"])
def test_mike_itself(site: Site, order: str) -> None:
    """An old version cites itself, although its canonical links lead to the newest."""
    mike: list[Any] = [{"mike": {"canonical_version": "latest", "alias_type": "symlink"}}]
    ours: list[Any] = [{"chapterverse": {"endpoint": "/"}}]
    plugins = {"before": [*mike, *ours], "after": [*ours, *mike], "unlisted": ours}[order]
    site.configure(plugins=["search", *plugins])
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    tools = Path(sys.executable).parent
    author = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = clean({**author, "PATH": os.pathsep.join([str(tools), os.environ["PATH"]])})

    def deploy(*arguments: str) -> None:
        subprocess.run(
            [tools / "mike", "deploy", *arguments], cwd=site.root, env=environment, check=True, capture_output=True
        )

    subprocess.run([*git, "init", "-q"], cwd=site.root, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=site.root, check=True)
    deploy("2.0", "latest")
    site.write({"guide/old.md": "# Only old\n\nThis page exists in one dot zero only.\n"})
    deploy("1.0")
    assert [(head.version, head.base_url) for head in site.heads()] == [
        ("1.0", "https://tea.example.com/docs/1.0/"),
        ("2.0", "https://tea.example.com/docs/2.0/"),
    ]
    store = open_store(site.settings())
    old, new = (store.snapshot(head.scope) for head in site.heads())
    chunks = {point.chunk for point in old.points()}
    assert all(chunk.url.startswith("https://tea.example.com/docs/1.0/") for chunk in chunks)
    assert "https://tea.example.com/docs/1.0/guide/old/#only-old" in {chunk.url for chunk in chunks}
    assert all(point.chunk.url.startswith("https://tea.example.com/docs/2.0/") for point in new.points())
    subprocess.run(["git", "worktree", "add", "-q", "pages", "gh-pages"], cwd=site.root, check=True)
    assert "https://tea.example.com/docs/1.0/index.md" in (site.root / "pages/1.0/llms.txt").read_text("utf-8")
    report = index(site, "pages/1.0", "--docs-version", "1.0")
    assert (report["pages"]["unchanged"], report["pages"]["new"], report["chunks"]["moved"]) == (4, 0, 0)
    found = check(site.root / "pages/1.0", replace(site.settings(), docs_version="1.0"), environ={})
    assert {kind: [f.says for f in found.of(kind)] for kind in found.counts} == {}


def test_the_same_plugin_works_on_properdocs(site: Site) -> None:
    (site.root / "mkdocs.yml").rename(site.root / "properdocs.yml")
    assert counts(site.spawn("properdocs", "build", "--strict")) == (3, 3, 0, 0, 4, 4, 0, 0, 0, 4)
    assert 'type="module"' in site.html("404.html")
    assert counts(site.spawn("properdocs", "build"))[-1] == 0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@dataclass
class Preview:
    """`mkdocs serve` as it runs. `log` grows in a file."""

    site: Site
    process: subprocess.Popen[str]
    port: int
    log: Path

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def said(self, pattern: str, times: int = 1) -> re.Match[str]:
        """Wait until a line was said so many times and return its last match."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            found = list(re.finditer(pattern, self.log.read_text(encoding="utf-8")))
            if len(found) >= times:
                return found[-1]
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            time.sleep(0.05)
        raise AssertionError(f"{pattern!r} was not said: {self.log.read_text(encoding='utf-8')}")


@contextmanager
def previewed(site: Site, *arguments: str, tool: str = "mkdocs") -> Iterator[Preview]:
    port, log = free_port(), site.root / "serve.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", tool, "serve", "-a", f"127.0.0.1:{port}", *arguments],
            cwd=site.root, env=clean({"PYTHONUNBUFFERED": "1"}), stdout=file, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    preview = Preview(site, process, port, log)
    try:
        yield preview
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert "Traceback" not in log.read_text(encoding="utf-8")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mkdocs", ()),
        pytest.param("mkdocs", ("--clean",), marks=pytest.mark.slow),
        pytest.param("properdocs", (), marks=pytest.mark.slow),
    ],
)
def test_a_preview_chats_about_what_is_being_written(site: Site, tool: str, arguments: tuple[str, ...]) -> None:
    site.build()
    published = {p: p.read_bytes() for p in (site.root / STORE).rglob("*") if p.is_file()}
    with previewed(site, *arguments, tool=tool) as preview:
        api = preview.said(r"chat of this preview answers at (http://127\.0\.0\.1:\d+)")[1]
        preview.said(r"Indexed 3 pages")
        (folder,) = re.findall(r'src="(\S+)/launcher\.js"', httpx.get(f"{preview.origin}/docs/", timeout=60).text)
        config = httpx.get(f"{preview.origin}/docs/{folder}/config.js", timeout=60)
        assert f'"endpoint": "{api}"' in config.text

        asked = {"query": "How many degrees are enough for green tea?"}
        answer = httpx.post(f"{api}/v1/chat", json=asked, headers={"origin": preview.origin}, timeout=60)
        assert answer.headers["access-control-allow-origin"] == preview.origin
        assert "Eighty degrees are enough." in answer.json()["response"]
        (url,) = answer.json()["sources_cited"]
        assert url == f"{preview.origin}/docs/guide/brew/#green-tea"
        page = httpx.get(url, timeout=60)
        assert page.status_code == 200
        assert 'id="green-tea"' in page.text
        assert (
            httpx.post(f"{api}/v1/chat", json=asked, headers={"origin": "https://evil.example"}, timeout=60).status_code
            == 403
        )

        site.write({"guide/brew.md": PAGES["guide/brew.md"].replace("Eighty", "Seventy")})
        preview.said(r"Indexed 3 pages \(0 new, 1 changed")
        answer = httpx.post(f"{api}/v1/chat", json=asked, timeout=60)
        assert "Seventy degrees are enough." in answer.json()["response"]
    assert {p: p.read_bytes() for p in published} == published
    assert not any(h.base_url.startswith("http:") for h in site.heads())


@pytest.mark.slow
def test_a_preview_of_a_site_without_an_address_chats_all_the_same(site: Site) -> None:
    site.configure(site_url=None)
    with previewed(site) as preview:
        api = preview.said(r"chat of this preview answers at (http://127\.0\.0\.1:\d+)")[1]
        preview.said(r"Indexed 3 pages")
        answer = httpx.post(f"{api}/v1/chat", json={"query": "What dissolves lime?"}, timeout=60).json()
        assert answer["sources_cited"] == [f"{preview.origin}/guide/clean/#cleaning"]
    assert not list((site.root / STORE).glob("tea-pot"))


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "edits"), [((), 5), (("--dirty",), 1)])
def test_a_preview_shows_drafts_and_does_not_answer_from_them(
    site: Site, arguments: tuple[str, ...], edits: int
) -> None:
    site.write({"draft.md": "# Draft\n\nThe secret kettle is violet.\n"})
    site.configure(draft_docs="draft.md")
    with previewed(site, *arguments) as preview:
        api = preview.said(r"chat of this preview answers at (http://127\.0\.0\.1:\d+)")[1]
        preview.said(r"Indexed 3 pages")
        assert "violet" in httpx.get(f"{preview.origin}/docs/draft/", timeout=60).text
        # A dirty build compares the times of files; other rebuilds follow each other faster than pages are read.
        time.sleep(1.1)
        for number in range(edits):
            text = f"# Home\n\nWelcome to teapot number {number}.\n"
            site.write({"index.md": text, "draft.md": f"# Draft\n\nThe secret kettle {number} is violet.\n"})
            time.sleep(0.3)
        deadline = time.monotonic() + 120
        while f"number {edits - 1}" not in (answer := _ask(api, "Welcome to which teapot?")):
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        assert "violet" not in _ask(api, "What color is the secret kettle?")
        assert "not updated" not in preview.log.read_text("utf-8")


def _ask(api: str, question: str) -> str:
    return httpx.post(f"{api}/v1/chat", json={"query": question}, timeout=60).text


def test_a_build_for_an_address_of_this_machine_is_still_a_build(site: Site) -> None:
    site.configure(site_url="http://127.0.0.1:8000/")
    assert counts(site.build())[0] == 3
