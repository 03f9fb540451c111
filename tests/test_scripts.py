"""First errors of a newcomer: one sentence each for a busy port, a wrong port and a missing or unfit Python."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
SH = shutil.which("sh") or "/bin/sh"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=environment or None)


def impostor(folder: Path, name: str, *, version: str = "3.12.1", complete: bool = True) -> Path:
    """A program that answers the questions of `python.sh` as a Python of that kind does, and prints its arguments."""
    file = folder / name
    recent = tuple(map(int, version.split("."))) >= (3, 11)
    file.write_text(
        f"""#!{SH}
case "$2" in
*_base_executable*) echo "$0" ;;
*"sys.version_info <"*) exit {0 if recent else 1} ;;
*ensurepip*) exit {0 if complete else 1} ;;
*python%d*) echo python{version.rpartition(".")[0]}-venv ;;
*platform*) echo {version} ;;
*) echo "{name} runs $@" ;;
esac
""",
        encoding="utf-8",
    )
    file.chmod(0o755)
    return file


def choose(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(SH, str(SCRIPTS / "python.sh"), "script.py", PATH=str(folder), **environment)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a failed program said."""
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_a_busy_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = sentence(run(sys.executable, str(SCRIPTS / "demo.py"), str(port)))
    assert said.startswith(f"Port {port} is busy")
    assert "make demo PORT=" in said


@pytest.mark.parametrize("port", ["", "abc", "0", "65536", "-1", "٨"])
def test_a_wrong_port_is_one_sentence(port: str) -> None:
    assert "is no port" in sentence(run(sys.executable, str(SCRIPTS / "demo.py"), port))


def test_no_python_is_one_sentence(tmp_path: Path) -> None:
    assert "none was found" in sentence(choose(tmp_path))


def test_an_old_python_is_one_sentence(tmp_path: Path) -> None:
    impostor(tmp_path, "python3", version="3.10.4")
    assert "is 3.10.4" in sentence(choose(tmp_path))


def test_a_python_without_venv_is_one_sentence(tmp_path: Path) -> None:
    impostor(tmp_path, "python3", version="3.11.2", complete=False)
    assert "sudo apt install python3.11-venv" in sentence(choose(tmp_path))


def test_a_python_that_was_named_but_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    impostor(tmp_path, "python3")
    assert "PYTHON=/no/such/python" in sentence(choose(tmp_path, PYTHON="/no/such/python"))


def test_a_shim_that_fails_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "python3.13").write_text(f"#!{SH}\nexit 127\n", encoding="utf-8")
    (tmp_path / "python3.13").chmod(0o755)
    impostor(tmp_path, "python3.12", complete=False)
    impostor(tmp_path, "python3")
    assert choose(tmp_path).stdout == "python3 runs script.py\n"


def test_a_named_python_is_taken(tmp_path: Path) -> None:
    impostor(tmp_path, "python3.13")
    named = impostor(tmp_path, "my python")
    assert choose(tmp_path, PYTHON=str(named)).stdout == "my python runs script.py\n"


def test_a_chromium_that_does_not_start_is_one_sentence() -> None:
    done = run(sys.executable, str(SCRIPTS / "chromium.py"), CHAPTERVERSE_CHROMIUM="/no/such/chromium")
    assert "no Chromium that starts" in sentence(done)


@pytest.mark.skipif(sys.platform == "darwin", reason="there may be one in /Applications")
def test_no_chromium_is_told_in_a_sentence_even_where_playwright_does_not_start(tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!{SH}\nexit 127\n", encoding="utf-8")
    node.chmod(0o755)
    # Nothing on the path can install one.
    places = {"PATH": str(tmp_path), "PLAYWRIGHT_NODEJS_PATH": str(node), "HOME": str(tmp_path), "CI": "true"}
    done = run(sys.executable, str(SCRIPTS / "chromium.py"), **places)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("There is no Chromium for the browser tests: install one")


@pytest.mark.parametrize(("browser", "package"), [("chromium", "chromium"), ("firefox", "firefox-esr")])
@pytest.mark.skipif(sys.platform != "linux", reason="there may be one in /Applications")
def test_without_rights_the_command_is_printed_and_nobody_is_asked_for_them(
    tmp_path: Path, browser: str, package: str
) -> None:
    for name in ("sudo", "apt-get", "doas"):
        (tmp_path / name).write_text(f"#!{SH}\necho ran {name} $@ >&2\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    # As a user without rights, also where the tests run as root.
    program = (
        f"import os, runpy, sys; os.geteuid = lambda: 1000; sys.path.insert(0, {str(SCRIPTS)!r}); "
        f"runpy.run_path({str(SCRIPTS / f'{browser}.py')!r}, run_name='__main__')"
    )
    places = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PLAYWRIGHT_NODEJS_PATH": str(tmp_path / "none")}
    for ci, code in (("", 0), ("false", 0), ("true", 1)):
        done = run(sys.executable, "-c", program, **places, CI=ci)
        assert (done.returncode, done.stdout) == (code, "\n" if code == 0 else "")
        assert "ran " not in done.stderr
        last = done.stderr.splitlines()[-1]
        assert f"install one by `sudo apt-get install -y {package}`" in last
        assert last.endswith("Until then they are skipped.") is (code == 0)


def test_the_node_that_drives_browsers_needs_nothing_that_a_minimal_debian_lacks(node: Path) -> None:
    asks = "import os, browser; print(os.environ['PLAYWRIGHT_NODEJS_PATH'])"
    assert run(sys.executable, "-c", asks, PYTHONPATH=str(SCRIPTS)).stdout.strip() == str(node)
    # What a program is linked with stands in it by name.
    assert b"libatomic.so" not in node.read_bytes()


def test_a_firefox_that_does_not_start_is_one_sentence() -> None:
    done = run(sys.executable, str(SCRIPTS / "firefox.py"), CHAPTERVERSE_FIREFOX="/no/such/firefox")
    assert "no Firefox that starts" in sentence(done)


def test_a_firefox_on_the_path_is_taken_if_it_starts(tmp_path: Path) -> None:
    for name, words in (("firefox-esr", "no browser"), ("firefox", "Mozilla Firefox 153.7.0esr")):
        (tmp_path / name).write_text(f"#!{SH}\necho {words}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = run(sys.executable, str(SCRIPTS / "firefox.py"), PATH=str(tmp_path))
    assert (done.stdout, done.stderr) == (f"{tmp_path}/firefox\n", "")


@pytest.mark.parametrize(("text", "packed"), [("tools: [{name: a}]\n", True), ("tools: [", False)])
def test_tools_are_packed_as_json_for_lambda(tmp_path: Path, text: str, packed: bool) -> None:
    (tmp_path / "tools.yml").write_text(text)
    program = "import sys, pathlib, package; package.pack_tools(*map(pathlib.Path, sys.argv[1:]))"
    command = [sys.executable, "-c", program, str(tmp_path / "tools.yml"), str(tmp_path)]
    done = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True)
    made = tmp_path / "tools.json"
    assert (done.returncode == 0, made.exists()) == (packed, packed)
    if packed:
        assert json.loads(made.read_text()) == {"tools": [{"name": "a"}]}
    else:
        assert done.stderr == "tools.yml is no YAML in UTF-8: correct it, or pack without it.\n"


def test_tools_are_made_anew_where_the_folder_was_moved_to(tmp_path: Path) -> None:
    program = """
import pathlib, sys, tools
tools.HOME = pathlib.Path(sys.argv[1])
tools._make = lambda home, lock: (home.mkdir(exist_ok=True), print("made"))
tools.programs("hugo")
"""

    def set_up(home: Path) -> str:
        command = [sys.executable, "-c", program, str(home)]
        return subprocess.run(command, cwd=SCRIPTS, stdout=subprocess.PIPE, text=True, check=True).stdout

    assert [set_up(tmp_path / "a"), set_up(tmp_path / "a")] == ["made\n", ""]
    (tmp_path / "a").rename(tmp_path / "b")
    assert set_up(tmp_path / "b") == "made\n"
