"""The package for VitePress, by builds and previews of the real generator."""

from __future__ import annotations

import pytest

from generators.project import Project, check_that_a_failed_index_counts, compare_links, until
from projects import STORE

CONFIG = """\
import {defineConfig} from 'vitepress';
import chapterverse from 'vitepress-plugin-chapterverse';

export default defineConfig({
  title: 'Tea', base: '/pot/', cleanUrls: true, sitemap: {hostname: 'https://tea.example/pot/'},
  rewrites: {'guide/old.md': 'guide/brew.md'},
  locales: {root: {label: 'English', lang: 'en'}, fr: {label: 'Français', lang: 'fr'}},
  vite: {plugins: [chapterverse(OPTIONS)]},
});
"""
OPTIONS = "{endpoint: '/', exclude: ['internal.md'], widget: {title: 'Ask about tea'}}"
FILES = {
    ".vitepress/config.mjs": CONFIG.replace("OPTIONS", OPTIONS),
    "index.md": "# Tea\n\nWelcome to the teapot.\n",
    "guide/old.md": "# Brewing\n\nHot water first.\n\n## Green tea\n\nEighty degrees are enough.\n",
    "fr/index.md": "# Thé\n\nBienvenue à la théière.\n",
    "internal.md": "# Internal\n\nNot for all.\n",
}


@pytest.fixture(scope="module")
def project() -> Project:
    return Project.new("vitepress", "vitepress/bin/vitepress.js", ".vitepress/dist", FILES)


def test_a_build_has_the_chat_and_cites_the_sources(project: Project) -> None:
    assert "Indexed 3 pages (3 new" in project.build()
    assert project.cited() == {
        "https://tea.example/pot/#tea": "index.md",
        "https://tea.example/pot/guide/brew#brewing": "guide/old.md",
        "https://tea.example/pot/guide/brew#green-tea": "guide/old.md",
        "https://tea.example/pot/fr/#the": "fr/index.md",
    }
    assert {chunk.language for chunk in project.chunks()} == {"en", "fr"}
    seen = project.check("internal.md")
    # VitePress' menu of languages leads to the translation of every page, whether there is one or not.
    assert [*seen.counts] == ["dead_link"]
    (menu,) = seen.of("dead_link")
    assert menu.says.startswith("guide/brew.html links to /pot/fr/guide/brew, and the site has no page")
    assert "Indexed 3 pages (0 new, 0 changed, 0 removed)" in project.build()


def test_the_preview_answers_and_follows_edits(project: Project) -> None:
    with project.preview("dev", "/pot/guide/brew") as chat:
        assert chat.config()["title"] == "Ask about tea"
        assert chat.config()["endpoint"] == chat.api
        chunk = chat.wait_for("How hot is green tea?", "Eighty degrees")
        # Without a build, nobody knows its headings for certain.
        assert chunk["url"] == f"{chat.origin}/pot/guide/brew"
        project.write({"guide/old.md": FILES["guide/old.md"].replace("Eighty", "Seventy")})
        chat.wait_for("How hot is green tea?", "Seventy degrees")
    project.write(FILES)
    # It ends with the generator, even if that is killed.
    until(lambda: not chat.is_running() or None, chat.log)


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ("{endpont: '/'}", 1, "Error: There is no option 'endpont': the nearest is endpoint."),
        ("{strict: false}", 0, "Warning: endpoint is not set, so the chat of the published site has no API to ask"),
        ("{}", 1, "Error: endpoint is not set, so the chat of the published site has no API to ask"),
        ("{strict: true}", 1, "Error: endpoint is not set, so the chat of the published site has no API to ask"),
    ],
)
def test_a_mistake_gets_one_sentence(project: Project, options: str, code: int, sentence: str) -> None:
    project.write({".vitepress/config.mjs": CONFIG.replace("OPTIONS", options)})
    assert sentence in project.build(code=code)


def test_a_failed_index_fails_a_build_where_it_counts(project: Project) -> None:
    project.write(FILES)
    check_that_a_failed_index_counts(project)


def test_a_site_without_an_address_is_not_indexed(project: Project) -> None:
    config = CONFIG.replace("OPTIONS", "{endpoint: '/', store: 'edge:elsewhere'}")
    project.write({".vitepress/config.mjs": config.replace("sitemap: {hostname: 'https://tea.example/pot/'},", "")})
    said = project.build(CI="")
    assert "Warning: sitemap.hostname is not set, so a citation would have no address and nothing is indexed." in said
    assert not (project.root / "elsewhere").exists()


def test_a_plugin_that_is_off_does_nothing(project: Project) -> None:
    project.write({".vitepress/config.mjs": CONFIG.replace("OPTIONS", "{enabled: false, stroe: 'x'}")})
    project.build(PATH="/nowhere")
    assert "chapterverse" not in (project.root / ".vitepress/dist/index.html").read_text()


def test_without_the_command_line_the_build_fails_in_one_sentence(project: Project) -> None:
    project.write(FILES)
    said = project.build(code=1, PATH="/nowhere")
    assert "chapterverse: The command line is missing. Run `pip install" in said
    assert (project.root / STORE).exists()


LINKED = {
    ".vitepress/config.mjs": """\
export default {
  title: 'Tea', sitemap: {hostname: 'https://tea.example/'}, ignoreDeadLinks: process.env.IGNORED === '1',
  themeConfig: {nav: ['gone-item', 'guide/brew', 'cups', 'pots'].map((page) => ({text: page, link: `/${page}`}))},
};
""",
    "index.md": """\
# Tea

[a](./gone-page.md) [b](/gone-rooted) [c](./gone-relative) [d](#gone-here) [e](./guide/brew.md#gone-there)
<a href="/gone-html">f</a> <img :src="'/gone-tag.png'">

[a](./guide/brew.md) [b](/guide/brew#green-tea) [c](/tea.pdf) ![d](/tea.png) [e](/other/pot.html){target="_self"}
""",
    "guide/brew.md": FILES["guide/old.md"],
    **{f"{name}.md": "# Tea\n\nA page: [all](/).\n" for name in ("cups", "leaves", "pots", "water")},
    "public/tea.pdf": "tea",
    "public/tea.png": "tea",
}


def test_check_finds_each_dead_link_that_vitepress_finds() -> None:
    project = Project.new("vitepress", "vitepress/bin/vitepress.js", ".vitepress/dist", LINKED)
    # It ends before it writes a site with one.
    said = project.build(code=1)
    project.build(IGNORED="1")
    # It looks at links to pages in Markdown alone.
    assert compare_links(project.root / ".vitepress/dist", LINKED, said) == {
        "gone-item", "gone-here", "gone-there", "gone-html", "gone-tag",
    }  # fmt: skip
