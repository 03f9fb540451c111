"""The macro of the documentation: a part that several pages share, filled in by each page's own front matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

_PARTS = Path(__file__).parent / "includes" / "generators"


def define_env(env: Any) -> None:
    """Register the macro; mkdocs-macros calls this."""
    loader = jinja2.FileSystemLoader(_PARTS)
    # Pages are Markdown and not HTML.
    parts = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined)  # noqa: S701

    @env.macro  # type: ignore[untyped-decorator]
    def part(name: str) -> str:
        """Return `includes/generators/NAME.md`, with `setup` of the page's front matter."""
        return parts.get_template(f"{name}.md").render(setup=env.page.meta["setup"])
