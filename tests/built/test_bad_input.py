"""Sites that no generator should make, and some do: each works, or one sentence says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chapterverse.cli import app
from chapterverse.errors import InputError
from chapterverse.model import Chunk
from chapterverse.readers.built_site import read_site
from chapterverse.settings import Settings
from chapterverse.site.delivery import widget_files
from chapterverse.site.inject import inject
from chapterverse.store import open_store
from ext.site_check.test_check import BASE, found, index, says, settings, write
from projects import check

BARE = (
    '<!doctype html><html lang="en"><head><title>{0}</title></head>'
    '<body><h1 id="a">{0}</h1><p>Steep it.</p></body></html>'
)


def publish(site: Path, *arguments: str, base: str = BASE) -> str:
    config = site.parent / "options.json"
    config.write_text(json.dumps({"endpoint": "/", "store": f"edge:{site.parent / 'index'}", "site": "tea"}))
    done = CliRunner().invoke(app, ["publish", str(site), "--config", str(config), "--base-url", base, *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def chunks(site: Path) -> list[Chunk]:
    store = open_store(settings(site))
    return [point.chunk for head in store.heads() for point in store.snapshot(head.scope).points()]


def test_pages_without_main_are_not_stale_after_their_own_build(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for name in ("index", "brew"):
        (site / f"{name}.html").write_text(BARE.format(name))
    assert "Indexed 2 pages (2 new" in publish(site)
    assert {chunk.text for chunk in chunks(site)} == {"Steep it."}
    assert says(check(site, Settings(store=settings(site).store, base_url=BASE), environ={})) == {}
    assert "Indexed 2 pages (0 new, 0 changed, 0 removed)" in publish(site)


def test_a_second_plugin_leaves_the_chat_of_the_first(tmp_path: Path) -> None:
    site = tmp_path / "site"
    launcher = '<script type="module" src="../assets/chapterverse/9.9.9/0123abcd/launcher.js"></script>'
    (site / "assets/chapterverse/9.9.9/0123abcd").mkdir(parents=True)
    for name, content in widget_files("/").items():
        file = site / "assets/chapterverse/9.9.9/0123abcd" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    write(site, "index.html", head=launcher.replace("../", ""))
    write(site, "brew/index.html", head=launcher)
    assert "index.html and 1 more: the widget is there already by another way" in " ".join(publish(site).split())
    assert says(found(site)) == {}


def test_a_site_in_a_subfolder_of_what_is_published(tmp_path: Path) -> None:
    site = tmp_path / "public"
    for path in ("docs/index.html", "docs/brew/index.html"):
        page = write(site, path)
        page.write_text(page.read_text().replace(f"{BASE}docs/", BASE))
    inject(site, widget_files("/"))
    index(site)
    assert {chunk.url.partition("#")[0] for chunk in chunks(site)} == {BASE, f"{BASE}brew/"}
    assert '<script type="module" src="../../assets/chapterverse/' in (site / "docs/brew/index.html").read_text()
    assert says(found(site)) == {}


def test_a_generator_that_changes_its_layout(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "index.html")
    write(site, "brew/index.html", '<h2 id="green">Green</h2><p>Eighty degrees.</p>')
    inject(site, widget_files("/"))
    index(site)
    (site / "brew/index.html").unlink()
    (site / "brew").rmdir()
    write(site, "brew.html", '<h2 id="green">Green</h2><p>Eighty degrees.</p>')
    inject(site, widget_files("/"))
    assert set(found(site).counts) == {"stale", "unindexed", "dead_citation"}
    index(site)
    assert {chunk.url.partition("#")[0] for chunk in chunks(site)} == {BASE, f"{BASE}brew.html"}
    assert says(found(site)) == {}


def test_two_languages_in_one_page_are_that_of_the_page(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(
        site, "index.html", '<p>Hot water.</p><section lang="fr"><h2 id="fr">Thé</h2><p>De l’eau chaude.</p></section>'
    )
    index(site)
    assert {(chunk.text, chunk.language) for chunk in chunks(site)} == {
        ("Hot water.", "en"), ("De l’eau chaude.", "en"),
    }  # fmt: skip


@pytest.mark.parametrize("base", [f"{BASE}?version=2", f"{BASE}#top", "docs/", "https://"])
def test_a_base_url_that_no_page_can_be_below(tmp_path: Path, base: str) -> None:
    (tmp_path / "index.html").write_text(BARE.format("Tea"))
    with pytest.raises(InputError, match=r"^The base URL must be an address like https://example.com/docs/, without"):
        read_site(tmp_path, base)


def test_links_in_the_output(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "index.html")
    write(site, "latest/brew/index.html")
    (site / "stable").symlink_to(site / "latest")
    (site / "again.html").symlink_to(site / "index.html")
    inject(site, widget_files("/"))
    index(site)
    urls = {chunk.url.partition("#")[0] for chunk in chunks(site)}
    assert urls == {BASE, f"{BASE}latest/brew/"}
    # A copy of a page states the address of the original, and a folder is read once.
    assert set(found(site).counts) == {"two_pages", "unreadable"}
    (told,) = says(found(site))["unreadable"]
    assert told.startswith("stable is a link to a folder")


def test_names_with_the_separators_of_windows(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for name in ("guide\\setup.html", "CON.html", "a b & c.html", "C:page.html"):
        (site / name).write_text(BARE.format("Tea"))
    urls = {source.url for source in read_site(site, BASE).sources}
    assert urls == {f"{BASE}guide%5Csetup.html", f"{BASE}CON.html", f"{BASE}a%20b%20&%20c.html", f"{BASE}C:page.html"}


@pytest.mark.slow
def test_a_site_of_fifty_thousand_pages(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for folder in range(500):
        place = site / f"Section {folder}"
        place.mkdir(parents=True)
        for page in range(100):
            (place / f"Page\\{page}.html").write_text(BARE.format(f"Page {folder} {page}"))
    reading = read_site(site, BASE)
    (warning,) = reading.warnings
    assert len(reading.sources) == 50_000
    assert "(50,000 in all) have no <main>" in warning
    assert f"{BASE}Section%20499/Page%5C99.html" in {source.url for source in reading.sources}
    seen = check(site, Settings(base_url=BASE), with_index=False, environ={})
    assert (seen.pages, set(seen.counts)) == (50_000, {"no_widget", "guessed"})


def test_ten_planted_faults_are_each_found_and_nothing_else(tmp_path: Path) -> None:
    site = tmp_path / "site"
    names = [f"p{n}" for n in range(10)]
    for name in ("index.html", *(f"{name}/index.html" for name in names)):
        write(site, name, '<h2 id="green">Green</h2><p>Eighty degrees.</p>')
    inject(site, widget_files("/"))
    index(site)
    assert says(found(site)) == {}

    def edit(name: str, old: str, new: str) -> None:
        file = site / name / "index.html"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    edit("p0", 'type="module" src=', "src=")
    edit("p1", "<script", "<!-- <script")
    edit("p2", "Eighty degrees.", "Ninety degrees.")
    edit("p3", 'id="green"', 'id="black"')
    edit("p4", "Eighty", '<a href="#nowhere">Eighty</a>')
    edit("p5", "Eighty", '<a href="../gone/">Eighty</a>')
    edit("p6", f"{BASE}p6/", f"{BASE}p7/")
    (site / "keys.txt").write_text("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzVvKqLm9T\n")
    (site / "out").symlink_to("/etc/hostname")
    write(site, "new/index.html")
    seen = says(found(site))
    assert any("p0/" in line for line in seen["broken_widget"])
    assert any("p1/" in line for line in seen["no_widget"])
    assert any("new/" in line for line in seen["no_widget"])
    assert any("p2/" in line for line in seen["stale"])
    assert any("p3/" in line and "#green" in line for line in seen["dead_citation"])
    assert any("p4/" in line and "#nowhere" in line for line in seen["dead_anchor"])
    assert any("p5/" in line and "../gone/" in line for line in seen["dead_link"])
    assert any("p6/" in line for line in seen["two_pages"])
    assert [line for line in seen["link_out"] if "out" in line]
    assert any("keys.txt" in line for line in seen["secret"])
    assert any("new/" in line for line in seen["unindexed"])
    quiet = [line for lines in seen.values() for line in lines if any(f"p{n}/" in line for n in (8, 9))]
    assert quiet == []
