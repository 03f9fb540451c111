"""Sources beyond the site: files, addresses and sitemaps, against servers on loopback that fail and attack."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.net.fetch import MAX_DOWNLOAD_BYTES
from chapterverse.ext.site_check.check import check
from chapterverse.ext.sources.entries import ExternalEntry, parse_entries
from chapterverse.ext.sources.external_sources import collect_external
from chapterverse.settings import Settings
from cli.shell import BASE, Shell
from ext.net.test_fetch import Site
from fakes.loopback import Answer, Fault, Request
from fakes.pdf import pdf

HTML = """<!doctype html><html lang="en"><head><title>Kettles</title></head><body><nav>Menu</nav><main>
<h1 id="kettles">Kettles</h1><h2 id="whistle">The whistle</h2><p>%s</p></main></body></html>"""


class Elsewhere(Site):
    """A site that knows whether its pages changed."""

    def answer(self, request: Request) -> Answer:
        answer = super().answer(request)
        tag, date = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
        same_tag = tag and request.headers.get("if-none-match") == tag
        same_date = date and request.headers.get("if-modified-since") == date
        return Answer(304, b"") if same_tag or same_date else answer

    def put(self, path: str, text: str | bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> str:
        body = text if isinstance(text, bytes) else text.encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = Answer(200, body, {"Content-Type": kind, **named})
        return f"{self.url}{path}"

    def sitemap(self, path: str, *urls: str, kind: str = "urlset") -> str:
        entry = "url" if kind == "urlset" else "sitemap"
        listed = "".join(f"<{entry}><loc>{url}</loc></{entry}>" for url in urls)
        return self.put(path, f'<?xml version="1.0"?><{kind} xmlns="x">{listed}</{kind}>', "application/xml")

    def asked(self, path: str) -> int:
        return sum(request.path == path for request in self.history)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as running:
        yield running


def index(shell: Shell, site: Elsewhere, *also: str, code: int = 0) -> Any:
    """Index the site with these sources and return the report."""
    flags = [flag for each in also for flag in ("--also", each)]
    environment = {"CHAPTERVERSE_ALLOW_PRIVATE": site.place}
    return json.loads(shell.run("index", "site", *flags, "--json", environment=environment, code=code).stdout)


def add(shell: Shell, site: Elsewhere, place: str, *flags: str) -> str:
    return shell.run("index", place, *flags, environment={"CHAPTERVERSE_ALLOW_PRIVATE": site.place}).stderr


def chunks(shell: Shell) -> dict[str, dict[str, Any]]:
    """Return the first chunk of each address that is in the index."""
    shell.run("export", "--canonical", "export.jsonl")
    rows = map(json.loads, (shell.root / "export.jsonl").read_text("utf-8").splitlines())
    return {row["url"]: row for row in sorted(rows, key=lambda row: -row["chunk_index"])}


def others(shell: Shell) -> set[str]:
    return {url for url in chunks(shell) if not url.startswith(BASE)}


def test_each_format_is_read_and_cited_at_its_own_address(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles?v=1", HTML % "It blows at 100 degrees.")
    notes = elsewhere.put("/notes.md", "# Notes\n\n## Water\n\nSoft water is best.", "text/plain; charset=utf-8")
    text = elsewhere.put("/read-me.txt", "Salt & pepper < tea.\n\nSecond *paragraph*.", "text/plain")
    cyrillic = elsewhere.put("/chai.txt", "Чай горячий".encode("cp1251"), "text/plain; charset=windows-1251")
    manual = elsewhere.put(
        "/manual",
        pdf([["Boil the", "wa-", "ter."], ["Pour."]], "The manual", {1: "Boiling"}),
        "application/octet-stream",
    )
    report = index(shell, elsewhere, page, notes, text, cyrillic, manual)
    assert report["warnings"] == []
    assert report["pages"]["new"] == 8
    found = chunks(shell)
    whistle = found[f"{page}#whistle"]
    assert (whistle["source"], whistle["type"], whistle["source_file_path"]) == ("import", "page", page)
    assert whistle["heading_path"] == ["Kettles", "The whistle"]
    assert found[notes]["heading_path"] == ["Notes", "Water"]
    assert found[text]["text"] == "Salt & pepper < tea.\n\nSecond *paragraph*."
    assert found[cyrillic]["text"] == "Чай горячий"
    first, second = found[f"{manual}#page=1"], found[f"{manual}#page=2"]
    assert (first["heading_path"], first["text"]) == (["The manual", "Boiling"], "Boil the water.")
    assert second["heading_path"] == ["The manual", "Boiling", "Page 2"]


def test_the_index_holds_what_is_configured(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    index(shell, elsewhere, page)
    assert others(shell) == {f"{page}#whistle"}
    elsewhere.put("/kettles", HTML.replace("whistle", "siren") % "It howls.")
    assert index(shell, elsewhere, page)["pages"]["changed"] == 1
    assert others(shell) == {f"{page}#siren"}
    # A lost ledger makes no import of it that would stay.
    for ledger in shell.root.rglob("ledger.sqlite*"):
        ledger.unlink()
    assert index(shell, elsewhere)["pages"]["removed"] == 1
    assert others(shell) == set()


@pytest.mark.parametrize("header", ["ETag", "Last_Modified"])
def test_what_did_not_change_is_not_sent_again(shell: Shell, elsewhere: Elsewhere, header: str) -> None:
    value = {"ETag": '"a"', "Last_Modified": "Sat, 01 Aug 2026 00:00:00 GMT"}[header]
    page = elsewhere.put("/kettles", HTML % "It blows.", **{header: value})
    before = index(shell, elsewhere, page)
    after = index(shell, elsewhere, page)
    assert (after["generation"], after["pages"]["unchanged"]) == (before["generation"], 4)
    first, second = (request for request in elsewhere.history if request.path == "/kettles")
    name = {"ETag": "if-none-match", "Last_Modified": "if-modified-since"}[header]
    assert (first.headers.get(name), second.headers.get(name)) == (None, value)


def test_a_fetch_that_fails_keeps_the_last_good_version(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    index(shell, elsewhere, page)
    for fault in (Fault(500), Fault(404), Fault(cut=True), Fault(headers={"Content-Length": str(10**9)})):
        elsewhere.play(Fault(), fault)
        (warning,) = index(shell, elsewhere, page)["warnings"]
        assert warning.startswith(f"{page} was not fetched, so what the index has of it stays: ")
        assert others(shell) == {f"{page}#whistle"}
    # Nor without the download, as on another machine.
    for download in shell.root.rglob("downloads/*"):
        download.unlink()
    elsewhere.play(Fault(), Fault(500))
    report = index(shell, elsewhere, page)
    assert (len(report["warnings"]), others(shell)) == (1, {f"{page}#whistle"})
    # What was never there is not in the way of the others.
    missing = index(shell, elsewhere, page, f"{elsewhere.url}/missing")
    assert len(missing["warnings"]) == 1
    assert others(shell) == {f"{page}#whistle"}


def test_a_damaged_download_is_fetched_again(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.", ETag='"a"')
    index(shell, elsewhere, page)
    for download in shell.root.rglob("downloads/*"):
        download.write_bytes(download.read_bytes()[:-9])
    assert index(shell, elsewhere, page)["pages"]["unchanged"] == 4
    assert all("if-none-match" not in request.headers for request in elsewhere.history)


def test_robots_are_respected(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    hidden = elsewhere.put("/hidden", HTML.replace("<head>", '<head><meta name="robots" content="noindex">') % "x")
    header = elsewhere.put("/header", HTML % "x", X_Robots_Tag="noindex, nofollow")
    elsewhere.put("/robots.txt", "User-agent: *\nDisallow: /kettles", "text/plain")
    warnings = index(shell, elsewhere, page, hidden, header)["warnings"]
    assert sorted(warnings) == sorted(
        [
            f"{page} was not fetched, so what the index has of it stays: 127.0.0.1 forbids it in its robots.txt.",
            f"{hidden} asks not to be indexed, so it is left out.",
            f"{header} asks not to be indexed, so it is left out.",
        ]
    )
    assert elsewhere.asked("/kettles") == 0
    assert others(shell) == set()


def test_a_sitemap_is_followed_to_its_depth(shell: Shell, elsewhere: Elsewhere) -> None:
    urls = [elsewhere.put(f"/{name}", HTML.replace("Kettles", name) % name) for name in ("a", "b", "c")]
    first = elsewhere.sitemap("/first.xml", urls[0], "https://foreign.example/", BASE)
    deeper = elsewhere.sitemap("/deeper.xml", urls[2])
    middle = elsewhere.sitemap("/middle.xml", deeper, kind="sitemapindex")
    second = elsewhere.put("/second.xml.gz", gzip.compress(f"<urlset><loc>{urls[1]}</loc></urlset>".encode()))
    root = elsewhere.sitemap("/sitemap.xml", first, second, middle, f"{elsewhere.url}/sitemap.xml", kind="sitemapindex")
    report = index(shell, elsewhere, root)
    assert others(shell) == {f"{url}#whistle" for url in urls[:2]}
    assert [w.partition(" lists ")[2] for w in report["warnings"]] == [
        "2 addresses on other hosts, which are left out.",
        "1 sitemaps below its depth, which are left out.",
    ]
    # A page that is gone from the sitemap leaves the index, and a sitemap that fails takes none away.
    elsewhere.sitemap("/first.xml")
    index(shell, elsewhere, root)
    assert others(shell) == {f"{urls[1]}#whistle"}
    elsewhere.play(Fault(), Fault(500))
    index(shell, elsewhere, root)
    assert others(shell) == {f"{urls[1]}#whistle"}
    for download in shell.root.rglob("downloads/*"):
        download.unlink()
    elsewhere.play(Fault(), Fault(500))
    (warning,) = index(shell, elsewhere, root)["warnings"]
    assert warning.startswith(f"{root} was not read, so what the index has of {elsewhere.place} stays: ")
    assert others(shell) == {f"{urls[1]}#whistle"}


def test_a_packed_sitemap_is_never_read_in_part(tmp_path: Path, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    packed = gzip.compress(f"<urlset><loc>{page}</loc>".encode() + b" " * MAX_DOWNLOAD_BYTES + b"</urlset>")
    bomb = elsewhere.put("/sitemap.xml.gz", packed, "application/gzip")
    also = parse_entries([bomb], tmp_path)
    settings = Settings(store=f"edge:{tmp_path}/index", allow_private=elsewhere.place, also=also)
    result = collect_external(settings, (), BASE, None)
    (warning,) = result.warnings
    assert warning.endswith("stays: it unpacks to more than 5,242,880 bytes.")
    assert (result.sources, result.keep(page)) == ([], True)


def test_a_file_is_cited_where_it_is_published(shell: Shell, elsewhere: Elsewhere) -> None:
    (shell.root / "extra.md").write_text("# Extra\n\nBags are worse.", "utf-8")
    (shell.root / "LICENSE").write_text("Drink at will.", "utf-8")
    settings = Settings(store=f"edge:{shell.root}/.cache/plugin/chapterverse")
    index(shell, elsewhere)
    before = check(shell.root / "site", settings, environ={}).counts
    report = index(shell, elsewhere, "extra.md", "LICENSE")
    assert report["warnings"] == []
    # They are no citations of pages that the site lacks.
    assert check(shell.root / "site", settings, environ={}).counts == before
    found = chunks(shell)
    assert found[f"{BASE}extra.md"]["source"] == found[f"{BASE}LICENSE"]["source"] == "import"
    states = {file["file_path"]: file["state"] for file in shell.json("status", "site")["files"]}
    assert {"extra.md", "LICENSE"} < states.keys()
    assert set(states.values()) == {"Indexed"}


def test_one_address_or_file_lasts_until_the_next_run(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    (shell.root / "extra.md").write_text("# Extra\n\nBags are worse.", "utf-8")
    index(shell, elsewhere)
    before = set(chunks(shell))
    said = add(shell, elsewhere, page)
    assert f"{page} stays until the next run for the site; --also or the option `also` keeps it." in said
    said = add(shell, elsewhere, "extra.md", "--base-url", "https://else.example/notes/")
    assert "extra.md is cited at https://else.example/notes/extra.md" in said
    assert set(chunks(shell)) - before == {f"{page}#whistle", "https://else.example/notes/extra.md"}
    assert before < set(chunks(shell))
    report = index(shell, elsewhere)
    assert (report["pages"]["removed"], report["pages"]["unchanged"]) == (2, 3)
    assert set(chunks(shell)) == before


def test_adding_to_an_index_whose_ledger_is_lost_skips_no_page_later(
    shell: Shell,
    elsewhere: Elsewhere,
) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    index(shell, elsewhere)
    for ledger in shell.root.rglob("ledger.sqlite*"):
        ledger.unlink()
    add(shell, elsewhere, page)
    shell.write("clean/index.html", "Cleaning", "<p>Lemons dissolve lime.</p>")
    index(shell, elsewhere, page)
    assert "Lemons dissolve lime." in chunks(shell)[f"{BASE}clean/#top"]["text"]


def test_an_index_may_begin_with_one_address(shell: Shell, elsewhere: Elsewhere) -> None:
    page = elsewhere.put("/kettles", HTML % "It blows.")
    add(shell, elsewhere, page)
    assert set(chunks(shell)) == {f"{page}#whistle"}
    assert "--base-url" in shell.refused("index", "export.jsonl", "--store", "edge:other")


def test_what_can_not_be_added_is_one_sentence(shell: Shell, elsewhere: Elsewhere) -> None:
    index(shell, elsewhere)
    private = f"{elsewhere.url}/kettles"
    assert "use https" in shell.refused("index", private)
    elsewhere.moves("/away", "http://169.254.169.254/latest/meta-data/")
    allowed: dict[str, Any] = {"CHAPTERVERSE_ALLOW_PRIVATE": elsewhere.place}
    assert "use https" in shell.refused("index", f"{elsewhere.url}/away", **allowed)
    image = elsewhere.put("/image", b"\x89PNG\r\n", "image/png")
    assert "no HTML, Markdown, plain text or PDF" in shell.refused("index", image, **allowed)
    assert "takes no option of a folder" in shell.refused("index", private, "--source")
    assert "CHAPTERVERSE_ALLOW_PRIVATE is" in shell.refused("index", private, CHAPTERVERSE_ALLOW_PRIVATE="x")
    assert others(shell) == set()


def test_a_bad_pdf_is_one_sentence(shell: Shell, elsewhere: Elsewhere) -> None:
    bad = elsewhere.put("/bad.pdf", b"%PDF-1.7 nothing", "application/pdf")
    empty = elsewhere.put("/empty.pdf", pdf([[]]), "application/pdf")
    warnings = index(shell, elsewhere, bad, empty)["warnings"]
    assert sorted(warnings) == [
        f"{bad} can't be read as a PDF: it is damaged or encrypted.",
        f"{empty} holds no text: its pages may be images.",
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (3, "is no source"),
        ("missing.md", "also names the file missing.md, which is not there"),
        ({"file": "missing.md"}, "which is not there"),
        ({"url": "missing.md"}, "is no source"),
        ({"sitemap": "https://a/s.xml", "depth": 0}, "must be 1 to 10"),
        ({"sitemap": "https://a/s.xml", "depth": True}, "is no source"),
        ({"sitemap": ["https://a/s.xml"]}, "is no source"),
        ({"url": "https://a", "depth": 2}, "is no source"),
        ({"urls": "https://a"}, "is no source"),
        ({"file": "here.md", "url": "here"}, "must be an address"),
    ],
)
def test_a_wrong_entry_is_one_sentence(given: object, sentence: str, shell: Shell) -> None:
    (shell.root / "here.md").touch()
    with pytest.raises(ConfigurationError, match=sentence):
        parse_entries([given], shell.root)


@pytest.mark.parametrize("name", ["../private.md", "/etc/passwd", "/proc/self/environ", "link.md", ".git/config"])
def test_a_file_outside_of_the_project_is_refused(name: str, shell: Shell) -> None:
    project = shell.root / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git/config").write_text("token", "utf-8")
    (shell.root / "private.md").write_text("# Private\n", "utf-8")
    (project / "link.md").symlink_to("../private.md")
    docs = project / "docs"
    docs.mkdir()
    given = name if name.startswith("/") else f"../{name}"
    with pytest.raises(ConfigurationError, match="which is outside of the project: put it there"):
        parse_entries([given], docs)


def test_a_file_of_the_project_may_be_beside_the_docs(shell: Shell) -> None:
    (shell.root / ".git").mkdir()
    (shell.root / "README.md").write_text("# Read me\n", "utf-8")
    docs = shell.root / "docs"
    docs.mkdir()
    assert parse_entries(["../README.md"], docs) == (
        ExternalEntry("file", str(shell.root / "README.md"), "../README.md"),
    )


def test_entries(shell: Shell) -> None:
    (shell.root / "here.md").touch()
    file = str(shell.root / "here.md")
    given = ["HTTPS://a/b#c", "here.md", {"file": file, "url": "https://a/x"}, {"sitemap": "https://a/s", "depth": 3}]
    assert parse_entries(given, shell.root) == (
        ExternalEntry("url", "https://a/b"),
        ExternalEntry("file", file, "here.md"),
        ExternalEntry("file", file, "here.md", "https://a/x"),
        ExternalEntry("sitemap", "https://a/s", depth=3),
    )
