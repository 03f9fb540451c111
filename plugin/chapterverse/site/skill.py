"""The skill by which an agent learns to look things up on a site, and the index that names it.

The file is a `SKILL.md` (agentskills.io), the index that of the Agent Skills Discovery draft, version 0.2.0, at
`.well-known/agent-skills/index.json`. Clients look for the index at the root of a host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from chapterverse.model import slug
from chapterverse.site.llms_text import PageGroup, SiteFacts
from chapterverse.site.markdown_page import MARK

FOLDER = ".well-known/agent-skills"
INDEX = f"{FOLDER}/index.json"
_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"

#: Limits of the format.
_MAX_NAME_CHARS, _MAX_DESCRIPTION_CHARS = 64, 1024


def skill_files(
    site: SiteFacts, groups: Sequence[PageGroup], *, markdown: bool, llms_txt: bool, llms_full_txt: bool
) -> dict[str, str]:
    """Return the skill and its index by path.

    Args:
        groups: the site's pages, those of its main language first.
        markdown: pages have a Markdown file; the next two say the same of their files.
    """
    name = _name(site.name)
    path = f"{FOLDER}/{name}/SKILL.md"
    about = f"Look things up in the documentation of {site.title}, and cite its pages."
    description = " ".join(f"{about} {site.description}".split())[:_MAX_DESCRIPTION_CHARS]
    steps = [*_steps(site, groups, markdown=markdown, llms_txt=llms_txt, llms_full_txt=llms_full_txt)]
    body = "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))
    text = (
        f"---\nname: {name}\nmetadata:\n  {MARK}\ndescription: {json.dumps(description, ensure_ascii=False)}\n---\n\n"
        f"# Documentation of {site.title}\n\nThe documentation is at <{site.base_url}>. Answer from its pages and "
        f"not from memory. Name the address of each page that you rely on. If no page says it, say so.\n\n{body}"
    )
    entry = {
        "name": name,
        "type": "skill-md",
        "description": description,
        "url": urlsplit(site.address(path)).path,
        "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
    }
    return {path: text, INDEX: json.dumps({"$schema": _SCHEMA, "skills": [entry]}, ensure_ascii=False, indent=2) + "\n"}


def _steps(
    site: SiteFacts, groups: Sequence[PageGroup], *, markdown: bool, llms_txt: bool, llms_full_txt: bool
) -> list[str]:
    steps = []
    if site.endpoint:
        api = urljoin(site.base_url, site.endpoint).rstrip("/")
        body = '{"query": "a question", "top_k": 5}'
        steps.append(
            f"To search, send `POST {api}/v1/retrieve` with the JSON `{body}`. Each of `retrieved_chunks` has the text "
            f"of a passage, its headings and the address to cite."
        )
    for group in groups if llms_txt else ():
        language = f" in {group.language}" if len(groups) > 1 else ""
        steps.append(f"To see all pages{language}, read <{site.address(group.list_path)}>.")
    if markdown:
        steps.append(
            "To read a page, fetch its Markdown: of `…/a/` it is `…/a/index.md`, of `…/a.html` it is `…/a.md`. Each "
            'page also links to it by `<link rel="alternate" type="text/markdown">`.'
        )
    for group in groups if llms_full_txt else ():
        language = f" in {group.language}" if len(groups) > 1 else ""
        steps.append(f"To read everything{language} at once, fetch <{site.address(group.full_path)}>. It may be large.")
    return steps


def _name(site: str) -> str:
    """Return the skill's name: lower-case letters, digits and single hyphens."""
    words = (word for word in slug(site).split("-") if word.isascii())
    return f"{'-'.join(words)[: _MAX_NAME_CHARS - 5].strip('-')}-docs".lstrip("-")
