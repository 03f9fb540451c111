"""Fetches from addresses that others choose, against servers on loopback that attack."""

from __future__ import annotations

import gzip
import itertools
import socket
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from chapterverse.errors import ConfigurationError, FetchFailed
from chapterverse.ext.net.connections import tls_context
from chapterverse.ext.net.fetch import Fetcher, is_below, is_segment, private_hosts
from chapterverse_api.deadline import Deadline
from ext.net.test_tls import SecureServer, certificate  # noqa: F401 a fixture
from fakes.loopback import LONG, SOON, Answer, Fault, LoopbackServer, Request, leaving

MB = 1024 * 1024


class Site(LoopbackServer):
    """Answers each path with what `pages` holds for it."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, Answer] = {"/": Answer(200, b"hello", {"Content-Type": "text/plain", "ETag": '"1"'})}

    def answer(self, request: Request) -> Answer:
        return self.pages.get(request.path, Answer(404, b"nothing here"))

    @property
    def place(self) -> str:
        return urlsplit(self.url).netloc

    def moves(self, path: str, target: str, status: int = 302) -> None:
        self.pages[path] = Answer(status, b"moved", {"Location": target})


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


@pytest.fixture
def fetcher(site: Site) -> Fetcher:
    return Fetcher(allow_private=site.place)


def test_an_address_is_fetched(site: Site, fetcher: Fetcher) -> None:
    site.pages["/gr%C3%BC%C3%9Fe?q=%C3%BC&r=a%20b"] = Answer(200, b"hi")
    page = fetcher.get(f"{site.url}/#top")
    assert (page.status, page.body) == (200, b"hello")
    assert page.headers["etag"] == '"1"'
    assert site.history[0].headers["user-agent"].startswith("chapterverse/")
    assert fetcher.get(f"{site.url}/grüße?q=ü&r=a b").body == b"hi"
    assert (fetcher.get(f"{site.url}/gone").status, site.connections) == (404, 1)


def test_nothing_private_is_fetched_that_is_not_allowed(site: Site) -> None:
    port = urlsplit(site.url).port
    for allowed in ("", f"127.0.0.1:{port + 1 if port else 1}", "127.0.0.1:443", f"localhost:{port}"):
        with pytest.raises(FetchFailed, match="without encryption: use https"):
            Fetcher(allow_private=allowed).get(site.url)
    for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "0.0.0.0"):
        with pytest.raises(FetchFailed, match="private address"):
            Fetcher().get(f"https://{host}:{port}/")
    # Stated, since a bare system may know no localhost.
    with pytest.raises(FetchFailed, match=r"^localhost is at a private address"):
        Fetcher(resolve=lambda *_: ["127.0.0.1"]).get(f"https://localhost:{port}/")
    with pytest.raises(FetchFailed, match=r"^::1 is at a private address"):
        Fetcher().get("https://[::1]/")
    assert site.connections == 0


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://both.example/",
        "//10.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "https://user:secret@example.com/",
        "https://[::1",
        "https://\u00e9\u00e9.example\x00/",
    ],
)
def test_no_redirect_leads_where_nobody_may_go(site: Site, target: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"] if host == "both.example" else [host]

    site.moves("/", target.encode().decode("latin-1").replace("\x00", "%00"))
    with pytest.raises(FetchFailed) as caught:
        Fetcher(allow_private=site.place, resolve=resolve).get(site.url)
    assert "secret" not in str(caught.value)
    assert len(site.history) == 1


def test_a_name_is_resolved_once_and_the_checked_address_is_connected(site: Site) -> None:
    """A name that rebinds: public when it is checked, and loopback a moment later."""
    port = urlsplit(site.url).port
    answers = iter([["192.0.2.1"], ["127.0.0.1"], ["127.0.0.1"]])
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    # TEST-NET-1 is no public address either.
    fetcher = Fetcher(resolve=resolve, seconds=2)
    for _ in range(2):
        with pytest.raises(FetchFailed, match=r"rebinds\.example is at a private address"):
            fetcher.get(f"https://rebinds.example:{port}/")
    assert (asked, site.connections) == (["rebinds.example"] * 2, 0)
    # Nor by a name that the list doesn't hold, at a port that it holds.
    with pytest.raises(FetchFailed, match="private address"):
        Fetcher(allow_private=site.place, resolve=lambda host, port: ["127.0.0.1"]).get(f"https://x.example:{port}/")
    assert site.connections == 0


def test_an_allowed_name_may_be_private(site: Site) -> None:
    port = urlsplit(site.url).port
    fetcher = Fetcher(allow_private=f"intranet.example:{port}", resolve=lambda host, port: ["::1", "127.0.0.1"])
    assert fetcher.get(f"http://Intranet.example:{port}/").body == b"hello"
    assert site.history[0].headers["host"] == f"intranet.example:{port}"


def test_redirects_are_followed(site: Site, fetcher: Fetcher) -> None:
    for status in (301, 302, 303, 307, 308):
        site.moves(f"/{status}", "../", status)
        assert fetcher.get(f"{site.url}/{status}").body == b"hello"
    site.moves("/loop", "/loop")
    with pytest.raises(FetchFailed, match="redirects more than 5 times"):
        fetcher.get(f"{site.url}/loop")


def test_a_key_is_not_taken_to_another_origin(site: Site) -> None:
    with Site() as other:
        site.moves("/away", other.url)
        site.moves("/here", "/")
        fetcher = Fetcher(allow_private=f"{site.place}, {other.place}")
        fetcher.get(f"{site.url}/away", {"X-Key": "k"})
        fetcher.get(f"{site.url}/here", {"X-Key": "k"})
        assert [request.headers.get("x-key") for request in site.history] == ["k", "k", "k"]
        assert [request.headers.get("x-key") for request in other.history] == [None]


def test_no_other_server_is_asked_below_a_folder(site: Site) -> None:
    with Site() as other:
        site.moves("/away", other.url)
        fetcher = Fetcher(allow_private=f"{site.place},{other.place}", below="/")
        assert fetcher.get(site.url).status == 200
        with pytest.raises(FetchFailed, match="redirects to what is not below /"):
            fetcher.get(f"{site.url}/away")
        assert other.connections == 0


def test_headers_hold_no_line_breaks(site: Site, fetcher: Fetcher) -> None:
    for bad in ({"X": "a\r\nHost: b"}, {"X\n": "a"}):
        with pytest.raises(FetchFailed, match="no header has"):
            fetcher.get(site.url, bad)
    assert fetcher.get(f"{site.url}/a\r\nHost: b").status == 404
    assert len(site.history) == 1


def test_a_body_is_bounded(site: Site) -> None:
    fetcher = Fetcher(allow_private=site.place, max_bytes=MB)
    site.pages["/fits"] = Answer(200, bytes(MB))
    assert len(fetcher.get(f"{site.url}/fits").body) == MB
    site.pages["/large"] = Answer(200, bytes(MB + 1))
    site.pages["/endless"] = Answer(200, (b"x" * 65536 for _ in itertools.count()))
    site.pages["/bomb"] = Answer(200, gzip.compress(bytes(64 * MB)), {"Content-Encoding": "gzip"})
    site.pages["/twice"] = Answer(200, gzip.compress(bytes(MB)) * 2, {"Content-Encoding": "x-gzip"})
    for path in ("large", "endless", "bomb", "twice"):
        with pytest.raises(FetchFailed, match="sent more than 1,048,576 bytes"):
            fetcher.get(f"{site.url}/{path}")


def test_what_is_packed_is_unpacked(site: Site, fetcher: Fetcher) -> None:
    gzipped = gzip.compress(b"hello")
    site.pages["/good"] = Answer(200, gzipped, {"Content-Encoding": "gzip"})
    site.pages["/bad"] = Answer(200, b"\x1f\x8bno gzip", {"Content-Encoding": "gzip"})
    site.pages["/plain"] = Answer(200, b"no gzip", {"Content-Encoding": "gzip"})
    site.pages["/cut"] = Answer(200, gzipped[:-3], {"Content-Encoding": "gzip"})
    site.pages["/other"] = Answer(200, gzipped, {"Content-Encoding": "br"})
    assert fetcher.get(f"{site.url}/good").body == b"hello"
    assert fetcher.get(f"{site.url}/plain").body == b"no gzip"
    assert site.history[0].headers["accept-encoding"] == "gzip"
    for path in ("bad", "cut"):
        with pytest.raises(FetchFailed, match="damaged"):
            fetcher.get(f"{site.url}/{path}")
    with pytest.raises(FetchFailed, match="encoding that was not asked for"):
        fetcher.get(f"{site.url}/other")


def test_a_false_length_is_no_answer(site: Site, fetcher: Fetcher) -> None:
    for length in (100, 10**12):
        site.pages["/more"] = Answer(200, b"short", {"Content-Length": str(length)})
        site.play(Fault(close=True))
        with pytest.raises(FetchFailed, match=r"less than it announced|sent more than"):
            fetcher.get(f"{site.url}/more")
    site.pages["/less"] = Answer(200, b"long and longer", {"Content-Length": "4"})
    assert fetcher.get(f"{site.url}/less").body == b"long"
    assert fetcher.get(site.url).body == b"hello"
    site.play(Fault(cut=True))
    with pytest.raises(FetchFailed, match=r"broke off|less than"):
        fetcher.get(site.url)


@pytest.mark.parametrize("fault", [Fault(hang=LONG), Fault(drip=0.02)])
def test_a_fetch_is_bounded_in_time(site: Site, fetcher: Fetcher, fault: Fault) -> None:
    site.play(fault)
    started = time.monotonic()
    with pytest.raises(FetchFailed, match="did not answer in time"):
        fetcher.get(site.url, seconds=0.3)
    assert time.monotonic() - started < SOON


def test_nobody_waits_for_a_name() -> None:
    def resolve(host: str, port: int) -> list[str]:
        time.sleep(1)
        return ["127.0.0.1"]

    started = time.monotonic()
    with pytest.raises(FetchFailed, match="could not be reached"):
        Fetcher(resolve=resolve).get("https://slow.example", seconds=0.2)
    assert time.monotonic() - started < 0.9


def test_an_unknown_name_is_one_sentence() -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(FetchFailed, match=r"nowhere\.example could not be reached or broke off\."):
        Fetcher(resolve=resolve).get("https://nowhere.example/secret-path")


def test_a_fetch_ends_when_nobody_waits(site: Site, fetcher: Fetcher) -> None:
    site.play(Fault(hang=LONG))
    deadline = Deadline()
    with leaving(site, deadline.abort), pytest.raises(FetchFailed, match="Nobody waits"):
        fetcher.get(site.url, closing=deadline.closing)


def test_a_certificate_is_checked(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with SecureServer(certificate) as server:
        place = urlsplit(server.url).netloc
        with pytest.raises(FetchFailed, match="could not be reached"):
            Fetcher(allow_private=place).get(f"{server.url}/short")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        tls_context.cache_clear()
        try:
            assert Fetcher(allow_private=place).get(f"{server.url}/short").body == b"data: one\n\n"
            # The name in the certificate is that of the address, and not of the place that it resolves to.
            alias = f"other.example:{urlsplit(server.url).port}"
            with pytest.raises(FetchFailed, match="could not be reached"):
                Fetcher(allow_private=alias, resolve=lambda host, port: ["127.0.0.1"]).get(f"https://{alias}/short")
        finally:
            tls_context.cache_clear()


def test_the_setting_is_a_list_of_hosts_with_ports() -> None:
    assert private_hosts(" a:1, [::1]:8080,B.example:443,") == {("a", 1), ("::1", 8080), ("b.example", 443)}
    for bad in ("a", "a:x", "http://a:1", "a:1/path", "a:99999", "u@a:1", ":80"):
        with pytest.raises(ConfigurationError, match="CHAPTERVERSE_ALLOW_PRIVATE is"):
            private_hosts(bad)


def test_a_redirect_may_have_to_stay_below_a_folder(site: Site) -> None:
    fetcher = Fetcher(allow_private=site.place, below="/ä/b/")
    site.moves("/%C3%A4/b/1", "2?q=../../c")
    site.pages["/%C3%A4/b/2?q=../../c"] = Answer(200, b"inside")
    assert fetcher.get(f"{site.url}/ä/b/1").body == b"inside"
    for target in ("/c", "../c", "//127.0.0.2/%C3%A4/b/2", "https://127.0.0.1/%C3%A4/b/2", "/%C3%A4/b/..%2fc", "/"):
        site.moves("/%C3%A4/b/1", target)
        with pytest.raises(FetchFailed, match=r"redirects to what is not below /%C3%A4/b/"):
            fetcher.get(f"{site.url}/ä/b/1")


GOOD = [
    "A17", "a-b_c~d", "v1.2.3", ".NET 8", "größe", "gro\u0308ße", "注文", "заказ", "طلب", "naïve café",
    "urn:isbn:0451450523", "me@example.com", "a+b=c", "(x)", "it's", "50,5", "🯰🯱", "Ａ１７",
]  # fmt: skip

#: What separates segments or leads out of a folder, and what stands for it somewhere.
SEPARATORS = ["/", "\\", ";", "%", "?", "#", "..", "\x00", "\n", "\r", "\t", "\x7f", "\x85", "\u2028"]
WIDE = {
    "/": ["\uff0f", "\u2215", "\u2044", "\u29f8"],
    "\\": ["\uff3c", "\u2216", "\u29f5", "\ufe68"], ";": ["\uff1b", "\u037e"],
    "%": ["\uff05", "\ufe6a", "\u066a"], "?": ["\uff1f"], "#": ["\uff03", "\ufe5f"],
    "..": ["\uff0e\uff0e", "\u2025", "\u2024\u2024", "\ufe52\ufe52", ".\u200d.", ".\ufe0f.", ".\u0323.", "\u2026"],
}  # fmt: skip


def overlong(text: str) -> str:
    """Return UTF-8 in more bytes than needed, as characters of Latin-1."""
    return "".join(chr(0xC0 | ord(char) >> 6) + chr(0x80 | ord(char) & 0x3F) for char in text)


def encoded(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def spellings(text: str) -> set[str]:
    """Return a text, and what a server may take for it."""
    found = {text, overlong(text), encoded(overlong(text)), "%c0" + encoded(text), "%u002f", f"&#{ord(text[0])};"}
    found |= {encoded(text), encoded(text).upper(), encoded(encoded(text)), quote(quote(text, safe=""), safe="")}
    return found | {*WIDE.get(text, ())} | {encoded(wide) for wide in WIDE.get(text, ())}


@pytest.mark.parametrize("text", GOOD)
def test_names_are_segments(text: str) -> None:
    assert is_segment(text)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_no_spelling_of_a_separator_is_in_a_segment(separator: str) -> None:
    around = [("", ""), ("a", ""), ("", "b"), ("a", "b"), ("..", "admin")]
    texts = [
        f"{before}{spelling}{after}" for (before, after), spelling in itertools.product(around, spellings(separator))
    ]
    assert [text for text in texts if is_segment(text)] == []


@pytest.mark.parametrize(
    "text", ["", ".", "..", "...", " ", ". .", "a\u202eb", "\u200f\u200fab", "a\ud800b", "a\u200bb"]
)
def test_dots_alone_and_marks_of_direction_are_no_segment(text: str) -> None:
    assert not is_segment(text)


def test_no_form_of_a_character_separates() -> None:
    # Behind these planes are ideographs, tags and nothing.
    for char in filter(is_segment, map(chr, range(0x20000))):
        forms = [unicodedata.normalize(form, char) for form in ("NFC", "NFD", "NFKC", "NFKD")]
        assert not {*"/\\;%?#"} & {*"".join((*forms, char.casefold(), char.upper()))}, hex(ord(char))


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("/v1/orders/A17", True), ("/v1/orders/", True), ("/v1/orders", True), ("/v1/orders/A17/items/", True),
        ("/v1/orders/A%2017", True), ("/v1/orders/gr%C3%B6%C3%9Fe", True), ("/v1/orders//A17", True),
        ("/v1", False), ("/v1/ordersX", False), ("/v1/admin", False), ("/", False), ("", False),
        ("/V1/orders/a", False),
        ("/v1/orders/../admin", False), ("/v1/orders/%2e%2e/admin", False), ("/v1/orders/..%2Fadmin", False),
        ("/v1/orders/%252e%252e%252fadmin", False), ("/v1/orders/..;/admin", False), ("/v1/orders/..\\admin", False),
        ("/v1/orders/%5C..%5Cadmin", False), ("/v1/orders/%c0%ae%c0%ae/admin", False), ("/v1/orders/a%00", False),
        ("/v1/orders/.", False), ("/v1/orders/%ef%bc%8e%ef%bc%8e/admin", False),
    ],
)  # fmt: skip
def test_what_is_below_a_folder(path: str, below: bool) -> None:
    assert is_below(path, "/v1/orders/") is below
    assert is_below(path, "/")
