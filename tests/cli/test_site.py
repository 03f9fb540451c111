"""`widget` and `inject` as commands: their output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chapterverse.site import starters
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


def test_inject_says_once_where_a_setting_is_from(site: Path) -> None:
    assert run("inject", site, "--endpoint", "/", "-v")[1].count("endpoint = '/' is from a flag.") == 1
