"""The package for Docusaurus, by a build and a preview of the real generator."""

from __future__ import annotations

import pytest

from chapterverse.store import open_store
from chapterverse_api.index.site_index import version_at
from generators.project import Project, check_that_a_failed_index_counts, compare_links, until
from projects import chat_in

CONFIG = """\
export default {
  title: 'Tea', url: 'https://tea.example', baseUrl: '/pot/', trailingSlash: false,
  i18n: {defaultLocale: 'en', locales: ['fr', 'en']},
  presets: [['classic', {docs: {routeBasePath: '/'}, blog: false, pages: false}]],
  plugins: [['docusaurus-plugin-chapterverse', OPTIONS]],
};
"""
OPTIONS = "{endpoint: '/', exclude: ['docs/internal.mdx'], widget: {title: 'Ask about tea'}}"
BREW = "import T from '@theme/Tabs';\n\n# Brewing\n\nHot water first.\n\n## Green tea\n\nEighty degrees are enough.\n"
FRENCH = "i18n/fr/docusaurus-plugin-content-docs/current/index.md"
FILES = {
    "docusaurus.config.js": CONFIG.replace("OPTIONS", OPTIONS),
    "docs/index.md": "# Tea\n\nWelcome to the teapot.\n",
    "docs/guide/01-brew.mdx": BREW,
    "docs/internal.mdx": "# Internal\n\nNot for all.\n",
    FRENCH: "# Maison\n\nBienvenue.\n",
}


@pytest.fixture(scope="module")
def project() -> Project:
    return Project.new("docusaurus", "@docusaurus/core/bin/docusaurus.mjs", "build", FILES)


def test_a_build_has_the_chat_and_cites_the_sources_of_each_locale(project: Project) -> None:
    said = project.build()
    assert said.count("Indexed ") == 1
    assert chat_in(project.root / "build/assets/chapterverse")["strings"] == {"site": "Tea"}
    assert "Indexed 4 pages (4 new" in said
    # The title of a page has no anchor there.
    assert project.cited() == {
        "https://tea.example/pot/": "docs/index.md",
        "https://tea.example/pot/guide/brew": "docs/guide/01-brew.mdx",
        "https://tea.example/pot/guide/brew#green-tea": "docs/guide/01-brew.mdx",
        # It stands in for a translation.
        "https://tea.example/pot/fr/guide/brew": "fr/guide/brew.html",
        "https://tea.example/pot/fr/guide/brew#green-tea": "fr/guide/brew.html",
        "https://tea.example/pot/fr/": FRENCH,
    }
    seen = project.check("docs/internal.mdx")
    assert {kind: [f.says for f in seen.of(kind)] for kind in seen.counts} == {}


def test_a_failed_index_fails_a_build_where_it_counts(project: Project) -> None:
    check_that_a_failed_index_counts(project)


def test_the_preview_answers_and_follows_edits(project: Project) -> None:
    with project.preview("start", "/pot/guide/brew", "--no-open") as chat:
        assert chat.config()["title"] == "Ask about tea"
        chunk = chat.wait_for("How hot is green tea?", "Eighty degrees")
        assert chunk["url"] == f"{chat.origin}/pot/guide/brew"
        project.write({"docs/guide/01-brew.mdx": BREW.replace("Eighty", "Seventy")})
        chat.wait_for("How hot is green tea?", "Seventy degrees")
    until(lambda: not chat.is_running() or None, chat.log)


VERSIONED = {
    "docusaurus.config.js": CONFIG.replace("OPTIONS", OPTIONS).replace(
        "locales: ['fr', 'en']", "locales: ['en', 'fr']"
    ),
    "versions.json": '["2.0", "1.0"]',
    "versioned_docs/version-1.0/index.md": "# Tea\n\nThe first teapot.\n\n## Lid\n\nIt has none.\n",
    "versioned_docs/version-2.0/index.md": "# Tea\n\nThe second teapot.\n\n## Lid\n\nIt is of glass.\n",
    "docs/index.md": "# Tea\n\nThe coming teapot.\n\n## Lid\n\nIt will be of steel.\n",
}


def test_each_version_of_the_docs_has_an_index_at_its_address() -> None:
    project = Project.new("docusaurus", "@docusaurus/core/bin/docusaurus.mjs", "build", VERSIONED)
    assert project.build().count("Indexed ") == 3
    store = open_store(project.settings())
    assert {head.version: head.base_url for head in store.heads()} == {
        "2.0": "https://tea.example/pot/",
        "current": "https://tea.example/pot/next/",
        "1.0": "https://tea.example/pot/1.0/",
    }
    lids = {
        head.version: {point.chunk.url: point.chunk.text for point in store.snapshot(head.scope).points()}
        for head in store.heads()
    }
    assert lids["1.0"]["https://tea.example/pot/1.0#lid"] == "It has none."
    assert lids["2.0"]["https://tea.example/pot/#lid"] == "It is of glass."
    assert "https://tea.example/pot/fr/1.0#lid" in lids["1.0"]
    assert not [url for url in lids["2.0"] if "/1.0" in url or "/next" in url]
    # A question is answered from the version of its page, in any language.
    for path, version in {"fr/1.0": "1.0", "fr/next": "current", "fr": "2.0", "1.0": "1.0", "": "2.0"}.items():
        at = version_at(f"https://tea.example/pot/{path}", store.heads())
        assert at is not None
        assert at.version == version
    seen = project.check()
    assert {kind: [f.says for f in seen.of(kind)] for kind in seen.counts} == {}


LINKED = {
    "docusaurus.config.js": """\
export default {
  title: 'Tea', url: 'https://tea.example', baseUrl: '/',
  onBrokenLinks: 'warn', onBrokenAnchors: 'warn',
  markdown: {hooks: {onBrokenMarkdownLinks: 'warn', onBrokenMarkdownImages: 'warn'}},
  presets: [['classic', {docs: {routeBasePath: '/'}, blog: false, pages: false}]],
  themeConfig: {navbar: {items: [{to: '/gone-item', label: 'x'}, {to: '/guide/brew', label: 'y'}]}},
};
""",
    "docs/index.md": """\
# Tea

[a](./gone-page.md) [b](/gone-rooted) [c](./gone-relative) [d](#gone-here) [e](./guide/brew.md#gone-there)
![f](./gone-image.png) ![g](/gone-static.png) <a href="/gone-html">h</a> <img src="/gone-tag.png" />
[i](pathname:///other/pot.html)

[a](./guide/brew.md) [b](/guide/brew#green-tea) [c](pathname:///tea.pdf) ![d](/tea.png) [e](https://tea.example/other/)
""",
    "docs/guide/brew.md": BREW.partition("\n\n")[2],
    **{f"docs/{name}.md": "# Tea\n\nA page.\n" for name in ("cups", "kettles", "leaves", "milk", "pots", "water")},
    "static/tea.pdf": "tea",
    "static/tea.png": "tea",
}


def test_check_finds_each_dead_link_that_docusaurus_finds() -> None:
    project = Project.new("docusaurus", "@docusaurus/core/bin/docusaurus.mjs", "build", LINKED)
    # It looks at no HTML that an author wrote.
    assert compare_links(project.root / "build", LINKED, project.build()) == {"gone-html", "gone-tag"}
