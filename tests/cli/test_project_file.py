"""`chapterverse.toml` and `[tool.chapterverse]`: what each command takes from them, and what overrides them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.indexing.options import Options, ProjectFile, complete, find_kinds
from chapterverse.manifests import SETTINGS
from chapterverse.store import open_store
from cli.shell import Shell, run

BARE = '<html><head><title>T</title></head><body><main><h1 id="a">Tea</h1><p>Hot tea.</p></main></body></html>'


def write(shell: Shell, text: str, name: str = "chapterverse.toml") -> None:
    (shell.root / name).write_text(text, encoding="utf-8")


def bases(shell: Shell, store: str) -> list[str]:
    from chapterverse.settings import Settings

    return [head.base_url for head in open_store(Settings(store=f"edge:{shell.root / store}")).heads()]


def test_every_command_reads_the_file(shell: Shell) -> None:
    write(
        shell,
        'store = "edge:here"\nendpoint = "/"\nexclude = ["clean/"]\nagents = false\n[widget]\ntitle = "Ask tea"\n',
    )
    folder = shell.root / "site" / shell.json("inject", "site")["folder"]
    assert '"title": "Ask tea"' in (folder / "config.js").read_text("utf-8")
    assert not list(shell.root.glob("site/**/*.md"))
    assert shell.json("index", "site")["pages"]["new"] == 2
    assert (shell.root / "here").is_dir()
    assert shell.json("check", "site")["findings"] == []
    assert len(shell.json("status")["files"]) == 2
    assert [row["rank"] for row in shell.json("search", "green tea")[0]["results"]][:1] == [1]


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(shell: Shell) -> None:
    write(shell, 'store = "edge:file"\n')
    shell.run("index", "site")
    shell.run("index", "site", environment={"CHAPTERVERSE_STORE": "edge:variable"})
    shell.run("index", "site", "--store", "edge:flag", environment={"CHAPTERVERSE_STORE": "edge:other"})
    assert {p.name for p in shell.root.iterdir() if p.is_dir()} == {"site", "file", "variable", "flag"}
    said = shell.run("status", "-v").stderr
    assert "store = 'edge:" in said
    assert "is from chapterverse.toml." in said
    environment = {"CHAPTERVERSE_OPENAI_URL": "https://me:hush@x.example", "OPENAI_API_KEY": "hush-2"}
    said = shell.run("status", "-v", "--store", "edge:flag", environment=environment).stderr
    assert "openai_url = 'https://…@x.example' is from CHAPTERVERSE_OPENAI_URL." in said
    assert "store = 'edge:flag' is from a flag." in said
    assert "hush" not in said


def test_the_nearest_file_in_the_repository_counts(shell: Shell) -> None:
    write(shell, '[project]\nname = "tea"\n\n[tool.chapterverse]\nstore = "edge:above"\n', "pyproject.toml")
    (shell.root / "docs").mkdir()
    inner = Shell(shell.root / "docs")
    assert "store" not in ProjectFile.find(inner.root).settings
    (shell.root / ".git").mkdir()
    # Paths are those of the file's folder.
    assert ProjectFile.find(inner.root).settings == {"store": f"edge:{shell.root.resolve() / 'above'}"}
    write(inner, 'store = "edge:near"\n')
    assert ProjectFile.find(inner.root).settings == {"store": f"edge:{inner.root.resolve() / 'near'}"}


def test_it_knows_each_option_and_setting_but_secrets() -> None:
    known = find_kinds([])
    secrets = {name for name, setting in SETTINGS.items() if setting.kind == "secret"}
    assert "signing_key" in secrets
    # These are places, and a secret only with a password.
    assert secrets & known.keys() == {"ledger", "records"}
    assert {"base_url", "generator", "exclude", "widget", "chunk_tokens"} <= known.keys()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('\nstor = "x"', "line 2: There is no option 'stor': the nearest is store."),
        ("publish = 'yes'", "line 1: The option 'publish' must be true or false."),
        ('exclude = "x"', "line 1: The option 'exclude' must be a list of patterns."),
        ("include = ['a/', 1]", "line 1: The option 'include' must be a list of patterns."),
        ("\nexclude = [[]]", "line 2: The option 'exclude' must be a list of patterns."),
        ("widget = 1", "line 1: The option 'widget' must be a mapping."),
        ("\nchunk_tokens = 5", "line 2: chunk_tokens must be between 32 and 512."),
        ("\nendpoint = 'foo bar'", "line 2: The endpoint must be an address like"),
        ("\nbase_url = 'ftp://x'", "line 2: The base URL must be an address like"),
        ('store = "edge:a\\u0000b"', "line 1: The option 'store' holds a NUL character."),
        (f"x = {'9' * 5000}", "can't be read: Exceeds the limit"),
        (f"x = {'[' * 3000}", "can't be read: maximum recursion depth exceeded"),
        ("site = 1", "line 1: The option 'site' must be a text."),
        ("faq_top_k = 200", "line 1: CHAPTERVERSE_FAQ_TOP_K must be a whole number from 1 to 10."),
        ("\n[documents]\nfaq_topk = 3", "line 3: There is no option 'faq_topk' of documents"),
        ("documents = { faq_topk = 3 }", "line 1: There is no option 'faq_topk' of documents"),
        ("[widget]\ntitel = 'x'", "line 2: There is no option 'widget.titel'"),
        ("site = 'a'\nalso = [1]", "line 2: also: '1' is no source"),
        (
            'cohere_api_key = "sk-1"',
            "line 1: cohere_api_key may hold a secret, and this file is committed: set",
        ),
        (
            'ledger = "postgresql://me:sk-1@x"',
            "line 1: ledger may hold a secret, and this file is committed: set",
        ),
        ('api_token = "sk-1"', "line 1: 'api_token' names a secret, and this file is committed"),
        ('openai_url = "https://me:sk-1@x.example"', "line 1: 'openai_url' holds a key or a password"),
        ('openai_url = "https://me:sk-1/w@x.example"', "line 1: 'openai_url' holds a key or a password"),
        ('openai_url = "https://sk-1@x.example"', "line 1: 'openai_url' holds a key or a password"),
        ('store = "qdrant:https://x?api-key=sk-1"', "line 1: 'store' holds a key or a password"),
        ('also = [{url = "https://x/y?token=sk-1"}]', "line 1: 'also' holds a key or a password"),
        (
            f'generator = "openai:sk-proj-{"sk-1B2c3D4e5F6g7H8i9J" * 3}"',
            "line 1: 'generator' holds a key or a password",
        ),
        ("x = = 3", "can't be read: Invalid value (at line 1, column 5)."),
    ],
)
def test_what_can_not_be_used_is_refused_with_its_line(shell: Shell, text: str, complaint: str) -> None:
    write(shell, text)
    sentence = shell.refused("status")
    assert sentence.startswith(f"chapterverse.toml {complaint}")
    assert "sk-1" not in sentence


def test_a_place_without_a_password_is_no_secret(shell: Shell) -> None:
    write(
        shell,
        'ledger = "sqlite:x.db"\nrecords = "dynamodb:T"\nopenai_url = "http://localhost:8080/@me"\n'
        'also = ["https://social.example/@me?page=2"]\n',
    )
    settings = ProjectFile.find(shell.root).settings
    assert (settings["ledger"], settings["records"]) == (f"sqlite:{shell.root.resolve() / 'x.db'}", "dynamodb:T")


def test_nothing_secret_is_printed(indexed: Shell) -> None:
    for value in (
        "https://me:hush@hush@x.example",
        "https://x.example?key=hush&a=hush",
        "https://me:hu/hush@x.example",
    ):
        said = indexed.run("status", "-v", environment={"CHAPTERVERSE_OPENAI_URL": value}).stderr
        assert "openai_url = 'https://" in said
        assert "hush" not in said


def test_paths_start_at_the_file(shell: Shell) -> None:
    write(shell, 'embedder = "fastembed:./model"\nreading_model = "rm"\npreview_store = "edge:p"\n')
    (inner := shell.root / "site").mkdir(exist_ok=True)
    (shell.root / ".git").mkdir()
    root = shell.root.resolve()
    assert ProjectFile.find(inner).settings == {
        "embedder": "fastembed:./model",
        "reading_model": str(root / "rm"),
        "preview_store": f"edge:{root / 'p'}",
    }
    write(shell, 'embedder = "fastembed:BAAI/bge-small-en-v1.5"\nreading_model = "none"\n')
    named = {"embedder": "fastembed:BAAI/bge-small-en-v1.5", "reading_model": "none"}
    assert ProjectFile.find(inner).settings == named


def test_a_source_that_is_not_there_yet_is_missed_by_index_alone(shell: Shell) -> None:
    write(shell, 'also = ["built/api.txt"]\n')
    assert "also names the file built/api.txt, which is not there." in shell.refused("index", "site")
    (shell.root / "built").mkdir()
    (shell.root / "built/api.txt").write_text("Endpoints of tea.")
    shell.run("index", "site")
    (shell.root / "built/api.txt").unlink()
    shell.run("search", "green tea")


def test_a_broken_file_of_another_program_is_its_own_matter(indexed: Shell) -> None:
    file = indexed.root / "pyproject.toml"
    try:
        file.write_text("[broken\n")
        indexed.run("status")
        file.write_text("[broken\n[tool.chapterverse]\n")
        assert "pyproject.toml can't be read" in indexed.refused("status")
        file.write_text("tool = 1\n")
        indexed.run("status")
        file.write_text("\n[tool]\nchapterverse = 1\n")
        assert indexed.refused("status") == "pyproject.toml line 3: tool.chapterverse must be a table."
    finally:
        file.unlink()


def test_a_generators_configuration_may_be_odd(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no option '1'"):
        complete({1: 2}, tmp_path, "conf.py", print)  # type: ignore[dict-item]


@pytest.mark.parametrize("given", [{}, {"endpoint": "/", "exclude": ["b/"]}, {"endpoint": "https://a.example"}])
def test_a_generators_configuration_wins_over_the_file_and_says_so(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "chapterverse.toml").write_text(
        'endpoint = "https://a.example"\nexclude = ["a/"]\nchunk_tokens = 99\nbase_url = "https://tea.example"\n'
    )
    told: list[str] = []
    options = complete(given, tmp_path, "conf.py", told.append, "https://tea.example/")
    settings = options.settings(tmp_path, "Tea", None)
    assert (options.chunk_tokens, settings.site) == (99, "tea")
    if "exclude" in given:
        assert (settings.endpoint, options.exclude) == ("/", ["b/"])
        assert told == ["conf.py overrides endpoint, exclude of chapterverse.toml."]
    else:
        assert (settings.endpoint, options.exclude, told) == ("https://a.example", ["a/"], [])


def test_tables_of_both_are_merged_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "chapterverse.toml").write_text(
        '[widget]\ntitle = "Tea"\ngreeting = "Hi"\n[widget.strings]\nwait = "b"\n'
    )
    told: list[str] = []
    options = complete({"widget": {"title": "Kettle", "placeholder": "Ask"}}, tmp_path, "mkdocs.yml", told.append)
    assert options.widget == {
        "title": "Kettle", "greeting": "Hi", "strings": {"wait": "b"}, "placeholder": "Ask",
    }  # fmt: skip
    assert told == ["mkdocs.yml overrides widget.title of chapterverse.toml."]


def test_a_variable_wins_over_a_generators_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAPTERVERSE_ENDPOINT", "https://api.example")
    assert Options.of({"endpoint": "/"}).settings(tmp_path, "Tea", None).endpoint == "https://api.example"


def test_the_address_of_a_site_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for site, names in (("site", ("index", "a")), ("other", ("index", "b", "c", "d"))):
        (tmp_path / site).mkdir()
        for name in names:
            (tmp_path / site / f"{name}.html").write_text(BARE)
    run("index", "site", "--base-url", "https://tea.example/")
    (tmp_path / "site/new.html").write_text(BARE)
    run("inject", "site", "--endpoint", "/")
    assert "https://tea.example/new" in (tmp_path / "site/llms.txt").read_text()
    run("index", "site")
    assert run("check", "site", "--fail-on", "note")[0].endswith("3 pages checked: nothing wrong.\n")
    # The index of another site says nothing of this one.
    assert "states no address" in run("index", "other", code=1)[1]
    # Nor does another site in the store, and two of these files do.
    run("index", "other", "--base-url", "https://pot.example/", "--site", "pot")
    run("index", "site")
    run("index", "site", "--base-url", "https://old.example/", "--site", "old")
    assert "say which with --site and --docs-version." in run("index", "site", code=1)[1]
    assert "CHAPTERVERSE_STORE is" in run("index", "site", "--store", "nonsense:x", code=1)[1]


def test_the_address_of_markdown_and_of_a_plugins_site_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/tea.md").write_text("# Tea\n\nHot tea.\n")
    run("index", "docs", "--source", "--base-url", "https://tea.example/")
    assert "Indexed 1 pages (0 new" in run("index", "docs", "--source")[1]
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text(BARE)
    (tmp_path / "options.json").write_text('{"endpoint": "/", "store": "edge:there", "strict": true}')
    publish = ("publish", "site", "--config", "options.json")
    run(*publish, "--base-url", "https://tea.example/")
    said = run(*publish)[1]
    assert "Indexed 1 pages (0 new" in said
    assert "Warning" not in said
