"""What the chat makes of FAQ entries and memories."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from api import quill
from chapterverse.cli import app
from chapterverse.ext.transfer import maintenance
from chapterverse.filters import EVERYTHING
from chapterverse.indexing.apply import publishing
from chapterverse.model import PAGE
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, ChatResponse, Message
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.knowledge import faq
from chapterverse_api.ext.knowledge.memories import select_memories
from chapterverse_api.service import Service
from ext.knowledge.test_documents import index, target, write

OURS = phrases.for_language("en").curated
ORDERS = """---
page: install.md
---
# Orders

## Who ships ordered zeppelins?

Ask the *harbour office*, see [the list](https://elsewhere.example/).

## How long does a refund take?

Fourteen days.
"""
PRIVATE = "---\nscope: entity:enterprise\n---\n# May I ship zeppelins abroad?\n\nOnly with the enterprise edition."


class Counting:
    """A model that says what it is told to and keeps what it was asked."""

    name = "counting"

    def __init__(self, text: str = "Run `quill cache clean` [1].") -> None:
        self.text = text
        self.requests: list[GenerationRequest] = []

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        self.requests.append(request)
        yield Span(self.text)


def snapshot(root: Path) -> Snapshot:
    return target(root).store.snapshot(quill.SCOPE)


def ask(root: Path, question: str, model: Counting | None = None, **fields: object) -> ChatResponse:
    settings = Settings(store=f"edge:{root / 'index'}")
    service = quill.service(settings, generator=model) if model else Service.open(settings)
    *_, answer = service.chat(ChatQuery.model_validate({"query": question, **fields}))
    assert isinstance(answer, ChatResponse)
    return answer


def publish(root: Path) -> Path:
    write(root, {"faq/orders.md": ORDERS, "faq/abroad.md": PRIVATE})
    index(root)
    return root


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize(
    "question", ["Who ships ordered zeppelins?", "who ships ordered zeppelins", "which office ships ordered zeppelins"]
)
def test_an_entry_answers_word_for_word_under_its_authors_name(site: Path, question: str) -> None:
    model = Counting()
    answer = ask(site, question, model)
    assert model.requests == []
    label, path, text = answer.segments
    assert (label.text, label.kind) == (f"{OURS}\n\n", "framing")
    assert (path.text, path.kind) == ("**Orders › Who ships ordered zeppelins?**\n\n", "framing")
    assert (text.kind, text.check, text.citations) == ("quote", "confirmed", ["1"])
    assert text.text == "Ask the *harbour office*, see the list."
    assert (answer.status, answer.mode, answer.grounding_confidence) == ("answered", "rag", 1.0)
    assert answer.sources_cited == [answer.source_chunks[0].url] == [f"{quill.BASE}install/"]


def test_an_entry_without_a_page_has_no_link(tmp_path: Path) -> None:
    write(tmp_path, {"faq/a.md": "# Who ships ordered zeppelins?\n\nThe harbour office."})
    index(tmp_path)
    answer = ask(tmp_path, "Who ships ordered zeppelins?")
    assert (answer.sources_cited, answer.source_chunks[0].url) == ([], None)
    assert answer.response.endswith("The harbour office.")


def test_an_entry_whose_markup_goes_answers_all_the_same(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"faq/a.md": "# Who ships ordered zeppelins?\n\nYes! <b>Hello</b>. Thanks. Good luck. You are welcome."},
    )
    index(tmp_path)
    answer = ask(tmp_path, "Who ships ordered zeppelins?")
    assert answer.status == "answered"
    assert answer.response.endswith("Yes! Hello. Thanks. Good luck. You are welcome.")


@pytest.mark.parametrize("question", ["Are zeppelins painted before they are sold?", "How do I clear the cache?"])
def test_another_question_gets_no_entry(site: Path, question: str) -> None:
    assert OURS not in ask(site, question).response


def test_a_follow_up_and_a_selection_get_none(site: Path) -> None:
    said = [Message(role="user", content="How do I install it?"), Message(role="assistant", content="With brew.")]
    history = [message.model_dump(exclude_none=True) for message in said]
    assert OURS not in ask(site, "And how long does that refund take?", conversation_history=history).response
    assert OURS not in ask(site, "How long does a refund take?", selected_text="A refund takes long.").response


def test_a_mistyped_question_tells_what_was_searched(site: Path) -> None:
    answer = ask(site, "How long does a refnud take?")
    assert OURS in answer.response
    assert answer.searched_as is not None
    assert (answer.searched_as.query, answer.searched_as.reason) == ("How long does a refund take?", "corrected")


def test_a_filter_holds_for_entries_too(site: Path) -> None:
    assert OURS not in ask(site, "How long does a refund take?", filters={"type": "page"}).response


def test_an_entitys_entry_needs_its_name(site: Path) -> None:
    question = "May I ship zeppelins abroad?"
    assert "enterprise" not in ask(site, question).response
    assert "enterprise" not in ask(site, question, entity="community").response
    assert "Only with the enterprise edition." in ask(site, question, entity="enterprise").response


@pytest.mark.parametrize("entity", ["a/b", "", " ", "a" * 65, "entity:x"])
def test_the_name_of_an_entity(entity: str) -> None:
    with pytest.raises(ValidationError, match="must be 1 to 64 letters, digits, spaces"):
        ChatQuery(query="Who?", entity=entity)
    assert ChatQuery(query="Who?", entity="Enterprise 2.0").entity == "Enterprise 2.0"


def test_the_own_question_of_an_entry_is_certain_and_no_question_is_none(site: Path) -> None:
    found = faq.find_entry("  WHO ships ordered zeppelins ", snapshot(site), EVERYTHING)
    assert found is not None
    assert found.probability == 1.0
    assert faq.find_entry("what is it", snapshot(site), EVERYTHING) is None
    assert [f for f in faq.score_entries("who ships it", snapshot(site), EVERYTHING) if f.probability == 1.0] == []


def test_a_memory_informs_a_model_and_is_no_source(tmp_path: Path) -> None:
    write(tmp_path, {"memory/cache.md": "Clearing the cache also resets every wumpus counter of a zeppelin fleet."})
    index(tmp_path)
    question = "How do I clear the cache?"
    model = Counting("`quill cache clean` removes every entry [1]. It resets every wumpus counter [2].")
    answer = ask(tmp_path, question, model)
    [request] = model.requests
    assert request.memories == ("Clearing the cache also resets every wumpus counter of a zeppelin fleet.",)
    assert all("wumpus" not in passage.section for passage in request.passages)
    assert all("wumpus" not in source.snippet for source in answer.source_chunks)
    [claim] = [segment for segment in answer.segments if "wumpus" in segment.text]
    assert (claim.citations, claim.check) == ([], "none")
    assert "wumpus" not in ask(tmp_path, question).response


def test_a_memory_with_a_page_is_a_source_behind_the_others(tmp_path: Path) -> None:
    fact = "Clearing the cache also resets every wumpus counter of a zeppelin fleet."
    write(tmp_path, {"memory/cache.md": f"---\npage: install.md\n---\n{fact}"})
    index(tmp_path)
    model = Counting(f"`quill cache clean` removes every entry [1]. {fact}")
    answer = ask(tmp_path, "How do I clear the cache?", model)
    [request] = model.requests
    assert request.memories == ()
    assert request.passages[-1].section == fact
    [claim] = [segment for segment in answer.segments if "wumpus" in segment.text]
    assert (claim.citations, claim.check) == ([request.passages[-1].id], "confirmed")
    assert f"{quill.BASE}install/" in answer.sources_cited


def test_without_passages_a_memory_answers_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"memory/a.md": "Zeppelins are shipped by nobody."})
    index(tmp_path)
    model = Counting("Nobody ships zeppelins.")
    assert ask(tmp_path, "Who ships zeppelins?", model).status == "not_in_docs"
    assert model.requests == []


def test_memories_rank_by_evidence_importance_and_recency(tmp_path: Path) -> None:
    facts = {
        "weighty": (5, "2026-05-01"),
        "plain": (1, "2026-05-01"),
        "old": (5, "2026-02-01"),
        "future": (4, "2999-01-01"),
    }
    write(
        tmp_path,
        {
            f"memory/{name}.md": f"---\nimportance: {weight}\ntimestamp: {date}\n---\nThe {name} wumpus eats zeppelins."
            for name, (weight, date) in facts.items()
        }
        | {"memory/other.md": "---\nimportance: 5\n---\nInk is free."},
    )
    index(tmp_path)
    now = datetime(2026, 5, 1, tzinfo=UTC)
    found = select_memories("What does a wumpus eat? zeppelins?", snapshot(tmp_path), EVERYTHING, 20, now)
    assert [c.chunk.source_file_path.split("/")[-1] for c in found] == ["weighty.md", "future.md", "plain.md", "old.md"]
    # A clock that went back makes what is dated later new, and no more.
    assert found[1].components == {"importance": 0.8, "recency": 1.0}
    assert found[3].components["recency"] == pytest.approx(0.5 ** (89 / 30))
    assert len(select_memories("wumpus zeppelins", snapshot(tmp_path), EVERYTHING, 3, now)) == 3
    assert select_memories("the", snapshot(tmp_path), EVERYTHING, 3, now) == []


def test_an_entitys_memory_needs_its_name(tmp_path: Path) -> None:
    write(tmp_path, {"memory/a.md": "---\nscope: entity:enterprise\n---\nClearing the cache needs an admin."})
    index(tmp_path)
    model = Counting()
    ask(tmp_path, "How do I clear the cache?", model)
    ask(tmp_path, "How do I clear the cache?", model, entity="enterprise")
    assert [request.memories for request in model.requests] == [(), ("Clearing the cache needs an admin.",)]


@pytest.mark.slow
def test_status_names_the_entries_that_answered_nothing_for_thirty_days(tmp_path: Path) -> None:
    site = publish(tmp_path)
    with publishing(target(site), lambda *_: None) as publication:
        live = publication.previous
        assert live is not None
        publication.write([replace(p, chunk=replace(p.chunk, timestamp="2020-01-01T00:00:00Z")) for p in live.points()])
        publication.commit(replace(live.head, generation=live.head.generation + 1, token="old"))
    records = f"sqlite:{site / 'records.sqlite'}"
    arguments = ["status", "--store", f"edge:{site / 'index'}", "--ledger", f"sqlite:{site / 'l.sqlite'}"]
    service = Service.open(Settings(store=f"edge:{site / 'index'}", records=records))
    list(service.chat(ChatQuery(query="How long does a refund take?")))
    runner = CliRunner(env={"CHAPTERVERSE_RECORDS": records})
    told = runner.invoke(app, arguments).stdout
    assert told.splitlines()[-3:] == [
        "FAQ entries that answered no question of the last 30 days:",
        "  knowledge/faq/abroad.md: May I ship zeppelins abroad?",
        "  knowledge/faq/orders.md: Who ships ordered zeppelins?",
    ]
    assert len(json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)["unmatched_faq"]) == 2
    assert "FAQ" not in CliRunner(env={"CHAPTERVERSE_RECORDS": ""}).invoke(app, arguments).stdout
    broken = CliRunner(env={"CHAPTERVERSE_RECORDS": f"sqlite:{site}"}).invoke(app, arguments)
    assert (broken.exit_code, "FAQ" in broken.stdout) == (0, False)
    assert broken.stderr.startswith("Warning: ")


def test_an_entry_of_the_last_thirty_days_is_not_named_yet(site: Path) -> None:
    env = {"CHAPTERVERSE_RECORDS": f"sqlite:{site / 'records.sqlite'}"}
    arguments = ["status", "--store", f"edge:{site / 'index'}", "--ledger", f"sqlite:{site / 'l.sqlite'}"]
    assert "FAQ" not in CliRunner(env=env).invoke(app, arguments).stdout


def test_a_trace_says_which_entry_answered_and_why(site: Path) -> None:
    runner = CliRunner(env={"CHAPTERVERSE_STORE": f"edge:{site / 'index'}"})
    told = runner.invoke(app, ["trace", "how long does a refund take"]).stdout
    assert "The FAQ entry knowledge/faq/orders.md: How long does a refund take?" in told
    assert "answers with a probability of 1.00: matched 1.00" in told
    told = runner.invoke(app, ["trace", "Are zeppelins painted before they are sold?"]).stdout
    assert "The FAQ entry" not in told
    assert "The nearest FAQ entry knowledge/faq/orders.md: Who ships ordered zeppelins?" in told
    assert "less than 0.55: matched" in told
    history = site / "history.json"
    history.write_text(json.dumps([{"role": "user", "content": "How do I install it?"}]), encoding="utf-8")
    told = runner.invoke(app, ["trace", "And how long does that refund take?", "--history", str(history)]).stdout
    assert "but the question refers to an earlier one" in told


def test_a_trace_shows_the_memories(tmp_path: Path) -> None:
    write(tmp_path, {"memory/cache.md": "---\nimportance: 4\n---\nClearing the cache takes an hour."})
    index(tmp_path)
    runner = CliRunner(env={"CHAPTERVERSE_STORE": f"edge:{tmp_path / 'index'}"})
    told = runner.invoke(app, ["trace", "How do I clear the cache?"]).stdout
    assert "memory knowledge/memory/cache.md, tells a model: evidence" in told
    assert "importance 0.80, recency 1.00" in told


@pytest.mark.slow
def test_an_evaluation_takes_entries_for_sections_and_finds_no_memory(tmp_path: Path) -> None:
    site, public = tmp_path, PRIVATE.replace("entity:enterprise", "global")
    write(site, {"faq/orders.md": ORDERS, "faq/abroad.md": public, "memory/a.md": "Zeppelins are red."})
    index(site)
    entry = "knowledge/faq/abroad.md#May I ship zeppelins abroad?"
    questions = [
        {"id": "1", "question": "may zeppelins go abroad", "expected": [entry]},
        {"id": "2", "question": "ordered zeppelins, who ships them?", "expected": ["install/"]},
        {"id": "3", "question": "zeppelins red", "expected": ["knowledge/faq/none.md#May I?"]},
    ]
    file = site / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    runner = CliRunner(env={"CHAPTERVERSE_STORE": f"edge:{site / 'index'}"})
    done = runner.invoke(app, ["eval", str(file), "--json"])
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["1"]["anchor_ranks"] == [1]
    assert rows["1"]["missing"] == []
    assert rows["2"]["page_ranks"] == [1]
    assert rows["3"]["missing"] == ["knowledge/faq/none.md#May I?"]
    assert all(result["chapter"] != "A" for row in rows.values() for result in row["results"])


@pytest.mark.slow
def test_the_sites_pages_are_exported_alike_with_and_without_knowledge(tmp_path: Path) -> None:
    def pages(root: Path) -> list[str]:
        rows = maintenance.export(snapshot(root), canonical=True)
        return [row for row in rows if json.loads(row).get("type") == PAGE]

    index(tmp_path / "without")
    write(tmp_path / "with", {"faq/orders.md": ORDERS, "faq/abroad.md": PRIVATE, "memory/a.md": "Zeppelins are red."})
    index(tmp_path / "with")
    assert pages(tmp_path / "with") == pages(tmp_path / "without") != []
    assert (
        len(list(maintenance.export(snapshot(tmp_path / "with"), canonical=True))) == len(pages(tmp_path / "with")) + 4
    )
