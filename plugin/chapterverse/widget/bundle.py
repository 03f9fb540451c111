"""Bundles the widget's modules into the files that are served, and writes their configuration."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Any

from chapterverse.build_cache import BuildCache
from chapterverse.widget.minify import minify

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
    return minify(_join(name))


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
