"""The tools over a real index: their results, budgets, verdicts and one sentence for every mistake."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from api import quill
from chapterverse.errors import InputError
from chapterverse.model import Scope
from chapterverse.text import tokens
from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.agents.mcp.messages import MODERN, McpCall, McpError
from chapterverse_api.ext.agents.mcp.protocol import answer
from chapterverse_api.ext.agents.tools.documentation import documentation_tools
from chapterverse_api.ext.agents.tools.sections import cut_to, estimate_cl100k_tokens
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.service import Service

CACHE = f"{quill.BASE}cache/"
LONG = "# Long\n\n" + "\n\n".join(
    f"## Part {n}\n\n" + " ".join(f"Word{n}x{i} explains the reference of part {n}." for i in range(80))
    for n in range(12)
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    pages = {**quill.PAGES, "long.md": LONG}
    return quill.service(quill.publish(tmp_path_factory.mktemp("index"), pages))


class Says:
    """Answers each question with one text that cites nothing."""

    name = "says"

    def __init__(self, text: str) -> None:
        self.text, self.asked = text, 0

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        self.asked += 1
        yield Span(self.text)


def call(service: Service, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool's result, after checking it by the tool's own schema."""
    tool = documentation_tools()[name]
    result = dict(tool.run(arguments, ToolContext(service)))
    jsonschema.Draft202012Validator(tool.result).validate(result)
    jsonschema.Draft202012Validator(tool.arguments).validate(arguments)
    return result


def refused(service: Service, name: str, **arguments: Any) -> str:
    with pytest.raises(InputError) as error:
        documentation_tools()[name].run(arguments, ToolContext(service))
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    # The longest lists every field of a filter.
    assert len(message) < 250
    return message


def test_the_schemas_are_valid_and_hold_no_reference() -> None:
    tools = list(documentation_tools().values())
    assert [tool.name for tool in tools] == ["search_docs", "read_section", "ask_docs", "verify_claim"]
    for tool in tools:
        for schema in (tool.arguments, tool.result):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert "$ref" not in json.dumps(schema)
        assert tool.description
    # A client puts them into each prompt.
    assert tokens.count(json.dumps([[t.name, t.description, t.arguments] for t in tools])) < 1200


def test_a_search_returns_quotes_with_addresses(service: Service) -> None:
    found = call(service, "search_docs", query="remove every entry of the cache")
    best = found["results"][0]
    assert best["url"] == f"{CACHE}#clearing-the-cache"
    assert "`quill cache clean` removes every entry." in best["quote"]
    assert (best["chapter"], best["section"], best["generation"]) == ("Caching", "Clearing the cache", 1)
    assert found["answerable"] == "yes"
    assert len({result["url"] for result in found["results"]}) == len(found["results"])


def test_what_the_docs_do_not_answer_is_said(service: Service) -> None:
    assert call(service, "search_docs", query="capital of Mongolia")["answerable"] == "no"


def test_a_mistyped_word_is_corrected_and_told(service: Service) -> None:
    found = call(service, "search_docs", query="how does the cache get cleand after deploymant")
    assert found["searched_as"]


@pytest.mark.parametrize("most", [200, 400, 1000, 4000, 20_000])
def test_a_result_stays_within_its_budget(service: Service, most: int) -> None:
    for name, arguments in (
        ("search_docs", {"query": "reference of part 3"}),
        ("read_section", {"url": f"{quill.BASE}long/"}),
        ("read_section", {"url": f"{quill.BASE}long/#part-3"}),
    ):
        result = call(service, name, **arguments, max_tokens=most)
        # What is left is a list of addresses and not of the text.
        text = json.dumps({k: v for k, v in result.items() if k != "left"}, ensure_ascii=False)
        assert tokens.count(text) <= most, name
        assert result.get("results") or result.get("sections")


def test_a_quote_that_is_cut_says_so(service: Service) -> None:
    result = call(service, "search_docs", query="reference of part 3", max_tokens=200)["results"][0]
    assert result["cut"]
    whole = call(service, "search_docs", query="reference of part 3")["results"][0]
    assert whole["quote"].startswith(result["quote"])
    assert not whole["cut"]


def test_filters_language_and_version_narrow_a_search(tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        pages = {"a.md": f"# Alpha\n\nRelease {version} of Quill caches renders.\n", "b.md": "# Beta\n\nCaches too.\n"}
        settings = quill.publish(tmp_path, pages, scope=Scope("quill", version), base=f"{quill.BASE}{version}/")
    service = quill.service(settings)
    found = call(service, "search_docs", query="caches renders", version="2.0", filters={"chapter_title": "Alpha"})
    assert [r["url"] for r in found["results"]] == [f"{quill.BASE}2.0/a/#alpha"]
    assert found["results"][0]["version"] == "2.0"
    assert "no such version" in refused(service, "search_docs", query="caches", version="3.0")
    assert "no known field" in refused(service, "search_docs", query="caches", filters={"colour": "red"})
    read = call(service, "read_section", url=f"{quill.BASE}1.0/a/")
    assert (read["version"], "Release 1.0" in read["sections"][0]["quote"]) == ("1.0", True)


def test_a_page_is_read_to_its_end_in_parts(service: Service) -> None:
    def parts() -> Iterator[dict[str, Any]]:
        offset: int | None = 0
        while offset is not None:
            read = call(service, "read_section", url=f"{quill.BASE}long/", max_tokens=900, offset=offset)
            yield read
            assert (read["next_offset"] is None) == (read["left"]["tokens"] == 0) == (not read["left"]["sections"])
            offset = read["next_offset"]

    read = list(parts())
    assert len(read) > 5
    texts: dict[str, str] = {}
    for part in read:
        for one in part["sections"]:
            texts[one["url"]] = texts.get(one["url"], "") + one["quote"]
    whole = call(service, "read_section", url=f"{quill.BASE}long/", max_tokens=20_000)
    words = {one["url"]: "".join(one["quote"].split()) for one in whole["sections"]}
    assert {url: "".join(text.split()) for url, text in texts.items()} == words
    assert len(words) == 12


def test_a_section_is_read_alone(service: Service) -> None:
    read = call(service, "read_section", url=f"{CACHE}#cache-location")
    (one,) = read["sections"]
    assert one["quote"] == "The cache lives in `.quill/cache` unless `QUILL_CACHE_DIR` names another folder."
    assert (read["url"], read["next_offset"], read["left"]) == (one["url"], None, {"tokens": 0, "sections": []})


def test_a_section_is_read_with_those_below_it(tmp_path: Path) -> None:
    page = (
        "# Guide\n\n## Kinds\n\nThere are two:\n\n### Green\n\nSteamed.\n\n### Black\n\nOxidized.\n\n"
        "## Cups\n\nOf clay.\n"
    )
    service = quill.service(quill.publish(tmp_path, {"guide.md": page}))
    read = call(service, "read_section", url=f"{quill.BASE}guide/#kinds")
    assert [one["section"] for one in read["sections"]] == ["Kinds", "Green", "Black"]
    (one,) = call(service, "read_section", url=f"{quill.BASE}guide/#black")["sections"]
    assert one["quote"] == "Oxidized."


def test_what_can_not_be_read_is_told_in_a_sentence(service: Service) -> None:
    assert "no page" in refused(service, "read_section", url="https://elsewhere.example/cache/")
    assert "no page" in refused(service, "read_section", url="nonsense")
    assert "no such section" in refused(service, "read_section", url=f"{CACHE}#nope")
    assert "offset" in refused(service, "read_section", url=CACHE, offset=10_000)


def test_an_answer_names_what_it_rests_on(service: Service) -> None:
    answer = call(service, "ask_docs", question="How do I remove every entry of the cache?")
    assert answer["status"] == "answered"
    assert "quill cache clean" in answer["answer"]
    assert "".join(one["text"] for one in answer["segments"]) == answer["answer"]
    assert [c["url"] for c in answer["citations"]] == [f"{CACHE}#clearing-the-cache"]
    assert {i for one in answer["segments"] for i in one["citations"]} == {c["id"] for c in answer["citations"]}
    assert answer["citations"][0]["quote"]
    refusal = call(service, "ask_docs", question="What is the capital of Mongolia?")
    assert (refusal["status"], refusal["citations"]) == ("not_in_docs", [])


@pytest.mark.parametrize(
    ("claim", "verdict", "words"),
    [
        ("`quill cache clean` removes every entry.", "supported", "removes every entry"),
        ("Quill runs on Linux, macOS and Windows.", "supported", "Linux, macOS and Windows"),
        ("A plugin must answer within five seconds.", "supported", "within five seconds"),
        ("A plugin must answer within 40 seconds.", "contradicted", "within five seconds"),
        ("Quill stores its pages in PostgreSQL.", "not_found", None),
        ("A Grafana plugin must answer within five seconds.", "not_found", None),
        ("The moon is made of green cheese.", "not_found", None),
    ],
)
def test_a_claim_gets_the_verdict_of_the_check(service: Service, claim: str, verdict: str, words: str | None) -> None:
    found = call(service, "verify_claim", claim=claim)
    assert found["verdict"] == verdict, found
    if words:
        assert words in found["quote"]
        assert found["url"].startswith(quill.BASE)
        assert found["quote"] in call(service, "read_section", url=found["url"])["sections"][0]["quote"]
        assert found["nearest"] == []
    else:
        assert (found["quote"], found["url"]) == (None, None)


@pytest.mark.parametrize(
    "claim",
    [
        "A plugin must answer within five seconds.",
        "A Grafana plugin must answer within five seconds.",
        "A plugin has 40 seconds to answer, and it receives the page as JSON.",
        "If a build is running while you clear the cache, that build fails.",
        "Clearing the cache while a Kubernetes build runs makes that build fail.",
        "The bucket must allow public writes.",
    ],
)
def test_a_claim_and_an_answer_of_the_same_words_get_one_verdict(tmp_path: Path, claim: str) -> None:
    says = Says(claim)
    service = quill.service(quill.publish(tmp_path), generator=says)
    answer = quill.ask(service, claim)
    confirmed = any(segment.check == "confirmed" for segment in answer.segments)
    assert says.asked
    assert (call(service, "verify_claim", claim=claim)["verdict"] == "supported") == confirmed


def test_one_wrong_sentence_makes_a_claim_wrong(service: Service) -> None:
    found = call(
        service,
        "verify_claim",
        claim="Quill runs on Linux, macOS and Windows. A plugin must answer within 40 seconds. Quill has a moon.",
    )
    assert [one["verdict"] for one in found["statements"]] == ["supported", "contradicted", "not_found"]
    assert found["verdict"] == "contradicted"
    assert found["quote"] == found["statements"][1]["quote"]


def test_a_claim_is_checked_against_the_pages_that_are_named(service: Service) -> None:
    claim = "`quill cache clean` removes every entry."
    assert call(service, "verify_claim", claim=claim, urls=[CACHE])["verdict"] == "supported"
    assert call(service, "verify_claim", claim=claim, urls=[f"{CACHE}#clearing-the-cache"])["verdict"] == "supported"
    assert call(service, "verify_claim", claim=claim, urls=[f"{quill.BASE}themes/"])["verdict"] == "not_found"
    assert "urls" in refused(service, "verify_claim", claim=claim, urls=["https://elsewhere.example/"])


@pytest.mark.parametrize(
    "claim",
    ["word " * 5000, "", "???", "What does Quill do?", "One. Two is two. Three is three. Four. Five. Six.", "\n\n"],
)
def test_what_is_no_claim_is_told_in_a_sentence(service: Service, claim: str) -> None:
    assert "claim" in refused(service, "verify_claim", claim=claim)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_docs", {}),
        ("search_docs", {"query": 7}),
        ("search_docs", {"query": "a", "cAnArY": 1}),
        ("search_docs", {"query": "a", "max_tokens": "4000"}),
        ("search_docs", {"query": "a", "max_tokens": 0}),
        ("search_docs", {"query": "a", "filters": []}),
        ("search_docs", {"query": "\ud800"}),
        ("read_section", {"url": ["a"]}),
        ("read_section", {"url": CACHE, "offset": -1}),
        ("ask_docs", {"question": "a" * 4001}),
        ("ask_docs", {"question": "cache", "page_url": "https://elsewhere.example/"}),
        ("verify_claim", {"claim": "a", "urls": ["b"] * 11}),
    ],
)
def test_a_wrong_argument_is_told_and_not_repeated(service: Service, name: str, arguments: dict[str, Any]) -> None:
    assert "cAnArY" not in refused(service, name, **arguments)


@pytest.mark.parametrize("absent", [None, ""])
def test_null_and_an_empty_text_are_absent(service: Service, absent: str | None) -> None:
    tools, context = documentation_tools(), ToolContext(service)
    for name, needed in (
        ("search_docs", {"query": "clear the cache"}),
        ("read_section", {"url": CACHE}),
        ("ask_docs", {"question": "Where does the cache live?"}),
        ("verify_claim", {"claim": "The cache lives in `.quill/cache`."}),
    ):
        tool = tools[name]
        others = dict.fromkeys(set(tool.arguments["properties"]) - set(needed), absent)
        assert tool.run({**needed, **others}, context).keys() == tool.run(needed, context).keys()
        assert next(iter(needed)) in refused(service, name, **dict.fromkeys(needed, absent))


def test_an_object_and_a_list_may_come_as_a_text(service: Service) -> None:
    tools = documentation_tools()
    found = tools["search_docs"].run({"query": "cache", "filters": json.dumps({"url": CACHE})}, ToolContext(service))
    assert {result["url"].partition("#")[0] for result in found["results"]} == {CACHE}
    claim = {"claim": "The cache lives in `.quill/cache`.", "urls": json.dumps([CACHE])}
    assert tools["verify_claim"].run(claim, ToolContext(service))["verdict"] == "supported"
    assert "filters" in refused(service, "search_docs", query="cache", filters="[1")


def test_a_mark_of_a_source_is_no_word_of_a_claim(service: Service) -> None:
    assert call(service, "verify_claim", claim="The cache lives in `.quill/cache` [1].")["verdict"] == "supported"


def test_an_unknown_tool_is_none(service: Service) -> None:
    call = McpCall(1, "tools/call", {"name": "rm"}, MODERN[0])
    with pytest.raises(McpError, match="no such tool"):
        answer(call, ToolContext(service))


def test_a_search_is_paid_from_the_days_budget(tmp_path: Path) -> None:
    embedder = quill.Terms()
    settings = quill.publish(tmp_path, embedder=embedder)
    service = quill.service(settings, embedder=embedder)
    call(service, "search_docs", query="cache")
    assert embedder.asked == ["cache"]
    embedder.down = True
    assert call(service, "search_docs", query="cache")["degraded_reason"]


def test_a_client_that_left_gets_no_answer(service: Service) -> None:
    deadline = Deadline()
    deadline.abort()
    with pytest.raises(ClientDisconnected):
        documentation_tools()["search_docs"].run({"query": "cache"}, ToolContext(service, deadline))


def test_a_text_is_cut_where_it_may_be() -> None:
    assert cut_to("One two.\n\nThree four.", 5) == "One two."
    assert cut_to("short", 5) == "short"
    assert cut_to("x" * 100, 10) == "x" * 30
    assert cut_to("漢" * 100, 10) == "漢" * 8
    assert estimate_cl100k_tokens("") == 0
