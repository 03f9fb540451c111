"""Every hostile value in every field: an answer or one of our refusals, never a 5xx, never an echo."""

from __future__ import annotations

from api.scripted import Client, Scripted, error_of
from chapterverse_api.app import create_app

CANARY = "cAnArY"


def _quoted(*texts: str) -> list[str]:
    return [f'"{text}"' for text in texts]


def _array(item: str, times: int) -> str:
    return f"[{','.join([item] * times)}]"


NUMBERS = [
    *("0", "-1", "21", "1.5", "1e3", "-0", "-0.0", "9223372036854775807", "9223372036854775808", "1e999", "9" * 400),
    *("NaN", "Infinity", "-Infinity", "0x10", "01", "+1", "1.", ".5", "1e", "--1", "1e-999", "0." + "3" * 999),
]
STRINGS = _quoted(
    *("", " ", "\\n", "\\u0000", "\\ud800", "\\udfff", "\\ud800\\ud800", "\\ud83d\\ude00", "\\x41", "\\\\u0000"),
    *("\u202e\u2066", "\u200b", "\ufeff", "\ufffe\uffff", "\U000e0041", "\x07", "\x00", "\x7f", "e\u0301", "%00"),
    *("a" * length for length in (1, 35, 36, 64, 65, 2048, 2049, 4000, 4001, 5001, 10_001)),
    *("é" * 4000, "\U0001d4b3" * 4000, "a " * 2000, "\\u00e9" * 4000, "日本語" * 1333),
    *(
        "; DROP TABLE x; --",
        "{{7*7}}",
        "${jndi:ldap://x}",
        "<script>",
        "../../etc/passwd",
        "%s%n",
        "\\r\\nSet-Cookie: a=b",
    ),
)
COMPOUNDS = [
    *("null", "true", "[]", "[[]]", "[null]", "[1]", '["a"]', "[NaN]", "[1e999]", "[0.0]", "[-0.0, 1e-320]"),
    *("{}", '{"a": 1}', '{"a": 1, "a": 2}', '{"": ""}', '{"__proto__": {}}', '{"$ref": "#"}', '{"a": {"b": {}}}'),
    *("[" * 29 + "]" * 29, "[" * 500 + "]" * 500, '{"a":' * 40 + "1" + "}" * 40, "[" * 5000),
    *('{"role": "user", "content": "a"}', '[{"role": "user", "content": "a"}]', '[{"role": "system", "content": "a"}]'),
    *(_array("0.5", 4097), _array('{"role":"user","content":"a"}', 11), _array('"a"', 9000)),
]
BROKEN = [
    "'a'",
    "a",
    "",
    "{",
    "[",
    '"',
    "\\",
    "]",
    "}",
    ",",
    ":",
    "/*",
    "//",
    "undefined",
    "None",
    "<a/>",
    "\t",
    "\x00",
]
CANARIES = [f'"{CANARY}"', f'["{CANARY}"]', f'{{"{CANARY}": "{CANARY}"}}', f'{{"{CANARY}": {{"{CANARY}": 1}}}}']

CHAT = [
    "%s",
    '{"query": %s}',
    '{"selected_text": %s}',
    '{"query": "a", "conversation_history": %s}',
    '{"query": "a", "conversation_history": [{"role": %s, "content": "a"}]}',
    '{"query": "a", "conversation_history": [{"role": "user", "content": %s}]}',
    '{"query": "a", "conversation_history": [{"role": "user", "content": "a", "signature": %s}]}',
    '{"query": "a", "filters": %s}',
    '{"query": "a", "filters": {"tags": %s}}',
    '{"query": "a", "filters": {"$or": %s}}',
    '{"query": "a", "filters": {"created_at": {"$gte": %s}}}',
    '{"query": "a", "filters": {%s: "a"}}',
    '{"query": "a", "top_k": %s}',
    '{"query": "a", "thread_id": %s}',
    '{"query": "a", "page_url": %s, "language": "en"}',
    '{"query": "a", "unknown": %s}',
    '{"query": "a", %s: 1}',
]
FEEDBACK = [f'{{"turn_id": "{"0" * 32}", "rating": "up", "{name}": %s}}' for name in ("reason", "comment", "unknown")]
FEEDBACK += [f'{{"turn_id": "{"0" * 32}", "rating": %s}}', '{"turn_id": %s, "rating": 1}', '{"rating": -1, %s: 1}']
RETRIEVE = ['{"embedding": %s}', '{"embedding": [0.5, %s]}', '{"query": "a", "threshold": %s}']


def test_no_value_in_any_field_is_ever_our_fault() -> None:
    values = [*NUMBERS, *STRINGS, *COMPOUNDS, *BROKEN, *CANARIES]
    cases = [("/v1/chat", frame.replace("%s", value)) for frame in CHAT for value in values]
    cases += [("/v1/retrieve", frame.replace("%s", value)) for frame in RETRIEVE for value in values]
    cases += [("/v1/feedback", frame.replace("%s", value)) for frame in FEEDBACK for value in values]
    assert len(cases) > 1500
    json = {"content-type": "application/json"}
    service = Scripted()
    responses = Client(create_app(service)).many(
        ("POST", path, {"content": text.encode(), "headers": json}) for path, text in cases
    )
    for (path, text), response in zip(cases, responses, strict=True):
        done = 204 if path == "/v1/feedback" else 200
        assert response.status_code in (done, 400, 422), (path, text[:200], response.text)
        if response.status_code != done:
            assert error_of(response)["code"] == {400: "malformed", 422: "out_of_contract"}[response.status_code]
            assert CANARY not in response.text
            assert len(response.content) < 300
    assert len(service.asked) == sum(response.status_code == 200 for response in responses)
    assert len(service.rated) == sum(response.status_code == 204 for response in responses)
    # The corpus has to reach every outcome, or it proves nothing.
    assert {response.status_code for response in responses} == {200, 204, 400, 422}


def test_no_bytes_are_ever_our_fault() -> None:
    history = '"conversation_history": [{"role": "user", "content": "a"}]'
    whole = f'{{"query": "é", {history}, "filters": {{"tags": ["k"]}}}}'.encode()
    bodies = [whole[:end] for end in range(len(whole))]
    bodies += [whole[:at] + bytes([byte]) + whole[at + 1 :] for at in range(len(whole)) for byte in b'\x00"{\\\xff9']
    responses = Client(create_app(Scripted())).many(
        ("POST", "/v1/chat", {"content": raw, "headers": {"content-type": "application/json"}}) for raw in bodies
    )
    assert {response.status_code for response in responses} == {200, 400, 422}
