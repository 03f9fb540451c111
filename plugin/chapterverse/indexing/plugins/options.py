"""The options of a plugin, as a generator's own configuration gives them: the names are those of the MkDocs plugin."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import load_part
from chapterverse.model import CHUNK_TOKENS, slug
from chapterverse.settings import DEFAULT_STORE, Settings, document_options
from chapterverse.widget.endpoint import clean_endpoint

#: Options that are settings, by the same name.
_OVERRIDES = ("publish", "endpoint", "store", "embedder", "site", "persona", "knowledge", "report")


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
            if sentence := explain_type(name, str(OPTIONS[name].type), value):
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
        if not self.widget:
            return {}
        from chapterverse.widget.options import read_options

        return read_options(self.widget, "widget.").config()


def is_preview(site_dir: str, site_url: str | None, address: str) -> bool:
    """Whether a live preview is being built: into a temporary folder, for the preview server's own address."""
    temporary = Path(site_dir).parent == Path(tempfile.gettempdir())
    return temporary and urlsplit(site_url or "").netloc == address


def check_chunk_tokens(tokens: int) -> None:
    """Raise `ConfigurationError` if chunks can't be packed to this size."""
    if not 32 <= tokens <= CHUNK_TOKENS:
        raise ConfigurationError(f"chunk_tokens must be between 32 and {CHUNK_TOKENS}.")


def explain_unknown_options(names: Iterable[object], options: Collection[str]) -> dict[str, str]:
    """Return a sentence for each unknown option, by its name."""
    unknown = sorted(name for name in map(str, names) if name not in options)
    nearest = {name: difflib.get_close_matches(name, options, 1, 0)[0] for name in unknown}
    return {name: f"There is no option {name[:60]!a}: the nearest is {nearest[name]}." for name in unknown}


def explain_type(name: str, kind: str, value: object) -> str:
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
