"""Packs the function for AWS Lambda:  package.py [--machine aarch64|x86_64] [--out FOLDER] [--without-pyc] [--add
PROGRAM] [--with postgres] [--with reading]

Creates the folder `dist/lambda` and the file `dist/lambda.zip`, reproducibly, without Docker and SAM: wheels of
`requirements/lambda.txt`, both packages, and `infra/bootstrap` at the root. Lambda downloads and unpacks it before a
cold start, so it has no symbols, no sources of dependencies and no code that only a build runs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

import elf
import environment
import yaml

LOCK = environment.REQUIREMENTS / "lambda.txt"
#: What may be packed besides, by name: conversations on Postgres need a driver with libpq in it, the reading model what
#: runs it.
OPTIONS = {name: environment.REQUIREMENTS / f"lambda-{name}.txt" for name in ("postgres", "reading")}
READING = environment.ROOT / "reading" / "chapterverse_reading"
SOURCES = (environment.ROOT / "plugin" / "chapterverse", environment.ROOT / "lambda" / "chapterverse_api")
BOOTSTRAP = environment.ROOT / "infra" / "bootstrap"
#: The owner's, where there are any: the service looks for them in its working directory, which is the package.
SCHEMAS = environment.ROOT / "schemas"
TOOLS = environment.ROOT / "tools.yml"
PRECOMPILE = environment.ROOT / "scripts" / "precompile.py"
OUT = environment.ROOT / "dist" / "lambda"

#: Lambda's runtime; its minor version decides which .pyc it reads. Amazon Linux 2023 has glibc 2.34.
VERSION = "3.13"
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
DEPLOYED = "aarch64"
#: onnxruntime asks for the processor's kind when it is loaded, and ends the process on Lambda's arm64, which hides it.
OF_READING = "x86_64"
#: Where Lambda unpacks a function, for tracebacks.
HOME = "/var/task"

#: Megabytes (10⁶ bytes); Lambda itself rejects 250 unpacked.
MOST_UNPACKED, MOST_PACKED = 60, 20
#: What each option may add to these.
OPTION_UNPACKED, OPTION_PACKED = {"postgres": 25, "reading": 160}, {"postgres": 10, "reading": 80}

#: The stemmers of the languages that `chapterverse.text.lexical` reads; twenty others are in the wheel.
STEMMERS = (
    "danish", "dutch", "english", "finnish", "french", "german", "italian", "norwegian", "polish", "portuguese",
    "romanian", "russian", "spanish", "swedish", "turkish",
)  # fmt: skip
#: Parts of wheels that nothing reads at run time.
UNUSED = (
    "bin", "*.pyi", "mypy.py", "tests", "sboms", ".lock", "__pycache__", "INSTALLER", "REQUESTED", "RECORD",
    # Another event loop than ours, and what FastAPI tries to import only to check that no model is of pydantic 1.
    "_trio.py", "pydantic/v1",
    # Imports all stemmers. Without it each is imported alone.
    "snowballstemmer/__init__.py",
)  # fmt: skip
#: Parts that the service never imports (tests/infra/test_package.py).
BUILD_SIDE = (
    "cli", "commands", "enrichment", "evaluation", "indexing", "npm", "readers", "report", "site", "sources",
    "transfer", "command.py", "local_server.py", "mkdocs.py", "robots.py", "sampling.py",
    "sphinx.py", "types.d.ts", "commands.py", "stdio.py", "walk.py", "ledger.py", "__pycache__",
)  # fmt: skip
#: Names of machines that differ from those in wheels.
MACHINES = {"arm64": "aarch64", "AMD64": "x86_64"}
#: The earliest time in a zip.
EPOCH = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    options = _arguments()
    _check(options.add)
    python = None if options.without_pyc else _python()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    _install(options.out, options.machine, options.extra)
    if python:
        _strip(options.out, python)
    _copy(options.out, options.add)
    if "reading" in options.extra:
        shutil.copytree(READING, options.out / READING.name, ignore=shutil.ignore_patterns("__pycache__"))
    if python:
        _compile(options.out, python)
        _precompile(options.out, python, options.machine)
    packed = options.out.with_suffix(".zip")
    _pack(options.out, packed, {BOOTSTRAP.name, *(program.name for program in options.add)})
    _weigh(options.out, packed, options.machine, options.extra)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Pack what AWS Lambda runs.")
    parser.add_argument("--machine", choices=(DEPLOYED, "x86_64"), help=f"{DEPLOYED} without the reading model")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to make anew; the zip stands beside it")
    parser.add_argument("--without-pyc", action="store_true", help="ship sources alone: twice the cold start")
    parser.add_argument(
        "--add",
        type=Path,
        action="append",
        default=[],
        metavar="PROGRAM",
        help="a file for the root that Lambda may run, such as run.sh of the Web Adapter; as often as needed",
    )
    parser.add_argument(
        "--with",
        dest="extra",
        choices=tuple(OPTIONS),
        action="append",
        default=[],
        help="pack an optional part too: the driver for conversations on Postgres, the reading model",
    )
    options = parser.parse_args()
    options.extra = [*dict.fromkeys(options.extra)]
    options.machine = options.machine or (OF_READING if "reading" in options.extra else DEPLOYED)
    if "reading" in options.extra and options.machine != OF_READING:
        parser.error(f"the reading model does not run on Lambda's {options.machine}: leave --machine out.")
    return options


def _check(added: Sequence[Path]) -> None:
    if not BOOTSTRAP.is_file():
        sys.exit("There is no infra/bootstrap, which streaming needs: this checkout is not whole.")
    for program in added:
        if not program.is_file():
            sys.exit(f"There is no file {program} to add: name one from the root of the repository.")
        if program.name == BOOTSTRAP.name:
            sys.exit(f"{program} would take the place of our own bootstrap: give it another name.")


def _python() -> Path | None:
    """Return a Python whose .pyc Lambda reads, None with a warning if there is none; in CI exit with one sentence."""
    if python := local_python():
        return python
    subprocess.run([environment.UV, "python", "install", "--quiet", VERSION], stderr=subprocess.DEVNULL)
    if python := local_python():
        return python
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        sys.exit(
            f"Python {VERSION} is needed, because Lambda reads its .pyc alone: install it, or run "
            "`make package PACKAGEFLAGS=--without-pyc` for twice the cold start."
        )
    print(
        f"Warning: there is no Python {VERSION}, and Lambda reads its .pyc alone. The package has sources only, and a "
        "cold start takes twice as long: install that Python and pack again.",
        file=sys.stderr,
    )
    return None


def local_python() -> Path | None:
    """Return a working Python of the runtime's minor version on this machine."""
    for name in _pythons():
        asks = [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # A version manager's shim may exist and fail.
        if subprocess.run(asks, capture_output=True, text=True).stdout.strip() == VERSION:
            return Path(name)
    return None


def _pythons() -> Iterator[str]:
    name = f"python{VERSION}"
    if on_path := shutil.which(name):
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{VERSION}*/bin/{name}"), reverse=True))
    if environment.UV.exists():
        answer = subprocess.run([environment.UV, "python", "find", VERSION], capture_output=True, text=True)
        yield from answer.stdout.splitlines()[:1]


def _install(folder: Path, machine: str, extra: Sequence[str]) -> None:
    _fetch(
        folder,
        [LOCK, *(OPTIONS[name] for name in extra)],
        ["--python-platform", f"{machine}-{PLATFORMS[0]}"],
        [word for platform in PLATFORMS for word in ("--platform", f"{platform}_{machine}")],
    )
    for pattern in UNUSED:
        _drop(folder, pattern)
    for stemmer in (folder / "snowballstemmer").glob("*_stemmer.py"):
        if stemmer.stem.removesuffix("_stemmer") not in STEMMERS:
            stemmer.unlink()
    for metadata in folder.glob("*.dist-info/METADATA"):
        # Behind the fields stands the package's README.
        metadata.write_bytes(metadata.read_bytes().partition(b"\n\n")[0] + b"\n")
    for library in folder.rglob("*.so*"):
        elf.strip(library)


def _fetch(folder: Path, locks: Sequence[Path], of_uv: Sequence[str] = (), of_pip: Sequence[str] = ()) -> None:
    """Unpack the wheels of the locks, for this machine unless the arguments name another one."""
    uv: Sequence[str | Path] = (environment.UV, "pip", "install", "--link-mode", "copy", *of_uv)
    # Slower, but reads pip's configuration.
    pip: Sequence[str | Path] = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *of_pip)
    wanted = [word for lock in locks for word in ("-r", lock)]
    how = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--python-version", VERSION]
    if not any(environment.succeeds([*install, *how, "--target", folder, *wanted]) for install in (uv, pip)):
        sys.exit("The wheels could not be fetched: see the lines above, check the network and run make package again.")


def _drop(folder: Path, pattern: str) -> None:
    for path in list(folder.rglob(pattern)):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _copy(folder: Path, added: Sequence[Path]) -> None:
    for source in SOURCES:
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns(*BUILD_SIDE))
    _list_extensions(folder)
    if SCHEMAS.is_dir():
        shutil.copytree(SCHEMAS, folder / SCHEMAS.name)
    if TOOLS.is_file():
        pack_tools(TOOLS, folder)
    for program in (BOOTSTRAP, *added):
        shutil.copy(program, folder / program.name)


def _list_extensions(folder: Path) -> None:
    """Write the entry points of extensions into a file, so that a cold start searches for none."""
    distributions = importlib.metadata.distributions(path=[str(folder)])
    entries = (entry for found in distributions for entry in found.entry_points)
    lines = sorted(f"{entry.name} = {entry.value}\n" for entry in entries if entry.group == "chapterverse.extensions")
    (folder / "chapterverse" / "extensions.txt").write_text("".join(lines), encoding="utf-8")


def pack_tools(file: Path, folder: Path) -> None:
    """Write the site's tools as JSON, since no reader of YAML is in the package."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        sys.exit(f"{file.name} is no YAML in UTF-8: correct it, or pack without it.")
    (folder / "tools.json").write_text(json.dumps(document), encoding="utf-8")


def _strip(folder: Path, python: Path) -> None:
    """Replace every source by its .pyc."""
    _compile(folder, python, "-b")
    _drop(folder, "*.py")


def _compile(folder: Path, python: Path, *where: str) -> None:
    """Write the .pyc of every source, by default into `__pycache__`; "-b" writes it beside the source."""
    # Not by time, because a zip changes its files' times, and Lambda would compile all of them at each cold start.
    how: list[str | Path] = ["--invalidation-mode", "unchecked-hash", "-s", folder, "-p", HOME, *where]
    done = subprocess.run([python, "-I", "-m", "compileall", "-q", *how, folder], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"A file could not be compiled:\n{done.stdout}{done.stderr}")


def _precompile(folder: Path, python: Path, machine: str) -> None:
    """Have Python record what it would compile at every start; see `ext.aws.cold_start`."""
    with tempfile.TemporaryDirectory() as temporary:
        importable = folder
        # Wheels of another machine can't be imported here, but compiled code is the same on all.
        if (sys.platform, MACHINES.get(platform.machine(), platform.machine())) != ("linux", machine):
            importable = Path(temporary)
            _fetch(importable, [LOCK])
            _strip(importable, python)
            _copy(importable, [])
        target = folder / "chapterverse_api" / "precompiled.bin"
        command: list[str | Path] = [python, "-I", "-B", PRECOMPILE, importable, target]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"What is compiled at a start could not be written down:\n{done.stdout}{done.stderr}")


def _pack(folder: Path, packed: Path, programs: Set[str]) -> None:
    """Write the zip; `programs` in its root are executable."""
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in _files(folder):
            mode = 0o755 if path.parent == folder and path.name in programs else 0o644
            path.chmod(mode)
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix(), EPOCH)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | mode) << 16
            archive.writestr(member, path.read_bytes())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _weigh(folder: Path, packed: Path, machine: str, extra: Sequence[str]) -> None:
    unpacked = sum(file.stat().st_size for file in _files(folder)) / 1e6
    zipped = packed.stat().st_size / 1e6
    print(f"{packed}: {unpacked:.1f} MB unpacked, {zipped:.1f} MB packed")
    # Without the reading model only tests use the other machine's wheels, which are larger.
    most = MOST_UNPACKED + sum(map(OPTION_UNPACKED.__getitem__, extra))
    most_zipped = MOST_PACKED + sum(map(OPTION_PACKED.__getitem__, extra))
    if (machine == DEPLOYED or "reading" in extra) and (unpacked > most or zipped > most_zipped):
        sys.exit(f"That is more than a cold start should carry, {most} MB and {most_zipped}: look what grew.")


if __name__ == "__main__":
    main()
