from __future__ import annotations

import socket

import httpx
import pytest

from api.scripted import Client, Scripted, error_of, serving
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.http.guard import AllowList

DOCS = "https://docs.example.com"
PREVIEWS = "https://*.preview.example.com"
LISTED = f"{DOCS}, http://127.0.0.1:8765, {PREVIEWS}, https://[::1]:9000"


def _asked(origin: str | None, allowed: str = LISTED, **headers: str) -> tuple[httpx.Response, Scripted]:
    service = Scripted(settings=Settings(allowed_origins=allowed))
    sent = headers | ({} if origin is None else {"origin": origin})
    return Client(create_app(service)).post("/v1/chat", {"query": "a"}, headers=sent), service


@pytest.mark.parametrize(
    "origin",
    [
        DOCS,
        "http://127.0.0.1:8765",
        "https://pr-17.preview.example.com",
        "https://x.preview.example.com",
        "https://[::1]:9000",
    ],
)
def test_an_allowed_origin_may_ask_and_read(origin: str) -> None:
    response, service = _asked(origin)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == origin
    assert "access-control-allow-credentials" not in response.headers
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "*",
        "https://example.com",
        "https://docs.example.com.evil.com",
        "https://evil.com/docs.example.com",
        "https://evildocs.example.com",
        "https://a.docs.example.com",
        "https://docs.example.org",
        "https://docsxexample.com",
        "http://docs.example.com",
        "https://docs.example.com:8443",
        "https://docs.example.com:443",
        "https://docs.example.com/",
        "https://docs.example.com.",
        "https://DOCS.example.com",
        "HTTPS://docs.example.com",
        "https://user@docs.example.com",
        "https://docs.example.com@evil.com",
        "https://docs.example.com#x",
        "https://docs.example.com%00.evil.com",
        "https://docs.example.com https://evil.com",
        "https://xn--docs-example.com",
        "docs.example.com",
        "//docs.example.com",
        "file://",
        "chrome-extension://abcdef",
        "https://preview.example.com",
        "https://.preview.example.com",
        "https://a.b.preview.example.com",
        "https://-.preview.example.com",
        "https://evil.com/.preview.example.com",
        "https://evil.com?.preview.example.com",
        "https://evil.com#.preview.example.com",
        "https://a.preview.example.com.evil.com",
        "https://a.preview.example.com:8443",
        "http://a.preview.example.com",
        "https://a.previewxexample.com",
        "https://*.preview.example.com",
        "http://127.0.0.1",
        "http://127.0.0.1:87650",
        "http://localhost:8765",
        "https://api.example.com",
    ],
)
def test_any_other_origin_is_refused_before_anything_runs(origin: str) -> None:
    response, service = _asked(origin)
    assert (response.status_code, error_of(response)["code"]) == (403, "origin_not_allowed")
    assert "access-control-allow-origin" not in response.headers
    assert response.headers["vary"] == "Origin"
    assert service.asked == []


def test_a_program_without_an_origin_may_ask() -> None:
    response, service = _asked(None)
    assert (response.status_code, response.headers["vary"], len(service.asked)) == (200, "Origin", 1)


def test_two_origins_are_none() -> None:
    service = Scripted(settings=Settings(allowed_origins=DOCS))
    headers = [("origin", DOCS), ("origin", DOCS), ("content-type", "application/json")]
    response = Client(create_app(service)).request("POST", "/v1/chat", content=b'{"query": "a"}', headers=headers)
    assert (response.status_code, service.asked) == (403, [])


@pytest.mark.parametrize(
    ("base", "origin", "status"),
    [
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765", 200),
        ("http://127.0.0.1:8765", "http://localhost:8765", 403),
        ("http://127.0.0.1:8765", "https://127.0.0.1:8765", 403),
        ("http://127.0.0.1:8765", "http://127.0.0.1:9999", 403),
        ("https://docs.example.com", "https://docs.example.com", 200),
        ("https://docs.example.com:443", "https://docs.example.com", 200),
        ("http://docs.example.com:80", "http://docs.example.com", 200),
        ("https://docs.example.com:80", "https://docs.example.com", 403),
        ("https://docs.example.com", "null", 403),
    ],
)
def test_with_an_empty_list_only_the_same_origin_may_ask(base: str, origin: str, status: int) -> None:
    client = Client(create_app(Scripted(settings=Settings(base_url="https://docs.example.com/guide/"))), origin=base)
    # httpx leaves a default port out of Host; some clients and proxies don't.
    headers = {"origin": origin, "host": base.partition("//")[2]}
    assert client.post("/v1/chat", {"query": "a"}, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/v1/chat", b"{", 400), ("/v1/chat", b"{}", 422), ("/v1/nope", b"{}", 404), ("/v1/health", b"{}", 405)],
)
def test_an_allowed_origin_may_read_its_errors(path: str, body: bytes, status: int) -> None:
    client = Client(create_app(Scripted(settings=Settings(allowed_origins=DOCS))))
    headers = {"origin": DOCS, "content-type": "application/json"}
    response = client.request("POST", path, content=body, headers=headers)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (status, DOCS)


def _preflight(origin: str) -> httpx.Response:
    client = Client(create_app(Scripted(settings=Settings(allowed_origins=LISTED))))
    headers = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    return client.request("OPTIONS", "/v1/chat", headers=headers)


def test_a_preflight_of_an_allowed_origin_is_answered() -> None:
    response = _preflight(DOCS)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-origin"] == DOCS
    assert response.headers["access-control-allow-methods"] == "GET, POST, DELETE"
    assert response.headers["access-control-allow-headers"] == "content-type, x-work"
    assert response.headers["vary"] == "Origin"


def test_a_preflight_of_another_origin_is_refused() -> None:
    response = _preflight("https://evil.com")
    assert response.status_code == 403
    assert not [name for name in response.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "entry",
    [
        *("*", "https://*", "https://*.com", "https://a.*.com", "https://pr-*.example.com", "https://*.*.example.com"),
        *("example.com", "https://docs.example.com/path", "ftp://example.com", "https://user@example.com", "null"),
        *("https://ex ample.com", "https://bücher.example", "https://docs.example.com:port", "https://"),
        *(".*", "^https://.*$", "https://a.example.com\nhttps://b.example.com"),
    ],
)
def test_an_entry_that_is_no_origin_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_ALLOWED_ORIGINS"):
        AllowList([entry])


def test_an_entry_is_read_as_an_operator_writes_it() -> None:
    assert AllowList(["HTTPS://Docs.Example.com:443"]).allows_origin(DOCS, own_origin="")
    assert AllowList(["http://docs.example.com:80"]).allows_origin("http://docs.example.com", own_origin="")
    assert AllowList(["http://localhost:8765"]).allows_origin("http://localhost:8765", own_origin="")


@pytest.mark.parametrize("host", ["evil.com/v1/health?", "api.example.com/../v1/health#", "", "a b", "x:y:z", "[::1"])
def test_a_forged_host_changes_neither_the_route_nor_who_may_ask(host: str) -> None:
    service = Scripted(settings=Settings(allowed_origins=DOCS))
    client = Client(create_app(service))
    assert client.get("/v1/nope", headers={"host": host}).status_code == 404
    headers = {"host": host, "origin": f"https://{host}"}
    assert client.post("/v1/chat", {"query": "a"}, headers=headers).status_code == 403
    assert service.asked == []


# Names that a page was rebound to: to its browser they are the page's own origin


def named(host: str, hosts: tuple[str, ...] = (), **settings: str) -> list[int]:
    """Return the statuses of a page's attempts under this name: reading, reading a file, asking, a preflight."""
    service = Scripted(settings=Settings().override(**settings))
    client = Client(create_app(service, hosts=hosts))
    headers = {"host": host}
    # As a browser spells it.
    asking = {**headers, "origin": f"http://{host.lower().removesuffix(':80')}"}
    return [
        client.get("/v1/health", headers=headers).status_code,
        client.get("/widget/launcher.js", headers=headers).status_code,
        client.post("/v1/chat", {"query": "a"}, headers=asking).status_code,
        client.request("OPTIONS", "/v1/chat", headers={**asking, "access-control-request-method": "POST"}).status_code,
    ]


ANSWERED = [200, 200, 200, 204]
REFUSED = [403, 403, 403, 403]


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8765", "LOCALHOST:1", "localhost.", "localhost.:8765", "docs.localhost:8765"),
        *("127.0.0.1", "127.0.0.1:8765", "127.1.2.3:80", "[::1]", "[::1]:8765", "[0:0:0:0:0:0:0:1]:8765"),
    ],
)
def test_this_machine_is_answered_by_each_of_its_names(host: str) -> None:
    assert AllowList([]).allows_host(host)
    assert named(host) == ANSWERED


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "evil.example:8765",
            "EVIL.example.",
            "localhost.evil.example",
            "evil-localhost",
            "localhostx",
        ),
        *("127.0.0.1.evil.example:8765", "127.0.0.1.", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01"),
        *("192.168.1.5:8765", "10.0.0.1", "0.0.0.0", "169.254.169.254", "[::]", "[fe80::1]", "[::ffff:127.0.0.1]"),
        *("localhost@evil.example", "evil.example@localhost", "user:pass@localhost:8765", "localhost, evil.example"),
        *("", " ", ".", "..", ":", ":8765", "localhost..", "localhost:", "localhost:x", "localhost:123456", "::1"),
        *(
            "[::1",
            "::1]",
            "[127.0.0.1]",
            "[localhost]",
            "[::1]x",
            "[::1%25lo]",
            "local host",
            "localhost/",
            "xn--localhost",
        ),
        *(
            "localhost:8765:1",
            "localhost#",
            "localhost?x",
            "localhost\\",
            "\u212aocalhost",
            "l\u00f6calhost",
            "[]",
            "[::1].evil",
        ),
    ],
)
def test_no_other_name_is_answered(host: str) -> None:
    # A port may be empty, by the grammar of an address.
    assert AllowList([]).allows_host(host) is (host == "localhost:")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "192.168.1.5:8765", "localhost.evil.example"])
def test_a_name_that_was_rebound_reads_and_spends_nothing(host: str) -> None:
    service = Scripted()
    response = Client(create_app(service)).post(
        "/v1/chat", {"query": "a"}, headers={"host": host, "origin": f"http://{host}"}
    )
    assert (response.status_code, error_of(response)["code"], service.asked) == (403, "host_not_allowed", [])
    assert "access-control-allow-origin" not in response.headers
    assert host not in response.text
    assert named(host) == REFUSED


@pytest.mark.parametrize(
    ("host", "hosts", "base_url"),
    [
        ("docs.lan:8765", ("docs.lan",), ""),
        ("DOCS.lan.:80", ("Docs.LAN",), ""),
        ("192.168.1.5:8765", ("192.168.1.5",), ""),
        ("[fd00::5]:8765", ("fd00:0:0::5",), ""),
        ("0.0.0.0:8765", ("0.0.0.0",), ""),
        ("docs.example.com", (), "https://docs.example.com/guide/"),
        ("docs.example.com:8443", ("127.0.0.1", "https://docs.example.com:8443/v1/"), ""),
    ],
)
def test_what_it_listens_at_and_the_base_url_are_answered(host: str, hosts: tuple[str, ...], base_url: str) -> None:
    assert named(host, hosts, base_url=base_url) == ANSWERED
    assert named("evil.example", hosts, base_url=base_url) == REFUSED


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_at_all_addresses_only_the_one_that_was_reached_is_answered(everywhere: str) -> None:
    listens = AllowList([], [everywhere])
    assert listens.allows_host("192.168.1.5:8765", "192.168.1.5")
    assert listens.allows_host("192.168.1.5:8765", "::ffff:192.168.1.5")
    assert listens.allows_host("[fd00::5]:8765", "fd00::5")
    assert listens.allows_host("localhost", "192.168.1.5")
    assert not listens.allows_host("192.168.1.6:8765", "192.168.1.5")
    assert not listens.allows_host("evil.example", "192.168.1.5")
    assert not AllowList([], ["127.0.0.1"]).allows_host("192.168.1.5", "192.168.1.5")


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]])
def test_a_request_names_one_host(hosts: list[str]) -> None:
    sent = b"".join(f"Host: {host}\r\n".encode() for host in hosts)
    with serving(create_app(Scripted())) as address:
        url = httpx.URL(address)
        with socket.create_connection((url.host, url.port or 0), timeout=10) as connection:
            # Without any, HTTP/1.1 is malformed and HTTP/1.0 is not.
            connection.sendall(b"GET /v1/health HTTP/1.%d\r\n%b\r\n" % (bool(hosts), sent))
            assert connection.recv(4096).split()[1] == (b"400" if hosts else b"403")


def test_a_list_says_by_itself_who_may_ask() -> None:
    assert named("api.example.com", allowed_origins="http://api.example.com") == ANSWERED
