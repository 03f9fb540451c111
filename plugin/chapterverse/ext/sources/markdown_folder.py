"""Reads a folder of Markdown and MDX without a build, at the addresses of its generator."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urljoin

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.ext.sources.markdown.addresses import address_rule, built_path, config_word
from chapterverse.ext.sources.markdown.front_matter import FrontMatter, split_front_matter
from chapterverse.ext.sources.markdown.hugo import HugoAddresses
from chapterverse.ext.sources.markdown.page import SYNTAXES, needs_build, read_markdown
from chapterverse.model import Image, Page, Section, Source
from chapterverse.page_kinds import EXCLUDED, NO_PAGE, OPTED_OUT
from chapterverse.readers.folder import Listing, PageGlobs, decode_page, list_files, read_page
from chapterverse.readers.page_rules import PageFacts
from chapterverse.readers.site_pages import SitePages, SitePagesDraft, require_unchanged
from chapterverse.readers.urls import SiteGenerator, parse_base_url

_MARKDOWN = (".md", ".markdown", ".mdx")
#: A path out of the folder: the folder beside it, and the path below that.
_OUTSIDE = re.compile(r"((?:\.\./)+(?:[^/]+(?=/))?)/?(.+)")
_LOCALE = re.compile(r"[a-z]{2}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?\Z")


def read_markdown_folder(
    folder: Path,
    base_url: str | None = None,
    *,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    generator: SiteGenerator = SiteGenerator.MKDOCS,
    no_pages: Collection[str] = (),
    listed: Mapping[str, str] | None = None,
) -> SitePages:
    """Return the pages of a folder of Markdown and MDX; `content_hash` covers a file's bytes.

    Which files become pages, and where, follows from `generator` and its configuration (see `addresses`). Their
    language is that of the front matter (`lang`, `language`), else the folder's (see `locale_folders`), else English.
    Sections carry the anchors that the generator would give them, marked as not verified. Files of `no_pages` are
    ignored. Pages that only list others are left out (see `page_rules`), unless a pattern of `include` matches the
    file or the page that it becomes. Pages that a pattern of `exclude` matches are left out too. One warning counts
    the pages that only a build can complete.

    Args:
        listed: address of each page, relative to `base_url`, by file, where the generator states them; then no other
            file is a page.

    Raises:
        InputError: no folder, no Markdown in it, no `base_url`.
    """
    base = parse_base_url(base_url)
    if base is None:
        raise InputError("Markdown files don't say where they will be published: pass --base-url.")
    listing = _list(folder, listed, no_pages)
    read_file = read_page if listed is None else _read_listed
    pages = SitePagesDraft(folder, [*listing.warnings], read_file, globs=PageGlobs.of(include=include, exclude=exclude))
    rule = address_rule(generator, folder, listing.files)
    address = rule.path if listed is None else lambda path, _: listed.get(path)
    read = list(_read_files(pages, listing.files, address, generator, base))
    for path in [path for path in pages.failed if pages.globs.excludes(path)]:
        del pages.failed[path]
        pages.left_out[path] = EXCLUDED
    if not read:
        raise pages.empty_error("no Markdown file to index.")
    if isinstance(rule, HugoAddresses) and rule.unknown:
        pages.warnings.append(
            f"{rule.unknown:,} pages are left out, as their files don't tell their `permalinks`: index the built site."
        )
    if unrendered := sum(is_unrendered for _, is_unrendered in read):
        pages.warnings.append(
            f"{unrendered:,} pages take text from elsewhere when they are built (shortcodes, includes, components): "
            "it is missing here, so index the built site if you can."
        )
    return pages.finish([(source.url, source) for source, _ in read], base)


def _read_files(
    pages: SitePagesDraft,
    paths: Sequence[str],
    address_of: Callable[[str, FrontMatter], str | None],
    generator: SiteGenerator,
    base: str,
) -> Iterator[tuple[Source, bool]]:
    """Yield each page, and whether only a build can complete it; the draft notes the other files."""
    locales = locale_folders(paths)
    docusaurus = generator is SiteGenerator.DOCUSAURUS
    syntax = (config_word(pages.folder, generator, "format", SYNTAXES) or "mdx") if docusaurus else ""
    # The files of sections first, the outer ones before the inner ones: in Hugo they rule over the pages below.
    for file in pages.read_files(sorted(paths, key=_outer_sections_first)):
        try:
            matter, body = split_front_matter(file.text, file.path)
        except UnreadablePage as error:
            pages.failed[file.path] = error
            continue
        language = matter.language or locales.get(file.path.partition("/")[0], "en")
        address = address_of(file.path, matter)
        content_type = _content_type(pages, file.path, matter, body, language, address)
        if address is not None and content_type:
            url, content_hash = base + address, hashlib.sha256(file.content).hexdigest()
            page = Page(file.path, url, "", language, (), content_type, matter.tags, matter.created_at)
            # A page that is read in another way is read again.
            context = json.dumps([url, generator, language, content_type, *filter(None, [syntax])])
            read = functools.partial(_read_page, pages.folder, pages.read, page, content_hash, generator, syntax, base)
            yield Source(file.path, content_hash, context, read, url=url, language=language), needs_build(body)


def _content_type(
    pages: SitePagesDraft, path: str, matter: FrontMatter, body: str, language: str, address: str | None
) -> str:
    """Return the content type of a page, "" for a file that is left out."""
    if matter.excluded or address is None:
        pages.left_out[path] = OPTED_OUT if matter.excluded else NO_PAGE
        return ""
    if pages.globs.excludes(path, built_path(address)):
        pages.left_out[path] = EXCLUDED
        return ""
    return pages.content_type(PageFacts(path, matter.marks, body, language), matter.content_type, built_path(address))


def _list(folder: Path, listed: Mapping[str, str] | None, no_pages: Collection[str]) -> Listing:
    if listed is None:
        return list_files(folder, _MARKDOWN, no_pages)
    pages = (path for path in sorted(listed.keys() - no_pages) if path.lower().endswith(_MARKDOWN))
    # The generator may know pages that a program made, of which there is no file.
    return Listing([path for path in pages if (folder / path).is_file()])


def _read_listed(folder: Path, path: str) -> bytes:
    """Return the bytes of a file that the generator states: a folder beside the site's that it names holds docs too."""
    outside = _OUTSIDE.match(path)
    return read_page(folder / outside[1], outside[2], path) if outside else read_page(folder, path)


def locale_folders(files: Iterable[str]) -> dict[str, str]:
    """Return the top folders that are translations, each with its BCP 47 tag: {"fr": "fr", "pt_BR": "pt-BR"}.

    "id" and "is" are words, too, so the name alone proves nothing: at least half of the folder's pages must have a
    counterpart of the same name beside the folder or in another one that is named like a language.
    """
    below: dict[str, set[str]] = {}
    for path in files:
        top, _, rest = path.partition("/")
        below.setdefault(top if rest else "", set()).add((rest or path).rpartition(".")[0])
    named = [folder for folder in below if _LOCALE.match(folder)]
    # Pages of the default language are at the root, in folders of any name.
    root = {f"{top}/{rest}" if top else rest for top, inside in below.items() if top not in named for rest in inside}
    tags: dict[str, str] = {}
    for folder in named:
        other_paths = root.union(*(below[other] for other in named if other != folder))
        if 2 * len(below[folder] & other_paths) >= len(below[folder]):
            tags[folder] = folder.replace("_", "-")
    return tags


def _outer_sections_first(path: str) -> tuple[bool, int, str]:
    is_section = path.rpartition("/")[2].startswith("_index.")
    return not is_section, path.count("/") if is_section else 0, path


def _read_page(
    folder: Path,
    read: Callable[[Path, str], bytes],
    page: Page,
    content_hash: str,
    generator: SiteGenerator,
    syntax: str,
    base: str,
) -> Page:
    """Return a page with its title and sections, which a file of this hash has."""
    content = read(folder, page.file_path)
    require_unchanged(page.file_path, content_hash, hashlib.sha256(content).hexdigest())
    text = decode_page(page.file_path, content)
    source = read_markdown(text, page.file_path, generator=generator, syntax=syntax)
    sections = tuple(_with_images_of(section, base + quote(page.file_path)) for section in source.sections)
    return replace(page, title=source.title, sections=sections)


def _with_images_of(section: Section, file_url: str) -> Section:
    """Return a section whose image addresses are resolved from its file, as links in a source are."""
    images: list[Image] = []
    for image in section.images:
        # An image with a malformed address is left out.
        with contextlib.suppress(ValueError):
            images.append(replace(image, src=urljoin(file_url, image.src)))
    return replace(section, images=tuple(images)) if images else section
