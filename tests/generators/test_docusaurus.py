"""The package for Docusaurus, by a build and a preview of the real generator."""

from __future__ import annotations

import pytest

from generators.project import Project, until

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


def test_the_preview_answers_and_follows_edits(project: Project) -> None:
    with project.preview("start", "/pot/guide/brew", "--no-open") as chat:
        assert chat.config()["title"] == "Ask about tea"
        chunk = chat.wait_for("How hot is green tea?", "Eighty degrees")
        assert chunk["url"] == f"{chat.origin}/pot/guide/brew"
        project.write({"docs/guide/01-brew.mdx": BREW.replace("Eighty", "Seventy")})
        chat.wait_for("How hot is green tea?", "Seventy degrees")
    until(lambda: not chat.is_running() or None, chat.log)
