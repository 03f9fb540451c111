"""Detects negation and antonyms: whether a sentence contradicts one that shares its words.

Word lists, so it knows English, German, French and Spanish; in other languages it finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from chapterverse.text import lexical

_NEGATIONS = {
    "en": r"not|no one|no|never|cannot|none|neither|nothing|nobody|nowhere|hardly|\w+n['’]t",
    "de": r"nicht|kein\w*|nie|niemals|nichts|niemand\w*|weder|keinesfalls|keineswegs",
    "fr": r"ne|n['’]\w+|pas|jamais|aucun\w*|rien|ni",
    "es": r"no|nunca|jamás|ningún|ningun\w*|nada|nadie|tampoco",
}
# Where two negations are one: "ne … pas", "no … nadie".
_CONCORD = {"fr": "ne", "es": "no"}
# "Without" says how, and is the opposite of "with".
# What means a negation without being one: it may answer for the other's, and none has to answer for it.
_SOFT = {
    "en": r"out|exclu\w+|leav\w+|left|ignor\w+|skip\w*|omit\w*|refus\w+|reject\w*|forbid\w*|prevent\w*|stop\w*|avoid\w*"
    r"|lack\w*|miss\w+|absent|empty|instead|except\w*|rather|fail\w*|den(?:y|ied|ies)|drop\w*|despite"
    r"|independent\w*|hid\w+|block\w*|un(?!der|til|less|ion|it|iq)\w{4,}|disab\w+|impossible|invalid",
    "de": r"aus\w*|weg\w*|statt|außer|verweiger\w+|ignor\w+|fehl\w+|leer|allein|un\w{4,}|sondern|verb[io]\w+",
    "fr": r"ignor\w+|exclu\w+|refus\w+|sauf|sinon|vide|hors|manqu\w+|in\w{5,}|évit\w+|empêch\w+|interdi\w+",
    "es": r"ignor\w+|exclu\w+|rechaz\w+|salvo|vací\w+|fuera|falt\w+|in\w{5,}|evit\w+|impid\w+|prohíb\w+",
}
# "not only" and "no more than" deny nothing; "whether or not" leaves both open.
_NO_NEGATION = {
    "en": r"not only|whether or not|no matter|no later than|no more than|no longer than|not just|if not",
    "de": r"nicht nur",
    "fr": r"pas seulement|non seulement|ne \w+ que|n['’]\w+ que|pas à pas",
    "es": r"no sólo|no solo|no solamente",
}
_ANTONYMS = {
    "en": "enable/disable enabled/disabled allow/deny allowed/denied allow/forbid allow/prevent permit/forbid "
    "permitted/forbidden allowed/forbidden accept/reject accepted/rejected before/after required/optional "
    "mandatory/optional true/false on/off increase/decrease raise/lower minimum/maximum min/max least/most start/stop "
    "starts/stops begin/end first/last above/below over/under more/less more/fewer larger/smaller longer/shorter "
    "higher/lower older/newer old/new include/exclude includes/excludes included/excluded add/remove adds/removes "
    "added/removed open/close opens/closes public/private local/remote faster/slower fast/slow same/different "
    "succeeds/fails success/failure valid/invalid possible/impossible known/unknown "
    "show/hide shows/hides shown/hidden keep/drop keeps/removes kept/removed create/delete creates/deletes read/write "
    "reads/writes upload/download early/late ascending/descending left/right inside/outside online/offline "
    "install/uninstall explicit/implicit automatically/manually safe/unsafe encrypted/unencrypted changes/keeps "
    "larger/less at_least/at_most up/down light/dark input/output latest/oldest lock/unlock mutable/immutable "
    "upgrade/downgrade synchronous/asynchronous whole/part singular/plural leave/join visible/invisible lossy/lossless "
    "with/without",
    "de": "aktivieren/deaktivieren aktiviert/deaktiviert erlauben/verbieten erlaubt/verboten vor/nach "
    "bevor/nachdem erforderlich/optional nötig/unnötig wahr/falsch an/aus erhöhen/senken minimum/maximum "
    "mindestens/höchstens mehr/weniger größer/kleiner länger/kürzer öffentlich/privat lokal/entfernt mit/ohne",
    "fr": "activer/désactiver activé/désactivé autoriser/interdire autorisé/interdit avant/après "
    "obligatoire/facultatif requis/facultatif vrai/faux augmenter/diminuer minimum/maximum plus/moins "
    "public/privé ajouter/supprimer avec/sans",
    "es": "activar/desactivar activado/desactivado habilitar/deshabilitar permitir/denegar permitido/prohibido "
    "antes/después obligatorio/opcional requerido/opcional verdadero/falso aumentar/disminuir "
    "mínimo/máximo más/menos público/privado añadir/eliminar con/sin",
}
# "No, vaults can't be shared" answers a question; its sentence denies no more than it does without.
_ANSWER = re.compile(
    r"\s*(?:(?:unfortunately|sadly|leider|malheureusement|lamentablemente),?\s)?"
    r"(?:no|nope|not|yes|yeah|yep|nein|nicht|ja|doch|non|pas|oui|si|sí)(?:\s*[,;:.!]|\s+[-–—])\s",
    re.IGNORECASE,
)
_SUBJECTS = ("no", "neither", "kein", "nichts", "niemand", "aucun", "rien", "ning", "nada", "nadie")
#: The most of each that an honest sentence has.
_MOST = 60
#: Words of meaning after and before a negation that it is about.
_AFTER, _BEFORE = 3, 3
_CLAUSE = re.compile(
    r"[,;:()|—]\s|\s(?:and|but|because|while|since|so|why|und|aber|weil|während|et|mais|car|y|pero|porque)\s"
)
# What ends all that a negation at the start of a sentence is about: its lists go on.
_MAIN = re.compile(r"[;:()|—]\s|\s(?:but|because|while|since|why|aber|weil|während|mais|car|pero|porque)\s")
# "If there is no …" says nothing of whether there is.
_CONDITION = re.compile(r"\b(?:if|when|where|wenn|falls|wo|si|cuando|lorsque|quand)\s+(?:\w{1,8}\s+){0,2}\Z")
_CODE = re.compile(r"`[^`\n]{0,200}`")


@dataclass(frozen=True, slots=True)
class Cue:
    """A negation: its word, and the terms around it in its clause."""

    form: str
    around: frozenset[int]

    def meets(self, other: Cue) -> bool:
        """Whether two negations are about the same."""
        if not self.around or not other.around:
            return False
        return 2 * len(self.around & other.around) >= min(len(self.around), len(other.around))

    def shares(self, other: Cue) -> int:
        """Return how many terms around two words are the same; 0 where one of them alone may be chance."""
        shared = len(self.around & other.around)
        return shared if shared > 1 or shared == min(len(self.around), len(other.around)) else 0


@dataclass(frozen=True, slots=True)
class Polarity:
    """What a sentence denies.

    Attributes:
        hard: its negations.
        soft: what else may mean one.
        turned: its words that have an opposite.
    """

    hard: tuple[Cue, ...] = ()
    soft: tuple[Cue, ...] = ()
    turned: tuple[Cue, ...] = ()

    def denies(self, cue: Cue) -> int:
        """Return how often the sentence denies what a negation, of it or of another one, is about."""
        return len({other.form for other in self.hard if cue.meets(other)})

    def may_deny(self, cue: Cue) -> frozenset[str]:
        """Return the other words of the sentence that may mean that negation."""
        return frozenset(other.form for other in self.soft if cue.meets(other))


def read(text: str, language: str) -> Polarity:
    """Return what a sentence denies."""
    code = language.partition("-")[0].lower()
    if code not in _NEGATIONS:
        return Polarity()
    negation, soft, turned, none = _patterns(code)
    lower = none.sub(" ", unanswered(text).lower())
    spans = [m.span() for m in _CODE.finditer(lower)]

    def cues(pattern: re.Pattern[str]) -> Iterator[Cue]:
        for found in pattern.finditer(lower):
            quoted = any(start < found.start() < end for start, end in spans)
            if not quoted and not (pattern is negation and _CONDITION.search(lower, 0, found.start())):
                form = _CONCORD.get(code, found.group()) if pattern is negation else found.group()
                yield Cue(form, _around(lower, found, code))

    return Polarity(*(tuple(islice(cues(pattern), _MOST)) for pattern in (negation, soft, turned)))


def unanswered(text: str) -> str:
    """Return a sentence without the "Yes," or "No," before it."""
    answer = _ANSWER.match(text)
    return text[answer.end() :] if answer else text


def differ(one: Polarity, other: Polarity, cue: Cue) -> bool:
    """Whether just one of two sentences denies what a negation of the first is about."""
    odd = (one.denies(cue) + other.denies(cue)) % 2 == 1
    # "Not left out" is no other way to say "left out".
    softly = other.denies(cue) == 0 and one.denies(cue) == 1 and other.may_deny(cue) - one.may_deny(cue)
    return odd and not softly


def swapped(said: Sequence[Cue], held: Sequence[Cue], language: str) -> bool:
    """Whether words are said where a source has their opposites, and each fits none of its own kind better."""
    opposites = _opposites(language.partition("-")[0].lower())
    for ours in said:
        for theirs in held:
            shared = ours.shares(theirs)
            if theirs.form not in opposites[ours.form] or not shared:
                continue
            fits = any(s.form == theirs.form and s.shares(theirs) >= shared for s in said)
            if not fits and not any(t.form == ours.form and ours.shares(t) >= shared for t in held):
                return True
    return False


def _around(text: str, found: re.Match[str], code: str) -> frozenset[int]:
    behind = _CLAUSE.split(text[found.end() : found.end() + 120], maxsplit=1)[0]
    before = _CLAUSE.split(text[max(0, found.start() - 120) : found.start()])[-1]
    # "No file, page or script …" denies all that follows.
    if not found.start() and found.group().startswith(_SUBJECTS):
        return frozenset(_terms(_MAIN.split(text, maxsplit=1)[0], code))
    return frozenset((*_terms(behind, code)[:_AFTER], *_terms(before, code)[-_BEFORE:]))


@cache
def _patterns(code: str) -> tuple[re.Pattern[str], ...]:
    opposites = "|".join(_opposites(code))
    words = (_NEGATIONS[code], _SOFT[code], opposites, _NO_NEGATION[code])
    return tuple(re.compile(rf"(?<![\w-])(?:{listed})(?![\w-])") for listed in words)


@cache
def _opposites(code: str) -> dict[str, frozenset[str]]:
    pairs = [pair.replace("_", " ").split("/") for pair in _ANTONYMS.get(code, "").split()]
    both = [*pairs, *([b, a] for a, b in pairs)]
    return {word: frozenset(b for a, b in both if a == word) for word, _ in both}


def _terms(text: str, code: str) -> list[int]:
    return [word.terms[0] for word in lexical.words(text, code)]
