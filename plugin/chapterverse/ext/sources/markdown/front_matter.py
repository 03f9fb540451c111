"""The facts that a Markdown file states about itself in its front matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chapterverse.model import stated_date
from chapterverse.readers.front_matter import split_values, tag_values, text_value

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The facts that a file states about itself.

    Attributes:
        created_at: ISO 8601 UTC, None where it states no date.
        excluded: it is a draft, or takes itself out of search or out of this index.
        language: BCP 47 tag of `lang` or `language`, "" where it names none.
        slug: where Docusaurus is asked to publish it; `id` what to call it there.
        content_type: under `chapterverse`, as stated; None where it states none.
        marks: its `layout` and its `template`, and "redirect" where it only leads elsewhere.
        values: all of it, as stated.
    """

    title: str = ""
    tags: tuple[str, ...] = ()
    created_at: str | None = None
    excluded: bool = False
    language: str = ""
    slug: str = ""
    id: str = ""
    content_type: Any = None
    marks: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)


def split_front_matter(text: str, file_path: str) -> tuple[FrontMatter, str]:
    """Return the front matter and the text below it.

    Raises:
        UnreadablePage: it is no valid YAML; the message names `file_path`.
    """
    values, below = split_values(text, file_path)
    return (FrontMatter() if values is None else _front_matter(values)), below


def _front_matter(values: dict[Any, Any]) -> FrontMatter:
    chapterverse_fields = values.get("chapterverse")
    redirect = "redirect" if values.get("redirect_to") else ""
    return FrontMatter(
        title=text_value(values.get("title")),
        tags=tag_values(values.get("tags")),
        created_at=_created(values.get("date")),
        excluded=values.get("draft") is True or any(_excludes(values.get(k)) for k in ("chapterverse", "search")),
        language=_language(values),
        slug=text_value(values.get("slug")),
        id=text_value(values.get("id")),
        content_type=chapterverse_fields.get("content_type") if isinstance(chapterverse_fields, dict) else None,
        values={str(key): value for key, value in values.items()},
        marks=" ".join(filter(None, (text_value(values.get("layout")), text_value(values.get("template")), redirect))),
    )


def _language(values: dict[Any, Any]) -> str:
    stated = (text_value(values.get(key)).replace("_", "-") for key in ("lang", "language"))
    return next((tag for tag in stated if _TAG.fullmatch(tag)), "")


def _excludes(value: Any) -> bool:
    return isinstance(value, dict) and value.get("exclude") is True


def _created(value: Any) -> str | None:
    # Material's blog writes {created: ..., updated: ...}.
    stated = value.get("created") if isinstance(value, dict) else value
    try:
        return stated_date(stated.strip() if isinstance(stated, str) else stated)
    except OverflowError:
        return None
