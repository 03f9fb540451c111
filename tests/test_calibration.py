from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chapterverse.calibration import Calibration, ChunkFeatures, Coefficients, Matching, _names, read_question
from chapterverse.indexing.evidence_fit import _all_features, _make_questions, fit_to_index
from chapterverse.model import Chunk, EmbedderCard, Head, Point
from chapterverse.store import Snapshot
from chapterverse.store.edge import EdgeStore
from chapterverse.text import lexical
from chapterverse.text.lexical import document_vector, query_vector, question_words
from fakes.docs import SCOPE, point
from growth import assert_linear

MANUAL = {
    "install": "Install the tool with pip install harbor, or with Homebrew on a Mac. Python 3.11 or newer is needed.",
    "first-run": "Run harbor init in an empty folder. It writes harbor.toml, the file that all settings live in.",
    "port": "The server listens on port 8080. Set listen_port in harbor.toml, or pass --port, to choose another one.",
    "tls": "To serve over HTTPS put the certificate and its private key into the folder certs and set tls = true.",
    "backup": "harbor backup writes a snapshot of the database to a tar archive. Restore it with harbor restore FILE.",
    "schedule": "Backups can be scheduled: backup_schedule takes a cron expression; old archives are rotated weekly.",
    "users": "Add a user with harbor user add NAME. Passwords are hashed with Argon2 and never written to the log.",
    "roles": "A role names what its users may do: reader, editor or admin. Only an admin may change roles.",
    "tokens": "An access token lets a script sign in. Tokens expire after ninety days and can be revoked at any time.",
    "webhooks": "A webhook is called with a JSON body after each deploy. Failed calls are retried with backoff.",
    "logging": "Logs are JSON lines on standard error. log_level takes debug, info, warning or error.",
    "metrics": "Prometheus metrics are served at /metrics: request counts, latency, the queue's length.",
    "cache": "Responses are cached in memory for cache_seconds. Every replica is told after a write.",
    "replicas": "Replicas follow the primary by streaming its write ahead log. A replica answers reads only.",
    "upgrade": "Before an upgrade take a backup. The database schema is migrated when the new version starts.",
    "proxy": "Behind nginx set trust_proxy, so that the client's address is taken from the X-Forwarded-For header.",
    "quota": "A quota limits the storage of one user. When it is used up, uploads are refused with status 413.",
    "plugins": "Plugins are Python packages with an entry point in the group harbor.plugins; they may add commands.",
    "theme": "Colors and the logo of the web interface come from the folder theme, before the built-in files.",
    "trouble": "If the server does not start, run harbor doctor. It checks settings, port and the folder's rights.",
}

ANSWERED = [
    "How do I install harbor on a Mac?",
    "Which port does the server listen on?",
    "How can I schedule backups?",
    "How are passwords hashed?",
    "When do access tokens expire?",
    "What happens when a webhook call fails?",
    "change log_level to debug",
    "Can a replica answer writes?",
    "How do I serve over HTTPS with a certificate?",
    "What is backup_schedule?",
    "restore a snapshot archive",
    "upload refused with status 413 quota",
]

FOREIGN = [
    "What is the capital of France?",
    "How do I bake sourdough bread?",
    "Who won the football world cup in 1998?",
    "best pizza recipe with mushrooms",
    "How tall is Mount Everest?",
    "translate good morning into Italian",
    "What is the meaning of life?",
    "Explain quantum entanglement to a child",
    "kubernetes helm chart values",
    "symptoms of the common cold",
]


def points(texts: dict[str, str]) -> list[Point]:
    made = [point(name, text) for name, text in texts.items()]
    return [Point(p.chunk, document_vector(p.chunk.heading_path, p.chunk.text)) for p in made]


@contextmanager
def published(folder: Path, made: list[Point]) -> Iterator[Snapshot]:
    store = EdgeStore(folder)
    with store.publish(SCOPE, EmbedderCard()) as publication:
        publication.write(made)
        calibration = fit_to_index(publication.preview()).to_json()
        publication.commit(Head("docs", "", 1, len(made), len(made), "test", calibration=calibration))
    yield store.snapshot(SCOPE)


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    with published(tmp_path_factory.mktemp("manual"), points(MANUAL)) as snapshot:
        yield snapshot


def best(text: str, snapshot: Snapshot) -> tuple[float, Chunk | None]:
    """Return the strongest evidence for a question, and the chunk that it is in."""
    calibration = Calibration.from_json(snapshot.head.calibration)
    question, idf = read_question(text, snapshot.head.languages, snapshot)
    hits = snapshot.search_lexical(query_vector(text), 10)
    scored = [
        (calibration.of(Matching(question, idf).features(hit.lexical.among(idf))), hit.chunk)
        for hit in hits
        if question.has_words
    ]
    return max(scored, key=lambda pair: pair[0], default=(0.0, None))


@pytest.mark.parametrize("question", ANSWERED)
def test_what_the_pages_answer_is_above_the_floor(manual: Snapshot, question: str) -> None:
    assert best(question, manual)[0] >= manual.head.calibration["floor"]


@pytest.mark.parametrize("question", FOREIGN)
def test_what_they_do_not_is_below_it(manual: Snapshot, question: str) -> None:
    assert best(question, manual)[0] < manual.head.calibration["floor"]


def test_the_strongest_evidence_is_in_the_right_chunk(manual: Snapshot) -> None:
    for question, page in [
        ("When do access tokens expire?", "tokens.md"),
        ("How can I schedule backups?", "schedule.md"),
    ]:
        chunk = best(question, manual)[1]
        assert chunk is not None
        assert chunk.source_file_path == page


def test_more_of_the_question_is_more_evidence(manual: Snapshot) -> None:
    calibration = Calibration.from_json(manual.head.calibration)
    few, half, all_of_it = (calibration.of(ChunkFeatures(c, s, 1.6)) for c, s in ((0.2, 0.1), (0.6, 0.3), (1.0, 0.5)))
    assert 0 < few < half < all_of_it < 1


def test_a_fit_is_the_same_whatever_led_to_the_index(tmp_path: Path, manual: Snapshot) -> None:
    store = EdgeStore(tmp_path)
    made = points(MANUAL)
    strangers = points({f"stranger-{i}": f"Something else number {i} about ports and tokens" for i in range(30)})
    for generation, (write, delete) in enumerate([(strangers, []), (made, strangers), (made[:7], [])], 1):
        with store.publish(SCOPE, EmbedderCard()) as publication:
            publication.write(list(reversed(write)))
            publication.delete([p.chunk.chunk_id for p in delete])
            calibration = fit_to_index(publication.preview()).to_json()
            publication.commit(Head("docs", "", generation, 20, 20, "test", calibration=calibration))
    assert store.snapshot(SCOPE).head.calibration == manual.head.calibration


def test_made_questions_are_told_apart(manual: Snapshot) -> None:
    calibration = Calibration.from_json(manual.head.calibration)
    sample = [sorted(set(_words(p))) for p in manual.points()]
    asked, foreign = zip(*_make_questions(sample), strict=True)
    scores = [[calibration.of(f) for f in _all_features(made, manual)] for made in (asked, foreign)]
    kept, passed = (sum(s >= calibration.floor for s in side) / len(side) for side in scores)
    assert kept >= 0.9
    assert passed <= 0.3


def _words(made: Point) -> Iterator[tuple[int, ...]]:
    from chapterverse.text.lexical import words

    return (word.terms for word in words(made.chunk.embed_text))


def test_calibrations_survive_json(manual: Snapshot) -> None:
    stored = json.loads(json.dumps(manual.head.calibration))
    assert Calibration.from_json(stored).to_json() == stored
    assert 0 < stored["floor"] <= 0.5


@pytest.mark.parametrize("question", ["", "???", "what is the", "🤷", "_"])
def test_a_question_without_words_has_no_evidence(manual: Snapshot, question: str) -> None:
    asked, idf = read_question(question, ("en",), manual)
    assert not asked.has_words
    assert (asked.familiarity, idf) == (0.0, {})


# Indexes of hardly anything


def test_an_empty_index_has_no_evidence_for_anything(tmp_path: Path) -> None:
    with published(tmp_path, []) as snapshot:
        assert best("port", snapshot) == (0.0, None)
        calibration = Calibration.from_json(snapshot.head.calibration)
        assert calibration.floor > 0
        assert calibration.of(ChunkFeatures(1.0, 1.0, 0.0)) < calibration.floor


def test_an_index_without_words_has_none_either(tmp_path: Path) -> None:
    wordless = point("dots", "…", heading_path=())
    with published(tmp_path, [wordless]) as snapshot:
        assert best("port", snapshot) == (0.0, None)


def test_an_index_of_one_chunk_answers_what_it_says(tmp_path: Path) -> None:
    with published(tmp_path, points({"port": MANUAL["port"]})) as snapshot:
        floor = snapshot.head.calibration["floor"]
        assert best("Which port does the server listen on?", snapshot)[0] >= floor
        for foreign in FOREIGN:
            assert best(foreign, snapshot)[0] < floor


def test_equal_chunks_do_not_break_a_fit(tmp_path: Path) -> None:
    with published(tmp_path, points({f"copy-{i}": MANUAL["port"] for i in range(40)})) as snapshot:
        assert best("Which port does the server listen on?", snapshot)[0] >= snapshot.head.calibration["floor"]


# Features


def test_coverage_is_the_share_of_the_words_by_rarity(manual: Snapshot) -> None:
    question, idf = read_question("webhook zebra", ("en",), manual)
    coverage, strength, length, *_ = Matching(question, idf).features(
        document_vector((), MANUAL["webhooks"]).among(idf)
    )
    webhook, zebra = question.weights
    assert coverage == pytest.approx(webhook / (webhook + zebra))
    assert 0 < strength < coverage
    assert length == pytest.approx(0.693, abs=0.001)


def test_an_identifier_is_covered_by_its_parts(manual: Snapshot) -> None:
    question, idf = read_question("listenPort", ("en",), manual)
    whole, part = (
        Matching(question, idf).features(document_vector((), text).among(idf))[0]
        for text in ("set listen_port", "the port")
    )
    assert whole == 1.0
    assert 0 < part < 1


def test_a_word_that_the_index_never_saw_weighs_as_much_as_a_unique_one(manual: Snapshot) -> None:
    question, _ = read_question("zebra homebrew", ("en",), manual)
    unknown, unique = question.weights
    assert unknown >= unique > 0


def test_a_word_has_one_alternative_for_each_language(manual: Snapshot) -> None:
    question, _ = read_question("replicas", ("en", "de"), manual)
    assert len(question.words) == 1
    assert len(question.words[0]) == 2


def test_familiarity_is_the_share_of_the_words_that_stand_anywhere(manual: Snapshot) -> None:
    question, idf = read_question("webhook homebrew zebra", ("en",), manual)
    webhook, homebrew, zebra = question.weights
    assert question.familiarity == pytest.approx((webhook + homebrew) / (webhook + homebrew + zebra))
    assert (
        Matching(question, idf).features(document_vector((), "nothing of it").among(idf)).familiarity
        == question.familiarity
    )


def test_parts_of_a_word_make_it_familiar(manual: Snapshot) -> None:
    assert read_question("serverPort", ("en",), manual)[0].familiarity == 1.0


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How do I set listen_port to 8080?", ["listen_port", "8080"]),
        ("is harbor.toml read by Homebrew", ["harbor.toml", "homebrew"]),
        ("what does `harbor doctor` check", ["harbor", "doctor"]),
        ("Does HTTPS need nginx? Passwords are hashed.", ["https"]),
        ("Passwords and webhooks", []),
        ("I hash. Webhooks too", []),
    ],
)
def test_names_are_identifiers_numbers_and_capitals_inside_a_sentence(
    manual: Snapshot, question: str, names: list[str]
) -> None:
    asked, _ = read_question(question, ("en",), manual)
    wanted = [next(iter(question_words(name, ("en",)))).terms for name in names]
    assert [word[0] for word in asked.names] == wanted


def test_in_german_a_capital_makes_no_name(manual: Snapshot) -> None:
    assert read_question("Wo stehen die Einstellungen?", ("de",), manual)[0].names == ()
    assert len(read_question("Wo steht listenPort in TLS?", ("de-AT",), manual)[0].names) == 2


def test_the_share_of_the_names_that_a_chunk_holds(manual: Snapshot) -> None:
    question, idf = read_question("can I pass --port with Kubernetes 1.29", ("en",), manual)
    held = document_vector((), MANUAL["port"])
    assert Matching(question, idf).features(held.among(idf)).names == 0.0
    question, idf = read_question("can I pass it to Harbor on Kubernetes", ("en",), manual)
    assert Matching(question, idf).features(held.among(idf)).names < 0.6
    question, idf = read_question("settings of the server", ("en",), manual)
    assert Matching(question, idf).features(held.among(idf)).names == 1.0


def test_a_title_in_the_question_is_evidence_in_an_index_that_nobody_calibrated(manual: Snapshot) -> None:
    calibration = Calibration.from_json(manual.head.calibration)
    question, idf = read_question("webhook", ("en",), manual)
    held = document_vector((), MANUAL["webhooks"])
    plain, titled = (Matching(question, idf).features(held.among(idf), title=title) for title in (0.0, 1.0))
    assert (plain.title, titled.title) == (0.0, 1.0)
    assert calibration.of(titled) > calibration.of(plain)


def test_the_time_for_names_grows_with_the_question(manual: Snapshot) -> None:
    assert_linear(lambda n: _names("a_B9.-" * n + "`" * n + "A" * n + ". " * n, ("en",)), 1000, 8000)


def test_a_name_that_the_pages_do_not_hold_is_refused_by_an_index_that_nobody_calibrated(manual: Snapshot) -> None:
    plain, named = "schedule backups with cron", "schedule Kubernetes backups with cron at OpenShift"
    assert best(named, manual)[0] < best(plain, manual)[0]


# Calibrations


def test_every_feature_but_the_bias_raises_evidence() -> None:
    calibration = Calibration(Coefficients(-3, 1, 1, 1, 1), Coefficients(-3, 1, 1, 1, 1, 1, 1, 1))
    low = ChunkFeatures(0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2)
    for name in ChunkFeatures._fields:
        assert calibration.of(low._replace(**{name: 0.9})) > calibration.of(low)


def test_cosines_of_an_embedder_that_nobody_calibrated_mean_nothing() -> None:
    calibration = Calibration(Coefficients(-1, 2, 1, 0, 1))
    found = ChunkFeatures(0.5, 0.2, 1.0, 0.7)
    assert calibration.of(found._replace(nearness=0.9)) == calibration.of(found)


def test_without_the_embedder_words_have_weights_of_their_own() -> None:
    calibration = Calibration(Coefficients(-1, 2), Coefficients(-4, 1, nearness=8))
    by_words, by_both = (calibration.of(ChunkFeatures(0.5, 0.2, 1.0, nearness=n)) for n in (None, 0.5))
    assert by_words == 0.5
    assert by_both == pytest.approx(1 / (1 + 2.718281828**-0.5))


def test_what_only_meaning_finds_can_be_enough() -> None:
    calibration = Calibration(Coefficients(-4, 8), Coefficients(-4, 4, nearness=8))
    wordless = ChunkFeatures(0.0, 0.0, 0.0, 0.0, 0.7)
    assert calibration.of(wordless) >= calibration.floor


def test_calibrations_of_older_releases_are_read() -> None:
    old = {"bias": -8.5, "coverage": 9.1, "strength": 3.4, "length": 2.0, "floor": 0.48}
    calibration = Calibration.from_json(old)
    assert calibration == Calibration(Coefficients(-8.5, 9.1, 3.4, 2.0), None, 0.48, 0)
    assert calibration.questions == 0


def test_a_measured_calibration_survives_json() -> None:
    calibration = Calibration(Coefficients(-1.5, 2, 1, 0.5, 3), Coefficients(-2, 1, 1, 0, 2, 4.25), 0.5, 80)
    assert Calibration.from_json(json.loads(json.dumps(calibration.to_json()))) == calibration
    assert calibration.questions


def test_a_head_without_a_calibration_has_no_evidence() -> None:
    calibration = Calibration.from_json({})
    assert calibration.of(ChunkFeatures(1.0, 1.0, 2.0)) < calibration.floor


def test_synonyms_are_those_that_the_index_holds(manual: Snapshot) -> None:
    question, idf = read_question("where do I logout", ["en"], manual)
    assert [word for (word,) in question.words] == [question_words_of("logout")]
    (synonym,) = question.synonyms
    assert synonym.term == lexical.hash_term("sign")
    assert (synonym.word_indices, synonym.max_weight) == ((0,), question.weights[0])
    assert synonym.term not in idf


def test_a_question_in_another_language_has_no_synonyms(manual: Snapshot) -> None:
    assert read_question("logout", ["de"], manual)[0].synonyms == ()


def test_of_a_long_question_the_beginning_has_synonyms(manual: Snapshot) -> None:
    short, long = (read_question("logout " * n, ["en"], manual)[0].synonyms for n in (32, 500))
    assert len(short) == len(long) == 32


def question_words_of(text: str) -> tuple[int, ...]:
    (word,) = question_words(text, ["en"])
    return word.terms
