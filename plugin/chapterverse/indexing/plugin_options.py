"""The options of a plugin, as a generator's own configuration gives them: the names are those of the MkDocs plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.indexing import plugin_api
from chapterverse.settings import Settings


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
    chunk_tokens: int = 256
    exclude: list[str] = field(default_factory=list)
    include: list[str] = field(default_factory=list)
    also: list[Any] = field(default_factory=list)
    agents: bool | dict[str, bool] = True
    widget: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Return the options by their names.

        Raises:
            ConfigurationError: there is no such option, or its value has another type.
        """
        known = {option.name: option for option in fields(cls)}
        for sentence in plugin_api.unknown_options(given, known).values():
            raise ConfigurationError(sentence)
        for name, value in given.items():
            kinds = _KINDS[str(known[name].type).partition("[")[0]]
            # A switch is an int to Python, and no number here.
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                wanted = "a list of sources" if name == "also" else _NAMES[kinds[0]]
                raise ConfigurationError(f"The option {name!r} must be {wanted}.")
        return cls(**given)

    def settings(self, root: Path, site_name: str, version: str | None, *, preview: bool = False) -> Settings:
        """Return the environment's settings, overridden by these options; raises as `plugin_api.settings`."""
        chosen = {name: getattr(self, name) for name in plugin_api.SETTINGS}
        return plugin_api.settings(root, site_name, version, preview=preview, **chosen)

    def widget_options(self) -> dict[str, Any]:
        """Return the options of the chat, as `widget.assets` takes them.

        Raises:
            ConfigurationError: an option is unknown or has an invalid value.
        """
        return plugin_api.widget(self.widget)


_NONE = type(None)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "bool": (bool,), "bool | None": (bool, _NONE), "str | None": (str, _NONE), "int": (int,), "list": (list, tuple),
    "dict": (dict,), "bool | dict": (bool, dict),
}  # fmt: skip
_NAMES = {bool: "True or False", str: "a text", int: "a number", list: "a list of patterns", dict: "a dict"}
