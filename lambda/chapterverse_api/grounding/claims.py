"""Decides whether a sentence claims something about the subject, and so needs a passage.

Every sentence does, except the forms listed here: filler, a heading that is a title, a question, an announcement with a
colon, and the statement that the documentation doesn't say. Each form is matched as a whole, because a sentence that
also hides a claim is longer than the form. The word lists are in English, German, French and Spanish. In other
languages filler counts as a claim, which costs an honest answer the status "answered" and not its text.
"""

from __future__ import annotations

import re

from chapterverse.text import lexical
from chapterverse.text.sentences import Sentence
from chapterverse_api.grounding.analyzed_text import Claim

#: A heading of more words is a sentence.
_TITLE = 8
#: An announcement of more words must look like one.
_BRIEF = 6
#: Words that may precede "the documentation doesn't say", and words of a list behind it.
_LEAD, _ITEM = 4, 3
#: Terms of the longest filler.
_FILLER_TERMS = 6

_FILLER = frozenset(
    """
    yes no sure course certainly absolutely exactly indeed okay ok hello hi hey thanks thank welcome glad happy good
    great luck hope help helps sorry unfortunately go here step steps follow following example note summary overview
    ja nein klar natürlich gern gerne geschehen hallo danke bitte leider viel erfolg hoffe hilft schritte beispiel hier
    oui non bien sûr bonne chance merci bonjour désolé étapes exemple voici
    sí claro buena suerte hola gracias siento pasos ejemplo aquí
    はい いいえ どうぞ 好的 是的 当然
    """.split()
)
_POLITE = re.compile(
    r"(?:let me know|feel free|(?:please )?don['’]t hesitate|i hope|ich hoffe|n['’]hésitez pas|no dudes?)\b"
    r"[^.;:,\n]{0,60}[.!]?",
    re.IGNORECASE,
)

# Verbs that make a statement of a line.
_STATES = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|cannot|could|must|should|may|might|does|do|did|gets?|got"
    r"|becomes?|\w+n['’]t|ist|sind|war|waren|wird|werden|wurden?|hat|haben|kann|können|muss|müssen|soll|darf|dürfen"
    r"|est|sont|ont|peut|peuvent|doit|doivent|sera|seront|es|son|está|están|ha|han|puede|pueden|debe|será)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:what|how|why|when|where|which|who|was|wie|warum|wann|wo|wer|welche\w*|comment|pourquoi|quand|où|quel\w*"
    r"|qué|cómo|cuándo|dónde|cuál\w*)\b",
    re.IGNORECASE,
)
_TAG = re.compile(
    r",\s*(?:ok|okay|right|correct|yes|no|huh|eh|got it|\w+n['’]t (?:it|they|you|he|she|we)"
    r"|(?:is|are|do|does|can|will) (?:it|they|you|he|she|we)|oder|nicht wahr|gell|ne|klar|non|n['’]est-ce pas"
    r"|d['’]accord|hein|verdad|vale|cierto)\s?[?？]",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"(?:did|do|didn['’]t|don['’]t) you (?:know|realize)|wuss?te?st du|wuss?ten sie|wei(?:ß|ss)t du|sav(?:i)?ez-vous"
    r"|¿?sab[íe]as?\b",
    re.IGNORECASE,
)

_HERE = re.compile(
    r"(?:(?:first|then|next|now|finally|also|zuerst|dann|d['’]abord|ensuite|primero|luego),?\s)?(?:here|to|for|in order"
    r"|follow|run|use|try|there|these?|this|example|um|hier|so|voici|pour|suivez|para|aquí|siga?)\b"
    r"(?:\s(?:is|are|sind|ist)\b)?",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\b(?:following|below|these|this|steps?|commands?|folgend\w*|befehl\w*|schritt\w*|suivant\w*|commandes?|siguientes?"
    r"|comandos?)\b",
    re.IGNORECASE,
)
_YOU_CAN = re.compile(
    r"\b(?:you|sie|vous)\s(?:can|must|should|may|have|können|müssen|pouvez|devez)(?:\sdo)?\b", re.IGNORECASE
)

# "The documentation doesn't say …": of the sources, and not of what they are about.
_MODEST = re.compile(
    r"\b(?:documentation|docs?|documents?|sources?|passages?|pages?|excerpts?|sections?|context|information)\b[^.]{0,40}?"
    r"\b(?:do|does|did)(?:n['’]t| not) (?:\w+ )?(?:say|state|mention|cover|describe|specify|contain|include|explain"
    r"|provide|tell|give|list|document|define|indicate|discuss|address|name|answer|show|detail|clarify|have)\b"
    r"|\bthey (?:do|does|did)(?:n['’]t| not) (?:\w+ )?(?:say|state|mention|cover|describe|explain|show|list)\b"
    r"|\b(?:docs?|documentation|sources?|pages?)\b[^.]{0,60}\bleaves? (?:it )?open\b|\bthey leave (?:it )?open\b"
    r"|\b(?:docs?|documentation|sources?|pages?)\b (?:describe|give|show|name|list|mention|contain|have|provide)s? no\b"
    r"|\b(?:docs?|documentation|sources?|pages?)\b[^.]{0,12} only (?:cover|describe|show|mention|name|point|list)"
    r"|\b(?:is|are|stays?|remains?) (?:left )?open\b"
    r"|\b(?:is|are)(?:n['’]t| not) (?:covered|explained|described|mentioned|documented|stated|specified|named|listed)"
    r"|\b(?:i|we)(?: can(?:not|['’]t| not)| (?:could|do|did)(?:n['’]t| not)|(?:['’]m| am| was) (?:not |un)able to)"
    r" (?:find|see|tell|answer|confirm|know|locate)\b"
    r"|\b(?:dokumentation|dokumente?|quellen?|seiten?|auszüge\w*)\b[^.]{0,20}\b(?:sag|nenn|erwähn|beschreib"
    r"|enthält|enthalten|erklär|geht|gehen|gibt|geben|steht)\w*\b[^.]{0,40}\b(?:nicht|nichts|kein\w*)\b"
    r"|\bich (?:kann|konnte|weiß|habe)\b[^.]{0,40}\b(?:nicht|nichts|kein\w*)\b[^.]{0,30}"
    r"\b(?:finden|gefunden|sagen|beantworten)\b"
    r"|\b(?:documentation|documents?|sources?|pages?|extraits?)\b[^.]{0,20}\bne (?:dit|disent|mentionne|précise|décrit"
    r"|contient|explique|indique|couvre|donne|permet)\w*|\bje ne (?:trouve|sais|peux) "
    r"|\b(?:documentación|documentos?|fuentes?|páginas?)\b[^.]{0,20}\bno (?:dice|menciona|describe|contiene|explica"
    r"|indica|cubre|especifica)\w*|\bno (?:encuentro|encontré|puedo (?:confirmar|responder)|sé)\b",
    re.IGNORECASE,
)
_PIECES = re.compile(
    r"[;:—–]\s+|\s-\s|\.\s|,\s(?:but|yet|however|so|because|since|though|although|while|whereas|which|even though|aber"
    r"|doch|jedoch|denn|weil|obwohl|sondern|mais|car|pourtant|cependant|donc|pero|porque|aunque)\b"
    r"|\s(?:but|because|enough|aber|weil|genug|mais|car|assez|pero|porque)\b",
    re.IGNORECASE,
)
_INDIRECT = re.compile(r"(?:how|whether|what|which|why|when|where|who)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"(?:based on|according to|from|in|laut|nach|selon|d['’]après|según|(?:i['’]m|i am|es tut mir|lo|je suis)?\s?"
    r"(?:sorry|afraid|unfortunately|leid|leider|désolée?|malheureusement|siento|lamentablemente|however))\b",
    re.IGNORECASE,
)


def says_nothing(claim: Claim) -> bool:
    """Whether there is nothing in a sentence that could rest on anything: no word of meaning, or filler alone."""
    if claim.literals or len(claim.content) > _FILLER_TERMS:
        return False
    idle = all(word.surface.casefold() in _FILLER for word in lexical.words(claim.said, claim.language))
    return idle or _POLITE.fullmatch(claim.said) is not None


def asserts(sentence: Sentence, claim: Claim) -> bool:
    """Whether a sentence must rest on a passage."""
    said = claim.said
    if says_nothing(claim):
        return False
    if sentence.kind == "code":
        return True
    if said.endswith(("?", "？")) and not claim.literals:
        return bool(_TAG.search(said[-40:]) or _TOLD.match(said))
    if sentence.kind == "heading":
        return _is_sentence(said)
    if said.endswith((":", "：")):
        return not _announces(said[:-1])
    return not _is_modest(said)


def leaves_open(said: str) -> bool:
    """Whether a sentence states that the documentation leaves something open, among other things."""
    return _MODEST.search(said) is not None


def _is_sentence(heading: str) -> bool:
    """Whether a heading is more than a title."""
    if "|" in heading:
        return False
    if len(heading.split()) > _TITLE or heading.endswith((".", "!", "。", "！")):
        return True
    return bool(_STATES.search(heading)) and not _ASKS.match(heading)


def _announces(said: str) -> bool:
    """Whether what ends with a colon points at what follows, and says nothing else."""
    opening = _HERE.match(said)
    rest = _YOU_CAN.sub(" ", said[opening.end() :] if opening else said)
    if re.search(r"[:;]\s", rest) or _STATES.search(rest):
        return False
    points = bool(_POINTS.search(rest.rpartition(",")[2]))
    return len(said.split()) <= _BRIEF or points or (opening is not None and "," not in rest)


def _is_modest(said: str) -> bool:
    """Whether each part of a sentence says that the documentation doesn't say, or leads to or lists it."""
    pieces = [piece for piece in _PIECES.split(said) if re.search(r"\w", piece)]
    modest = [found for piece in pieces if (found := _MODEST.search(piece))]
    return bool(modest) and all(_is_modest_piece(piece) for piece in pieces)


def _is_modest_piece(piece: str) -> bool:
    found = _MODEST.search(piece)
    lead = (piece[: found.start()] if found else piece).strip()
    if found and _INDIRECT.match(lead):
        return True
    if _STATES.search(lead):
        return False
    return len(lead.split()) <= (_LEAD if found else _ITEM) or bool(_OPENING.match(lead) and len(lead) < 60)
