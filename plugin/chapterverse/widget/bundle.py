"""Bundles and minifies the widget's modules into the files that are served, and writes their configuration.

Minified modules have no comments, no needless space, and short names for what only one file knows. A variable's name is
shortened everywhere in its file or nowhere, so scopes stay what they are. Properties, exports and imports keep theirs.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise, product
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from chapterverse.build_cache import BuildCache

CONFIG = "config.js"

#: The modules in each file that is served, in the order that compresses best: each import of a chain would cost a round
#: trip, and small files compress worse. Every other module is a file of its own.
_PARTS = {
    "panel.js": ("session.js", "answer.js", "render.js", "panel.js", "client.js", "styles.js"),
    "turns.js": ("passages.js", "transcript.js", "head.js", "turns.js"),
    "page.js": ("session.js", "page.js"),
    "origin.js": ("session.js", "origin.js"),
}
_JOINED = frozenset(part for parts in _PARTS.values() for part in parts)

#: A static import of another module's names.
_IMPORT = re.compile(r"^import \{ (.*) \} from '\./(\w+\.js)';$", re.MULTILINE)

#: Modules that a first answer needs in English; the rest is in `lang/more/`.
_ENGLISH = ("lang/en.js", "lang/more/en.js")

#: The launcher's own text if nothing else can be loaded.
_UNLOADED = "Chat did not load: reload the page"

#: A key and its text in a minified language module.
_ENTRY = re.compile(r"""(\w+):(['"])((?:\\.|(?!\2).)*)\2""")
_ESCAPED = re.compile(r"\\(.)")

#: The titles in the shipped configuration, before the other languages are added.
_TITLES = re.compile(r"titles:\{[^}]*\}")

#: What minifying reads: the tokens of JavaScript.
_KEYWORDS = frozenset(
    "as async await break case catch class const continue default delete do else export extends false finally for from"
    " function get if import in instanceof let new null of return set static super switch this throw true try typeof"
    " undefined var void while with yield".split()
)
_TEMPLATE = r"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)"
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\d[\w.]*)"
    rf"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`{_TEMPLATE})|(?P<sign>=>|\?\.|\.\.\.|.)",
    re.DOTALL,
)
_REST = re.compile(rf"\}}{_TEMPLATE}", re.DOTALL)
_EXPRESSION = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
#: What an expression begins after: there a slash begins a regular expression.
_BEFORE_EXPRESSION = frozenset("( , = : [ ! & | ? { } ; => return".split()) | {""}

#: By how often JavaScript has them, which compresses best.
_LETTERS = "etnaoisrlcdumphfgbvywkxjqzETNAOISRLCDUMPHFGBVYWKXJQZ"


@functools.cache
def names() -> tuple[str, ...]:
    """Return the paths of all served files relative to the widget's folder, with "/" on every system."""
    modules = set(_modules(resources.files(__package__)))
    return tuple(sorted(modules - _JOINED | _PARTS.keys()))


@functools.cache
def files() -> Mapping[str, bytes]:
    """Return every served file by its path, minified, with the default configuration.

    Minifying makes the download a fifth smaller. No name that another file or the page knows changes.
    """
    modules = {name: _minify(name) for name in names()}
    modules[CONFIG] = _TITLES.sub(lambda _: f"titles:{_json(titles())}", modules[CONFIG])
    return {name: text.encode() for name, text in modules.items()}


def _kept_files(cache: BuildCache) -> Mapping[str, bytes]:
    """Return `files`, as an earlier build kept them: to minify them takes a tenth of a second."""
    key = "widget " + hashlib.sha256("".join(_join(name) for name in names()).encode()).hexdigest()
    known: dict[str, str] | None = cache.read(key, json.loads)
    if known is None:
        known = {name: content.decode() for name, content in files().items()}
        cache.write(key, json.dumps(known))
    return {name: text.encode() for name, text in known.items()}


def assets(options: Mapping[str, Any], language: str = "", cache: BuildCache | None = None) -> dict[str, bytes]:
    """Return the modules with these options as their configuration. Empty options leave the widget's defaults.

    Args:
        options: keys of `Config` in types.d.ts. An empty `endpoint` is written too, and for an empty `title` our
            default.
        language: BCP 47 tag of the site, for our default title; if unknown, pages get a title in each language (0.25
            kB).
    """
    chosen = {k: v for k, v in options.items() if v or v is False or k == "endpoint"}
    if "title" not in chosen:
        title = titles().get(language.partition("-")[0].lower())
        chosen |= {"title": title} if title else {"titles": titles()}
    module = f"export default {_json(chosen)};\n"
    # Environment variables may contain surrogates; indexing reports them.
    return {**(_kept_files(cache) if cache else files()), CONFIG: module.encode(errors="replace")}


@functools.cache
def titles() -> Mapping[str, str]:
    """Return the default title by language."""
    modules = (name for name in names() if PurePosixPath(name).parent.name == "lang")
    return {PurePosixPath(name).stem: _strings(name)["title"] for name in modules}


@functools.cache
def strings() -> Mapping[str, str]:
    """Return every string of the interface by its key, in English."""
    return {"unloaded": _UNLOADED} | {key: text for name in _ENGLISH for key, text in _strings(name).items()}


def _modules(folder: Traversable, path: str = "") -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _modules(entry, f"{path}{entry.name}/")
        elif entry.name.endswith(".js"):
            yield path + entry.name


@functools.cache
def _minify(name: str) -> str:
    """Return a file without comments and needless space, with short names."""
    import rjsmin

    lines = (line.strip() for line in rjsmin.jsmin(_join(name)).split("\n"))
    return shorten_names(re.sub(r"(?<=[;{},])\n", "", "\n".join(line for line in lines if line)))


def _join(file: str) -> str:
    """Return the modules in a file as one: imports of what it holds are gone, others are made once."""
    parts = _PARTS.get(file, (file,))
    imports: dict[str, set[str]] = {}

    def collect(match: re.Match[str]) -> str:
        names, module = match.groups()
        if module not in parts:
            home = next((whole for whole, inside in _PARTS.items() if module in inside), module)
            imports.setdefault(home, set()).update(names.split(", "))
        return ""

    folder = resources.files(__package__)
    text = "".join(_IMPORT.sub(collect, folder.joinpath(part).read_text("utf-8")) for part in parts)
    lines = [f"import {{ {', '.join(sorted(names))} }} from './{home}';\n" for home, names in imports.items()]
    return "".join(lines) + text


def _strings(name: str) -> dict[str, str]:
    return {key: _ESCAPED.sub(r"\1", text) for key, _, text in _ENTRY.findall(_minify(name))}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Token(NamedTuple):
    """A token, with the bracket that it is in."""

    kind: str
    text: str
    bracket: str


def shorten_names(source: str) -> str:
    """Return a module without comments with short names for what it declares itself."""
    tokens = list(_tokens(source))
    names = [token for token in tokens if token.kind != "space"]
    edges = _Token("sign", "", "")
    counts, declared, kept = Counter[str](), set[str](), set(_KEYWORDS)
    fixed = set[int]()
    for before, token, after in zip([edges, *names], names, [*names[1:], edges], strict=False):
        if token.kind != "name":
            continue
        counts[token.text] += 1
        key = token.bracket == "{" and before.text in ("{", ",")
        if before.text in (".", "?.") or (key and after.text == ":"):
            fixed.add(id(token))
        # A method, or a property with the name of its variable.
        elif (key and after.text in (",", "}", "=", "(")) or (before.text in ("}", "async") and after.text == "("):
            kept.add(token.text)
        elif before.text in ("const", "let") or after.text == "=>":
            declared.add(token.text)
    declared |= set(_parameters(names))
    kept |= {name.text for export, _, name in zip(names, names[1:], names[2:], strict=False) if export.text == "export"}
    rare_last = sorted((name for name in declared - kept if len(name) > 1), key=lambda name: (-counts[name], name))
    short = ("".join(letters) for size in (1, 2) for letters in product(_LETTERS, repeat=size))
    free = (name for name in short if name not in counts and name not in _KEYWORDS)
    table = dict(zip(rare_last, free, strict=False))
    return "".join(
        table.get(token.text, token.text) if token.kind == "name" and id(token) not in fixed else token.text
        for token in tokens
    )


def _parameters(names: list[_Token]) -> Iterator[str]:
    """Return the names that arrow functions give their parameters."""
    starts: list[int] = []
    for at, (token, after) in enumerate(pairwise(names)):
        if token.text == "(":
            starts.append(at)
        elif token.text == ")" and after.text == "=>":
            inside = names[starts.pop() : at]
            yield from (name.text for comma, name in pairwise(inside) if name.kind == "name" and comma.text in "(,")
        elif token.text == ")":
            starts.pop()


def _tokens(source: str) -> Iterator[_Token]:
    at, last = 0, ""
    brackets: list[str] = []
    while at < len(source):
        found = None
        if source[at] == "}" and brackets[-1:] == ["`"]:
            found, kind = _REST.match(source, at), "text"
            brackets.pop()
        elif source[at] == "/" and last in _BEFORE_EXPRESSION:
            found, kind = _EXPRESSION.match(source, at), "text"
        if not found:
            found = _TOKEN.match(source, at)
            assert found
            kind = str(found.lastgroup)
        text, at = found[0], found.end()
        yield _Token(kind, text, brackets[-1] if brackets else "")
        if kind == "text" and text.endswith("${"):
            brackets.append("`")
        elif kind == "sign" and text in "([{":
            brackets.append(text)
        elif kind == "sign" and text in ")]}":
            brackets.pop()
        if kind != "space":
            last = "" if kind == "text" and text.endswith("${") else text
