"""The widget's options, for the plugin, the commands and front matter.

All are optional. Only options that differ from the defaults are written for browsers.
"""

from __future__ import annotations

import difflib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from chapterverse.errors import ConfigurationError
from chapterverse.text.json_text import parse_json
from chapterverse.widget.bundle import strings


def _check_key(key: str) -> str:
    if key not in strings():
        raise ValueError(key)
    return key


#: The beginning of a bare mail address.
_MAIL = re.compile(r"\A(?=[^\s@/:?]+@[^\s@/:?]+\Z)")

# The sentence in each type is its field's error message.
_Line = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=100), "must be a text of at most 100 characters."
]
_Paragraph = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=1000), "must be a text of at most 1000 characters."
]
_Switch = Annotated[bool, "must be true or false."]
_Contact = Annotated[
    str,
    BeforeValidator(lambda contact: _MAIL.sub("mailto:", contact) if isinstance(contact, str) else contact),
    StringConstraints(pattern=r"(?i)\A(?:$|https?://\S+$|mailto:\S+$)", max_length=2000),
    "must be a mail address, or an address that starts with https://, http:// or mailto:.",
]
_MENU = "must be true, false, or switches by the names copy, chatgpt, claude and mcp."
_Starter = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
# YAML reads 403 as a number, but it is a string's key.
_Key = Annotated[str, BeforeValidator(lambda key: str(key) if type(key) is int else key), AfterValidator(_check_key)]
_Word = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class WidgetOptions(BaseModel):
    """The options of the chat's appearance and behavior."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    title: _Line = ""
    """Heading of the panel and label of its button; empty is "Ask the docs" in the language of the page."""
    greeting: _Paragraph = ""
    """First line of an empty conversation, where {site} is the site's name; empty takes the widget's own."""
    placeholder: _Line = ""
    """Text in the empty question field; empty takes the widget's own."""
    starters: Annotated[list[_Starter], "must be a list of texts of 1 to 200 characters."] = []
    """Questions offered in an empty conversation, after those of the page."""
    strings: Annotated[dict[_Key, _Word], "must map keys to texts of 1 to 500 characters."] = {}
    """Replacements for the interface's strings, by the keys of lang/en.js and lang/more/en.js."""
    layout: Annotated[Literal["floating", "side"], "must be floating or side."] = "floating"
    """Whether the panel floats in the page's corner or fills a side of the window."""
    shortcut: _Switch = True
    """Whether Ctrl+I, on a Mac Cmd+I, opens the chat."""
    consent: _Paragraph = ""
    """Text that a reader must agree to before anything else is loaded; empty asks for no consent."""
    context: _Paragraph = ""
    """What the site knows of its reader, such as the edition or the system; `chapterverse.context` replaces it."""
    timeout: Annotated[int, Field(ge=5, le=300), "must be a whole number of seconds from 5 to 300."] = 60
    """Seconds after which a question without a whole answer fails."""
    scope: _Switch = True
    """Whether questions include their page, its language and its version."""
    menu: Annotated[bool | dict[Literal["copy", "chatgpt", "claude", "mcp"], bool], _MENU] = True
    """Whether the panel has the page's menu, or a switch for each of its entries; copy and mcp are on by default."""
    feedback: _Switch = True
    """Whether a reader may rate an answer."""
    contact: _Contact = ""
    """Mail address or form of a person, offered on refusals, failures and after a thumb down; empty offers none."""

    def config(self) -> dict[str, Any]:
        """Return the options that differ from the defaults, as keys of `Config` in types.d.ts."""
        chosen = self.model_dump(exclude_defaults=True)
        # The launcher shows a title before any string is loaded.
        if title := chosen.get("strings", {}).pop("title", ""):
            chosen.setdefault("title", title)
        return chosen


def read_options(options: Mapping[Any, Any], where: str = "") -> WidgetOptions:
    """Validate the options of a site.

    Args:
        options: options by name; None counts as not set.
        where: prefix of an option's name in messages, such as "widget.".

    Raises:
        ConfigurationError: an option is unknown or has an invalid value.
    """
    try:
        return WidgetOptions.model_validate({name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        (name, *inner) = error.errors()[0]["loc"]
        raise ConfigurationError(_complaint(name, inner, where)) from None


def read_file(path: Path) -> dict[Any, Any]:
    """Return the options in a file: JSON if it is named so, else YAML.

    Raises:
        ConfigurationError: it contains anything else.
    """
    try:
        text = path.read_text("utf-8-sig")
        # JSON may contain tabs, which YAML rejects.
        options = parse_json(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        options = ""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise ConfigurationError(f"{path.name} must hold options as YAML or JSON, such as `title: Ask us`.")
    return options


def starters_element(starters: object, where: str) -> str:
    """Return a hidden HTML element with a page's own starter questions, which indexing doesn't read.

    Args:
        where: as for `read_options`.

    Raises:
        ConfigurationError: `starters` is not a list of questions.
    """
    questions = read_options({"starters": starters}, where).starters
    return f'<div hidden data-chapterverse-starters="{html.escape(json.dumps(questions, ensure_ascii=False))}"></div>'


def _complaint(name: object, inner: list[Any], where: str) -> str:
    """Return the error message for an option, or for the part of it at `inner`."""
    path, fields = f"{where}{name}", WidgetOptions.model_fields
    if name not in fields:
        *most, last = fields
        return f"There is no option {path[:60]!a}: use {', '.join(most)} or {last}."
    if inner[1:] == ["[key]"]:
        key = str(inner[0])
        (nearest,) = difflib.get_close_matches(key, strings(), 1, 0)
        return f"There is no string {key[:60]!a} for {path}: the nearest is {nearest}."
    (rule,) = (rule for rule in fields[str(name)].metadata if isinstance(rule, str))
    return f"{path} {rule}"
