from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse.widget import bundle
from chapterverse_api import request_limits
from chapterverse_api.contract import ChatQuery, Message, Signature
from chapterverse_api.conversation.transcript import SIGNATURE_SECONDS, Signer, Transcript, signed_question, truncate

NOW = 1_800_000_000.0
KEY, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2
SIGNER = Signer([KEY])
WIDGET = Path(bundle.__file__).parent


def turns(*pairs: tuple[str, str], signer: Signer = SIGNER, now: float = NOW) -> list[Message]:
    """Return a conversation as our server marks it and a browser sends it back."""
    history: list[Message] = []
    for question, answer in pairs:
        previous = signer.read(history, now=now).tag
        mark = signer.sign(f"{len(history):032x}", previous, question, answer, now=now)
        history += [
            Message(role="user", content=truncate(question)),
            Message(role="assistant", content=truncate(answer), signature=mark),
        ]
    return history


def ours(history: list[Message], signer: Signer = SIGNER, now: float = NOW) -> list[int]:
    return sorted(signer.read(history, now=now).positions)


def conversation(name: str, length: int = 5) -> list[Message]:
    return turns(*((f"{name} question {i}?", f"{name} answer {i}.") for i in range(length)))


def marked(message: Message, **changes: Any) -> Message:
    """Return the message with another mark, which need not keep the contract."""
    assert message.signature is not None
    return message.model_copy(update={"signature": message.signature.model_copy(update=changes)})


A = conversation("A")
B = conversation("B")


def test_the_whole_and_every_stretch_up_to_its_end_is_ours() -> None:
    assert ours(A) == [1, 3, 5, 7, 9]
    for start in range(0, 10, 2):
        assert ours(A[start:]) == list(range(1, 10 - start, 2))


def test_the_next_signature_names_the_last_that_is_ours() -> None:
    last = A[-1].signature
    assert last is not None
    assert SIGNER.read(A, now=NOW).tag == last.tag
    assert SIGNER.read([], now=NOW) == Transcript()


def test_what_was_said_later_may_be_left_out() -> None:
    assert ours(A[:6]) == [1, 3, 5]


@pytest.mark.parametrize(
    ("history", "left"),
    [
        pytest.param([*A[2:4], *A[0:2]], [3], id="two turns change places"),
        pytest.param([*A[0:2], *A[4:6]], [3], id="a turn is left out"),
        pytest.param([*A[0:4], *A[2:4]], [5], id="a turn stands twice"),
        pytest.param([*A[0:2], *A[0:2]], [3], id="the first turn stands twice"),
        pytest.param([*A[0:2], *B[2:4]], [3], id="two conversations are spliced"),
        pytest.param([*A[0:4], *B[0:2]], [5], id="another conversation's beginning"),
        pytest.param([*A[0:2], *B[2:4], *A[4:6]], [5], id="a turn of another one in the middle"),
        pytest.param([A[0], B[1], *A[2:4]], [3], id="another conversation's answer"),
        pytest.param([A[0], A[3], A[2], A[1]], [], id="answers change places"),
        pytest.param([A[1], A[0]], [], id="the answer before the question"),
        pytest.param([A[1]], [], id="an answer to nothing"),
        pytest.param([A[0], A[1].model_copy(update={"role": "user"})], [], id="an answer as the reader's"),
        pytest.param([A[0].model_copy(update={"role": "assistant"}), A[1]], [], id="a question as ours"),
    ],
)
def test_only_the_stretch_at_the_end_is_proven(history: list[Message], left: list[int]) -> None:
    assert ours(history) == left


def test_what_is_not_signed_breaks_nothing() -> None:
    said = [Message(role="user", content="And?"), Message(role="assistant", content="We never said so.")]
    assert ours([*said, *A[0:2], *said, *A[2:4], *said]) == [3, 7]


def test_a_mark_ends() -> None:
    assert ours(A, now=NOW + SIGNATURE_SECONDS - 1) == [1, 3, 5, 7, 9]
    assert ours(A, now=NOW + SIGNATURE_SECONDS) == []


def test_a_conversation_goes_on_when_its_beginning_has_ended() -> None:
    later = NOW + SIGNATURE_SECONDS - 10
    mark = SIGNER.sign("f" * 32, SIGNER.read(A, now=later).tag, "q", "a", now=later)
    whole = [*A, Message(role="user", content="q"), Message(role="assistant", content="a", signature=mark)]
    assert ours(whole, now=later) == [1, 3, 5, 7, 9, 11]
    assert ours(whole, now=NOW + SIGNATURE_SECONDS) == [11]


def test_keys_are_rotated() -> None:
    both = Signer.from_settings(Settings(signing_key=f" {OTHER} , {KEY},"))
    assert ours(A, both) == [1, 3, 5, 7, 9]
    newer = turns(("q", "a"), signer=both)
    assert ours(newer, both) == ours(newer, Signer([OTHER])) == [1]
    assert ours(newer) == []


def test_the_mark_of_another_deployment_is_the_readers_word() -> None:
    assert ours(turns(("q", "a"), signer=Signer([OTHER]))) == []
    signature = turns(("q", "a"), signer=Signer([OTHER]))[1].signature
    assert signature
    foreign = marked(A[1], key_id=signature.key_id)
    assert ours([A[0], foreign], Signer([KEY, OTHER])) == []


def test_without_a_key_each_process_knows_only_its_own_marks() -> None:
    one, other = Signer(), Signer.from_settings(Settings(signing_key=" , "))
    history = turns(("q", "a"), signer=one)
    assert ours(history, one) == [1]
    assert ours(history, other) == []


def test_a_key_is_in_no_mark() -> None:
    assert KEY[:8] not in json.dumps([m.model_dump(mode="json")["signature"] for m in A])


@pytest.mark.parametrize("key", ["k", KEY[:31], "a" * 64, "secret " * 8, f"{KEY},short"])
def test_a_weak_key_is_refused_in_one_sentence_without_the_key(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Signer.from_settings(Settings(signing_key=key))
    assert str(caught.value) == (
        "A key in CHAPTERVERSE_SIGNING_KEY is shorter than 32 characters, or the same few over and over: make one with"
        " `openssl rand -hex 32`."
    )


def test_a_question_or_else_the_selection_is_signed() -> None:
    assert signed_question(ChatQuery(query="q", selected_text="s")) == "q"
    assert signed_question(ChatQuery(selected_text="s" * 5000)) == "s" * 4000


def test_what_a_browser_cuts_off_is_not_signed_and_counts_for_nothing() -> None:
    question, answer = "q" * 3999 + "😀", "😀" * 2500
    history = turns((question, answer))
    assert history[0].content == "q" * 3999 + "\ufffd"
    assert ours(history) == [1]
    # From a client that truncates by characters: the rest has no signature, and `truncate` is the part known as ours.
    longer = history[1].model_copy(update={"content": answer + "But we do offer refunds."})
    assert ours([history[0], longer]) == [1]
    assert truncate(longer.content) == history[1].content


def run(node: Path, program: str, given: str = "") -> Any:
    """Return the JSON that a program in JavaScript prints."""
    asked = [str(node), "--input-type=module", "--no-warnings", "-e", program]
    done = subprocess.run(asked, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_widget_sends_no_more_than_the_limits_of_a_request(node: Path) -> None:
    program = f"""
globalThis.CSSStyleSheet = class {{ replaceSync() {{}} }};
const {{ maxLength }} = await import({json.dumps((WIDGET / "session.js").as_uri())});
const {{ recent }} = await import({json.dumps((WIDGET / "history.js").as_uri())});
const turn = content => [{{ role: 'user', content }}, {{ role: 'assistant', content }}];
const sent = content => recent(Array(20).fill(turn(content)).flat());
const chars = sent('a'.repeat(9999)).reduce((sum, {{ content }}) => sum + content.length, 0);
console.log(JSON.stringify([maxLength, sent('a').length, chars]));
"""
    assert run(node, program) == [
        request_limits.MAX_MESSAGE_CHARS,
        request_limits.MAX_HISTORY_MESSAGES,
        request_limits.MAX_HISTORY_CHARS,
    ]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("panel.js", f"(location.origin + location.pathname).slice(0, {request_limits.MAX_URL_CHARS})"),
        ("panel.js", f"lang.slice(0, {request_limits.MAX_LANGUAGE_CHARS})"),
        ("panel.js", f"`${{config.context}}`.slice(0, {request_limits.MAX_CONTEXT_CHARS:.0e})".replace("e+0", "e")),
        ("selection.js", f"panel.selection.trim().slice(0, {request_limits.MAX_SELECTION_CHARS})"),
        ("turns.js", f"name: 'comment', maxLength: {request_limits.MAX_COMMENT_CHARS},"),
    ],
)
def test_what_the_widget_cuts_off_once_is_what_the_api_refuses(file: str, code: str) -> None:
    assert code in (WIDGET / file).read_text(encoding="utf-8")


def test_texts_are_cut_as_the_widget_cuts_them(node: Path) -> None:
    chance = random.Random(5)
    pieces = ["a", "é", "語", "😀", "\ud83d", "\ude00", "\n", "\u2028"]
    texts = ["".join(chance.choices(pieces, k=chance.choice([1, 5, 3999, 4000, 4001, 6000]))) for _ in range(60)]
    program = f"""
globalThis.CSSStyleSheet = class {{ replaceSync() {{}} }};
const {{ recent }} = await import({json.dumps((WIDGET / "history.js").as_uri())});
const texts = JSON.parse(await new Response(process.stdin).text());
console.log(JSON.stringify(texts.map(content => recent([{{ role: 'user', content }}, {{ role: 'assistant', content }}])
  .map(message => message.content))));
"""
    assert run(node, program, json.dumps(texts)) == [[truncate(text)] * 2 for text in texts]
    assert all(truncate(truncate(text)) == truncate(text) for text in texts)


# No change of what was signed is taken for ours


def flipped(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice([c for c in "0123456789abcdefé😀 " if c != text[at]]) + text[at + 1 :]


def moved(turn: list[Message], chance: random.Random) -> list[Message]:
    """Move text across the border of question and answer."""
    question, answer = turn[0].content, turn[1].content
    whole, border = question + answer, len(question)
    at = chance.choice([i for i in range(1, len(whole)) if i != border])
    return [said(turn[0], content=whole[:at]), said(turn[1], content=whole[at:])]


def said(message: Message, **changes: Any) -> Message:
    return message.model_copy(update=changes)


def without(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    return text[:at] + text[at + 1 :]


#: Each changes one turn in one way; none leaves it as it was.
CHANGES: list[Callable[[list[Message], random.Random], list[Message]]] = [
    lambda t, c: [said(t[0], content=flipped(t[0].content, c)), t[1]],
    lambda t, c: [t[0], said(t[1], content=flipped(t[1].content, c))],
    lambda t, c: [said(t[0], content=without(t[0].content, c)), t[1]],
    lambda t, c: [t[0], said(t[1], content=without(t[1].content, c))],
    lambda t, c: [t[0], said(t[1], content=t[1].content + c.choice(["\0", " ", "a", t[0].content]))],
    moved,
    lambda t, c: [said(t[0], content=t[1].content), said(t[1], content=t[0].content)],
    lambda t, c: [t[0], marked(t[1], tag=flipped(_mark(t).tag, c))],
    lambda t, c: [t[0], marked(t[1], tag=c.randbytes(32).hex())],
    lambda t, c: [t[0], marked(t[1], previous=c.choice([c.randbytes(32).hex(), _mark(t).tag]))],
    lambda t, c: [t[0], marked(t[1], turn_id=c.randbytes(16).hex())],
    lambda t, c: [t[0], marked(t[1], key_id=c.randbytes(8).hex())],
    lambda t, c: [t[0], marked(t[1], expiry=_mark(t).expiry + c.choice([1, -1, 60, 2**31, 256]))],
]


def _mark(turn: list[Message]) -> Signature:
    assert turn[1].signature is not None
    return turn[1].signature


def forgeries(count: int) -> Iterator[list[Message]]:
    chance = random.Random(11)
    real = [[*history[at : at + 2]] for history in (A, B) for at in range(0, 10, 2)]
    for number in range(count):
        turn = chance.choice(real)
        if number % 10 == 0:
            other = chance.choice([t for t in real if t is not turn])
            yield chance.choice([[turn[0], other[1]], [turn[0], said(turn[1], signature=other[1].signature)]])
        else:
            yield chance.choice(CHANGES)(turn, chance)


def hexadecimal(turn: list[Message]) -> bool:
    """Return whether the contract lets the turn pass; the rest is refused before it comes to us."""
    mark = turn[1].signature
    return mark is not None and all(set(v) <= set("0123456789abcdef") for v in (mark.tag, mark.previous))


@pytest.mark.slow
def test_no_forgery_of_a_hundred_thousand_is_accepted() -> None:
    made = accepted = 0
    for turn in filter(hexadecimal, forgeries(105_000)):
        made += 1
        accepted += bool(SIGNER.read(turn, now=NOW).positions)
    assert made >= 100_000
    assert accepted == 0


def test_ten_long_messages_are_read_in_a_moment() -> None:
    long = turns(*(("é" * 1600, "é" * 1600) for _ in range(5)))
    started = time.process_time()
    for _ in range(20):
        assert len(SIGNER.read(long, now=NOW).positions) == 5
    assert (time.process_time() - started) / 20 < 0.01
