"""Coverage-guided fuzzing of readers, slugs and chunker, by Atheris (libFuzzer):  python -m fuzz.run [--help]

Run in `tests/` with what `fuzz/requirements.txt` locks (Linux, CPython 3.11 to 3.13). Each target gets its share of the
executions in a process of its own. Seeds are the captured sites and this project's own documents. What fails is written
to `.cache/fuzz/` and printed; `--input FILE` runs a target on it again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAILURES = ROOT / ".cache" / "fuzz"

#: Limits of one input: bytes, seconds (a slower one is a hang) and megabytes of memory.
LONGEST, SECONDS, MEGABYTES = 4096, 10, 2048

#: Which files seed a target; the others grow their pages from bytes that mean nothing by themselves.
SEEDS = {
    "any_html": ("tests/sites", "*.html"),
    "any_markdown": ("site_example/docs", "*.md"),
    "any_mdx": ("site_example/docs", "*.md"),
    "slugs": ("site_example/docs", "*.md"),
    "counts": ("site_example/docs", "*.md"),
}
TARGETS = ("any_html", "made_html", "any_markdown", "any_mdx", "made_markdown", "slugs", "blocks", "counts")


def main() -> None:
    options = _options()
    if find_spec("atheris") is None:
        sys.exit("Atheris is missing: install tests/fuzz/requirements.txt (Linux, Python 3.11 to 3.13).")
    if options.child:
        _fuzz(options)
    elif options.input:
        _load(options.target[0])(options.input.read_bytes())
    else:
        sys.exit(_run_all(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description="Fuzz readers, slugs and chunker.")
    parser.add_argument("--executions", type=int, default=1_000_000, help="in all, over the targets")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of the random choices (default 1)")
    parser.add_argument("--input", type=Path, help="run the target on this file and nothing else")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.target = options.target or list(TARGETS)
    if options.executions < 1:
        parser.error("--executions must be at least 1.")
    if options.input and len(options.target) != 1:
        parser.error("--input needs one --target.")
    return options


def _run_all(options: argparse.Namespace) -> int:
    share = -(-options.executions // len(options.target))
    failed = [target for target in options.target if not _run(target, share, options.seed)]
    return 1 if failed else 0


def _run(target: str, executions: int, seed: int) -> bool:
    """Fuzz one target and print a line on it; return whether nothing was found."""
    with tempfile.TemporaryDirectory() as folder:
        for i, content in enumerate(_seeds(target)):
            (Path(folder) / f"seed{i}").write_bytes(content)
        command = [sys.executable, "-m", "fuzz.run", "--child", folder, "--target", target]
        command += ["--executions", str(executions), "--seed", str(seed)]
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True, errors="replace")
    seconds = time.monotonic() - started
    output = done.stdout + done.stderr
    runs = max([0, *(int(number) for number in re.findall(r"^#(\d+)", output, re.MULTILINE))])
    edges = (re.findall(r"cov: (\d+)", output) or ["?"])[-1]
    verdict = "nothing found" if done.returncode == 0 else f"FAILED\n{done.stdout}\n{done.stderr[-2000:]}"
    said = f"{target:14} {runs:9,} executions {runs / seconds:8,.0f}/s  {edges:>6} edges  {verdict}\n"
    sys.stdout.write(said)
    sys.stdout.flush()
    return done.returncode == 0


def _seeds(target: str) -> Iterator[bytes]:
    folder, pattern = SEEDS.get(target, ("", ""))
    for path in sorted((ROOT / folder).rglob(pattern)) if folder else ():
        content = path.read_bytes()
        # A fuzzer changes small inputs best, so long pages are seeded in pieces.
        yield from (content[at : at + LONGEST] for at in range(0, len(content), LONGEST))


def _fuzz(options: argparse.Namespace) -> None:
    import atheris

    FAILURES.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["chapterverse"], enable_loader_override=False):
        target = _load(options.target[0])
    flags = [f"-runs={options.executions}", f"-seed={options.seed}", f"-max_len={LONGEST}", f"-timeout={SECONDS}"]
    flags += [f"-rss_limit_mb={MEGABYTES}", f"-artifact_prefix={FAILURES}/{options.target[0]}-"]
    atheris.Setup([sys.argv[0], *flags, str(options.child)], target)
    atheris.Fuzz()


def _load(name: str) -> Callable[[bytes], None]:
    # Imported here, so that Atheris can instrument what it imports.
    from fuzz.targets import TARGETS as FUNCTIONS

    return FUNCTIONS[name]


if __name__ == "__main__":
    main()
