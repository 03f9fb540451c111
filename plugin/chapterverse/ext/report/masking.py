"""Hides what readers write of themselves and of others: mail addresses, names, keys, long numbers.

A name is known by its place alone, because no list knows all names, and a product is written as a person is. So it is
hidden after the words that introduce one, after a title, below a folder of homes, and where it is in a mail address of
the same question. A bare name elsewhere stays.
"""

from __future__ import annotations

import re

from chapterverse.model import replace_unstorable
from chapterverse.readers.html.visible_text import strip_invisible
from chapterverse.text import secrets_in_text
from chapterverse.text.tokens import ellipsize

_MASK = "…"
#: Characters of a question that a report shows.
MAX_SHOWN_CHARS = 300
#: What is read of a question: it may be code of 4,000 characters.
_MAX_READ_CHARS = 4000

_MAIL = re.compile(r"(?<![\w.+-])([\w.+-]{1,64})@(?:(?:[\w-]{1,63}\.){1,6}[^\W\d_]{2,24}|localhost\b)")
_WORD = r"[^\W\d_][\w'’-]{0,40}"
_NAME = rf"(?![a-zß-öø-ÿ]){_WORD}"
_NAMES = rf"{_NAME}(?: {_NAME}){{0,2}}"
#: What introduces a name, in nine languages; Chinese, Japanese and Korean write no capitals. The first group says so
#: plainly, so what follows is a name without capitals too.
_INTRODUCED = re.compile(
    r"(?i:\b(?:my name is|mein name ist|ich hei(?:ß|ss)e|je m['’]appelle|mon nom est|me llamo|mi nombre es|mi chiamo"
    r"|il mio nome è|meu nome é|me chamo|меня зовут)) "
    rf"({_NAMES}|{_WORD}(?: {_WORD})?)"
    r"|(?i:\b(?:name'?s|regards,?|cheers,?|thanks,?|thank you,|grüße,?|gruß,?|cordialement,?|saludos,?|saluti,?"
    rf"|с уважением,?)) ({_NAMES})"
    rf"|(?i:\bi(?: am|['’]m)) ({_NAME}(?: {_NAME}){{1,2}}|{_NAME}(?=[,.!;]| from | and ))"
    rf"|(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Mme|Mlle|Sr|Sra|Sig)\.? )({_NAMES})"
    r"|(?:我叫|我是|私は|名前は|제 이름은 |저는 )([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,4})"
    r"|(?:/home/|/Users/)([^\s/\\:\"']{1,64})|\\Users\\([^\\/:\"']{1,64}(?=\\)|[^\s/\\:\"']{1,64})"
)
_KEYWORD = r"(?:\w{0,30}[_-])?(?:password|passphrase|passwd|pwd|secret|token|api[_-]?key|bearer"
#: What is assigned may be any word; what only follows has a digit, as "invalid" after "the token is" is no secret.
_ASSIGNED = re.compile(
    rf"(?i:\b{_KEYWORD}|pass))[\"']? ?[:=] ?[\"']?([^\s\"',;]{{6,200}})"
    rf"|(?i:\b{_KEYWORD}))[\"']?(?i: is)? [\"']?((?=[^\s\"']{{0,99}}\d)[^\s\"',;]{{6,200}})"
)
#: A run of signs that no word is, as keys, hashes and ids are: twenty and more with four digits among them.
_RUN = re.compile(r"(?<![\w-])(?=(?:[A-Za-z_-]{0,40}\d){4})[\w-]{20,200}")
#: Telephones, cards and accounts.
_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[ ()/-]?\d){8,18}(?![\w.])")


def mask(question: str) -> str:
    """Return a question on one line, without what it may say of a person, and without a key."""
    text = strip_invisible(replace_unstorable(" ".join(question[:_MAX_READ_CHARS].split())))
    people = {part for mail in _MAIL.finditer(text) for part in re.split(r"[\W\d_]+", mail[1]) if len(part) > 2}
    text = _MAIL.sub(_MASK, text)
    text = _INTRODUCED.sub(_without_name, text)
    for person in sorted(people):
        text = re.sub(rf"\b{re.escape(person)}\b", _MASK, text, flags=re.IGNORECASE)
    text = secrets_in_text.mask(text)
    for pattern in (_ASSIGNED, _RUN, _NUMBER):
        text = pattern.sub(_without_name, text)
    return text


def show(question: str) -> str:
    """Return a masked question as a report shows it."""
    return ellipsize(mask(question), MAX_SHOWN_CHARS)


def _without_name(match: re.Match[str]) -> str:
    name = next(filter(None, match.groups()), None)
    return _MASK if name is None else match[0].replace(name, _MASK)
