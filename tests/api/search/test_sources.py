from __future__ import annotations

from pathlib import Path

import pytest

from api import quill
from api.writers import Scribe
from chapterverse.errors import IndexCorrupt, InputError
from chapterverse.filters import MAX_CONDITIONS
from chapterverse.settings import Settings
from chapterverse_api.answer.turn import IdfLookup, Sources, Turn
from chapterverse_api.contract import ChatQuery
from chapterverse_api.search.passages import MAX_SNIPPET_CHARS
from chapterverse_api.search.results import MIN_ON_TOPIC
from chapterverse_api.service import Service

LONG = "# Long\n\n## Options\n\n" + "\n\n".join(
    f"Option `--flag-{i}` sets flag number {i} of the engine. " + "It is described in many careful words. " * 12
    for i in range(12)
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    root = tmp_path_factory.mktemp("index")
    return quill.service(quill.publish(root, {**quill.PAGES, "long.md": LONG}))


def context_of(service: Service, query: str, **fields: object) -> Sources:
    return Turn.open(ChatQuery.model_validate({"query": query, **fields}), service.resources).search()


def selected(service: Service, text: str, **fields: object) -> Sources:
    """Return the sources of a model, which explains the selection itself."""
    resources = quill.changed(service, generator=Scribe()).resources
    return Turn.open(ChatQuery.model_validate({"selected_text": text, **fields}), resources).search()


def test_a_source_is_what_the_reader_sees_of_a_passage(service: Service) -> None:
    context = context_of(service, "How do I change the colors?")
    passage, source = context.request.passages[0], context.shown[0]
    assert (passage.id, passage.path) == ("1", ("Themes", "Changing colors"))
    assert passage.text in passage.section
    assert (source.id, source.chapter, source.section) == ("1", "Themes", "Changing colors")
    assert source.url == passage.url == f"{quill.BASE}themes/#changing-colors"
    assert source.score == round(passage.evidence, 4)
    assert source.chunk_id == passage.chunk_id
    assert source.snippet.startswith("Set `palette.primary` in `quill.toml`:")


def test_a_section_is_one_source_however_many_of_its_chunks_match(service: Service) -> None:
    context = context_of(service, "flag of the engine")
    assert [(s.chapter, s.section) for s in context.shown] == [("Long", "Options")]
    assert context.retrieval
    assert context.retrieval.total > 3


def test_a_passage_brings_its_neighbors_but_not_a_whole_reference(service: Service) -> None:
    (passage,) = context_of(service, "How do I set --flag-5 of the engine?").request.passages
    assert "--flag-5" in passage.text
    assert all(f"--flag-{i}`" in passage.section for i in (4, 5, 6))
    assert "--flag-0`" not in passage.section
    assert "--flag-11`" not in passage.section


def test_a_snippet_is_short_flat_and_whole_in_its_words(service: Service) -> None:
    (source,) = context_of(service, "How do I set --flag-5 of the engine?").shown
    assert 150 < len(source.snippet) <= MAX_SNIPPET_CHARS
    assert "\n" not in source.snippet
    text = source.snippet.removesuffix("…")
    assert text.split()[-1] in LONG.split()


def test_a_word_without_end_is_still_cut(tmp_path: Path) -> None:
    service = quill.service(quill.publish(tmp_path, {"a.md": f"# Wall\n\nbrick {'x' * 900}", **quill.PAGES}))
    (source,) = context_of(service, "wall brick").shown
    assert len(source.snippet) <= MAX_SNIPPET_CHARS


LINKED = """# Kettles

## Whistling

A kettle [whistles](https://hidden.example/whistle "secret") when its _water_ boils,
see [the physics][steam] and <https://shown.example/>.

```js
kettle[0](whistle)
```

[steam]: https://hidden.example/steam
"""
SHOWN = "A kettle whistles when its _water_ boils,\nsee the physics and https://shown.example/."


def test_where_a_link_leads_is_no_part_of_an_answer(tmp_path: Path) -> None:
    service = quill.service(quill.publish(tmp_path, {"kettles.md": LINKED, **quill.PAGES}))
    context = context_of(service, "When does a kettle whistle?")
    passage, source = context.request.passages[0], context.shown[0]
    assert passage.text == passage.section == f"{SHOWN}\n\n```js\nkettle[0](whistle)\n```"
    assert source.snippet == " ".join(passage.text.split())
    answer = quill.ask(service, "When does a kettle whistle?")
    assert SHOWN in answer.response
    assert answer.grounding_confidence > 0.9
    assert "hidden.example" not in answer.model_dump_json()
    (chunk,) = (c for c in service.snapshot(None).page("kettles.md") if c.chunk_id == source.chunk_id)
    assert "[whistles](https://hidden.example/whistle" in chunk.text


def test_weak_evidence_makes_no_passage_but_says_what_is_near(service: Service) -> None:
    context = context_of(service, "why do my french visitors see the english text")
    assert context.request.passages == ()
    assert context.retrieval
    assert 0 < context.retrieval.evidence < 0.5
    assert [n.section for n in context.found.nearest] == ["Languages"]


@pytest.mark.parametrize(
    "question", ["Is the zebra xylophone folder of Paris numbered in Go?", "Who won the cache cup of 1966 in Paris?"]
)
def test_a_page_with_a_word_of_a_question_about_something_else_is_not_near(service: Service, question: str) -> None:
    context = context_of(service, question)
    assert context.request.passages == ()
    assert context.retrieval
    assert context.retrieval.candidates
    assert context.found.nearest == ()


def test_nearest_are_three_pages_at_most_each_once(service: Service) -> None:
    context = context_of(service, "quill zebra xylophone caching themes deploying options")
    assert len({n.chapter for n in context.found.nearest}) == len(context.found.nearest) == 3


def test_a_question_about_something_else_points_to_no_page_that_its_words_do_not_name(service: Service) -> None:
    context = context_of(service, "Who won the world cup of entries in Paris with zebras?")
    assert (context.request.passages, context.found.off_topic, context.found.nearest) == ((), True, ())
    assert context.retrieval
    assert 0 < context.retrieval.answerability.docs < MIN_ON_TOPIC


def test_small_talk_is_not_searched_for(service: Service) -> None:
    context = context_of(service, "Danke schön!")
    assert (context.request.passages, context.found.off_topic, context.retrieval_used) == ((), True, False)
    assert context.found.nearest == ()
    context = context_of(service, "Guten Tag!")
    assert [place.url for place in context.found.nearest] == [f"{quill.BASE}install/#installing-quill"]
    assert (context.language, context.retrieval_used) == ("de", False)


def test_a_selection_is_searched_for_by_its_rarest_words(service: Service) -> None:
    text = "Each deployment is numbered. Kettles sing."
    turn = Turn.open(ChatQuery.model_validate({"query": "How long?", "selected_text": text}), service.resources)
    context = turn.search()
    assert (context.mode, context.shown[0].section, context.found.searched_as) == ("rag", "Rolling back", None)
    assert (context.request.selection, context.request.selected) == (text, False)


def test_a_selection_of_which_the_docs_say_nothing_is_the_source(service: Service) -> None:
    turn = Turn.open(ChatQuery.model_validate({"selected_text": "Kettles sing."}), service.resources)
    assert turn.search().mode == "selected_text"


def test_a_follow_up_is_read_with_the_question_before_it(service: Service) -> None:
    history = [{"role": "user", "content": "How do I change the colors of the header?"}]
    alone = context_of(service, "and accent?")
    led = context_of(service, "and accent?", conversation_history=history)
    assert led.shown[0].section == "Changing colors"
    assert led.request.question == "and accent?"
    assert len(led.request.words.words) > len(alone.request.words.words)


def test_a_filter_restricts_where_answers_come_from(service: Service) -> None:
    only = context_of(service, "How do I install Quill for caching?", filters={"source_file_path": "cache.md"})
    assert {s.chapter for s in only.shown} <= {"Caching"}
    assert {n.chapter for n in only.found.nearest} == {"Caching"}
    both = context_of(service, "Quill caching deploying", filters={"chapter_title": ["Caching", "Deploying"]})
    assert {n.chapter for n in both.found.nearest} == {"Caching", "Deploying"}


def test_an_unknown_filter_is_refused_with_what_is_known(service: Service) -> None:
    with pytest.raises(
        InputError, match=r"^A filter names no known field; known are type, url, chapter_title"
    ) as error:
        context_of(service, "Quill", filters={"<script>": "x"})
    assert error.value.field == "filters"
    assert "script" not in str(error.value)


@pytest.mark.parametrize("value", [7, [], ["a", 7]])
def test_a_filter_of_another_type_is_refused(service: Service, value: object) -> None:
    with pytest.raises(InputError, match="The filter on tags needs values of type str"):
        context_of(service, "Quill", filters={"tags": value})


@pytest.mark.parametrize("value", ["0", [0, "1"]])
def test_a_number_is_no_text(service: Service, value: object) -> None:
    with pytest.raises(InputError, match="The filter on chunk_index needs values of type int"):
        context_of(service, "Quill", filters={"chunk_index": value})


GERMAN = """# Zwischenspeicher

Quill behält das Ergebnis jeder Berechnung.

## Den Zwischenspeicher leeren

Der Befehl `quill cache clean` entfernt alle Einträge aus dem Zwischenspeicher.
"""


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory: pytest.TempPathFactory) -> Service:
    pages = {**quill.PAGES, "cache.de.md": GERMAN}
    settings = quill.publish(tmp_path_factory.mktemp("index"), pages, languages={"cache.de.md": "de"})
    return quill.service(settings)


def test_the_readers_language_is_kept_to_where_there_is_one(bilingual: Service) -> None:
    for language in ("de", "de-AT", "DE"):
        german = context_of(bilingual, "quill cache clean", language=language)
        assert {s.chapter for s in german.shown} == {"Zwischenspeicher"}
    assert "Caching" in {s.chapter for s in context_of(bilingual, "quill cache clean", language="fr").shown}
    assert "Caching" in {s.chapter for s in context_of(bilingual, "quill cache clean", language="en-US").shown}


def test_without_one_the_answer_speaks_as_its_best_source_does(bilingual: Service) -> None:
    assert context_of(bilingual, "Wie leere ich den Zwischenspeicher?").request.language == "de"
    assert context_of(bilingual, "How do I roll back a deployment?").request.language == "en"


def test_a_filter_on_language_is_the_readers_own_choice(bilingual: Service) -> None:
    for filters in ({"language": "de"}, {"$or": [{"language": {"$prefix": "de"}}, {"type": "faq"}]}):
        german = context_of(bilingual, "quill cache clean", language="en", filters=filters)
        assert {s.chapter for s in german.shown} == {"Zwischenspeicher"}
    # The reader's language takes nothing from what a filter may hold.
    most = {"$or": [{"source_file_path": f"{n}.md"} for n in range(MAX_CONDITIONS - 1)] + [{"type": "page"}]}
    assert "Caching" in {s.chapter for s in context_of(bilingual, "quill cache", language="en", filters=most).shown}


@pytest.mark.parametrize(
    ("sent", "held"),
    [
        ("deploy/", "deploy/"),
        ("deploy/#rolling-back", "deploy/#rolling-back"),
        ("deploy/#elsewhere", "deploy/"),
        ("deploy/?utm=<script>#rolling-back", "deploy/"),
        ("deploy/index.html", "deploy/"),
        ("deploy", "deploy/"),
    ],
)
def test_a_page_is_cited_by_an_address_that_the_index_holds(service: Service, sent: str, held: str) -> None:
    context = selected(service, "Deployment 41 can be live again.", page_url=f"{quill.BASE}{sent}")
    (source,) = context.shown
    assert (source.url, source.chapter) == (f"{quill.BASE}{held}", "Deploying")
    assert [n.section for n in context.found.nearest] == ["Rolling back"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", f"{quill.BASE}nope/", "", "deploy/", "http://["])
def test_no_other_address_is_repeated(service: Service, url: str) -> None:
    context = selected(service, "Deployment 41 can be live again.", page_url=url)
    (source,) = context.shown
    assert (source.url, source.chapter, context.found.nearest) == (None, "Selected text", ())


def test_an_address_in_a_selection_is_shown_only_if_its_page_holds_it(tmp_path: Path) -> None:
    pages = {"deploy.md": "# Deploying\n\nThe server is at `https://cdn.quill.example.com/up`, they say."}
    service = quill.service(quill.publish(tmp_path, pages))
    text = "The server is at https://cdn.quill.example.com/up, or [here](https://evil.example.net/x)."
    for page, known in ((f"{quill.BASE}deploy/", True), (None, False)):
        context = selected(service, text, page_url=page)
        (source,), (passage,) = context.shown, context.request.passages
        assert "evil" not in source.snippet + passage.text + passage.section
        assert ("cdn.quill.example.com/up" in passage.text) is known
        assert "or here" in source.snippet


def test_an_answer_is_in_the_readers_language_only_where_its_sources_are(bilingual: Service) -> None:
    for wanted, written in (("en-GB", "en-GB"), ("fr", "en")):
        context = context_of(bilingual, "How do I clear the cache with quill cache clean?", language=wanted)
        assert (context.request.language, context.language) == (written, wanted)


def test_a_selection_that_is_not_on_its_page_still_stands_there(service: Service) -> None:
    (source,) = selected(service, "Zebras xylophone.", page_url=f"{quill.BASE}deploy/").shown
    assert source.url == f"{quill.BASE}deploy/"


def test_a_selection_brings_no_word_of_the_index(service: Service) -> None:
    context = selected(service, "Caching", query="How do I clear the cache?", page_url=f"{quill.BASE}cache/")
    (passage,) = context.request.passages
    assert (passage.text, passage.section, passage.chunk_id, passage.evidence) == ("Caching", "Caching", None, 1.0)
    assert (context.mode, context.retrieval_used, len(context.request.passages)) == ("selected_text", False, 1)


def test_a_selections_title_is_in_the_readers_language(service: Service) -> None:
    assert selected(service, "Kannen singen.", language="de").shown[0].chapter == "Ausgewählter Text"


def test_a_selection_needs_no_index_at_all(tmp_path: Path) -> None:
    missing = quill.service(Settings(store=f"edge:{tmp_path}/none"))
    context = selected(missing, "Kettles sing.", query="What sings?", page_url=f"{quill.BASE}deploy/")
    assert context.shown[0].url is None
    assert IdfLookup(context.snapshot)("Kettles") == {}


def test_nor_one_that_is_whole(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path)
    next(tmp_path.glob("*/*/head.json")).write_text("{")
    broken = quill.service(settings)
    with pytest.raises(IndexCorrupt):
        context_of(broken, "Quill")
    assert selected(broken, "Kettles sing.").shown[0].chapter == "Selected text"
