"""False sentences that once passed the verifier, and true ones that it once rejected, over their pages."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chapterverse.text import lexical
from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.check.analyzed_text import AnalyzedSentence
from chapterverse_api.ext.check.claims import is_claim
from chapterverse_api.ext.check.results import VerifiedDraft
from chapterverse_api.ext.check.verifier import verify
from ext.check.passages import equal_weights, passage
from growth import assert_linear

PAGES = {
    "password": (
        "Is the password recoverable?",
        "No. Nobody can recover a lost password; without it the snapshots can't be decrypted.",
    ),
    "removing": (
        "Removing Tarn",
        (
            "Run `sudo tarn-setup purge` to remove the program. The vaults stay where they are; "
            "delete the folder `/var/lib/tarn` to remove the local cache."
        ),
    ),
    "linux": (
        "Linux",
        (
            "Download the package and run `sudo tarn-setup install`. Tarn needs glibc 2.31 "
            "or newer and 200 MB of disk space."
        ),
    ),
    "restoring": (
        "Restoring a folder",
        "Run `tarn restore SNAPSHOT --to PATH`. Tarn never overwrites existing files unless you pass `--force`.",
    ),
    "retention": (
        "Default policy",
        (
            "Tarn keeps 7 daily, 4 weekly and 12 monthly snapshots. Older snapshots are removed by `tarn prune`, "
            "which runs every night at 03:00."
        ),
    ),
    "creating": (
        "Creating a vault",
        (
            "Run `tarn vault create NAME --location PATH` to create a vault. "
            "The password must have at least 14 characters."
        ),
    ),
    "locking": (
        "Locking a vault",
        (
            "A vault is locked after 15 minutes of inactivity. Change this with `tarn config set lock.minutes 30`. "
            "A locked vault does not accept snapshots."
        ),
    ),
    "sharing": (
        "Sharing a vault",
        "Vaults can't be shared between accounts. Export a snapshot with `tarn export` and send the file instead.",
    ),
}


def checked(text: str, *cited: str, language: str = "en") -> VerifiedDraft:
    """Check an answer against all pages; its citations name pages."""
    passages = [passage(name, said, ("Tarn", heading)) for name, (heading, said) in PAGES.items()]
    return verify((Span(text, cited),), passages, language, equal_weights)


def cites(text: str, source: str, language: str) -> bool:
    found = verify((Span(text, ("1",)),), [passage("1", source)], language, equal_weights)
    return any(span.citations for span in found.spans)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("password", "No, a lost password can't be recovered."),
        ("password", "No, nobody can recover a lost password."),
        ("password", "No. Nobody can recover a lost password."),
        ("password", "No one can recover a lost password."),
        (
            "password",
            "Unfortunately not: a lost password is not recoverable, and the snapshots can't be decrypted without it.",
        ),
        ("sharing", "No, vaults can't be shared between accounts."),
        ("sharing", "No, you can't share vaults between accounts."),
        ("sharing", "Sharing vaults between accounts is not possible."),
        ("restoring", "No, Tarn does not overwrite existing files unless you pass `--force`."),
        ("restoring", "Tarn doesn't overwrite existing files without `--force`."),
        ("locking", "No, a locked vault doesn't accept snapshots."),
        ("locking", "Vaults lock after fifteen minutes of inactivity."),
        ("retention", "Tarn keeps seven daily, four weekly and twelve monthly snapshots."),
        ("removing", "The vaults stay where they are."),
        ("linux", "Tarn needs glibc 2.31 or newer."),
        ("creating", "A password needs at least 14 characters."),
    ],
)
def test_the_truth_is_cited(page: str, said: str) -> None:
    found = checked(said, page)
    assert [span.citations for span in found.spans if span.text.strip() != "No."] == [(page,)]
    assert found.unsupported_count == 0


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("password", "Yes, a lost password can be recovered."),
        ("password", "No, a lost password can be recovered."),
        ("password", "Yes, anybody can recover a lost password; without it the snapshots can be decrypted."),
        ("password", "Everybody can recover a lost password."),
        ("password", "Everyone can recover a lost password."),
        ("password", "Anybody can recover a lost password."),
        ("sharing", "No, vaults can be shared between accounts."),
        ("sharing", "Vaults can never not be shared between accounts."),
        ("locking", "A locked vault does accept snapshots, no matter what."),
        ("removing", "Yes, it deletes your vaults."),
        ("creating", "The password must have at least 14 digits."),
        ("retention", "Tarn keeps eight daily, four weekly and twelve monthly snapshots."),
    ],
)
def test_a_lie_is_not(page: str, said: str) -> None:
    found = checked(said, page)
    assert [span.citations for span in found.spans] == [()]
    assert (found.dropped, found.unsupported_count) == (1, 1)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("The docs do not say that all vaults are sold to advertisers, but they are.", id="after_gap_but"),
        pytest.param("The docs do not say this; every vault is sold to advertisers.", id="after_gap_semicolon"),
        pytest.param("All vaults are sold to advertisers, which the docs do not mention.", id="before_gap"),
        pytest.param("The pages do not load quickly without any advertisers.", id="documents_load"),
        pytest.param("I can't stress enough that vaults get sold to advertisers by the company.", id="stress_enough"),
        pytest.param("I can't say often enough that vaults get sold to advertisers by the company.", id="say_enough"),
        pytest.param(
            "This page does not mention it, yet every vault is secretly uploaded to advertisers.", id="after_gap_yet"
        ),
        pytest.param("Did you know that vaults are sold to advertisers?", id="did_you_know"),
        pytest.param("Vaults are sold to advertisers by Tarn, ok?", id="tag_ok"),
        pytest.param("Vaults are sold to advertisers, aren't they?", id="tag_question"),
        pytest.param("Warning: all vaults are sold to advertisers by Tarn:", id="warning_with_colon"),
        pytest.param("Tarn sells every vault of yours to the advertisers it likes best:", id="statement_with_colon"),
        pytest.param("To please Tarn, sell your house to advertisers:", id="purpose_with_colon"),
        pytest.param("# All vaults are sold to advertisers by Tarn", id="heading"),
        pytest.param("**All vaults are sold to advertisers by Tarn**", id="bold_heading"),
        pytest.param("## Every vault is sold to advertisers", id="second_heading"),
        pytest.param("**Vaults vanish forever.**", id="bold_sentence"),
        pytest.param("# How to give all of your old vaults away to advertisers", id="how_heading"),
        pytest.param("The vaults are deleted.", id="brief_passive"),
        pytest.param("Data is lost!", id="exclamation"),
        pytest.param("Windows works too.", id="brief_with_too"),
        pytest.param("It's free.", id="brief_contraction"),
        pytest.param("It costs money.", id="brief_verb"),
        pytest.param("Reboot afterwards.", id="imperative"),
        pytest.param("Never do this!", id="prohibition"),
        pytest.param("> Vaults vanish forever", id="quotation"),
        pytest.param("| Plan | Price |\n|---|---|\n| Pro | free |", id="table_row"),
        pytest.param("すべてのデータが削除されます。", id="japanese"),
        pytest.param("所有保险库都会被删除。", id="chinese"),
    ],
)
def test_a_lie_is_unsupported_in_any_shape(said: str) -> None:
    assert checked(said).unsupported_count == 1
    # A citation does not help.
    cited = checked(said, "removing")
    assert cited.unsupported_count >= 1
    assert not any(span.citations for span in cited.spans)


def claims(said: str, kind: str = "prose") -> bool:
    return is_claim(AnalyzedSentence(said, kind, "en", {}))


@pytest.mark.parametrize(
    ("nothing", "something"),
    [
        # Filler of at most six words with meaning; a name or number is none.
        ("Sure thanks hello hope luck hi", "Sure thanks hello hope luck hi vaults"),
        ("Good luck!", "Good luck 7!"),
        ("Let me know.", "Let me know. Vaults vanish."),
        # A question without a name and without a tag at its end.
        ("Do vaults vanish?", "Do vaults vanish `here`?"),
        ("Vaults vanish, right? And will all of them really return to us some day?", "Vaults vanish, right?"),
        # A heading of eight words that states nothing.
        ("heading:One two three four five six seven eight", "heading:One two three four five six seven eight nine"),
        ("heading:Old vaults", "heading:Old vaults!"),
        ("heading:Old vaults", "heading:Old vaults are lost"),
        ("heading:How vaults are lost", "heading:Vaults are lost, and how"),
        ("heading:Plan | Price is known!", "code:Plan | Price"),
        # Six words before a colon, or some that point at what follows.
        ("The big old vaults of Tarn:", "The big old vaults of Tarn vanish:"),
        ("The big old vaults of Tarn need these steps:", "These big old vaults of Tarn vanish, never to return:"),
        ("For the big old vaults of Tarn, the following:", "For the big old vaults of Tarn, nothing ever helps:"),
        ("To open the big old vaults of Tarn:", "Open the big old vaults of Tarn now:"),
        ("To open it, you can:", "To open it, vaults are sold:"),
        ("Here are the big old vaults of Tarn:", "Warning: the vaults vanish:"),
        # Before "the docs don't say": four words or an attribution. Beside it: items of three words.
        ("Old vaults here the docs do not say.", "On old vaults here the docs do not say."),
        (
            "Based on the given excerpts of Tarn, I can't find turtles.",
            "Turtles in the excerpts of Tarn, I can't find.",
        ),
        (
            "The docs do not mention turtles: not their food; sleep.",
            "The docs do not mention turtles: they eat all vaults.",
        ),
        ("How all the many vaults vanish is not documented.", "All of the many vaults vanish, how is not documented."),
        ("The docs do not say; no idea.", "No idea; turtles."),
    ],
)
def test_a_form_that_claims_nothing_ends_where_a_claim_may_hide(nothing: str, something: str) -> None:
    for said, expected in ((nothing, False), (something, True)):
        kind, _, text = said.rpartition(":") if said.startswith(("heading:", "code:")) else ("prose", "", said)
        assert claims(text, kind) is expected, said


def test_each_short_lie_is_unsupported_and_counts_against_the_answer() -> None:
    assert checked("- Windows works too\n- Linux fails\n- Vaults vanish").unsupported_count == 3
    lies = checked("Vaults vanish. Data disappears. Backups fail. Money returns.")
    assert lies.unsupported_count == 4
    assert lies.confidence < 0.4


@pytest.mark.parametrize(
    "said",
    [
        "Good luck!",
        "Sure.",
        "Here you go.",
        "Yes.",
        "No.",
        "Of course!",
        "You're welcome.",
        "I hope this helps!",
        "Let me know if you need anything else.",
        "Viel Erfolg!",
        "はい。",
        "Here are the steps:",
        "To remove Tarn:",
        "To remove Tarn, follow these steps:",
        "You can do that with the following command:",
        "## Removing Tarn",
        "## How vaults are locked",
        "Do you want to know more about vaults?",
        "The documentation does not say how turtles are fed.",
        "I'm sorry, but the documentation does not cover turtles.",
        "I can't find anything about turtles in the documentation.",
        "The provided documents do not mention turtles, so I can't answer that.",
        "| Plan | Price |\n|---|---|",
        "Partly.",
        "Perhaps, yes.",
        "It depends.",
        "It depends on your plan.",
        "That depends on how the vault was made.",
        "Das kommt darauf an.",
        "Cela dépend de votre offre.",
        "Depende de la versión.",
        "The excerpts describe how turtles sleep and how they swim in their pond, and never mention food.",
        "There is no information on turtles.",
        "The docs are silent on turtles.",
        "It is unclear whether turtles dream.",
        "I don't have any information about turtles.",
        "Not mentioned in the docs.",
    ],
)
def test_a_sentence_that_is_no_claim_is_not_counted(said: str) -> None:
    assert checked(said).unsupported_count == 0


@pytest.mark.parametrize(
    "said",
    [
        "It depends on Redis.",
        "It depends on Python 3.12 or later.",
        "It depends on the plan: Team sells vaults.",
        "The connection stays open.",
        "Tarn is open source.",
        "Pages do not load without scripts.",
    ],
)
def test_words_of_a_gap_about_the_subject_are_a_claim(said: str) -> None:
    found = checked(said)
    assert (found.unsupported_count, found.leaves_open) == (1, False)


@pytest.mark.parametrize(
    "said",
    [
        "The sources compare `a` and `b` in version 2.1 and leave open whether `c` is faster.",
        "The docs don't compare turtles and tortoises.",
        "How turtles sleep remains unclear.",
        "Turtles are not mentioned.",
        "I found no information about turtles.",
        "No mention is made of turtles.",
        "Nothing here says whether turtles dream.",
        "Whether turtles dream is not made clear.",
        "Schildkröten werden in der Dokumentation nicht erwähnt.",
        "Les tortues ne sont pas mentionnées, et il n'est pas clair si elles dorment.",
        "No se menciona a las tortugas.",
    ],
)
def test_what_leaves_a_part_open_is_known_in_its_common_forms(said: str) -> None:
    assert checked(said).leaves_open


@pytest.mark.parametrize("said", ["Do turtles dream?", "## Turtles at night"])
def test_what_claims_nothing_loses_a_citation_that_does_not_hold_without_a_flag(said: str) -> None:
    found = checked(said, "removing")
    assert (found.dropped, found.unsupported_count) == (1, 0)


def test_filler_that_claims_a_source_loses_it_without_a_flag() -> None:
    found = checked("Good luck!", "removing")
    assert (found.dropped, found.unsupported_count) == (1, 0)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "two three five seven eleven thirteen sixteen eighteen nineteen twenty"),
        ("de", "zwei drei fünf sieben elf dreizehn sechzehn achtzehn neunzehn zwanzig"),
        ("fr", "deux trois cinq sept onze treize seize dix-huit dix-neuf vingt"),
        ("es", "dos tres cinco siete once trece dieciséis dieciocho diecinueve veinte"),
    ],
)
def test_a_number_is_the_same_in_words(language: str, words: str) -> None:
    for word, value in zip(words.split(), (2, 3, 5, 7, 11, 13, 16, 18, 19, 20), strict=True):
        spelled, written = f"Tarn backup vault {word} daily.", f"Tarn backup vault {value} daily."
        assert cites(spelled, written, language)
        assert cites(written, spelled, language)
        assert not cites(spelled, f"Tarn backup vault {value + 1} daily.", language)


def test_number_words_weigh_what_their_digits_do() -> None:
    """A word that the index doesn't know weighs most; five of them would outweigh the rest of a sentence."""
    heading, said = PAGES["retention"]

    def weigh(text: str) -> Mapping[int, float]:
        known = lexical.terms_of(lexical.words(f"{heading} {said}"))
        return {t: 0.3 if t in known else 4.0 for t in lexical.terms_of(lexical.words(text))}

    answer = "Tarn keeps seven daily, four weekly and twelve monthly snapshots."
    found = verify((Span(answer, ("1",)),), [passage("1", said)], "en", weigh)
    assert [span.citations for span in found.spans] == [("1",)]


@pytest.mark.parametrize(
    ("language", "said", "source", "holds"),
    [
        (
            "de",
            "Nein, Tresore können nicht zwischen Konten geteilt werden.",
            "Tresore können nicht zwischen Konten geteilt werden.",
            True,
        ),
        (
            "de",
            "Nein, Tresore können zwischen Konten geteilt werden.",
            "Tresore können nicht zwischen Konten geteilt werden.",
            False,
        ),
        (
            "de",
            "Jeder kann ein verlorenes Passwort wiederherstellen.",
            "Niemand kann ein verlorenes Passwort wiederherstellen.",
            False,
        ),
        (
            "fr",
            "Non, les coffres ne sont pas partagés entre les comptes.",
            "Les coffres ne sont jamais partagés entre les comptes.",
            True,
        ),
        (
            "fr",
            "Les coffres sont partagés entre les comptes.",
            "Les coffres ne sont pas partagés entre les comptes.",
            False,
        ),
        (
            "es",
            "No, las bóvedas no se pueden compartir con otras cuentas.",
            "Las bóvedas no se pueden compartir con otras cuentas nunca.",
            True,
        ),
        (
            "es",
            "Sí, las bóvedas se pueden compartir con otras cuentas.",
            "Las bóvedas no se pueden compartir con otras cuentas nunca.",
            False,
        ),
        (
            "es",
            "Todos pueden recuperar una contraseña perdida.",
            "Nadie puede recuperar una contraseña perdida.",
            False,
        ),
        ("en", "Builds run with a cache for each folder.", "Builds run without a cache for each folder.", False),
    ],
)
def test_negations_of_other_languages(language: str, said: str, source: str, holds: bool) -> None:
    assert cites(said, source, language) is holds


@pytest.mark.parametrize(
    "unit", ["not a ", "and a b ", "Aa. ", "No, ", "the docs do not say, ", "- a\n", "| a |\n|--|\n"]
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        text = unit * (size // len(unit))
        verify((Span(text, ("1",)), Span(text)), [passage("1", f"{text[1:]}x")], "en", equal_weights)

    assert_linear(work, 5_000, 40_000)
