"""The files that tell an agent of a whole site: `llms.txt`, `llms-full.txt`, and a skill with the index that names it.

`llms.txt` lists the pages (llmstxt.org), `llms-full.txt` holds their text. Both have a limit: pages beyond it are named
by their number or by their addresses, and never left out in silence. The skill is a `SKILL.md` (agentskills.io), its
index that of the Agent Skills Discovery draft, version 0.2.0, which clients look for at the root of a host.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from urllib.parse import quote, urljoin, urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.model import slug
from chapterverse.readers.urls import SAFE
from chapterverse.site import markdown_page
from chapterverse.site.markdown_page import PageFile

#: Most characters of `llms.txt`; Mintlify has the same limit.
MAX_LIST_CHARS = 100_000
#: Most bytes of the pages in `llms-full.txt`: about a million tokens, the largest context that models have.
MAX_FULL_BYTES = 4_000_000

#: The last line of both files, by which a later run knows them.
OVERVIEW_MARK = "<!-- generator: chapterverse -->"

SKILLS = ".well-known/agent-skills"
SKILL_INDEX = f"{SKILLS}/index.json"
_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
#: Limits of the format.
_MAX_NAME_CHARS, _MAX_DESCRIPTION_CHARS = 64, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The kinds of files to write; each can be switched off.

    Attributes:
        markdown: the Markdown of each page, and a link to it in the page's head.
        overwrite: whether files of these names that are not ours are replaced.
    """

    markdown: bool = True
    llms_txt: bool = True
    llms_full_txt: bool = True
    skill: bool = True
    overwrite: bool = False

    @classmethod
    def of(cls, options: object) -> AgentOptions:
        """Return the options of a site's configuration: a mapping, or true or false for all of them.

        Raises:
            ConfigurationError: there is no such option, or its value is neither true nor false.
        """
        names = [option.name for option in fields(cls)]
        if isinstance(options, bool):
            return cls(**dict.fromkeys(names[:-1], options))
        if not isinstance(options, Mapping):
            raise ConfigurationError(f"agents must be true, false, or a mapping of {', '.join(names)}.")
        for name, value in options.items():
            if name not in names:
                raise ConfigurationError(f"There is no option agents.{str(name)[:60]!s}: it may be {', '.join(names)}.")
            if not isinstance(value, bool):
                raise ConfigurationError(f"agents.{name} must be true or false.")
        return cls(**options)

    @property
    def any(self) -> bool:
        return self.markdown or self.llms_txt or self.llms_full_txt or self.skill


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the files say about the site.

    Attributes:
        base_url: its address, with a slash at its end.
        version: of its docs, "" if they have none.
        endpoint: the API of its chat: an address, "/" for the site's own origin, "" for none.
    """

    name: str
    base_url: str
    description: str = ""
    version: str = ""
    endpoint: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()

    @property
    def head(self) -> str:
        return f"# {_label(self.title)}\n" + (f"\n> {_label(self.description)}\n" if self.description else "")

    def address(self, path: str) -> str:
        """Return the address of a file of the site."""
        return self.base_url + quote(path, safe=SAFE.replace("%", ""))


@dataclass(frozen=True, slots=True)
class PageGroup:
    """The pages of one language, in the order of their addresses, with the paths of their two files."""

    language: str
    pages: tuple[PageFile, ...]
    list_path: str
    full_path: str


def page_groups(pages: Iterable[PageFile]) -> list[PageGroup]:
    """Return the pages by language; the language of the home page, else of most pages, comes first.

    Its files are at the site's root; those of another language are in the folder of its pages. Where that folder has
    such files already, the language is in their names.
    """
    by_language: dict[str, list[PageFile]] = {}
    for page in sorted(pages, key=_order):
        by_language.setdefault(page.language, []).append(page)
    home = next((p.language for group in by_language.values() for p in group if p.path == "index.md"), "")
    groups: list[PageGroup] = []
    folders: set[str] = set()
    for language in sorted(by_language, key=lambda each: (each != home, -len(by_language[each]), each)):
        group = by_language[language]
        folder = _common_folder(group) if groups else ""
        suffix = f".{quote(language, safe='')}" if folder in folders else ""
        folders.add(folder)
        names = (posixpath.join(folder, f"{name}{suffix}.txt") for name in ("llms", "llms-full"))
        groups.append(PageGroup(language, tuple(group), *names))
    return groups


def llms_txt(site: SiteFacts, group: PageGroup, other_groups: Sequence[PageGroup], options: AgentOptions) -> str:
    """Return the list of a language's pages.

    Args:
        other_groups: groups of other languages, whose lists it names.
        options: say which other files there are. Without Markdown it links to the pages themselves.
    """
    more = [f"- [All pages as one file]({site.address(group.full_path)})"] if options.llms_full_txt else []
    more += [f"- [Pages in {_label(other.language)}]({site.address(other.list_path)})" for other in other_groups]
    tail = "".join(f"\n{part}" for part in (["## More\n", *more, ""] if more else [])) + f"\n{OVERVIEW_MARK}\n"
    room = MAX_LIST_CHARS - len(site.head) - len(tail) - 200
    sections = _sections(group.pages)

    def entries(described: bool) -> list[tuple[str, str]]:
        return [(name, _entry(site, page, options.markdown, described)) for name, page in sections]

    lines = entries(described=True)
    if sum(len(line) for _, line in lines) + sum(len(name) + 6 for name in {name for name, _ in sections}) > room:
        lines = entries(described=False)
    listed, by_section = 0, dict[str, str]()
    for name, line in lines:
        heading = "" if name in by_section else f"\n## {name}\n\n"
        room -= len(heading + line)
        if room < 0:
            break
        by_section[name] = by_section.get(name, "") + heading + line
        listed += 1
    rest = len(lines) - listed
    note = f"\n{rest:,} more pages don't fit into this list.\n" if rest else ""
    return "".join([site.head, *by_section.values(), note, tail])


def llms_full_txt(site: SiteFacts, group: PageGroup) -> str:
    """Return the text of a language's pages, each behind its address."""
    parts, left_out, room = [site.head], [], MAX_FULL_BYTES
    for page in group.pages:
        part = f"\n---\n\nSource: {page.url}\n\n{page.body}"
        size = len(part.encode())
        if size <= room:
            parts.append(part)
            room -= size
        else:
            left_out.append(f"- [{_label(page.title)}]({page.url})\n")
    if left_out:
        parts.append(f"\n---\n\nThis file holds at most {MAX_FULL_BYTES:,} bytes of pages. These pages don't fit:\n\n")
    return "".join([*parts, *left_out, f"\n{OVERVIEW_MARK}\n"])


def _entry(site: SiteFacts, page: PageFile, markdown: bool, described: bool) -> str:
    address = site.address(page.path) if markdown else page.url
    description = f": {page.description}" if described and page.description else ""
    return f"- [{_label(page.title)}]({address}){description}\n"


def _label(text: str) -> str:
    return text.replace("[", "\\[").replace("]", "\\]").replace("\n", " ")


def _order(page: PageFile) -> tuple[str, ...]:
    """Return a page's place: home first, then pages of the folder, then folders, each index before its pages."""
    *folders, name = page.path.split("/")
    return (*(f"1{folder}" for folder in folders), "" if name.lower() == "index.md" else f"0{name}")


def _common_folder(pages: Sequence[PageFile]) -> str:
    return posixpath.commonpath([posixpath.dirname(page.path) for page in pages])


def _sections(pages: Sequence[PageFile]) -> list[tuple[str, PageFile]]:
    """Return each page with the heading that it is listed under: its folder, below the folder that all pages share."""
    shared = _common_folder(pages)
    below = [page.path.removeprefix(f"{shared}/" if shared else "").split("/") for page in pages]
    sizes = Counter(parts[0] for parts in below if len(parts) > 1)
    # In sites with a folder for each page, `a/index.md` is page `a` unless more pages are below.
    folders = [
        parts[0] if len(parts) > 1 and (sizes[parts[0]] > 1 or parts[1:] != ["index.md"]) else "" for parts in below
    ]
    return [(_folder_name(folder), page) for folder, page in zip(folders, pages, strict=True)]


def _folder_name(folder: str) -> str:
    name = " ".join(folder.replace("-", " ").replace("_", " ").split())
    return _label(name[:1].upper() + name[1:]) or "Pages"


def skill_files(site: SiteFacts, groups: Sequence[PageGroup], options: AgentOptions) -> tuple[str, str, str]:
    """Return the skill's path, the skill, and its index.

    Args:
        groups: the site's pages, those of its main language first.
        options: say which other files there are.
    """
    name = _skill_name(site.name)
    path = f"{SKILLS}/{name}/SKILL.md"
    about = f"Look things up in the documentation of {site.title}, and cite its pages."
    description = " ".join(f"{about} {site.description}".split())[:_MAX_DESCRIPTION_CHARS]
    body = "".join(f"{number}. {step}\n" for number, step in enumerate(_steps(site, groups, options), 1))
    text = (
        f"---\nname: {name}\nmetadata:\n  {markdown_page.PAGE_MARK}\n"
        f"description: {json.dumps(description, ensure_ascii=False)}\n---\n\n"
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
    return path, text, json.dumps({"$schema": _SCHEMA, "skills": [entry]}, ensure_ascii=False, indent=2) + "\n"


def _steps(site: SiteFacts, groups: Sequence[PageGroup], options: AgentOptions) -> Iterator[str]:
    languages = [f" in {group.language}" if len(groups) > 1 else "" for group in groups]
    if site.endpoint:
        api = urljoin(site.base_url, site.endpoint).rstrip("/")
        body = '{"query": "a question", "top_k": 5}'
        yield (
            f"To search, send `POST {api}/v1/retrieve` with the JSON `{body}`. Each of `retrieved_chunks` has the text "
            f"of a passage, its headings and the address to cite."
        )
    for group, language in zip(groups if options.llms_txt else (), languages, strict=False):
        yield f"To see all pages{language}, read <{site.address(group.list_path)}>."
    if options.markdown:
        yield (
            "To read a page, fetch its Markdown: of `…/a/` it is `…/a/index.md`, of `…/a.html` it is `…/a.md`. Each "
            'page also links to it by `<link rel="alternate" type="text/markdown">`.'
        )
    for group, language in zip(groups if options.llms_full_txt else (), languages, strict=False):
        yield f"To read everything{language} at once, fetch <{site.address(group.full_path)}>. It may be large."


def _skill_name(site: str) -> str:
    """Return the skill's name: lower-case letters, digits and single hyphens."""
    words = (word for word in slug(site).split("-") if word.isascii())
    return f"{'-'.join(words)[: _MAX_NAME_CHARS - 5].strip('-')}-docs".lstrip("-")
