"""Proof of work: a client near its limit computes before it may ask on.

    challenge = v1 . expiry . nonce . mac       mac = HMAC-SHA256(key, purpose, site, client, difficulty, expiry, nonce)
    solution  = challenge : number              PBKDF2-HMAC-SHA256(number, challenge) begins with a zero byte

Each part of the MAC follows its length, so that no byte can move from one to the next (as in CVE-2025-68113). Nothing
is stored until the solution comes, and then only the challenge's nonce, which can't be used again. A browser needs 256
tries on average, of 0.7 ms each in Chromium. Checking a solution costs the service 1 ms, and only if the MAC is ours.
The work costs an attacker some dollars of computing for a million questions. Only the budget stops one.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chapterverse_api.limits import Limiter, RateWindow
from chapterverse_api.rejections import Rejection

#: The header of a rejection with a challenge, and of the request with its solution.
_HEADER = "x-work"
#: Seconds for which a challenge may be solved.
CHALLENGE_SECONDS = 300
#: Iterations of PBKDF2 for one try, as the widget's work.js has it.
ITERATIONS = 5000

_PURPOSE = b"chapterverse/work/1"
_SOLUTION = re.compile(r"(v1\.([1-9][0-9]{0,11})\.([0-9a-f]{32})\.([0-9a-f]{64})):(0|[1-9][0-9]{0,8})", re.ASCII)


class WorkRequired(Rejection):
    """A request that is answered once its client has done some work, or has waited."""

    def __init__(self, challenge: str, wait_seconds: float) -> None:
        super().__init__(
            429,
            "work_required",
            "This reader has asked a lot in a short time: answer the challenge in the header x-work, or wait, and ask "
            "again.",
            retryable=True,
            retry_after=max(1, math.ceil(wait_seconds)),
            headers={_HEADER: challenge},
        )
        self.challenge = challenge


class ProofOfWork:
    """Requires work of a client that has used half of one of its windows.

    Args:
        site: the site's name. Challenges of one site are not valid at another.
        windows: the windows in which the client's requests are counted.
    """

    header = _HEADER

    def __init__(self, site: str, windows: Sequence[RateWindow]) -> None:
        self._site = site
        self._halves = tuple(replace(window, limit=max(1, window.limit // 2)) for window in windows)

    def check(self, limiter: Limiter, key: bytes, client: str, solution: str, now: float) -> None:
        """Return if the client may be counted: it needs no work, or has done it.

        Args:
            key: the key that signs the challenges.
            solution: the header of its request; empty without one.

        Raises:
            WorkRequired: work is missing. Nothing is counted then.
            LimiterFault: nothing can be counted.
        """
        wait_seconds = limiter.admit(f"{client}-easy", self._halves, now)
        if wait_seconds is None:
            return
        solved = check_solution(key, self._site, client, solution, now)
        if solved is None or not limiter.use_token(solved.nonce, solved.expiry, now):
            raise WorkRequired(make_challenge(key, self._site, client, now), wait_seconds)


@dataclass(frozen=True, slots=True)
class SolvedChallenge:
    """A challenge that a client has solved. Its nonce is valid once, until `expiry` in seconds since the epoch."""

    nonce: str
    expiry: int


def make_challenge(key: bytes, site: str, client: str, now: float) -> str:
    """Return a challenge for one client of one site.

    Args:
        client: the hash by which it is counted.
        now: seconds since the epoch.
    """
    expiry, nonce = int(now) + CHALLENGE_SECONDS, secrets.token_hex(16)
    return f"v1.{expiry}.{nonce}.{_mac(key, site, client, str(expiry), nonce)}"


def check_solution(key: bytes, site: str, client: str, solution: str, now: float) -> SolvedChallenge | None:
    """Return the challenge if its solution is right, in time, and for this site and client."""
    match = _SOLUTION.fullmatch(solution)
    if match is None:
        return None
    text, expiry, nonce, mac, number = match.groups()
    if not now < int(expiry) <= now + CHALLENGE_SECONDS:
        return None
    if not hmac.compare_digest(mac, _mac(key, site, client, expiry, nonce)):
        return None
    # Checked last, because it is a thousand times as much work as all before.
    is_solved = hashlib.pbkdf2_hmac("sha256", number.encode(), text.encode(), ITERATIONS, 1) == b"\0"
    return SolvedChallenge(nonce, int(expiry)) if is_solved else None


def _mac(key: bytes, *fields: str) -> str:
    difficulty = ITERATIONS.to_bytes(4, "big")
    parts = (_PURPOSE, difficulty, *(field.encode(errors="surrogatepass") for field in fields))
    return hmac.digest(key, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256").hex()
