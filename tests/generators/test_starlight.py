"""The package for Starlight and Astro, by a build and a preview of the real generator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from generators.project import Project, check_that_a_failed_index_counts, compare_links, until
from widget.sites import PAGES, markdown
from widget.standin import serve
from widget.test_themes import ANSWERED, COPY, QUESTION, SWITCH, UNDER, ask

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


HARBOR = {
    "astro.config.mjs": """\
import {defineConfig} from 'astro/config';
import starlight from '@astrojs/starlight';

const head = [{tag: 'script', attrs: {type: 'module', src: '/widget/launcher.js'}}];
export default defineConfig({
  site: 'https://harbor.example', build: {format: 'file'},
  integrations: [starlight({title: 'Harbor', pagefind: false, head})],
});
""",
    "src/content.config.ts": CONTENT,
    **{
        f"src/content/docs/{name}.md": f"---\ntitle: {title}\n---\n{markdown(title).partition(chr(10))[2]}"
        for name, title in PAGES.items()
    },
}


def test_a_docked_panel_has_no_text_under_it(chromium: Browser) -> None:
    project = Project.new("starlight", "astro/bin/astro.mjs", "dist", HARBOR)
    project.build()
    docked = []
    with serve() as site:
        site.folder = project.root / "dist"
        for width in (1000, 1280, 1440, 1680, 1920):
            page = chromium.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
            page.goto(f"{site.url}/index.html")
            site.replies.append(ANSWERED)
            ask(page, QUESTION, COPY)
            page.wait_for_timeout(300)
            dock = page.get_by_role("button", name="Beside the page")
            if dock.is_visible():
                docked.append(width)
                dock.click()
                page.wait_for_timeout(SWITCH)
                assert page.evaluate(UNDER) == [], width
            page.close()
    assert docked == [1280, 1440, 1680, 1920]


LINKED = {
    "astro.config.mjs": """\
import {defineConfig} from 'astro/config';
import starlight from '@astrojs/starlight';
import validator from 'starlight-links-validator';

const sidebar = [{label: 'x', link: '/gone-item/'}, 'brew', 'cups', 'leaves', 'pots'];
const plugins = [validator({errorOnRelativeLinks: false, exclude: ['/other/']})];
export default defineConfig({
  site: 'https://tea.example',
  integrations: [starlight({title: 'Tea', plugins, sidebar})],
});
""",
    "src/content.config.ts": CONTENT,
    "src/content/docs/index.mdx": """\
---
title: Tea
---

[a](/gone-rooted/) [b](./gone-relative/) [c](#gone-here) [d](/brew/#gone-there) [e](/gone-file.pdf)
![f](/gone-image.png) <a href="/gone-html/">g</a>

[a](/brew/) [b](/brew/#green-tea) [c](/tea.pdf) ![d](/tea.png) <a href="/other/" target="_self">e</a>
""",
    "src/content/docs/brew.md": FILES[BREW],
    **{f"src/content/docs/{name}.md": "---\ntitle: x\n---\n\n[All](/).\n" for name in ("cups", "leaves", "pots")},
    "public/tea.pdf": "tea",
    "public/tea.png": "tea",
}


def test_check_finds_each_dead_link_that_the_validator_of_starlight_finds() -> None:
    project = Project.new("starlight", "astro/bin/astro.mjs", "dist", LINKED)
    said = project.build(code=1)
    # It looks neither at images, JSX and the navigation, nor where a relative link leads.
    assert compare_links(project.root / "dist", LINKED, said) == {
        "gone-item", "gone-relative", "gone-image", "gone-html",
    }  # fmt: skip
