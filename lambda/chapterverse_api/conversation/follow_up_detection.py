"""Decides whether a question is a follow-up, which needs the one before it: by its length and its first words.

A short question may be one (hit@5 .886 to .989, .892 to .969, .882 to .902, .914 to .914 on four sets of conversations
that the repository doesn't hold; `benchmarks/understanding.py --only follow_ups` measures the search of today). A
question of a few words more is one if it begins with a continuation ("what about …") or a pronoun ("does it …"). A long
question stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from chapterverse.text import lexical

#: "yes" by its beginning, or because it names no subject; "perhaps" by its length: it may name a new subject.
FollowUpVerdict = Literal["no", "perhaps", "yes"]

#: Content words from which a question is a follow-up only by its beginning, and from which it never is one.
STANDALONE_WORDS, _LONG_WORDS = 4, 6
#: Two characters overlap with the next two where no space divides words, so as much meaning counts for more.
_LONG_UNSPACED_WORDS = 10

#: Function words of languages that `stopwords` has no list of.
_UNLISTED = {
    "pl": frozenset(
        "a i o u w z ze na do dla od po przez jak jest są czy co to ten ta te tego tej tym się nie ale też także oraz"
        " jeśli mi mam mogę można gdzie kiedy dlaczego czemu jaki jaka jakie który która które".split()
    ),
    "ar": frozenset(
        "ما ماذا وماذا هل وهل كيف وكيف لماذا متى أين عن من في على إلى مع هو هي هذا هذه ذلك و أو أن".split()
    ),
}

_EN = r"""
    (?:and|or|but|also|instead|otherwise|likewise|then\ what|what\ else|anything\ else|(?:what|how)\ about|what\ if)\b
    | (?:it|it's|its|that|that's|this|these|those|they|them|their|he|she)\b
    | (?:(?:how|why|when|where|what|which|who)\ )?
      (?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|must)\ (?:it|that|this|they|these|those)\b
      (?!\ \w*[_.]\w)(?!\ (?:possible|necessary|safe|recommended|allowed|true|ok|okay|enough)\ (?:to|that|if)\b)
    | (?:how|why|when|where|what)\b.{0,40}\b(?:it|them)\b
"""
#: Beginnings of questions that continue the conversation or point back at it, by the language of the docs.
_LEADS = {
    "en": _EN,
    "de": r"""
        (?:und|oder|aber|auch|sonst|stattdessen|ebenso|(?:was|wie)\ (?:ist|sieht|steht)\ (?:es\ )?(?:mit|um))\b
        | (?:es|dies|damit|dabei|dafür|dazu|davon|daran|darin)\b
        | (?:(?:wie|warum|wann|wo|was|wieso|wofür)\ )?(?:ist|geht|kann|funktioniert|gilt|wird|hat|muss|soll|läuft|macht)
          \ (?:es|das|dies|sie|er)\b(?!\ (?-i:[A-ZÄÖÜ]))
    """,
    "fr": r"""
        (?:et|ou|mais|aussi|sinon|pareil|qu'en\ est-il|et\ pour)\b
        | (?:ça|cela|ceci|celui-ci|celle-ci|c'est)\b
        | (?:est-ce\ que|comment|pourquoi|où|quand)\ (?:ça|cela|c'est)\b
    """,
    "es": r"""
        (?:y|pero|también|además|qué\ (?:pasa\ con|hay\ de|tal)|lo\ mismo|entonces)\b | (?:eso|esto|ese|esa|ello)\b
        | (?:cómo\ |por\ qué\ |dónde\ |cuándo\ )?(?:es|funciona|puede|sirve|vale|hago|hace)\ (?:eso|esto)\b
    """,
    "it": r"""
        (?:e|ma|anche|invece|altrimenti|che\ ne\ dici\ di|lo\ stesso)\b | (?:questo|quello|ciò)\b
        | (?:come\ |perché\ |dove\ |quando\ )?(?:è|funziona|può|vale|faccio|fa)\ (?:questo|quello|ciò)\b
    """,
    "pt": r"""
        (?:e|mas|também|além\ disso|que\ tal|o\ mesmo)\b | (?:isso|isto|aquilo)\b
        | (?:como\ |por\ que\ |onde\ |quando\ )?(?:é|funciona|pode|serve|vale|faço|faz)\ (?:isso|isto)\b
    """,
    "nl": r"""
        (?:en|maar|ook|anders|hoe\ zit\ het\ met|wat\ dacht\ je\ van|wat\ als)\b
        | (?:dat|dit|daarmee|daarvoor|hiermee)\b
        | (?:(?:hoe|waarom|wanneer|waar|wat)\ )?(?:is|gaat|kan|werkt|geldt|moet|heeft)\ (?:dat|dit|het|ze)\b
    """,
    "pl": r"""
        (?:a|i|oraz|ale|też|także|a\ co\ (?:z|ze|jeśli))\b | (?:to|tego|tym|on|ona|ono|one)\b
        | (?:jak|dlaczego|gdzie|kiedy|czy)\ (?:to|on|ona|ono|one)\b
    """,
    "zh": r"那|还有|還有|它|这|這|此外|另外|如果是",
    "ja": r"では|じゃあ|それ|これ|その|この|他に|ほかに|また|あと",
    "ko": r"그럼|그러면|그리고|그것|그건|이것|이건",
    "ar": r"(?:وماذا|وما|وكيف|وهل|ولماذا|ماذا\ عن|هذا|هذه|ذلك|هو|هي|أيضا)\b",
}
_PATTERNS = {
    tag: re.compile(rf"\A\W*+(?:(?:ok|okay|thanks|danke|merci|gracias)\W++)?(?:{lead})", re.IGNORECASE | re.VERBOSE)
    for tag, lead in _LEADS.items()
}
#: An identifier alone, such as "base_url", is a complete question.
_IDENTIFIER = re.compile(r"\W*+\w[^\W_]*+[_.:/@-][\w.:/@-]*\w\W*")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def detect_follow_up(question: str, languages: Sequence[str]) -> FollowUpVerdict:
    """Return whether a question needs the conversation.

    Args:
        languages: the languages of the docs, BCP 47; English is always recognized too.
    """
    words = count_content_words(question, languages)
    tags = dict.fromkeys((*map(lexical.primary_subtag, languages), "en"))
    leads = any(_PATTERNS[tag].match(question) for tag in tags if tag in _PATTERNS)
    long = _LONG_UNSPACED_WORDS if _UNSPACED.search(question) else _LONG_WORDS
    if not words or (leads and words < long):
        return "yes"
    return "perhaps" if words < STANDALONE_WORDS and not _IDENTIFIER.fullmatch(question.strip()) else "no"


def count_content_words(text: str, languages: Sequence[str]) -> int:
    """Return how many different words of a text carry meaning."""
    unlisted = frozenset[str]().union(*(_UNLISTED.get(lexical.primary_subtag(tag), ()) for tag in languages))
    return len({word.surface for word in lexical.question_words(text, languages)} - unlisted)
