"""Secrets in a site's files, each different, so that each must be found at its own place."""

from __future__ import annotations

import html
import json
import random
import string
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from chapterverse.cli import main
from chapterverse.ext.site_check.check import check
from chapterverse.ext.site_check.secret_scan import SecretScanner
from chapterverse.ext.transfer import maintenance
from chapterverse.indexing import sync
from chapterverse.indexing.target import Target
from chapterverse.model import Scope
from chapterverse.readers.built_site import read_site
from chapterverse.settings import Settings
from chapterverse.site.delivery import widget_files
from chapterverse.site.inject import inject
from chapterverse.store import open_store

BASE = "https://tea.example/docs/"
LETTERS = string.ascii_letters + string.digits


def made(number: int) -> str:
    """Return a secret of 24 characters, the same in every run; some of them have to be quoted in most formats."""
    choice = random.Random(number).choices(LETTERS, k=21)
    return f"{''.join(choice[:9])}/{''.join(choice[9:14])}+{''.join(choice[14:19])}&{''.join(choice[19:])}"


def page(body: str, head: str = "") -> bytes:
    return (
        f'<!doctype html><html lang="en"><head><title>T</title>{head}</head>'
        f"<body><main><article><h1>T</h1>{body}</article></main></body></html>"
    ).encode()


# Each place with what is written there, of the secret that it is to hold.
PLACES: dict[str, Callable[[str], bytes]] = {
    "index.html": lambda s: page(f"<p>{html.escape(s)}</p>"),
    "comment.html": lambda s: page(f"<!-- {s} -->"),
    "meta.html": lambda s: page("", f'<meta name="x" content="{html.escape(s)}">'),
    "inline.html": lambda s: page(f"<script>window.config = {json.dumps({'key': s})}</script>"),
    "query.html": lambda s: page(f'<a href="https://api.example/?key={quote(s, safe="")}">x</a>'),
    "data-uri.html": lambda s: page(f'<img src="data:image/svg+xml,{quote(f"<svg><desc>{s}</desc></svg>", safe="")}">'),
    "assets/app.js": lambda s: f'const k = "{s}";'.encode(),
    "assets/app.js.map": lambda s: json.dumps({"version": 3, "sourcesContent": [f'"{s}"']}).encode(),
    "assets/style.css": lambda s: f"/* {s} */ a {{ color: red }}".encode(),
    "assets/chapterverse/0.1.0/config.js": lambda s: f'export default {{"endpoint": "/?k={s}"}};'.encode(),
    "assets/code.wasm": lambda s: b"\0asm\1\0\0\0" + bytes(40) + s.encode() + bytes(40),
    "search/search_index.json": lambda s: json.dumps({"docs": [{"text": f"<code>{s}</code>"}]}).encode(),
    "sitemap.xml": lambda s: f"<urlset><!-- {html.escape(s)} --></urlset>".encode(),
    "feed_rss_created.xml": lambda s: f"<rss><item><![CDATA[{s}]]></item></rss>".encode(),
    "robots.txt": lambda s: f"User-agent: *\nDisallow: /{quote(s, safe='')}\n".encode(),
    ".well-known/security.txt": lambda s: f"Contact: https://{s}".encode(),
    ".env": lambda s: f"KEY='{s}'\n".encode(),
    "img/photo.jpg": lambda s: b"\xff\xd8\xff\xfe" + s.encode() + b"\xff\xd9",
    "index/export.jsonl": lambda s: b"",
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("planted") / "site"
    for number, (path, write) in enumerate(PLACES.items()):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(write(made(number)))
    plant_export(site)
    return site


def plant_export(site: Path) -> None:
    """Publish the export of an index by mistake."""
    work = site.parent / "work"
    work.mkdir()
    secret = made(list(PLACES).index("index/export.jsonl"))
    (work / "index.html").write_bytes(page(f"<p>{html.escape(secret)} {'is the key of the kettle. ' * 40}</p>"))
    settings = Settings(store=f"edge:{work}/index")
    sync.index(read_site(work, BASE).sources, Target.open(settings, Scope("tea"), BASE))
    exported = maintenance.export(open_store(settings).snapshot(Scope("tea")), canonical=False)
    (site / "index/export.jsonl").write_text("".join(exported), "utf-8")


ENVIRON = {f"PLANTED_{number:02}_TOKEN": made(number) for number in range(len(PLACES))}


def test_a_secret_is_found_in_every_kind_of_file(planted: Path) -> None:
    findings = check(planted, Settings(base_url=BASE), with_index=False, environ=ENVIRON)
    expected = {path: f"the value of PLANTED_{number:02}_TOKEN" for number, path in enumerate(PLACES)}
    found = {f.file: f.says for f in findings.of("secret")}
    assert set(found) == set(expected)
    assert findings.counts["secret"] == len(PLACES)
    for path, what in expected.items():
        assert what in found[path]
        assert path in found[path]
    assert not shows(json.dumps(findings.to_json()) + "".join(findings.lines()))


def test_the_command_ends_with_3_and_prints_none_of_them(
    planted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    for more, start in ((), f"Error: Secrets in files: {len(PLACES)} (secret)."), (("--json",), "{"):
        with pytest.raises(SystemExit) as end:
            main(["check", str(planted), "--no-index", "--base-url", BASE, *more])
        said = capsys.readouterr()
        assert end.value.code == 3
        assert said.out.startswith(start)
        assert not shows(said.out + said.err)


def shows(text: str) -> list[str]:
    """Return the names of the secrets that a text gives away."""
    return [name for name, value in ENVIRON.items() for said in (value, json.dumps(value)[1:-1]) if said in text]


def test_a_site_without_them_has_no_finding(planted: Path) -> None:
    other = {f"PLANTED_{number:02}_TOKEN": made(number + 1000) for number in range(len(PLACES))}
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
    (folder / "a.html").write_bytes(page(f'<a href="#{secret}">x</a>'))
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


def test_the_line_of_a_secret_is_told(folder: Path) -> None:
    (folder / "a.txt").write_text("x\n" * 50 + made(6) + "\ny" * 50)
    (says,) = SecretScanner({"MY_TOKEN": made(6)}).scan(folder, "a.txt")
    assert says == "a.txt line 51 holds the value of MY_TOKEN."


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
        lambda text: b"\0" + text.encode() + b"\0",
    ],
    ids=["text", "binary"],
)
def test_keys_of_services_are_known_wherever_they_are(
    folder: Path, text: str, what: str, written: Callable[[str], bytes]
) -> None:
    (folder / "a").write_bytes(written(f" {text} "))
    assert [says.partition(" holds ")[2] for says in SecretScanner({}).scan(folder, "a")] == [f"{what}."]
    assert R not in SecretScanner({}).scrub(f"x {text} x")


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
    assert list(SecretScanner({}).scan(folder, "a")) == []
