"""The example site agrees with the code: settings, commands, routes, and every error message."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import reference
import yaml

from chapterverse import errors
from chapterverse.manifests import SETTINGS

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "site_example"


def page(path: str) -> str:
    return (EXAMPLE / "docs" / path).read_text("utf-8")


def test_the_tour_has_five_small_pictures() -> None:
    folder = EXAMPLE / "docs/images/tour"
    shown = re.findall(r"\]\(\.\./images/tour/(\w+\.webp)\)", page("getting-started/tour.md"))
    assert sorted(shown) == sorted(file.name for file in folder.iterdir()), "run `make tour`"
    assert len(shown) == 5
    assert [name for name in shown if (folder / name).stat().st_size > 60_000] == []


def test_every_setting_is_documented() -> None:
    text = page("reference/configuration.md")
    variables = [setting.variable for setting in SETTINGS.values()]
    assert [name for name in variables if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("reference/configuration.md", "| `CHAPTERVERSE_MCP` | `0` |"),
        ("reference/http-api.md", "| `query` | 1 to 4,000 "),
        ("generators/hugo.md", "- run: chapterverse index public\n"),
    ],
)
def test_the_reference_states_what_the_code_does(name: str, row: str) -> None:
    text, write = page(name), reference.WRITERS[name]
    assert write(text) == text, "run `.venv/bin/python scripts/reference.py`"
    # What it writes is written anew, and nothing else of the page.
    assert row in text
    assert write(text.replace(row, row[:-4])) == text


def test_every_option_of_the_plugin_is_documented() -> None:
    from chapterverse.mkdocs import ChapterVerseConfig

    text = page("reference/configuration.md")
    names = [name for name, _ in ChapterVerseConfig._schema]
    assert len(names) >= 10
    assert [name for name in names if f"| `{name}` |" not in text] == []


def test_every_option_of_the_widget_is_documented_with_its_default() -> None:
    from chapterverse.widget.options import WidgetOptions

    text = page("reference/configuration.md")
    defaults = {name: field.default for name, field in WidgetOptions.model_fields.items()}
    shown = {k: f"`{v if isinstance(v, str) else json.dumps(v)}` |" if v != "" else "" for k, v in defaults.items()}
    assert [name for name, default in shown.items() if f"| `{name}` | {default}" not in text] == []


def test_every_command_and_flag_is_documented() -> None:
    from typer.main import get_command

    from chapterverse.cli import app

    text = page("reference/command-line.md")
    commands: dict[str, Any] = getattr(get_command(app), "commands")  # noqa: B009 (a group, says Typer; its type does not)
    assert [name for name in commands if f"## chapterverse {name}\n" not in text] == []
    flags = {option for c in commands.values() for p in c.load().params for option in p.opts if option.startswith("--")}
    assert [flag for flag in sorted(flags) if flag not in text] == []


def test_every_route_and_field_is_documented() -> None:
    from chapterverse_api.app import create_app
    from chapterverse_api.contract import ChatQuery, ChatResponse, RetrievalRequest
    from chapterverse_api.retrieval_contract import RetrievalResponse

    text = page("reference/http-api.md")
    routes = [f"{method.upper()} {path}" for path, item in create_app().openapi()["paths"].items() for method in item]
    assert [route for route in routes if f"## {route} " not in text] == []
    fields = chain(*(m.model_fields for m in (ChatQuery, ChatResponse, RetrievalRequest, RetrievalResponse)))
    assert [field for field in fields if f"`{field}`" not in text and f'"{field}"' not in text] == []


def sentences(node: ast.AST) -> Iterator[str]:
    """Yield the texts in a piece of code, "…" where a value is put in."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # Templates name what is put in, JSON in a sentence doesn't look like that.
        yield re.sub(r"\{\w*\}", "…", node.value)
    for child in ast.iter_child_nodes(node):
        yield from sentences(child)


def code() -> Iterator[ast.Module]:
    for folder in ("plugin/chapterverse", "lambda/chapterverse_api"):
        for file in (ROOT / folder).rglob("*.py"):
            yield ast.parse(file.read_text("utf-8"))


def documented_errors() -> list[str]:
    groups = yaml.safe_load((EXAMPLE / "data" / "errors.yml").read_text("utf-8"))
    return [sentence for group in groups for error in group["errors"] for sentence in error["says"]]


def normal(sentence: str) -> str:
    # The place that a sentence begins with may be put before it elsewhere.
    return re.sub("…+", "…", sentence).removeprefix("…: ")


def test_every_documented_sentence_is_said_by_the_code() -> None:
    said = {normal(s) for module in code() for s in sentences(module)}
    # A few are put together from two pieces; a shorter piece than this proves nothing.
    endings = tuple(s for s in said if len(s) > 20)
    widget = "\n".join(f.read_text("utf-8") for f in (ROOT / "plugin/chapterverse/widget").rglob("*.js"))
    unknown = [s for s in documented_errors() if not (normal(s) in said or s.endswith(endings) or f"'{s}'" in widget)]
    assert not unknown, "no longer said, see site_example/data/errors.yml:\n" + "\n".join(unknown)


def test_every_error_of_the_code_is_documented() -> None:
    kinds = {name for name in vars(errors) if name[0].isupper()} | {"_malformed"}
    calls = (n for module in code() for n in ast.walk(module) if isinstance(n, ast.Call) and n.args)
    raised = (c.args[0] for c in calls if isinstance(c.func, ast.Name) and c.func.id in kinds)
    whole = {normal(next(sentences(a))) for a in raised if isinstance(a, ast.Constant | ast.JoinedStr)}
    assert len(whole) > 50
    # Without a word of its own a sentence is put together elsewhere.
    missing = sorted(s for s in whole - set(map(normal, documented_errors())) if re.search(r"\w", s))
    assert not missing, "not in site_example/data/errors.yml:\n" + "\n".join(missing)
