"""The package on Lambda: one folder and the runtime's own Python, without any installed package."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from api import quill
from chapterverse.embedding import open_embedder
from chapterverse.indexing import sync
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse.text.lexical import STEMMERS
from chapterverse_api.ext.conversations.records import open_records
from ext.aws.test_events import FUNCTION_URL
from ext.aws.test_precompiled import START
from fakes import cohere_server, postgres, qdrant_server, s3_server
from fakes.cohere_server import CohereServer
from fakes.qdrant_server import QdrantServer
from infra.conftest import ROOT

SCRIPTS = ROOT / "scripts"
MACHINE = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())

#: Reads events, prints answers and what was imported; isolated, so that no package of this machine is seen.
RUN = """
import json, sys
sys.path.insert(0, sys.argv[1])
from chapterverse_api.handler import handler
answers = [handler(event, None) for event in json.load(sys.stdin)]
files = [getattr(m, "__file__", None) or "" for m in sys.modules.values()]
print(json.dumps({"answers": answers, "foreign": [f for f in files if "site-packages" in f]}))
"""


@dataclass(frozen=True)
class Package:
    folder: Path
    python: Path
    said: str

    def answers(self, *events: dict[str, Any], **variables: str) -> list[tuple[int, Any]]:
        """Return status and body of the answer to each event, from a fresh process."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "AWS_", "PYTHON"))}
        command: list[str | Path] = [self.python, "-I", "-B", "-c", RUN, self.folder]
        done = subprocess.run(
            command, input=json.dumps(events), capture_output=True, text=True, env=inherited | variables
        )
        assert done.returncode == 0, done.stderr
        last = json.loads(done.stdout.splitlines()[-1])
        assert last["foreign"] == []
        return [(answer["statusCode"], json.loads(answer["body"])) for answer in last["answers"]]


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python that Lambda runs; where it is not, the tests are skipped and say so."""
    found = _script("-c", "import package; print(package.local_python() or '')").stdout.strip()
    if sys.platform != "linux" or not found:
        pytest.skip("Lambda's Python, 3.13 on Linux, is not on this machine")
    return Path(found)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Package:
    folder = tmp_path_factory.mktemp("package") / "lambda"
    done = _script("package.py", "--machine", MACHINE, "--out", str(folder))
    assert done.returncode == 0, done.stderr
    return Package(folder, python, done.stdout)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Something of an operator's own for the root of the package, whose rights are of no matter."""
    file = tmp_path / "run.sh"
    file.write_text("#!/bin/sh\nexec python -m uvicorn\n", "utf-8")
    file.chmod(0o600)
    return file


def _script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=SCRIPTS, capture_output=True, text=True)


@pytest.fixture
def providers() -> Iterator[tuple[QdrantServer, CohereServer]]:
    with ExitStack() as stack:
        yield stack.enter_context(QdrantServer()), stack.enter_context(CohereServer())


def publish(settings: Settings, ledger: Path) -> None:
    """Index Quill's pages where `settings` say."""
    settings = settings.override(ledger=f"sqlite:{ledger}")
    store, embedder = open_store(settings), open_embedder(settings)
    target = Target(quill.SCOPE, store, open_ledger(settings), embedder, ChunkSizes(), quill.BASE)
    sync.index([quill.source(path, text, quill.BASE, "en") for path, text in quill.PAGES.items()], target)


def asking(query: str, **fields: str) -> dict[str, Any]:
    http = FUNCTION_URL["requestContext"]["http"] | {"method": "POST", "path": "/v1/chat"}
    context = FUNCTION_URL["requestContext"] | {"http": http}
    headers = FUNCTION_URL["headers"] | {"content-type": "application/json"}
    body = json.dumps({"query": query, **fields})
    return FUNCTION_URL | {"rawPath": "/v1/chat", "headers": headers, "requestContext": context, "body": body}


QUESTION = asking("How do I clear the cache?")


def test_it_answers_from_a_folder(package: Package, tmp_path: Path) -> None:
    settings = quill.publish(tmp_path)
    health, answer, long = package.answers(
        FUNCTION_URL, QUESTION, asking("cache " * 600), CHAPTERVERSE_STORE=settings.store
    )
    assert health == (200, {"status": "ok"})
    assert answer[0] == 200
    assert answer[1]["source_chunks"][0]["section"] == "Clearing the cache"
    # Its tokens are really counted: 3,600 characters are allowed, and these are 1,200 tokens or less.
    assert long[0] in (200, 422)


@pytest.mark.slow
def test_with_the_driver_it_keeps_conversations_in_postgres(python: Path, tmp_path: Path) -> None:
    folder, settings, records = tmp_path / "lambda", quill.publish(tmp_path / "index"), postgres.server().database()
    done = _script("package.py", "--machine", MACHINE, "--out", str(folder), "--with", "postgres")
    assert done.returncode == 0, done.stderr
    asked = asking("How do I clear the cache?", thread_id="a-thread")
    variables = {"CHAPTERVERSE_STORE": settings.store, "CHAPTERVERSE_RECORDS": records}
    for _ in range(2):
        for status, answer in Package(folder, python, done.stdout).answers(asked, asked, **variables):
            assert (status, answer["thread_id"], answer["degraded_reason"]) == (200, "a-thread", None)
    threads = open_records(Settings(records=records))
    assert threads
    assert len(threads.thread("a-thread").turns) == 4


@pytest.mark.slow
def test_with_the_reading_model_it_reads_before_it_answers(python: Path, tmp_path: Path) -> None:
    refused = _script("package.py", "--machine", "aarch64", "--out", str(tmp_path / "lambda"), "--with", "reading")
    assert refused.returncode == 2
    assert "the reading model does not run on Lambda's aarch64" in refused.stderr
    folder, settings = tmp_path / "lambda", quill.publish(tmp_path / "index")
    done = _script("package.py", "--out", str(folder), "--with", "reading")
    assert done.returncode == 0, done.stderr
    # Lambda's own limit.
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 250 << 20
    if MACHINE != "x86_64":
        pytest.skip("what is packed runs on x86-64 alone")
    packed = Package(folder, python, done.stdout)
    ((status, read),) = packed.answers(QUESTION, CHAPTERVERSE_STORE=settings.store)
    assert (status, read["status"], read["degraded_reason"]) == (200, "answered", None)
    ((_, unread),) = packed.answers(QUESTION, CHAPTERVERSE_STORE=settings.store, CHAPTERVERSE_READING_MODEL="none")
    assert read["grounding_confidence"] != unread["grounding_confidence"] < 1


def test_it_answers_from_qdrant_by_models_of_cohere(
    package: Package, tmp_path: Path, providers: tuple[QdrantServer, CohereServer]
) -> None:
    qdrant, cohere = providers
    settings = Settings(
        store=f"qdrant:{qdrant.url}",
        qdrant_api_key=qdrant_server.KEY,
        embedder="cohere",
        cohere_url=cohere.url,
        cohere_api_key=cohere_server.KEY,
    )
    publish(settings, tmp_path / "ledger.sqlite")
    ((status, answer),) = package.answers(
        QUESTION,
        CHAPTERVERSE_STORE=settings.store,
        CHAPTERVERSE_COHERE_URL=cohere.url,
        CHAPTERVERSE_EMBEDDER="cohere",
        CHAPTERVERSE_RERANKER="cohere",
        CHAPTERVERSE_GENERATOR="cohere",
        COHERE_API_KEY=cohere_server.KEY,
        QDRANT_API_KEY=qdrant_server.KEY,
    )
    assert (status, answer["degraded_reason"]) == (200, None)
    assert {request.path for request in cohere.history} >= {"/v2/embed", "/v2/rerank", "/v2/chat"}


def test_it_answers_from_a_bucket(package: Package, tmp_path: Path) -> None:
    server = s3_server.shared()
    with server.entered(tmp_path):
        store = f"s3://{server.bucket()}/index"
        publish(Settings(store=store), tmp_path / "ledger.sqlite")
        ((status, answer),) = package.answers(
            QUESTION, CHAPTERVERSE_STORE=store, TMPDIR=str(tmp_path), **server.environment
        )
    assert status == 200
    assert answer["source_chunks"][0]["section"] == "Clearing the cache"


def test_all_that_is_imported_is_compiled_and_never_compared_with_its_source(package: Package) -> None:
    sources = {f.relative_to(package.folder) for f in package.folder.rglob("*.py")}
    assert {source.parts[0] for source in sources} == {"chapterverse", "chapterverse_api"}
    assert all((package.folder / s.parent / "__pycache__" / f"{s.stem}.cpython-313.pyc").exists() for s in sources)
    # PEP 552: the lowest bit of the flags says that a hash is meant, the second that it is to be checked.
    flags = {int.from_bytes(file.read_bytes()[4:8], "little") for file in package.folder.rglob("*.pyc")}
    assert flags == {0b01}


def test_what_no_pyc_holds_is_compiled_as_well(package: Package) -> None:
    program = f"import sys\nsys.path.insert(0, {str(package.folder)!r})\n{START}"
    command: list[str | Path] = [
        package.python,
        "-I",
        "-B",
        "-c",
        program,
        package.folder / "chapterverse_api" / "precompiled.bin",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["patterns"], found["methods"]) == (0, 0)


def test_nothing_of_a_build_is_in_it(package: Package) -> None:
    held = {path.name.partition("-")[0] for path in package.folder.iterdir()}
    assert held & {"boto3", "qdrant_client", "cohere", "typer", "rich", "markdown_it", "requests", "uvicorn"} == set()
    shipped = {
        path.name for name in ("chapterverse", "chapterverse_api") for path in (package.folder / name).rglob("*")
    }
    built = {*"cli commands enrichment evaluation indexing ledger readers report site sources".split()}
    assert shipped & {*built, "mkdocs.pyc", "stdio.pyc", "ledger.pyc"} == set()


def test_it_has_the_stemmers_that_are_used_and_no_others(package: Package) -> None:
    packed = {file.stem.removesuffix("_stemmer") for file in package.folder.glob("snowballstemmer/*_stemmer.pyc")}
    assert packed == set(STEMMERS.values())


def test_every_module_of_the_service_is_imported_from_it(package: Package) -> None:
    program = f"""import sys; sys.path.insert(0, {str(package.folder)!r})
import importlib, pkgutil, chapterverse_api
for module in pkgutil.walk_packages(chapterverse_api.__path__, "chapterverse_api."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        # Only `chapterverse serve` has a server, and drivers are packed where they are asked for.
        if error.name.startswith("chapterverse"):
            raise
"""
    done = subprocess.run([package.python, "-I", "-B", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_bootstrap_may_be_run_from_the_zip(package: Package) -> None:
    with ZipFile(package.folder.with_suffix(".zip")) as archive:
        assert archive.getinfo("bootstrap").external_attr >> 16 & 0o111


@pytest.mark.parametrize("name", ["missing.sh", "bootstrap"])
def test_a_program_that_can_not_be_added_is_one_sentence(program: Path, name: str) -> None:
    if name == "bootstrap":
        program.rename(program.with_name(name))
    done = _script("package.py", "--out", str(program.parent / "out"), "--add", str(program.with_name(name)))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(("There is no file", str(program.with_name("bootstrap"))))


@pytest.mark.slow
@pytest.mark.usefixtures("python")
def test_the_deployed_package_is_for_its_machine_and_no_heavier_than_allowed(program: Path) -> None:
    out = program.parent / "lambda"
    # As `make package`, with nothing said of the machine; it exits with 1 where it is too heavy.
    done = _script("package.py", "--out", str(out), "--add", str(program))
    assert done.returncode == 0, done.stderr
    machines = {file.read_bytes()[18:20] for file in out.rglob("*.so*")}
    # System V ABI, e_machine: 183 is AArch64.
    assert machines == {(183).to_bytes(2, "little")}
    with ZipFile(out.with_suffix(".zip")) as archive:
        runnable = {m.filename for m in archive.infolist() if m.external_attr >> 16 & 0o111}
        assert runnable == {"bootstrap", "run.sh"}
        assert archive.read("run.sh") == program.read_bytes()


def test_the_bootstrap_starts_from_the_folder_and_asks_for_an_event(package: Package) -> None:
    with socket.create_server(("127.0.0.1", 0)) as api:
        api.settimeout(60)
        variables = {"LAMBDA_TASK_ROOT": str(package.folder), "_HANDLER": "chapterverse_api.handler.handler"}
        variables |= {"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.getsockname()[1]}", "PATH": "/usr/bin:/bin"}
        # As Lambda calls a wrapper: with its own interpreter and program.
        command: list[str | Path] = [package.folder / "bootstrap", package.python, "/var/runtime/bootstrap.py"]
        with subprocess.Popen(command, env=variables) as process:
            try:
                connection, _ = api.accept()
                with connection:
                    line = connection.recv(1000).partition(b"\r\n")[0]
            finally:
                process.kill()
    assert line == b"GET /2018-06-01/runtime/invocation/next HTTP/1.1"


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["lambda", "server"])
def test_what_is_deployed_is_what_is_tested(name: str) -> None:
    tested = pins("test")
    # The build backend alone is no part of the tests' own environment.
    assert {n: v for n, v in pins(name).items() if tested.get(n, v) != v} == {}
    assert len(pins(name).keys() & tested.keys()) >= 15


@pytest.mark.slow
def test_the_same_sources_make_the_same_bytes(package: Package, tmp_path: Path) -> None:
    done = _script("package.py", "--machine", MACHINE, "--out", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    first, second = package.folder.with_suffix(".zip"), tmp_path / "again.zip"
    assert sums(first) == sums(second)
    assert first.read_bytes() == second.read_bytes()


def sums(file: Path) -> dict[str, int]:
    with ZipFile(file) as archive:
        return {member.filename: member.CRC for member in archive.infolist()}
