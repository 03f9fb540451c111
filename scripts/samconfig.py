"""Reads and writes `infra/samconfig.toml`, which SAM reads too; five questions create it.

SAM's own `--guided` would ask for every parameter of the template. Other parameters keep their defaults unless a line
`"Name=value"` of `parameter_overrides` sets them; each deployment passes all of them, see `overrides`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import environment

PATH = Path(os.environ.get("CONFIG") or environment.ROOT / "infra" / "samconfig.toml").absolute()


@dataclass(frozen=True, slots=True)
class SamConfig:
    """The values that we use; the environment decides empty ones."""

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
    """Return the file's values, None if it doesn't exist. Exit with one sentence if it names no stack or region."""
    if not PATH.exists():
        return None
    try:
        parameters = _parameters()
        return SamConfig(parameters["stack_name"], parameters["region"], parameters.get("profile", ""))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        sys.exit(f"{PATH} names no stack_name and region in [default.deploy.parameters]: mend it, or move it away.")
    except OSError as failure:
        sys.exit(f"{PATH} can't be read ({failure.strerror}): mend its rights, or name another file in CONFIG.")


def _parameters() -> dict[str, Any]:
    default = tomllib.loads(PATH.read_text("utf-8"))["default"]
    parameters: dict[str, Any] = default.get("global", {}).get("parameters", {}) | default["deploy"]["parameters"]
    return parameters


def overrides(template: Path) -> list[str]:
    """Return `Name="value"` for every parameter of the template, from the file or by the template's default.

    SAM alone would ignore unknown names, cut values at the first space, and keep the last value of a parameter whose
    line was removed. Exit with one sentence on an unknown name.
    """
    from samtranslator.yaml_helper import yaml_parse

    known = {name: str(says["Default"]) for name, says in yaml_parse(template.read_text("utf-8"))["Parameters"].items()}
    lines = _parameters().get("parameter_overrides", [])
    another = re.compile(rf"\s({'|'.join(known)})=")
    if not isinstance(lines, list) or not all(isinstance(n, str) and "=" in n and not another.search(n) for n in lines):
        sys.exit(f'{PATH} must have parameter_overrides as a list of "Name=value", one parameter in each.')
    chosen = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    for name in chosen.keys() - known.keys():
        near = difflib.get_close_matches(name, known, n=1)
        rest = f"did you mean {near[0]}?" if near else "see Parameters in infra/template.yaml."
        sys.exit(f"{PATH} sets {name}, which is no parameter: {rest}")
    return [f'{name}="{_escaped(value)}"' for name, value in (known | chosen).items()]


def _escaped(value: str) -> str:
    """Return a value in SAM's quoting; a value in quotation marks is taken as quoted already."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value.replace('"', '\\"')


def write(region: str) -> SamConfig:
    """Ask the questions with `region` as a default, write the file and return its values."""
    # Check before the questions, so that no answer is lost.
    if not PATH.parent.is_dir():
        sys.exit(f"There is no folder {PATH.parent} for {PATH.name}: make it, or name a file elsewhere in CONFIG.")
    try:
        stack, region = _ask(STACK, "chapterverse"), _ask(REGION, region)
        answers = {"Site": _ask(SITE, "docs"), "AllowedOrigins": _ask(ORIGINS, ""), "AlarmEmail": _ask(EMAIL, "")}
    except EOFError:
        sys.exit(f"There is no {PATH} yet, and nobody to ask: run make deploy in a terminal first.")
    parameters = {
        "stack_name": stack,
        "region": region,
        "s3_prefix": stack,
        "resolve_s3": True,
        "capabilities": "CAPABILITY_IAM",
        "confirm_changeset": True,
        "parameter_overrides": [f"{name}={value}" for name, value in answers.items() if value],
    }
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in parameters.items())
    try:
        PATH.write_text(f"version = 0.1\n\n[default.deploy.parameters]\n{''.join(lines)}", "utf-8")
    except OSError as failure:
        sys.exit(f"{PATH} can't be written ({failure.strerror}): mend the rights, or name another file in CONFIG.")
    print(f"Saved in {PATH}, which holds no secret: keep it in your repository.")
    return SamConfig(stack, region)


def _ask(question: Question, default: str, read: Callable[[str], str] = input) -> str:
    while True:
        answer = read(f"{question.words}{f' [{default}]' if default else ''}: ").strip() or default
        if re.fullmatch(question.pattern, answer):
            return answer
        print(f"That must be {question.needs}.")
