"""The interface's languages: complete translations of the English one, and the choice of the page's language."""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from chapterverse.widget import bundle
from widget.pages import PAGES
from widget.standin import Site, refused

Browse = Callable[..., Page]

WIDGET = Path(bundle.__file__).parent
PARTS = ("lang/", "lang/more/")

#: The languages beside English, each as a page may name it: with a region or a script, in any case, and with the
#: underscore that MkDocs' own themes write.
LANGUAGES = {
    "ar": "ar",
    "de": "de-AT",
    "es": "es-419",
    "fr": "fr-CA",
    "it": "IT",
    "ja": "ja",
    "nl": "nl-BE",
    "pl": "pl-PL",
    "pt": "pt_BR",
    "zh": "zh-Hans",
}

#: A module as each must look: one comment line at most, then nothing but keys with a text in single quotes.
MODULE = re.compile(r"// @ts-check\n(?:/\*\* .* \*/\n)?export default \{\n((?:  \w+: '[^'\\\n]*',\n)+)\};\n")
ENTRY = re.compile(r"  (\w+): '(.*)',\n")

#: Texts that are the same in English because the other language has the same word for it.
SAME = {"fr": {"sources"}}

#: Full stops, question marks and colons of all scripts by their English sign.
SIGNS = {"。": ".", "？": "?", "؟": "?", "：": ":"}


def texts(part: str, language: str) -> dict[str, str]:
    """Return the texts of one module by key, in order."""
    module = MODULE.fullmatch((WIDGET / part / f"{language}.js").read_text("utf-8"))
    assert module, f"{part}{language}.js has another form"
    entries = ENTRY.findall(module[1])
    assert len(dict(entries)) == len(entries)
    return dict(entries)


def said(language: str) -> dict[str, str]:
    return {key: text for part in PARTS for key, text in texts(part, language).items()}


def sign(text: str) -> str:
    """Return the punctuation mark that ends a text, as English has it; "" for none."""
    last = text.strip()[-1]
    return SIGNS.get(last, last) if unicodedata.category(last) == "Po" else ""


def test_the_page_s_language_is_looked_for_among_those_that_exist() -> None:
    pattern = re.search(r"/\^\(([a-z|]+)\)", (WIDGET / "launcher.js").read_text("utf-8"))
    assert pattern
    assert pattern[1].split("|") == list(LANGUAGES)
    for part in PARTS:
        assert sorted(path.stem for path in (WIDGET / part).glob("*.js")) == sorted({*LANGUAGES, "en"})


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_says_what_english_says_in_the_same_order(language: str, part: str) -> None:
    assert list(texts(part, language)) == list(texts(part, "en"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_has_the_blanks_and_the_last_sign_of_the_english_one(language: str) -> None:
    own = said(language)
    for key, text in said("en").items():
        assert re.findall(r"\{\w*\}?", own[key]) == re.findall(r"\{\w*\}?", text), key
        assert sign(own[key]) == sign(text), key
        # A question follows; a full-width colon brings its own space.
        assert own[key].endswith((" ", "：")) == text.endswith(" "), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_left_in_english(language: str) -> None:
    own, english = said(language), said("en")
    assert {key for key in own if own[key] == english[key]} == SAME.get(language, set())
    words = set(re.findall(r"\w+", " ".join(own.values()).lower()))
    assert words & {"the", "this", "these", "your", "you", "ask"} == set()


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_texts_are_plain(language: str) -> None:
    for key, text in said(language).items():
        assert text.strip(), key
        # The letter C stands for controls: those that reorder, join or hide their neighbors too.
        assert [char for char in text if unicodedata.category(char)[0] == "C"] == [], key
        assert unicodedata.is_normalized("NFC", text), key
        assert not re.search(r"[<>&\"'`]|\.\.\.|  ", text), key
        assert text == text.lstrip(), key


def test_french_puts_a_space_that_does_not_break_before_high_signs() -> None:
    for text in said("fr").values():
        assert re.findall(r"(?<!\u00a0):|(?<!\u202f)[;?!]", text) == []


def test_spanish_opens_its_questions() -> None:
    assert all(text.count("¿") == text.count("?") for text in said("es").values())


@pytest.mark.parametrize("language", ["ar", "ja", "zh"])
def test_other_scripts_use_their_own_signs(language: str) -> None:
    foreign = "?,;" if language == "ar" else "?,;.:!"
    assert [text for text in said(language).values() if set(text) & set(foreign)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_is_light(language: str) -> None:
    assert len(gzip.compress(bundle.files()[f"lang/{language}.js"], 9, mtime=0)) <= 800


@pytest.fixture
def speak(browse: Browse, site: Site, tmp_path: Path) -> Callable[..., Page]:
    """Open a page whose `<html>` has these attributes on the smallest phone; its site has named no title."""
    site.config = {"endpoint": ""}
    site.folder = tmp_path
    (tmp_path / "page.css").write_text(PAGES["/page.css"].html)

    def open_page(attributes: str, **options: object) -> Page:
        site.config |= options
        (tmp_path / "index.html").write_text(PAGES["/"].html.replace(' lang="en"', attributes))
        return browse("/index.html", viewport={"width": 320, "height": 640})

    return open_page


def put(page: Page, own: dict[str, str]) -> Locator:
    """Open the chat, ask in it, and return the turn that the question made."""
    page.get_by_role("button", name=own["title"], exact=True).click()
    dialog = page.get_by_role("dialog", name=own["title"], exact=True)
    expect(dialog.get_by_role("heading", name=own["title"], exact=True)).to_be_visible()
    dialog.get_by_role("textbox", name=own["placeholder"], exact=True).fill("uv?")
    page.keyboard.press("Enter")
    return dialog.locator(".turn").last


def requested(page: Page) -> set[str]:
    """Return the languages' modules that the page has asked for."""
    urls = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    return {path for url in urls if (path := url.partition("/widget/")[2]).startswith("lang/")}


@pytest.mark.parametrize(
    ("attributes", "language"),
    [(f' lang="{tag}"{" dir=rtl" * (language == "ar")}', language) for language, tag in LANGUAGES.items()]
    + [(' lang="en-GB"', "en"), (' lang="fi"', "en"), (' lang="deu"', "en"), ("", "en")],
)
def test_the_chat_speaks_as_the_page_does(
    speak: Callable[..., Page], site: Site, attributes: str, language: str
) -> None:
    own = said(language)
    page = speak(attributes)
    expect(put(page, own).get_by_text(own["answered"], exact=True)).to_be_visible()
    dialog = page.get_by_role("dialog")
    assert f"lang/{language}.js" in requested(page)
    assert dialog.evaluate("node => node.scrollWidth <= node.clientWidth")
    site.replies.append(refused(413))
    dialog.get_by_role("textbox").fill("uv, again?")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text(own["413"]).first).to_be_visible()
    assert requested(page) == {f"{part}{language}.js" for part in PARTS}


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_the_button_is_one_line_on_the_smallest_phone(speak: Callable[..., Page], language: str) -> None:
    box = speak(f' lang="{language}"').locator(".launcher").bounding_box()
    assert box
    assert box["height"] < 60
    assert box["width"] < 250


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_a_site_s_own_words_go_before_those_of_any_language(speak: Callable[..., Page], language: str) -> None:
    own = said(language)
    page = speak(f' lang="{language}"', strings={"answered": "So sprach die Doku"})
    turn = put(page, own)
    expect(turn.get_by_text("So sprach die Doku", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name=own["close"], exact=True)).to_be_visible()
