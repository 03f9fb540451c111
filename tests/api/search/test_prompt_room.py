from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from api import quill
from chapterverse.model import FAQ, Chunk
from chapterverse.text import lexical
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.contract import ChatQuery
from chapterverse_api.ext.models.prompt_room import fill_room, find_around, without_waste
from chapterverse_api.ext.models.prompts import render_sources
from chapterverse_api.search.passages import make_passages
from chapterverse_api.search.ranking import Candidate
from fakes.openai_server import KEY, OpenAIServer

SSO = (
    "To set up single sign-on with {name}, create an application, copy its client id and its secret, and paste both of "
    "them into the form of your organization. Then choose who may enter, and test the connection with one account."
)
QUEUES = """# Queues

## Retention

Messages are kept for nine days.

### Archive

Old rows move to cold storage.

## Throughput

Forty megabytes a second.
"""
DUMPS = """# Dumps

Press <kbd>Ctrl</kbd> for a <b class="x">dump</b> of one table of the database.
Call pg_dump -t \\<table\\> or cp &lt;source&gt;, and put ``<div title='`'>`` around.
"""
PAGES = {**quill.PAGES, "queues.md": QUEUES, "dumps.md": DUMPS}


def chunk(text: str, *path: str, index: int = 0, kind: str = "documentation") -> Chunk:
    url = f"https://a.example/#{'-'.join(path)}"
    return Chunk(
        str(hash((text, path))), "", text, path[0], path[-1], path, index, "a.md", url, True, "a.example", kind
    )


def candidate(one: Chunk, **components: float) -> Candidate:
    return Candidate(one, lexical.document_vector(one.heading_path, one.text), 1.0, 1.0, components, None)


def context_of(root: Path, question: str, *, model: bool, **fields: Any) -> Sources:
    settings = quill.publish(root, PAGES)
    with OpenAIServer() as server:
        own = {"generator": "openai:gpt-4.1-mini", "openai_url": server.url, "openai_api_key": KEY} if model else {}
        resources = quill.service(settings.override(**own)).resources
        return Turn.open(ChatQuery(query=question, **fields), resources).search()


def test_a_prompt_holds_what_stands_around_the_best_section(tmp_path: Path) -> None:
    question = "How long is the retention of messages?"
    quoted, read = (context_of(tmp_path / str(model), question, model=model) for model in (False, True))
    paths = [passage.path for passage in read.request.passages]
    best = paths.index(("Queues", "Retention"))
    assert best == 0
    assert ("Queues", "Throughput") in paths
    assert paths.index(("Queues", "Retention", "Archive")) < paths.index(("Queues", "Throughput"))
    assert [p.id for p in read.request.passages] == [str(n) for n in range(1, len(paths) + 1)]
    assert len(set(paths)) == len(paths) == len(read.shown)
    assert len(paths) > len(quoted.request.passages)


def test_what_stands_around_keeps_to_the_readers_filters(tmp_path: Path) -> None:
    url = f"{quill.BASE}queues/#retention"
    found = context_of(tmp_path, "How long is the retention of messages?", model=True, filters={"url": url})
    assert [passage.url for passage in found.request.passages] == [url]


def test_no_entry_of_a_faq_stands_around_another() -> None:
    entries = [replace(chunk(f"Answer {n}.", "FAQ", f"Question {n}?", index=n), type=FAQ) for n in range(3)]
    best = candidate(entries[0])
    passages = make_passages([best], lambda c: c.url, {"a.md": entries})
    assert fill_room([best], passages, {"a.md": entries}, lambda c: c.url, lambda _: True) == []


def test_children_come_before_siblings() -> None:
    page = [
        chunk("Top says one.", "Page"),
        chunk("Best says two.", "Page", "Best", index=1),
        chunk("Child says three.", "Page", "Best", "Child", index=2),
        chunk("Sibling says four.", "Page", "Sibling", index=3),
        chunk("Headings", "Page", "Headings", index=4),
        chunk("\n".join(f"- `name_{n}`" for n in range(40)), "Page", "Index", index=5),
    ]
    around = [c.chunk.heading_path[-1] for c in find_around(candidate(page[1]), page)]
    assert around == ["Best", "Child", "Page", "Sibling"] or around == ["Best", "Child", "Sibling"]


def test_copies_headings_and_lists_take_no_room() -> None:
    okta, auth0 = (chunk(SSO.format(name=name), "Sign-on", "Set up", name) for name in ("Okta", "Auth0"))
    names = chunk("\n".join(f"- `name_{n}`" for n in range(40)), "API", "Names")
    news = chunk("Sign-on was added in this release.", "Changes", "Release", kind="news")
    last = chunk("Sign-on needs a plan with teams.", "Plans", "Teams")
    given = [candidate(names), candidate(news, kind=1.0), candidate(okta), candidate(auth0), candidate(last)]
    kept = [c.chunk for c in without_waste(given)]
    assert kept == [okta, last, names, news]
    # Who asks for changes gets them in their place.
    assert [c.chunk for c in without_waste([candidate(news), candidate(last)])] == [news, last]
    assert without_waste([candidate(chunk("Set up", "Sign-on", "Set up"))]) == []


def test_a_prompt_has_no_tags_and_keeps_what_looks_like_one(tmp_path: Path) -> None:
    question = "How do I dump one table of the database?"
    request = context_of(tmp_path, question, model=True).request
    prompt = render_sources(request, "n")
    assert "Press Ctrl for a **dump** of one table" in prompt
    assert "Call pg_dump -t <table> or cp <source>, and put ``<div title='`'>`` around." in prompt
