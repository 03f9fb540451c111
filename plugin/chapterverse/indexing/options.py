"""The options of an owner: what a generator's own configuration states, completed by the project's file.

Their names are those of the MkDocs plugin. The file is `chapterverse.toml`, or `[tool.chapterverse]` in
pyproject.toml, and may state settings too, by the names that `Settings` declares. A flag, a variable or the
configuration of a generator overrides it. It is committed, so it holds no secrets.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from chapterverse.errors import ConfigurationError, InputError
from chapterverse.extensions import find_settings, load_part
from chapterverse.manifests import SETTINGS
from chapterverse.model import MAX_CHUNK_TOKENS, TARGET_CHUNK_TOKENS, slug
from chapterverse.readers.urls import parse_base_url
from chapterverse.settings import DEFAULT_STORE, Settings, check_count, document_options, secret_settings
from chapterverse.widget.endpoint import clean_endpoint

#: Options that are settings, by the same name.
_OVERRIDES = ("publish", "endpoint", "store", "embedder", "site", "persona", "knowledge", "report")
#: Each file with the table in it that is ours, in the order of precedence.
_FILES: Mapping[str, tuple[str, ...]] = {"chapterverse.toml": (), "pyproject.toml": ("tool", "chapterverse")}
#: Settings that are a secret only with a password in them.
_PLACES = ("ledger", "records")
#: Options that `ProjectFile.settings` holds.
_OF_SETTINGS = {*SETTINGS, "documents", "also"}
_SECRET = re.compile(r"(?:^|_)(?:key|token|secret|password)s?$", re.IGNORECASE)
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]]+)\]")
_KEY = re.compile(r"([^=#]+)=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of an owner; `mkdocs.ChapterVerseConfig` describes each."""

    enabled: bool = True
    publish: bool | None = None
    strict: bool = False
    endpoint: str | None = None
    store: str | None = None
    embedder: str | None = None
    persona: str | None = None
    knowledge: str | None = None
    documents: dict[str, Any] = field(default_factory=dict)
    site: str | None = None
    chunk_tokens: int = TARGET_CHUNK_TOKENS
    exclude: list[str] = field(default_factory=list)
    include: list[str] = field(default_factory=list)
    also: list[Any] = field(default_factory=list)
    agents: bool | dict[str, bool] = True
    report: bool | None = None
    widget: dict[str, Any] = field(default_factory=dict)
    #: Settings of the project's file, which these options and the environment override.
    below: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Return the options by their names.

        Raises:
            ConfigurationError: there is no such option, or its value has another type.
        """
        for sentence in explain_unknown_options(values, OPTIONS).values():
            raise ConfigurationError(sentence)
        for name, value in values.items():
            if sentence := _explain_type(name, str(OPTIONS[name].type), value):
                raise ConfigurationError(sentence)
        return cls(**values)

    def settings(self, root: Path, site_name: str | None, version: str | None, *, preview: bool = False) -> Settings:
        """Return the settings of the environment, else of these options, else of `below`.

        Args:
            root: the folder that relative paths are resolved against.
            site_name: names the site's index, unless `site` does.

        Raises:
            ConfigurationError: a variable can't be read, the endpoint is no address, or an option of `documents` or
                `also` is invalid.
        """
        chosen = {name: value for name in _OVERRIDES if (value := getattr(self, name)) is not None}
        below = {**self.below, **chosen, **document_options(self.documents)}
        also = load_part("also_entries")(self.also, root) if self.also else None
        settings = Settings.from_environment(below=below, also=also, docs_version=version)
        endpoint = clean_endpoint(settings.endpoint) if settings.endpoint else None
        settings = settings.override(
            site=settings.site or (slug(site_name) if site_name is not None else None), endpoint=endpoint
        )
        if preview:
            # A preview contains drafts and local addresses, so it writes its own index and cites itself.
            version = settings.docs_version or ""
            local = {"store": f"{DEFAULT_STORE}/preview", "ledger": "", "base_url": "", "report": False}
            settings = settings.override(**local, docs_version=version)
        return settings.resolve_paths(root)

    def widget_options(self) -> dict[str, Any]:
        """Return the options of the chat, as `widget.bundle.assets` takes them.

        Raises:
            ConfigurationError: an option is unknown or has an invalid value.
        """
        return _read_widget(self.widget) if self.widget else {}


def check_chunk_tokens(tokens: int) -> None:
    """Raise `ConfigurationError` if chunks can't be packed to this size."""
    if not 32 <= tokens <= MAX_CHUNK_TOKENS:
        raise ConfigurationError(f"chunk_tokens must be between 32 and {MAX_CHUNK_TOKENS}.")


def explain_unknown_options(names: Iterable[object], options: Collection[str]) -> dict[str, str]:
    """Return a sentence for each unknown option, by its name."""
    unknown = sorted(name for name in map(str, names) if name not in options)
    nearest = {name: difflib.get_close_matches(name, options, 1, 0)[0] for name in unknown}
    return {name: f"There is no option {name[:60]!a}: the nearest is {nearest[name]}." for name in unknown}


def _explain_type(name: str, kind: str, value: object) -> str:
    """Return a sentence if a value has another type than an option, or another kind than a setting."""
    kinds = _KINDS[kind.partition("[")[0]]
    # A switch is an int to Python, and no number here.
    fits = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
    items = value if kind == "list[str]" and isinstance(value, (list, tuple)) else ()
    if fits and all(isinstance(item, str) for item in items):
        return ""
    return f"The option {name!r} must be {'a list of sources' if name == 'also' else _NAMES[kinds[0]]}."


#: Every option by its name.
OPTIONS = {option.name: option for option in fields(Options) if option.name != "below"}

_NONE = type(None)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "bool | None": (bool, _NONE), "str | None": (str, _NONE), "int": (int,),
    "list": (list, tuple), "dict": (dict,), "bool | dict": (bool, dict),
    "text": (str,), "secret": (str,), "switch": (bool,), "count": (int,),
}  # fmt: skip
_NAMES = {bool: "true or false", str: "a text", int: "a number", list: "a list of patterns", dict: "a mapping"}


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What a project's file says; without a file nothing.

    Attributes:
        values: the values of the file, by name.
        settings: those of settings, checked, with paths that don't depend on the working directory.
        table: the keys down to `values` in `text`.
    """

    path: Path = Path()
    values: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    table: tuple[str, ...] = ()

    @classmethod
    def find(cls, folder: Path) -> ProjectFile:
        """Read the file that is nearest to a folder: in it, or above it in the same repository.

        Raises:
            ConfigurationError: it is no TOML, or a value in it can't be used.
        """
        files = ((place / name, table) for place in _folders(folder.resolve()) for name, table in _FILES.items())
        found = next(filter(None, (cls._read(file, table) for file, table in files if file.is_file())), cls())
        return replace(found, settings=found._check())

    def options(self, values: Mapping[str, Any]) -> Options:
        """Return the options of a generator's configuration, completed by this file."""
        own = {name: value for name, value in self.values.items() if name in OPTIONS and name not in _OF_SETTINGS}
        # An option without a value counts as not set.
        stated = {name: value for name, value in values.items() if value is not None}
        return replace(Options.of(_merge(own, stated)), below=self.settings)

    @classmethod
    def _read(cls, file: Path, table: tuple[str, ...]) -> ProjectFile | None:
        """Read our table; None if the file has none."""
        try:
            text = file.read_text("utf-8-sig")
            values = tomllib.loads(text)
        except OSError as error:
            raise ConfigurationError(f"{file.name} can't be read: {error.strerror}.") from None
        # Also a number that is too long, and too many brackets.
        except (ValueError, RecursionError) as error:
            # The file of another program, unless it names us.
            if table and b".".join(map(str.encode, table)) not in file.read_bytes():
                return None
            raise ConfigurationError(f"{file.name} can't be read: {error}.") from None
        for name in table:
            values = values.get(name, {}) if isinstance(values, dict) else {}
        if not isinstance(values, dict):
            raise ConfigurationError(f"{file.name} line {_line(table, text)}: {'.'.join(table)} must be a table.")
        # A number for what is a text because it may also be "off".
        numbers = {n for n, v in values.items() if type(v) in (int, float) and str(_default(n)).isdigit()}
        values |= {name: str(values[name]) for name in numbers}
        return cls(file, values, text=text, table=table) if values or not table else None

    def _check(self) -> dict[str, Any]:
        """Check every value, and return those of settings."""
        known = find_kinds(self.values)
        for name, value in self.values.items():
            unknown = explain_unknown_options([name], known).get(name)
            if sentence := _explain_secret(name, value) or unknown or _explain_type(name, known[name], value):
                raise self._error(sentence, name)
            if any("\0" in text for text in _texts(value)):
                raise self._error(f"The option {name!r} holds a NUL character.", name)
        root = self.path.parent
        settings = {name: value for name, value in self.values.items() if name in SETTINGS}
        settings |= {name: str(root / settings[name]) for name in ("schemas", "tools") if name in settings}
        for name in _PLACES:
            kind, _, place = settings.get(name, "").partition(":")
            settings |= {name: f"sqlite:{root / place}"} if kind == "sqlite" and place else {}
        settings |= self._foreign()
        settings |= self._read_option("documents", document_options)
        settings |= self._read_option(
            "also", lambda also: {"also": load_part("also_entries")(also, root, must_exist=False)}
        )
        for name, check in _CHECKS.items():
            self._read_option(name, check)
        try:
            resolved = Settings(**settings).resolve_paths(root)
        except ConfigurationError as error:
            raise self._error(str(error)) from None
        return {name: getattr(resolved, name) for name in settings}

    def _foreign(self) -> dict[str, Any]:
        """Return the settings of other distributions."""
        foreign = {n: v for n, v in sorted(self.values.items()) if n not in SETTINGS and n not in OPTIONS}
        for name in foreign:
            if (setting := find_settings(foreign)[name]).kind == "count":
                self._read_option(name, partial(check_count, name, most=setting.most))
        return {"foreign": tuple(foreign.items())} if foreign else {}

    def _read_option(self, name: str, read: Callable[[Any], Any]) -> Any:
        """Return what `read` makes of an option; the sentences of its errors name the key."""
        value = self.values.get(name)
        try:
            return {} if value in (None, "") else read(value)
        except (ConfigurationError, InputError) as error:
            keys = value if isinstance(value, dict) else ()
            raise self._error(str(error), name, *[key for key in keys if key in str(error)][:1]) from None

    def _error(self, sentence: str, *keys: str) -> ConfigurationError:
        return ConfigurationError(f"{self.path.name} line {_line((*self.table, *keys), self.text)}: {sentence}")


def complete(
    values: Mapping[str, Any], folder: Path, by: str, tell: Callable[[str], object], base_url: str | None = None
) -> Options:
    """Return the options of a generator's configuration, completed by the project's file; tell what it overrides.

    Raises:
        ConfigurationError: either can't be used.
    """
    file, stated = ProjectFile.find(folder), {**values, "base_url": base_url or None}
    if names := list(_overridden(file.values, stated)):
        tell(f"{by} overrides {', '.join(names)} of {file.path.name}.")
    return file.options(values)


def find_kinds(names: Iterable[str]) -> dict[str, str]:
    """Return the kinds of what a file may set, by name. MkDocs itself reads `enabled`."""
    settings = find_settings(name for name in names if name not in OPTIONS)
    kinds = {name: s.kind for name, s in settings.items() if s.kind != "secret" or name in _PLACES}
    return kinds | {name: str(option.type) for name, option in OPTIONS.items() if name != "enabled"}


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return both tables as one, in which the upper one wins; a table in both, such as `widget`, is merged likewise."""
    tables = {name: _merge(below[name], value) for name, value in above.items() if _are_tables(below.get(name), value)}
    return {**below, **above, **tables}


def _overridden(below: Mapping[str, Any], above: Mapping[str, Any], table: str = "") -> Iterator[str]:
    """Yield the names in the lower table to which the upper one gives another value."""
    for name, value in below.items():
        stated: Any = above.get(name)
        if _are_tables(value, stated):
            yield from _overridden(value, stated, f"{name}.")
        elif _same(stated) not in (None, _same(value)):
            yield f"{table}{name}"


def _are_tables(*values: object) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _same(value: object) -> object:
    """Return a value that is equal for two spellings of one address."""
    return value.rstrip("/") if isinstance(value, str) else value


def _default(name: str) -> object:
    """Return the default of a text setting, which is never a number."""
    return SETTINGS[name].default if name in SETTINGS and SETTINGS[name].kind == "text" else ""


def _folders(folder: Path) -> list[Path]:
    """Return a folder and those above it, down to the root of its repository; without one only itself."""
    above = [folder, *folder.parents]
    root = next((at for at, place in enumerate(above) if (place / ".git").exists()), 0)
    return above[: root + 1]


def _explain_secret(name: str, value: object) -> str:
    """Return a sentence if a value may be a secret."""
    secret = secret_settings(() if name in OPTIONS else [name])
    variables = {setting.name: variable for variable, setting in secret.items()}
    # Most projects have no file.
    from chapterverse.text.secrets_in_text import has_secret

    leaks = any(map(has_secret, _texts(value)))
    if name in variables and (leaks or name not in _PLACES):
        return f"{name} may hold a secret, and this file is committed: set {variables[name]} instead."
    if leaks:
        return f"{name[:60]!a} holds a key or a password, and this file is committed: set a variable instead."
    if name not in find_kinds([name]) and _SECRET.search(name):
        return f"{name[:60]!a} names a secret, and this file is committed: set a variable of the environment instead."
    return ""


def _texts(value: object) -> Iterator[str]:
    """Yield each text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        items = value if isinstance(value, list) else [*value, *value.values()]
        yield from chain.from_iterable(map(_texts, items))


def _read_widget(options: Any) -> dict[str, Any]:
    # Imported here: it loads pydantic.
    from chapterverse.widget.options import read_options

    return read_options(options, "widget.").config()


#: What raises for a value of the right type that can't be used.
_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "widget": _read_widget,
    "endpoint": clean_endpoint,
    "base_url": parse_base_url,
    "chunk_tokens": check_chunk_tokens,
}


def _line(keys: tuple[str, ...], text: str) -> int:
    """Return the number of the line that sets a key, or else the table that it is in."""
    header: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if found := _HEADER.match(line):
            path = header = _parts(found[1])
        else:
            key = _KEY.match(line)
            path = (*header, *_parts(key[1])) if key else ()
        if path[: len(keys)] == keys:
            return number
    return _line(keys[:-1], text)


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part.strip(" \t\"'") for part in name.split("."))
