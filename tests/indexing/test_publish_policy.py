"""The right to write a remote index: a pull request's build writes only to a preview's store."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from chapterverse.cli import main
from chapterverse.errors import ConfigurationError
from chapterverse.indexing import index_run
from chapterverse.indexing.additions import find_documents
from chapterverse.indexing.index_run import Site, explain_withheld, update_index
from chapterverse.indexing.options import Options
from chapterverse.readers.built_site import read_site
from chapterverse.settings import Settings
from fakes.environment import replaced_environment
from fakes.qdrant_server import KEY, QdrantServer

BASE = "https://tea.example/docs/"
PULL = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_HEAD_REF": "patch-1"}
TARGET = {"GITHUB_EVENT_NAME": "pull_request_target", "GITHUB_REF": "refs/heads/main"}
MERGE = {"CI_MERGE_REQUEST_IID": "7", "CI_COMMIT_BRANCH": "main"}
MAIN = {"GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/heads/main"}
BRANCH = {"GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/heads/topic"}
STRANGER = "A pull request is being built, and its author may be a stranger"
SAME = "CHAPTERVERSE_PREVIEW_STORE names the site's own store, which no pull request may write"
UNASKED = "A pull request is being built: to write its preview, set CHAPTERVERSE_PUBLISH=1."


@pytest.fixture(scope="module")
def server() -> Iterator[QdrantServer]:
    with QdrantServer() as server:
        yield server


@contextmanager
def environment(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "GITHUB_", "CI_"))}
    with replaced_environment({**kept, "QDRANT_API_KEY": KEY, **variables}), chdir(folder):
        yield


def written(server: QdrantServer) -> set[str]:
    """Return the collections that there are, and remove them."""
    found = set(server.collections)
    for name in found:
        server.send("DELETE", f"/collections/{name}")
    return {name.partition("_")[0] for name in found}


# Which of the collections "site" and "preview" is written: by a build with the plugin, and by the command.
@pytest.mark.parametrize(
    ("event", "publish", "preview", "plugin", "command"),
    [
        ({}, "", "", None, "site"),
        ({}, "1", "preview", "site", "site"),
        (MAIN, "1", "", "site", "site"),
        (MAIN, "", "preview", None, "site"),
        (BRANCH, "0", "preview", None, "site"),
        (PULL, "1", "", None, STRANGER),
        (PULL, "", "", None, STRANGER),
        (PULL, "1", "preview", "preview", "preview"),
        (PULL, "", "preview", None, UNASKED),
        (PULL, "1", "site", SAME, SAME),
        (TARGET, "1", "", None, STRANGER),
        (MERGE, "1", "preview", "preview", "preview"),
    ],
)
def test_twelve_builds(
    server: QdrantServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    event: Mapping[str, str],
    publish: str,
    preview: str,
    plugin: str | None,
    command: str,
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text('<html lang="en"><main><h1 id="t">Tea</h1><p>Green tea.</p></main></html>')
    at = {name: f"qdrant:{server.url}?collection={name}" for name in ("site", "preview")}
    variables = {"CHAPTERVERSE_STORE": at["site"], "CHAPTERVERSE_PUBLISH": publish, **event}
    variables |= {"CHAPTERVERSE_PREVIEW_STORE": f"{at[preview]}&shards=1"} if preview else {}
    with environment(tmp_path, variables):
        assert written(server) == set()
        assert built(tmp_path) == (plugin if plugin == SAME else None)
        assert written(server) == ({plugin} - {None, SAME})
        with pytest.raises(SystemExit) as end:
            main(["index", "site", "--base-url", BASE, "--site", "tea"])
        assert bool(end.value.code) is (command not in at)
        assert written(server) == ({command} & at.keys())
        if command not in at:
            said = capsys.readouterr().err
            assert said.startswith(f"Error: {command}")
            assert said.count("\n") == 1


def built(folder: Path) -> str | None:
    """Act as the plugin at the end of a build; return the start of an error message."""
    settings = Options().settings(folder, "Tea", None)
    if settings.may_publish:
        (folder / "pages").mkdir(exist_ok=True)
        (folder / "pages/index.html").write_text('<html lang="en"><h1 id="t">Tea</h1><p>Green tea.</p>', "utf-8")
        pages, documents = read_site(folder / "pages", BASE), find_documents(settings, None, folder)
        try:
            update_index(Site(pages, documents, settings, 256), logging.getLogger("build"))
        except ConfigurationError as error:
            return str(error).partition(":")[0]
    else:
        assert "stranger" in explain_withheld(settings) or "needs `publish: true`" in explain_withheld(settings)
    return None


@pytest.mark.parametrize(
    "arguments",
    [["import", "export.jsonl"], ["repair"], ["calibrate", "asked.jsonl"], ["index", "site"]],
    ids=lambda arguments: arguments[0],
)
def test_no_command_writes_the_sites_own_index(
    server: QdrantServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / "site").mkdir()
    rows = "".join(
        f'{{"id": "{n}", "question": "What is tea {n}?", {more}}}\n'
        for n, more in enumerate(('"expected": ["https://tea.example/"]', '"answerable": false') * 20)
    )
    (tmp_path / "asked.jsonl").write_text(rows)
    store = {"CHAPTERVERSE_STORE": f"qdrant:{server.url}", "CHAPTERVERSE_PUBLISH": "1", "CHAPTERVERSE_SITE": "tea"}
    with environment(tmp_path, {**PULL, **store}), pytest.raises(SystemExit):
        main(arguments)
    assert STRANGER in capsys.readouterr().err


def preview(store: str, other: str, **more: str) -> Settings:
    variables = {"CHAPTERVERSE_STORE": store, "CHAPTERVERSE_PREVIEW_STORE": other, "CHAPTERVERSE_PUBLISH": "1"}
    return Settings.from_environment({**PULL, **variables, **more})


@pytest.mark.parametrize(
    ("store", "other"),
    [
        ("qdrant:https://h.example", "qdrant:https://H.example:6333/"),
        ("qdrant:", "qdrant:https://h.example?quantization=scalar"),
        ("qdrant:https://h.example?collection=a", "qdrant:https://h.example?shards=2&collection=a"),
        ("s3://bucket/docs", "s3://bucket/docs/"),
        ("s3://bucket", "s3://bucket//"),
    ],
)
def test_one_place_by_two_names_is_one_place(store: str, other: str) -> None:
    with pytest.raises(ConfigurationError, match=SAME):
        index_run.require_permission(preview(store, other, QDRANT_URL="https://h.example"))


@pytest.mark.parametrize(
    ("store", "other"),
    [
        ("qdrant:https://h.example", "qdrant:https://h.example?collection=preview"),
        ("qdrant:https://h.example", "s3://bucket/preview"),
        ("s3://bucket/docs", "s3://bucket/preview"),
    ],
)
def test_a_place_of_its_own_may_be_written(store: str, other: str) -> None:
    settings = preview(store, other, QDRANT_API_KEY=KEY)
    assert settings.store == other
    index_run.require_permission(settings)


def test_a_preview_leaves_the_ledger_of_the_site_alone() -> None:
    rows = "postgresql://h.example/rows"
    settings = preview("qdrant:https://h.example", "s3://bucket/preview", CHAPTERVERSE_LEDGER=rows)
    assert settings.ledger == ""
    assert settings.with_secrets({"CHAPTERVERSE_LEDGER": rows}).ledger == ""
    own = preview("qdrant:https://h.example", "s3://bucket/preview", CHAPTERVERSE_LEDGER="sqlite:rows")
    assert own.ledger == "sqlite:rows"


def test_an_embedded_store_stays_where_it_is() -> None:
    settings = preview("edge:here", "s3://bucket/preview")
    assert settings.store == "edge:here"
    index_run.require_permission(settings)
    assert Settings.from_environment({"CHAPTERVERSE_PREVIEW_STORE": "s3://a/b"}, store="s3://a/c").store == "s3://a/c"
