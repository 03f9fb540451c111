"""Names the static site generators whose rules hold for a folder of Markdown that was never built."""

from __future__ import annotations

from enum import StrEnum


class SiteGenerator(StrEnum):
    """The static site generator that a folder of Markdown is written for: its rules hold for ids and addresses.

    `mkdocs` is Zensical as well. `github` is Docusaurus without its configuration: both make ids by github-slugger.
    """

    MKDOCS = "mkdocs"
    GITHUB = "github"
    VITEPRESS = "vitepress"
    SPHINX = "sphinx"
    HUGO = "hugo"
    DOCUSAURUS = "docusaurus"

    @property
    def is_docusaurus(self) -> bool:
        return self in (SiteGenerator.GITHUB, SiteGenerator.DOCUSAURUS)
