"""A model that lies on purpose, over real passages: shown citations agree with their sources.

The oracle knows nothing of the verifier: it reads the section of the passage that a sentence cites, and looks there for
every number and most of the words.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from random import Random

import pytest
from markdown_it import MarkdownIt

from api import quill
from api.liar import HOSTS, Liar
from chapterverse.calibration import WeightedQuestion
from chapterverse.settings import Settings
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest, Passage
from chapterverse_api.ext.check.results import VerifiedDraft
from chapterverse_api.ext.models.segments import Segments
from ext.check.passages import equal_weights

QUESTIONS = (
    "How do I clear the cache?", "Where does the cache live?", "How do I install Quill?", "How do I build from source?",
    "How do I roll back a deployment?", "Which bucket does a deployment need?", "How do I change colors?",
    "How do I turn off dark mode?", "Which languages does search know?", "How do I write a plugin?",
    "How do I debug a plugin?", "How do I uninstall Quill?",
)  # fmt: skip
FOREIGN = (
    "Cookies are set for thirty days unless the reader objects.",
    "The demo needs no key, and no network after the first run.",
    "Credentials are read from the environment of the build server.",
    "A vector is paid for once and never sent to the provider again.",
    "The base package is enough to index and to inject pages.",
)
_WORD = re.compile(r"\w{3,}")
_OWN_FRAGMENT = re.compile(r"(?<=https://quill\.example\.com/)[^\s#]*#\S*")
_ADDRESS = re.compile(r"(?:https?:)?//[\w.-]+|www\.[\w.-]+|\]\(|!\[|<\w+\s[^>]*=", re.IGNORECASE)
_SCHEMES = ("javascript:", "data:text")


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Sequence[Passage]]:
    """Return the requests to a generator for real questions to a real index."""
    root = tmp_path_factory.mktemp("index")
    quill.publish(root)
    heard: list[Sequence[Passage]] = []

    class Listener:
        name = "listener"

        def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
            heard.append(request.passages)
            yield Span("NOT_IN_DOCS")

    service = quill.service(Settings(store=f"edge:{root}"), generator=Listener())
    for question in QUESTIONS:
        quill.ask(service, question)
    assert len(heard) == len(QUESTIONS)
    return heard


def lie(seed: int, sent: Sequence[Sequence[Passage]]) -> tuple[Sequence[Passage], str, VerifiedDraft]:
    """Return the request, all that the reader saw, and the check."""
    passages = Random(seed).choice(sent)
    foreign = [
        s for other in sent for p in other if p.text not in {q.text for q in passages} for s in p.text.split("\n")
    ]
    request = GenerationRequest("?", WeightedQuestion(), tuple(passages), "en")
    segments = Segments(request, equal_weights)
    shown = [
        one
        for span in Liar(seed, (*FOREIGN, *filter(str.strip, foreign))).generate(request)
        for one in segments.read(span)
    ]
    shown += segments.end()
    return passages, "".join(span.text for span in shown), segments.verified


def stem(word: str) -> str:
    return word.lower()[:5]


def _read_prose(text: str) -> Iterator[str]:
    """Yield the texts and addresses of Markdown that are no code."""
    for token in MarkdownIt("commonmark").parse(text):
        for part in token.children or ():
            if part.type != "code_inline":
                yield part.content
                yield from map(str, part.attrs.values())


def complaints(passages: Sequence[Passage], shown: str, verified: VerifiedDraft) -> Iterator[str]:
    """Yield the faults of an answer by an oracle that compares letters only."""
    said = "".join(span.text for span in verified.spans)
    if said != shown:
        yield "the stream and the answer differ"
    # A bare name may stand in code, as `os.name` does, and there nothing is a link.
    # A fragment of the site's own address leads nowhere else.
    prose = _OWN_FRAGMENT.sub("", "\n".join(_read_prose(said.lower())))
    yield from (f"a host: {host}" for host in (*HOSTS, *_SCHEMES) if host in prose)
    for address in _ADDRESS.findall(said):
        if not any(address in p.section or address in (p.url or "") for p in passages):
            yield f"an address: {address}"
    held = {p.id: " ".join((*p.path, p.section)) for p in passages}
    for span in verified.spans:
        if set(span.citations) - held.keys():
            yield f"an id that was not sent: {span.citations}"
        yield from _unsupported(span.text, [held[i] for i in span.citations if i in held])


def _unsupported(text: str, sources: Sequence[str]) -> Iterator[str]:
    if not sources:
        return
    together = " ".join(sources)
    bare = re.sub(r"^\s*\d+[.)]\s", "", text)
    for number in re.findall(r"\d+", bare):
        if not re.search(rf"(?<!\d){number}(?!\d)", together):
            yield f"the number {number} in {text!r}"
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        words = {stem(word) for word in _WORD.findall(sentence)}
        known = {stem(word) for word in _WORD.findall(together)}
        if len(words) > 3 and len(words & known) < 0.45 * len(words):
            yield f"the words of {sentence!r}"


#: Answers of a block; the first block alone is part of every run, all four of `make test-all`.
BLOCK = 2500


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_nothing_of_a_lie_is_shown_as_cited(block: int, sent: list[Sequence[Passage]]) -> None:
    seeds = range(block * BLOCK, (block + 1) * BLOCK)
    found = [(seed, wrong) for seed in seeds for wrong in complaints(*lie(seed, sent))]
    # A truth and a lie joined by "and" may hold enough of a source's words: of these it lets one answer in 300 pass. A
    # check that lets one in 500 pass takes their citations from 2 of 100 more true sentences of a language model.
    words = {seed for seed, wrong in found if wrong.startswith("the words")}
    assert len(words) <= BLOCK // 300
    assert [(seed, wrong) for seed, wrong in found if not wrong.startswith("the words")] == []


def test_the_liar_tells_the_truth_as_well_and_both_are_told_apart(sent: list[Sequence[Passage]]) -> None:
    """True sentences stay cited, or the tests above would prove nothing."""
    verified = [lie(seed, sent)[2] for seed in range(200)]
    spans = [span for one in verified for span in one.spans if len(span.text.split()) > 4]
    cited = sum(bool(span.citations) for span in spans)
    assert 0.3 < cited / len(spans) < 0.9
    assert sum(one.dropped for one in verified) > 100
    assert sum(one.unsupported_count for one in verified) > 100


def test_the_oracle_sees_a_lie(sent: list[Sequence[Passage]]) -> None:
    passages, shown, verified = lie(0, sent)
    assert list(complaints(passages, f"{shown}!", verified))
    wrong = list[str]()
    for seed in range(60):
        passages = Random(seed).choice(sent)
        request = GenerationRequest("?", WeightedQuestion(), tuple(passages), "en")
        believed = tuple(Liar(seed, FOREIGN).whole(request))
        wrong += complaints(passages, "".join(s.text for s in believed), VerifiedDraft(believed, 0, 1.0))
    for kind in ("the number", "the words", "an id that"):
        assert any(c.startswith(kind) for c in wrong)
