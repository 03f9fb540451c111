"""Proof of work: a client near its limit computes before it may ask on.

    challenge = v1 . expiry . nonce . mac       mac = HMAC-SHA256(key, purpose, site, client, difficulty, expiry, nonce)
    answer    = challenge : number              PBKDF2-HMAC-SHA256(number, challenge) begins with a zero byte

Each part of the MAC follows its length, so that no byte can move from one to the next (as in CVE-2025-68113). A
challenge is not stored until its answer comes; its nonce is spent then. A browser needs 256 tries in the mean, of 0.7
ms each in Chromium. Checking an answer costs the service 1 ms, and only if the MAC is ours. The work slows an attacker
down, by some dollars of computing for a million questions. The budget is what stops one.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.responses import JSONResponse

from chapterverse_api.limits.protocols import Limiter, RateWindow
from chapterverse_api.rejections import Rejection

#: The header of a refusal with a challenge, and of the request with its answer.
HEADER = "x-work"
#: Seconds for which a challenge may be answered.
LIFETIME = 300
#: As the widget's work.js has it.
ITERATIONS = 5000

_PURPOSE = b"chapterverse/work/1"
_ANSWER = re.compile(r"(v1\.([1-9][0-9]{0,11})\.([0-9a-f]{32})\.([0-9a-f]{64})):(0|[1-9][0-9]{0,8})", re.ASCII)


class WorkRequired(Rejection):
    """A request that is answered once its client has done some work, or has waited."""

    def __init__(self, make_challenge: str, wait: float) -> None:
        super().__init__(
            429,
            "work_required",
            "This reader has asked a lot in a short time: answer the challenge in the header x-work, or wait, and ask "
            "again.",
            retryable=True,
            retry_after=max(1, math.ceil(wait)),
        )
        self.challenge = make_challenge

    def response(self, headers: dict[str, str] | None = None) -> JSONResponse:
        return super().response({HEADER: self.challenge, **(headers or {})})


class ProofOfWork:
    """Wants work of a client that has used half of one of its windows.

    Args:
        site: its name; challenges of one site are not valid at another.
        windows: in which the client's requests are counted.
    """

    def __init__(self, site: str, windows: Sequence[RateWindow]) -> None:
        self._site = site
        self._halves = tuple(replace(window, limit=max(1, window.limit // 2)) for window in windows)

    def check(self, limiter: Limiter, key: bytes, client: str, answer: str, now: float) -> None:
        """Return if the client may be counted: it needs no work, or has done it.

        Args:
            key: signs the challenges.
            answer: the header of its request; empty without one.

        Raises:
            WorkRequired: with a challenge. Nothing is counted then.
            LimiterFault: nothing can be counted.
        """
        wait = limiter.admit(f"{client}-easy", self._halves, now)
        if wait is None:
            return
        solution = check_answer(key, self._site, client, answer, now)
        if solution is None or not limiter.first(solution.nonce, solution.expiry, now):
            raise WorkRequired(make_challenge(key, self._site, client, now), wait)


@dataclass(frozen=True, slots=True)
class Solution:
    """An answer that is right; its nonce may be spent once, until `expiry` in seconds of the epoch."""

    nonce: str
    expiry: int


def make_challenge(key: bytes, site: str, client: str, now: float) -> str:
    """Return a challenge for one client of one site.

    Args:
        client: a hash, as it is counted by.
        now: seconds of the epoch.
    """
    expiry, nonce = int(now) + LIFETIME, secrets.token_hex(16)
    return f"v1.{expiry}.{nonce}.{_mac(key, site, client, str(expiry), nonce)}"


def check_answer(key: bytes, site: str, client: str, answer: str, now: float) -> Solution | None:
    """Return the challenge of a valid answer: for this site and client, in time, and with the work done."""
    match = _ANSWER.fullmatch(answer)
    if match is None:
        return None
    text, expiry, nonce, mac, number = match.groups()
    if not now < int(expiry) <= now + LIFETIME:
        return None
    if not hmac.compare_digest(mac, _mac(key, site, client, expiry, nonce)):
        return None
    # Last, as it is a thousand times as much work as all before.
    is_solved = hashlib.pbkdf2_hmac("sha256", number.encode(), text.encode(), ITERATIONS, 1) == b"\0"
    return Solution(nonce, int(expiry)) if is_solved else None


def _mac(key: bytes, *fields: str) -> str:
    difficulty = ITERATIONS.to_bytes(4, "big")
    parts = (_PURPOSE, difficulty, *(field.encode(errors="surrogatepass") for field in fields))
    return hmac.digest(key, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256").hex()
