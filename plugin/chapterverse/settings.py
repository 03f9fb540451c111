"""Settings from the environment, with the same names in every part of the system.

A flag overrides a variable, and a variable the configuration of a site. A secret comes only from the environment or
from `secrets_arn`. A key alone never enables a provider; `embedder`, `reranker`, `generator` and `checker` do.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from chapterverse.errors import ConfigurationError

#: Default place of the embedded index; by convention MkDocs plugins use `.cache/plugin/<name>`.
DEFAULT_STORE = "edge:.cache/plugin/chapterverse"

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

_PREFIX = "CHAPTERVERSE_"
#: Variables of the npm packages and of our tests.
_READ_ELSEWHERE = frozenset(
    _PREFIX + name
    for name in (
        "COMMAND CHROMIUM DOCUMENTS FIREFOX KILLS MODULE_DELAY PAYLOADS RENDERS SCHEDULES STRIKES TEST_MODELS".split()
    )
)

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def _secret(name: str) -> Any:
    return field(default="", repr=False, metadata={"env": name, "secret": True})


def _setting(default: Any, name: str) -> Any:
    return field(default=default, metadata={"env": name})


def _count(default: int, name: str, most: int) -> Any:
    return field(default=default, metadata={"env": name, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All run-time settings; secrets are left out of `repr`.

    Attributes:
        store: `edge:PATH`, `qdrant:URL` or `s3://bucket/prefix`.
        ledger: `sqlite:PATH` or `postgresql://…`; empty means a separate file for each store.
        schemas: folder of JSON Schemas that the data of an answer may fit.
        persona: file with the chat's name, language and tone; empty looks for `persona.md`.
        knowledge: folder with the folders `persona`, `faq` and `memory`; empty looks for `knowledge` in the docs.
        base_url: address of the published site; if the index has another, citations are rewritten to this one.
        site: name of the site's index; empty means the only one in the store.
        docs_version: docs version; None means the only one in the store.
        publish: whether a build may write the index; None means yes for the embedded store, no for a remote one.
        preview_store: remote store for builds of pull requests instead of the site's; if empty, they write none.
        pull_request: whether a pull request is being built, which never writes the site's own remote index.
        preview_of: the store that `preview_store` replaced; empty if none.
        endpoint: address of the API that the widget calls; `/` is the site's own origin, empty names no API.
        embedder: `none`, `cohere[:MODEL]`, `bedrock:MODEL`, `openai:MODEL`, `fastembed:MODEL-or-PATH`.
        reranker: `none`, `local`, `cohere[:MODEL]`, `bedrock:MODEL`.
        reading_model: `auto` uses the installed reading model if there is one; `none`; or a folder with its files.
        generator: `extractive`, `cohere[:MODEL]`, `bedrock:MODEL`, `openai:MODEL`.
        checker: the second vote on citations: `words`, `openai:MODEL`, `bedrock:guardrail/ID[:VERSION]`.
        enricher: `none`, `cohere:MODEL`, `openai:MODEL` or `bedrock:MODEL`, called once for each changed page.
        records: `sqlite:PATH`, `postgresql://…` or `dynamodb:TABLE` for conversations; empty stores none.
        records_days: days after which a conversation is removed.
        signing_key: signs our answers in a conversation that the browser keeps; several, comma-separated, newest first.
        report: whether readers' questions are asked again after each build that changes the index.
        report_token: whoever sends it may read the report's gaps at `/mcp`; empty serves them to nobody.
        limiter: where requests and costs are counted: `memory`, `sqlite:PATH` or `dynamodb:TABLE`.
        rates: requests allowed per client, such as "10/min,60/h,200/day"; "off" for no limit.
        mcp_rates: calls of tools and pages read at `/mcp`, per client, in the same form.
        daily_budget_usd: most US dollars that a site's models may cost per day (UTC); "off" for no limit.
        prices: prices of models that the list lacks or that differ, such as
            "generator=0.15/0.60,reranker=2,embedder=0.1": US dollars per million tokens, or per thousand searches.
        economy_generator: cheaper model that answers from four fifths of the budget on.
        proof_of_work: whether a client that has used half of a rate limit must compute a proof of work before each
            further question.
        secrets_arn: secrets of Secrets Manager or parameters of Parameter Store, comma-separated, each a JSON object of
            secrets by name (see `chapterverse.ext.aws.secrets`).
        log_questions: whether the log holds the text of questions, and of comments on ratings.
        log_answers: whether the log holds the text of answers.
        cohere_url, openai_url: servers of these interfaces, without `/v2` and `/v1`.
        cohere_api_key, openai_api_key, qdrant_api_key: keys for these servers.
        qdrant_url: server of the store `qdrant:` without an address.
        allowed_origins: origins that may ask, comma-separated; empty means the same origin only.
        allow_private: servers of a private network that may be fetched from, also by plain HTTP, as
            "host:port,host:port"; all other fetches use HTTPS and public addresses.
        also: sources beyond the site to index too (see `ext.sources.entries`).
        mcp: whether programs may ask over the Model Context Protocol, at `/mcp`.
        tools: file with the site's tools, YAML or JSON; if empty, models have none.
        tool_secrets: names and values of the variables that begin with `CHAPTERVERSE_TOOL_`, for headers of tools.
        enable_persona, enable_faq, enable_memory: whether these documents are indexed and used in answers.
        enable_turn, enable_summary: whether earlier turns of a kept conversation, and its summary, are in prompts.
        turn_top_k: maximum of earlier turns for an answer, besides the latest; 1 to 20.
        faq_top_k: maximum of FAQ entries for an answer; 1 to 10.
        memory_top_k: maximum of memories for an answer; 1 to 20.
        summary_top_k: 1 to 10; has no effect, because a conversation has one summary.

    Raises:
        ConfigurationError: a count is out of its range, or a switch is neither true nor false.
    """

    store: str = _setting(DEFAULT_STORE, "CHAPTERVERSE_STORE")
    ledger: str = _secret("CHAPTERVERSE_LEDGER")
    persona: str = _setting("", "CHAPTERVERSE_PERSONA")
    knowledge: str = _setting("", "CHAPTERVERSE_KNOWLEDGE")
    schemas: str = _setting("schemas", "CHAPTERVERSE_SCHEMAS")
    base_url: str = _setting("", "CHAPTERVERSE_BASE_URL")
    site: str = _setting("", "CHAPTERVERSE_SITE")
    docs_version: str | None = _setting(None, "CHAPTERVERSE_DOCS_VERSION")
    publish: bool | None = _setting(None, "CHAPTERVERSE_PUBLISH")
    endpoint: str = _setting("", "CHAPTERVERSE_ENDPOINT")
    embedder: str = _setting("none", "CHAPTERVERSE_EMBEDDER")
    reranker: str = _setting("none", "CHAPTERVERSE_RERANKER")
    reading_model: str = _setting("auto", "CHAPTERVERSE_READING_MODEL")
    generator: str = _setting("extractive", "CHAPTERVERSE_GENERATOR")
    checker: str = _setting("words", "CHAPTERVERSE_CHECKER")
    enricher: str = _setting("none", "CHAPTERVERSE_ENRICHER")
    records: str = _secret("CHAPTERVERSE_RECORDS")
    records_days: str = _setting("30", "CHAPTERVERSE_RECORDS_DAYS")
    signing_key: str = _secret("CHAPTERVERSE_SIGNING_KEY")
    report: bool = _setting(False, "CHAPTERVERSE_REPORT")
    report_token: str = _secret("CHAPTERVERSE_REPORT_TOKEN")
    allowed_origins: str = _setting("", "CHAPTERVERSE_ALLOWED_ORIGINS")
    allow_private: str = _setting("", "CHAPTERVERSE_ALLOW_PRIVATE")
    mcp: bool = _setting(False, "CHAPTERVERSE_MCP")
    enable_persona: bool = _setting(True, "CHAPTERVERSE_ENABLE_PERSONA")
    enable_faq: bool = _setting(True, "CHAPTERVERSE_ENABLE_FAQ")
    enable_memory: bool = _setting(True, "CHAPTERVERSE_ENABLE_MEMORY")
    enable_turn: bool = _setting(True, "CHAPTERVERSE_ENABLE_TURN")
    enable_summary: bool = _setting(True, "CHAPTERVERSE_ENABLE_SUMMARY")
    turn_top_k: int = _count(4, "CHAPTERVERSE_TURN_TOP_K", 20)
    faq_top_k: int = _count(2, "CHAPTERVERSE_FAQ_TOP_K", 10)
    memory_top_k: int = _count(3, "CHAPTERVERSE_MEMORY_TOP_K", 20)
    summary_top_k: int = _count(2, "CHAPTERVERSE_SUMMARY_TOP_K", 10)
    tools: str = _setting("", "CHAPTERVERSE_TOOLS")
    limiter: str = _setting("memory", "CHAPTERVERSE_LIMITER")
    rates: str = _setting("10/min,60/h,200/day", "CHAPTERVERSE_RATES")
    mcp_rates: str = _setting("120/min,2000/h,20000/day", "CHAPTERVERSE_MCP_RATES")
    daily_budget_usd: str = _setting("5", "CHAPTERVERSE_DAILY_BUDGET_USD")
    prices: str = _setting("", "CHAPTERVERSE_PRICES")
    economy_generator: str = _setting("", "CHAPTERVERSE_ECONOMY_GENERATOR")
    proof_of_work: bool = _setting(False, "CHAPTERVERSE_PROOF_OF_WORK")
    secrets_arn: str = _setting("", "CHAPTERVERSE_SECRETS_ARN")
    log_questions: bool = _setting(False, "CHAPTERVERSE_LOG_QUESTIONS")
    log_answers: bool = _setting(False, "CHAPTERVERSE_LOG_ANSWERS")
    cohere_url: str = _setting("https://api.cohere.com", "CHAPTERVERSE_COHERE_URL")
    cohere_api_key: str = _secret("COHERE_API_KEY")
    openai_url: str = _setting("https://api.openai.com", "CHAPTERVERSE_OPENAI_URL")
    openai_api_key: str = _secret("OPENAI_API_KEY")
    qdrant_url: str = _setting("", "QDRANT_URL")
    qdrant_api_key: str = _secret("QDRANT_API_KEY")
    preview_store: str = _setting("", "CHAPTERVERSE_PREVIEW_STORE")
    also: tuple[Any, ...] = ()
    pull_request: bool = False
    preview_of: str = ""
    tool_secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for f in fields(self):
            if "most" in f.metadata:
                _check_count(f.metadata["env"], getattr(self, f.name), f.metadata["most"])

    @property
    def disabled_types(self) -> frozenset[str]:
        """Document types that are neither indexed nor used."""
        switches = {"persona": self.enable_persona, "faq": self.enable_faq, "memory": self.enable_memory}
        return frozenset(kind for kind, on in switches.items() if not on)

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
        values = {name: str(getattr(self, field)) for name, field in secret_fields().items()} | dict(self.tool_secrets)
        return {name: value for name, value in values.items() if value}

    def with_secrets(self, secrets: Mapping[str, str]) -> Settings:
        """Return a copy in which these secrets, by variable, replace those that are not set."""
        missing = {field: secrets.get(name) for name, field in secret_fields().items() if not getattr(self, field)}
        tools = {name: value for name, value in secrets.items() if name.startswith(TOOL_SECRETS)}
        merged = tuple(sorted({**tools, **dict(self.tool_secrets)}.items()))
        return self.override(**missing, tool_secrets=merged)._for_pull_request()

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
        current = {f.name: getattr(self, f.name) for f in fields(self)}
        return Settings(**{**current, **{k: v for k, v in values.items() if v is not None}})

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, below: Mapping[str, Any] | None = None, **overrides: Any
    ) -> Settings:
        """Read the variables over the values `below`, then apply `overrides` that are not None.

        Raises:
            ConfigurationError: a switch is neither true nor false, or a count is out of its range.
        """
        env = os.environ if environ is None else environ
        tool_secrets = tuple(sorted((n, v) for n, v in env.items() if n.startswith(TOOL_SECRETS) and v))
        values: dict[str, Any] = {**(below or {}), "pull_request": _is_pull_request(env), "tool_secrets": tool_secrets}
        for f in SETTINGS.values():
            raw = env.get(f.metadata["env"])
            # CI systems set an empty variable for "not set".
            if raw:
                values[f.name] = _parse(f, raw)
        return cls(**values).override(**overrides)._for_pull_request()

    def _for_pull_request(self) -> Settings:
        """Return the settings for a pull request's build, which uses `preview_store` instead of a remote store."""
        if not (self.pull_request and self.preview_store) or self.store.startswith("edge:"):
            return self
        # A ledger server's rows belong to the site's own index.
        ledger = self.ledger if self.ledger.startswith("sqlite:") else ""
        return self.override(store=self.preview_store, ledger=ledger, preview_of=self.preview_of or self.store)


#: The settings that a variable may set, by name.
SETTINGS = {f.name: f for f in fields(Settings) if f.metadata}


def explain_unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence for each variable of ours that nothing reads, with the nearest that is read."""
    known = [f.metadata["env"] for f in SETTINGS.values()]
    ours = (name for name in sorted(os.environ if environ is None else environ) if name.startswith(_PREFIX))
    unknown = [n for n in ours if n not in known and n not in _READ_ELSEWHERE and not n.startswith(TOOL_SECRETS)]
    nearest = {name: difflib.get_close_matches(name, known, 1, 0)[0] for name in unknown}
    return [f"There is no variable {name[:60]!a}: the nearest is {nearest[name]}." for name in unknown]


def secret_fields() -> dict[str, str]:
    """Return the names of the secret settings by variable."""
    return {f.metadata["env"]: f.name for f in SETTINGS.values() if f.metadata.get("secret")}


def _is_pull_request(env: Mapping[str, str]) -> bool:
    return any(env.get(name) in values for name, values in _PULL_REQUEST.items()) or any(
        env.get(name) for name in _PULL_REQUEST_NUMBER
    )


def document_options(options: object) -> dict[str, Any]:
    """Return the settings of documents that a site's configuration makes: `enable_…` and `…_top_k`, by name.

    Raises:
        ConfigurationError: there is no such option, or it has an invalid value.
    """
    choices = {f.name: f for f in fields(Settings) if f.name.startswith("enable_") or "most" in f.metadata}
    if not isinstance(options, Mapping):
        raise ConfigurationError("The option 'documents' must be a mapping, such as `faq_top_k: 3`.")
    for name, value in options.items():
        if name not in choices:
            raise ConfigurationError(f"There is no option {str(name)[:60]!a} of documents: use {', '.join(choices)}.")
        if "most" in choices[name].metadata:
            _check_count(f"documents.{name}", value, choices[name].metadata["most"])
        elif not isinstance(value, bool):
            raise ConfigurationError(f"documents.{name} must be true or false.")
    return dict(options)


def _resolve(setting: str, scheme: str, root: Path) -> str:
    """Return SCHEME:PATH with the path resolved against `root`; a setting of another scheme stays."""
    kind, _, path = setting.partition(":")
    return f"{kind}:{root / Path(path).expanduser()}" if kind == scheme and path else setting


def _check_count(name: str, value: object, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise ConfigurationError(f"{name} must be a whole number from 1 to {most}.")


def _parse(setting: Field[Any], raw: str) -> Any:
    if "bool" in str(setting.type):
        return _switch(setting.metadata["env"], raw)
    if "most" not in setting.metadata:
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
