"""`check` on built sites: each planted fault is found, and nothing else."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest

from chapterverse.errors import ConfigurationError, InputError
from chapterverse.ext.knowledge.folder import persona_source
from chapterverse.ext.site_check.check import check
from chapterverse.ext.site_check.findings import FINDING_KINDS, RANKS, Findings, Way
from chapterverse.indexing import sync
from chapterverse.indexing.target import Target
from chapterverse.model import Scope
from chapterverse.readers.built_site import read_site
from chapterverse.settings import Settings
from chapterverse.site.delivery import widget_files
from chapterverse.site.inject import inject

SITES = Path(__file__).parents[2] / "sites"
BASE = "https://tea.example/docs/"
ZENSICAL = (
    '<!doctype html><html lang="en"><head><meta name="generator" content="zensical-0.0.73"><title>T</title>'
    f'<link rel="canonical" href="{BASE}"></head><body><main><article class="md-content__inner">'
    '<h1 id="t">T</h1><p>x</p></article></main></body></html>'
)


def write(site: Path, path: str, body: str = "<p>Tea.</p>", head: str = "") -> Path:
    url = BASE + path.removesuffix("index.html")
    file = site / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'<!doctype html><html lang="en"><head><title>T</title><link rel="canonical" href="{url}">{head}</head>'
        f'<body><main><article><h1 id="top-1">T {path}</h1>{body}</article></main></body></html>',
        encoding="utf-8",
    )
    return file


@pytest.fixture
def unindexed(tmp_path: Path) -> Path:
    """A site with nothing wrong but that it has no index."""
    site = tmp_path / "site"
    write(site, "index.html", '<p>Tea for <a href="brew/#green">all</a>.</p>')
    write(
        site, "brew/index.html", '<h2 id="green">Green</h2><p>Eighty degrees.</p><h2 id="black">Black</h2><p>Hot.</p>'
    )
    inject(site, widget_files("/"))
    return site


@pytest.fixture
def site(unindexed: Path) -> Path:
    """A site with nothing wrong: widget, address, index."""
    index(unindexed)
    return unindexed


def settings(site: Path, **more: str) -> Settings:
    return Settings(store=f"edge:{site.parent / 'index'}").override(**more)


def index(site: Path) -> None:
    reading = read_site(site)
    sync.index(reading.sources, Target.open(settings(site), Scope("tea"), reading.base_url))


def found(site: Path, environ: Mapping[str, str] = {}, **more: Any) -> Findings:
    return check(site, settings(site), environ=environ, **more)


def says(findings: Findings) -> dict[str, list[str]]:
    return {kind: [f.says for f in findings.of(kind)] for kind in findings.counts}


def test_a_good_site_has_no_finding_and_nothing_is_written(site: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in site.rglob("*")}
    assert says(found(site)) == {}
    assert {p: p.stat().st_mtime_ns for p in site.rglob("*")} == before
    assert found(site).pages == 2


@pytest.mark.parametrize("generator", ["mkdocs-material", "docusaurus", "vitepress", "sphinx"])
def test_captured_sites_lack_the_widget_and_nothing_else(tmp_path: Path, generator: str) -> None:
    site = tmp_path / "site"
    shutil.copytree(SITES / generator, site)
    pages = len(list(site.rglob("*.html")))
    # One was captured without its first page, and one without the sources beside its pages.
    lost = {"docusaurus": {"dead_link": 1}, "sphinx": {"dead_link": 2}}.get(generator, {})
    assert found(site, with_index=False).counts == {"no_widget": pages, **lost}
    inject(site, widget_files("https://api.example.com"))
    assert found(site, with_index=False).counts == lost


def test_listings_are_named_and_are_no_fault(site: Path) -> None:
    write(site, "tags/index.html", '<ul><li><a href="../brew/">Brew</a></li></ul>')
    inject(site, widget_files("/"))
    seen = found(site)
    assert (seen.counts, seen.listings) == ({}, {"tags/index.html": "tag listing"})
    assert seen.to_json()["listings"] == {"tags/index.html": "tag listing"}
    assert "Left out: tags/index.html (tag listing)" in list(seen.lines())
    seen = found(site, include=["tags/"])
    assert (dict(seen.counts), seen.listings) == ({"unindexed": 1}, {})


def test_an_unknown_content_type(site: Path) -> None:
    write(site, "a/index.html", head='<meta name="chapterverse:content_type" content="essay">')
    (finding,) = found(site, with_index=False).of("content_type")
    assert finding.file == "a/index.html"
    assert finding.says.startswith("a/index.html: content_type 'essay' is unknown")


def test_a_zensical_site_is_told_by_name_with_the_cure(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text(ZENSICAL)
    told = says(found(site, with_index=False))
    assert told["no_widget"] == ["index.html has no widget."]
    (sentence,) = told["ignored_plugin"]
    assert "Zensical's, which ignores plugins" in sentence
    assert f"`chapterverse inject {site} --endpoint URL`" in sentence
    inject(site, widget_files("/"))
    assert found(site, with_index=False).counts == {}


def test_a_launcher_of_an_api_is_a_widget_and_a_plain_script_is_none(tmp_path: Path) -> None:
    site = tmp_path / "site"
    tag = '<script {} src="https://api.example/widget/launcher.js"></script>'
    write(site, "a.html", head=tag.format("type=module"))
    write(site, "b.html", head=tag.format(""))
    assert says(found(site, with_index=False)) == {
        "broken_widget": [
            (
                "b.html loads https://api.example/widget/launcher.js as a plain script, which browsers refuse: "
                'add type="module".'
            )
        ]
    }


def test_two_widgets_and_one_whose_files_are_missing(site: Path) -> None:
    launcher = '<script type="module" src="assets/chapterverse/0.0.1/launcher.js"></script>'
    page = site / "index.html"
    page.write_text(page.read_text().replace("</head>", f"{launcher}</head>"))
    assert says(found(site)) == {
        "two_widgets": ["index.html loads the widget 2 times."],
        "broken_widget": ["index.html loads assets/chapterverse/0.0.1/launcher.js, which the site doesn't have."],
    }


def test_redirects_and_pieces_need_no_widget(site: Path) -> None:
    (site / "old.html").write_text('<html><head><meta http-equiv="refresh" content="0; url=brew/"></head></html>')
    (site / "google1.html").write_text("google-site-verification: google1.html")
    assert "no_widget" not in found(site).counts


@pytest.mark.parametrize(
    ("href", "dead"),
    [
        ("brew/#green", False),
        ("/docs/brew/#green", False),
        (f"{BASE}brew/#green", False),
        ("brew/index.html#green", False),
        ("brew/?q=1#green", False),
        ("brew/#%67reen", False),
        ("brew/#svg-part", False),
        ("brew/#named", False),
        ("brew/#", False),
        ("brew/#:~:text=tea", False),
        ("#top", False),
        ("#/route", False),
        ("/other.pdf#page=2", False),
        ("https://else.example/#x", False),
        ("brew/#gren", True),
        ("/docs/brew/#gren", True),
        (f"{BASE}brew/#gren", True),
        ("brew/#comment", True),
        ("brew#gren", True),
        ("#gone", True),
    ],
)
def test_links_to_anchors(tmp_path: Path, href: str, dead: bool) -> None:
    site = tmp_path / "site"
    write(site, "index.html", f'<p><a href="{href}">x</a></p>')
    drawing = '<svg><g id="svg-part"></g></svg><a name="named"></a><!-- <p id="comment"> -->'
    write(site, "brew/index.html", f'<h2 id="green">Green</h2>{drawing}')
    inject(site, widget_files("/"))
    findings = found(site, with_index=False)
    assert set(findings.counts) == ({"dead_anchor"} if dead else set())
    assert all(f.file == "index.html" and href in f.says for f in findings.of("dead_anchor"))


def test_links_of_many_pages_to_one_dead_anchor_are_told_once(unindexed: Path) -> None:
    for n in range(12):
        write(unindexed, f"p{n:02}.html", '<p><a href="brew/#gone">x</a></p>')
    inject(unindexed, widget_files("/"))
    assert says(found(unindexed, with_index=False))["dead_anchor"] == [
        "p00.html and 11 more links to brew/#gone, and brew/index.html has no such id."
    ]


def test_what_the_index_cites_must_be_there(site: Path) -> None:
    page = site / "brew/index.html"
    page.write_text(page.read_text().replace('id="green"', 'id="verde"'))
    told = says(found(site))
    assert told["dead_citation"] == ["The index cites brew/index.html#green, and the page has no such id."]
    assert told["stale"] == ["brew/index.html changed since it was indexed."]
    assert told["dead_anchor"] == ["index.html links to brew/#green, and brew/index.html has no such id."]


def test_new_and_removed_pages_are_told(site: Path) -> None:
    (site / "brew/index.html").rename(site / "kettle.html")
    write(site, "pour.html")
    inject(site, widget_files("/"))
    told = says(found(site))
    assert "pour.html is not in the index." in told["unindexed"]
    assert told["stale"] == ["brew/index.html is in the index and no longer in the site, or keeps itself out."]
    index(site)
    assert "stale" not in found(site).counts


def test_an_index_without_its_ledger_is_compared_by_its_words(site: Path) -> None:
    """As an index is that a plugin made, whose hashes are of something else than the built page."""
    for ledger in (site.parent / "index").glob("ledger*"):
        ledger.unlink()
    assert says(found(site)) == {}
    page = site / "brew/index.html"
    fresh = page.read_text()
    page.write_text(fresh.replace("Eighty degrees.", "Eighty degrees, and patience."))
    assert says(found(site)) == {"stale": ["brew/index.html changed since it was indexed."]}
    page.write_text(fresh.replace("Eighty degrees.", "degrees."))
    assert says(found(site)) == {"stale": ["brew/index.html changed since it was indexed."]}
    page.write_text(fresh.replace("</article>", "<p>Last updated yesterday</p></article>"))
    assert says(found(site)) == {}
    page.unlink()
    write(site, "pour.html")
    told = found(site)
    assert told.counts["unindexed"] == 1
    assert f"The index cites {BASE}brew/, and the site has no such page for it." in says(told)["dead_citation"]


def test_no_index_is_a_finding_unless_it_is_not_asked_for(site: Path) -> None:
    shutil.rmtree(site.parent / "index")
    (sentence,) = says(found(site))["no_index"]
    assert "chapterverse index" in sentence
    assert not (site.parent / "index").exists()
    assert found(site, with_index=False).counts == {}


def test_a_damaged_index_is_a_finding_and_an_unknown_one_an_error(site: Path) -> None:
    for head in (site.parent / "index").rglob("*.json"):
        head.write_text("{")
    assert set(found(site).counts) == {"no_index"}
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_STORE is "):
        check(site, Settings(store="nonsense:x"), environ={})


def test_an_index_of_another_address_is_told(site: Path) -> None:
    findings = check(site, settings(site, base_url="https://else.example/"), environ={})
    assert any(f"The index cites {BASE}" in f.says for f in findings.of("other_address"))


def test_addresses_that_are_missing_double_or_mixed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for path in ("a.html", "b.html", "c.html", "d.html"):
        write(site, path)
    b, c = site / "b.html", site / "c.html"
    b.write_text(b.read_text().replace("docs/b.html", "docs/a.html"))
    c.write_text(c.read_text().replace(BASE, "http://127.0.0.1:8000/"))
    write(site, "e/index.html")
    write(site, "e.html")
    urls = "".join(f"<url><loc>{BASE}{path}</loc></url>" for path in ("a.html", "d.html"))
    (site / "sitemap.xml").write_text(f"<urlset>{urls}</urlset>")
    silent = write(site, "f.html")
    silent.write_text(silent.read_text().replace("canonical", "x"))
    inject(site, widget_files("/"))
    assert says(found(site, with_index=False)) == {
        "two_pages": [f"b.html is skipped: it has the address of a.html, {BASE}a.html."],
        "mixed_address": [
            (
                "A page states an address on another host than the rest, http://127.0.0.1:8000/c.html: "
                "it is placed by its path."
            ),
            f"c.html says that it is at http://127.0.0.1:8000/c.html, outside of {BASE}.",
        ],
        "twin": ["e/index.html and e.html have addresses that differ only in a slash or an ending."],
        "no_address": ["f.html states no address, and the sitemap doesn't list it."],
    }


def test_a_site_without_any_address_is_still_checked(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for path in ("index.html", "a.html"):
        page = write(site, path, '<p><a href="a.html#gone">x</a></p>')
        page.write_text(page.read_text().replace("canonical", "x"))
    inject(site, widget_files("/"))
    told = says(found(site, with_index=False))
    assert set(told) == {"no_address", "dead_anchor"}
    assert len(told["no_address"]) == 1
    assert len(told["dead_anchor"]) == 2


def test_pages_that_cannot_be_read_are_told(site: Path) -> None:
    (site / "bad.html").write_bytes(b"<html><body>\xff\xfe</body></html>")
    assert says(found(site)) == {"unreadable": ["bad.html is not encoded in UTF-8."]}


def test_pages_can_be_left_out(site: Path) -> None:
    write(site, "private/a.html", '<p><a href="#gone">x</a></p>')
    assert set(found(site).counts) == {"no_widget", "dead_anchor", "unindexed"}
    assert says(found(site, exclude=["private/"])) == {}


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no HTML page"):
        found(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        found(tmp_path / "none")


KEY = "c4nary/Zx9+Qw8=Er7&Ty6"


@pytest.mark.parametrize("form", [KEY, quote(KEY, safe=""), KEY.replace("&", "&amp;"), json.dumps(KEY)])
@pytest.mark.parametrize("path", ["index.html", "_static/app.js", ".env", "search/search_index.json", "b.wasm"])
def test_a_secret_of_the_environment_is_found_in_any_file_and_form(unindexed: Path, path: str, form: str) -> None:
    file = unindexed / path
    file.parent.mkdir(exist_ok=True)
    before = file.read_bytes() if file.exists() else b"\0" if path.endswith("wasm") else b""
    file.write_bytes(before + b"\n\n<!-- " + form.encode() + b" -->")
    findings = found(unindexed, {"COHERE_API_KEY": KEY, "PATH": "/usr/bin"}, with_index=False)
    (leak,) = findings.of("secret")
    assert leak.says.endswith("holds the value of COHERE_API_KEY.")
    assert leak.file == path
    assert KEY not in json.dumps(findings.to_json()) + "".join(findings.lines())


R = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA2cD4"
JWT = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")


def claims(text: str) -> str:
    return f"{JWT}.{base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')}.{R}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"sk-{R}", "an OpenAI key"),
        (f"sk-proj-{R}-{R}", "an OpenAI key"),
        (f"sk-ant-api03-{R}-{R}", "an Anthropic key"),
        (f'COHERE_API_KEY="{R}Zz9Y"', "a Cohere key"),
        (f'<span class="n">COHERE_API_KEY</span><span class="o">=</span><span>{R}Zz9Y</span>', "a Cohere key"),
        (f"QDRANT_API_KEY: {R}", "a Qdrant key"),
        (claims('{"access":"m"}'), "a Qdrant token"),
        ("AKIAQ3EGRT5YLP2WZX7C", "an AWS access key"),
        (f"aws_secret_access_key = {R}/+xY", "an AWS secret key"),
        (f"ghp_{R}", "a GitHub token"),
        (f"hf_{R}", "a Hugging Face token"),
        ("postgresql://app:s3cr3t-Pw9@db.internal.corp/docs", "a database password"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{R}{R}\n", "a private key"),
        (f"-----BEGIN PRIVATE KEY-----\\n{R}{R}", "a private key"),
    ],
)
def test_keys_are_known_by_their_looks(unindexed: Path, text: str, what: str) -> None:
    (unindexed / "notes.txt").write_text(f"one\ntwo {text} three")
    (leak,) = found(unindexed, with_index=False).of("secret")
    assert leak.says == f"notes.txt line 2 holds {what}."


@pytest.mark.parametrize(
    "text",
    [
        "sk-cube-grid-and-container-id-1-of-the-spinner",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-your-key-here",
        'COHERE_API_KEY="your-key"',
        "COHERE_API_KEY=$SECRET",
        "QDRANT_API_KEY=<your-api-key-goes-in-here>",
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "postgresql://user:password@localhost/docs",
        "postgresql://app:${PASSWORD}@db/docs",
        "postgresql://HOST/NAME",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        claims('{"sub":"1234567890","name":"John Doe","iat":1516239022}'),
    ],
)
def test_examples_are_no_keys(unindexed: Path, text: str) -> None:
    (unindexed / "notes.txt").write_text(text)
    assert says(found(unindexed, {"HOME_PASSWORD": "", "API_TOKEN_FILE": "/run/secrets"}, with_index=False)) == {}


#: Bytes of a file that are searched at once.
WINDOW = 8_000_000


def test_a_secret_in_a_large_file_is_found_wherever_it_lies(unindexed: Path) -> None:
    for at in (WINDOW - 40, WINDOW - 10, WINDOW + 5555):
        (unindexed / "big.txt").write_text("\n" * at + KEY + "\n" * 9000)
        (leak,) = found(unindexed, {"QDRANT_API_KEY": KEY}, with_index=False).of("secret")
        assert leak.says == f"big.txt line {at + 1} holds the value of QDRANT_API_KEY."


def test_a_link_out_of_the_site_is_told(unindexed: Path) -> None:
    (unindexed / "leak.txt").symlink_to("/proc/self/environ")
    (unindexed / "leak.html").symlink_to("/proc/self/environ")
    (unindexed / "fine.txt").symlink_to("index.html")
    names = ("leak.html", "leak.txt")
    findings = found(unindexed, with_index=False)
    assert [leak.says for leak in findings.of("link_out")] == [
        f"{name} is a link that leads out of its folder: remove it." for name in names
    ]


def test_findings_are_counted_all_and_shown_in_part(site: Path) -> None:
    findings = Findings(pages=5000)
    for n in range(2000):
        findings.add("no_widget", f"p{n}.html", f"p{n}.html has no widget.")
    (group,) = findings.to_json()["findings"]
    assert (group["count"], len(group["examples"])) == (2000, 1000)
    findings.add("unreadable", "a.html", "a.html is not a text file.")
    lines = list(findings.lines())
    assert lines[0].startswith("Error: Pages without the widget: 2,000 (no_widget). ")
    assert lines[11] == "  … and 1,990 more"
    assert lines[-1] == "5,000 pages checked: 2,000 errors, 1 warning."
    assert findings.to_json()["ranks"] == {"error": 2000, "warning": 1}


def test_every_kind_has_a_rank_and_advice_for_each_way() -> None:
    ranks = [RANKS.index(kind.rank) for kind in FINDING_KINDS.values()]
    assert ranks == sorted(ranks)
    assert {kind.rank for kind in FINDING_KINDS.values()} == set(RANKS)
    ways: tuple[Way, ...] = get_args(Way)
    assert all(kind.advice_for(way).endswith(".") for kind in FINDING_KINDS.values() for way in ways)


def test_the_advice_is_in_the_words_of_the_way_that_made_the_index(site: Path) -> None:
    write(site, "new.html")
    inject(site, widget_files("/"))
    seen = found(site)
    (finding,) = [f for f in seen.to_json()["findings"] if f["kind"] == "unindexed"]
    assert (seen.way, finding["rank"]) == ("html", "warning")
    assert finding["advice"].startswith("Run `chapterverse index`")


def test_a_host_has_no_case(tmp_path: Path) -> None:
    """As on GitHub Pages, whose owners' names have capitals."""
    site = tmp_path / "site"
    base = "https://OctoCat.GitHub.io/Tea/"
    for path in ("index.html", "brew/index.html"):
        page = write(site, path, '<p><a href="https://octocat.github.io/Tea/brew/#top-1">x</a></p>')
        page.write_text(page.read_text().replace(BASE, base))
    urls = "".join(f"<url><loc>https://octocat.github.io/Tea/{path}</loc></url>" for path in ("", "brew/"))
    (site / "sitemap.xml").write_text(f"<urlset>{urls}</urlset>")
    inject(site, widget_files("/"))
    index(site)
    assert says(found(site)) == {}
    assert says(check(site, settings(site, base_url="https://OCTOCAT.github.io/Tea"), environ={})) == {}


def test_a_text_with_nul_bytes_is_read_and_named(site: Path) -> None:
    page = site / "brew/index.html"
    page.write_bytes(page.read_bytes().replace(b"Eighty", b"Eigh\0ty"))
    assert inject(site, widget_files("/")).warnings == ()
    index(site)
    assert says(found(site)) == {
        "nul": ["brew/index.html holds 1 NUL bytes, which are read as U+FFFD: remove them."],
    }


# What the plugins write where the option is not set, and what `widget` once wrote.
@pytest.mark.parametrize("unset", [json.dumps(None), json.dumps("")])
def test_a_chat_that_names_no_api(unindexed: Path, unset: str) -> None:
    inject(unindexed, widget_files("https://api.example.com"))
    assert says(found(unindexed, with_index=False)) == {}
    (config,) = unindexed.rglob("config.js")
    config.write_text(config.read_text().replace('"https://api.example.com"', unset))
    path = config.relative_to(unindexed).as_posix()
    assert says(found(unindexed, with_index=False)) == {
        "no_endpoint": [f"{path} names no API, so the chat of 2 pages can't answer."]
    }
    # The tag of a page outranks the configuration.
    for page in unindexed.rglob("*.html"):
        page.write_text(page.read_text().replace("data-chapterverse", 'data-chapterverse data-endpoint="/api"'))
    assert says(found(unindexed, with_index=False)) == {}


@pytest.mark.parametrize(
    ("href", "dead"),
    [
        ("brew/", False),
        ("brew/index.html?x=1", False),
        ("_modules/tea.html", False),
        ("_modules/tea.html#pour", False),
        ("/elsewhere/", False),
        ("mailto:a@tea.example", False),
        ("javascript:void(0)/", False),
        ("tea.pdf", False),
        ("https://tea.example/docs/elsewhere/", False),
        ('/docs/elsewhere/" target="_self', False),
        ("gone.pdf", True),
        ("/docs/gone/", True),
        ("/docs/gone.pdf", True),
        (f"{'gone' * 99}/", True),
        ("gone.html", True),
        ("gone/", True),
        ("gone/#green", True),
        ("gone/?q=1", True),
        ("LICENSE", False),
        ("LICENSE#L1", False),
        ("NOTICE", True),
        ("brew/gone.md#green", True),
        ("_modules/gone.html", True),
    ],
)
def test_links_to_pages(tmp_path: Path, href: str, dead: bool) -> None:
    site = tmp_path / "site"
    write(site, "index.html", f'<p><a href="{href}">x</a></p>')
    write(site, "brew/index.html")
    write(site, "_modules/tea.html", '<p id="pour">Pour.</p>')
    for name in ("LICENSE", "tea.pdf"):
        (site / name).write_text("MIT")
    inject(site, widget_files("/"))
    findings = found(site, with_index=False)
    assert set(findings.counts) == ({"dead_link"} if dead else set())
    assert all(href in f.says for f in findings.of("dead_link"))


@pytest.mark.parametrize(
    ("links", "dead"),
    [
        # A generator writes its own links so, and the site owns the host.
        (("/docs/", "/docs/brew/", "/docs/gone/"), ["/docs/gone/"]),
        # Another site is on the same host.
        (("/docs/", "/else/", "/else/where/"), []),
    ],
)
def test_a_path_from_the_root_of_a_host_that_others_may_share(
    tmp_path: Path, links: tuple[str, ...], dead: list[str]
) -> None:
    site, anchors = tmp_path / "site", "".join(f'<a href="{link}">x</a>' for link in links)
    for path in ("docs/index.html", "docs/brew/index.html"):
        (site / path).parent.mkdir(parents=True)
        head = f'<link rel="canonical" href="https://tea.example/{path.removesuffix("index.html")}">'
        (site / path).write_text(
            f"<!doctype html><html><head><title>T</title>{head}</head><body><nav>{anchors}</nav>"
            "<main><h1>T</h1><p>x</p></main></body></html>"
        )
    (site / "index.html").write_text(
        '<!doctype html><link rel="canonical" href="https://tea.example/"><h1>T</h1><p>x</p>'
    )
    inject(site, widget_files("/"))
    assert [f.says.split(" links to ")[1].split(",")[0] for f in found(site, with_index=False).of("dead_link")] == dead


def test_a_path_that_the_host_leads_elsewhere_is_there(unindexed: Path) -> None:
    redirects = (
        "# old\n/docs/gone/ /docs/brew/ 301\n/docs/v1/* /docs/:splat\n/docs/:year/tea /docs/brew/\n/* /404.html 404\n"
    )
    (unindexed / "_redirects").write_text(redirects)
    targets = ("gone/", "gone", "v1/a/b", "2026/tea", "lost/", "2026/a/tea")
    write(unindexed, "more.html", "".join(f'<a href="/docs/{target}">x</a>' for target in targets))
    inject(unindexed, widget_files("/"))
    dead = [f.says.rpartition(" ")[2] for f in found(unindexed, with_index=False).of("dead_link")]
    assert dead == [f"{BASE}lost/.", f"{BASE}2026/a/tea."]


@pytest.mark.parametrize(
    ("src", "dead"),
    [
        ("pot.png", False),
        ("/docs/pot.png?v=1", False),
        ("pot%20of%20tea.png", False),
        ("/elsewhere/pot.png", False),
        ("https://cdn.example/pot.png", False),
        ("data:image/png;base64,AAAA", False),
        ("gone.png", True),
        ("/docs/gone.png", True),
    ],
)
@pytest.mark.parametrize("tag", ['<img src="{}">', '<video><source src="{}"></video>'])
def test_images_and_other_media(tmp_path: Path, tag: str, src: str, dead: bool) -> None:
    site = tmp_path / "site"
    write(site, "index.html", tag.format(src))
    for name in ("pot.png", "pot of tea.png"):
        (site / name).write_bytes(b"PNG")
    inject(site, widget_files("/"))
    findings = found(site, with_index=False)
    assert set(findings.counts) == ({"dead_image"} if dead else set())
    assert all(src in f.says for f in findings.of("dead_image"))


def test_links_outside_of_the_content_lead_to_pages_too(unindexed: Path) -> None:
    for page in unindexed.rglob("*.html"):
        footer = '<footer><a href="#menu">x</a><a href="/docs/gone/">x</a></footer></body>'
        page.write_text(page.read_text().replace("</body>", footer))
    assert says(found(unindexed, with_index=False)) == {
        "dead_link": [f"brew/index.html and 1 more links to /docs/gone/, and the site has no page or file {BASE}gone/."]
    }


def test_references_that_sphinx_did_not_resolve(tmp_path: Path) -> None:
    site = tmp_path / "site"
    lost = (
        '<span class="xref std std-ref">brew &amp;\npour</span>'
        '<code class="xref download docutils literal"><span class="pre">x.zip</span></code>'
    )
    term = '<a class="reference" href="#top-1"><span class="xref std std-term">Leaf</span></a>'
    resolved = f'{term} <span class="std std-ref">x</span>'
    write(site, "index.html", f"<p>{lost} {resolved} <code>&lt;span class=&quot;xref myst&quot;&gt;</code></p>")
    inject(site, widget_files("/"))
    assert says(found(site, with_index=False)) == {
        "unresolved": [
            "index.html refers to 'brew & pour', which Sphinx didn't find.",
            "index.html refers to 'x.zip', which Sphinx didn't find.",
        ]
    }


def test_a_dead_anchor_in_a_folder_that_is_not_indexed(site: Path) -> None:
    write(site, "_modules/tea.html", '<p id="pour">Pour.</p>')
    page = site / "index.html"
    page.write_text(page.read_text().replace("brew/#green", "_modules/tea.html#gone"))
    assert says(found(site, with_index=False)) == {
        "dead_anchor": ["index.html links to _modules/tea.html#gone, and _modules/tea.html has no such id."]
    }


def test_a_persona_is_no_page_that_the_site_lacks(site: Path) -> None:
    (site.parent / "persona.md").write_text("Be brief.", encoding="utf-8")
    reading = read_site(site)
    spoken = persona_source(site.parent / "persona.md", reading.base_url)
    sync.index([*reading.sources, spoken], Target.open(settings(site), Scope("tea"), reading.base_url))
    assert says(found(site)) == {}
