"""A site's options for its chat: validation, and their form in the browser."""

from __future__ import annotations

import json
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.readers.sections.html_page import read_document, read_fragment
from chapterverse.site.delivery import deliver
from chapterverse.widget import bundle
from chapterverse.widget.options import WidgetOptions, read_file, read_options, starters_element

#: One value for each option, which is not its default.
CHOSEN: dict[str, Any] = {
    "title": "Ask us",
    "greeting": "Hej å",
    "placeholder": "Your question",
    "starters": ["How do I rotate a key?", 'Is "a | b" <one>?'],
    "strings": {"send": "Ask", "you": "You: "},
    "layout": "side",
    "shortcut": False,
    "consent": "Questions go to a service.",
    "context": "Enterprise edition on Linux",
    "timeout": 5,
    "scope": False,
    "feedback": False,
    "menu": {"chatgpt": False, "claude": False},
    "contact": "mailto:help@example.com",
}

RULES = {
    "title": "must be a text of at most 100 characters.",
    "greeting": "must be a text of at most 1000 characters.",
    "starters": "must be a list of texts of 1 to 200 characters.",
    "strings": "must map keys to texts of 1 to 500 characters.",
    "layout": "must be floating or side.",
    "shortcut": "must be true or false.",
    "timeout": "must be a whole number of seconds from 5 to 300.",
    "menu": "must be true, false, or switches by the names copy, chatgpt, claude and mcp.",
    "contact": "must be a mail address, or an address that starts with https://, http:// or mailto:.",
}

HEADED = '<h1 id="t">Tea</h1><p>Hot water.</p><h2 id="g">Green</h2><p>Eighty degrees.</p>'
PAGE = f'<!doctype html><html lang="en"><head><title>Tea</title></head><body><main>{HEADED}</main></body></html>'


def imported(node: Path, *modules: Path) -> list[Any]:
    """Return the default exports of modules as JavaScript itself sees them."""
    program = "for (const name of process.argv.slice(1)) console.log(JSON.stringify((await import(name)).default))"
    command: list[str | Path] = [node, "--input-type=module", "--eval", program, *(m.as_uri() for m in modules)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def delivered(tmp_path: Path) -> Path:
    """The modules as browsers get them, in a folder that Node takes for modules, too."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    deliver(tmp_path / "widget", bundle.files())
    return tmp_path / "widget"


def test_every_option_is_tried_here() -> None:
    assert CHOSEN.keys() == WidgetOptions.model_fields.keys()


def test_what_is_chosen_is_written_and_what_is_not_is_left_to_the_widget() -> None:
    assert read_options(CHOSEN).config() == CHOSEN
    assert read_options({}).config() == {}
    defaults = WidgetOptions().model_dump()
    assert read_options(defaults).config() == {}
    assert read_options(dict.fromkeys(CHOSEN)) == WidgetOptions()


def test_white_space_around_a_text_is_none_of_it() -> None:
    given = {"title": " Ask\n", "starters": ["\tTea? "], "greeting": " "}
    assert read_options(given).config() == {"title": "Ask", "starters": ["Tea?"]}


def test_a_bare_mail_address_becomes_a_link() -> None:
    assert read_options({"contact": "help@example.com"}).config() == {"contact": "mailto:help@example.com"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("title", value) for value in (7, True, ["a"], "x" * 101, "\ud800")),
        *(("greeting", value) for value in (7, "x" * 1001)),
        *(("starters", value) for value in ("Tea?", {"a": 1}, [7], [None], [""], [" "], ["x" * 201], [{"Note": "a"}])),
        *(("strings", value) for value in ("send", ["send"], {"send": 7}, {"send": ""}, {"send": "x" * 501})),
        *(("layout", value) for value in ("left", "", True, ["side"])),
        *(("shortcut", value) for value in ("no", 1, "")),
        *(("menu", value) for value in ("no", 1, ["copy"], {"copy": 1}, {"gemini": True})),
        *(
            ("contact", value)
            for value in (7, "help@", "help@example.com?a", "javascript:alert(1)", "mailto:", "https://a b", "x" * 3000)
        ),
        *(("timeout", value) for value in (4, 301, 60.5, "60", True, float("nan"), 10**30)),
    ],
)
def test_a_value_that_can_not_be_is_one_sentence(option: str, value: object) -> None:
    with pytest.raises(ConfigurationError) as told:
        read_options({option: value}, "widget.")
    assert str(told.value) == f"widget.{option} {RULES[option]}"


@pytest.mark.parametrize("name", ["titel", "endpoint", "version", 7, "a\x1b[31m\nb", "x" * 5000])
def test_an_unknown_option_is_told_with_those_there_are(name: object) -> None:
    with pytest.raises(ConfigurationError) as told:
        read_options({name: "x"}, "widget.")
    sentence = str(told.value)
    assert sentence.startswith(f"There is no option {f'widget.{name}'[:60]!a}: use title, greeting, ")
    assert sentence.endswith(", feedback or contact.")
    assert sentence.isprintable()


@pytest.mark.parametrize(
    ("key", "shown", "nearest"),
    [("sned", "'sned'", "send"), ("offr", "'offr'", "offer"), (404, "'404'", "403"), ("a\nb", r"'a\nb'", None)],
)
def test_an_unknown_string_is_told_with_the_nearest(key: object, shown: str, nearest: str | None) -> None:
    with pytest.raises(ConfigurationError) as told:
        read_options({"strings": {"send": "Ask", key: "x"}}, "widget.")
    start, _, named = str(told.value).rstrip(".").rpartition(" ")
    assert start == f"There is no string {shown} for widget.strings: the nearest is"
    assert named in bundle.strings()
    assert named == nearest or nearest is None


def test_a_string_may_be_named_by_a_number_as_yaml_reads_it() -> None:
    assert read_options({"strings": {403: "Not here."}}).config() == {"strings": {"403": "Not here."}}


def test_the_title_among_the_strings_is_the_title_as_well() -> None:
    assert bundle.strings()["title"] == "Ask the docs"
    given: dict[str, Any] = {"strings": {"title": "Fråga", "send": "Skicka"}}
    assert read_options(given).config() == {"title": "Fråga", "strings": {"send": "Skicka"}}
    assert read_options({**given, "title": "Fråga oss"}).config()["title"] == "Fråga oss"


def test_strings_are_read_as_javascript_reads_them(node: Path, delivered: Path) -> None:
    first, more = imported(node, delivered / "lang/en.js", delivered / "lang/more/en.js")
    own = bundle.strings()["unloaded"]
    assert {**first, **more, "unloaded": own} == bundle.strings()
    assert own in (delivered / "launcher.js").read_text("utf-8")
    assert not first.keys() & more.keys()
    languages = [path for path in map(Path, bundle.names()) if path.parent == Path("lang")]
    words = imported(node, *(delivered / path for path in languages))
    assert {p.stem: w["title"] for p, w in zip(languages, words, strict=True)} == bundle.titles()


def test_every_language_says_all_that_english_says(node: Path, delivered: Path) -> None:
    for folder in ("lang", "lang/more"):
        spoken = sorted((delivered / folder).glob("*.js"))
        keys = {path.stem: words.keys() for path, words in zip(spoken, imported(node, *spoken), strict=True)}
        assert keys.keys() == bundle.titles().keys()
        assert [language for language, own in keys.items() if own != keys["en"]] == []


def test_the_shipped_configuration_asks_whom_it_came_from_in_every_language(node: Path, delivered: Path) -> None:
    (config,) = imported(node, delivered / "config.js")
    assert config == {"endpoint": f"{delivered.parent.as_uri()}/", "title": "", "titles": bundle.titles()}


def test_a_configuration_is_what_differs_and_a_title_in_each_language_for_none(node: Path, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    given = [
        {"endpoint": "", "version": None, **read_options({}).config()},
        {"endpoint": "https://api.example", "version": "2.0", **read_options(CHOSEN).config()},
    ]
    for number, options in enumerate(given):
        (tmp_path / f"{number}.js").write_bytes(bundle.assets(options)["config.js"])
    none, every = imported(node, tmp_path / "0.js", tmp_path / "1.js")
    assert none == {"endpoint": "", "titles": bundle.titles()}
    assert every == given[1]


def test_files_lie_in_folders_and_are_named_alike_on_every_system() -> None:
    package = Path(bundle.__file__).parent
    parts = {
        *("session.js", "client.js", "render.js", "answer.js", "styles.js"),
        *("passages.js", "transcript.js", "head.js"),
    }
    sources = {path.relative_to(package).as_posix() for path in package.rglob("*.js")}
    assert set(bundle.names()) == sources - parts
    assert parts < sources
    assert {"launcher.js", "lang/en.js", "lang/more/en.js"} <= set(bundle.names())
    assert bundle.files().keys() == bundle.assets({}).keys() == set(bundle.names())


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("chat.yml", b"title: Ask\nstrings: {403: Nej}\n", {"title": "Ask", "strings": {403: "Nej"}}),
        ("chat.json", b'\xef\xbb\xbf{\n\t"title": "Ask"\n}', {"title": "Ask"}),
        ("chat", b'{"title": "Ask"}', {"title": "Ask"}),
        ("chat.yml", b"# nothing yet\n", {}),
    ],
)
def test_a_file_of_options_is_yaml_or_json(tmp_path: Path, name: str, content: bytes, found: dict[Any, Any]) -> None:
    (tmp_path / name).write_bytes(content)
    assert read_file(tmp_path / name) == found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yml", b"- title"),
        ("a.yml", b"title: [\n"),
        ("a.yml", b"Ask us"),
        ("a.yml", b"\xff\xfe"),
        ("a.yml", b"a: !!python/object/apply:os.getcwd []"),
        ("a.yml", b"[" * 5000),
        ("a.json", b""),
        ("a.json", b"[" * 100_000),
    ],
)
def test_a_file_of_something_else_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError) as told:
        read_file(tmp_path / name)
    assert str(told.value) == f"{name} must hold options as YAML or JSON, such as `title: Ask us`."


class Elements(HTMLParser):
    """The elements of a page, as a browser's parser names them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_element_of_a_page_holds_its_starters_and_no_text() -> None:
    questions = ['Is "a" <b>?', "</div><script>alert(1)</script>", "it's &amp; \\ å 日本", "' onload='x"]
    page = Elements(starters_element(questions, "chapterverse."))
    ((tag, attributes),) = page.found
    assert (tag, page.text) == ("div", "")
    assert attributes.keys() == {"hidden", "data-chapterverse-starters"}
    assert json.loads(attributes["data-chapterverse-starters"] or "") == questions


@pytest.mark.parametrize("place", ["</main>", "<h2", "<p>Eighty"])
def test_no_reader_of_ours_sees_the_element(place: str) -> None:
    element = starters_element(["What about lacquered hippopotamuses?"], "")
    with_one = PAGE.replace(place, element + place)
    assert element in with_one
    assert read_document(with_one).sections == read_document(PAGE).sections
    assert read_fragment(HEADED + element, "Tea") == read_fragment(HEADED, "Tea")


def test_starters_that_are_none_are_told_where_they_stand() -> None:
    with pytest.raises(ConfigurationError) as told:
        starters_element("How?", "chapterverse.")
    assert str(told.value) == f"chapterverse.starters {RULES['starters']}"
