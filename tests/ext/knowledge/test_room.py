"""The room is on where there are such documents, and costs nothing elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = "# Caching\n\n## Clearing the cache\n\n`quill cache clean` removes every entry of the cache.\n"
FILES = {
    "faq": ("docs/knowledge/faq/a.md", "# Who ships zeppelins?\n\nThe harbour office."),
    "memory": ("docs/knowledge/memory/a.md", "Clearing the cache takes an hour."),
    "persona": ("persona.md", "Be kind."),
}
INDEX = """
from chapterverse.cli import main
try:
    main(["index", "docs", "--source", "--base-url", "https://quill.example/", "--store", "edge:i", "-q"])
except SystemExit as end:
    assert not end.code, end.code
"""
ASK = """
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery
from chapterverse_api.service import Service
service = Service.open(Settings(store="edge:i", reading_model="none"))
create_app(service)
for question in ("How do I clear the cache?", "Who ships zeppelins?"):
    *_, answer = service.chat(ChatQuery(query=question))
"""


def loaded(root: Path, program: str) -> set[str]:
    """Return the modules of the room that a program loads, without the packages themselves."""
    program += "\nimport json, sys\nprint(json.dumps([n for n in sys.modules if '.ext.knowledge' in n]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True)
    names = json.loads(done.stdout.splitlines()[-1])
    return {name.rpartition(".ext.knowledge")[2].lstrip(".") for name in names} - {""}


def write(root: Path, *kinds: str) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "caching.md").write_text(PAGE, encoding="utf-8")
    for path, text in map(FILES.__getitem__, kinds):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def test_a_site_without_documents_loads_nothing_of_it(tmp_path: Path) -> None:
    write(tmp_path)
    assert loaded(tmp_path, INDEX) == set()
    assert loaded(tmp_path, ASK) == set()


@pytest.mark.parametrize(
    ("kind", "modules"),
    [("faq", {"faq", "entries"}), ("memory", {"memories"}), ("persona", {"entries"})],
)
def test_a_service_loads_what_its_index_has_documents_for(tmp_path: Path, kind: str, modules: set[str]) -> None:
    write(tmp_path, kind)
    assert loaded(tmp_path, INDEX) >= {"folder"}
    assert loaded(tmp_path, ASK) == modules
