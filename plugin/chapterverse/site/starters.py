"""Questions for an empty chat whose site and page name none: headings that the search finds first.

They are in a file beside the folder of the widget's other files. That folder is named by its content, and pages name it
before there is an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from chapterverse.build_cache import BuildCache
from chapterverse.errors import ChapterVerseError
from chapterverse.extensions import load_part
from chapterverse.model import PAGE, Chunk
from chapterverse.settings import Settings
from chapterverse.site.delivery import FOLDER, replace_file
from chapterverse.store import Snapshot, open_store
from chapterverse.text.lexical import primary_subtag, query_vector, question_words
from chapterverse.text.stopwords import STOP_WORDS

STARTERS_FILE = "starters.js"
#: Names the file to the widget, relative to the folder of its other files; that of a build is one deeper.
PATH = f"{FOLDER}/{STARTERS_FILE}"
OPTION, BUILD_OPTION = {"starters_file": f"../{STARTERS_FILE}"}, {"starters_file": f"../../{STARTERS_FILE}"}

#: Questions of a language, and the pages that are read for them, each of which may cost a search.
_QUESTIONS, _PAGES = 3, 16
#: Characters of a heading that a button has room for.
_MAX_CHARS = 60
_KINDS = frozenset(("documentation", "faq", "article", "product", "service"))
_MARKS = re.compile(r"[\s\u200b]+")
_VERB = re.compile(r"\b(?:can|must|should|will) ([a-z]+)\b")
#: A page's language is known where it is read.
_MODULE = """const found = {};
export default found[document.documentElement.lang.split('-')[0].toLowerCase()] ?? found[''] ?? [];
"""
Warn: TypeAlias = Callable[[str], object]
_FUNCTION_WORD = re.compile(rf"(?:^| )(?:{'|'.join(sorted(STOP_WORDS['en']))})(?: |$)", re.IGNORECASE).search


def write(path: Path, settings: Settings, base_url: str, warn: Warn = lambda _: None) -> None:
    """Write the file, if it has other questions than the index."""
    content = module(settings, base_url, warn)
    # The site is built, and needs this file for its suggestions alone.
    try:
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)
    except OSError as error:
        warn(f"An empty chat has no questions from the index: {path} can't be written ({error.strerror}).")


def module(settings: Settings, base_url: str, warn: Warn = lambda _: None) -> bytes:
    """Return the file of the site's published index: without questions if there is none, or if this may not publish.

    Args:
        warn: gets the sentence for a store that can't be read, if no publication has said so already.
    """
    found: dict[str, list[str]] = {}
    try:
        if settings.may_publish:
            found = _read_starters(settings, base_url)
    # Whatever is wrong with an index, a site without suggestions is built all the same.
    except Exception as error:
        reason = error if isinstance(error, ChapterVerseError) else type(error).__name__
        warn(f"An empty chat has no questions from the index: {reason}")
    return _MODULE.replace("{}", json.dumps(found)).encode()


def _read_starters(settings: Settings, base_url: str) -> dict[str, list[str]]:
    """Return the questions of an index, which is only opened if it is not the one of the last build."""
    if settings.secrets_arn and not settings.store.startswith("edge:"):
        # The build tells what is wrong with them when it publishes.
        settings = load_part("secrets_arn")(settings, lambda _: None)
    store = open_store(settings)
    heads = (h for h in store.heads() if h.base_url == base_url and settings.site in ("", h.site))
    head = next((h for h in heads if settings.docs_version in (None, h.version)), None)
    if head is None:
        return {}
    cache, key = BuildCache.open(settings.local_folder, make=False), f"starters {head}"
    found: dict[str, list[str]] | None = cache.read(key, json.loads)
    if found is None:
        found = _find_starters(store.snapshot(head.scope))
        cache.write(key, json.dumps(found))
    cache.finish()
    return found


def _find_starters(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return questions by language, those of the main language by "". The first result of each is its own section."""
    found: dict[str, list[str]] = {}
    main, languages = primary_subtag(snapshot.head.main_language), snapshot.head.languages
    for question, chunk in _questions(snapshot):
        language = primary_subtag(chunk.language)
        questions = found.setdefault("" if language == main else language, [])
        if len(questions) == _QUESTIONS or question in questions:
            continue
        hits = snapshot.search_lexical(query_vector(question, languages), 1)
        if hits and hits[0].chunk.url == chunk.url:
            questions.append(question)
    return found


def _questions(snapshot: Snapshot) -> Iterator[tuple[str, Chunk]]:
    """Yield a question of each page, with where it is answered: real ones first, then headings as they are."""
    paths = sorted(map(str, snapshot.values("source_file_path")), key=lambda path: (path.count("/"), path))
    pages = [list(_of_page(snapshot.page(path))) for path in paths[:_PAGES]]
    firsts = [min(page, key=lambda pair: not _asks(pair[0])) for page in pages if page]
    yield from sorted(firsts, key=lambda pair: not _asks(pair[0]))


def _of_page(chunks: Sequence[Chunk]) -> Iterator[tuple[str, Chunk]]:
    verbs = {verb for chunk in chunks for verb in _VERB.findall(chunk.text)}
    for chunk in chunks:
        heading = _MARKS.sub(" ", chunk.section_heading or "").strip()
        # A single word, such as "Overview", asks for nothing.
        fits = len(heading) <= _MAX_CHARS and _has_words(heading, chunk.language)
        if fits and chunk.type == PAGE and chunk.content_type in _KINDS and chunk.url:
            is_english = primary_subtag(chunk.language) == "en"
            yield (_english_question(heading, verbs) if is_english else heading), chunk


def _has_words(heading: str, language: str) -> bool:
    """Whether a heading has two words that say something; those of scripts without spaces must be told apart."""
    words = heading.lower().split()
    if len(words) > 1:
        common = STOP_WORDS.get(primary_subtag(language), frozenset())
        return len([word for word in words if word not in common]) > 1
    return not heading.isascii() and len([*question_words(heading, (language,))]) > 1


def _english_question(heading: str, verbs: Container[str]) -> str:
    """Return the question of "How to X", "Xing Y" or "X the Y", as long as X is one of the verbs of its page."""
    if _asks(heading):
        return heading
    first, _, rest = heading.partition(" ")
    if heading.lower().startswith("how to "):
        return f"How do I {heading[7:]}?"
    stem = first.lower().removesuffix("ing")
    # Without a function word it may be two nouns, such as "Use cases".
    forms = (stem, f"{stem}e", stem[:-1]) if first.endswith("ing") else (stem,) if _FUNCTION_WORD(rest) else ()
    verb = next((form for form in forms if form in verbs), "")
    return f"How do I {verb} {rest}?" if verb and " and " not in f" {rest}" else heading


def _asks(question: str) -> bool:
    return question.endswith(("?", "\uff1f", "\u061f"))
