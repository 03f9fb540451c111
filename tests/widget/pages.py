"""The pages of the stand-in server, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)

#: Links of the page change the address and the title without a load, as Material's instant navigation does: by one
#: listener that looks at the target of a click on the body.
INSTANT = """<script>
window.loads = [];
document.body.addEventListener('click', event => {
  const link = event.target.closest('a[href]');
  if (!link || link.target || event.ctrlKey) return;
  event.preventDefault();
  window.loads.push(link.href);
  history.pushState({}, '', link.href);
});
</script>"""

#: As the stock theme does it: any "?" or "s" that was not typed into a field of the page opens the search.
SHORTCUTS = """<script>
window.shortcuts = [];
for (const type of ['keydown', 'keyup', 'keypress']) {
  document.addEventListener(type, event => {
    if (!/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) window.shortcuts.push(event.key);
  });
}
</script>"""

MATERIAL_LIGHT = """<style>
:root { --md-primary-fg-color: #00695c; --md-default-bg-color: #fff; --md-default-fg-color: rgba(0, 0, 0, .87);
  --md-typeset-a-color: #00695c; color-scheme: light }
body { font-family: Georgia, serif }
</style>"""

MATERIAL_DARK = """<style>
:root { --md-primary-fg-color: #4051b5; --md-default-bg-color: #1e2129; --md-default-fg-color: #e2e4e9d1;
  --md-typeset-a-color: #8fa1ff; color-scheme: dark }
body { font-family: system-ui; background: #1e2129; color: #e2e4e9 }
</style>"""


@dataclass(frozen=True)
class Page:
    html: str
    headers: dict[str, str] = field(default_factory=dict)


def page(head: str = "", body: str = "", **headers: str) -> Page:
    sections = "".join(
        f'<h2 id="s{n}">Section {n}</h2><p id="p{n}">Paragraph {n} says how to lock and sync a project.</p>'
        '<div class="space"></div>'
        for n in range(1, 5)
    )
    return Page(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Docs</title>'
        f'<meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="/page.css">{head}'
        f'<script type="module" src="/widget/launcher.js"></script></head>'
        f'<body><main><h1>Locking</h1><input id="search" value="some words"><a id="next" href="/second.html">next</a>'
        f"{sections}</main>{body}</body></html>",
        headers,
    )


PAGES = {
    "/": page(),
    "/second.html": page(),
    "/page.css": Page(".space{height:700px}"),
    "/strict.html": page(**{"Content-Security-Policy": CSP}),
    "/instant.html": page(body=INSTANT),
    "/stock.html": page(body=SHORTCUTS),
    "/light.html": page(MATERIAL_LIGHT),
    "/dark.html": page(MATERIAL_DARK),
}


def source(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "chapter": "Locking",
        "section": f"Section {number}",
        "snippet": f"Paragraph {number} says how to lock and sync a project.",
        "url": f"/second.html#s{number}",
        "score": 0.9,
        "chunk_id": f"c{number}",
        **changes,
    }


def answer(*texts: str, citations: list[str] | None = None, **changes: Any) -> dict[str, Any]:
    """Make a `ChatResponse` whose segments are these texts, the last of them with these citations."""
    segments = [{"text": text, "citations": []} for text in texts]
    segments[-1]["citations"] = citations or []
    return {
        "response": "".join(texts),
        "source_chunks": [source(1), source(2)],
        "segments": segments,
        "mode": "rag",
        "status": "answered",
        "grounding_confidence": 0.9,
        "retrieval_used": True,
        "sources_cited": [],
        "timestamp": "2026-01-01T00:00:00Z",
        "execution_time": 0.1,
        "turn_id": "t",
        "thread_id": None,
        "signature": None,
        "follow_ups": [],
        "nearest": [],
        "degraded_reason": None,
        **changes,
    }


def segment(text: str, *citations: str, **changes: Any) -> dict[str, Any]:
    """Make a segment of prose; with citations it is confirmed."""
    check = "confirmed" if citations else "none"
    return {"text": text, "citations": list(citations), "kind": "prose", "check": check, "mark": None, **changes}


def framing(text: str) -> dict[str, Any]:
    return segment(text, kind="framing")


def quote(text: str, citation: str, mark: str | None = None) -> dict[str, Any]:
    return segment(text, citation, kind="quote", mark=mark)


def of_segments(*segments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Make a `ChatResponse` of these segments."""
    response = "".join(segment["text"] for segment in segments)
    return answer(response, **{"segments": list(segments), **changes})


#: What the service quotes without a model: a breadcrumb before each passage, and the sentence that answers.
QUOTED = of_segments(
    framing("Quoted from the documentation:\n\n"),
    framing("**Locking › Locks › Section 2**\n\n"),
    quote(
        "The lock file names every version. Run `uv lock` to **make** a new one. It takes a moment:\n\n"
        "```sh\nuv lock --upgrade-package requests\nuv sync\n```\n\n",
        "2",
        "Run `uv lock` to **make** a new one.",
    ),
    framing("**Locking › Section 1**\n\n"),
    quote(
        "| Option | What it does |\n| --- | --- |\n"
        "| `--upgrade` | Takes the newest version of every package that the other packages allow. |\n"
        "| `--frozen` | Takes the versions of the lock file as they are, and does not look for newer ones. |\n\n",
        "1",
        "Takes the newest version of every package that the other packages allow.",
    ),
    follow_ups=["How do I sync?"],
)
