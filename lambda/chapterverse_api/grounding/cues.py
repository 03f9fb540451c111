"""Small words that change a sentence's meaning: negations, quantifiers, modals, opposites; and synonyms.

A cue is recognized by its word alone; `features` decides what it refers to, in the aligned place. English has all
kinds, German, French and Spanish have their negations, and other languages have no cues.
"""

from __future__ import annotations

from functools import cache

#: Kinds of cues; each is compared with its own kind.
KINDS = ("negation", "all", "only", "may", "must")
NEGATION = KINDS.index("negation")

_ENGLISH = {
    "negation": "not no never none cannot neither nor without nobody nothing nowhere hardly",
    "all": "all always every each any everything everyone whole entire entirely both fully completely never "
    "automatically immediately",
    "only": "only just solely exclusively alone merely single",
    "may": "may might can could sometimes usually often typically optionally generally possibly probably perhaps some "
    "likely experimental should recommended most partially",
    "must": "must required require requires need needs have has mandatory necessary guaranteed ensures",
}
_NEGATIONS = {
    "de": "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand weder ohne keinesfalls keineswegs",
    "fr": "ne pas jamais aucun aucune rien ni sans personne",
    "es": "no nunca jamás ningún ninguna ninguno nada nadie tampoco sin",
}
_OPPOSITES = """
enable/disable enabled/disabled enables/disables enabling/disabling allow/deny/prevent/forbid/block
allowed/denied/forbidden/blocked allows/prevents/forbids/blocks permit/forbid accept/reject accepts/rejects
accepted/rejected before/after earlier/later required/optional mandatory/optional true/false
increase/decrease/reduce increases/decreases/reduces increased/decreased/reduced raise/lower raises/lowers
minimum/maximum min/max least/most start/stop starts/stops begin/end above/below over/under more/less/fewer
larger/smaller longer/shorter higher/lower highest/lowest greater/less/fewer/smaller largest/smallest newer/older
new/old newest/oldest latest/oldest include/exclude includes/excludes included/excluded add/remove adds/removes
added/removed open/close opens/closes public/private local/remote locally/remotely faster/slower fast/slow
same/different succeed/fail succeeds/fails success/failure valid/invalid possible/impossible known/unknown show/hide
shows/hides shown/hidden keep/drop/remove keeps/drops/removes/deletes kept/dropped/removed/deleted/discarded
create/delete creates/deletes created/deleted read/write reads/writes upload/download early/late
ascending/descending left/right inside/outside online/offline install/uninstall explicit/implicit
explicitly/implicitly automatically/manually automatic/manual safe/unsafe encrypted/unencrypted light/dark
input/output inputs/outputs lock/unlock mutable/immutable upgrade/downgrade upgrades/downgrades
synchronous/asynchronous sync/async visible/invisible with/without best/worst better/worse positive/negative
eager/lazy eagerly/lazily static/dynamic statically/dynamically permanent/temporary strict/lenient stricter/looser
supported/unsupported available/unavailable always/never all/none any/none everyone/nobody everybody/nobody
anybody/nobody everyone/none anyone/nobody often/rarely head/worker parent/child client/server internal/external
internally/externally global/local globally/locally relative/absolute sequentially/concurrently sequential/parallel
serial/parallel recommended/discouraged stable/experimental cheap/expensive cheaper/expensive simple/complex
simpler/harder easier/harder easy/hard cold/warm warm/hot shared/separate narrow/wide narrower/wider broad/narrow
expand/shrink grow/shrink push/pull send/receive sends/receives acquire/release allocate/release default/custom
stateful/stateless blocking/non-blocking require/forbid uppercase/lowercase vertical/horizontal prepend/append
prepends/appends top/bottom front/back pass/fail passes/fails ignore/respect ignores/respects
ignored/respected/honored wins/loses override/respect strengthen/weaken augment/replace extend/replace
complement/replace release/retain releases/retains frees/retains free/retain debug/release development/production
debug/production still/longer independent/dependent active/inactive activate/deactivate attach/detach
connect/disconnect load/unload mount/unmount pack/unpack
""".split()
_SYNONYMS = """
use uses used using utilize rely leverage employ
set sets setting configure configures configured specify specifies specified define defines defined pass
  passes passed provide provides provided supply give gives given
run runs running execute executes executed invoke launch
start starts begin begins
create creates created make makes build generate generates produce
remove removes removed delete deletes deleted drop drops clear
change changes changed modify modifies alter adjust edit edits update updates customize
show shows shown display displays displayed print prints appear appears
get gets fetch retrieve retrieves obtain access accesses read
need needs require requires required necessary must has
allow allows let lets enable enables permit permits
help helps support supports supported handle handles
free frees release releases
kill kills terminate terminates stop stops exit exits end ends
try retry retries rerun attempt
fix fixes solve resolve address
choose pick select selects
folder folders directory directories
setting settings option options parameter parameters argument arguments configuration config
latest newest recent current
quick quickly fast
big large huge
whole entire full complete all every each any
various several multiple many different
important crucial key
easy simple
example instance sample e.g
also too additionally
main primary principal
hold holds contain contains include includes keep keeps store stores stored save saves
put place write add adds append
look looks check checks search find finds
wait waits block blocks
error errors failure failures exception exceptions issue problem
throw throws raise raises
site website
function functions method methods
available accessible
automatic automatically
might may can could
similar like same identical
call calls invoke
return returns yield yields result results
install installs installed installation
match matches correspond
component components part parts piece
apply applies affect affects
ignore ignores skip skips
likely probably generally usually typically often
unlikely rarely
ensure ensures guarantee guarantees make
additional extra further more another
own custom
previously earlier before
fine okay works
prefer recommend recommended suggest should
lower reduce decrease
increase raise
expand
replace replaces override overrides
instead rather
""".replace("\n  ", " ").splitlines()
_HOMOGLYPHS = str.maketrans(
    "аеорсухіјѕԁһкмтвнАЕОРСУХІЈЅКМТВНαοεικνρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhkmtbhAEOPCYXIJSKMTBHaoeiknptuxABEZHIKMNOPTYX",
)


def fold_lookalikes(word: str) -> str:
    """Return a word of mixed scripts with its Cyrillic and Greek look-alikes as Latin letters."""
    if word.isascii() or not any("a" <= c <= "z" or "A" <= c <= "Z" for c in word):
        return word
    return word.translate(_HOMOGLYPHS)


@cache
def kinds(language: str) -> dict[str, tuple[int, ...]]:
    """Return which kinds of cue each word is, by its index in `KINDS`."""
    listed = dict(_ENGLISH) if language == "en" else {"negation": _NEGATIONS.get(language, "")}
    found: dict[str, tuple[int, ...]] = {}
    for index, kind in enumerate(KINDS):
        for word in listed.get(kind, "").split():
            found[word] = (*found.get(word, ()), index)
    return found


@cache
def synonyms() -> dict[str, str]:
    """Return for each English word with synonyms a name that they share."""
    found: dict[str, str] = {}
    for group in _SYNONYMS:
        words = group.split()
        first = words[0] if words else ""
        for word in words:
            found.setdefault(word, f"={first}")
    return found


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Return the opposites of each English word that has some."""
    found: dict[str, frozenset[str]] = {}
    for group in _OPPOSITES:
        first, *others = group.split("/")
        for one, other in ((first, o) for o in others):
            found[one] = found.get(one, frozenset()) | {other}
            found[other] = found.get(other, frozenset()) | {one}
    return found
