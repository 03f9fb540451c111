"""The package for Starlight and Astro, by a build and a preview of the real generator."""

from __future__ import annotations

import pytest

from generators.project import Project, check_that_a_failed_index_counts, until

CONFIG = """\
import {defineConfig} from 'astro/config';
import starlight from '@astrojs/starlight';
import chapterverse from 'astro-chapterverse/starlight';

export default defineConfig({
  site: 'https://tea.example', base: '/pot', trailingSlash: 'always',
  integrations: [starlight({
    title: 'Tea',
    locales: {root: {label: 'English', lang: 'en'}, fr: {label: 'Français'}},
    plugins: [chapterverse({endpoint: '/', exclude: ['internal.mdx'], widget: {title: 'Ask about tea'}})],
  })],
});
"""
CONTENT = """\
import {defineCollection} from 'astro:content';
import {docsLoader} from '@astrojs/starlight/loaders';
import {docsSchema} from '@astrojs/starlight/schema';

export const collections = {docs: defineCollection({loader: docsLoader(), schema: docsSchema()})};
"""
BREW = "src/content/docs/guides/Brew Tea.mdx"
FILES = {
    "astro.config.mjs": CONFIG,
    "src/content.config.ts": CONTENT,
    "src/content/docs/index.md": "---\ntitle: Tea\n---\n\nWelcome to the teapot.\n",
    BREW: "---\ntitle: Brewing\n---\n\nHot water first.\n\n## Green tea\n\nEighty degrees are enough.\n",
    "src/content/docs/internal.mdx": "---\ntitle: Internal\n---\n\nNot for all.\n",
    "src/content/docs/fr/index.md": "---\ntitle: Maison\n---\n\nBienvenue.\n",
}


@pytest.fixture(scope="module")
def project() -> Project:
    return Project.new("starlight", "astro/bin/astro.mjs", "dist", FILES)


def test_a_build_has_the_chat_and_cites_the_sources_of_each_locale(project: Project) -> None:
    assert "Indexed 4 pages (4 new" in project.build()
    cited = project.cited()
    assert cited["https://tea.example/pot/guides/brew-tea/#green-tea"] == BREW
    assert {url.partition("#")[0]: file for url, file in cited.items()} == {
        "https://tea.example/pot/": "src/content/docs/index.md",
        "https://tea.example/pot/guides/brew-tea/": BREW,
        "https://tea.example/pot/fr/": "src/content/docs/fr/index.md",
        # It stands in for a translation.
        "https://tea.example/pot/fr/guides/brew-tea/": "fr/guides/brew-tea/index.html",
    }
    seen = project.check("internal.mdx")
    assert {kind: [f.says for f in seen.of(kind)] for kind in seen.counts} == {}
    # The chat has the site's colors, on each page.
    styles = [file.read_text("utf-8") for file in (project.root / project.output).rglob("*.css")]
    assert any("--chapterverse-accent:" in style for style in styles)


def test_a_failed_index_fails_a_build_where_it_counts(project: Project) -> None:
    check_that_a_failed_index_counts(project)


def test_the_preview_answers_and_follows_edits(project: Project) -> None:
    with project.preview("dev", "/pot/guides/brew-tea/") as chat:
        assert chat.config()["title"] == "Ask about tea"
        chunk = chat.wait_for("How hot is green tea?", "Eighty degrees")
        assert chunk["url"] == f"{chat.origin}/pot/guides/brew-tea/"
        project.write({BREW: FILES[BREW].replace("Eighty", "Seventy")})
        chat.wait_for("How hot is green tea?", "Seventy degrees")
    until(lambda: not chat.is_running() or None, chat.log)
