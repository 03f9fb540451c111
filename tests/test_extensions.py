"""Extensions of other distributions: what they offer works, and one that is broken stops nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from chapterverse import extensions
from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.manifests import CORE, EXTENSIONS
from chapterverse.settings import Settings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "site_example" / "docs" / "project" / "extensions.md").read_text(encoding="utf-8")


MAKE = "from chapterverse import Command, Extension, Setting\nEXTENSION = Extension('x', "
TABLES = "offers, lookups, routes and events are tables of texts, and commands one of `Command`"


def install(folder: Path, name: str, code: str, *values: str) -> None:
    """Make a module, and a distribution with these entry points, in a folder of the path."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = (f"{name}{number} = {value}\n" for number, value in enumerate(values or (f"{name}:EXTENSION",)))
    (info / "entry_points.txt").write_text(f"[chapterverse.extensions]\n{''.join(lines)}", encoding="utf-8")


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


def command(*arguments: str) -> str:
    return f"from chapterverse.cli import main; main({[*arguments]!r})"


@pytest.fixture
def documented(tmp_path: Path) -> Path:
    """The extension of the documentation, installed."""
    code, entry, chosen = re.findall(r"```(?:python|toml)\n(.*?)```", PAGE, re.DOTALL)
    assert chosen == "teapot_heat = 95\n"
    assert json.loads(entry.rpartition("=")[2]) == "teapot:EXTENSION"
    install(tmp_path, "teapot", code)
    return tmp_path


def test_the_documented_command_runs(documented: Path) -> None:
    done = run(documented, command("brew"))
    assert (done.returncode, done.stdout) == (0, "The kettle sings.\n"), done.stderr
    assert "brew" in run(documented, command("--help")).stdout


def test_the_documented_route_answers(documented: Path) -> None:
    program = """
from fastapi.testclient import TestClient
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
client = TestClient(create_app(settings=Settings()))
print(client.get("/v1/teapot", headers={"host": "127.0.0.1"}).json())
"""
    done = run(documented, program)
    assert done.stdout == "{'sings': True}\n", done.stderr


def test_the_documented_store_opens_by_its_form(documented: Path) -> None:
    program = """
from chapterverse.settings import Settings
from chapterverse.store import open_store
print(open_store(Settings(store="teapot:kitchen")).identity)
"""
    done = run(documented, program)
    assert done.stdout == "teapot kitchen at 80 degrees\n", done.stderr


OPENED = """
from chapterverse.cli.parameters import settings_from
from chapterverse.store import open_store
print(open_store(settings_from(store="teapot:kitchen")).identity)
"""


def test_the_documented_setting_is_read(documented: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (documented / "chapterverse.toml").write_text("teapot_heat = 95\n", encoding="utf-8")
    done = run(documented, OPENED)
    assert (done.stdout, done.stderr) == ("teapot kitchen at 95 degrees\n", "")
    monkeypatch.setenv("CHAPTERVERSE_TEAPOT_HEAT", "70")
    done = run(documented, OPENED)
    assert (done.stdout, done.stderr) == ("teapot kitchen at 70 degrees\n", "")
    done = run(documented, command("status", "-v", "--store", "teapot:kitchen"))
    assert "teapot_heat = 70 is from CHAPTERVERSE_TEAPOT_HEAT." in done.stderr
    monkeypatch.setenv("CHAPTERVERSE_TEAPOT_HEAT", "101")
    done = run(documented, command("status", "--store", "teapot:kitchen"))
    assert done.stderr == "Error: CHAPTERVERSE_TEAPOT_HEAT must be a whole number from 1 to 100.\n"


def test_an_unknown_variable_may_be_near_one_of_an_extension(documented: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAPTERVERSE_TEAPOT_HEET", "70")
    done = run(documented, OPENED)
    assert done.stdout == "teapot kitchen at 80 degrees\n"
    assert "no variable 'CHAPTERVERSE_TEAPOT_HEET': the nearest is CHAPTERVERSE_TEAPOT_HEAT." in done.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("teapot_heat = 101", "teapot_heat must be a whole number from 1 to 100."),
        ('teapot_heat = "95"', "The option 'teapot_heat' must be a number."),
        ("teapot_heta = 95", "There is no option 'teapot_heta': the nearest is teapot_heat."),
        ("kettle_heat = 95", "There is no option 'kettle_heat': the nearest is teapot_heat."),
    ],
)
def test_a_wrong_value_in_the_file_is_named_with_its_line(documented: Path, line: str, says: str) -> None:
    (documented / "chapterverse.toml").write_text(f'site = "tea"\n{line}\n', encoding="utf-8")
    done = run(documented, command("status", "--store", "teapot:kitchen"))
    assert done.stderr == f"Error: chapterverse.toml line 2: {says}\n"


def test_a_setting_of_an_extension_that_is_not_installed_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAPTERVERSE_TEAPOT_HEAT", "70")
    (tmp_path / "chapterverse.toml").write_text("teapot_heat = 95\n", encoding="utf-8")
    done = run(tmp_path, command("status"))
    assert "There is no variable 'CHAPTERVERSE_TEAPOT_HEAT': the nearest is " in done.stderr
    assert "Error: chapterverse.toml line 1: There is no option 'teapot_heat': the nearest is " in done.stderr


def test_a_secret_of_an_extension_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
from chapterverse import Extension, Setting
KEY = Setting("jug_key", "", "The key of the jug.", "secret")
EXTENSION = Extension("jug", settings=(KEY,))
"""
    install(tmp_path, "jug", code)
    monkeypatch.delenv("CHAPTERVERSE_JUG_KEY", raising=False)
    program = """
from chapterverse.settings import Settings
from jug import KEY
variable = {"CHAPTERVERSE_JUG_KEY": "hush"}
for settings in (Settings.from_environment(variable), Settings().with_secrets(variable)):
    print(settings[KEY], settings.secrets, "hush" in repr(settings))
print(Settings.from_environment(variable).with_secrets({"CHAPTERVERSE_JUG_KEY": "other"})[KEY])
"""
    done = run(tmp_path, program)
    known = "hush {'CHAPTERVERSE_JUG_KEY': 'hush'} False"
    assert done.stdout.splitlines() == [known, known, "hush"], done.stderr
    (tmp_path / "chapterverse.toml").write_text('jug_key = "hush"\n', encoding="utf-8")
    done = run(tmp_path, command("status"))
    assert done.stderr == (
        "Error: chapterverse.toml line 1: jug_key may hold a secret, and this file is committed: set "
        "CHAPTERVERSE_JUG_KEY instead.\n"
    )


ASKED = """
import sys
from fastapi.testclient import TestClient
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
sys.path.insert(0, {tests!r})
from pathlib import Path
from api import quill
client = TestClient(create_app(settings=quill.publish(Path("index"))))
asked = {{"query": "How do I clear the cache?"}}
print(client.post("/v1/chat", json=asked, headers={{"host": "127.0.0.1"}}).json()["status"])
"""


def test_the_documented_event_is_called_and_one_that_fails_stops_no_answer(documented: Path) -> None:
    code = """
from chapterverse import Extension
def fail(answer):
    raise ValueError(answer.query.query)
EXTENSION = Extension("failing", events={"": "failing:fail"})
"""
    install(documented, "failing", code)
    done = run(documented, ASKED.format(tests=str(ROOT / "tests")))
    assert done.stdout.splitlines()[-1] == "answered", done.stderr
    assert "The kettle sang for answered.\n" in done.stderr
    (error,) = (line for line in (done.stdout + done.stderr).splitlines() if '"event": "error"' in line)
    assert '"code": "event_failed"' in error
    assert '"where": "failing.py:4"' in error
    assert "clear the cache" not in error


def ask(folder: Path, *questions: str, before: Sequence[str] = ()) -> tuple[list[list[object]], str]:
    """Ask each after the questions `before`.

    Return of each answer its status, its last segment, what it cites and how many sources it has; and what was logged.
    """
    (folder / "docs").mkdir()
    (folder / "docs" / "brewing.md").write_text("# Brewing\n\n## Filling\n\nFill the kettle with cold water.\n")
    made = run(folder, command("index", "docs", "--source", "--base-url", "https://site.example/", "--store", "edge:i"))
    assert made.returncode == 0, made.stderr
    program = f"""
import json
from chapterverse.settings import Settings
from chapterverse_api.contract import ChatQuery, Message
from chapterverse_api.service import Service
service = Service.open(Settings(store="edge:i", reading_model="none"))
before = [Message(role="user", content=text) for text in {before!r}]
for question in {questions!r}:
    *_, answer = service.chat(ChatQuery(query=question, conversation_history=before))
    print(json.dumps([answer.status, answer.segments[-1].text, answer.sources_cited, len(answer.source_chunks)]))
"""
    done = run(folder, program)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")], done.stdout + done.stderr


def test_the_documented_lookup_answers_or_adds_a_source(documented: Path) -> None:
    questions = "When does the kettle sing?", "How do I fill the kettle?", "How do I fill it with water?"
    answers, _ = ask(documented, *questions)
    assert answers[0] == ["answered", "The kettle sings at noon.", ["https://kettles.example/"], 1]
    assert [answer[3] for answer in answers[1:]] == [2, 1]
    assert all("cold water" in str(answer[1]) for answer in answers[1:])


def test_a_winning_text_that_may_not_answer_alone_is_a_source(documented: Path) -> None:
    file = documented / "teapot.py"
    code = file.read_text(encoding="utf-8").replace('query.text == "When does the kettle sing?"', "True")
    assert "wins=True" in code
    file.write_text(code, encoding="utf-8")
    answers, _ = ask(documented, "How do I fill it, the kettle?", before=["Where is the kettle?"])
    [[status, text, _, sources]] = answers
    assert (status, "cold water" in str(text), sources) == ("answered", True, 2)


EVENT_AFTER_KEEPING = """
from chapterverse import Extension
from chapterverse_api.ext.conversations.records import open_records
from chapterverse.settings import Settings
def look(answer):
    kept = open_records(Settings(records="sqlite:kept.sqlite")).thread(answer.thread_id)
    print("KEPT", [turn.question for turn in kept.turns])
EXTENSION = Extension("looking", events={"": "looking:look"})
"""


def test_a_conversation_is_kept_before_an_extension_is_called(tmp_path: Path) -> None:
    install(tmp_path, "looking", EVENT_AFTER_KEEPING)
    kept = ASKED.format(tests=str(ROOT / "tests")).replace(
        'Path("index"))', "Path(\"index\")).override(records='sqlite:kept.sqlite')"
    )
    done = run(tmp_path, kept)
    assert "KEPT ['How do I clear the cache?']" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "1 / 0",
        "return None",
        "return LookupResult(wins=True)",
        "return LookupResult(['tea'])",
        "return LookupResult(None)",
    ],
)
def test_a_lookup_that_fails_is_logged_and_the_pages_answer(documented: Path, code: str) -> None:
    file = documented / "teapot.py"
    body = r"(?<=-> LookupResult:\n).*?(?=\n\n)"
    broken, count = re.subn(body, f"    {code}", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert count == 1
    file.write_text(broken, encoding="utf-8")
    [[status, text, *_]], logged = ask(documented, "How do I fill the kettle?")
    assert (status, "cold water" in str(text)) == ("answered", True)
    assert "The extension teapot can't look up a question (" in logged
    assert "Traceback" not in logged


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1 / 0", "division by zero"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("EXTENSION = 7", "broken:EXTENSION is no Extension"),
        (
            "from chapterverse import Extension\nEXTENSION = Extension('x', hooks={})",
            "Extension.__init__() got an unexpected keyword argument 'hooks'",
        ),
        ("from chapterverse import Extension\nEXTENSION = Extension('s3')", "another is named s3"),
        ("raise SystemExit(3)", "3"),
        (f"{MAKE}settings=(7,))", "settings is no tuple of `Setting`"),
        (
            f"{MAKE}settings=(Setting('y_z', '', 'Z.'),))",
            "the name of the setting y_z doesn't begin with x_",
        ),
        (
            f"{MAKE}settings=(Setting('x_z', 0, 'Z.', 'switch'),))",
            "the setting x_z has another prefix, or a default that is no switch",
        ),
        (f"{MAKE}settings=Setting('x_z', '', 'Z.'))", "settings is no tuple of `Setting`"),
        (
            f"{MAKE}settings=(Setting('x_z', 1.5, 'Z.', 'float'),))",
            "the setting x_z has no kind of text, switch, count, secret",
        ),
        (f"{MAKE}settings=(Setting('x_z', '', 'Z.'),) * 2)", "another setting is named x_z"),
        (
            f"{MAKE}settings=(Setting('x_z', 5, 'Z.', 'count'),))",
            "the default of the setting x_z isn't from 1 to its `most`",
        ),
        (f"{MAKE}parts={{'documents': 'x:y'}})", "parts and extra are only for rooms of ours"),
        (f"{MAKE}events={{'': 'x'}})", "the place 'x' is not module:object"),
        (f"{MAKE}commands={{'a': Command('Ask', 'x.y', 'Z.')}})", "the place 'x.y' is not module:object"),
        (f"{MAKE}lookups={{'fact': 'x:y'}})", "there is no type fact of documents"),
        (
            "from chapterverse.manifests import Extension\nEXTENSION = Extension('')",
            "its name isn't a word of letters, digits, _ and -",
        ),
        (f"{MAKE}events={{'x_on': 'x:y'}})", "there is no setting x_on"),
        (f"{MAKE}commands={{'a': ('b', 'c')}})", TABLES),
        (f"{MAKE}offers=['store'])", TABLES),
        (f"{MAKE}lookups=['x:y'])", TABLES),
        (f"{MAKE}routes={{'': 7}})", "a name, a form or a place is no text"),
        (f"{MAKE}commands={{'a': Command('Ask', 'x:y', None)}})", "a name, a form or a place is no text"),
        (f"{MAKE}commands={{'a': Command('Brew', 'x:y', 'Z.')}})", "there is no group Brew of commands"),
        (f"{MAKE}offers={{'stores': {{'x:PATH': 'x:y'}}}})", "there is no setting stores"),
        (f"{MAKE}offers={{'store': {{'x:PATH': 'x:y', 'x:URL': 'x:z'}}}})", "two forms of a setting begin alike"),
    ],
)
def test_a_broken_extension_is_one_sentence_and_stops_nothing(documented: Path, code: str, reason: str) -> None:
    install(documented, "broken", code)
    done = run(documented, command("brew"))
    assert (done.returncode, done.stdout) == (0, "The kettle sings.\n"), done.stderr
    assert done.stderr == f"The extension broken0 is left out: {reason}.\n"


def test_a_command_of_ours_searches_for_no_extension(tmp_path: Path) -> None:
    install(tmp_path, "broken", "1 / 0")
    assert run(tmp_path, command("schema")).stderr == ""


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("nowhere:router", "The extension bad can't be loaded (No module named 'nowhere')."),
        ("json:dumps", "The extension bad has no router at json:dumps."),
    ],
)
def test_a_route_that_fails_stops_no_other(documented: Path, place: str, says: str) -> None:
    code = f"from chapterverse import Extension\nEXTENSION = Extension('bad', routes={{'': {place!r}}})"
    install(documented, "bad", code)
    program = "from chapterverse_api.app import create_app\nfrom chapterverse.settings import Settings\n"
    done = run(documented, f"{program}print([r.path for r in create_app(settings=Settings()).routes])")
    assert "/v1/teapot" in done.stdout
    assert done.stderr == f"{says}\n"


def test_two_that_claim_one_command(documented: Path) -> None:
    code = """
from chapterverse import Command, Extension
never = "late:never"
EXTENSION = Extension(
    "late",
    commands={name: Command("Ask", never, "Never.") for name in ("brew", "index", "late")},
    offers={"store": {"teapot:PATH": never, "edge:PATH": never, "late:PATH": never}, "checker": {"edge": never}},
)
"""
    install(documented, "zz_late", code)
    done = run(documented, command("--help"))
    assert done.stderr.splitlines() == [
        f"The {name} of the extension late is left out: another has that name."
        for name in ("command brew", "command index", "store edge", "store teapot")
    ]
    done = run(documented, OPENED)
    assert done.stdout == "teapot kitchen at 80 degrees\n"


def test_what_an_extension_fails_to_load_is_one_sentence(tmp_path: Path) -> None:
    code = """
from chapterverse import Extension
EXTENSION = Extension("gone", offers={"store": {"gone:PLACE": "gone:Nothing.at_all"}})
"""
    install(tmp_path, "gone", code)
    done = run(tmp_path, command("status", "--store", "gone:x"))
    assert done.returncode == 1
    assert done.stderr == "Error: The extension gone can't be loaded (module 'gone' has no attribute 'Nothing').\n"


def test_what_an_extension_raises_is_one_sentence_without_its_words(tmp_path: Path) -> None:
    code = """
from chapterverse import Extension
def opened(settings, place):
    raise ValueError(f"password {place} is wrong")
def forgotten(settings, place):
    "Return nothing."
def mistaken(settings, place):
    return place
STORES = {"raising:PLACE": "raising:opened", "void:PLACE": "raising:forgotten", "wrong:PLACE": "raising:mistaken"}
EXTENSION = Extension("raising", offers={"store": STORES})
"""
    install(tmp_path, "raising", code)
    for store, kind in ("raising", "ValueError"), ("void", "TypeError"), ("wrong", "TypeError"):
        done = run(tmp_path, command("status", "--store", f"{store}:hunter2"))
        assert done.stderr == f"Error: The extension raising can't open what a setting names ({kind}).\n"


def test_a_package_lists_its_extensions_and_a_start_searches_for_none(documented: Path) -> None:
    listed = documented / "extensions.txt"
    listed.write_text("teapot = teapot:EXTENSION\n", encoding="utf-8")
    install(documented, "unlisted", "1 / 0")
    program = f"""
from pathlib import Path
from chapterverse import extensions
extensions.PACKED = Path({str(listed)!r})
print([extension.name for extension in extensions.foreign()])
"""
    done = run(documented, program)
    assert (done.stdout, done.stderr) == ("['teapot']\n", "")


def test_what_is_ours_is_opened_without_a_search(tmp_path: Path) -> None:
    install(tmp_path, "broken", "1 / 0")
    program = """
from chapterverse.settings import Settings
from chapterverse.store import open_store
print(open_store(Settings(store="edge:x")).identity)
"""
    done = run(tmp_path, program)
    assert (done.stdout, done.stderr) == ("x\n", "")


def test_every_place_of_ours_can_be_loaded() -> None:
    places = {
        *(place for own in EXTENSIONS for forms in own.offers.values() for place in forms.values() if place),
        *(place for own in EXTENSIONS for place in (*own.parts.values(), *own.lookups.values())),
        *(found.place for own in EXTENSIONS for found in own.commands.values()),
        *(place for own in EXTENSIONS for places in own.routes.values() for place in places.split()),
        *(place for own in EXTENSIONS for place in own.events.values()),
    }
    assert len(places) > 40
    for place in places:
        assert extensions.load(place)


def test_a_value_has_what_its_form_asks_for() -> None:
    assert open_offer("reranker", Settings(reranker="none")) is None
    for value, shown in [("edge:", "edge:"), ("edge", "edge"), ("", ""), ("s3", "s3"), ("pg://u:secret@h", "pg:…")]:
        with pytest.raises(ConfigurationError, match=re.escape(f"CHAPTERVERSE_STORE is {shown!r}: use edge:PATH,")):
            open_offer("store", Settings(store=value))
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_LIMITER is 'memory:': use memory, sqlite:PATH or"):
        open_offer("limiter", Settings(limiter="memory:"))
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_RECORDS is nothing that is known: use sqlite:PATH,"):
        open_offer("records", Settings(records="hunter2"))


def test_the_core_opens_without_any_room() -> None:
    assert all(place.split(".")[1] != "ext" for forms in CORE.offers.values() for place in forms.values() if place)
