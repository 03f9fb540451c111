"""Asks a checker about sentences of an answer while the generator writes on: each once, and a few of one answer.

A sentence waits for its vote, `_VOTE_SECONDS` at most. After one failure the words decide for the rest of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread

from chapterverse.errors import ProviderError
from chapterverse.text.sentences import Sentence
from chapterverse.text.tokens import utf8_length
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import MAX_VOTE_BYTES, MAX_VOTES, Checker, CheckRequest
from chapterverse_api.ext.check.results import CheckedSentence
from chapterverse_api.ext.check.verifier import Verifier

#: Seconds for one vote. Bespoke-MiniCheck takes about .2 on a graphics card.
_VOTE_SECONDS = 3.0
#: Characters of a question that a guardrail takes; a source may have 100,000, a claim 5,000.
_MAX_QUESTION_CHARS = 1_000
#: Seconds more for a transport to notice that its time is up.
_GRACE = 0.5


class SecondVotes:
    """The votes on one answer.

    Args:
        report: is given each failure.
    """

    def __init__(
        self, checker: Checker, question: str, deadline: Deadline, report: Callable[[ProviderError], None]
    ) -> None:
        self._checker, self._deadline, self._report = checker, deadline, report
        self._question = question[:_MAX_QUESTION_CHARS]
        self._votes = list[CheckerVote]()
        self._failed = False

    def ask(self, document: str, claim: str) -> CheckerVote | None:
        """Request a vote on a claim; None after a failure, above the number of votes, or for a text too long."""
        size = sum(utf8_length(text) for text in (document, claim, self._question))
        if self._failed or len(self._votes) == MAX_VOTES or size > MAX_VOTE_BYTES or not self._deadline.seconds_left:
            return None
        request = CheckRequest(document, claim, self._question, self._deadline.step(_VOTE_SECONDS))
        self._votes.append(vote := CheckerVote(self._checker, request, self._fail))
        return vote

    def close(self) -> None:
        """Wait for the open votes, because their price is a part of the turn's."""
        for vote in self._votes:
            vote.wait()

    def _fail(self, error: ProviderError) -> None:
        self._failed = True
        self._report(error)


def check_sentence(
    verifier: Verifier, sentence: Sentence, cited_ids: Sequence[str], votes: SecondVotes | None
) -> tuple[CheckedSentence, CheckerVote | None]:
    """Check one sentence of an answer or of a claim; return it with the open vote on its citations.

    Args:
        cited_ids: the ids that its author cites.
        votes: asks for second votes; None if the words decide.
    """
    checked = verifier.check(sentence, cited_ids)
    if votes is None or not checked.needs_second_vote:
        return checked, None
    return checked, votes.ask(verifier.document(checked), sentence.plain_text)


class CheckerVote:
    """One vote on a citation, in a thread of its own."""

    def __init__(self, checker: Checker, request: CheckRequest, fail: Callable[[ProviderError], None]) -> None:
        self._checker, self._request, self._fail = checker, request, fail
        self._supports = True
        self._error: ProviderError | None = None
        # A daemon: a process that ends must not wait for a vote.
        self._thread = Thread(target=self._run, name="vote", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether `rejects` needs no waiting."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join(self._request.deadline.seconds_left + _GRACE)

    def rejects(self) -> bool:
        """Wait for the vote. Return whether it is against the citations; False if it did not come in time."""
        self.wait()
        if not self.is_over:
            self._error = ProviderError("The checker did not answer in time.", retryable=True)
        if self._error:
            self._fail(self._error)
            return False
        return not self._supports

    def _run(self) -> None:
        try:
            self._supports = self._checker.supports(self._request)
        except ProviderError as error:
            self._error = error
        except Exception:
            # Logged here, because an error of this thread never reaches the caller. Its text may quote the request.
            self._error = ProviderError("The checker failed.")
