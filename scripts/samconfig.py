"""What is deployed and where: `infra/samconfig.toml`, which SAM reads too, written after five questions.

SAM's own `--guided` would ask for every parameter of the template. The others keep their defaults until somebody writes
them into the file, as `"Name=value"` in `parameter_overrides`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import environment

PATH = Path(os.environ.get("CONFIG") or environment.ROOT / "infra" / "samconfig.toml").absolute()


@dataclass(frozen=True, slots=True)
class SamConfig:
    """The part of the file that we use; what is empty is the environment's."""

    stack: str = ""
    region: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    words: str
    pattern: str
    needs: str


STACK = Question("Name of the stack", "[A-Za-z][A-Za-z0-9-]{0,62}", "letters, digits and hyphens")
REGION = Question("AWS region", "[a-z]{2}(-[a-z]+)+-[0-9]", "a region such as eu-central-1")
SITE = Question("Name of the site's index", "[a-z0-9][a-z0-9-]{0,62}", "lower-case letters, digits and hyphens")
ORIGINS = Question(
    "Origin of the documentation, such as https://docs.example.com",
    r"https?://[^/\s,]+(,https?://[^/\s,]+)*",
    "scheme and host without a path, several with commas between",
)
EMAIL = Question("E-mail for alarms, empty for none", r"([^@\s]+@[^@\s]+)?", "an address, or nothing")


def read() -> SamConfig | None:
    """Return what the file says, None where there is none. Exits with one sentence if it names no stack or region."""
    if not PATH.exists():
        return None
    try:
        found = tomllib.loads(PATH.read_text("utf-8"))["default"]
        parameters = found.get("global", {}).get("parameters", {}) | found["deploy"]["parameters"]
        return SamConfig(parameters["stack_name"], parameters["region"], parameters.get("profile", ""))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        sys.exit(f"{PATH} names no stack_name and region in [default.deploy.parameters]: mend it, or move it away.")


def write(region: str) -> SamConfig:
    """Ask, write the file and return what it says; `region` is offered."""
    try:
        stack, region = _ask(STACK, "chapterverse"), _ask(REGION, region)
        overrides = {"Site": _ask(SITE, "docs"), "AllowedOrigins": _ask(ORIGINS, ""), "AlarmEmail": _ask(EMAIL, "")}
    except EOFError:
        sys.exit(f"There is no {PATH} yet, and nobody to ask: run make deploy in a terminal first.")
    parameters = {
        "stack_name": stack,
        "region": region,
        "s3_prefix": stack,
        "resolve_s3": True,
        "capabilities": "CAPABILITY_IAM",
        "confirm_changeset": True,
        "parameter_overrides": [f"{name}={value}" for name, value in overrides.items() if value],
    }
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in parameters.items())
    PATH.write_text(f"version = 0.1\n\n[default.deploy.parameters]\n{''.join(lines)}", "utf-8")
    print(f"Saved in {PATH}, which holds no secret: keep it in your repository.")
    return SamConfig(stack, region)


def _ask(question: Question, default: str, read: Callable[[str], str] = input) -> str:
    while True:
        answer = read(f"{question.words}{f' [{default}]' if default else ''}: ").strip() or default
        if re.fullmatch(question.pattern, answer):
            return answer
        print(f"That must be {question.needs}.")
