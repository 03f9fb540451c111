"""Following a citation to its passage."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask
from widget.pages import CSP, answer, page, source
from widget.standin import Site, stream
from widget.test_selection import PHONE

Browse = Callable[..., Page]
StandIn = Callable[[str], None]

MARKED = "[...(CSS.highlights.get('chapterverse') ?? [])].map(range => range.toString()).join('|')"
VISIBLE = """() => {
  const { top, bottom } = [...CSS.highlights.get('chapterverse')][0].getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}"""

#: A site that changes the address at once and its content a moment later, or the other way round.
LATE = """<script>
window.same = true;
document.body.addEventListener('click', event => {
  const link = event.target.closest('a[href]');
  if (!link) return;
  event.preventDefault();
  const late = new URLSearchParams(location.search).has('late');
  const move = () => history.pushState({}, '', link.href);
  if (late) move();
  setTimeout(async () => {
    const main = document.createElement('main');
    for (const [name, id, text] of [['nav', '', 'Words of the second page, which nobody knew before.'],
      ['h2', 's1', 'Section'], ['p', 'passage', 'Words of the second page, which nobody knew before.']]) {
      main.append(Object.assign(document.createElement(name), { id, textContent: text }));
    }
    document.querySelector('main').replaceWith(main);
    if (!late) setTimeout(move, 300);
  }, 400);
});
</script>"""


def cite(tab: Page, site: Site, snippet: str = "", url: str = "/second.html#s1", link: str = "sup a") -> None:
    """Get an answer that cites this passage, and follow the citation."""
    chunk = source(1, url=url) | ({"snippet": snippet} if snippet else {})
    site.replies.append(stream(answer("Lock.", citations=["1"], source_chunks=[chunk])))
    ask(tab).locator(link).click()


def marked(tab: Page, text: str) -> None:
    tab.wait_for_function(f"text => {MARKED} === text", arg=text)


@pytest.mark.parametrize("link", ["sup a", ".source"])
def test_a_passage_of_the_same_page_is_marked(browse: Browse, site: Site, link: str) -> None:
    tab = browse("/strict.html")
    cite(tab, site, "Paragraph 3 says how to lock and sync a project.", "/strict.html#s3", link)
    marked(tab, "Paragraph 3 says how to lock and sync a project")
    assert tab.url.endswith("#s3")
    assert tab.evaluate(VISIBLE)


def test_a_passage_of_another_page_is_marked_after_it_has_loaded(browse: Browse, site: Site) -> None:
    tab = browse()
    tab.evaluate("window.same = true")
    cite(tab, site)
    tab.wait_for_url("**/second.html#s1")
    marked(tab, "Paragraph 1 says how to lock and sync a project")
    assert not tab.evaluate("window.same ?? false")
    assert not tab.evaluate("sessionStorage.chapterverse_cited")
    tab.reload()
    tab.wait_for_timeout(600)
    assert tab.evaluate(MARKED) == ""


def test_on_a_phone_the_first_tap_shows_the_passage_and_open_closes_the_chat_and_marks_it(
    browse: Browse, site: Site
) -> None:
    tab = browse(**PHONE)
    site.replies.append(stream(answer("Lock.", citations=["1"], source_chunks=[source(1, url="/second.html#s1")])))
    reply = ask(tab)
    # Until the tips are loaded, a moment after the answer, a tap follows the link as it did before.
    expect(reply.locator(".tip")).to_be_attached()
    reply.locator("sup a.cite").tap()
    expect(reply.locator(".tip")).to_be_visible()
    assert not tab.url.endswith("#s1")
    reply.locator(".tip a").tap()
    tab.wait_for_url("**/second.html#s1")
    marked(tab, "Paragraph 1 says how to lock and sync a project")
    expect(tab.get_by_role("dialog")).to_be_hidden()
    assert tab.evaluate(VISIBLE)


@pytest.mark.parametrize("path", ["/tagged.html", "/tagged.html?late"])
def test_instant_navigation_is_waited_for(browse: Browse, site: Site, standin_page: StandIn, path: str) -> None:
    standin_page(page(body=LATE).html)
    tab = browse(path)
    cite(tab, site, "Words of the second page, which nobody knew before.")
    marked(tab, "Words of the second page, which nobody knew before")
    assert tab.evaluate("window.same")
    assert tab.evaluate("[...CSS.highlights.get('chapterverse')][0].startContainer.parentElement.id") == "passage"
    assert not tab.evaluate("sessionStorage.chapterverse_cited")


#: What the index says, what the page holds, and what is marked of it.
PASSAGES = {
    "across elements": (
        "Run `uv lock` to **lock** the [project](https://example.org/long/address), then sync it.",
        "<p>Run <code>uv lock</code> to <b>lock</b>\n the <a href='#'>project</a>,</p><p>then sync it.</p>",
        "Run uv lock to lock\n the project,then sync it",
    ),
    "cut": (
        "The resolver looks at every dependency and at the environ…",
        "<p>The resolver looks at every dependency and at the environments of all.</p>",
        "The resolver looks at every dependency and at the environ",
    ),
    "behind a number": (
        "1. First, look at every dependency of the project.",
        "<ol><li>First, look at every dependency of the project.</ol>",
        "First, look at every dependency of the project",
    ),
    "changed since": (
        "The old resolver looks at every dependency that the project names in its files.",
        "<p>The new resolver looks at every dependency that the project names in its tables.</p>",
        "resolver looks at every dependency that the project names in its",
    ),
    "without spaces": (
        "依存関係を解決して、ロックファイルを書き出します。環境ごとに",
        "<p>まず、依存関係を解決して、<b>ロックファイル</b>を書き出します。環境ごとに分けます。</p>",
        "依存関係を解決して、ロックファイルを書き出します。環境ごとに",
    ),
    "pattern": (
        "Use (a+)+$ and [^x]* or \\d{3} in a regular expression of your own.",
        "<p>Use (a+)+$ and [^x]* or \\d{3} in a regular expression of your own.</p>",
        "Use (a+)+$ and [^x]* or \\d{3} in a regular expression of your own",
    ),
}


@pytest.mark.parametrize("name", PASSAGES)
def test_what_the_page_says_is_found_by_what_the_index_says(
    browse: Browse, site: Site, standin_page: StandIn, name: str
) -> None:
    snippet, html, shown = PASSAGES[name]
    standin_page(page(body=f'<p>{snippet}</p><nav>{snippet}</nav><h2 id="here">Here</h2><nav>{html}</nav>{html}').html)
    tab = browse("/tagged.html")
    cite(tab, site, snippet, "/tagged.html#here")
    marked(tab, shown)
    assert (
        tab.evaluate("[...CSS.highlights.get('chapterverse')][0].startContainer.parentElement.closest('nav')") is None
    )


def test_what_the_page_does_not_hold_is_not_marked(browse: Browse, site: Site) -> None:
    tab = browse()
    cite(tab, site, "Nothing of the kind stands anywhere in here, whatever the index says of it.", "/#s2")
    tab.wait_for_url("**/#s2")
    tab.wait_for_timeout(1500)
    assert tab.evaluate(MARKED) == ""


@pytest.mark.parametrize("gone", ["Escape", "another", "back"])
def test_the_mark_goes_away(browse: Browse, site: Site, gone: str) -> None:
    tab = browse()
    cite(tab, site, "Paragraph 2 says how to lock and sync a project.", "/#s2")
    marked(tab, "Paragraph 2 says how to lock and sync a project")
    if gone == "Escape":
        tab.keyboard.press("Escape")
        marked(tab, "")
    elif gone == "another":
        cite(tab, site, "Paragraph 3 says how to lock and sync a project.", "/#s3")
        marked(tab, "Paragraph 3 says how to lock and sync a project")
    else:
        tab.goto(site.url + "/second.html")
        tab.go_back()
        tab.wait_for_timeout(500)
        assert tab.evaluate(MARKED) == ""


def test_the_page_itself_is_not_changed(browse: Browse, site: Site) -> None:
    tab = browse()
    before = tab.evaluate("document.querySelector('main').outerHTML")
    cite(tab, site, "Paragraph 2 says how to lock and sync a project.", "/#s2")
    marked(tab, "Paragraph 2 says how to lock and sync a project")
    assert tab.evaluate("document.querySelector('main').outerHTML") == before


def test_a_passage_far_below_its_heading_is_brought_into_sight(
    browse: Browse, site: Site, standin_page: StandIn
) -> None:
    head = "<style>header{position:sticky;top:0;height:90px;background:#fff}</style>"
    body = (
        '<h2 id="here">Here</h2><div class="space"></div><div class="space"></div><p>The passage far below it all.</p>'
    )
    standin_page(page(head, body).html.replace("<body>", "<body><header>Docs</header>"))
    tab = browse("/tagged.html")
    cite(tab, site, "The passage far below it all.", "/tagged.html#here")
    marked(tab, "The passage far below it all")
    tab.wait_for_function(VISIBLE)
    assert tab.evaluate("[...CSS.highlights.get('chapterverse')][0].getBoundingClientRect().top") > 90


@pytest.mark.parametrize("path", ["/", "/second.html"])
def test_by_keyboard_the_reader_goes_on_from_the_passage(
    browse: Browse, site: Site, standin_page: StandIn, path: str
) -> None:
    tab = browse()
    chunk = source(1, url=f"{path}#s3", snippet="Paragraph 3 says how to lock and sync a project.")
    site.replies.append(stream(answer("Lock.", citations=["1"], source_chunks=[chunk])))
    ask(tab).locator("sup a").focus()
    tab.keyboard.press("Enter")
    marked(tab, "Paragraph 3 says how to lock and sync a project")
    tab.evaluate("""() => {
      for (const id of ['p2', 'p3']) {
        document.getElementById(id).after(Object.assign(document.createElement('button'), { id: `after-${id}` }));
      }
    }""")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "after-p3"


def test_instant_navigation_takes_the_keyboard_along(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(page(body=LATE).html)
    tab = browse("/tagged.html")
    site.replies.append(
        stream(
            answer(
                "Lock.",
                citations=["1"],
                source_chunks=[source(1, snippet="Words of the second page, which nobody knew before.")],
            )
        )
    )
    ask(tab).locator("sup a").focus()
    tab.keyboard.press("Enter")
    marked(tab, "Words of the second page, which nobody knew before")
    tab.evaluate(
        "document.querySelector('#passage').after(Object.assign(document.createElement('button'), { id: 'on' }))"
    )
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "on"


def test_a_browser_without_highlights_just_follows(browse: Browse, site: Site) -> None:
    tab = browse("/strict.html")
    tab.evaluate("delete CSS.highlights; delete window.Highlight; Object.defineProperty(CSS, 'highlights', {})")
    cite(tab, site, "Paragraph 3 says how to lock and sync a project.", "/strict.html#s3")
    tab.wait_for_url("**/strict.html#s3")
    tab.wait_for_timeout(500)


@pytest.mark.parametrize(
    "text", ["a" * 60_000, "ab" * 30_000 + "c", "<b>" * 200 + "a" * 50_000], ids=["a", "ab", "deep"]
)
def test_a_page_that_is_one_long_word_does_not_hold_the_reader_up(
    browse: Browse, site: Site, standin_page: StandIn, text: str
) -> None:
    standin_page(page(body=f'<h2 id="here">Here</h2><p>{text}</p>', **{"Content-Security-Policy": CSP}).html)
    tab = browse("/tagged.html")
    devtools = tab.context.new_cdp_session(tab)
    # Of the processor, as the machine may be busy with other work.
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    cite(tab, site, "b" + "a" * 150 + "b", "/tagged.html#here")
    tab.wait_for_timeout(1500)
    metrics = {m["name"]: m["value"] for m in devtools.send("Performance.getMetrics")["metrics"]}
    assert metrics["TaskDuration"] < 1
