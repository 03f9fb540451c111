"""Function words by language: what a sentence needs and a page of documentation can't be found by.

Only articles, pronouns, auxiliaries, conjunctions, prepositions and question words stand here, never a noun or a full
verb: in documentation "first", "work" or "home" can be just what is asked for. A language without a list loses nothing
but a little precision, since frequent terms weigh little anyway.
"""

from __future__ import annotations

STOP_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        """
        a about am an and any are aren't as at be because been being but by can can't cannot could couldn't did
        didn't do does doesn't doing don't for from had has have having he her here hers him his how how's i i'd
        i'll i'm i've if in into is isn't it it's its let let's me might more most must my no nor not of on or
        our ours out please shall she should shouldn't so some such than that that's the their theirs them then
        there there's these they they're this those to too up us was wasn't we we're were what what's when where
        where's which while who whom whose why will with won't would wouldn't you you're your yours
        """.split()
    ),
    "de": frozenset(
        """
        aber als am an auch auf aus bei bin bis bist da dann das dass dein dem den denn der des dich die dies
        diese dieser dieses dir doch du ein eine einem einen einer eines er es für hat hatte ich ihm ihn ihr im
        in ist ja kann kannst können man mein mich mir mit muss nach nicht noch nur ob oder sein sich sie sind
        so soll um und uns unter über vom von vor wann warum was welche welcher welches wenn wer werden wie wir
        wird wo zu zum zur
        """.split()
    ),
    "fr": frozenset(
        """
        au aux avec à ce ces cet cette comment dans de des du elle elles en est et être il ils je la le les leur
        leurs lui ma mais me mes moi mon ne nos notre nous on ou où par pas peut peux pour pourquoi qu quand que
        quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te tes toi ton tu un une vos votre
        vous y
        """.split()
    ),
    "es": frozenset(
        """
        a al como con cómo cual cuando cuál cuándo de del desde donde dónde e el ella ellas ellos en entre es
        esa ese eso esta estas está este esto estos él hay la las le les lo los me mi mis muy no nos o para pero
        por porque puede puedo que qué quien quién se ser si sin sobre son su sus te tu tus un una uno unos y ya
        yo
        """.split()
    ),
}
