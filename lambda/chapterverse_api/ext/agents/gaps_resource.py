"""`report://gaps` at `/mcp`: the work list that `chapterverse report --gaps` wrote, for who sends the token.

The file is served as it is, and nothing is computed. Without a token, with another one, and without a file, the reply
is the same: there is no such resource.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from chapterverse.settings import Settings
from chapterverse_api.ext.agents.mcp.messages import RESOURCE_NOT_FOUND, McpCall, McpError
from chapterverse_api.ext.agents.mcp.protocol import RpcResult

_FILE = "gaps.md"
#: A work list has fifty gaps of some kilobytes.
_MAX_BYTES = 1 << 20


def read_gaps(call: McpCall, settings: Settings, authorization: str) -> RpcResult:
    """Return the work list as the result of `resources/read`.

    Args:
        authorization: the header of that name, `Bearer TOKEN`.

    Raises:
        McpError: the token is another one, or there is no list, with the status 404.
    """
    if not settings.report_token or not _is_same(authorization, f"Bearer {settings.report_token}"):
        raise _missing()
    text = _read(settings.local_folder / _FILE)
    # No client may keep it: it holds the words of readers.
    cache = {"ttlMs": 0, "cacheScope": "private"}
    return {"contents": [{"uri": call.params["uri"], "mimeType": "text/markdown", "text": text}], **cache}


def _is_same(text: str, other: str) -> bool:
    """Compare in a time that tells neither where the texts differ nor how long they are."""
    digests = (hashlib.sha256(each.encode(errors="replace")).digest() for each in (text, other))
    return hmac.compare_digest(*digests)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="ignore")
    except OSError:
        raise _missing() from None


def _missing() -> McpError:
    return McpError(RESOURCE_NOT_FOUND, "There is no such resource.", status=404)
