"""Minifies the widget's modules: no comments, no needless space, and short names for what only one file knows.

A variable's name is shortened everywhere in its file or nowhere, so scopes stay what they are. Properties, exports and
imports keep their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

_KEYWORDS = frozenset(
    "as async await break case catch class const continue default delete do else export extends false finally for from"
    " function get if import in instanceof let new null of return set static super switch this throw true try typeof"
    " undefined var void while with yield".split()
)
_TEMPLATE = r"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)"
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\d[\w.]*)"
    rf"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`{_TEMPLATE})|(?P<sign>=>|\?\.|\.\.\.|.)",
    re.DOTALL,
)
_REST = re.compile(rf"\}}{_TEMPLATE}", re.DOTALL)
_EXPRESSION = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
#: What an expression begins after: there a slash begins a regular expression.
_BEFORE_EXPRESSION = frozenset("( , = : [ ! & | ? { } ; => return".split()) | {""}


#: By how often JavaScript has them, which compresses best.
_LETTERS = "etnaoisrlcdumphfgbvywkxjqzETNAOISRLCDUMPHFGBVYWKXJQZ"


class _Token(NamedTuple):
    """A token, with the bracket that it is in."""

    kind: str
    text: str
    bracket: str


def minify(source: str) -> str:
    """Return a module without comments and needless space, with short names."""
    import rjsmin

    lines = (line.strip() for line in rjsmin.jsmin(source).split("\n"))
    return shorten_names(re.sub(r"(?<=[;{},])\n", "", "\n".join(line for line in lines if line)))


def shorten_names(source: str) -> str:
    """Return a module without comments with short names for what it declares itself."""
    tokens = list(_tokens(source))
    names = [token for token in tokens if token.kind != "space"]
    edges = _Token("sign", "", "")
    counts, declared, kept = Counter[str](), set[str](), set(_KEYWORDS)
    fixed = set[int]()
    for before, token, after in zip([edges, *names], names, [*names[1:], edges], strict=False):
        if token.kind != "name":
            continue
        counts[token.text] += 1
        key = token.bracket == "{" and before.text in ("{", ",")
        if before.text in (".", "?.") or (key and after.text == ":"):
            fixed.add(id(token))
        # A method, or a property with the name of its variable.
        elif (key and after.text in (",", "}", "=", "(")) or (before.text in ("}", "async") and after.text == "("):
            kept.add(token.text)
        elif before.text in ("const", "let") or after.text == "=>":
            declared.add(token.text)
    declared |= set(_parameters(names))
    kept |= {name.text for export, _, name in zip(names, names[1:], names[2:], strict=False) if export.text == "export"}
    rare_last = sorted((name for name in declared - kept if len(name) > 1), key=lambda name: (-counts[name], name))
    short = ("".join(letters) for size in (1, 2) for letters in product(_LETTERS, repeat=size))
    free = (name for name in short if name not in counts and name not in _KEYWORDS)
    table = dict(zip(rare_last, free, strict=False))
    return "".join(
        table.get(token.text, token.text) if token.kind == "name" and id(token) not in fixed else token.text
        for token in tokens
    )


def _parameters(names: list[_Token]) -> Iterator[str]:
    """Return the names that arrow functions give their parameters."""
    starts: list[int] = []
    for at, (token, after) in enumerate(pairwise(names)):
        if token.text == "(":
            starts.append(at)
        elif token.text == ")" and after.text == "=>":
            inside = names[starts.pop() : at]
            yield from (name.text for comma, name in pairwise(inside) if name.kind == "name" and comma.text in "(,")
        elif token.text == ")":
            starts.pop()


def _tokens(source: str) -> Iterator[_Token]:
    at, last = 0, ""
    brackets: list[str] = []
    while at < len(source):
        found = None
        if source[at] == "}" and brackets[-1:] == ["`"]:
            found, kind = _REST.match(source, at), "text"
            brackets.pop()
        elif source[at] == "/" and last in _BEFORE_EXPRESSION:
            found, kind = _EXPRESSION.match(source, at), "text"
        if not found:
            found = _TOKEN.match(source, at)
            assert found
            kind = str(found.lastgroup)
        text, at = found[0], found.end()
        yield _Token(kind, text, brackets[-1] if brackets else "")
        if kind == "text" and text.endswith("${"):
            brackets.append("`")
        elif kind == "sign" and text in "([{":
            brackets.append(text)
        elif kind == "sign" and text in ")]}":
            brackets.pop()
        if kind != "space":
            last = "" if kind == "text" and text.endswith("${") else text
