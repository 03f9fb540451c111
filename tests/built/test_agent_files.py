"""Files for agents beside built pages: the Markdown of each page, the lists, the skill, and what is left alone."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from chapterverse.errors import ConfigurationError
from chapterverse.readers.built_site import read_site
from chapterverse.readers.html.dom import apply_edits
from chapterverse.readers.sections.html_page import read_with_links
from chapterverse.readers.sections.linked_inline import escape
from chapterverse.settings import Settings
from chapterverse.site import overview
from chapterverse.site.agent_files import AgentFiles, AgentFilesResult
from chapterverse.site.delivery import widget_files
from chapterverse.site.inject import inject
from chapterverse.site.markdown_page import PageFile, RenderedPage, markdown_path
from chapterverse.site.overview import AgentOptions
from chapterverse.site.tags import link_for, put_link

SITES = Path(__file__).parents[1] / "sites"
BASE = "https://tea.example/docs/"
HEAD = "<!doctype html><html lang='en'><head><title>Tea</title></head><body><main>"


def write(site: Path, pages: dict[str, str]) -> None:
    for path, content in pages.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(f"{HEAD}{content}</main></body></html>", encoding="utf-8")


def run(
    site: Path, options: AgentOptions | None = None, exclude: tuple[str, ...] = (), cache: Path | None = None
) -> AgentFilesResult:
    reading = read_site(site, BASE, exclude=exclude)
    settings = Settings(endpoint="/", store=f"edge:{cache or site / 'none'}")
    files = AgentFiles.open(site, options or AgentOptions(), settings, "Tea Pot", BASE, keep=cache is not None)
    files.add_built_pages(reading)
    return files.finish()


def front_matter(text: str) -> dict[str, str]:
    facts: dict[str, str] = yaml.safe_load(text.split("---\n")[1])
    return facts


def snapshot(site: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in site.rglob("*") if p.is_file()}


def test_each_page_has_its_markdown_and_a_link_to_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "index.html": "<h1>Tea</h1><p>Read <a href='a/#x'>on</a>, <img src='pot.png' alt='the pot'>.</p>",
            "a/index.html": "<h1>Pots</h1><p>Hot.</p><pre><code class='language-py'>a  = '*'\n\n\tb</code></pre>",
            "b.html": "<h1>Cups</h1><table><tr><th>a</th></tr><tr><td>x|y</td></tr></table>",
        },
    )
    run(tmp_path)
    home = (tmp_path / "index.md").read_text("utf-8")
    facts = front_matter(home)
    assert (facts["title"], facts["url"]) == ("Tea", BASE)
    assert f"Read [on]({BASE}a/#x), ![the pot]({BASE}pot.png)." in home
    assert "```py\na  = '*'\n\n\tb\n```" in (tmp_path / "a/index.md").read_text("utf-8")
    assert "| x\\|y |" in (tmp_path / "b.md").read_text("utf-8")
    assert link_for("index.md") in (tmp_path / "a/index.html").read_text("utf-8")
    assert link_for("b.md") in (tmp_path / "b.html").read_text("utf-8")
    listed = re.findall(r"\]\((\S+)\)", (tmp_path / "llms.txt").read_text("utf-8"))
    assert listed == [BASE + p for p in ("index.md", "b.md", "a/index.md", "llms-full.txt")]
    full = (tmp_path / "llms-full.txt").read_text("utf-8")
    assert [full.count(f"Source: {BASE}{path}\n") for path in ("", "a/", "b.html")] == [1, 1, 1]


@pytest.mark.parametrize("generator", ["mkdocs-material", "docusaurus", "vitepress", "sphinx"])
def test_a_second_run_changes_no_byte(tmp_path: Path, generator: str) -> None:
    site = tmp_path / "site"
    shutil.copytree(SITES / generator, site)
    before: dict[str, tuple[bytes, int]] = {}
    for attempt in range(2):
        reading = read_site(site)
        files = AgentFiles.open(site, AgentOptions(), Settings(endpoint="/"), "Demo", reading.base_url)
        done = inject(site, widget_files("/"), agents=files, reading=reading)
        assert done.agents is not None
        assert (done.agents.written == 0) is bool(attempt)
        assert snapshot(site) == (before or snapshot(site))
        before = snapshot(site)


def test_the_skill_is_named_by_its_index_with_its_digest(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>"})
    run(tmp_path)
    (entry,) = json.loads((tmp_path / ".well-known/agent-skills/index.json").read_bytes())["skills"]
    skill = tmp_path / entry["url"].removeprefix("/docs/")
    assert (entry["name"], entry["type"]) == ("tea-pot-docs", "skill-md")
    assert entry["digest"] == f"sha256:{hashlib.sha256(skill.read_bytes()).hexdigest()}"
    assert "https://tea.example/v1/retrieve" in skill.read_text("utf-8")


def test_what_is_not_ours_stays_until_told_otherwise(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>"})
    for name in ("index.md", "llms.txt", ".well-known/agent-skills/index.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    done = run(tmp_path)
    assert [(tmp_path / name).read_text() for name in ("index.md", "llms.txt")] == ["mine", "mine"]
    assert "text/markdown" not in (tmp_path / "index.html").read_text()
    (note,) = done.notes
    assert note.startswith("index.md and 2 more are there already")
    assert run(tmp_path, AgentOptions(overwrite=True)).notes == ()
    assert "mine" not in {(tmp_path / name).read_text() for name in ("index.md", "llms.txt")}


def test_a_page_named_llms_txt_is_no_file_to_replace(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>", "llms.txt/index.html": "<h1>About llms.txt</h1>"})
    done = run(tmp_path, AgentOptions(overwrite=True))
    assert done.notes[0].startswith("llms.txt is there already")
    assert (tmp_path / "llms.txt/index.md").is_file()


def test_two_pages_never_share_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.htm": "<h1>One</h1>", "a.html": "<h1>Two</h1>", "a.htm.html": "<h1>Three</h1>"})
    done = run(tmp_path)
    texts = {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.md")}
    assert {name: front_matter(text)["title"] for name, text in texts.items()} == {
        "a.htm.md": "One", "a.md": "Two", "a.htm.html.md": "Three"
    }  # fmt: skip
    assert done.warnings == ()
    assert markdown_path("x/index.html") == "x/index.md"


def test_a_page_that_is_excluded_or_holds_a_secret_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>", "draft.html": "<h1>Draft</h1><p>canary</p>"})
    run(tmp_path)
    assert run(tmp_path, exclude=("draft.html",)).removed == 1
    assert not (tmp_path / "draft.md").exists()
    assert "canary" not in (tmp_path / "llms-full.txt").read_text("utf-8")
    monkeypatch.setenv("TEA_API_KEY", "q8Zr2LwX93mVtB7c")
    write(tmp_path, {"leak.html": "<h1>Leak</h1><p>q8Z<b></b>r2LwX93mVtB7c</p>"})
    (warning,) = run(tmp_path).warnings
    assert warning.startswith("leak.html got no Markdown, because it holds a secret")
    made = [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix in (".md", ".txt", ".json")]
    assert not any(b"q8Zr2LwX93mVtB7c" in p.read_bytes() for p in made)


def test_the_markdown_of_a_page_is_kept_and_made_anew_when_the_page_changed(tmp_path: Path) -> None:
    site, cache = tmp_path / "site", tmp_path / "cache"
    write(site, {"index.html": "<h1>Tea</h1>", "a.html": "<h1>Pots</h1><p>Hot.</p>"})
    run(site, cache=cache)
    made = (site / "a.md").read_bytes()
    with closing(sqlite3.connect(cache / "builds.sqlite")) as db, db:
        db.execute("UPDATE kept_1 SET text = replace(text, 'Hot.', 'Hit.')")
    # As a generator does that empties the folder.
    (site / "a.md").unlink()
    run(site, cache=cache)
    assert (site / "a.md").read_bytes() == made.replace(b"Hot.", b"Hit.")
    write(site, {"a.html": "<h1>Pots</h1><p>Hot!</p>"})
    run(site, cache=cache)
    assert (site / "a.md").read_bytes() == made.replace(b"Hot.", b"Hot!")


def test_markdown_that_was_kept_is_searched_for_the_secrets_of_this_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, cache = tmp_path / "site", tmp_path / "cache"
    write(site, {"leak.html": "<h1>Leak</h1><p>q8Z<b></b>r2LwX93mVtB7c</p>"})
    assert run(site, cache=cache).warnings == ()
    monkeypatch.setenv("TEA_API_KEY", "q8Zr2LwX93mVtB7c")
    for _ in range(2):
        (warning,) = run(site, cache=cache).warnings
        assert warning.startswith("leak.html got no Markdown, because it holds a secret")
        assert not (site / "leak.md").exists()


def test_each_file_can_be_switched_off_and_is_removed_then(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>"})
    run(tmp_path)
    run(tmp_path, AgentOptions.of(False))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["index.html"]
    assert "text/markdown" not in (tmp_path / "index.html").read_text()
    run(tmp_path, AgentOptions.of({"markdown": False, "skill": False}))
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["index.html", "llms-full.txt", "llms.txt"]
    assert f"]({BASE})" in (tmp_path / "llms.txt").read_text()


@pytest.mark.parametrize("given", ["yes", {"llms": True}, {"skill": 1}])
def test_an_option_that_there_is_not_is_refused(given: object) -> None:
    with pytest.raises(ConfigurationError, match="agents"):
        AgentOptions.of(given)


def test_an_edited_file_is_made_again(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>"})
    run(tmp_path)
    page = tmp_path / "index.md"
    whole = page.read_text("utf-8")
    page.write_text(whole.replace("# Tea", "# Coffee"), encoding="utf-8")
    run(tmp_path)
    assert page.read_text("utf-8") == whole


def test_each_language_has_its_own_lists(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": "<h1>Tea</h1>", "fr/index.html": "<h1>Thé</h1>"})
    page = tmp_path / "fr/index.html"
    page.write_text(page.read_text("utf-8").replace("lang='en'", "lang='fr'"), encoding="utf-8")
    run(tmp_path)
    assert "Thé" not in (tmp_path / "llms-full.txt").read_text("utf-8")
    assert "Thé" in (tmp_path / "fr/llms-full.txt").read_text("utf-8")
    assert f"{BASE}fr/llms.txt" in (tmp_path / "llms.txt").read_text("utf-8")


def test_the_lists_stay_below_their_limits_and_name_what_they_leave_out() -> None:
    site = overview.SiteFacts("Tea", BASE)
    pages = [
        PageFile(f"p{n}.md", f"{BASE}p{n}.html", f"Page {n}", "en", "d" * 100, "x" * 5000, "") for n in range(3000)
    ]
    (group,) = overview.page_groups(pages)
    listed = overview.llms_txt(site, group, (), AgentOptions())
    assert len(listed) <= overview.MAX_LIST_CHARS
    rest = 3000 - listed.count("/p")
    assert f"\n{rest:,} more pages don't fit" in listed
    full = overview.llms_full_txt(site, group)
    assert full.count("Source: ") + full.count("- [Page ") == 3000
    assert len(full.encode()) < overview.MAX_FULL_BYTES + 300_000


@pytest.mark.parametrize(
    "text",
    ["*args and __init__", "a < b <T> <!-- x", "&lt; & &copy;", "[x](y) [^1] [ ] a][b]", "1. one", "# no", "- dash",
     "> no", "`a` ~~b~~", "C:\\*x \\", "a | b", "---", "===", "|a|", "![x](y)"],
)  # fmt: skip
def test_text_stays_text_to_another_parser(text: str) -> None:
    (section,) = read_with_links(f"<p>{html.escape(text)}</p>", "", BASE)
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(section.blocks[0].text)
    assert html.unescape(re.sub(r"<[^>]+>", "", rendered)).strip() == text
    assert escape("snake_case") == "snake_case"


def test_a_link_that_leads_to_no_page_keeps_its_text_alone() -> None:
    for href in ("javascript:alert(1)", "data:text/html,x", "http://[x", "file:///etc/passwd"):
        (section,) = read_with_links(f'<p><a href="{href}">here</a></p>', "", BASE)
        assert section.blocks[0].text == "here"


def linked(page: str, href: str) -> str:
    return apply_edits(page, put_link(page, href))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<head><title></head></title></head><body>", "<head><title></head></title>{}</head><body>"),
        ("<head><script>'</head>'</script></head>", "<head><script>'</head>'</script>{}</head>"),
        ("<!doctype html><title>x</title><p>a", "<!doctype html><title>x</title>{}<p>a"),
        ("<head><link rel=alternate type=text/markdown href=x></head>", None),
        ("no page", None),
    ],
)
def test_the_link_stands_in_the_head_once(page: str, expected: str | None) -> None:
    once = linked(page, "a.md")
    assert once == (expected.format(link_for("a.md")) if expected else page)
    assert linked(once, "a.md") == once
    assert linked(once, "") == page
    assert linked(once, "b.md") == once.replace("a.md", "b.md")


def test_a_folder_that_leads_out_of_the_site_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a").symlink_to(tmp_path / "out")
    files = AgentFiles.open(tmp_path / "site", AgentOptions(), Settings(), "Tea", BASE)
    assert files.add(RenderedPage("a/index.html", f"{BASE}a/", "Tea", "en", "<p>x</p>")) == ""
    assert any("leads out of its folder" in warning for warning in files.finish().warnings)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_page_without_an_address_gets_none(tmp_path: Path) -> None:
    files = AgentFiles.open(tmp_path, AgentOptions(), Settings(), "Tea", "")
    assert files.add(RenderedPage("index.html", "", "Tea", "en", "<p>x</p>")) == ""
    assert files.finish() == AgentFilesResult(0, 0, (), ())


def test_a_page_without_an_element_around_its_content_has_no_text_that_its_site_repeats(tmp_path: Path) -> None:
    bare = "<html lang=en><body><div>Tea docs</div><h1>{0}</h1><p>About {0}.</p><p>© Tea</p></body></html>"
    for name in "abcdef":
        (tmp_path / f"{name}.html").write_text(bare.format(name), encoding="utf-8")
    reading = read_site(tmp_path, BASE)
    files = AgentFiles.open(tmp_path, AgentOptions(), Settings(), "Tea", BASE)
    files.add_built_pages(reading)
    files.finish()
    assert (tmp_path / "c.md").read_text("utf-8").endswith("\n# c\n\nAbout c.\n")
    assert not {"Tea docs", "© Tea"} & set((tmp_path / "llms-full.txt").read_text("utf-8").split("\n"))
