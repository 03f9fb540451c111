"""`check` as a command: its output, exit codes and baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chapterverse.ext.site_check.findings import Findings
from cli.shell import run
from cli.test_site import PAGE
from cli.test_site import site as site


def test_a_folder_that_is_none_fails_in_one_sentence(tmp_path: Path) -> None:
    assert run("check", tmp_path / "none", code=1)[1].count("\n") == 1


def test_check_ends_with_3_where_anything_is_found_and_0_where_nothing_is(site: Path) -> None:
    out, _ = run("check", site, "--no-index", code=3)
    assert "Pages without the widget: 1 (no_widget)." in out
    assert out.endswith("1 pages checked: 1 error.\n")
    document = json.loads(run("check", site, "--no-index", "--json", code=3)[0])
    assert (document["pages"], document["count"]) == (1, 1)
    assert document["findings"][0]["examples"] == [{"file": "index.html", "says": "index.html has no widget."}]
    run("inject", site, "--endpoint", "/")
    assert run("check", site, "--no-index")[0] == "1 pages checked: nothing wrong.\n"
    run("index", site, "--store", f"edge:{site.parent / 'index'}")
    assert json.loads(run("check", site, "--store", f"edge:{site.parent / 'index'}", "--json")[0])["findings"] == []


def test_check_ends_with_0_where_no_reader_would_notice(site: Path) -> None:
    run("inject", site, "--endpoint", "/")
    (site / "odd.html").write_bytes(b"PK\0\0")
    out, _ = run("check", site, "--no-index")
    assert out.startswith("Warning: Files that can't be read: 1 (unreadable).")
    assert out.endswith("1 pages checked: 1 warning.\n")


def link(site: Path, *targets: str) -> None:
    """Give the page a chat and links."""
    links = "".join(f'<a href="{target}">x</a>' for target in targets)
    (site / "index.html").write_text(PAGE.replace("</body>", f"{links}</body>"))
    run("inject", site, "--endpoint", "/")


def test_links_that_generators_check_themselves_fail_only_by_wish(site: Path) -> None:
    link(site, "gone/", "#gone")
    check = ("check", site, "--no-index")
    assert run(*check)[0].endswith("1 pages checked: 2 warnings.\n")
    run(*check, "--fail-on", "warning", code=3)
    out, _ = run(*check, "--fail-on", "warning", "--ignore", "dead_link", "--ignore", "dead_anchor")
    assert out == "1 pages checked: nothing wrong.\n"
    (site / "index.html").write_text(PAGE)
    run(*check, "--fail-on", "never")
    _, err = run(*check, "--ignore", "dead_links", code=2)
    assert "There is no kind of finding 'dead_links': the nearest is dead_link." in " ".join(err.split())


def test_only_findings_that_are_not_in_the_baseline_fail(site: Path) -> None:
    link(site, "gone/", "lost/")
    file = site.parent / "baseline.json"
    check = ("check", site, "--no-index", "--fail-on", "warning")
    out, err = run(*check, "--write-baseline", file)
    assert err == f"{file}: 2 findings are accepted.\n"
    assert out.endswith("Left out by the baseline: 2. Mended since: 0.\n1 pages checked: nothing wrong.\n")
    written = file.read_bytes()
    run(*check, "--write-baseline", file)
    assert file.read_bytes() == written
    link(site, "gone/", "new/")
    document = json.loads(run(*check, "--baseline", file, "--json", code=3)[0])
    assert [e["says"].partition(",")[0] for f in document["findings"] for e in f["examples"]] == [
        "index.html links to new/"
    ]
    assert document["known"] == {"left_out": 1, "mended": 1}


def test_no_baseline_accepts_a_secret_or_a_link_out_of_the_site(site: Path) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
    file = site.parent / "baseline.json"
    link(site, "gone/")
    (site / "config.js").write_text(f'key = "{key}"')
    (site / "out.txt").symlink_to("/etc/hostname")
    out, err = run("check", site, "--no-index", "--write-baseline", file, code=3)
    assert err == f"{file}: 1 findings are accepted.\n"
    assert "(secret)" in out
    # Not by hand either.
    known = json.loads(file.read_text())
    report = json.loads(run("check", site, "--no-index", "--json", code=3)[0])["findings"]
    known["findings"] |= {f["kind"]: [e["says"] for e in f["examples"]] for f in report if f["rank"] == "error"}
    file.write_text(json.dumps(known))
    document = json.loads(run("check", site, "--no-index", "--baseline", file, "--json", code=3)[0])
    assert {f["kind"] for f in document["findings"]} == {"secret", "link_out"}


def test_a_baseline_made_with_an_index_serves_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = '<main><h1 id="a">Tea</h1><p>Hot tea.</p><a href="gone/">Gone</a></main>'
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text(f"<html><body>{page}</body></html>")
    run("index", "site", "--base-url", "https://tea.example/")
    run("inject", "site", "--endpoint", "/")
    run("check", "site", "--write-baseline", "known.json")
    out, _ = run("check", "site", "--no-index", "--baseline", "known.json")
    assert "dead_link" not in out
    assert "site.invalid" not in run("check", "site", "--no-index")[0]


@pytest.mark.parametrize("name", ["", ".", "/", "missing/a.json"])
def test_a_baseline_that_can_not_be_written_is_named_as_given(site: Path, name: str) -> None:
    err = run("check", site, "--no-index", "--write-baseline", name, code=1)[1]
    assert err.startswith(f"Error: {Path(name)} can't be written: ")


def test_a_written_baseline_keeps_its_link_and_is_the_only_one(site: Path) -> None:
    file, alias = site.parent / "real.json", site.parent / "alias.json"
    alias.symlink_to(file)
    run("check", site, "--no-index", "--write-baseline", alias)
    assert alias.is_symlink()
    assert file.is_file()
    run("check", site, "--no-index", "--write-baseline", alias, "--baseline", file, code=2)


def test_a_number_of_pages_may_change_in_a_finding_of_the_baseline() -> None:
    one, two = Findings(), Findings()
    one.add("no_endpoint", "c.js", "c.js names no API, so the chat of 2 pages can't answer.")
    two.add("no_endpoint", "c.js", "c.js names no API, so the chat of 1,200 pages can't answer.")
    assert one.baseline() == two.baseline()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "FILE can't be read: No such file or directory."),
        ("{", "FILE is no baseline: write one with --write-baseline FILE."),
        ("[]", "FILE is no baseline: write one with --write-baseline FILE."),
        ('{"site": "https://tea.example/", "findings": {"dead_link": 1}}', "FILE is no baseline: write one with"),
        ('{"site": "https://tea.example/", "findings": {"dead_link": "x"}}', "FILE is no baseline: write one with"),
        (
            '{"site": "https://coffee.example/", "findings": {}}',
            "FILE is the baseline of https://coffee.example/, and not of https://tea.example/: use --write-baseline.",
        ),
    ],
)
def test_a_baseline_that_can_not_be_used_is_refused(site: Path, text: str | None, complaint: str) -> None:
    file = site.parent / "baseline.json"
    if text is not None:
        file.write_text(text)
    out, err = run("check", site, "--no-index", "--baseline", file, code=1)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: " + complaint.replace("FILE", str(file)))


def test_check_of_an_unknown_store_fails(site: Path) -> None:
    assert run("check", site, "--store", "nonsense:x", code=1)[1].startswith("Error: CHAPTERVERSE_STORE is")
