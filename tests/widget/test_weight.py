"""The widget's size, and what its files must not contain."""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from chapterverse.widget import bundle

FOLDER = Path(bundle.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.js"))
LANGUAGES = sorted(path.stem for path in FOLDER.glob("lang/*.js"))

#: Bytes of the launcher with its configuration, and of all up to a first answer.
CLOSED, ANSWERED = 2560, 14_336

#: Loaded when a reader does what they are for, and where an operator wants work of readers who are near a limit.
LATER = {"highlight.js", "menu.js", "page.js", "room.js", "turns.js", "work.js"}


def weight(files: Mapping[str, bytes]) -> int:
    return sum(len(gzip.compress(content, 9, mtime=0)) for content in files.values())


def imports(files: Mapping[str, bytes], name: str) -> set[str]:
    """Return the modules that loading one loads, itself included."""
    needed = {name}
    for found in re.findall(r"\bfrom ?'\./(.*?)'", files[name].decode()):
        needed |= imports(files, found)
    return needed


@pytest.fixture
def served() -> Mapping[str, bytes]:
    """The files as a site in one language gets them."""
    return bundle.assets({"endpoint": "https://api.docs.example.com"}, "en")


def test_a_page_pays_little_before_the_chat_is_used(served: Mapping[str, bytes]) -> None:
    needed = imports(served, "launcher.js")
    assert needed == {"launcher.js", "config.js"}
    assert weight({name: served[name] for name in needed}) <= CLOSED


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_up_to_a_first_answer_is_light(served: Mapping[str, bytes], language: str) -> None:
    needed = imports(served, "launcher.js") | imports(served, "panel.js")
    assert needed == {name for name in served if "/" not in name} - LATER
    assert weight({name: served[name] for name in needed | {f"lang/{language}.js"}}) <= ANSWERED


def test_no_file_imports_another_one_that_imports(served: Mapping[str, bytes]) -> None:
    chains = {name: imports(served, name) - {name} for name in served}
    assert {name for name, needed in chains.items() if needed} == {"launcher.js", "menu.js", "turns.js"}
    # The panel is there before what comes with an answer is asked for, and before the page's menu.
    assert chains["launcher.js"] == {"config.js"}
    assert chains["menu.js"] == chains["turns.js"] == {"panel.js"}


def test_the_docs_state_the_weight_of_every_file(served: Mapping[str, bytes]) -> None:
    page = (FOLDER.parents[2] / "site_example" / "docs" / "reference" / "widget.md").read_text("utf-8")
    stated = dict(re.findall(r"^\| `(\w+\.js)`.*\| ([\d,]+) \|$", page, re.MULTILINE))
    assert stated.keys() == {name for name in served if "/" not in name}
    for name, size in stated.items():
        assert abs(int(size.replace(",", "")) - weight({name: served[name]})) <= 50, name


def test_a_served_file_has_no_comments_and_is_a_tenth_lighter() -> None:
    sources = {str(path.relative_to(FOLDER).as_posix()): path.read_bytes() for path in SOURCES}
    assert set(bundle.files()) <= sources.keys()
    assert weight(bundle.files()) <= 0.9 * weight(sources)
    for content in bundle.files().values():
        assert not re.search(rb"/\*|^\s*//", content, re.MULTILINE)


def test_the_site_s_words_become_the_configuration() -> None:
    said = {"endpoint": "https://api.example.org", "title": 'Ask "us" </script>', "starters": [], "greeting": "Hej å"}
    module = bundle.assets(said)["config.js"].decode()
    assert json.loads(module.removeprefix("export default ").removesuffix(";\n")) == {
        "endpoint": "https://api.example.org",
        "title": 'Ask "us" </script>',
        "greeting": "Hej å",
    }


SINKS = (
    r"innerHTML|outerHTML|insertAdjacentHTML|DOMParser|setHTML|createContextualFragment|srcdoc|document\.write|\beval\b"
    r"|\bFunction\(|execCommand|localStorage|document\.cookie|indexedDB"
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_no_module_has_a_sink_for_html_or_a_lasting_store(source: Path) -> None:
    assert re.findall(SINKS, source.read_text()) == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_every_module_is_type_checked_and_names_no_other_host(source: Path) -> None:
    text = source.read_text()
    assert text.startswith("// @ts-check\n")
    # A reader may follow links to these; nothing is loaded from there.
    linked = {"https://chatgpt.com", "https://claude.ai"} if source.name == "menu.js" else set()
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"} | linked
