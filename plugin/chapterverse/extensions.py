"""Finds and loads what the rooms offer, and the extensions that other distributions add by an entry point."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.manifests import EXTENSIONS, GROUPS, PREFIX, SETTINGS, Command, Extension, Setting

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")

_ENTRY_POINTS = "chapterverse.extensions"
#: A line `name = module:object` for each entry point that was there when a package was made.
PACKED = Path(__file__).with_name("extensions.txt")
#: The type of a setting's default, by its kind.
_TYPES: Mapping[str, type[Any]] = {"text": str, "switch": bool, "count": int, "secret": str}


class Values(Protocol):
    """The values of settings: `chapterverse.settings.Settings`, which knows the manifests."""

    def __getitem__(self, setting: Setting[_T], /) -> _T: ...


def find_settings(names: Iterable[str]) -> Mapping[str, Setting[Any]]:
    """Return the settings by name: ours, and those of other distributions if one of the names is none of ours."""
    if SETTINGS.keys() >= {*names}:
        return SETTINGS
    return SETTINGS | {setting.name: setting for extension in foreign() for setting in extension.settings}


def open_offer(setting: str, settings: Values, variable: str = "", protocol: type[Any] = object) -> Any:
    """Open what a setting names; None if its value names nothing to open.

    Args:
        variable: that states the value, if it isn't the setting's own.
        protocol: what a stranger's object must have.

    Raises:
        ConfigurationError: no room offers such a value, or the one that does can't use it.
    """
    declared = SETTINGS[setting]
    value: str = settings[declared]
    kind, colon, rest = value.partition(":")
    for extension in _every_extension():
        offers = extension.offers.get(setting, {})
        forms = [form for form in offers if kind in _kinds(form)]
        for form in forms:
            if _is_complete(form, colon, rest):
                return _open(offers[form], extension, settings, rest, protocol)
        if forms and extension in EXTENSIONS:
            break
    # An address may hold a password.
    shown = f"{kind}:…" if "://" in value or "@" in value else value
    named = "nothing that is known" if declared.kind == "secret" else repr(shown)
    *most, last = (form for extension in _every_extension() for form in extension.offers.get(setting, ()))
    use = f"{', '.join(most)} or {last}" if most else last
    raise ConfigurationError(f"{variable or declared.variable} is {named}: use {use}.")


def load_part(name: str) -> Any:
    """Return what makes a part of the core's walk that a room has."""
    return next(load(room.parts[name]) for room in EXTENSIONS if name in room.parts)


def load_part_of_offer(name: str, setting: str, settings: Values) -> Any:
    """Return the part of the room that offers what a setting names; None if that room has no such part."""
    kind = settings[SETTINGS[setting]].partition(":")[0]
    rooms = (room for room in EXTENSIONS if any(kind in _kinds(form) for form in room.offers.get(setting, ())))
    return next((load(room.parts[name], room) for room in rooms if name in room.parts), None)


def load(place: str, extension: Extension | None = None) -> Any:
    """Return the object at `module:object`.

    Raises:
        ConfigurationError: what it imports is not installed, or it is not ours and fails at its import.
    """
    module, _, path = place.partition(":")
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    # Whatever a stranger's module raises.
    except (Exception, SystemExit) as error:
        if extension and extension not in EXTENSIONS:
            raise ConfigurationError(f"The extension {extension.name} can't be loaded ({_line(error)}).") from error
        missing = getattr(error, "name", None) or "chapterverse"
        is_ours = missing.startswith("chapterverse") and "." in missing
        if not isinstance(error, ImportError) or not module.startswith("chapterverse_api") or is_ours:
            raise
        raise ConfigurationError(
            f'The service can\'t be loaded ({missing} is missing): pip install "chapterverse[api]".'
        ) from error
    return found


def list_commands() -> dict[str, Command]:
    """Return every command by name. Of two with one name the first counts."""
    found: dict[str, Command] = {}
    for row in chain.from_iterable(extension.commands.items() for extension in _every_extension()):
        found.setdefault(*row)
    return found


def load_routers(settings: Values, extensions: Iterable[Extension]) -> Iterator[Any]:
    """Yield the routers of these that are on. One of a stranger that can't be loaded is named and left out."""
    for extension in extensions:
        yield from _load_each("router", extension.routes, extension, settings, lambda it: hasattr(it, "include_router"))


def load_listeners(settings: Values, extensions: Iterable[Extension]) -> Iterator[Any]:
    """Yield what is called with each answer, likewise."""
    for extension in extensions:
        yield from _load_each("function", extension.events, extension, settings, callable)


def _load_each(
    noun: str, places: Mapping[str, str], extension: Extension, settings: Values, is_one: Callable[[Any], bool]
) -> Iterator[Any]:
    known = SETTINGS | {setting.name: setting for setting in extension.settings}
    on = (place for name, place in places.items() if not name or settings[known[name]])
    for place in dict.fromkeys(" ".join(on).split()):
        try:
            found = load(place, extension)
            if not is_one(found):
                raise ConfigurationError(f"The extension {extension.name} has no {noun} at {place}.")
            yield found
        except ConfigurationError as error:
            if extension in EXTENSIONS:
                raise
            _complain(str(error))


@cache
def foreign() -> tuple[Extension, ...]:
    """Return the manifests of other distributions, searched once. What can't be used is named and left out."""
    found = {own.name: own for own in EXTENSIONS}
    claimed = {claim for own in EXTENSIONS for claim in _claims(own)}
    for entry in sorted(_find_entry_points(), key=lambda entry: entry.name):
        try:
            extension = entry.load()
            if not isinstance(extension, Extension):
                raise TypeError(f"{entry.value} is no Extension")
            _check(extension, found)
        # Whatever a stranger's module raises at its import, everything else works on.
        except (Exception, SystemExit) as error:
            _complain(f"The extension {entry.name} is left out: {_line(error)}.")
            continue
        found[extension.name], claims = extension, _claims(extension)
        for noun, name in sorted(claims & claimed):
            _complain(f"The {noun} {name} of the extension {extension.name} is left out: another has that name.")
        claimed |= claims
    return tuple(found.values())[len(EXTENSIONS) :]


def _claims(extension: Extension) -> set[tuple[str, str]]:
    """Return the names that one extension alone can have: of commands, and of a setting's values."""
    forms = ((setting, form) for setting, offers in extension.offers.items() for form in offers)
    values = {(setting, kind) for setting, form in forms for kind in _kinds(form)}
    return values | {("command", name) for name in extension.commands}


def _find_entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of other distributions. A package for Lambda lists them, as a search takes time."""
    # Lazy: a command of ours does without it.
    from importlib.metadata import EntryPoint, entry_points

    if not PACKED.exists():
        return entry_points(group=_ENTRY_POINTS)
    lines = (line.partition(" = ") for line in PACKED.read_text(encoding="utf-8").splitlines())
    return [EntryPoint(name, value, _ENTRY_POINTS) for name, _, value in lines]


def _complain(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201


def _every_extension() -> Iterator[Extension]:
    """Yield the extensions, ours first. Others are searched only where none of ours ends that."""
    yield from EXTENSIONS
    yield from foreign()


def _open(place: str, extension: Extension, settings: Values, rest: str, protocol: type[Any]) -> Any:
    if not place:
        return None
    try:
        opened = load(place, extension)(settings, rest)
        if extension not in EXTENSIONS and (opened is None or not _fulfills(opened, protocol)):
            raise TypeError
    except ChapterVerseError:
        raise
    except Exception as error:
        if extension in EXTENSIONS:
            raise
        # What it says may hold a password.
        message = f"The extension {extension.name} can't open what a setting names ({type(error).__name__})."
        raise ConfigurationError(message) from error
    return opened


def _fulfills(opened: object, protocol: type[Any]) -> bool:
    return all(hasattr(opened, name) for name in vars(protocol) if not name.startswith("_"))


def _check(extension: Extension, others: Mapping[str, Extension]) -> None:
    """Raise `ValueError` if a manifest can't be used beside those of others."""
    if not isinstance(extension.name, str) or not re.fullmatch(r"[A-Za-z][\w-]*", extension.name):
        raise ValueError("its name isn't a word of letters, digits, _ and -")
    if extension.name in others:
        raise ValueError(f"another is named {extension.name}")
    if extension.parts or extension.extra:
        raise ValueError("parts and extra are only for rooms of ours")
    _check_settings(extension, {setting.name for other in others.values() for setting in other.settings})
    _check_tables(extension)


def _check_tables(extension: Extension) -> None:
    try:
        forms = [(setting, *form) for setting, offers in extension.offers.items() for form in offers.items()]
        commands = [(name, row.group, row.place, row.help) for name, row in extension.commands.items()]
        tables = (extension.lookups, extension.routes, extension.events)
        texts = [*chain(*forms, *commands, *(row for table in tables for row in table.items()))]
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            "offers, lookups, routes and events are tables of texts, and commands one of `Command`"
        ) from None
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name, a form or a place is no text")
    places = [*(place for *_, place in forms if place), *(place for _, _, place, _ in commands)]
    places += [place for table in tables for places in table.values() for place in places.split() or [""]]
    if wrong := [place for place in places if not re.fullmatch(r"[\w.]+:[\w.]+", place)]:
        raise ValueError(f"the place {wrong[0]!a} is not module:object")
    # Lazy: a command of ours does without it.
    from chapterverse.model import INDEX_TYPES

    if unknown := {*extension.lookups} - {"", *INDEX_TYPES}:
        raise ValueError(f"there is no type {min(unknown)} of documents")
    switches = {*extension.routes, *extension.events} - {"", *(setting.name for setting in extension.settings)}
    if unknown := {*extension.offers, *switches} - {*SETTINGS}:
        raise ValueError(f"there is no setting {min(unknown)}")
    if groups := {group for _, group, _, _ in commands} - {*GROUPS, ""}:
        raise ValueError(f"there is no group {min(groups)} of commands")
    kinds = [(setting, kind) for setting, form, _ in forms for kind in _kinds(form)]
    if len({*kinds}) < len(kinds):
        raise ValueError("two forms of a setting begin alike")


def _check_settings(extension: Extension, taken: set[str]) -> None:
    # A name of its own is in nobody's way, not even in a later release of ours.
    prefix = f"{extension.name}_".replace("-", "_").lower()
    if not isinstance(extension.settings, tuple) or not all(isinstance(one, Setting) for one in extension.settings):
        raise ValueError("settings is no tuple of `Setting`")
    for setting in extension.settings:
        if setting.kind not in [*_TYPES]:
            raise ValueError(f"the setting {setting.name} has no kind of {', '.join(_TYPES)}")
        if not re.fullmatch(f"{prefix}[a-z0-9_]+", str(setting.name)):
            raise ValueError(f"the name of the setting {setting.name} doesn't begin with {prefix}")
        if setting.name in taken:
            raise ValueError(f"another setting is named {setting.name}")
        if setting.prefix != PREFIX or type(setting.default) is not _TYPES[setting.kind]:
            raise ValueError(f"the setting {setting.name} has another prefix, or a default that is no {setting.kind}")
        if setting.kind == "count" and not 1 <= setting.default <= setting.most:
            raise ValueError(f"the default of the setting {setting.name} isn't from 1 to its `most`")
        taken.add(setting.name)


def _line(error: BaseException) -> str:
    """Return an error's message as part of a sentence."""
    first = next(iter(str(error).strip().splitlines()), "")
    return first.rstrip(".") or type(error).__name__


def _kinds(form: str) -> set[str]:
    """Return what a value of this form may begin with: `postgres[ql]://HOST` is "postgres" or "postgresql"."""
    name, _, more = form.partition(":")[0].partition("[")
    return {name, name + more.rstrip("]")}


def _is_complete(form: str, colon: str, rest: str) -> bool:
    """Return whether a value has what its form asks for."""
    name, needs_rest, _ = form.partition(":")
    return name.endswith("[") or (bool(colon), bool(rest)) == (bool(needs_rest), bool(needs_rest))
