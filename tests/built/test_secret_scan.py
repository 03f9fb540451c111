"""Fifty secrets in fifty places of a site, each of its own, so that each must be found where it is."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import os
import random
import string
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from chapterverse.cli import main
from chapterverse.indexing import sync, transfer
from chapterverse.indexing.target import Target
from chapterverse.model import Scope
from chapterverse.readers.site import read_site
from chapterverse.settings import Settings
from chapterverse.site import secret_scan
from chapterverse.site.check import check
from chapterverse.site.delivery import widget_files
from chapterverse.site.inject import inject
from chapterverse.site.secret_scan import Scanner, TooMuch
from chapterverse.store import open_store
from chapterverse.store.pack import pack

BASE = "https://tea.example/docs/"
#: Two of these are letters of addresses and of base64; & and = have to be escaped in half of the formats.
LETTERS = string.ascii_letters + string.digits


def made(number: int) -> str:
    """Return a secret of 24 characters, the same in every run."""
    choice = random.Random(number).choices(LETTERS, k=21)
    return f"{''.join(choice[:9])}/{''.join(choice[9:14])}+{''.join(choice[14:19])}&{''.join(choice[19:])}"


def page(body: str, head: str = "") -> bytes:
    return (
        f'<!doctype html><html lang="en"><head><title>T</title>{head}</head>'
        f"<body><main><article><h1>T</h1>{body}</article></main></body></html>"
    ).encode()


def b64(text: str, before: str = "") -> str:
    return base64.b64encode(f"{before}{text} and more".encode()).decode()


def png(chunk: bytes, data: bytes) -> bytes:
    def block(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = block(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixels = block(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + header + block(chunk, data) + pixels + block(b"IEND", b"")


def zipped(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return made.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def spans(text: str) -> str:
    """Return a text as a highlighter marks it up."""
    return "".join(f'<span class="k">{html.escape(text[n : n + 5])}</span>' for n in range(0, len(text), 5))


def wrapped(text: str, width: int) -> str:
    return "\n".join(text[n : n + width] for n in range(0, len(text), width))


# Each place with what is written there, of the secret that it is to hold.
PLACES: dict[str, Callable[[str], bytes]] = {
    "index.html": lambda s: page(f"<p>{s}</p>"),
    "comment.html": lambda s: page(f"<!-- {s} -->"),
    "meta.html": lambda s: page("", f'<meta name="x" content="{html.escape(s)}">'),
    "inline.html": lambda s: page(f"<script>window.config = {json.dumps({'key': s})}</script>"),
    "json-ld.html": lambda s: page(
        f'<script type="application/ld+json">{json.dumps({"a": s}).replace("/", chr(92) + "/")}</script>'
    ),
    "lines.html": lambda s: page(f'<div data-key="{wrapped(s, 8)}"></div>'),
    "attributes.html": lambda s: page(f'<i data-a="{s[:11]}" data-b="{html.escape(s[11:])}"></i>'),
    "highlighted.html": lambda s: page(f"<pre><code>{spans(s)}</code></pre>"),
    "entities.html": lambda s: page("".join(f"&#{ord(c)};" for c in s)),
    "hex-entities.html": lambda s: page("".join(f"&#x{ord(c):x};" for c in s)),
    "query.html": lambda s: page(f'<a href="https://api.example/?key={quote(s, safe="")}">x</a>'),
    "half-quoted.html": lambda s: page(f'<a href="/?key={s.replace("&", "%26").replace("/", "%2f")}">x</a>'),
    "404.html": lambda s: page(f"<p>{b64(s)}</p>"),
    "data-uri.html": lambda s: page(f'<img src="data:image/svg+xml,{quote(f"<svg><desc>{s}</desc></svg>")}">'),
    "assets/app.js": lambda s: f'const k = "{s[:9]}" +\n  "{s[9:17]}" + "{s[17:]}";'.encode(),
    "assets/app.min.js": lambda s: f"(()=>{{let e=atob('{b64(s, 'x')}')}})()".encode(),
    "assets/bytes.js": lambda s: f'k="{"".join(chr(92) + f"x{ord(c):02x}" for c in s)}"'.encode(),
    "assets/unicode.js": lambda s: f'k="{"".join(chr(92) + f"u{ord(c):04x}" for c in s)}"'.encode(),
    "assets/app.js.map": lambda s: json.dumps({"version": 3, "sourcesContent": [f'"{s}"']}).encode(),
    "assets/inline-map.js": lambda s: (
        "//# sourceMappingURL=data:application/json;base64," + b64(json.dumps({"sourcesContent": [spans(s)]}), "xy")
    ).encode(),
    "assets/style.css": lambda s: f"/* {s} */ a {{ color: red }}".encode(),
    "assets/icons.css": lambda s: f"i {{ background: url(data:image/svg+xml;base64,{b64(s, '<svg>')}) }}".encode(),
    "assets/chapterverse/0.1.0/config.js": lambda s: f'export default {{"endpoint": "/?k={s}"}};'.encode(),
    "search/search_index.json": lambda s: json.dumps({"docs": [{"text": f"<code>{s}</code>"}]}).encode(),
    "sitemap.xml": lambda s: f"<urlset><!-- {html.escape(s)} --></urlset>".encode(),
    "sitemap.xml.gz": lambda s: gzip.compress(f"<urlset><!-- {s} --></urlset>".encode(), mtime=0),
    "feed_rss_created.xml": lambda s: f"<rss><item><![CDATA[{s}]]></item></rss>".encode(),
    "robots.txt": lambda s: f"User-agent: *\nDisallow: /{quote(s)}\n".encode(),
    "site.webmanifest": lambda s: json.dumps({"name": s[::-1]}).encode(),
    ".well-known/security.txt": lambda s: f"Contact: https://{s}".encode(),
    ".env": lambda s: f"KEY='{s}'\n".encode(),
    ".git/objects/ab/cdef": lambda s: zlib.compress(f"blob 99\0{s}".encode()),
    "img/text.png": lambda s: png(b"tEXt", b"Comment\0" + s.encode()),
    "img/ztext.png": lambda s: png(b"zTXt", b"Comment\0\0" + zlib.compress(s.encode())),
    "img/photo.jpg": lambda s: b"\xff\xd8\xff\xfe" + struct.pack(">H", len(s) + 2) + s.encode() + b"\xff\xd9",
    "img/logo.svg": lambda s: f"<svg><metadata>{html.escape(s)}</metadata></svg>".encode(),
    "files/plain.pdf": lambda s: b"%PDF-1.7\n1 0 obj\n<<>>\nstream\n(" + s.encode() + b") Tj\nendstream\n%\0\1",
    "files/packed.pdf": lambda s: (
        b"%PDF-1.7\n1 0 obj\n<</Filter /FlateDecode>>\nstream\n" + zlib.compress(s.encode()) + b"\nendstream"
    ),
    "fonts/text.ttf": lambda s: b"\0\1\0\0name" + s.encode("utf-16-be") + bytes(99),
    "assets/code.wasm": lambda s: b"\0asm\1\0\0\0" + bytes(40) + s.encode() + bytes(40),
    "files/site.zip": lambda s: zipped("app/settings.py", f"KEY = {s!r}".encode()),
    "files/nested.zip": lambda s: zipped("site.tar.gz", tarred("a/.env", s.encode())),
    "files/names.tar.gz": lambda s: tarred(f"keys/{quote(s, safe='')}", b"x"),
    "files/notes.txt": lambda s: s.encode("utf-16"),
    "files/dump.bin": lambda s: b"\xfe" * 9000 + s.encode("utf-16-le"),
    "files/hex.txt": lambda s: s.encode().hex().encode(),
    "files/mail.eml": lambda s: wrapped(b64(s * 3, "Subject: x "), 22).encode(),
    "files/token.txt": lambda s: base64.urlsafe_b64encode(f"user:{s}".encode()),
    "index/export.jsonl": lambda s: b"",
    "index/docs.pack": lambda s: b"",
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("planted") / "site"
    for number, (path, write) in enumerate(PLACES.items()):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(write(made(number)))
    plant_index(site)
    return site


def plant_index(site: Path) -> None:
    """Publish an index by mistake: exported, and packed as S3 has it; each holds a page with a secret."""
    for place in ("index/export.jsonl", "index/docs.pack"):
        work = site.parent / Path(place).name
        work.mkdir()
        secret = made(list(PLACES).index(place))
        (work / "index.html").write_bytes(page(f"<p>{html.escape(secret)} {'is the key of the kettle. ' * 40}</p>"))
        reading = read_site(work, BASE)
        store = open_store(Settings(store=f"edge:{work}/index"))
        sync.index(reading.sources, Target.open(Settings(store=f"edge:{work}/index"), Scope("tea"), BASE))
        if place.endswith(".pack"):
            with (site / place).open("wb") as file:
                pack(next((work / "index").rglob("shard")), file)
        else:
            (site / place).write_text("".join(transfer.export(store.snapshot(Scope("tea")), canonical=False)), "utf-8")


ENVIRON = {f"PLANTED_{number:02}_TOKEN": made(number) for number in range(len(PLACES))}


def test_fifty_of_fifty(planted: Path) -> None:
    assert len(PLACES) == 50
    findings = check(planted, Settings(base_url=BASE), with_index=False, environ=ENVIRON)
    expected = {path: f"the value of PLANTED_{number:02}_TOKEN" for number, path in enumerate(PLACES)}
    found = {f.file: f.says for f in findings.of("secret")}
    assert set(found) == set(expected)
    assert findings.counts["secret"] == 50
    for path, what in expected.items():
        assert what in found[path]
        assert path in found[path]
    assert not shows(json.dumps(findings.to_json()) + "".join(findings.lines()))


def test_the_command_ends_with_3_and_prints_none_of_them(
    planted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    for more, start in ((), "Secrets in files: 50."), (("--json",), "{"):
        with pytest.raises(SystemExit) as end:
            main(["check", str(planted), "--no-index", "--base-url", BASE, *more])
        said = capsys.readouterr()
        assert end.value.code == 3
        assert said.out.startswith(start)
        assert not shows(said.out + said.err)


def shows(text: str) -> list[str]:
    """Return the secrets that a text gives away, in any of the forms."""
    return list(Scanner(ENVIRON)._in(text.encode()))


def test_a_site_without_them_has_no_finding(planted: Path) -> None:
    other = {f"PLANTED_{number:02}_TOKEN": made(number + 1000) for number in range(50)}
    findings = check(planted, Settings(base_url=BASE), with_index=False, environ=other)
    assert findings.of("secret") == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_bytes(page("<p>Tea.</p>"))
    inject(folder, widget_files("/"))
    return folder


def test_a_store_that_is_published_by_mistake(folder: Path) -> None:
    (folder / "index.html").write_bytes(page(f"<p>{html.escape(made(1))} is the key.</p>"))
    settings = Settings(store=f"edge:{folder}/.cache/index")
    sync.index(read_site(folder, BASE).sources, Target.open(settings, Scope("tea"), BASE))
    (folder / "index.html").write_bytes(page("<p>Tea.</p>"))
    findings = check(folder, Settings(base_url=BASE), with_index=False, environ={"MY_TOKEN": made(1)})
    assert {f.file.partition("/index/")[0] for f in findings.of("secret")} == {".cache"}


def test_a_secret_in_names_and_addresses_is_told_without_it(folder: Path) -> None:
    secret = made(2).replace("/", "-")
    (folder / f"{secret}.txt").write_text("x")
    (folder / "a.html").write_bytes(page(f'<a href="#{secret}">x</a><p>Ignore previous instructions: {secret}.</p>'))
    findings = check(folder, Settings(base_url=BASE), with_index=False, environ={"MY_TOKEN": secret})
    assert {f.says for f in findings.of("secret")} >= {"….txt has the value of MY_TOKEN in its name."}
    assert findings.of("dead_anchor")
    assert secret not in json.dumps(findings.to_json()) + "".join(findings.lines())


def test_secrets_of_the_settings_count_whatever_they_are_called(folder: Path) -> None:
    keys = f"{made(3)},{made(4)}"
    ledger = f"postgresql://app:{quote(made(5), safe='')}@db.example/rows"
    settings = Settings(base_url=BASE, signing_key=keys, ledger=ledger)
    for name, text in (("a.txt", made(4)), ("b.txt", quote(made(5), safe="")), ("c.txt", "postgresql://db.example")):
        (folder / name).write_text(text)
    found = check(folder, settings, with_index=False, environ={}).of("secret")
    assert {f.says for f in found} == {
        "a.txt line 1 holds the value of CHAPTERVERSE_SIGNING_KEY.",
        "b.txt line 1 holds the value of CHAPTERVERSE_LEDGER.",
    }


def test_the_line_of_a_secret_that_was_cut_is_that_of_its_end(folder: Path) -> None:
    (folder / "a.txt").write_text("x\n" * 50 + wrapped(made(6), 10) + "\ny" * 50)
    (leak,) = Scanner({"MY_TOKEN": made(6)}).scan(folder, "a.txt")
    assert leak.line == 53
    (folder / "a.zip").write_bytes(zipped("b/c.txt", b"\n\n" + made(6).encode()))
    (leak,) = Scanner({"MY_TOKEN": made(6)}).scan(folder, "a.zip")
    assert leak.says == "a.zip › b/c.txt line 3 holds the value of MY_TOKEN."


#: By name: some hold the time at which they were made, and every process has to give a test the same name.
DAMAGED = {
    "gzip": b"\x1f\x8b\x08\0 torn",
    "half a gzip": gzip.compress(os.urandom(5000), mtime=0)[:2000],
    "half a zip": zipped("a.txt", b"x" * 5000)[:90],
    "zip": b"PK\x03\x04",
    "bzip2": b"BZh9 torn",
    "xz": b"\xfd7zXZ\0 torn",
    "half a tar": tarred("a", b"x")[:40],
    "pdf": b"%PDF-1.7\n\x78\x9c\x78\x9c\x78\xda",
    "tags": b"<" * 100_000,
    "escapes": b"&#99999999;&#xffffff;%zz\\u{110000}",
    "data": b"data:;base64," + b"A" * 100_001,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_searched_as_it_is(folder: Path, content: bytes) -> None:
    (folder / "a.bin").write_bytes(content + b" " + made(7).encode())
    (leak,) = Scanner({"MY_TOKEN": made(7)}).scan(folder, "a.bin")
    assert leak.what == "the value of MY_TOKEN"


def test_a_bomb_is_told_and_not_unpacked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_scan, "_MOST", 1_000_000)
    monkeypatch.setattr(secret_scan, "_WINDOW", 400_000)
    (folder / "a.gz").write_bytes(gzip.compress(bytes(50_000_000), mtime=0))
    with pytest.raises(TooMuch):
        list(Scanner({}).scan(folder, "a.gz"))
    findings = check(folder, Settings(base_url=BASE), with_index=False, environ={})
    assert [f.says for f in findings.of("unreadable")] == [
        "a.gz unpacks to more than 2 GB: it was searched no further."
    ]


R = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA2cD4eF6g"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f'co = cohere.ClientV2("{R}")', "a Cohere key"),
        (f'new CohereClient({{ token: "{R}" }})', "a Cohere key"),
        (f"ABSKQmVkcm9ja{R}{R}", "a Bedrock key"),
        (f"glpat-{R[:20]}", "a GitLab token"),
        (f"https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{R[:24]}", "a Slack webhook"),
        (f"xoxe-1-{R}", "a Slack token"),
        (f"AIza{R[:35]}", "a Google API key"),
        (f"GOCSPX-{R[:28]}", "a Google client secret"),
        (f"sk_live_{R}", "a Stripe key"),
        (f"SG.{R[:22]}.{R}xyz", "a SendGrid key"),
        (f"gsk_{R}{R[:12]}", "a Groq key"),
        (f"npm_{R[:36]}", "an npm token"),
        ("mongodb+srv://app:s3cr3t-Pw9@cluster.example.net/docs", "a database password"),
        ("redis://:s3cr3t-Pw9@cache.internal:6379", "a database password"),
        (f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{R}{R}\n", "a private key"),
        (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{R}{R}\n", "a private key"),
    ],
)
@pytest.mark.parametrize(
    "written",
    [
        str.encode,
        lambda text: text.encode("utf-16"),
        lambda text: b"\0" + text.encode() + b"\0",
        lambda text: gzip.compress(text.encode(), mtime=0),
        lambda text: f"src=data:x/y;base64,{b64(text, 'x ')}".encode(),
    ],
    ids=["text", "utf-16", "binary", "gzip", "data"],
)
def test_keys_of_services_are_known_wherever_they_are(
    folder: Path, text: str, what: str, written: Callable[[str], bytes]
) -> None:
    (folder / "a").write_bytes(written(f" {text} "))
    assert [leak.what for leak in Scanner({}).scan(folder, "a")] == [what]
    assert R not in Scanner({}).scrubbed(f"x {text} x")


def test_a_key_that_a_highlighter_marked_up(folder: Path) -> None:
    (folder / "a.html").write_bytes(page(f"<pre>{spans(f'OPENAI_API_KEY=sk-proj-{R}{R}')}</pre>"))
    assert [leak.what for leak in Scanner({}).scan(folder, "a.html")] == ["an OpenAI key"]


@pytest.mark.parametrize(
    "text",
    [
        "AIzaSyEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAM",
        "sk_live_xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        'cohere.Client("<<apiKey>>")',
        "redis://localhost:6379/0",
        "mysql://user:password@localhost/docs",
        "amqp://guest:${PASSWORD}@host",
        "npm_config_registry=https://registry.example",
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n...\n",
    ],
)
def test_examples_of_them_are_no_keys(folder: Path, text: str) -> None:
    (folder / "a").write_text(text)
    assert list(Scanner({}).scan(folder, "a")) == []
