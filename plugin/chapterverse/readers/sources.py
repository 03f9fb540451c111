"""Reads a folder of Markdown and MDX without a build, at the addresses of its generator."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from chapterverse.errors import InputError, UnreadablePage
from chapterverse.model import Page, Source
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import PageFacts
from chapterverse.readers.folder import decode, list_files, read_page
from chapterverse.readers.front_matter import split_front_matter
from chapterverse.readers.locales import locale_folders
from chapterverse.readers.markdown import read_markdown
from chapterverse.readers.places import is_partial, source_path
from chapterverse.readers.reading import Reading, draft, require_unchanged, stated_base
from chapterverse.readers.slugs import SlugRule


def read_sources(
    folder: Path,
    base_url: str | None = None,
    slugs: SlugRule = SlugRule.MKDOCS,
    no_pages: Collection[str] = (),
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
) -> Reading:
    """Return the pages of a folder of Markdown and MDX; `content_hash` covers a file's bytes.

    Where a page is expected and which files are only parts of others follows from `slugs` (see `places`); its language
    is what its front matter says (`lang`, `language`), else its folder's (see `locales`), else English. Sections carry
    the anchors that `slugs` computes, marked as not verified. Files of `no_pages` are as if they weren't there.
    Pages that only list others are left out (see `page_kinds`), unless their path matches a pattern of `include`.

    Raises:
        InputError: no folder, no Markdown in it, no `base_url`.
        UnsafePath: a file leads out of the folder.
    """
    base = stated_base(base_url)
    if base is None:
        raise InputError("Markdown files don't say where they will be published: pass --base-url.")
    listing = list_files(folder, (".md", ".markdown", ".mdx"))
    listing.files = [path for path in listing.files if path not in no_pages]
    pages = draft(folder, listing, PageGlobs.of(exclude, include))
    locales = locale_folders(listing.files)
    sources: list[tuple[str, Source]] = []
    for file in pages.open(listing.files):
        try:
            matter, body = split_front_matter(file.text, file.path)
        except UnreadablePage as error:
            pages.failed[file.path] = error
            continue
        if matter.excluded or is_partial(file.path, slugs):
            pages.leave_out(file.path)
            continue
        url = base + source_path(file.path, slugs, matter.slug, matter.id)
        language = matter.language or locales.get(file.path.partition("/")[0], "en")
        content_type = pages.content_type(PageFacts(file.path, matter.marks, body, language), matter.content_type)
        if not content_type:
            continue
        content_hash = hashlib.sha256(file.content).hexdigest()
        read = functools.partial(_read_source, folder, file.path, content_hash, url, slugs, language, content_type)
        context = json.dumps([url, slugs, language, content_type])
        sources.append((url, Source(file.path, content_hash, context, read)))
    if not sources:
        raise pages.nothing("no Markdown file to index.")
    return pages.finish(sources, base)


def _read_source(
    folder: Path, path: str, content_hash: str, url: str, slugs: SlugRule, language: str, content_type: str
) -> Page:
    content = read_page(folder, path)
    require_unchanged(path, content_hash, hashlib.sha256(content).hexdigest())
    page = read_markdown(decode(path, content), path, slug=slugs)
    matter = page.front_matter
    return Page(path, url, page.title, language, page.sections, content_type, matter.tags, matter.created_at)
