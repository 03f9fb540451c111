"""Writes what pages repeat: the table of settings, the limits of a request, how each generator's site is deployed.

python scripts/reference.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import yaml

from chapterverse.manifests import EXTENSIONS, Setting
from chapterverse_api import request_limits as limits

_SITE = Path(__file__).parents[1] / "site_example"
PAGES = _SITE / "docs"
BEGIN, END = "<!-- Written by scripts/reference.py. -->\n\n", "\n<!-- The end of what it writes. -->\n"

#: What stands in the column "limit" of the fields of a request.
LIMITS = {
    "query": f"1 to {limits.MAX_MESSAGE_CHARS:,} characters, at most {limits.MAX_QUERY_TOKENS:,} cl100k tokens",
    "selected_text": f"{limits.MAX_SELECTION_CHARS:,} characters",
    "conversation_history": f"{limits.MAX_HISTORY_MESSAGES} messages, {limits.MAX_HISTORY_CHARS:,} characters in all",
    "user_context": f"{limits.MAX_CONTEXT_CHARS:,} characters",
    "thread_id": f"1 to {limits.MAX_NAME_CHARS} letters, digits, `-` and `_`",
    "page_url": f"{limits.MAX_URL_CHARS:,} characters",
    "language": f"{limits.MAX_LANGUAGE_CHARS} characters",
    "version": f"{limits.MAX_VERSION_CHARS} characters",
    "top_k": f"1 to {limits.MAX_TOP_K}",
}


def table() -> str:
    """Return the rows of all settings, in the order of the manifests."""
    rows = (_row(setting) for extension in EXTENSIONS for setting in extension.settings)
    return "".join(["| variable | default | what it does |\n| --- | --- | --- |\n", *rows])


def _row(setting: Setting[Any]) -> str:
    default = int(setting.default) if isinstance(setting.default, bool) else setting.default
    shown = "" if default in ("", None) else _code(default)
    return f"| {_code(setting.variable)} | {shown} | {_explain(setting)} |\n"


def _explain(setting: Setting[Any]) -> str:
    # Links of a manifest start at the folder of the docs.
    text = re.sub(r"\]\((?!#)", "](../", setting.help).replace("](../reference/", "](")
    values = f" Values: {', '.join(map(_show_value, _forms(setting)))}." if any(_forms(setting)) else ""
    secret = " A [secret](#secrets)." if setting.kind == "secret" else ""
    return text + values + secret + (f" 1 to {setting.most}." if setting.most else "")


def _show_value(form: str) -> str:
    """Return a value with the extra that it needs: that of the room after which it is named."""
    extras = {extension.name: extension.extra for extension in EXTENSIONS}
    extra = extras.get(re.split(r"\W", form)[0])
    return _code(form) + (f" (extra {_code(extra)})" if extra else "")


def _forms(setting: Setting[Any]) -> Iterator[str]:
    for extension in EXTENSIONS:
        yield from extension.offers.get(setting.name, ())


def _code(text: object) -> str:
    return f"`{text}`"


def configuration(text: str) -> str:
    """Return the page with the table as it should be."""
    return _between_marks(text, table())


def http_api(text: str) -> str:
    """Return the page with the limits as they should be."""
    for field, limit in LIMITS.items():
        text = re.sub(rf"(?<=^\| `{field}` \| )[^|]*(?= \|)", limit, text, count=1, flags=re.MULTILINE)
    return text


def generator(text: str) -> str:
    """Return the page of a generator with the files that deploy its site, by the commands in its front matter."""
    _, front_matter, _ = text.split("---\n", 2)
    # Pages are Markdown and not HTML.
    loader = jinja2.FileSystemLoader(_SITE / "includes")
    templates = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined)
    files = templates.get_template("deploy.md").render(setup=yaml.safe_load(front_matter)["setup"])
    return _between_marks(text, f"{files}\n")


def _between_marks(text: str, written: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"A page lacks the comments {BEGIN.strip()} and {END.strip()}.")
    return before + begin + written + end + after


#: By page, what writes it.
WRITERS = {
    "reference/configuration.md": configuration,
    "reference/http-api.md": http_api,
    **{
        f"generators/{name}.md": generator
        for name in ("docusaurus", "hugo", "jekyll", "mkdocs", "sphinx", "starlight", "vitepress")
    },
}

if __name__ == "__main__":
    for name, write in WRITERS.items():
        (PAGES / name).write_text(write((PAGES / name).read_text("utf-8")), "utf-8")
