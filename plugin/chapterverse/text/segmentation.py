"""Finds the words in what is written together: character bigrams of scripts without spaces, parts of German compounds.

There is no dictionary of these scripts. They help themselves: Japanese writes endings and particles in hiragana and
loanwords in katakana, Korean appends particles to words, and Chinese has few particles and question words.

So that "Index der Suche" finds "Suchindex", a word is split where one side is a common word of technical documentation
and the other side is long enough to be a word. A wrong split does little harm, because texts and questions are split
alike and also match as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from chapterverse.text.stopwords import read_words

# Han characters and their iteration marks.
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
_HIRAGANA = "\u3040-\u309f"
_HANGUL = "\uac00-\ud7af"
#: A run of text in a script without spaces; a split by it keeps the runs.
RUN = re.compile(f"([{_HAN}{_KATAKANA}{_HIRAGANA}{_HANGUL}]+)")
_SCRIPT = re.compile(
    f"(?P<han>[{_HAN}]+)|(?P<katakana>[{_KATAKANA}]+)|(?P<hiragana>[{_HIRAGANA}]+)|(?P<hangul>[{_HANGUL}]+)"
)
_HAN_PAIR = re.compile(f"[{_HAN}]{{2}}")

# Chinese particles, pronouns and question words, simplified and traditional. Characters that start or end many other
# words, such as those for "in" and "can", stay.
_CHINESE = re.compile(
    "为什么|為什麼|什么时候|什麼時候|怎么办|怎麼辦|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何|什么|什麼|为何|為何"
    "|哪里|哪裡|哪儿|哪些|哪个|哪個|哪|多少|是否|能否|可否|能不能|可不可以|是不是|有没有|有沒有|可以|能够|能夠"
    "|应该|應該|应当|應當|请问|請問|请|請|一个|一個|一些|一种|一種|这个|這個|这些|這些|这里|這裡|那个|那個|那些|那里|那裡"
    "|这|這|那|我们|我們|你们|你們|他们|他們|我|你|您|他|她|它|的|(?<![除为為完])了(?!解)|吗|嗎|呢|吧|啊"
    "|以及|或者|或|如果|因为|因為|所以|但是|然后|然後|以后|以後|以前|已经|已經|仍然|不要|需要|必须|必須|也|就|很|想要|想"
)
# Particles and verbal endings. The remaining stem has at least two syllables.
_KOREAN = re.compile(
    "(?P<kept>.{2,}?)(?:습니다|습니까|합니다|합니까|됩니다|됩니까|입니다|입니까|하나요|되나요|인가요|는가요|나요|할까요|까요"
    "|하세요|되세요|세요|했어요|해요|어요|아요|예요|이에요|하려면|려면|하는|되는|하고|되고|하면|되면|하기|하여|해서|해야"
    "|하지|되지|할|한|된|될|에서는|에서도|에서|에게|으로|에는|까지|부터|처럼|보다|마다|이나|들은|들이|들을|들"
    "|은|는|이|가|을|를|의|에|로|와|과|도|만)"
)
_KOREAN_STOP_WORDS = frozenset(read_words("ko", "function"))
#: Patterns that indicate the language of a text.
SIGNS = {"zh": _CHINESE, "ja": re.compile(f"[{_HIRAGANA}]+"), "ko": re.compile(f"[{_HANGUL}]+")}
#: From this length on the long vowel at the end of a loanword is optional.
_MIN_LONG_CHARS = 4

#: Common parts of compounds in technical documentation, without umlauts.
_PARTS = frozenset(read_words("de", "compounds"))
#: A part beside a known part has at least so many letters.
_MIN_PART_CHARS = 3
#: A known part beside an unknown one has at least so many letters.
_MIN_SURE_PART_CHARS = 5
_MIN_WORD_CHARS, _MAX_WORD_CHARS = 8, 60
_LINKS = ("", "s", "n", "en", "es", "er")
_ENDINGS = ("", "n", "en", "s", "e", "es", "er", "ern", "se", "sen", "ses")
#: Endings that take a linking "s".
_LINKED = ("ungs", "ions", "heits", "keits", "schafts", "tats")
#: The start of a verbal ending: "programmieren" contains no second word.
_VERBAL = "ier"
_FOLDED = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def bigram_words(run: str, language: str) -> Iterator[tuple[str, ...]]:
    """Yield the terms of each word of a run: the whole word, then its bigrams, if any.

    Chinese function words are removed only if the language is Chinese, because Japanese writes other words with them.
    """
    for match in _SCRIPT.finditer(run):
        script, piece = match.lastgroup, match.group()
        if script == "han":
            for between in _CHINESE.split(piece) if language == "zh" else (piece,):
                yield from ((pair,) for pair in _pairs(between))
        elif script == "katakana":
            yield _in_parts(piece.rstrip("ー") if len(piece) >= _MIN_LONG_CHARS else piece)
        elif script == "hangul" and piece not in _KOREAN_STOP_WORDS:
            ending = _KOREAN.fullmatch(piece)
            yield _in_parts(ending["kept"] if ending else piece)
        # Hiragana between other scripts is grammar; alone it can be the whole word.
        elif script == "hiragana" and piece == run:
            yield from ((pair,) for pair in _pairs(piece))


def seams(surfaces: Sequence[str], indexed_words: Collection[str]) -> set[str]:
    """Return the bigrams of a question that span two words.

    A seam is a bigram unknown to the index between known ones that cover its two characters. Of several unknown bigrams
    in a row, one stays for every two characters that no known bigram covers.
    """
    result: set[str] = set()
    chain: list[str] = []
    for surface in (*surfaces, ""):
        if chain and not (surface[:1] == chain[-1][-1] and _HAN_PAIR.fullmatch(surface)):
            result.update(_surplus(chain, indexed_words))
            chain = []
        if _HAN_PAIR.fullmatch(surface):
            chain.append(surface)
    return result


def _surplus(chain: Sequence[str], indexed_words: Collection[str]) -> Iterator[str]:
    at = 0
    for is_known, group in groupby(chain, key=indexed_words.__contains__):
        pairs = list(group)
        beside = (at > 0) + (at + len(pairs) < len(chain))
        if not is_known:
            yield from pairs[(len(pairs) + 1 - beside) // 2 :]
        at += len(pairs)


def _in_parts(word: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((word, *_pairs(word))))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))] if run else []


def divide(word: str) -> tuple[str, ...]:
    """Return the parts of a word in lower case, without umlauts and endings; empty if it can't be split."""
    folded = word.translate(_FOLDED)
    # "ue" is either a typed umlaut or, as in "Quelle", no umlaut.
    return _divide(folded) or _divide(folded.replace("ae", "a").replace("oe", "o").replace("ue", "u"))


def _divide(word: str) -> tuple[str, ...]:
    if not _MIN_WORD_CHARS <= len(word) <= _MAX_WORD_CHARS or _known_parts(word, _ENDINGS):
        return ()
    best = max(_splits(word), default=None)
    return tuple(part for half in best[1:] for part in _divide(half) or (half,)) if best else ()


def _splits(word: str) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Yield possible splits with their worth: two known parts before one, longer known parts before shorter."""
    for at in range(_MIN_PART_CHARS, len(word) - _MIN_PART_CHARS + 1):
        left, right = _known_parts(word[:at], _LINKS), _known_parts(word[at:], _ENDINGS)
        if left and right:
            yield (2, len(left) + len(right)), left, right
        elif right and len(right) >= _MIN_SURE_PART_CHARS:
            yield (1, len(right)), word[: at - word[:at].endswith(_LINKED)], right
        elif (
            left
            and len(left) >= _MIN_SURE_PART_CHARS
            and len(word) - at > _MIN_PART_CHARS
            and not word.startswith(_VERBAL, at)
        ):
            yield (1, len(left), at), left, word[at:]


def _known_parts(piece: str, endings: tuple[str, ...]) -> str | None:
    return next((p for e in endings if piece.endswith(e) and (p := piece.removesuffix(e)) in _PARTS), None)
