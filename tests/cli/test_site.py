"""`widget`, `inject` and `check` as commands: their output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chapterverse.site import starters
from chapterverse.site.findings import Findings
from chapterverse.widget.bundle import names, titles
from cli.shell import Shell, run
from projects import starters_in

PAGE = """<!doctype html><html><head><title>T</title><link rel="canonical" href="https://tea.example/"></head>
<body><h1 id="t">Tea</h1></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text(PAGE)
    return tmp_path / "site"


def test_inject_tells_what_it_did_and_json_is_one_document(site: Path) -> None:
    out, err = run("inject", site, "--endpoint", "https://api.example/stage/")
    assert (out, err) == ("", "1 pages changed, 0 unchanged, 0 skipped.\n")
    document = json.loads(run("inject", site, "--endpoint", "https://api.example/stage/", "--json")[0])
    assert document["pages"] == {"seen": 1, "changed": 0, "unchanged": 1, "skipped": 0}
    assert document["warnings"] == []
    config = (site / document["folder"] / "config.js").read_text()
    assert json.loads(config.removeprefix("export default ").rstrip(";\n")) == {
        "endpoint": "https://api.example/stage",
        "titles": dict(titles()),
        "starters_file": "../starters.js",
    }


def test_an_empty_chat_gets_its_questions_whether_the_index_comes_before_or_after(tmp_path: Path) -> None:
    shell = Shell.with_site(tmp_path)
    shell.write("pour/index.html", "Pouring", '<h2 id="drip">How to pour without a drip</h2><p>Hold the lid.</p>')
    found = []
    # To read an embedded index no secrets are needed, and no permission to publish.
    own = {"CHAPTERVERSE_SECRETS_ARN": "arn:aws:ssm:eu-central-1:1:parameter/none", "CHAPTERVERSE_PUBLISH": "0"}
    for _ in range(2):
        assert "questions" not in shell.run("inject", "site", "--endpoint", "/", environment=own).stderr
        found.append(starters_in(tmp_path / "site/assets/chapterverse"))
        shell.run("index", "site")
        found.append(starters_in(tmp_path / "site/assets/chapterverse"))
    offered = found.pop()
    assert "How do I pour without a drip?" in offered[""]
    assert found == [{}, offered, offered]


@pytest.mark.parametrize("heading", ["How to warm a pot?", "Warming the pot?"])
def test_a_question_keeps_its_one_mark(heading: str) -> None:
    assert starters._english_question(heading, ["warm"]) == heading


def test_the_endpoint_may_come_from_the_environment(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAPTERVERSE_ENDPOINT", "https://env.example")
    folder = json.loads(run("inject", site, "--json")[0])["folder"]
    assert '"endpoint": "https://env.example"' in (site / folder / "config.js").read_text()


@pytest.mark.parametrize(
    ("endpoint", "complaint"),
    [
        ("api.example.com", "must be an address"),
        ("javascript:alert(1)", "must be an address"),
        ("//api.example.com", "must be an address"),
        ("https://me:s3cret@api.example.com", "user name or password"),
        ("https://api.example.com?key=s3cret", "without a query"),
        ("https://api.example.com/v1", "without /v1"),
    ],
)
@pytest.mark.parametrize("command", ["inject", "widget"])
def test_an_endpoint_that_is_none_is_a_mistake_in_usage(
    site: Path, command: str, endpoint: str, complaint: str
) -> None:
    out, err = run(command, site, "--endpoint", endpoint, code=2)
    assert complaint in " ".join(err.split())
    assert "s3cret" not in out + err
    assert (site / "index.html").read_text() == PAGE


def test_without_an_endpoint_nothing_is_done(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAPTERVERSE_ENDPOINT", raising=False)
    assert "Give --endpoint URL" in run("inject", site, code=2)[1]


def test_a_folder_that_is_none_fails_in_one_sentence(tmp_path: Path) -> None:
    _, err = run("inject", tmp_path / "none", "--endpoint", "/", code=1)
    assert err == f"Error: {tmp_path / 'none'} is not a folder.\n"
    assert run("check", tmp_path / "none", code=1)[1].count("\n") == 1


def test_widget_writes_its_files_once_and_says_the_tag(tmp_path: Path) -> None:
    folder = tmp_path / "static/chat"
    out, err = run("widget", folder, "--endpoint", "/", "--title", "Ask us")
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*.js")} == set(names())
    assert out == '<script type="module" src="chat/launcher.js"></script>\n'
    assert f"{len(names())} of {len(names())} files written" in err
    assert '"title": "Ask us"' in (folder / "config.js").read_text()
    document = json.loads(run("widget", folder, "--endpoint", "/", "--title", "Ask us", "--json")[0])
    assert (document["written"], document["files"]) == (0, sorted(names()))
    assert json.loads(run("widget", folder, "--endpoint", "https://new.example", "--json")[0])["written"] == 1


def test_widget_overwrites_no_foreign_file(tmp_path: Path) -> None:
    (tmp_path / "config.js").write_text("mine")
    _, err = run("widget", tmp_path, "--endpoint", "/", code=1)
    assert err == f"Error: {tmp_path / 'config.js'} is there already and not the widget's: name a folder of its own.\n"
    assert [p.name for p in tmp_path.iterdir()] == ["config.js"]
    assert (tmp_path / "config.js").read_text() == "mine"


@pytest.mark.parametrize("name", ["chat.yml", "chat.json"])
@pytest.mark.parametrize("command", ["inject", "widget"])
def test_options_come_from_a_file_and_flags_win(site: Path, tmp_path: Path, command: str, name: str) -> None:
    options = {"title": "From the file", "starters": ["Tea?"], "layout": "side", "strings": {"403": "Not here."}}
    (tmp_path / name).write_text(json.dumps(options))
    folder = site if command == "inject" else tmp_path / "chat"
    flags = ("--config", tmp_path / name, "--endpoint", "https://api.example")
    run(command, folder, *flags)
    more = {"starters_file": "../starters.js"} if command == "inject" else {}
    assert configured(folder) == {"endpoint": "https://api.example", **options, **more}
    run(command, folder, *flags, "--title", "From the flag", "--docs-version", "2.0")
    expected = {"endpoint": "https://api.example", **options, **more, "title": "From the flag", "version": "2.0"}
    assert configured(folder) == expected


def configured(folder: Path) -> object:
    """Return the configuration of the only widget below a folder."""
    (file,) = folder.rglob("config.js")
    return json.loads(file.read_text("utf-8").removeprefix("export default ").rstrip(";\n"))


def test_the_docs_version_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAPTERVERSE_DOCS_VERSION", "1.2")
    run("widget", tmp_path / "chat", "--endpoint", "/")
    assert configured(tmp_path / "chat") == {"endpoint": "/", "titles": dict(titles()), "version": "1.2"}


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--config", "left.yml"), "layout must be floating or side."),
        (("--config", "list.yml"), "list.yml must hold options as YAML or JSON, such as `title: Ask us`."),
        (("--config", "none.yml"), "does not exist"),
        (("--config", "."), "is a directory"),
        (("--title", "x" * 101), "title must be a text of at most 100 characters."),
        (("--docs-version", "2" * 65), "The docs version must be a text of at most 64 characters."),
        (("--docs-version", "2\n0"), "The docs version must be a text of at most 64 characters."),
    ],
)
@pytest.mark.parametrize("command", ["inject", "widget"])
def test_an_option_that_can_not_be_used_is_a_mistake_in_usage(
    site: Path, monkeypatch: pytest.MonkeyPatch, command: str, flags: tuple[str, str], complaint: str
) -> None:
    monkeypatch.chdir(site.parent)
    Path("left.yml").write_text("layout: left\n")
    Path("list.yml").write_text("- layout\n")
    out, err = run(command, site, "--endpoint", "/", *flags, code=2)
    assert out == ""
    assert complaint in " ".join(err.split())
    assert [p.name for p in site.rglob("*")] == ["index.html"]
    assert (site / "index.html").read_text() == PAGE


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


def test_inject_says_once_where_a_setting_is_from(site: Path) -> None:
    assert run("inject", site, "--endpoint", "/", "-v")[1].count("endpoint = '/' is from a flag.") == 1


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
