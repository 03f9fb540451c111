"""Commands `publish` and `preview`, by which plugins in other languages work."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from built.test_bad_input import chunks, publish
from chapterverse import __version__
from chapterverse.indexing.options import OPTIONS
from chapterverse.settings import Settings
from chapterverse.store import open_store
from cli.shell import PAGES, Shell, clean, command
from ext.site_check.test_check import BASE, settings, write
from projects import chat_in, check


def configure(shell: Shell, **options: Any) -> tuple[str]:
    file = shell.root / "chapterverse.json"
    file.write_text(json.dumps({"endpoint": "/", **options}))
    return (str(file),)


def chat(shell: Shell) -> dict[str, Any]:
    return chat_in(shell.root / "site/assets/chapterverse")


def test_publish_puts_the_chat_on_the_pages_and_indexes_them(shell: Shell) -> None:
    done = shell.run("publish", "site", "--config", *configure(shell, widget={"title": "Ask the teapot"}))
    assert f"Indexed {len(PAGES)} pages ({len(PAGES)} new" in done.stderr
    assert done.stdout == ""
    assert chat(shell) == {"endpoint": "/", "title": "Ask the teapot"}
    assert (
        check(shell.root / "site", Settings(store=f"edge:{shell.root}/.cache/plugin/chapterverse"), environ={}).counts
        == {}
    )
    again = shell.run("publish", "site", "--config", *configure(shell, widget={"title": "Ask the teapot"}))
    assert "(0 new, 0 changed, 0 removed)" in again.stderr


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ({"stroe": "edge:x"}, 1, "There is no option 'stroe': the nearest is store."),
        ({"exclude": "a.md"}, 1, "The option 'exclude' must be a list of patterns."),
        ({"widget": {"titel": "x"}}, 1, "widget.titel"),
        ({"endpoint": None}, 0, "Warning: endpoint is not set"),
        ({"endpoint": None, "strict": True}, 1, "Error: endpoint is not set"),
        ({"embedder": "best"}, 0, "Warning: The index was not updated: CHAPTERVERSE_EMBEDDER is 'best'"),
        ({"embedder": "best", "strict": True}, 1, "Error: CHAPTERVERSE_EMBEDDER is 'best'"),
        ({"store": "s3://bucket/docs"}, 0, "Nothing was indexed: 's3://bucket/docs' is not embedded"),
    ],
)
def test_publish_says_in_one_sentence_what_is_wrong(
    shell: Shell, options: dict[str, Any], code: int, sentence: str
) -> None:
    done = shell.run("publish", "site", "--config", *configure(shell, **options), code=code)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["[1]", "a: [", "\0", "text"])
def test_publish_needs_options_by_name(shell: Shell, text: str) -> None:
    (shell.root / "options.yml").write_text(text)
    said = shell.run("publish", "site", "--config", "options.yml", code=1).stderr
    assert said.startswith("Error: options.yml ")
    assert said.count("\n") == 1


def test_a_plugin_that_is_off_changes_nothing(shell: Shell) -> None:
    before = (shell.root / "site/index.html").read_bytes()
    shell.run("publish", "site", "--config", *configure(shell, enabled=False))
    assert (shell.root / "site/index.html").read_bytes() == before
    assert not (shell.root / ".cache").exists()


def test_preview_answers_until_its_input_ends(shell: Shell) -> None:
    (shell.root / "tea.md").write_text("# Tea\n\n## Green tea\n\nEighty degrees are enough.\n")
    process = subprocess.Popen(
        command("preview"), cwd=shell.root, env=clean(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    print(json.dumps({"widget": {"title": "Tea"}}), file=process.stdin, flush=True)
    place = json.loads(process.stdout.readline())
    shown = {"base_url": "http://localhost:3000/pot/", "slugs": "docusaurus", "pages": {"tea.md": "/tea"}}
    print(json.dumps(shown), file=process.stdin, flush=True)
    while "Indexed 1 pages" not in process.stderr.readline():
        assert process.poll() is None
    for origin in ("http://localhost:3000", "http://127.0.0.1:3000"):
        file = httpx.get(place["launcher"], headers={"origin": origin})
        assert file.headers["access-control-allow-origin"] == origin
        question = {"query": "How hot is green tea?"}
        answer = httpx.post(f"{place['address']}/v1/retrieve", json=question, headers={"origin": origin}, timeout=60)
        assert answer.json()["retrieved_chunks"][0]["url"] == "http://localhost:3000/pot/tea"
    assert httpx.get(place["launcher"], headers={"origin": "http://evil.example"}).status_code == 403
    assert not (shell.root / "chapterverse").exists()
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("text", ["", "no\n", "[]\n", '{"stroe": 1}\n'])
def test_preview_tells_others_that_it_is_for_plugins(shell: Shell, text: str) -> None:
    done = subprocess.run(command("preview"), cwd=shell.root, env=clean(), input=text, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


def test_the_options_are_those_of_the_mkdocs_plugin_and_of_the_npm_packages() -> None:
    from chapterverse.mkdocs import ChapterVerseConfig

    # MkDocs has a switch of its own for each plugin.
    names = ["enabled", *(name for name, _ in ChapterVerseConfig._schema)]
    assert list(OPTIONS) == names
    declared = (Path(__file__).parents[2] / "npm/chapterverse/index.d.ts").read_text("utf-8")
    _, _, options = declared.partition("export interface Options {")
    assert [line.split("?:")[0].strip() for line in options.partition("\n}")[0].splitlines() if "?:" in line] == names


def test_the_npm_packages_have_the_version_of_this_one() -> None:
    for file in sorted((Path(__file__).parents[2] / "npm").glob("*/package.json")):
        package = json.loads(file.read_text("utf-8"))
        needs = package.get("dependencies", {}).get("chapterverse", __version__)
        assert (package["version"], needs) == (__version__, __version__), file.parent.name


def test_publish_writes_the_files_for_agents_unless_they_are_off(shell: Shell) -> None:
    address = ("--base-url", "https://tea.example.com/")
    shell.run("publish", "site", "--config", *configure(shell, agents={"llms_txt": False}), *address)
    assert (shell.root / "site/index.md").exists()
    assert not (shell.root / "site/llms.txt").exists()
    shell.run("publish", "site", "--config", *configure(shell, agents=False), *address)
    assert not (shell.root / "site/index.md").exists()


def test_a_page_that_states_its_source_has_files_for_agents_too(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "index.html")
    write(site, "brew/index.html", "<p>Hot water.</p>", '<meta name="chapterverse:source" content="docs/brew.mdx">')
    publish(site)
    assert "Hot water." in (site / "brew/index.md").read_text()
    assert f"]({BASE}brew/index.md)" in (site / "llms.txt").read_text()
    assert "text/markdown" in (site / "brew/index.html").read_text()
    assert {chunk.source_file_path for chunk in chunks(site)} == {"index.html", "docs/brew.mdx"}


def test_publish_indexes_what_is_listed_beyond_the_site(shell: Shell) -> None:
    (shell.root / "extra.md").write_text("# Extra\n\nBags are worse.", "utf-8")
    entry = {"file": "extra.md", "url": "https://tea.example.com/extra"}
    done = shell.run("publish", "site", "--config", *configure(shell, also=[entry]))
    assert f"Indexed {len(PAGES) + 1} pages" in done.stderr
    (found, *_) = shell.json("search", "Are bags worse?")
    assert found["results"][0]["url"] == "https://tea.example.com/extra"
    assert "a list of sources" in shell.refused("publish", "site", "--config", *configure(shell, also="extra.md"))
    assert "is no source" in shell.refused("publish", "site", "--config", *configure(shell, also=[{"urls": "x"}]))


def test_each_docs_version_of_a_build_is_an_index_of_its_own(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for path, text in {"": "Second.", "1.0/": "First.", "1.0/lid/": "None.", "fr/1.0/": "Un."}.items():
        write(site, f"{path}index.html", f"<p>{text}</p>")
    paths = ("--version-path", "2.0=", "--version-path", "1.0=1.0", "--version-path", "1.0=/fr/1.0/")
    assert publish(site, *paths).count("Indexed ") == 2
    store = open_store(settings(site))
    found = {
        (head.version, head.base_url): {point.chunk.text for point in store.snapshot(head.scope).points()}
        for head in store.heads()
    }
    assert found == {("2.0", BASE): {"Second."}, ("1.0", f"{BASE}1.0/"): {"First.", "None.", "Un."}}
    assert check(site, settings(site), environ={}).counts == {}
    write(site, "1.0/lid/index.html", "<p>Glass.</p>")
    page = write(site, "1.0.html", "<p>Cover.</p>")
    page.write_text(page.read_text().replace(f"{BASE}1.0.html", f"{BASE}1.0"))
    edited = check(site, settings(site), environ={})
    assert [f.file for f in edited.of("stale")] == ["1.0/lid/index.html"]
    publish(site, *paths)
    (head,) = [head for head in store.heads() if head.version == "1.0"]
    assert {p.chunk.text for p in store.snapshot(head.scope).points()} == {"First.", "Glass.", "Un.", "Cover."}
    # Two pages at almost one address.
    assert check(site, settings(site), environ={}).counts == {"twin": 1}
    assert "The index was not updated: --version-path '1.0' is not VERSION=FOLDER" in publish(
        site, "--version-path", "1.0"
    )


def test_a_docs_version_that_was_deleted_is_named_with_the_command_that_removes_it(shell: Shell) -> None:
    site = shell.root / "deleted"
    for path in ("", "1.0/", "0.9/"):
        write(site, f"{path}index.html", f"<p>Tea {path}.</p>")
    at = settings(site)
    publish(site, "--version-path", "2.0=", "--version-path", "1.0=1.0", "--version-path", "0.9=0.9")
    shutil.rmtree(site / "0.9")
    sentence = (
        "The store holds the docs version '0.9', and the site has no page of it: if it is gone, run "
        "`chapterverse unpublish --site tea --docs-version 0.9`."
    )
    assert f"Warning: {sentence}" in publish(site, "--version-path", "2.0=", "--version-path", "1.0=1.0")
    seen = check(site, at, environ={})
    assert {kind: [f.says for f in seen.of(kind)] for kind in seen.counts} == {"old_version": [sentence]}
    named = ("--store", at.store, "--site", "tea", "--docs-version", "0.9")
    assert "Removed the index of " in shell.run("unpublish", *named).stderr
    assert check(site, at, environ={}).counts == {}
    assert "The store holds nothing for that site and version" in shell.refused("unpublish", *named)


@pytest.mark.slow
def test_a_docs_version_gives_its_address_to_the_next(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "index.html", "<p>Tea.</p>")
    publish(site)
    write(site, "1.0/index.html", "<p>First tea.</p>")
    said = publish(site, "--version-path", "2.0=", "--version-path", "1.0=1.0")
    assert "Removed the docs version '', at whose address '2.0' is now." in said
    shutil.rmtree(site / "1.0")
    said = publish(site)
    assert "Removed the docs version '2.0', at whose address '' is now." in said
    # It may have a build of its own.
    assert "unpublish" not in said
    assert sorted(head.version for head in open_store(settings(site)).heads()) == ["", "1.0"]
