"""What the core and each room offer, as manifests of strings: `chapterverse.extensions` loads what they name.

A place is `module:object`. Nothing of a room is imported before it is used, so a room that is off costs nothing. It is
long because all rooms and settings stand in one literal table, which is read by looking up one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

_T = TypeVar("_T")

#: Variables of ours begin so.
PREFIX = "CHAPTERVERSE_"


@dataclass(frozen=True, slots=True)
class Setting(Generic[_T]):
    """A setting, as `chapterverse.toml` and a variable of the environment state it. `settings[SETTING]` is its value.

    Attributes:
        help: says what it does, in Markdown; links start at the folder of the docs.
        kind: a text, true or false, a whole number from 1 to `most`, or a text that no file may hold.
        prefix: of the variable; only a key or an address that other programs read too has none.
    """

    name: str
    default: _T
    help: str
    kind: Literal["text", "switch", "count", "secret"] = "text"
    most: int = 0
    prefix: str = PREFIX

    @property
    def variable(self) -> str:
        return self.prefix + self.name.upper()


@dataclass(frozen=True, slots=True)
class Command:
    """A command, by its place and the first line of its help.

    Attributes:
        group: the part of a site's life under which `--help` lists it; empty if it doesn't.
    """

    group: str
    place: str
    help: str


@dataclass(frozen=True, slots=True)
class Extension:
    """What a room offers.

    Attributes:
        offers: by setting, and by the form of a value (`cohere[:MODEL]`), a function of the settings and of what
            follows the colon, which opens what the value names. A form without a function names nothing to open.
        parts: by its name, what makes a part of the core's walk that one room has; only ours have some.
        lookups: by a type of documents, what looks them up before the pages are searched, where the index holds such
            documents; "" is always on.
        commands: by name.
        routes: the places of routers by the setting that switches them on; "" is always on.
        events: likewise those of functions that are called with each `AnswerGiven`.
        extra: the extra of our distribution that it needs besides `api`; only ours need one.
    """

    name: str
    settings: tuple[Setting[Any], ...] = ()
    offers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    lookups: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""


#: The core offers what needs no service, in the same way.
CORE = Extension(
    "core",
    settings=(
        Setting("store", "edge:.cache/plugin/chapterverse", "[Where the index lives](running/stores.md)."),
        Setting("site", "", "Name of the site's index, which a store of several sites requires."),
        Setting("docs_version", None, "Version of the docs, for sites with several. Mike sets `MIKE_DOCS_VERSION`."),
        Setting(
            "base_url",
            "",
            "Address of the site, to which citations are rewritten if the index has another; unset, from the pages.",
        ),
        Setting("endpoint", "", "[Address of the API](#endpoint) that the widget calls."),
        Setting(
            "publish",
            None,
            "Whether a clean build [writes the index](running/deploying.md#publish): unset, only an embedded one.",
            "switch",
        ),
        Setting(
            "preview_store",
            "",
            "Remote store for [builds of pull requests](running/deploying.md#previews), which have none without it.",
        ),
        Setting(
            "ledger",
            "",
            "Which files need no reading; unset, [a file for each store](running/stores.md#ledger).",
            "secret",
        ),
        Setting("embedder", "none", "The [model that makes dense vectors](how-it-works/embedders.md)."),
        Setting(
            "reading_model",
            "auto",
            "The [reading model](how-it-works/retrieval.md#reading): `auto` for the installed one, `none`, or a"
            " folder.",
        ),
        Setting(
            "reranker",
            "none",
            "The [reranker](how-it-works/retrieval.md#rerank) of the results; `local` is `none` too.",
        ),
        Setting(
            "generator", "extractive", "[What writes the answer](how-it-works/answers.md#models); `extractive` quotes."
        ),
        Setting(
            "checker",
            "words",
            "The [second vote](how-it-works/citations.md#second-vote) on undecided citations; `words` asks no model.",
        ),
        Setting("signing_key", "", "[Signs answers](#signing-key); unset, random for each process.", "secret"),
        Setting(
            "allowed_origins", "", "[Sites that may ask](#origins), separated by commas; unset, only the same origin."
        ),
        Setting("limiter", "memory", "[What counts requests and money](running/limits.md#limiter)."),
        Setting(
            "rates",
            "10/min,60/h,200/day",
            "[How often one reader may ask](running/limits.md#rates); `off` for no limit.",
        ),
        Setting(
            "log_questions",
            False,
            "Writes questions and comments on ratings into [the log](reference/http-api.md#log).",
            "switch",
        ),
        Setting("log_answers", False, "Writes answers into [the log](reference/http-api.md#log).", "switch"),
    ),
    offers={
        "store": {"edge:PATH": "chapterverse.store.edge:EdgeStore.from_settings"},
        "ledger": {"sqlite:PATH": "chapterverse.ledger:Ledger.from_settings"},
        "embedder": {"none": ""},
        "enricher": {"none": ""},
        "reranker": {"none": "", "local": ""},
        "generator": {"extractive": "chapterverse_api.draft.extractive:Extractive.from_settings"},
        "checker": {"words": ""},
        "limiter": {"memory": "chapterverse_api.limits:MemoryLimiter.from_settings"},
    },
    commands={
        "index": Command("Build", "chapterverse.cli.index:index", "Update the index to hold exactly this site."),
        "inject": Command(
            "Build",
            "chapterverse.cli.site:inject",
            "Put the chat into every page of a built site, and write files for agents.",
        ),
        "widget": Command(
            "Build",
            "chapterverse.cli.site:widget",
            "Write the chat's files into a folder, and print the script tag for the pages.",
        ),
        "search": Command("Ask", "chapterverse_api.commands:search", "List the chunks that a question finds."),
        "ask": Command("Ask", "chapterverse_api.commands:ask", "Answer a question, or explain a text."),
    },
    events={"": "chapterverse_api.answer.event:measure"},
)

EXTENSIONS = (
    CORE,
    Extension(
        "server",
        parts={
            "server": "chapterverse_api.ext.server.server:server",
            "static_site": "chapterverse_api.ext.server.static_site:StaticSite",
        },
        commands={
            "serve": Command(
                "Ask", "chapterverse_api.ext.server.command:serve", "Run the API, and optionally serve the site."
            )
        },
    ),
    Extension(
        "sources",
        parts={
            "also_entries": "chapterverse.ext.sources.entries:parse_entries",
            "also": "chapterverse.ext.sources.external_sources:collect_external",
            "single_source": "chapterverse.ext.sources.single_source:add_source",
            "markdown_folder": "chapterverse.ext.sources.markdown_folder:read_markdown_folder",
        },
    ),
    Extension(
        "site_check",
        commands={
            "check": Command(
                "Build", "chapterverse.ext.site_check.command:check", "Report mistakes in a built site and its index."
            ),
            "status": Command("Operate", "chapterverse.ext.site_check.status_command:status", "Show what is indexed."),
        },
    ),
    Extension(
        "transfer",
        commands={
            "export": Command("Operate", "chapterverse.ext.transfer.command:export", "Write an index to a file."),
            "import": Command(
                "Operate",
                "chapterverse.ext.transfer.command:import_",
                "Make an index hold exactly the content of a file.",
            ),
            "repair": Command(
                "Operate",
                "chapterverse.ext.transfer.command:repair",
                "Remove what no live index uses, and rebuild a lost ledger from the index.",
            ),
            "unpublish": Command(
                "",
                "chapterverse.ext.transfer.command:unpublish",
                "Remove a site's index, or that of one docs version, from the store.",
            ),
        },
    ),
    Extension(
        "npm",
        commands={
            "publish": Command("", "chapterverse.ext.npm:publish", "Put the chat into a built site and index it."),
            "preview": Command(
                "",
                "chapterverse.ext.npm:preview",
                "Run the API beside a generator's own preview, for its plugin.",
            ),
        },
    ),
    Extension(
        "knowledge",
        settings=(
            Setting(
                "knowledge",
                "",
                "Folder of [FAQ and memory files](#knowledge) to index; unset, `knowledge` in the docs.",
            ),
            Setting("persona", "", "File to index that tells the chat [how to speak](#persona); unset, `persona.md`."),
            *(
                Setting(f"enable_{kind}", True, "See [documents](#documents).", "switch")
                for kind in ("persona", "faq", "memory")
            ),
            *(
                Setting(f"{kind}_top_k", default, "See [documents](#documents).", "count", most)
                for kind, default, most in (("faq", 2, 10), ("memory", 3, 20))
            ),
        ),
        parts={
            "documents": "chapterverse.ext.knowledge.folder:KnowledgeFiles.find",
            "repeated_questions": "chapterverse.ext.knowledge.entries:repeated_questions",
            "validate_chunk": "chapterverse.ext.knowledge.metadata:validate_chunk",
            "document_schemas": "chapterverse.ext.knowledge.metadata:get_schemas",
            "persona": "chapterverse.ext.knowledge.entries:persona_of",
            "unmatched_entries": "chapterverse.ext.knowledge.commands:list_unmatched",
            "weigh_memories": "chapterverse_api.ext.knowledge.memories:weigh_memories",
        },
        lookups={
            "faq": "chapterverse_api.ext.knowledge.faq:look_up",
            "memory": "chapterverse_api.ext.knowledge.memories:look_up",
        },
        commands={
            "remember": Command(
                "Operate",
                "chapterverse.ext.knowledge.commands:remember",
                "Write a fact for the chat into a file beside your docs, or remove one.",
            ),
            "schema": Command(
                "Operate",
                "chapterverse.ext.knowledge.commands:schema",
                "Print the fields of a document type, or of all.",
            ),
        },
    ),
    Extension("leases"),
    Extension(
        "net",
        settings=(
            Setting(
                "allow_private",
                "",
                "Private servers to fetch from, also by plain HTTP: `host:port,host:port`."
                " All others need HTTPS and a public address.",
            ),
        ),
    ),
    Extension("embedders"),
    Extension(
        "check",
        parts={"without_foreign": "chapterverse_api.ext.check.links.address_filter:without_foreign"},
    ),
    Extension(
        "budget",
        settings=(
            Setting(
                "daily_budget_usd",
                "5",
                "[What models may cost a site in a day](running/limits.md#budget), in US dollars; `off` for no limit.",
            ),
            Setting(
                "prices",
                "",
                "[Prices of models](running/limits.md#prices) that differ from the list, or that it lacks.",
            ),
            Setting(
                "economy_generator",
                "",
                "The generator from 80 % of the day's budget on; unset, a cheaper one of Cohere's, else the usual.",
            ),
        ),
        parts={
            "meter": "chapterverse_api.ext.budget.meter:Meter.open",
            "circuit_breaker": "chapterverse_api.ext.budget.circuit_breaker:CircuitBreaker",
        },
    ),
    Extension(
        "models",
        parts={
            "write_draft": "chapterverse_api.ext.models.drafting:write_draft",
            "check_quotes": "chapterverse_api.ext.models.drafting:check_quotes",
            "without_waste": "chapterverse_api.ext.models.prompt_room:without_waste",
            "fill_room": "chapterverse_api.ext.models.prompt_room:fill_room",
            "rewrite": "chapterverse_api.ext.models.rewriting:rewrite",
            "tool_rounds": "chapterverse_api.ext.models.tool_rounds:TurnRounds",
        },
    ),
    Extension(
        "qdrant",
        settings=(
            Setting("qdrant_url", "", "The server of the store `qdrant:` without an address.", prefix=""),
            Setting("qdrant_api_key", "", "The key of a Qdrant server.", "secret", prefix=""),
        ),
        offers={"store": {"qdrant[:URL]": "chapterverse.ext.qdrant.store:QdrantStore.from_settings"}},
    ),
    Extension("s3", offers={"store": {"s3://BUCKET/PREFIX": "chapterverse.ext.s3.store:S3Store.from_settings"}}),
    Extension(
        "conversations",
        settings=(
            Setting("records", "", "Where [conversations are kept](#records), if at all.", "secret"),
            Setting("records_days", "30", "Days for which a conversation is kept, 1 to 3650."),
            *(
                Setting(f"enable_{kind}", True, "See [documents](#documents).", "switch")
                for kind in ("turn", "summary")
            ),
            *(
                Setting(f"{kind}_top_k", default, "See [documents](#documents).", "count", most)
                for kind, default, most in (("turn", 4, 20), ("summary", 2, 10))
            ),
        ),
        offers={"records": {"sqlite:PATH": "chapterverse_api.ext.conversations.table:RecordsTable.from_settings"}},
        parts={"conversations": "chapterverse_api.ext.conversations.threads:open_threads"},
        commands={
            "feedback": Command(
                "Measure",
                "chapterverse_api.ext.conversations.commands:feedback",
                "Print readers' ratings of answers, newest first.",
            ),
            "forget": Command(
                "Operate",
                "chapterverse_api.ext.conversations.commands:forget",
                "Forget a conversation, or all old ones.",
            ),
        },
        # A secret may still name the database.
        routes=dict.fromkeys(("records", "secrets_arn"), "chapterverse_api.ext.conversations.routes:router"),
    ),
    Extension(
        "limiter",
        offers={"limiter": {"sqlite:PATH": "chapterverse_api.ext.limiter.sqlite:SqliteLimiter.from_settings"}},
    ),
    Extension(
        "postgres",
        extra="postgres",
        offers={
            "ledger": {"postgres[ql]://USER:PASSWORD@HOST/NAME": "chapterverse.ext.postgres.ledger:open_ledger"},
            "records": {"postgres[ql]://USER:PASSWORD@HOST/NAME": "chapterverse_api.ext.postgres:open_records"},
        },
    ),
    Extension(
        "aws",
        settings=(
            Setting(
                "secrets_arn",
                "",
                "[Where AWS keeps secrets](running/operating.md#secrets): ARNs of Secrets Manager or Parameter Store,"
                " separated by commas.",
            ),
        ),
        parts={
            "secrets_arn": "chapterverse.ext.aws.secrets:resolve_secrets",
            "metrics": "chapterverse_api.ext.aws.metrics:write_metrics",
        },
    ),
    Extension(
        "dynamodb",
        offers={
            "records": {"dynamodb:TABLE": "chapterverse_api.ext.dynamodb.records:DynamoRecords.from_settings"},
            "limiter": {"dynamodb:TABLE": "chapterverse_api.ext.dynamodb.limiter:DynamoLimiter.from_settings"},
        },
    ),
    Extension(
        "cohere",
        settings=(
            Setting("cohere_url", "https://api.cohere.com", "Address of Cohere's API, without `/v2`."),
            Setting("cohere_api_key", "", "The key of Cohere's API.", "secret", prefix=""),
        ),
        offers={
            "embedder": {"cohere[:MODEL]": "chapterverse.ext.cohere.embedder:CohereEmbedder.from_settings"},
            "reranker": {"cohere[:MODEL]": "chapterverse_api.ext.cohere.reranker:CohereReranker.from_settings"},
            "generator": {"cohere[:MODEL]": "chapterverse_api.ext.cohere.generator:CohereGenerator.from_settings"},
        },
    ),
    Extension(
        "openai",
        settings=(
            Setting(
                "openai_url",
                "https://api.openai.com",
                "Address of OpenAI's API or of a server with its interface, without `/v1`, for embedder, generator"
                " and checker; [other addresses](how-it-works/answers.md#addresses) are used as they are.",
            ),
            Setting("openai_api_key", "", "The key of that server.", "secret", prefix=""),
        ),
        offers={
            "embedder": {"openai:MODEL": "chapterverse.ext.openai.embedder:OpenAIEmbedder.from_settings"},
            "generator": {"openai:MODEL": "chapterverse_api.ext.openai.generator:OpenAIGenerator.from_settings"},
            "checker": {"openai:MODEL": "chapterverse_api.ext.openai.checker:OpenAIChecker.from_settings"},
        },
        parts={"cold_models": "chapterverse_api.ext.openai.model_loader:load_models"},
    ),
    Extension(
        "bedrock",
        extra="aws",
        offers={
            "embedder": {"bedrock:MODEL": "chapterverse.ext.bedrock.embedder:BedrockEmbedder.from_settings"},
            "reranker": {"bedrock:MODEL": "chapterverse_api.ext.bedrock.reranker:BedrockReranker.from_settings"},
            "generator": {"bedrock:MODEL": "chapterverse_api.ext.bedrock.generator:BedrockGenerator.from_settings"},
            "checker": {
                "bedrock:guardrail/ID[:VERSION]": "chapterverse_api.ext.bedrock.checker:GuardrailChecker.from_settings"
            },
        },
    ),
    Extension(
        "fastembed",
        extra="local",
        offers={
            "embedder": {"fastembed:MODEL-or-PATH": "chapterverse.ext.fastembed.embedder:FastEmbedder.from_settings"}
        },
    ),
    Extension(
        "enrichment",
        settings=(
            Setting(
                "enricher",
                "none",
                "The [enricher](how-it-works/enrichment.md), a model that a build asks about changed pages.",
            ),
        ),
        offers={
            "enricher": dict.fromkeys(
                ("cohere:MODEL", "openai:MODEL", "bedrock:MODEL"),
                "chapterverse.ext.enrichment.setting:EnricherSetting.from_settings",
            )
        },
    ),
    Extension(
        "work",
        settings=(
            Setting(
                "proof_of_work",
                False,
                "Whether readers must [solve a challenge](running/limits.md#work) for each question after half of a"
                " limit.",
                "switch",
            ),
        ),
        parts={"proof_of_work": "chapterverse_api.ext.work.proof_of_work:ProofOfWork"},
    ),
    Extension(
        "evaluation",
        parts={"questions": "chapterverse_api.ext.evaluation.questions:read_questions"},
        commands={
            "eval": Command(
                "Measure",
                "chapterverse_api.ext.evaluation.eval_command:eval_",
                "Measure how well questions are answered.",
            ),
            "calibrate": Command(
                "Measure",
                "chapterverse_api.ext.evaluation.calibrate_command:calibrate",
                "Fit refusals to readers' questions.",
            ),
            "trace": Command(
                "Measure", "chapterverse_api.ext.evaluation.trace_command:trace", "Show how a question is answered."
            ),
        },
    ),
    Extension(
        "report",
        settings=(
            Setting(
                "report",
                False,
                "[Ask readers' questions again](running/report.md#again) when the index changes.",
                "switch",
            ),
            Setting(
                "report_token",
                "",
                "By it agents read [what your docs lack](running/report.md#agents) at `/mcp`.",
                "secret",
            ),
        ),
        parts={"report": "chapterverse.ext.report.command:after_build"},
        commands={
            "report": Command(
                "Measure", "chapterverse.ext.report.command:report", "Show what readers ask, and what the docs lack."
            )
        },
    ),
    Extension(
        "agents",
        settings=(
            Setting(
                "schemas",
                "schemas",
                "Folder of JSON Schemas, `NAME.json`, for [answers with data](reference/http-api.md#data);"
                " `make package` packs `schemas` for Lambda.",
            ),
            Setting(
                "tools",
                "",
                "File of [the tools](reference/tools.md) that a model may call; `CHAPTERVERSE_TOOL_…` hold secrets"
                " for their headers.",
            ),
            Setting("mcp", False, "Whether [agents may ask](reference/mcp.md), at `/mcp`.", "switch"),
            Setting(
                "mcp_rates",
                "120/min,2000/h,20000/day",
                "[How often programs may call](reference/mcp.md#rates) at `/mcp` from one address.",
            ),
        ),
        parts={
            "plans": "chapterverse_api.ext.agents.plans.requests:plan_for_owner",
            "plan_walk": "chapterverse_api.ext.agents.plans.requests:walk_plan",
            "schemas": "chapterverse_api.ext.agents.data:SchemaAnswer",
            "tools": "chapterverse_api.ext.agents.tools.site_tools:open_tools",
        },
        commands={
            "mcp": Command(
                "Ask",
                "chapterverse_api.ext.agents.command:mcp",
                "Answer a program over the Model Context Protocol.",
            )
        },
        routes={
            "": "chapterverse_api.ext.agents.routes:router",
            "mcp": "chapterverse_api.ext.agents.mcp.route:router",
        },
    ),
)

#: The settings of ours, by name.
SETTINGS = {setting.name: setting for extension in EXTENSIONS for setting in extension.settings}

#: The parts of a site's life by which `--help` lists the commands.
GROUPS = ("Build", "Ask", "Measure", "Operate")
