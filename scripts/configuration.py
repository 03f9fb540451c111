"""Writes the table of settings into `site_example/docs/reference/configuration.md`, from the manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chapterverse.manifests import EXTENSIONS, Setting

PAGE = Path(__file__).parents[1] / "site_example" / "docs" / "reference" / "configuration.md"
BEGIN, END = "<!-- Written by scripts/configuration.py. -->\n\n", "\n<!-- The end of what it writes. -->\n"


def table() -> str:
    """Return the rows of all settings, in the order of the manifests."""
    rows = (_row(setting) for extension in EXTENSIONS for setting in extension.settings)
    return "".join(["| variable | default | what it does | extra |\n| --- | --- | --- | --- |\n", *rows])


def _row(setting: Setting[Any]) -> str:
    default = int(setting.default) if isinstance(setting.default, bool) else setting.default
    shown = "" if default in ("", None) else _code(default)
    return f"| {_code(setting.variable)} | {shown} | {_explain(setting)} | {_name_extras(setting)} |\n"


def _explain(setting: Setting[Any]) -> str:
    # Links of a manifest start at the folder of the docs.
    text = re.sub(r"\]\((?!#)", "](../", setting.help).replace("](../reference/", "](")
    values = f" Values: {', '.join(map(_code, _forms(setting)))}." if any(_forms(setting)) else ""
    secret = " A [secret](#secrets)." if setting.kind == "secret" else ""
    return text + values + secret + (f" 1 to {setting.most}." if setting.most else "")


def _name_extras(setting: Setting[Any]) -> str:
    """Return the extras that some values need: those of the rooms after which the values are named."""
    extras = {extension.name: extension.extra for extension in EXTENSIONS}
    needed = ((form, extras.get(re.split(r"\W", form)[0])) for form in _forms(setting))
    return ", ".join(f"{_code(extra)} for {_code(form)}" for form, extra in needed if extra)


def _forms(setting: Setting[Any]) -> Iterator[str]:
    for extension in EXTENSIONS:
        yield from extension.offers.get(setting.name, ())


def _code(text: object) -> str:
    return f"`{text}`"


def page(text: str) -> str:
    """Return the page with the table as it should be."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} lacks the comments between which the table stands.")
    return before + begin + table() + end + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
