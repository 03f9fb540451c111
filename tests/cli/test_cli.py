"""Every command over real files; signals, terminals and pipes in a separate process."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from chapterverse import __version__
from chapterverse.extensions import list_commands
from cli.shell import BASE, PAGES, QUESTION, Shell, clean, command, get, typed


def snapshot(root: Path) -> dict[Path, bytes | None]:
    return {p: p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_every_command_and_where_to_start(indexed: Shell, arguments: list[str]) -> None:
    done = indexed.run(*arguments, code=0 if arguments else 2)
    text = " ".join((done.stdout + done.stderr).split())
    assert all(f" {name} " in text for name in ("index", "search", "ask", "serve", "status"))
    assert "Start with `chapterverse index site/`" in text
    assert "CHAPTERVERSE_STORE" in text


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "index",
            [
                "--source",
                "--slugs",
                "--base-url",
                "--exclude",
                "--include",
                "--ledger",
                "--embedder",
                "--dry-run",
                "--json",
            ],
        ),
        ("search", ["--questions", "--top-k", "--filter", "--json"]),
        ("ask", ["--selected-text", "--page-url", "--plan", "--json"]),
        ("trace", ["--page-url", "--history", "--json"]),
        ("serve", ["--host", "--port", "--site-dir"]),
        ("status", ["--base-url", "--ledger", "--json"]),
    ],
)
def test_help_of_a_command_explains_each_option(indexed: Shell, name: str, options: list[str]) -> None:
    text = indexed.run(name, "--help").stdout
    for option in [*options, "--store", "--site", "--docs-version"]:
        assert re.search(rf"^  {option}\b[^\n]*\s+[A-Z]\w", text, re.MULTILINE), option


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_a_full_disk_gets_one_sentence(indexed: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("status", "--json"), cwd=indexed.root, env=clean(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "Error: No space left on device.\n"


def test_a_plan_is_a_pages_own_steps(shell: Shell) -> None:
    steps = "<ol><li>Boil the water.</li><li>Wait four minutes for black tea.</li></ol>"
    shell.write("black/index.html", "Black tea", f'<h2 id="brew">Brewing black tea</h2>{steps}')
    shell.run("index", "site")
    asked = ("ask", "How do I brew black tea?", "--plan")
    reply = shell.json(*asked)
    assert (reply["planned_by"], reply["step"]["text"]) == ("page", "Boil the water.")
    printed = shell.run(*asked).stdout
    assert "1. Boil the water. [1]\n" in printed
    assert "2. Wait four minutes for black tea. [1]\n" in printed
    assert "Traceback" not in shell.run("ask", "capital of Mongolia", "--plan").stdout
    assert "neither" in shell.run("ask", "tea", "--plan", "--schema", "tasks", code=2).stderr


@pytest.mark.slow
def test_a_reader_goes_through_a_plan_on_a_terminal(shell: Shell) -> None:
    steps = "<ol><li>Boil the water.</li><li>Wait four minutes for black tea.</li></ol>"
    shell.write("black/index.html", "Black tea", f'<h2 id="brew">Brewing black tea</h2>{steps}')
    shell.run("index", "site")
    ours, theirs = pty.openpty()
    os.write(ours, b"\n\n")
    asked = command("ask", "How do I brew black tea?", "--plan")
    done = subprocess.run(asked, cwd=shell.root, env=clean(), stdin=theirs, capture_output=True, text=True, timeout=120)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    first, second, source = (done.stdout.index(text) for text in ("1. Boil", "2. Wait", "[1] Black tea"))
    assert first < second < source


def test_version(indexed: Shell) -> None:
    assert indexed.run("--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["--nonsense"]])
def test_no_command_is_imported_before_it_runs(arguments: list[str]) -> None:
    program = (
        "import sys; from chapterverse.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*(name for name in sys.modules if name.startswith('chapterverse')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=clean(), capture_output=True, text=True)
    own = {
        "chapterverse.cli",
        "chapterverse.cli.messages",
        "chapterverse.extensions",
        "chapterverse.manifests",
        "chapterverse.version",
    }
    assert {*done.stderr.splitlines()[-1].split()} == {
        "chapterverse",
        "chapterverse.errors",
        "chapterverse.progress",
        *own,
    }


def test_help_needs_no_server_to_be_installed() -> None:
    program = """
import contextlib, sys
sys.modules.update(dict.fromkeys(("fastapi", "starlette", "uvicorn")))
from chapterverse.cli import main
for name in sys.argv[1:]:
    with contextlib.suppress(SystemExit):
        main([name, "--help"])
"""
    names = [*list_commands()]
    done = subprocess.run([sys.executable, "-c", program, *names], env=clean(), capture_output=True, text=True)
    assert done.stderr == ""
    assert re.findall(r"^Usage: -c (\w+)", done.stdout, re.MULTILINE) == names


@pytest.mark.parametrize("name", [*list_commands()])
def test_the_list_of_commands_says_what_their_own_help_says(indexed: Shell, name: str) -> None:
    assert f" {list_commands()[name].help} " in f"{' '.join(indexed.run(name, '--help').stdout.split())} "


def test_a_short_option_is_a_long_one(indexed: Shell) -> None:
    assert indexed.run("-V").stdout == indexed.run("--version").stdout
    assert indexed.run("-h").stdout == indexed.run("--help").stdout
    assert indexed.run("status", "-h").stdout == indexed.run("status", "--help").stdout


@pytest.mark.parametrize("arguments", [("-q", "index", "site"), ("index", "site", "--quiet")])
def test_quiet_leaves_out_all_but_results_and_errors(shell: Shell, arguments: tuple[str, ...]) -> None:
    done = shell.run(*arguments, environment={"CHAPTERVERSE_NONSENSE": "1"})
    assert (done.stdout, done.stderr) == ("", "")
    assert json.loads(shell.run(*arguments, "--json").stdout)["pages"]["seen"] == 3
    assert shell.run("-q", "index", "nowhere", code=1).stderr == "Error: nowhere is not a folder.\n"
    # A command before must not silence the next one.
    assert shell.run("index", "site").stderr


@pytest.mark.parametrize(
    ("arguments", "status", "code", "message"),
    [
        (("check", "nowhere"), 1, "input", "nowhere is not a folder."),
        (("status", "--store", "edge:none"), 1, "index_missing", "There is no index yet in "),
        (("search", "tea", "--embedder", "abacus"), 1, "configuration", "abacus"),
        (("status", "--nonsense"), 2, "usage", "--nonsense"),
        (("search",), 2, "usage", "Give either a QUESTION"),
    ],
)
def test_an_error_is_one_document_with_json(
    indexed: Shell, arguments: tuple[str, ...], status: int, code: str, message: str
) -> None:
    done = indexed.run(*arguments, "--json", code=status)
    error = json.loads(done.stdout)["error"]
    assert (error["code"], message in error["message"]) == (code, True), error
    assert "Error: " in done.stderr
    assert indexed.run(*arguments, code=status).stdout == ""


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", {"COMP_WORDS": "chapterverse {}", "COMP_CWORD": "{at}"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "chapterverse {}"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "chapterverse {}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_completion_names_commands_and_options(shell: str, words: dict[str, str]) -> None:
    def complete(typed: str, variable: str = "complete") -> str:
        places = {name: value.format(typed, at=len(typed.split())) for name, value in words.items()}
        program = [sys.executable, "-c", "from chapterverse.cli import app; app(prog_name='chapterverse')"]
        environment = clean({**places, "_CHAPTERVERSE_COMPLETE": f"{variable}_{shell}"})
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout

    assert "complete" in complete("", "source")
    assert re.findall(r"\b(check|status|publish)\b", complete("ch")) == ["check"]
    assert "--write-baseline" in complete("check --write")


def test_commands_are_listed_by_group_without_those_of_build_tools(indexed: Shell) -> None:
    text = indexed.run("--help").stdout
    assert re.findall(r"^(\w+):$", text, re.MULTILINE) == ["Options", "Build", "Ask", "Measure", "Operate"]
    assert not re.search(r"^  (publish|preview|unpublish)\b", text, re.MULTILINE)


def test_schemas(shell: Shell) -> None:
    assert shell.json("schema", "memory")["required_fields"] == ["type"]
    assert [*shell.json("schema")] == ["page", "persona", "faq", "memory", "turn", "summary"]
    assert "turn: timestamp, source, scope, type, conversation_id, role, turn_index (required:" in (
        shell.run("schema").stdout
    )


def test_index_says_what_it_did(shell: Shell) -> None:
    done = shell.run("index", "site")
    assert done.stdout == ""
    assert re.fullmatch(
        r"Indexed 3 pages \(3 new, 0 changed, 0 removed\), 4 chunks \(4 new, 0 kept, 0 moved, 0 removed\), "
        r"4 embedded, [\d.]+ s\n",
        done.stderr,
    )


def test_index_as_json(shell: Shell) -> None:
    report = shell.json("index", "site")
    assert report.pop("seconds") > 0
    assert report == {
        "site": "tea-example-com-docs",
        "version": "",
        "generation": 1,
        "pages": {"seen": 3, "new": 3, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 0},
        "chunks": {"total": 4, "new": 4, "kept": 0, "moved": 0, "removed": 0},
        "embedded": 4,
        "warnings": [],
    }
    again = shell.json("index", "site")
    assert (again["generation"], again["pages"]["unchanged"], again["embedded"]) == (1, 3, 0)


def test_a_dry_run_says_the_same_and_writes_nothing(shell: Shell) -> None:
    before = snapshot(shell.root)
    dry = shell.json("index", "site", "--dry-run")
    assert snapshot(shell.root) == before
    told = shell.run("index", "site", "--dry-run").stderr.splitlines()
    assert told[:3] == ["new      brew/index.html", "new      clean/index.html", "new      index.html"]
    assert told[3].startswith("Would index 3 pages (3 new")
    wet = shell.json("index", "site")
    assert dry.pop("plan")["new"] == ["brew/index.html", "clean/index.html", "index.html"]
    assert {**dry, "seconds": 0, "generation": 1} == {**wet, "seconds": 0}
    shell.write("clean/index.html", "Cleaning", "<p>Lemon dissolves lime.</p>")
    before = snapshot(shell.root)
    dry = shell.json("index", "site", "--dry-run")
    assert (dry["pages"]["changed"], dry["chunks"]["new"]) == (1, 1)
    assert snapshot(shell.root) == before


def test_what_can_not_be_read_is_a_warning_and_the_rest_is_indexed(shell: Shell) -> None:
    (shell.root / "site/junk.html").write_bytes(b"\x00\xff" * 100)
    done = shell.run("index", "site", "--json")
    report = json.loads(done.stdout)
    assert report["pages"] == {"seen": 4, "new": 3, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 1}
    assert report["warnings"] == ["junk.html is not a text file."]
    assert done.stderr.startswith("Warning: junk.html is not a text file.\n")


def test_listings_are_named_left_out_and_brought_back(shell: Shell) -> None:
    shell.write("tags/index.html", "Tags", '<ul><li><a href="../brew/">Brewing</a></li></ul>')
    done = shell.run("index", "site", "--json")
    assert done.stderr.startswith("Left out: tags/index.html (tag listing)\n")
    report = json.loads(done.stdout)
    assert (report["left_out"], report["pages"]["skipped"]) == ({"tags/index.html": "tag listing"}, 1)
    again = shell.json("index", "site", "--include", "tags/")
    assert ("left_out" in again, again["pages"]["new"]) == (False, 1)
    assert shell.json("status", "site", "--include", "tags/")["files"][-1]["state"] == "Indexed"


def test_index_of_a_folder_of_markdown(shell: Shell) -> None:
    docs = shell.root / "docs"
    docs.mkdir()
    (docs / "brew.md").write_text("# Brewing\n\n## Green Tea!\n\nEighty degrees are enough.\n\n## Größe\n\nKlein.\n")
    report = shell.json("index", "docs", "--source", "--base-url", BASE, "--slugs", "github")
    assert (report["pages"]["new"], report["chunks"]["total"]) == (1, 2)
    (row,) = shell.json("search", "eighty degrees", "--top-k", "1")[0]["results"]
    # Its anchor was computed and never seen, so the page is cited without it.
    assert (row["url"], row["section"]) == (f"{BASE}brew/", "Green Tea!")


def test_every_page_left_out_is_named_and_nothing_else_is_counted(shell: Shell) -> None:
    shell.write("quiet/index.html", "Quiet", "<p>Not for you.</p>")
    quiet = shell.root / "site/quiet/index.html"
    quiet.write_text(quiet.read_text().replace("<head>", '<head><meta name="robots" content="noindex">'))
    shell.write("copy/index.html", "Copy", "<p>Twice.</p>")
    copy = shell.root / "site/copy/index.html"
    copy.write_text(copy.read_text().replace(f"{BASE}copy/", f"{BASE}clean/"))
    (shell.root / "site/latest").symlink_to("brew")
    faq = shell.root / "knowledge/faq"
    faq.mkdir(parents=True)
    (faq / "tea.md").write_text("# How hot?\n\nEighty degrees.\n")
    (faq / "bad.md").write_text('---\ntopic: "\\ud800"\n---\n# A?\n\nB.\n')
    done = shell.run("index", "site", "--exclude", "brew/", "--knowledge", "knowledge", "--json")
    report = json.loads(done.stdout)
    bad = "knowledge/faq/bad.md: its front matter holds a character that is no text: remove it."
    assert report["left_out"] == {
        "brew/index.html": "excluded by a pattern",
        "quiet/index.html": "asks not to be indexed",
        "copy/index.html": "has the address of clean/index.html",
        "knowledge/faq/bad.md": bad,
    }
    # Two pages and a FAQ file are new; the link to a folder is no page.
    assert report["pages"] == {"seen": 7, "new": 3, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 4}
    assert len(report["warnings"]) == 3
    assert "Left out: quiet/index.html (asks not to be indexed)\n" in done.stderr
    assert "Indexed 2 pages and 1 document (3 new, 0 changed, 0 removed)" in done.stderr
    again = shell.json("index", "site", "--exclude", "brew/", "--knowledge", "knowledge")
    assert again["pages"] == {"seen": 7, "new": 0, "changed": 0, "unchanged": 3, "removed": 0, "skipped": 4}
    (shell.root / "knowledge/faq/tea.md").unlink()
    last = shell.json("index", "site", "--exclude", "brew/", "--knowledge", "knowledge")
    assert (last["pages"]["removed"], last["pages"]["skipped"]) == (1, 4)


def test_an_export_goes_through_a_pipe(shell: Shell) -> None:
    shell.run("index", "site")
    export = subprocess.run(
        command("export", "-"), cwd=shell.root, env=clean({"PYTHONIOENCODING": "ascii"}), capture_output=True
    )
    assert (export.returncode, len(export.stdout.splitlines())) == (0, 5)
    into = command("import", "-", "--store", "edge:two")
    done = subprocess.run(into, cwd=shell.root, env=clean(), input=export.stdout, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "--json prints a document on standard output" in shell.refused("export", "-", "--json")


def test_pages_that_a_script_fills_are_named_and_questions_refused(shell: Shell) -> None:
    (shell.root / "app").mkdir()
    page = "<html lang=en><title>Kiln</title><body><div id=app></div><script>fill('{}')</script></body></html>"
    (shell.root / "app/index.html").write_text(page.format("<p>" + "much " * 500))
    (shell.root / "app/api.html").write_text(page.format("").replace("<div", "<redoc><div"))
    sentences = [f"{name}.html has no text in its HTML: is it filled by a script?" for name in ("api", "index")]
    arguments = ("index", "app", "--base-url", BASE)
    for _ in range(2):
        report = shell.json(*arguments)
        assert (report["warnings"], list(report["left_out"].values())) == (sentences, sentences)
        assert report["pages"] == {"seen": 2, "new": 0, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 2}
    found = shell.run("check", "app", "--base-url", BASE, "--json", code=3)
    (group,) = [group for group in json.loads(found.stdout)["findings"] if group["kind"] == "no_text"]
    assert [example["says"] for example in group["examples"]] == sentences
    for more in ((), ("--selected-text", "A kiln is hot.")):
        assert shell.json("ask", "What is a kiln?", *more)["status"] in ("not_in_docs", "answered")
    assert shell.json("ask", "What is a kiln?")["status"] == "not_in_docs"
    assert shell.json("search", "What is a kiln?")[0]["results"] == []


def test_no_index_yet_names_the_folder_and_the_command(shell: Shell) -> None:
    (shell.root / "mkdocs.yml").touch()
    folder = shell.root / ".cache/plugin/chapterverse"
    for arguments in (["ask", "a"], ["search", "a"], ["status"], ["export", "-"]):
        assert shell.refused(*arguments) == (f"There is no index yet in {folder}: run `mkdocs build` with the plugin.")


def test_the_cache_ignores_itself_in_git(shell: Shell) -> None:
    shell.run("index", "site")
    assert (shell.root / ".cache/plugin/.gitignore").read_text() == "*\n"
    shell.run("index", "site", "--store", "edge:mine")
    assert not list((shell.root / "mine").rglob(".gitignore"))


def test_an_unknown_variable_is_named_once(shell: Shell) -> None:
    said = shell.run("index", "site", environment={"CHAPTERVERSE_STROE": "edge:x"}).stderr
    assert said.count("There is no variable 'CHAPTERVERSE_STROE': the nearest is CHAPTERVERSE_STORE.") == 1


def test_a_site_keeps_its_name_whatever_indexed_it_first(shell: Shell) -> None:
    shell.run("index", "site", "--site", "tea-pot")
    assert shell.json("index", "site")["site"] == "tea-pot"
    assert shell.json("status")["site"] == "tea-pot"


def test_versions_and_sites_of_one_store(shell: Shell) -> None:
    shell.run("index", "site", "--docs-version", "1")
    shell.run("index", "site", "--docs-version", "2")
    assert "say which with --site and --docs-version" in shell.refused("status")
    assert shell.json("status", "--docs-version", "2")["version"] == "2"
    assert "only" in shell.refused("status", "--docs-version", "3")


def test_search_as_json(indexed: Shell) -> None:
    (found,) = indexed.json("search", QUESTION, "--top-k", "2")
    assert found["id"] == "1"
    assert [row["rank"] for row in found["results"]] == list(range(1, len(found["results"]) + 1))
    best = found["results"][0]
    assert set(best) == {
        "rank", "score", "url", "chapter", "section", "heading_path", "source_file_path", "chunk_id", "text",
    }  # fmt: skip
    assert (best["url"], best["chapter"], best["section"]) == (f"{BASE}brew/#green-tea", "Brewing", "Green tea")
    assert best["text"] == "Eighty degrees are enough for green tea."


def test_search_for_people(indexed: Shell) -> None:
    lines = indexed.run("search", QUESTION).stdout.splitlines()
    assert lines[0] == QUESTION
    assert re.fullmatch(r"  1 [01]\.\d\d  Brewing › Green tea", lines[2])
    assert lines[3].strip() == f"{BASE}brew/#green-tea"


def test_search_for_a_file_of_questions(indexed: Shell, tmp_path: Path) -> None:
    rows = [
        {"id": "q1", "question": QUESTION, "expected": ["x"]},
        {"id": "q2", "question": "and lime?", "history": [{"role": "user", "content": "What does vinegar dissolve?"}]},
        {"id": "q3", "question": "zzzz"},
    ]
    file = tmp_path / "q.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    found = indexed.json("search", "--questions", str(file), "--top-k", "1")
    assert [(f["id"], [r["section"] or r["chapter"] for r in f["results"]]) for f in found] == [
        ("q1", ["Green tea"]),
        ("q2", ["Cleaning"]),
        ("q3", []),
    ]


def test_filters(indexed: Shell) -> None:
    pages = ("--filter", "source_file_path=clean/index.html", "--filter", "source_file_path=index.html")
    (found,) = indexed.json("search", "tea vinegar teapot", *pages)
    assert {r["source_file_path"] for r in found["results"]} == {"clean/index.html", "index.html"}
    (found,) = indexed.json("search", "green tea", "--filter", "chunk_index=1")
    assert [r["section"] for r in found["results"]] == ["Green tea"]


@pytest.mark.parametrize(
    ("filters", "pages"),
    [
        ([f"url={BASE}clean/"], {"clean/index.html"}),
        ([f"url^={BASE}cl", "source_file_path=index.html"], set()),
        (["source_file_path^=cl", "source_file_path=index.html"], {"clean/index.html", "index.html"}),
        (['{"url": {"$contains": "/clean"}}'], {"clean/index.html"}),
        (['{"$or": [{"url": {"$prefix": "http"}}, {"type": "faq"}]}', "source_file_path=index.html"], {"index.html"}),
        (['{"created_at": {"$lt": "2000-01-01"}}'], set()),
        (["{}"], {"brew/index.html", "clean/index.html", "index.html"}),
    ],
)
def test_filters_beyond_equality(indexed: Shell, filters: list[str], pages: set[str]) -> None:
    options = [part for text in filters for part in ("--filter", text)]
    (found,) = indexed.json("search", "tea vinegar teapot", "--top-k", "20", *options)
    assert {r["source_file_path"] for r in found["results"]} == pages


def test_ask_as_json(indexed: Shell) -> None:
    answer = indexed.json("ask", QUESTION)
    assert answer["status"] == "answered"
    assert answer["sources_cited"] == [f"{BASE}brew/#green-tea"]
    refused = indexed.json("ask", "Who won the world cup?")
    assert refused["status"] == "not_in_docs"


def test_ask_for_people(indexed: Shell) -> None:
    text = indexed.run("ask", QUESTION).stdout
    assert "Eighty degrees are enough for green tea." in text
    assert text.splitlines()[-1] == f"[1] Brewing › Green tea  {BASE}brew/#green-tea"


def test_ask_about_a_selection(indexed: Shell) -> None:
    answer = indexed.json("ask", "--selected-text", "Kettles sing.", "--page-url", f"{BASE}clean/")
    (source,) = answer["source_chunks"]
    assert (answer["mode"], source["chapter"], source["url"]) == ("selected_text", "Cleaning", f"{BASE}clean/")


def test_ask_for_an_entity(shell: Shell) -> None:
    file = shell.root / "knowledge/faq/club.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nscope: entity:club\n---\n# May guests use the samovar?\n\nOn Sundays only.", "utf-8")
    shell.run("index", "site", "--knowledge", "knowledge")
    question = "May guests use the samovar?"
    assert "On Sundays only." in shell.run("ask", question, "--entity", "club").stdout
    assert "On Sundays only." not in shell.run("ask", question).stdout
    assert "entity" in shell.refused("ask", question, "--entity", "a/b")
    assert "at most 10000 characters" in shell.refused("ask", question, "--context", "x" * 10_001)


def test_a_selection_needs_no_index(shell: Shell) -> None:
    answer = shell.json("ask", "What sings?", "--selected-text", "Kettles sing.")
    assert answer["source_chunks"][0]["url"] is None


def test_status(shell: Shell) -> None:
    shell.run("index", "site")
    report = shell.json("status")
    assert {k: report[k] for k in ("site", "version", "generation", "embedder")} == {
        "site": "tea-example-com-docs", "version": "", "generation": 1, "embedder": "none",
    }  # fmt: skip
    assert [f["file_path"] for f in report["files"]] == sorted(PAGES)
    assert {f["state"] for f in report["files"]} == {"Indexed"}
    assert all(re.fullmatch(r"[0-9a-f]{64}", f["content_hash"]) and f["last_indexed_at"] for f in report["files"])
    lines = shell.run("status").stdout.splitlines()
    assert lines[0].startswith("tea-example-com-docs: generation 1, 3 pages, 4 chunks, embedder none")
    assert re.fullmatch(r"Indexed +2 chunks +\S+  brew/index.html", lines[1])


def test_status_against_a_site(shell: Shell) -> None:
    shell.run("index", "site")
    shell.write("new/index.html", "New", "<p>New.</p>")
    shell.write("clean/index.html", "Cleaning", "<p>Lemon dissolves lime.</p>")
    (shell.root / "site/brew/index.html").unlink()
    states = {f["file_path"]: f["state"] for f in shell.json("status", "site")["files"]}
    assert states == {
        "index.html": "Indexed", "new/index.html": "Unindexed",
        "clean/index.html": "Stale", "brew/index.html": "Removed",
    }  # fmt: skip


def test_status_against_a_folder_of_markdown(shell: Shell) -> None:
    docs = shell.root / "docs"
    docs.mkdir()
    for name in ("brew", "clean", "pour"):
        (docs / f"{name}.md").write_text(f"# {name}\n\nAll about how to {name} tea.\n")
    faq = docs / "knowledge" / "faq"
    faq.mkdir(parents=True)
    (faq / "lime.md").write_text("# Lime\n\n## How do I get rid of lime?\n\nWith lemon.\n")
    first = shell.json("status", "docs", "--source", "--base-url", BASE)
    assert (first["generation"], {f["state"] for f in first["files"]}) == (0, {"Unindexed"})
    assert [f["file_path"] for f in first["files"]] == ["brew.md", "clean.md", "knowledge/faq/lime.md", "pour.md"]
    shell.run("index", "docs", "--source", "--base-url", BASE)
    (docs / "brew.md").unlink()
    (docs / "clean.md").write_text("# Clean\n\nLemon dissolves lime.\n")
    (docs / "new.md").write_text("# New\n\nNew.\n")
    expected = {
        "brew.md": "Removed", "clean.md": "Stale", "knowledge/faq/lime.md": "Indexed", "new.md": "Unindexed",
        "pour.md": "Indexed",
    }  # fmt: skip
    for flags in (["--source"], []):
        assert {f["file_path"]: f["state"] for f in shell.json("status", "docs", *flags)["files"]} == expected
    github = shell.json("status", "docs", "--source", "--slugs", "github")["files"]
    assert next(f["state"] for f in github if f["file_path"] == "pour.md") == "Stale"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["index", "nowhere"], "nowhere is not a folder."),
        (["index", "empty"], "HTML page to index"),
        (["index", "bare"], "--base-url"),
        (["index", "site", "--base-url", "not an address"], "address"),
        (["index", "empty", "--source", "--base-url", BASE], "Markdown"),
        (["index", "site", "--source"], "pass --base-url"),
        (["index", "site", "--embedder", "best"], "CHAPTERVERSE_EMBEDDER is 'best'"),
        (["index", "site", "--embedder", "cohere"], "COHERE_API_KEY"),
        (["index", "site", "--store", "nowhere"], "CHAPTERVERSE_STORE is 'nowhere'"),
        (
            ["index", "site", "--ledger", "nowhere"],
            "CHAPTERVERSE_LEDGER is nothing that is known: use sqlite:PATH or postgres",
        ),
        (["index", "site", "--store", "edge:site/index.html/x"], ""),
        (["search", "a"], "There is no index yet"),
        (["ask", "a"], "There is no index yet"),
        (["status"], "There is no index yet"),
        (["search", "a", "--store", "nowhere"], "CHAPTERVERSE_STORE is 'nowhere'"),
        (["search", "--questions", "nowhere.jsonl"], "nowhere.jsonl can't be read"),
        (["serve", "--port", "0", "--site-dir", "nowhere"], "nowhere is no folder"),
        (["serve", "--host", "192.0.2.1"], "Port 8765 on 192.0.2.1 can't be used"),
        (["serve", "--store", "nowhere", "--port", "0"], "CHAPTERVERSE_STORE is 'nowhere'"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(shell: Shell, arguments: list[str], sentence: str) -> None:
    (shell.root / "empty").mkdir()
    (shell.root / "bare").mkdir()
    (shell.root / "bare/a.html").write_text("<main><h1>A</h1><p>B.</p></main>")
    assert sentence in shell.refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["search"], "Give either a QUESTION or --questions FILE.jsonl."),
        (["search", "a", "--questions", "q.jsonl"], "Give either a QUESTION or --questions FILE.jsonl."),
        (["search", "a", "--top-k", "0"], "--top-k"),
        (["search", "a", "--top-k", "21"], "--top-k"),
        (["search", "a", "--filter", "tags"], "A --filter needs the form field=value, field^=prefix, or JSON."),
        (["search", "a", "--filter", "{"], "A --filter in braces needs to be a JSON object without a key twice."),
        (["search", "a", "--filter", '{"type": "a", "type": "b"}'], "A --filter in braces needs to be a JSON object"),
        (["search", "a", "--filter", '{"$or": ' * 9999], "A --filter in braces needs to be a JSON object"),
        (["search", "a", "--filter", f'{{"chunk_index": {"9" * 5000}}}'], "A --filter in braces needs to be a JSON"),
        (["ask"], "Give a QUESTION, --selected-text, or both."),
        (["index"], "PATH"),
        (["index", "site", "--slugs", "jekyll"], "--slugs"),
        (["serve", "--port", "70000"], "--port"),
        (["schema", "banana"], "TYPE must be one of page, persona, faq, memory, turn, summary."),
        (["nope"], "nope"),
        (["ask", "a", "--nope"], "--nope"),
    ],
)
def test_what_was_not_understood_is_a_matter_of_usage(indexed: Shell, arguments: list[str], sentence: str) -> None:
    assert sentence in indexed.refused(*arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ask", ""], "query must hold at least one letter or digit."),
        (["ask", "🦄"], "query must hold at least one letter or digit."),
        (["ask", "x" * 4001], "query must hold at most 4000 characters."),
        (["ask", "a", "--selected-text", "x" * 5001], "selected_text must hold at most 5000 characters."),
        (["search", "a", "--filter", "nope=1"], "A filter names no known field; known are type, url"),
        (["search", "a", "--filter", "chunk_index=one"], "The filter on chunk_index needs values of type int."),
        (["search", "a", "--filter", "type^x=one"], "A filter names no known field; known are type, url"),
        (["search", "a", "--filter", '{"type": {"$ne": "page"}}'], "A filter uses no known operator; known are $and,"),
        (
            ["search", "a", "--filter", '{"$or": [' * 50 + '{"type": "a"}' + "]}" * 50],
            "A filter may be nested at most 5 deep.",
        ),
        (["ask", "a", "--site", "other"], "The store holds nothing for that site and version, only"),
        (["ask", "a", "--embedder", "cohere"], "COHERE_API_KEY"),
    ],
)
def test_what_can_not_be_asked_is_one_sentence(indexed: Shell, arguments: list[str], sentence: str) -> None:
    assert sentence in indexed.refused(*arguments)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("{oops", "q.jsonl, line 2: this is not JSON."),
        ('{"id": "b", "question": ""}', "q.jsonl, line 2: query must hold at least one letter or digit."),
        ('{"id": "b", "question": "a", "history": 7}', "q.jsonl, line 2: conversation_history must be a list."),
    ],
)
def test_a_bad_row_is_named_by_its_line(indexed: Shell, row: str, sentence: str) -> None:
    (indexed.root / "q.jsonl").write_text(f'{{"id": "a", "question": "tea"}}\n{row}\n')
    assert indexed.refused("search", "--questions", "q.jsonl") == sentence


def test_a_locked_store(shell: Shell) -> None:
    shell.run("index", "site")
    shell.write("clean/index.html", "Cleaning", "<p>Lemon dissolves lime.</p>")
    with next(shell.root.rglob("publish.lock")).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "Another process is publishing" in shell.refused("index", "site")
        # What is published can still be read, and the busy file is told from the others.
        assert shell.json("ask", QUESTION)["status"] == "answered"
        states = {f["file_path"]: f["state"] for f in shell.json("status", "site")["files"]}
        assert states["clean/index.html"] == "Re-indexing"


def test_an_index_of_a_newer_release(shell: Shell) -> None:
    shell.run("index", "site")
    file = next(shell.root.rglob("head.json"))
    head = json.loads(file.read_text())
    head["head"]["format"] += 1
    file.write_text(json.dumps(head))
    for arguments in (["index", "site"], ["ask", "a"], ["search", "a"], ["status"]):
        assert "upgrade chapterverse" in shell.refused(*arguments)


def test_a_damaged_index(shell: Shell) -> None:
    shell.run("index", "site")
    next(shell.root.rglob("head.json")).write_text("{")
    for arguments in (["ask", "a"], ["search", "a"], ["status"]):
        assert "head.json" in shell.refused(*arguments)
    assert "was damaged, so all of it was built again" in shell.run("index", "site").stderr
    assert shell.run("ask", QUESTION).stdout


def test_a_ledger_of_garbage(shell: Shell) -> None:
    shell.run("index", "site")
    next(shell.root.rglob("ledger.sqlite")).write_bytes(b"garbage" * 1000)
    for arguments in (["index", "site"], ["status"]):
        assert "The ledger" in shell.refused(*arguments)
    assert shell.json("ask", QUESTION)["status"] == "answered"


def test_a_link_out_of_the_project_is_not_read(shell: Shell) -> None:
    (shell.root / "site/leak.html").symlink_to("/proc/self/environ")
    report = shell.json("index", "site")
    assert report["warnings"] == ["leak.html leads out of the project, so it is not read: put the file there."]
    assert (report["pages"]["new"], report["pages"]["skipped"]) == (3, 1)


def test_a_variable_says_what_a_flag_says(shell: Shell, tmp_path: Path) -> None:
    environment: dict[str, Any] = {
        "CHAPTERVERSE_STORE": f"edge:{tmp_path}/there",
        "CHAPTERVERSE_SITE": "pot",
        "CHAPTERVERSE_DOCS_VERSION": "7",
        "CHAPTERVERSE_LEDGER": f"sqlite:{tmp_path}/books",
    }
    report = shell.json("index", "site", **environment)
    assert (report["site"], report["version"]) == ("pot", "7")
    assert (tmp_path / "there").is_dir()
    assert (tmp_path / "books").is_file()
    flags = ("--store", f"edge:{tmp_path}/there", "--site", "pot", "--docs-version", "7")
    assert shell.json("status", "--ledger", f"sqlite:{tmp_path}/books", *flags) == shell.json("status", **environment)
    assert shell.json("search", QUESTION, **environment) == shell.json("search", QUESTION, *flags)
    # A flag outranks its variable.
    assert "only 'pot' version '7'" in shell.refused("status", "--site", "other", **environment)
    assert "CHAPTERVERSE_EMBEDDER is 'best'" in shell.refused("ask", "a", CHAPTERVERSE_EMBEDDER="best")
    assert "neither on nor off" in shell.refused("ask", "a", CHAPTERVERSE_PUBLISH="perhaps")
    moved = shell.json("search", QUESTION, **environment, CHAPTERVERSE_BASE_URL="http://localhost:1/")
    assert moved[0]["results"][0]["url"] == "http://localhost:1/brew/#green-tea"


def test_a_terminal_gets_a_bar_and_a_page(indexed: Shell, tmp_path: Path) -> None:
    shown = typed(indexed, "index", "site", "--store", f"edge:{tmp_path}/new")
    assert "Reading pages" in shown
    assert "Indexed 3 pages" in shown
    assert "Brewing › Green tea" in typed(indexed, "ask", QUESTION)


@contextmanager
def served(shell: Shell, *arguments: str, stop: signal.Signals = signal.SIGINT, **variables: str) -> Iterator[str]:
    """Run `serve` on a free port, yield its address, and end it as a user does."""
    process = subprocess.Popen(
        command("serve", "--port", "0", *arguments),
        cwd=shell.root, env=clean(variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        said = ""
        while not (found := re.search(r"Listening at (http://\S+)/ ", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        yield found[1]
        process.send_signal(stop)
        out, rest = process.communicate(timeout=60)
        assert process.returncode in (0, 130, -stop), rest
        assert out == ""
        assert "Traceback" not in rest
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_site_is_served_with_its_chat_and_cites_itself(indexed: Shell) -> None:
    with served(indexed, "--site-dir", "site") as address:
        page = get(f"{address}/brew/")
        assert 'id="green-tea"' in page.text
        answer = httpx.post(f"{address}/v1/chat", json={"query": QUESTION}, headers={"origin": address}, timeout=60)
        assert answer.json()["sources_cited"] == [f"{address}/brew/#green-tea"]
        selected = {"selected_text": "Vinegar", "page_url": f"{address}/clean/"}
        sources = httpx.post(f"{address}/v1/chat", json=selected, timeout=60).json()["source_chunks"]
        assert sources[0]["url"] == f"{address}/clean/#top"
        assert httpx.get(f"{address}/v1/status", timeout=60).json()["status"] == "ok"
        assert httpx.get(f"{address}/nope", timeout=60).status_code == 404


def test_a_served_site_may_ask_beside_the_origins_that_are_listed(indexed: Shell) -> None:
    listed = "https://docs.example.com"
    with served(indexed, "--site-dir", "site", CHAPTERVERSE_ALLOWED_ORIGINS=listed) as address:
        for origin, status in ((address, 200), (listed, 200), ("https://evil.example.com", 403)):
            answer = httpx.post(f"{address}/v1/chat", json={"query": QUESTION}, headers={"origin": origin}, timeout=60)
            assert answer.status_code == status


def test_without_a_site_its_published_address_is_cited(indexed: Shell) -> None:
    with served(indexed, stop=signal.SIGTERM) as address:
        assert get(f"{address}/v1/health").json() == {"status": "ok"}
        answer = httpx.post(f"{address}/v1/chat", json={"query": QUESTION}, timeout=60).json()
        assert answer["sources_cited"] == [f"{BASE}brew/#green-tea"]


def test_a_site_that_is_not_indexed_yet_is_served_and_found_once_it_is(shell: Shell) -> None:
    with served(shell, "--site-dir", "site") as address:
        assert get(f"{address}/").status_code == 200
        assert httpx.post(f"{address}/v1/chat", json={"query": QUESTION}, timeout=60).status_code == 503
        shell.run("index", "site")
        assert httpx.post(f"{address}/v1/chat", json={"query": QUESTION}, timeout=60).json()["status"] == "answered"


def test_a_mistake_is_one_sentence_in_a_process_too(indexed: Shell) -> None:
    done = subprocess.run(
        command("index", "nowhere"), cwd=indexed.root, env=clean(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: nowhere is not a folder.\n")


def test_a_busy_port(indexed: Shell) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        sentence = indexed.refused("serve", "--port", str(port))
    assert sentence.startswith(f"Port {port} on 127.0.0.1 can't be used")
    assert sentence.endswith("choose another with --port or --host.")


def test_a_pipe_that_closes_is_no_error(indexed: Shell) -> None:
    line = " ".join([f"'{part}'" for part in command("search", QUESTION, "--json")])
    done = subprocess.run(
        f"{line} | head -c 1", shell=True, cwd=indexed.root, env=clean(), capture_output=True, text=True, check=False
    )
    assert done.stdout == "["
    assert "Traceback" not in done.stderr
