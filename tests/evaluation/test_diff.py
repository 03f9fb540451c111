"""`chapterverse eval --diff`: what a change of the docs does to answers, against each kind of base."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chapterverse.model import Chunk
from chapterverse_api.ext.evaluation.diff.sections import IndexedSite, RemainingText
from cli.shell import QUESTION, Shell, clean, command

LIME = "What dissolves lime?"
HOSTILE = "What dissolves lime, @everyone?</pre></table><script>lime</script>\n\n# Lime"
INDEX = f'"{sys.executable}" -c "from chapterverse.cli import main; main()" index site'


@pytest.fixture
def tea(tmp_path: Path) -> Shell:
    """A site that is indexed and exported, with two questions."""
    shell = Shell.with_index(tmp_path)
    shell.run("export", "before.jsonl")
    rows = [{"id": "green", "question": QUESTION}, {"id": "lime", "question": LIME}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return shell


def edit(shell: Shell, page: str, old: str, new: str) -> None:
    file = shell.root / "site" / page
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    shell.run("index", "site")


def test_an_answer_whose_sentence_is_gone_is_lost(tea: Shell) -> None:
    edit(tea, "brew/index.html", "Eighty degrees are enough for green tea.", "Ask your teacher.")
    diff = ("eval", "q.jsonl", "--diff", "before.jsonl")
    document = tea.json(*diff)
    assert document["counts"] == {"questions": 2, "lost": 1, "appeared": 0, "changed": 0, "same": 1}
    (change,) = document["changes"]
    assert (change["id"], change["before"]["state"]) == ("green", "answered")
    assert "Eighty degrees" in change["before"]["text"]
    assert change["section"].endswith("brew/#green-tea")
    result = tea.run(*diff, "--max-lost", "0", "--markdown", "comment.md", code=3)
    assert "Lost answers: 1, more than --max-lost 0." in result.stderr
    assert "Brewing › Green tea (changed)" in result.stdout
    comment = (tea.root / "comment.md").read_text("utf-8")
    assert "<td valign=top><pre>Eighty degrees are enough for green tea.</pre>" in comment
    tea.run(*diff, "--max-lost", "1")


def test_an_answer_that_the_change_brings_is_new(tea: Shell) -> None:
    tea.write("cup/index.html", "Cups", "<p>A cup holds two hundred millilitres of tea.</p>")
    tea.run("index", "site")
    (tea.root / "cup.jsonl").write_text('{"id": "cup", "question": "How much tea does a cup hold?"}', "utf-8")
    document = tea.json("eval", "cup.jsonl", "--diff", "before.jsonl")
    assert [c["outcome"] for c in document["changes"]] == ["appeared"]
    assert document["sections"][0]["change"] == "added"


def test_what_is_only_moved_or_mistyped_is_not_lost(tea: Shell) -> None:
    edit(tea, "brew/index.html", "Eighty degrees are enough", "Eighty degrees are enuogh")
    (tea.root / "site/clean/index.html").unlink()
    tea.write("kettle/index.html", "Kettle", '<p>Vinegar <a href="https://example.com/">dissolves</a> lime.</p>')
    tea.run("index", "site")
    counts = tea.json("eval", "q.jsonl", "--diff", "before.jsonl")["counts"]
    assert (counts["lost"], counts["questions"]) == (0, 2)


def test_nothing_is_asked_where_nothing_changed(tea: Shell) -> None:
    assert tea.run("eval", "q.jsonl", "--diff", "before.jsonl", "--max-lost", "0").stdout.startswith(
        "0 questions over 0"
    )


def test_without_questions_the_headings_of_touched_sections_are_asked(tea: Shell) -> None:
    edit(tea, "brew/index.html", '<h2 id="green-tea">Green tea</h2><p>Eighty degrees are enough for green tea.</p>', "")
    document = tea.json("eval", "--diff", "before.jsonl")
    assert [(c["question"], c["outcome"]) for c in document["changes"]] == [("Brewing: Green tea", "lost")]


def test_a_base_may_be_a_store(tea: Shell) -> None:
    tea.run("import", "before.jsonl", "--store", "edge:base")
    edit(tea, "clean/index.html", "Vinegar dissolves lime.", "Buy a new kettle.")
    assert tea.json("eval", "q.jsonl", "--diff", "edge:base")["counts"]["lost"] == 1


def git(shell: Shell, *arguments: str) -> str:
    own = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    done = subprocess.run(["git", *own, *arguments], cwd=shell.root, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_base_may_be_a_commit_that_is_built_apart(committed: Shell) -> None:
    tea = committed
    edit(tea, "clean/index.html", "Vinegar dissolves lime.", "Buy a new kettle.")
    document = tea.json("eval", "q.jsonl", "--diff", "HEAD", "--build", INDEX)
    assert [(c["id"], c["outcome"]) for c in document["changes"]] == [("lime", "lost")]
    assert git(tea, "worktree", "list").count("\n") == 1
    assert git(tea, "status", "--short") == " M site/clean/index.html\n"
    said = tea.refused("eval", "q.jsonl", "--diff", "HEAD")
    assert said == "Nothing says how HEAD is built: pass --build COMMAND."
    assert tea.refused("eval", "--diff", "HEAD", "--build", "true").startswith("`true` left no index of HEAD: ")
    assert tea.refused("eval", "--diff", "HEAD", "--build", "exit 5") == "`exit 5` ended with 5 on HEAD: see above."


@pytest.fixture
def committed(tea: Shell) -> Shell:
    (tea.root / ".gitignore").write_text("temporary\n", "utf-8")
    git(tea, "init", "--quiet")
    git(tea, "add", ".")
    git(tea, "commit", "--quiet", "-m", "before")
    return tea


def test_the_build_of_a_base_inherits_nothing_that_is_charged(committed: Shell) -> None:
    git(committed, "branch", "site")
    # The index to compare has no vectors, so the base gets none, whatever its own files say.
    build = 'test "$CHAPTERVERSE_ENRICHER $CHAPTERVERSE_REPORT $CHAPTERVERSE_EMBEDDER" = "none false none"'
    own: dict[str, Any] = {
        "CHAPTERVERSE_REPORT": "true",
        "CHAPTERVERSE_ENRICHER": "cohere:command",
        "COHERE_API_KEY": "k",
    }
    own["CHAPTERVERSE_RERANKER"] = "cohere"
    said = committed.refused("eval", "--diff", "site", "--build", build, **own)
    assert said.startswith(f"`{build}` left no index of site: ")
    (committed.root / "chapterverse.toml").write_text("embedder = 'cohere'\n", "utf-8")
    git(committed, "add", ".")
    git(committed, "commit", "--quiet", "-m", "vectors")
    (committed.root / "chapterverse.toml").unlink()
    document = committed.json("eval", "q.jsonl", "--diff", "HEAD", "--build", INDEX, **own)
    assert document["counts"]["lost"] == 0


def test_what_git_or_the_project_lacks_is_said(committed: Shell) -> None:
    (committed.root / "conf.py").write_text("", "utf-8")
    git(committed, "add", ".")
    git(committed, "commit", "--quiet", "-m", "Sphinx")
    assert committed.refused("eval", "--diff", "HEAD").startswith("Nothing says how HEAD is built")
    new = Shell(committed.root / "new")
    new.root.mkdir()
    store = f"edge:{committed.root / '.cache/plugin/chapterverse'}"
    said = new.refused("eval", "--diff", "HEAD", "--build", "true", "--store", store)
    assert said == "HEAD has no folder like this one: run this where both have their docs."
    (committed.root / ".git/hooks/post-checkout").write_text("#!/bin/sh\nexit 1\n")
    (committed.root / ".git/hooks/post-checkout").chmod(0o755)
    assert committed.refused("eval", "--diff", "HEAD", "--build", "true").startswith("Git can't check out ")
    assert git(committed, "worktree", "list").count("\n") == 1


def test_nothing_is_left_by_a_signal(committed: Shell) -> None:
    place = committed.root / "temporary"
    place.mkdir()
    build = f'echo $$ > "{place / "pid"}"; sleep 600; true'
    arguments = command("eval", "--diff", "HEAD", "--build", build)
    with subprocess.Popen(arguments, cwd=committed.root, env=clean({"TMPDIR": str(place)})) as process:
        while not (place / "pid").exists() or not (child := (place / "pid").read_text("utf-8")):
            assert process.poll() is None
            time.sleep(0.1)
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(child), 0)
    assert [file.name for file in place.iterdir()] == ["pid"]
    assert git(committed, "worktree", "list").count("\n") == 1


def test_mistakes_get_one_sentence(tea: Shell, tmp_path: Path) -> None:
    assert (
        tea.refused("eval", "--diff", "nothing") == "nothing is no store, no file and no commit here: name one that is."
    )
    assert tea.refused("eval", "--diff", "site") == "site is a folder: an embedded index is named edge:site."
    assert "holds no index" in tea.refused("eval", "--diff", "edge:none")
    coffee = ("--store", "edge:coffee")
    tea.run("index", "site", "--site", "coffee", *coffee)
    tea.run("export", "coffee.jsonl", *coffee)
    for base in ("coffee.jsonl", "edge:coffee"):
        assert tea.refused("eval", "--diff", base).startswith(f"{base} holds only one of coffee, so there is nothing")
    (tea.root / "broken.jsonl").write_text("not ours", "utf-8")
    assert "broken.jsonl, line 1" in tea.refused("eval", "--diff", "broken.jsonl")
    assert "measures nothing: leave out --min" in tea.refused("eval", "--diff", "x", "--min", "mrr=1", code=2)
    assert "belong to --diff" in tea.refused("eval", "q.jsonl", "--max-lost", "0", code=2)
    assert "Name a file of QUESTIONS" in tea.refused("eval", code=2)


def test_texts_of_the_docs_do_nothing_in_a_comment(tea: Shell) -> None:
    tea.write("clean/index.html", "![x](https://evil.example/p.png) **b**", "<p>Vinegar dissolves lime.</p>")
    tea.run("index", "site")
    tea.run("export", "before.jsonl")
    edit(
        tea,
        "clean/index.html",
        "Vinegar dissolves lime.",
        "Vinegar dissolves lime: ask @everyone &lt;script&gt;x&lt;/script&gt;.",
    )
    row = {"id": "x", "question": HOSTILE}
    (tea.root / "hostile.jsonl").write_text(json.dumps(row), "utf-8")
    tea.run("eval", "hostile.jsonl", "--diff", "before.jsonl", "--markdown", "comment.md")
    comment = (tea.root / "comment.md").read_text("utf-8")
    assert "<script" not in comment
    assert "\n# Lime" not in comment
    assert "<h4><code>![x](https://evil.example/p.png) **b** (changed)</code></h4>" in comment.split("\n")
    assert "@everyone" not in comment.replace("<pre>", "\0").partition("\0")[0]


@pytest.mark.parametrize(
    ("quote", "now", "question", "stands"),
    [
        (
            "Set `timeout` to wait longer for a connection.",
            "Set `timeout` to wait longer for conections.",
            "wait",
            True,
        ),
        (
            "Set `timeout` to wait longer for a connection.",
            "Set `delay` to wait longer for a connection.",
            "wait",
            False,
        ),
        ("The pool limit says how long to wait.", "The queue limit says how long to wait.", "pool limit", False),
        ("The pool limit says how long to wait.", "The pol limit says how long to wait.", "pool limit", True),
        ("The player starts after that time.", "The player stops after that time.", "when does it play", False),
        ("- Timeout: 30", "- Timeout: 300", "timeout", False),
        ("The port is 80", "The port is 8080", "port", False),
        ("It needs 1.2", "It needs 1.25 or later.", "needs", False),
        ("Call `foo`", "Call `foobar`", "call", False),
        ("The port is 80", "The port is 80 by default.", "port", True),
        ("超时为三十秒", "超时为三十秒钟以上。", "超时", True),
    ],
)
def test_names_and_the_words_asked_for_must_stay(quote: str, now: str, question: str, stands: bool) -> None:
    place: Any = {"chapter_title": "T", "section_heading": None, "heading_path": ("T",), "source_file_path": "t.md"}
    text = "The player stops after that time."
    before = IndexedSite(
        (Chunk("1", "1", text, chunk_index=0, url="", anchor_verified=False, source_domain="", **place),)
    )
    assert RemainingText(before, IndexedSite(())).says(quote, [now], question) is stands
