"""Settings from the environment, with the same names in every part of the system.

A flag overrides a variable, and a variable the configuration of a site. A secret comes only from the environment or
from `secrets_arn`. A key alone never enables a provider; `embedder`, `reranker`, `generator` and `checker` do.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import field, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import find_settings
from chapterverse.manifests import PREFIX, SETTINGS, Setting

_T = TypeVar("_T")

#: Default place of the embedded index; by convention MkDocs plugins use `.cache/plugin/<name>`.
DEFAULT_STORE = str(SETTINGS["store"].default)

#: Variables by which CI services mark the build of a pull request, whose author may be a stranger.
_PULL_REQUEST = {
    "GITHUB_EVENT_NAME": {"pull_request", "pull_request_target"},
    "BUILD_REASON": {"PullRequest"},
    "PULL_REQUEST": {"true"},
    "READTHEDOCS_VERSION_TYPE": {"external"},
}
#: Variables that are set only for pull requests.
_PULL_REQUEST_NUMBER = ("CI_MERGE_REQUEST_IID", "CIRCLE_PULL_REQUEST", "VERCEL_GIT_PULL_REQUEST_ID")

#: Names of variables with the secrets of the site's own tools begin so.
TOOL_SECRETS = "CHAPTERVERSE_TOOL_"

#: Variables of the npm packages and of our tests.
_READ_ELSEWHERE = frozenset(
    PREFIX + name
    for name in (
        "COMMAND CHROMIUM DOCUMENTS FIREFOX KILLS MODULE_DELAY PAYLOADS RENDERS SCHEDULES STRIKES TEST_MODELS".split()
    )
)

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}

#: A field for each setting that a manifest declares, and those that none does.
_Fields: Any = make_dataclass(
    "Settings",
    [
        *((s.name, Any, field(default=s.default, repr=s.kind != "secret")) for s in SETTINGS.values()),
        ("also", "tuple[Any, ...]", field(default=())),
        ("pull_request", bool, field(default=False)),
        ("preview_of", str, field(default="")),
        *((name, "tuple[tuple[str, Any], ...]", field(default=(), repr=False)) for name in ("tool_secrets", "foreign")),
    ],
    frozen=True,
    slots=True,
    kw_only=True,
)


class Settings(_Fields):  # type: ignore[misc]  # a type checker does not see its fields
    """All run-time settings; secrets are left out of `repr`.

    The manifests in `chapterverse.manifests` declare them. `settings[SETTING]` is the value of any, also of one that
    another distribution declares.

    Attributes:
        also: sources beyond the site to index too (see `ext.sources.entries`).
        pull_request: whether a pull request is being built, which never writes the site's own remote index.
        preview_of: the store that `preview_store` replaced; empty if none.
        tool_secrets: names and values of the variables that begin with `CHAPTERVERSE_TOOL_`, for headers of tools.
        foreign: names and values of settings that other distributions declare.

    Raises:
        ConfigurationError: a count is out of its range, or a switch is neither true nor false.
    """

    __slots__ = ()
    if TYPE_CHECKING:
        also: tuple[Any, ...]
        pull_request: bool
        preview_of: str
        tool_secrets: tuple[tuple[str, Any], ...]
        foreign: tuple[tuple[str, Any], ...]

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        for setting in find_settings(dict(self.foreign)).values():
            if setting.kind == "count":
                check_count(setting.variable, self[setting], setting.most)

    def __getitem__(self, setting: Setting[_T], /) -> _T:
        own = setting.name in SETTINGS
        value: _T = getattr(self, setting.name) if own else dict(self.foreign).get(setting.name, setting.default)
        return value

    @property
    def disabled_types(self) -> frozenset[str]:
        """Document types that are neither indexed nor used."""
        return frozenset(kind for kind in ("persona", "faq", "memory") if not getattr(self, f"enable_{kind}"))

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(o.strip().rstrip("/") for o in self.allowed_origins.split(",") if o.strip())

    @property
    def may_publish(self) -> bool:
        """Whether a build may write the index: by default the embedded one, a remote one only if `publish` is true."""
        if self.store.startswith("edge:"):
            return self.publish is not False
        return self.publish is True and (not self.pull_request or bool(self.preview_of))

    @property
    def local_folder(self) -> Path:
        """The folder of this machine for what saves money: vectors, replies and downloads of earlier builds."""
        kind, _, place = self.store.partition(":")
        return Path(place if kind == "edge" else DEFAULT_STORE.partition(":")[2])

    @property
    def secrets(self) -> dict[str, str]:
        """Every secret that is set, by variable."""
        declared = secret_settings(dict(self.foreign))
        values = {variable: self[setting] for variable, setting in declared.items()} | dict(self.tool_secrets)
        return {name: value for name, value in values.items() if value}

    def with_secrets(self, secrets: Mapping[str, str]) -> Settings:
        """Return a copy in which these secrets, by variable, replace those that are not set."""
        declared = secret_settings(secrets)
        found = {setting.name: secrets.get(v) for v, setting in declared.items() if not self[setting]}
        missing = {name: value for name, value in found.items() if name in SETTINGS}
        foreign = {**{name: v for name, v in found.items() if v and name not in SETTINGS}, **dict(self.foreign)}
        tools = {name: value for name, value in secrets.items() if name.startswith(TOOL_SECRETS)}
        merged = _sorted({**tools, **dict(self.tool_secrets)})
        return self.override(**missing, foreign=_sorted(foreign), tool_secrets=merged)._for_pull_request()

    def resolve_paths(self, root: Path) -> Settings:
        """Return the settings with relative paths resolved against `root` instead of the working directory."""
        files = {name: str(root / path) for name in ("persona", "knowledge") if (path := getattr(self, name))}
        places = {name: _resolve(getattr(self, name), "edge", root) for name in ("store", "preview_store")}
        if self.reading_model not in ("auto", "none"):
            files["reading_model"] = str(root / Path(self.reading_model).expanduser())
        # The embedder's path stays: it is the name by which an index knows its vectors, on any machine.
        return self.override(**places, **files)

    def override(self, **values: Any) -> Settings:
        """Return a copy with every value that is not None replaced."""
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, below: Mapping[str, Any] | None = None, **overrides: Any
    ) -> Settings:
        """Read the variables over the values `below`, then apply `overrides` that are not None.

        Raises:
            ConfigurationError: a switch is neither true nor false, or a count is out of its range.
        """
        env = os.environ if environ is None else environ
        tool_secrets = _sorted({n: v for n, v in env.items() if n.startswith(TOOL_SECRETS) and v})
        values: dict[str, Any] = {**(below or {}), "pull_request": _is_pull_request(env), "tool_secrets": tool_secrets}
        foreign = dict(values.get("foreign", ()))
        for setting in find_settings(map(_name, _ours(env))).values():
            # CI systems set an empty variable for "not set".
            if raw := env.get(setting.variable):
                place = values if setting.name in SETTINGS else foreign
                place[setting.name] = _parse(setting, raw)
        values["foreign"] = _sorted(foreign)
        return cls(**values).override(**overrides)._for_pull_request()

    def _for_pull_request(self) -> Settings:
        """Return the settings for a pull request's build, which uses `preview_store` instead of a remote store."""
        if not (self.pull_request and self.preview_store) or self.store.startswith("edge:"):
            return self
        # A ledger server's rows belong to the site's own index.
        ledger = self.ledger if self.ledger.startswith("sqlite:") else ""
        return self.override(store=self.preview_store, ledger=ledger, preview_of=self.preview_of or self.store)


def explain_unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence for each variable of ours that nothing reads, with the nearest that is read."""
    ours = _ours(os.environ if environ is None else environ)
    known = [setting.variable for setting in find_settings(map(_name, ours)).values()]
    unknown = sorted({*ours} - {*known})
    nearest = {name: difflib.get_close_matches(name, known, 1, 0)[0] for name in unknown}
    return [f"There is no variable {name[:60]!a}: the nearest is {nearest[name]}." for name in unknown]


def secret_settings(names: Iterable[str] = ()) -> dict[str, Setting[str]]:
    """Return the secret settings by variable.

    Args:
        names: names or variables of settings. If one is none of ours, those of other distributions are among them.
    """
    return {s.variable: s for s in find_settings(map(_name, names)).values() if s.kind == "secret"}


def _ours(environ: Mapping[str, str]) -> list[str]:
    """Return the variables that state a setting, if anything."""
    ours = (name for name in environ if name.startswith(PREFIX) and not name.startswith(TOOL_SECRETS))
    return [name for name in ours if name not in _READ_ELSEWHERE]


def _name(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower()


def _sorted(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(values.items()))


def _is_pull_request(env: Mapping[str, str]) -> bool:
    return any(env.get(name) in values for name, values in _PULL_REQUEST.items()) or any(
        env.get(name) for name in _PULL_REQUEST_NUMBER
    )


def document_options(options: object) -> dict[str, Any]:
    """Return the settings of documents that a site's configuration makes: `enable_…` and `…_top_k`, by name.

    Raises:
        ConfigurationError: there is no such option, or it has an invalid value.
    """
    choices = {name: s for name, s in SETTINGS.items() if name.startswith("enable_") or s.kind == "count"}
    if not isinstance(options, Mapping):
        raise ConfigurationError("The option 'documents' must be a mapping, such as `faq_top_k: 3`.")
    for name, value in options.items():
        if name not in choices:
            raise ConfigurationError(f"There is no option {str(name)[:60]!a} of documents: use {', '.join(choices)}.")
        if choices[name].kind == "count":
            check_count(f"documents.{name}", value, choices[name].most)
        elif not isinstance(value, bool):
            raise ConfigurationError(f"documents.{name} must be true or false.")
    return dict(options)


def _resolve(setting: str, scheme: str, root: Path) -> str:
    """Return SCHEME:PATH with the path resolved against `root`; a setting of another scheme stays."""
    kind, _, path = setting.partition(":")
    return f"{kind}:{root / Path(path).expanduser()}" if kind == scheme and path else setting


def check_count(name: str, value: object, most: int) -> None:
    """Raise `ConfigurationError` if a value is no whole number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        raise ConfigurationError(f"{name} must be a whole number from 1 to {most}.")


def _parse(setting: Setting[Any], raw: str) -> Any:
    if setting.kind == "switch":
        return _switch(setting.variable, raw)
    if setting.kind != "count":
        return raw
    digits = raw.strip()
    # A value that is not a number is out of range.
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def _switch(name: str, raw: str) -> bool:
    word = raw.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ConfigurationError(f"{name} is neither on nor off: set it to 1 or 0.")
