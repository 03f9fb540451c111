"""True sentences of answers made wrong in ten ways by rule, to train the check on, and sections of real sites.

Which rules plant a flaw was decided before any figure of the check on them was seen. What they make never counts in a
figure: it only joins the folds that a model is trained on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from chapterverse.text.sentences import split
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.cues import opposites

#: Sites; `uv` is left out, since the labelled answers are of it, too.
SITES = ("docusaurus", "flask", "httpx", "hugo", "pydantic", "starlight", "vitepress")
_OTHER_LANGUAGES = re.compile(r"/(?:ja|es|de|fr|zh|ru|pt|ko|fa|it|id|tr|hi|da|uk|pt-br|zh-cn|zh-tw)/")
_FRONT = re.compile(r"\A---\n.*?\n---\n|\A\+\+\+\n.*?\n\+\+\+\n", re.DOTALL)
_NOISE = re.compile(
    r"^(?:import .*|export .*|:::.*|!!!.*|\.\. .*|<[^>]*>|\{\{.*|[=~^-]{4,})$|\s*\{#[\w-]+\}", re.MULTILINE
)


def sections(root: Path, site: str) -> list[tuple[str, Passage]]:
    """Return the sections of a site's English pages, each with its page."""
    found = []
    for file in sorted((root / site).rglob("*")):
        if file.suffix not in (".md", ".mdx", ".rst") or _OTHER_LANGUAGES.search(str(file)):
            continue
        text = _NOISE.sub("", _FRONT.sub("", file.read_text(encoding="utf-8", errors="replace")))
        if file.suffix == ".rst":
            text = re.sub(r":\w+:`~?\.?([^`<]*?)(?:\s<[^`]*)?`", r"`\1`", text).replace("``", "`")
        title = file.stem.replace("-", " ")
        for part in re.split(r"(?m)^(?=#{1,4}\s)", text):
            heading = re.match(r"#{1,4}\s+(.*)", part)
            body = part[heading.end() :] if heading else part
            body = re.sub(r"\n{3,}", "\n\n", body).strip()
            if 200 <= len(body) <= 4_000:
                path = (title, heading.group(1).strip()) if heading else (title,)
                found.append((str(file), Passage("1", path, body, body)))
    return found


def flawed(
    text: str, passages: Sequence[Passage], cited: Sequence[str], beside: Sequence[str], seed: str, most: int = 4
) -> Iterator[tuple[str, str]]:
    """Yield a true sentence of an answer with one flaw each, and the type of that: at most so many."""
    chance = Random(seed)
    own = _usable_prose(p for p in passages if p.id in cited)
    others = [p for p in passages if p.id not in cited]
    names = [n for p in passages for n in re.findall(r"`([^`\n]{2,40})`", p.text)]
    flaw = _Flaw(text, text, [*own, *beside] or [text], others, names, names, chance)
    kinds = list(flaw.kinds())
    chance.shuffle(kinds)
    held = " ".join(p.text for p in passages if p.id in cited)
    for kind, make in kinds[:most]:
        wrong = make()
        if wrong and wrong != text and wrong not in held:
            yield wrong, kind


def _usable(text: str) -> bool:
    words = len(text.split())
    return 7 <= words <= 45 and text[0].isupper() and not text.endswith((":", "?")) and text.count("|") == 0


def _usable_prose(passages: Iterable[Passage]) -> list[str]:
    sentences = (s for p in passages for s in split(p.section) if s.kind == "prose")
    return [s.plain_text for s in sentences if _usable(s.plain_text)]


def _lower(text: str) -> str:
    return text[0].lower() + text[1:] if text[:2] != text[:2].upper() else text


_MODAL = r"\b(is|are|was|were|can|will|should|must|may|might|could|would)\b(?! not\b)(?!n't)"
_VERB = r"\b(it|this|that|they|you|[A-Z]\w+|`[^`]+`) (\w{3,12}s)\b(?= (?:the|a|an|all|to|your|any|`))"
_SCOPES = (
    (r"\bmay\b|\bmight\b|\bcan\b(?! be)", "always"),
    (r"\busually\b|\boften\b|\bsometimes\b|\btypically\b|\bgenerally\b", "always"),
    (r"\bby default\b", "in every case"),
    (r"\bsome\b|\bmany\b|\bmost\b|\bseveral\b", "all"), (r"\bonly\b |\bjust\b ", ""),
    (r"\ball\b|\bevery\b|\beach\b|\bany\b", "only some"), (r"\balways\b", "sometimes"), (r"\bshould\b", "must"),
    (r"\bmust\b|\bhas to\b|\bneed to\b", "may"), (r"\boptionally\b ", ""),
    (r"\bat least\b", "exactly"), (r"\bup to\b", "exactly"),
    (r"\ba\b (?=\w+ (?:is|can|will))", "every "), (r"\bcan be\b", "is always"), (r"\bwill\b", "will always"),
    (r"\b(to|for|in|on|with) (?=the |your |a )", r"only \1 "),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Flaw:
    sentence: str
    true: str
    beside: Sequence[str]
    others: Sequence[Passage]
    names: Sequence[str]
    flags: Sequence[str]
    chance: Random

    def kinds(self) -> Iterator[tuple[str, Callable[[], str]]]:
        text = self.true
        if re.search(r"\d", text) or re.search(r"\b(?:two|three|four|five|six|ten)\b", text):
            yield "number", self.number
            yield "number", self.number
        if re.search(r"`[^`]*[-_./][^`]*`", text):
            yield "flag", self.flag
        if re.search(r"`[^`]+`|(?<=[a-z] )[A-Z]\w+", text):
            yield "name", self.name
        yield "negation", self.negation
        if any(w.lower() in opposites() for w in re.findall(r"[A-Za-z-]+", text)):
            yield "opposite", self.opposite
            yield "opposite", self.opposite
        if any(re.search(p, text) for p, _ in _SCOPES):
            yield "scope", self.scope
        if re.search(r"\b(?:if|when|unless|before|after|once|without|by default)\b", text, re.IGNORECASE):
            yield "condition", self.condition
            yield "condition", self.condition
        yield "swap", self.swap
        yield "merged", self.merged
        yield "invented", self.invented

    def number(self) -> str:
        words = {"two": "three", "three": "two", "four": "six", "five": "four", "six": "eight", "ten": "twenty"}
        found = list(re.finditer(r"\d+(?:\.\d+)*|\b(?:two|three|four|five|six|ten)\b", self.true))
        one = self.chance.choice(found)
        old = one.group()
        if old in words:
            new = words[old]
        else:
            held = [n for s in self.beside for n in re.findall(r"\d+(?:\.\d+)*", s) if n != old]
            if held and self.chance.random() < 0.3:
                new = self.chance.choice(held)
            else:
                digits = [i for i, c in enumerate(old) if c.isdigit()]
                at = self.chance.choice(digits)
                new = old[:at] + self.chance.choice([d for d in "123456789" if d != old[at]]) + old[at + 1 :]
                new = self.chance.choice((new, new, f"{old}0" if "." not in old else new))
        return self.true[: one.start()] + new + self.true[one.end() :]

    def flag(self) -> str:
        one = self.chance.choice(list(re.finditer(r"`([^`]*[-_./][^`]*)`", self.true)))
        old = one.group(1)
        here = [n for s in self.beside for n in re.findall(r"`([^`\n]{2,40})`", s) if n != old]
        parts = re.split(r"(?<=[-_./])", old)
        changed = old
        if len(parts) > 1:
            i = self.chance.randrange(len(parts))
            word = self.chance.choice(("path", "name", "mode", "cache", "output", "file", "level", "dir", "max", "all"))
            joiner = parts[i][-1:] if parts[i].endswith(("-", "_", ".", "/")) else ""
            changed = "".join((*parts[:i], word + joiner, *parts[i + 1 :]))
        new = self.chance.choice([changed, changed, *here[:3], *(self.flags[:1] and [self.chance.choice(self.flags)])])
        return f"{self.true[: one.start()]}`{new}`{self.true[one.end() :]}"

    def name(self) -> str:
        one = self.chance.choice(list(re.finditer(r"`([^`]+)`|(?<=[a-z] )[A-Z]\w+", self.true)))
        if one.group(1):
            here = [n for s in self.beside for n in re.findall(r"`([^`\n]{2,40})`", s) if n != one.group(1)]
            pool = here if here and self.chance.random() < 0.6 else list(self.names)
            return f"{self.true[: one.start()]}`{self.chance.choice(pool)}`{self.true[one.end() :]}" if pool else ""
        pool = [n for p in self.others for n in re.findall(r"(?<=[a-z] )[A-Z][a-z]\w+", p.text) if n != one.group()]
        return self.true[: one.start()] + self.chance.choice(pool) + self.true[one.end() :] if pool else ""

    def negation(self) -> str:
        text = self.true
        for pattern, new in (
            (r"\b(do|does|did|is|are|was|can|could|should|would|will|has|have)(?:n't| not)\b", r"\1"),
            (r"\bcannot\b|\bcan't\b", "can"), (r"\bwon't\b", "will"), (r"\bnever\b", "always"),
            (r"\bwithout\b", "with"), (r"\bno longer\b", "still"), (r"\bno\b (?=\w)", "a "),
        ):  # fmt: skip
            if re.search(pattern, text):
                return re.sub(pattern, new, text, count=1)
        if (spots := list(re.finditer(_MODAL, text))) and self.chance.random() < 0.8:
            one = self.chance.choice(spots)
            return f"{text[: one.end()]} not{text[one.end() :]}"
        if spots := list(re.finditer(_VERB, text)):
            one = self.chance.choice(spots)
            stem = one.group(2)[:-1]
            return f"{text[: one.start(2)]}does not {stem}{text[one.end(2) :]}"
        if re.match(r"(?:Use|Set|Add|Run|Create|Make|Call|Pass|Define|Put|Install|Enable)\b", text):
            return f"{self.chance.choice(('Do not', 'Avoid having to', 'Never'))} {_lower(text)}"
        if re.search(r"\bwith\b", text):
            return re.sub(r"\bwith\b", "without", text, count=1)
        return re.sub(r"\bto (?=\w+ (?:the|a|your))", "not to ", text, count=1)

    def opposite(self) -> str:
        table = opposites()
        found = [m for m in re.finditer(r"[A-Za-z-]+", self.true) if m.group().lower() in table]
        if not found:
            return ""
        one = self.chance.choice(found)
        return (
            self.true[: one.start()] + self.chance.choice(sorted(table[one.group().lower()])) + self.true[one.end() :]
        )

    def scope(self) -> str:
        fits = [(p, n) for p, n in _SCOPES if re.search(p, self.true)]
        if not fits:
            return ""
        pattern, new = self.chance.choice(fits)
        return re.sub(pattern, new, self.true, count=1)

    def condition(self) -> str:
        text, chance = self.true, self.chance
        found = re.match(r"(?:If|When|Unless|Before|After|Once) [^,;.]{5,90}, (.{12,200})\Z", text)
        if found and chance.random() < 0.5:
            return found.group(1)[0].upper() + found.group(1)[1:]
        found = re.match(r"(.{15,200}?),? (?:if|when|unless|before|after|once|without) [^,;.]{5,90}\.\Z", text)
        if found and chance.random() < 0.5:
            return f"{found.group(1)}."
        swaps = (
            (r"\bif\b", "unless"), (r"\bunless\b", "if"), (r"\bwhen\b", "unless"), (r"\bif\b", "even if"),
            (r"\bbefore\b", "after"), (r"\bafter\b", "before"), (r"\bonce\b", "before"), (r"\bwithout\b", "with"),
            (r"\bwhen\b", "only when"), (r"\bby default\b", "only if you ask for it"),
        )  # fmt: skip
        fits = [(p, n) for p, n in swaps if re.search(p, text)]
        if not fits:
            return ""
        pattern, new = chance.choice(fits)
        return re.sub(pattern, new, text, count=1)

    def swap(self) -> str:
        found = list(re.finditer(r"`[^`]+`", self.true))
        if len(found) < 2 or found[0].group() == found[-1].group():
            relation = re.search(
                r"\b((?:the|a|an) \w+(?: \w+)?)"
                r" (is|are|uses|overrides|over|before|after|than|instead of|from|into|to|in)"
                r" ((?:the|a|an|your) \w+(?: \w+)?)\b",
                self.true,
            )
            if not relation:
                return ""
            one, verb, other = relation.groups()
            return self.true[: relation.start()] + f"{other} {verb} {one}" + self.true[relation.end() :]
        a, b = found[0], found[-1]
        return f"{self.true[: a.start()]}{b.group()}{self.true[a.end() : b.start()]}{a.group()}{self.true[b.end() :]}"

    def merged(self) -> str:
        pool = [s for s in self.beside if s not in (self.sentence, self.true)]
        pool += _usable_prose(self.others[:2])[:4]
        if not pool:
            return ""
        verb = r"\s(?:is|are|can|will|must|should|has|have|lets|allows|uses|means|does|returns|sets)\b"
        other = self.chance.choice(pool)
        mine, theirs = re.search(verb, self.true), re.search(verb, other)
        if not mine or not theirs or mine.start() < 3:
            return ""
        return self.true[: mine.start()] + other[theirs.start() :]

    def invented(self) -> str:
        pool = _usable_prose(self.others[2:])
        if not pool:
            return ""
        other = self.chance.choice(pool)
        part = _lower(re.split(r"[,;:] ", other)[0].rstrip("."))
        if self.chance.random() < 0.4:
            return other
        joint = self.chance.choice((", and ", ", which ", ", so ", "; ", ", because "))
        return f"{self.true.rstrip('.')}{joint}{part}."
