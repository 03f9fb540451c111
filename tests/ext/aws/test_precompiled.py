"""Precompiled code at a cold start, recorded by this Python from the checkout."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse_api.ext.aws import cold_start
from test_architecture import ROOT

PRECOMPILE = ROOT / "scripts" / "precompile.py"

#: Imports what a first question needs, with a file at hand, and counts what is compiled all the same.
START = """
import json, re, sys
from pathlib import Path
from chapterverse_api.ext.aws import cold_start
patterns, methods, parse = [], [], re._parser.parse
re._parser.parse = lambda text, *flags: patterns.append(text) or parse(text, *flags)
is_method = lambda source: isinstance(source, bytes) and source.startswith(b"def __create_fn__")
sys.addaudithook(lambda event, given: methods.append(event) if event == "compile" and is_method(given[0]) else None)
cold_start.install(Path(sys.argv[1]))
import chapterverse_api.handler, chapterverse_api.service
import chapterverse.ext.s3.store, chapterverse.ext.qdrant.store, chapterverse.store.shard
from chapterverse.model import Scope
from chapterverse_api.conversation.detection import detect_follow_up
from chapterverse_api.search.question import find_definitions, read_frame, lower_kinds
one, same, other = Scope("a", "b"), Scope("a", "b"), Scope("a", "c")
question = [repr(read_frame("What is a leaf bundle?", ("en", "de"))), sorted(lower_kinds("What is new?", ("fr",)))]
definitions = list(find_definitions("A _leaf bundle_ is a directory.", "en"))
print(json.dumps({
    "patterns": len(patterns),
    "methods": len(methods),
    "means": [
        [detect_follow_up(text, ("en", "de")) for text in ("And on Windows?", "Where does Quill keep its files?")],
        [question, definitions],
        [repr(one), one == same, hash(one) == hash(same), one == other, one < other],
    ],
}))
"""
#: Answers a first question from a store, with a file at hand, and prints what it compiles all the same.
ANSWER = """
import json, re, sys
from pathlib import Path
from chapterverse_api.ext.aws import cold_start
patterns, parse = [], re._parser.parse
re._parser.parse = lambda text, *flags: patterns.append(str(text)) or parse(text, *flags)
cold_start.install(Path(sys.argv[1]))
from chapterverse.settings import Settings
from chapterverse_api.contract import ChatQuery
from chapterverse_api.service import Service
*_, response = Service.open(Settings(store=sys.argv[2], site="quill")).chat(ChatQuery(query=sys.argv[3]))
assert response.status == "answered", response
print(json.dumps(patterns))
"""
#: At least as many are compiled where nothing was recorded.
PATTERNS, METHODS = 150, 90


def run(*command: str | Path, seed: str) -> str:
    """Return a process's output; its hash seed changes the order of sets."""
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("-c", START, file, seed="2"))
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    run(PRECOMPILE, folder, folder / "precompiled.bin", seed="1")
    return folder / "precompiled.bin"


def test_a_start_compiles_nothing_of_what_was_recorded_and_means_the_same(recorded: Path, tmp_path: Path) -> None:
    anew, taken = start(tmp_path / "missing"), start(recorded)
    assert anew["patterns"] > PATTERNS
    assert anew["methods"] > METHODS
    assert (taken["patterns"], taken["methods"]) == (0, 0)
    assert taken["means"] == anew["means"]


@pytest.mark.slow
def test_a_first_answer_compiles_next_to_nothing(recorded: Path, tmp_path: Path) -> None:
    store = quill.publish(tmp_path).store
    question = "How do I clear the cache?"
    patterns = json.loads(run("-c", ANSWER, recorded, store, question, seed="2"))
    # Literals inside functions, which importing the modules compiles none of.
    assert len(patterns) < 10
    assert all(len(pattern) < 50 for pattern in patterns)


def test_what_another_python_recorded_is_left(recorded: Path, tmp_path: Path) -> None:
    magic, *known = marshal.loads(recorded.read_bytes())
    assert magic == cold_start.MAGIC
    (tmp_path / "other").write_bytes(marshal.dumps(((b"\0\0\r\n", magic[1]), *known)))
    assert start(tmp_path / "other")["patterns"] > PATTERNS


@pytest.mark.parametrize("content", [b"", b"nonsense", marshal.dumps(("one", "two")), marshal.dumps(7)])
def test_a_file_that_is_none_is_left(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(content)
    assert start(tmp_path / "odd")["patterns"] > PATTERNS
