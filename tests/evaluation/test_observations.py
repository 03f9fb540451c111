"""`chapterverse calibrate` over a real index: its output, the stored calibration, its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse.calibration import Calibration
from chapterverse.errors import IndexLocked, InputError, ProviderError
from chapterverse.indexing.target import Target
from chapterverse.model import Head
from chapterverse.settings import Settings
from chapterverse.store import only_scope, open_store
from chapterverse_api.ext.evaluation.calibrate_command import tune
from chapterverse_api.ext.evaluation.observations import (
    TRIED_WEIGHTS,
    CalibrationOutcome,
    best_weight,
    calibrate,
    require_enough,
)
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.session import EvaluationSession
from cli.shell import run

#: What readers say for what the pages say; to the embedder it means the same.
SAME = {"wipe": "clearing", "delete": "removes", "hues": "colors", "publish": "deploy", "addons": "plugins"}
ANSWERED = {
    "How do I clear the cache?": "cache/#clearing-the-cache",
    "Where does the cache live?": "cache/#cache-location",
    "cache on another folder": "cache/#cache-location",
    "install with a package manager": "install/#with-a-package-manager",
    "Which compiler is needed to build from source?": "install/#from-source",
    "How can I remove quill again?": "install/#uninstalling",
    "upload the site to a bucket": "deploy/#to-object-storage",
    "make an older deployment live again": "deploy/#rolling-back",
    "change the color of the header": "themes/#changing-colors",
    "turn dark mode off": "themes/#dark-mode",
    "languages with stemming": "search/#languages",
    "write a plugin": "plugins/#writing-a-plugin",
    "debug a plugin that writes to standard error": "plugins/#debugging-a-plugin",
    "wipe hues": "themes/#changing-colors",
}
FOREIGN = (
    "Who won the world cup in 1998?", "best pizza in Lisbon", "Does it work with Slack?", "knee pain after running",
    "invoice for March", "Is there a mobile app?", "weather tomorrow", "kubernetes helm chart", "a poem on autumn",
    "voice input in German", "translate my novel", "how tall is Everest",
)  # fmt: skip


def silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def rows() -> list[QuestionRow]:
    answered = [
        QuestionRow(f"a{i}", text, None, f"q, line {i}", (quill.BASE + place,), True)
        for i, (text, place) in enumerate(ANSWERED.items(), 1)
    ]
    return answered + [QuestionRow(f"u{i}", text, answerable=False) for i, text in enumerate(FOREIGN)]


def outcome(
    service: EvaluationSession, asked: Sequence[QuestionRow] | None = None, most_false: float = 0.08
) -> CalibrationOutcome:
    return calibrate(asked or rows(), most_false, service, service.settings, silent)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSession:
    return quill.service(quill.publish(tmp_path_factory.mktemp("index")))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSession:
    settings = quill.publish(tmp_path_factory.mktemp("index"), embedder=quill.Terms(SAME))
    return quill.service(settings, embedder=quill.Terms(SAME))


@pytest.fixture
def index(tmp_path: Path) -> Settings:
    return quill.publish(tmp_path)


def head_of(settings: Settings) -> Head:
    store = open_store(settings)
    return store.snapshot(only_scope(store)).head


# What comes out


def test_answerable_questions_are_told_from_others(words: EvaluationSession) -> None:
    found = outcome(words)
    assert (found.answerable, found.unanswerable) == (len(ANSWERED), len(FOREIGN))
    assert found.after.auc > 0.9
    assert found.after.refused > 0.7
    assert found.after.false_refusals < 0.25
    assert found.calibration.questions == len(ANSWERED) + len(FOREIGN)
    assert found.calibration.both is None
    assert (found.fusion_weight, found.mrr) == (found.head.fusion_weight, {})


def test_with_an_embedder_both_are_fitted_and_its_weight_is_measured(both: EvaluationSession) -> None:
    found = outcome(both)
    assert found.calibration.both is not None
    assert found.calibration.both.nearness > 0
    assert found.mrr.keys() == set(TRIED_WEIGHTS)
    assert all(0 < mrr <= 1 for mrr in found.mrr.values())
    assert found.fusion_weight in TRIED_WEIGHTS


def test_the_bar_decides_how_many_are_falsely_refused(words: EvaluationSession) -> None:
    asked = rows()
    for i, text in enumerate(("pizza for the site", "zebra folder in Lisbon", "Slack poem in color", "March of pages")):
        # An answerable question that has no more of the docs' words than the others.
        asked[i] = QuestionRow(asked[i].id, text, None, asked[i].place, asked[i].expected, True)
    strict, lax = (outcome(words, asked, bar) for bar in (0.0, 0.4))
    assert strict.after.refused < lax.after.refused
    assert strict.after.false_refusals < lax.after.false_refusals


def test_from_then_on_the_chat_refuses_by_it(both: EvaluationSession, tmp_path: Path) -> None:
    embedder = quill.Terms(SAME, 1024)
    settings = quill.publish(tmp_path, embedder=embedder)
    service = quill.service(settings, embedder=embedder)
    # Not one word of it is on the page that means it.
    assert not service.examine("wipe hues", None, 5).retrieval.sure
    found = outcome(service, most_false=0.0)
    target = Target(quill.SCOPE, open_store(settings), _ledger(settings), embedder, base_url=quill.BASE)
    head = tune(found.head, found.calibration, found.fusion_weight, target, silent)
    assert service.snapshot().head == head
    assert service.examine("wipe hues", None, 5).retrieval.sure
    refused = [quill.ask(service, text).status == "not_in_docs" for text in FOREIGN]
    assert sum(refused) >= len(FOREIGN) * 2 / 3
    assert outcome(service, most_false=0.0).calibration == found.calibration


def _ledger(settings: Settings) -> Any:
    from chapterverse.ledger import open_ledger

    return open_ledger(settings)


def test_an_embedder_that_is_down_stops_it(tmp_path: Path) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    embedder.down = True
    with pytest.raises(ProviderError, match="can't be reached"):
        outcome(service)


def test_an_index_that_moves_meanwhile_stops_it(index: Settings) -> None:
    service = quill.service(index)

    def publish(stage: str, done: int, total: int) -> None:
        if done == 3:
            quill.publish(Path(index.store.removeprefix("edge:")), {"install.md": quill.INSTALL})

    with pytest.raises(IndexLocked, match="published anew while it was calibrated"):
        calibrate(rows(), 0.08, service, index, publish)


def test_a_question_out_of_contract_is_named_by_its_line(words: EvaluationSession) -> None:
    asked = [*rows(), QuestionRow("x", "word " * 1500, None, "q.jsonl, line 99", (), False)]
    with pytest.raises(InputError, match=r"^q\.jsonl, line 99: "):
        outcome(words, asked)


def test_a_history_comes_before_its_question(words: EvaluationSession) -> None:
    history = [{"role": "user", "content": "How do I clear the cache?"}]
    alone, after = (
        words.weigh("and its size?", said, ())[0][0].length for said in (None, history)
    )  # fmt: skip
    assert after > alone


@pytest.mark.parametrize(("answerable", "unanswerable"), [(9, 30), (30, 9), (30, 0), (0, 12)])
def test_too_few_of_a_kind_are_counted_out(answerable: int, unanswerable: int) -> None:
    asked = [QuestionRow(str(i), "?", answerable=i < answerable) for i in range(answerable + unanswerable)]
    with pytest.raises(InputError) as refused:
        require_enough(asked, "q.jsonl")
    assert str(refused.value) == (
        f"q.jsonl holds {answerable} answerable and {unanswerable} unanswerable questions: "
        "a calibration needs at least 10 of each."
    )


# The fusion weight


def gains(better: float, by: float, noise: Sequence[float] = (0.0,)) -> Iterator[dict[float, float]]:
    for shift in noise:
        yield {w: 0.5 + (by + shift if w == better else 0.0) for w in TRIED_WEIGHTS}


def test_the_best_weight_is_taken_where_it_is_better() -> None:
    assert best_weight(list(gains(0.8, 0.2, (0.01, -0.01, 0.02))), 0.3) == 0.8


def test_what_questions_can_not_tell_apart_stays() -> None:
    assert best_weight(list(gains(0.8, 0.01, (0.4, -0.4, 0.0))), 0.3) == 0.3
    assert best_weight(list(gains(0.8, 0.0)), 0.3) == 0.3


# The command


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.jsonl"
    documents = [
        {"id": a.id, "question": a.question, "answerable": a.answerable, "expected": list(a.expected)} for a in rows()
    ]
    file.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return file


def test_the_command_stores_what_it_prints(index: Settings, questions: Path) -> None:
    before = head_of(index)
    out, err = run("calibrate", questions, "--store", index.store, "--json")
    said, head = json.loads(out), head_of(index)
    assert said["calibration"] == head.calibration
    assert (said["generation"], said["stored"], head.generation) == (2, True, before.generation + 1)
    assert said["questions"] == {"answerable": len(ANSWERED), "unanswerable": len(FOREIGN)}
    assert said["embedder"] == "none"
    assert said["before"].keys() == said["after"].keys() == {"refused", "false_refusals", "auc"}
    assert said["fusion_weight"] == {"before": head.fusion_weight, "after": head.fusion_weight, "mrr": {}}
    assert "Calibrated quill on 14 answerable and 12 unanswerable questions, generation 2" in err


def test_a_second_run_has_nothing_to_store(index: Settings, questions: Path) -> None:
    run("calibrate", questions, "--store", index.store)
    _, err = run("calibrate", questions, "--store", index.store)
    assert "already, generation 2" in err
    assert head_of(index).generation == 2


def test_a_dry_run_stores_nothing(index: Settings, questions: Path) -> None:
    before = head_of(index)
    out, err = run("calibrate", questions, "--store", index.store, "--dry-run")
    assert head_of(index) == before
    assert "Would calibrate quill" in err
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "refused of the unanswerable",
        "refused of the answerable",
        "AUC",
    ]


def test_the_status_and_the_next_index_know_nothing_of_it(index: Settings, questions: Path) -> None:
    run("calibrate", questions, "--store", index.store)
    quill.publish(Path(index.store.removeprefix("edge:")))
    assert head_of(index).generation == 2
    assert Calibration.from_json(head_of(index).calibration).questions


def test_an_index_of_another_embedder_is_refused(tmp_path: Path, questions: Path) -> None:
    settings = quill.publish(tmp_path / "index", embedder=quill.Terms())
    _, err = run("calibrate", questions, "--store", settings.store, code=1)
    assert "The index was made with the embedder 'terms'" in err
    assert head_of(settings).generation == 1


def test_without_an_index_there_is_nothing_to_calibrate(tmp_path: Path, questions: Path) -> None:
    _, err = run("calibrate", questions, "--store", f"edge:{tmp_path / 'none'}", code=1)
    assert "There is no index yet" in err


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('{"id": "a1", "question": "again?", "answerable": false}', "the id 'a1' is taken already"),
        ('{"id": "new", "question": "what of it?"}', 'a row needs an address in "expected", or "answerable": false.'),
        ('{"id": "new", "question": "what?", "answerable": "no"}', '"answerable" must be true or false.'),
        ("{", "this is not JSON."),
    ],
)
def test_a_bad_row_stops_it(index: Settings, questions: Path, row: str, sentence: str) -> None:
    questions.write_text(questions.read_text() + row + "\n")
    _, err = run("calibrate", questions, "--store", index.store, code=1)
    assert sentence in err
    assert head_of(index).generation == 1


@pytest.mark.parametrize("share", ["-0.1", "0.9", "none"])
def test_a_bar_out_of_range_is_a_usage_error(index: Settings, questions: Path, share: str) -> None:
    run("calibrate", questions, "--store", index.store, "--max-false-refusals", share, code=2)
