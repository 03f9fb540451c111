"""The widget's size, and what its files must not contain."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import Page, Request

from chapterverse.site.starters import BUILD_OPTION
from chapterverse.widget import bundle
from chapterverse.widget.bundle import shorten_names
from widget.pages import QUOTED, page
from widget.standin import Site, checked

FOLDER = Path(bundle.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.js"))
LANGUAGES = sorted(path.stem for path in FOLDER.glob("lang/*.js"))

#: Bytes of the launcher with its configuration, and of all up to a first answer.
CLOSED, ANSWERED = 2560, 14_336

#: Loaded after the first answer, and when a reader does what they are for.
LATER = {
    "failure.js", "handoff.js", "highlight.js", "history.js", "links.js", "menu.js", "origin.js", "page.js", "room.js",
    "selection.js", "turns.js", "work.js",
}  # fmt: skip


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
    return bundle.assets({"endpoint": "https://api.docs.example.com", **BUILD_OPTION}, "en")


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
    # The panel is there before anything else is asked for.
    own = {"highlight.js", "origin.js", "page.js", "panel.js", "work.js", "config.js"}
    for name, needed in chains.items():
        assert needed == (
            {"config.js"} if name == "launcher.js" else set() if "/" in name or name in own else {"panel.js"}
        )


@pytest.mark.browser
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_browser_loads_little_up_to_a_first_answer(
    browse: Callable[..., Page], site: Site, standin_page: Callable[[str], None], language: str
) -> None:
    standin_page(page().html.replace('lang="en"', f'lang="{language}"'))
    wait = Event()
    site.replies.append(checked(QUOTED, *[None] * len(QUOTED["segments"]), wait))
    site.config = {"endpoint": "", "title": bundle.titles()[language]}
    tab = browse("/tagged.html")
    loaded: list[Request] = []
    tab.on("requestfinished", lambda request: loaded.append(request))
    tab.reload()
    tab.locator(".launcher").click()
    tab.locator("textarea").fill("How do I lock?")
    tab.keyboard.press("Enter")
    tab.get_by_text("Takes the newest version").wait_for()
    tab.wait_for_timeout(300)
    assert files(loaded) == ["config.js", f"lang/{language}.js", "launcher.js", "panel.js"]
    sizes = [request.sizes()["responseBodySize"] for request in loaded if "/widget/" in request.url]
    assert sum(sizes) <= ANSWERED
    assert sum(sizes) >= ANSWERED * 0.9, "nothing was counted"
    wait.set()
    tab.locator(".copy_answer").wait_for()
    after = ["config.js", "highlight.js", f"lang/{language}.js", f"lang/more/{language}.js", "launcher.js", "panel.js"]
    tab.wait_for_timeout(300)
    assert files(loaded) == sorted([*after, "room.js", "turns.js"])


def files(requests: list[Request]) -> list[str]:
    return sorted(request.url.partition("/widget/")[2] for request in requests if "/widget/" in request.url)


def test_every_minified_name_is_declared_once_where_it_is_used(
    node: Path, served: Mapping[str, bytes], tmp_path: Path
) -> None:
    for name, content in served.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    compiler = FOLDER.parents[2] / "node_modules" / "typescript" / "bin" / "tsc"
    flags = ["--noEmit", "--allowJs", "--checkJs", "--target", "esnext", "--module", "esnext"]
    command: list[str | Path] = [
        node,
        compiler,
        *flags,
        "--moduleResolution",
        "bundler",
        "--lib",
        "esnext,dom,dom.iterable",
    ]
    out = subprocess.run([*command, *tmp_path.glob("*.js")], capture_output=True, text=True).stdout
    # Names that nobody declares or that are declared twice, and syntax; the types went with the comments.
    assert re.findall(r".*error TS(?:1\d{3}|2300|2304|2451|2552|18004):.*", out) == []


NAMES = {
    "const text = 1; use(text, other.text, { text: text });": "const e = 1; use(e, other.text, { text: e });",
    "const size = 1; call({ size });": "const size = 1; call({ size });",
    "export const text = 1; text + 1;": "export const text = 1; text + 1;",
    "const say = (words, more) => `${words} say ${more}`;": "const n = (t, e) => `${t} say ${e}`;",
    "const found = /found'[/]/.test('found') / 2; found / 3;": "const e = /found'[/]/.test('found') / 2; e / 3;",
    "const send = { async send() {} }; send.send();": "const send = { async send() {} }; send.send();",
    "const key = word => window.key[key(word)];": "const e = t => window.key[e(t)];",
}


@pytest.mark.parametrize("source", NAMES)
def test_only_names_of_variables_become_short(source: str) -> None:
    assert shorten_names(source) == NAMES[source]


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
