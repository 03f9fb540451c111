"""Hostile bodies by family. Each contains the canary, which no response may repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

CANARY = "cAnArY"
JSON = "application/json"
TURN = "0" * 32

#: A body of each route that is answered. Every other field that a route has is in `FIELDS`.
LEGAL = {
    "/v1/chat": {"query": f"cache {CANARY}"},
    "/v1/retrieve": {"query": f"cache {CANARY}"},
    "/v1/feedback": {"turn_id": TURN, "rating": "up", "comment": CANARY},
}
FIELDS = {
    "/v1/chat": (
        *("query", "selected_text", "conversation_history", "user_context", "thread_id", "page_url", "language"),
        *("version", "filters", "top_k"),
    ),
    "/v1/retrieve": ("query", "embedding", "top_k", "threshold", "filters"),
    "/v1/feedback": ("turn_id", "rating", "reason", "comment"),
}


@dataclass(frozen=True, slots=True)
class Document:
    """One body, with the type that it claims to be of."""

    family: str
    body: bytes
    content_type: str = JSON


def documents() -> list[Document]:
    """Return them all, each once."""
    families = [encodings, numbers, depths, repeated_keys, characters, wrong_types, loaded_names, lengths]
    families += [truncated, trailing, not_quite_json, content_types]
    return list(dict.fromkeys(document for family in families for document in family()))


def _document(family: str, text: str) -> Document:
    return Document(family, text.encode("utf-8", errors="surrogatepass"))


def _with(route: str, field: str, value: str) -> str:
    """Return the legal body of a route with the JSON text `value` in one more field, or in place of that field."""
    members = {name: json.dumps(legal) for name, legal in LEGAL[route].items()} | {field: value}
    if not any(CANARY in text for text in members.values()):
        members["user_context" if route == "/v1/chat" else "unknown"] = f'"{CANARY}"'
    return "{" + ", ".join(f'"{name}": {text}' for name, text in members.items()) + "}"


def encodings() -> Iterator[Document]:
    text = f'{{"query": "caché {CANARY}"}}'
    codecs = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-7"]
    codecs += ["latin-1", "cp1252", "cp037", "mac-roman", "cp437"]
    for codec in codecs:
        for charset in ("", "; charset=utf-8", f"; charset={codec}"):
            yield Document("encodings", text.encode(codec), JSON + charset)
    whole = text.encode()
    invalid = [
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf8\x88\x80\x80\x80",
        b"\xed\xa0\x80",
        b"\xed\xb0\x80",
        b"\x80",
        b"\xff",
    ]
    invalid += [
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80",
        b"\xfe\xff",
        b"\xc0\x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
    ]
    for sequence in invalid:
        for at in (0, whole.index(b"query"), whole.index(CANARY.encode()), len(whole) - 2, len(whole)):
            yield Document("encodings", whole[:at] + sequence + whole[at:])
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff", b"\x2b\x2f\x76\x38"):
        yield Document("encodings", mark + whole)
        yield Document("encodings", mark * 2 + whole)
        yield Document("encodings", whole + mark)


def numbers() -> Iterator[Document]:
    values = ["NaN", "Infinity", "-Infinity", "-NaN", "nan", "1e999", "-1e999", "1e-999", "9" * 65, "9" * 400]
    values += ["9" * 5000, "1" + "0" * 4400 + "e-4400", "0." + "3" * 999, "2e63", "9223372036854775808", "-0", "-0.0"]
    values += [
        "-9223372036854775809",
        "18446744073709551616",
        "0x10",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "1_000",
        "٣",
        "1e+-1",
    ]
    places = [
        ("/v1/chat", "top_k"),
        ("/v1/retrieve", "top_k"),
        ("/v1/retrieve", "threshold"),
        ("/v1/feedback", "rating"),
    ]
    for value in values:
        for route, field in places:
            yield _document("numbers", _with(route, field, value))
        yield _document("numbers", f'{{"embedding": [0.5, {value}], "unknown": "{CANARY}"}}')
        yield _document("numbers", _with("/v1/chat", "filters", f'{{"chunk_index": {{"$gte": {value}}}}}'))


def depths() -> Iterator[Document]:
    for depth in (5, 30, 31, 32, 33, 64, 500, 1000, 5000, 20_000):
        for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")):
            nested = opening * depth + f'"{CANARY}"' + closing * depth
            yield _document("depth", nested)
            yield _document("depth", _with("/v1/chat", "filters", nested))
            yield _document("depth", _with("/v1/chat", "query", opening * depth + f'"{CANARY}"'))


def repeated_keys() -> Iterator[Document]:
    for route, fields in FIELDS.items():
        for field in fields:
            first, escaped = json.dumps(LEGAL[route].get(field, CANARY)), f"\\u{ord(field[0]):04x}{field[1:]}"
            yield _document("keys", f'{{"{field}": {first}, "{field}": "{CANARY}"}}')
            yield _document("keys", f'{{"{field}": {first}, "{escaped}": "{CANARY}"}}')
            yield _document("keys", f'{{"{field}": {first}, "{field} ": "{CANARY}"}}')
            yield _document("keys", f'{{"{field}": {first}, "{field.upper()}": "{CANARY}"}}')
    for inner in ('{"tags": "a", "tags": "b"}', '{"a": {"b": 1, "b": 1}}', '{"": 1, "": 2}'):
        yield _document("keys", _with("/v1/chat", "filters", inner))
    yield _document("keys", "{" + ", ".join(f'"{CANARY}{i}": 1' for i in range(5000)) + "}")


def characters() -> Iterator[Document]:
    texts = [
        "\\u0000",
        "\\ud800",
        "\\udfff",
        "\\ud800\\ud800",
        "\\udc00\\ud800",
        "\\ud83d\\ude00",
        "\\uFFFE",
        "\\uFFFF",
    ]
    texts += ["\u202e\u2066", "\u200b\u200d", "\ufeff", "\U000e0041\U000e0042", "\x7f", "e\u0301" * 50, "\u0345" * 200]
    texts += [
        "ﬃ",
        "İi̇",
        "\u1e9e",
        "＜script＞",
        "\u2028\u2029",
        "\\u2028",
        "\x85",
        "\\b\\f\\r\\n\\t",
        "\\/",
        "\ufdfa" * 20,
    ]
    texts += ["\x00", "\x07", "\x1b[2J", "\n", "\t", "\\x41", "\\u12", "\\uZZZZ", "\\", "\\a", "\ud800"]
    texts += ["<script>alert(1)</script>", "{{7*7}}", "${jndi:ldap://a}", "' OR 1=1 --", "../../etc/passwd", "%s%n%x"]
    places = [("/v1/chat", f) for f in ("query", "selected_text", "user_context", "thread_id", "page_url", "version")]
    places += [("/v1/retrieve", "query"), ("/v1/feedback", "comment"), ("/v1/feedback", "turn_id")]
    for text in texts:
        for route, field in places:
            yield _document("characters", _with(route, field, f'"{CANARY} {text}"'))
        yield _document("characters", f'{{"query": "cache", "{CANARY}{text}": 1}}')


def wrong_types() -> Iterator[Document]:
    values = ["null", "true", "0", "-1", "1.5", f'"{CANARY}"', "[]", "{}", f'["{CANARY}"]', f'{{"{CANARY}": 1}}', '""']
    values += ["[null]", "[[]]", "[1, 2]", '{"role": "user"}', f'[{{"role": "system", "content": "{CANARY}"}}]', '"1"']
    values += [f'{{"$gt": "{CANARY}"}}', f'{{"$where": "{CANARY}"}}', '["up"]', "1e3"]
    for route, fields in FIELDS.items():
        for field in fields:
            for value in values:
                yield _document("types", _with(route, field, value))
    for value in values:
        yield _document("types", value if CANARY in value else f'[{value}, "{CANARY}"]')


def loaded_names() -> Iterator[Document]:
    names = ["__proto__", "constructor", "prototype", "hasOwnProperty", "toString", "valueOf", "__class__", "__init__"]
    names += [
        "__dict__",
        "__globals__",
        "self",
        "cls",
        "model_config",
        "model_fields",
        "$ref",
        "$where",
        "$ne",
        "@type",
    ]
    names += ["class", "py/object", "_id", "id", "admin", "role", "query[]", "query.x", "query ", " query", "QUERY", ""]
    for name in names:
        loaded = f'{{"{name}": {{"{CANARY}": true}}}}'
        yield _document("names", loaded)
        yield _document("names", f'{{"query": "cache", "{name}": "{CANARY}"}}')
        yield _document("names", _with("/v1/chat", "filters", loaded))
        yield _document("names", _with("/v1/chat", "conversation_history", f"[{loaded}]"))


def lengths() -> Iterator[Document]:
    for size in (4000, 4001, 5001, 10_001, 65_536, 131_000, 131_072, 131_073, 262_144, 1_000_000):
        yield _document("lengths", f'{{"query": "{CANARY}{"a" * size}"}}')
        yield _document("lengths", f'{{"query": "{CANARY}", "user_context": "{"a" * size}"}}')
        yield _document("lengths", f'{{"query": "{CANARY}"}}' + " " * size)
        yield _document("lengths", " " * size + f'{{"query": "{CANARY}"}}')
        yield _document("lengths", f'{{"{CANARY}{"a" * size}": 1}}')
        yield _document("lengths", f'{{"query": ["{CANARY}"{", 1" * (size // 3)}]}}')


def truncated() -> Iterator[Document]:
    text = (
        f'{{"user_context": "{CANARY}", "query": "é\\u00e9\\n", "top_k": -12, "filters": {{"tags": ["a", "b"], '
        '"chunk_index": {"$gte": 1.5e+3}}, "conversation_history": [true, false, null]}'
    )
    whole = text.encode()
    for end in range(text.index(CANARY) + len(CANARY), len(whole)):
        yield Document("truncated", whole[:end])


def trailing() -> Iterator[Document]:
    legal = f'{{"query": "cache {CANARY}"}}'
    tails = [
        "}",
        "]",
        ",",
        ":",
        '"',
        "1",
        "null",
        "x",
        ";",
        "\x00",
        "\u00a0",
        "\ufeff",
        "//",
        "/**/",
        "#",
        "{}",
        "[]",
        legal,
    ]
    tails += [
        "\n{}",
        "\x1e{}",
        " \t\r\n",
        "\v",
        "\f",
        "\u2028",
        "NaN",
        ")]}'",
        "-- ",
        "\x1a",
        "<!-- -->",
        "\r\n0\r\n\r\n",
    ]
    for tail in tails:
        yield _document("trailing", legal + tail)
        yield _document("trailing", tail + legal)


def not_quite_json() -> Iterator[Document]:
    texts = ["{{'query': '{0}'}}", "{{query: '{0}'}}", '{{query: "{0}"}}', '{{"query": "{0}",}}', '{{,"query": "{0}"}}']
    texts += [
        '{{"query": "{0}" "top_k": 1}}',
        '{{"query" "{0}"}}',
        '{{"query":: "{0}"}}',
        '{{"query"= "{0}"}}',
        '{{"query": {0}}}',
    ]
    texts += [
        '{{"query": "{0}" /* a */}}',
        '// a\n{{"query": "{0}"}}',
        '{{"query": "{0}" # a\n}}',
        '{{"query": `{0}`}}',
    ]
    texts += [
        '{{"query": "{0}"}}, {{}}',
        '{{"query": "{0}\n"}}',
        '{{"query": "{0}" + "a"}}',
        '{{"query": new String("{0}")}}',
    ]
    texts += [
        "query: {0}",
        "- {0}",
        "query={0}",
        "<query>{0}</query>",
        '"{0}"',
        "{0}",
        '["{0}"]',
        '{{"query": "{0}"',
        '{{}}"{0}"',
    ]
    texts += [
        '{{null: "{0}"}}',
        '{{1: "{0}"}}',
        '{{"query": True, "a": "{0}"}}',
        '{{"query": None, "a": "{0}"}}',
        '{{"{0}"}}',
    ]
    texts += [
        '{{"query": undefined, "a": "{0}"}}',
        '{{["query"]: "{0}"}}',
        "&a [*a, {0}]",
        "!!python/object:os.system {0}",
    ]
    texts += [
        '{{"query": "{0}"}}\n{{"query": "{0}"}}',
        ')]}}\',\n{{"query": "{0}"}}',
        'callback({{"query": "{0}"}})',
        "{0}\\",
    ]
    for text in texts:
        yield _document("not JSON", text.format(CANARY))


def content_types() -> Iterator[Document]:
    legal = f'{{"query": "cache {CANARY}"}}'.encode()
    types = [
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "*/*",
    ]
    types += [
        "application/jsonp",
        "application/json5",
        "application/ld+json",
        "application/problem+json",
        "json",
        "a" * 5000,
    ]
    types += [
        "application/xml",
        "application/octet-stream",
        "application/json, text/plain",
        "text/plain; application/json",
    ]
    types += [
        "application/json/x",
        "application\\json",
        "application / json",
        "application/json\t",
        " application/json",
    ]
    types += [
        "APPLICATION/JSON",
        "application/json;",
        "application/json; charset=utf-16",
        f"text/{CANARY}",
        "application/",
    ]
    types += [
        'application/json; charset="utf-8"',
        "application/json;q=0",
        "application/csp-report",
        "text/html",
        "null",
    ]
    for content_type in types:
        yield Document("types of content", legal, content_type)
