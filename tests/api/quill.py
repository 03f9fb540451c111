"""A small documentation of a site builder called Quill in a real index, and an embedder without a model."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from chapterverse.embedding import Embedder, Vector
from chapterverse.errors import ProviderError
from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.extensions import open_offer
from chapterverse.indexing import sync
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import EmbedderCard, Page, Scope, Source
from chapterverse.settings import Settings
from chapterverse.store import Store, open_store
from chapterverse.text import lexical
from chapterverse_api.answer.resources import Models, Resources
from chapterverse_api.contract import AnswerEvent, ChatQuery, ChatResponse, Delta, Meta, ToolUse, dump
from chapterverse_api.draft.draft import AnswerGenerator
from chapterverse_api.ext.budget.daily_budget import DailyBudget, TurnBudget
from chapterverse_api.ext.budget.meter import Meter
from chapterverse_api.ext.evaluation.session import EvaluationSession
from chapterverse_api.search.rerankers import Reranker as Ranks
from chapterverse_api.service import Service

SCOPE = Scope("quill")
BASE = "https://quill.example.com/docs/"

INSTALL = """# Installing Quill

Quill runs on Linux, macOS and Windows.

## With a package manager

To install Quill, run:

```sh
brew install quill
```

On Windows the same release comes from `winget`.

## From source

Clone the repository and run `make quill`. A compiler for Go 1.22 is needed.

## Uninstalling

Remove the binary and the folder `~/.quill`.
"""

CACHE = """# Caching

Quill keeps the result of every render, so that a second build is fast.

## Cache location

The cache lives in `.quill/cache` unless `QUILL_CACHE_DIR` names another folder.

## Clearing the cache

- `quill cache clean` removes every entry.
- `quill cache prune` removes the entries that no page uses any more.
- `quill cache size` prints how many bytes the cache takes.

!!! warning

    Clearing the cache while a build runs makes that build fail.
"""

DEPLOY = """# Deploying

A built site is a folder of files; any web server can serve it.

## To object storage

Upload the folder `public/` with `quill deploy --bucket NAME`. The bucket must allow public reads.

## Rolling back

Each deployment is numbered. `quill deploy --to 41` makes deployment 41 live again, within 30 days.
"""

THEMES = """# Themes

A theme is a folder of templates.

## Changing colors

Set `palette.primary` in `quill.toml`:

```toml
[palette]
primary = "teal"
accent = "amber"
```

| option | default | meaning |
| --- | --- | --- |
| `palette.primary` | `indigo` | color of the header |
| `palette.accent` | `pink` | color of links and buttons |

## Dark mode

Dark mode follows the reader's system. Set `palette.scheme` to `light` to turn it off.
"""

SEARCH = """# Search

Search works in the browser and sends nothing to a server.

## Languages

Stemming is built in for English, German and French.
"""

PLUGINS = """# Plugins

A plugin is a program that reads a page from standard input and writes it to standard output.

## Writing a plugin

Name the program in `quill.toml` under `plugins`. It gets the page as JSON and must answer within five seconds.

## Debugging a plugin

Start the build with `--trace`: what a plugin writes to standard error is then shown with its name.
"""

PAGES = {
    "install.md": INSTALL,
    "cache.md": CACHE,
    "deploy.md": DEPLOY,
    "themes.md": THEMES,
    "search.md": SEARCH,
    "plugins.md": PLUGINS,
}


def page(path: str, text: str, base: str = BASE, language: str = "en") -> Page:
    """Return a page as a build with MkDocs' addresses would offer it, its anchors seen."""
    read = read_markdown(text, path)
    sections = tuple(replace(section, anchor_verified=True) for section in read.sections)
    kind = "home" if path == "index.md" else "documentation"
    return Page(path, f"{base}{path.removesuffix('.md')}/", read.title, language, sections, kind)


def source(path: str, text: str, base: str = BASE, language: str = "en") -> Source:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Source(
        path,
        digest,
        f"{base} {language}",
        lambda: page(path, text, base, language),
        url=page(path, text, base, language).url,
    )


def publish(
    root: Path,
    pages: Mapping[str, str] = PAGES,
    *,
    embedder: Embedder | None = None,
    scope: Scope = SCOPE,
    base: str = BASE,
    languages: Mapping[str, str] = {},
) -> Settings:
    """Index the pages below `root` and return the settings that read them."""
    settings = Settings(store=f"edge:{root}")
    target = Target(
        scope,
        open_store(settings),
        open_ledger(settings),
        embedder,
        ChunkSizes(),
        base,
    )
    sources = [source(path, text, base, languages.get(path, "en")) for path, text in pages.items()]
    sync.index(sources, target)
    return settings


def service(
    settings: Settings,
    *,
    store: Store | None = None,
    embedder: Embedder | None = None,
    generator: AnswerGenerator | None = None,
    reranker: Ranks | None = None,
) -> EvaluationSession:
    """Return the service over these parts; the settings define the others, without a reranker."""
    named = Models.open(settings.override(embedder="none", reranker="none", generator="extractive"))
    generator = generator or open_offer("generator", settings)
    models = replace(named, embedder=embedder, reranker=reranker, generator=generator)
    return EvaluationSession(Resources.open(settings, store, models))


def changed(service: Service, *, budget: DailyBudget | None = None, **models: Any) -> EvaluationSession:
    """Return the service with another budget, or other models (fields of `Models`)."""
    resources = service.resources
    meter = replace(meter_of(service), budget=budget) if budget else resources.meter
    return EvaluationSession(replace(resources, models=replace(resources.models, **models), meter=meter))


def meter_of(service: Service) -> Meter:
    """Return the meter of a service with a model."""
    meter = service.resources.meter
    assert isinstance(meter, Meter)
    return meter


def paid_from(budget: TurnBudget, service: Service) -> Models:
    """Return the models that a turn with this budget may use."""
    return meter_of(service).paid_from(budget, service.resources.models)


def ask(service: Service, query: str | None = None, **fields: object) -> ChatResponse:
    """Return the answer, after checking what holds of every answer."""
    return whole(service.chat(ChatQuery.model_validate({"query": query, **fields})))


def whole(events: Iterable[AnswerEvent]) -> ChatResponse:
    """Return the last event of an answer, after checking what holds of every answer."""
    first, *between, last = events
    drafted = [event for event in between if not isinstance(event, ToolUse)]
    assert isinstance(first, Meta)
    assert isinstance(last, ChatResponse)
    assert all(isinstance(event, Delta) for event in drafted)
    sent = {s.id: s for s in first.sources}
    if any(isinstance(event, ToolUse) and event.ok for event in between):
        sent = {s.id: s for s in last.source_chunks} | sent
    cited = {i for segment in last.segments for i in segment.citations}
    assert cited <= sent.keys()
    assert all(sent[s.id] == s for s in last.source_chunks)
    assert "".join(s.text for s in last.segments) == last.response
    # What was shown stays.
    assert [dump(d) for d in drafted] == ([dump(s) for s in last.segments] if drafted else [])
    assert all((s.check == "confirmed") == bool(s.citations) for s in last.segments)
    assert set(last.sources_cited) == {s.url for s in last.source_chunks if s.id in cited and s.url}
    assert (last.turn_id, last.mode) == (first.turn_id, first.mode)
    return last


class Terms:
    """A deterministic embedder: a text's terms folded into 64 dimensions, with what a test says means the same.

    Attributes:
        down: raises as an API that can't be reached does.
    """

    price = 0.0

    def __init__(self, same: Mapping[str, str] = {}, size: int = 64) -> None:
        self.card = EmbedderCard("terms", size, 0, f"terms-{size}")
        self.down = False
        self.asked: list[str] = []
        self._same = dict(same)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        if self.down:
            raise ProviderError("The embedder can't be reached.", retryable=True)
        return self._vector(text)

    def _vector(self, text: str) -> Vector:
        values = [0.0] * self.card.size
        for word in lexical.words(text):
            meant = self._same.get(word.surface, word.surface)
            for term in next(lexical.words(meant)).terms:
                values[term % self.card.size] += 1.0
        norm = math.sqrt(sum(v * v for v in values)) or 1.0
        return tuple(v / norm for v in values)


class Reranker:
    """A reranking model that answers from a queue, with relevances by section or an error, and has a memory."""

    name = "scripted:1"

    def __init__(self, *answers: Mapping[str, float] | Exception) -> None:
        self.queue = deque(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((question, tuple(texts)))
        answer = self.queue.popleft()
        if isinstance(answer, Exception):
            raise answer
        return [max((v for section, v in answer.items() if section in text), default=0.0) for text in texts]


def renamed(embedder: Terms, space: str) -> Terms:
    """Return the embedder as one of another vector space."""
    other = Terms(size=embedder.card.size)
    other.card = replace(embedder.card, name=space, space=space)
    return other
