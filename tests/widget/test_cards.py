"""Answers as they come: checked segments one by one, quotes as cards, numbers, marks, and tables."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from widget.chat import ask, stored
from widget.pages import QUOTED, answer, framing, of_segments, quote, segment, source
from widget.standin import Reply, Site, checked, sse, stream

Browse = Callable[..., Page]

#: A Markdown sentence of 200 characters, which no narrow column shows in a line.
LONG = "Signs our answers in a conversation that the browser keeps, so that nobody can put words into our mouth. " * 2


def test_a_quote_is_a_card_with_its_linked_path_and_the_answer_marked(browse: Browse, site: Site) -> None:
    site.replies.append(checked(QUOTED))
    turn = ask(browse())
    turn.locator(".copy_answer").wait_for()
    cards = turn.locator(".card")
    expect(cards).to_have_count(2)
    expect(cards.locator(".crumb")).to_have_text(["1Locking › Locks › Section 2", "2Locking › Section 1"])
    expect(cards.nth(0).locator("a.crumb")).to_have_attribute("href", f"{site.url}/second.html#s2")
    # Nothing is said twice: no second list, no second snippet, no second "from docs" line.
    assert (turn.text_content() or "").count("Section 2") == 1
    expect(turn.locator(".sources")).to_have_count(0)
    expect(turn.get_by_text("Quoted from the documentation")).to_be_visible()
    expect(turn.locator(".answered")).to_contain_text("Quoted word for word from these docs")
    expect(cards.nth(0).locator("mark")).to_have_text(["Run ", "uv lock", " to ", "make", " a new one."])
    expect(cards.nth(1).locator("td mark")).to_have_text(
        "Takes the newest version of every package that the other packages allow."
    )


def test_the_tools_stand_directly_below_the_answer(browse: Browse, site: Site) -> None:
    reply = of_segments(segment("Run it. ", "2"), segment("Then sync.", "1"), follow_ups=["More?"])
    site.replies.append(checked(reply))
    turn = ask(browse())
    top = turn.locator(".copy_answer").bounding_box()
    body = turn.locator("p").first.bounding_box()
    sources = turn.locator(".sources").bounding_box()
    assert top
    assert body
    assert sources
    assert body["y"] + body["height"] <= top["y"]
    assert top["y"] - body["y"] - body["height"] < 40
    assert top["y"] + top["height"] <= sources["y"] + 1
    for chip in turn.locator(".source").all():
        box = chip.bounding_box()
        assert box
        assert 24 <= box["height"] <= 36
        expect(chip).not_to_contain_text("Paragraph")


def test_sentences_below_a_path_are_in_its_card(browse: Browse, site: Site) -> None:
    reply = of_segments(
        framing("**Locking › Section 1**\n\n"),
        segment("Run it. ", "1"),
        segment("It is quick. ", "1", check="unconfirmed"),
        segment("Then sync.\n\n", "1", "2"),
        framing("**Locking › Section 2**\n\n"),
        quote("The lock file names every version.\n\n", "2"),
    )
    site.replies.append(checked(reply))
    turn = ask(browse())
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator(".card")).to_have_count(2)
    first = turn.locator(".card").first
    expect(first.locator("a.crumb")).to_have_text("1Locking › Section 1")
    # The head has the number: a sentence shows what else it rests on, and what is not sure.
    expect(first.locator("sup .cite")).to_have_text(["?", "2"])
    expect(turn.locator(".sources")).to_have_count(0)


def test_citations_are_numbered_by_their_first_appearance(browse: Browse, site: Site) -> None:
    chunks = [source(n) for n in (1, 2, 3, 4)]
    reply = of_segments(
        segment("One. ", "3"), segment("Two. ", "4", "3"), segment("Three.", "1", "nobody"), source_chunks=chunks
    )
    site.replies.append(checked(reply))
    turn = ask(browse())
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator("sup a.cite")).to_have_text(["1", "1", "2", "3"])
    expect(turn.locator("sup a.cite").last).to_have_accessible_name("3: Locking › Section 1")
    expect(turn.locator(".source")).to_have_text(
        ["1Locking › Section 3", "2Locking › Section 4", "3Locking › Section 1"]
    )


def test_a_sentence_without_a_source_is_marked_quietly(browse: Browse, site: Site) -> None:
    reply = of_segments(segment("It is quick. ", check="unconfirmed"), segment("Run it.", "1"))
    site.replies.append(checked(reply))
    turn = ask(browse())
    mark = turn.get_by_role("button", name="No source found for this")
    expect(mark).to_have_count(1)
    doubt = turn.locator(".doubt")
    expect(doubt).to_have_text(["It is quick."])
    assert doubt.evaluate("node => getComputedStyle(node).textDecorationLine") == "underline"
    assert mark.evaluate("node => node.closest('sup').previousElementSibling?.className ?? ''") == "doubt"
    expect(turn.locator(".answered")).to_contain_text("From these docs, except 1 sentence")
    tip = turn.locator(".tip", has_text="No source found for this")
    expect(tip).to_be_hidden()
    turn.page.keyboard.press("Tab")
    mark.focus()
    expect(tip).to_be_visible()


def test_each_sentence_without_a_source_looks_so_and_is_counted(browse: Browse, site: Site) -> None:
    same = "It is **quick** and `safe`. "
    site.replies.append(
        checked(
            of_segments(
                segment(same, "1"), segment(same, check="unconfirmed"), segment("Run it.\n\n", "1"),
                segment("- One step.\n- Then `sync`.\n\n", check="unconfirmed"),
            )
        )
    )  # fmt: skip
    turn = ask(browse("/strict.html"))
    expect(turn.locator(".answered")).to_contain_text("From these docs, except 2 sentences")
    turn.locator(".copy_answer").wait_for()
    doubts = turn.locator(".doubt").all_text_contents()
    assert "".join(doubts).replace(" ", "").replace(".", "") == "ItisquickandsafeOnestepThensync"
    # The same words with a source stand before those without.
    order = "node => node.compareDocumentPosition(node.getRootNode().querySelector('.doubt')) & 4"
    assert turn.locator("sup a").first.evaluate(order)


@pytest.mark.parametrize("reason", ["left_open", "unconfirmed", "may_help", "cut", "language", "choice", None, "title"])
def test_partly_answered_says_in_which_sense(browse: Browse, site: Site, reason: str | None) -> None:
    words = {
        "left_open": ": part of the question stays open",
        "unconfirmed": ": several sentences have no source",
        "may_help": ": these passages may help",
        "cut": ": the answer broke off",
        "language": ": a part is only there in another language",
        "choice": ": choose what is meant",
    }
    site.replies.append(stream(answer("Hm.", status="partial", partial_reason=reason, citations=["1"])))
    page = browse()
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator(".partial span").first).to_have_text("Partly answered" + words.get(reason or "", ""))
    again = turn.get_by_role("button", name="Try again")
    expect(again).to_have_count(int(reason == "cut"))
    if reason == "cut":
        again.click()
        expect(page.locator(".answered")).to_be_visible()
        expect(page.locator(".turn")).to_have_count(1)
        assert len(stored(page)["messages"]) == 2
        assert site.asked[1]["conversation_history"] == []


def test_segments_appear_one_by_one_and_stay_as_they_are(browse: Browse, site: Site) -> None:
    second, end = Event(), Event()
    reply = of_segments(segment("Run **uv lock**.\n\n", "2"), segment("Then *sync*.", "1"))
    site.replies.append(checked(reply, None, second, end))
    page = browse()
    turn = ask(page)
    expect(turn.locator("strong")).to_have_text("uv lock")
    expect(turn.get_by_text("Searching")).to_have_count(0)
    expect(turn).not_to_contain_text("**")
    expect(turn.locator("sup a.cite")).to_have_text(["1"])
    turn.locator("p").first.evaluate("node => { window.paragraph = node }")
    second.set()
    expect(turn.locator("em")).to_have_text("sync")
    turn.locator("em").evaluate("node => { window.first = node }")
    end.set()
    turn.locator(".copy_answer").wait_for()
    # What was shown is not made again: a selection in it, or the focus, stays.
    assert page.evaluate("window.first.isConnected && window.paragraph.isConnected")


@pytest.mark.parametrize("end", ["broken", "error", "stopped"])
def test_a_stream_that_breaks_keeps_what_was_read(browse: Browse, site: Site, end: str) -> None:
    never = Event()
    meta = sse("meta", {"turn_id": "t", "mode": "rag", "sources": [source(1), source(2)]})
    parts: tuple[bytes | Event, ...] = (meta, *(sse("delta", part) for part in QUOTED["segments"][:3]))
    if end == "error":
        parts += (sse("error", {"code": "x", "message": "no", "retryable": True}),)
    else:
        # What breaks at once is lost: the browser drops what was not read yet.
        parts += (never,)
    site.replies.append(Reply(parts, cut=end == "broken"))
    page = browse()
    turn = ask(page)
    turn.locator(".card p").first.wait_for()
    if end == "stopped":
        page.get_by_role("button", name="Stop").click()
    never.set()
    expect(turn.get_by_role("button", name="Try again")).to_be_visible()
    expect(turn.locator(".card")).to_contain_text("The lock file names every version.")
    if end != "stopped":
        # There is something to read on where it failed.
        expect(turn.get_by_role("list", name="Closest pages").get_by_role("link")).to_have_count(2)


def test_an_unchecked_draft_of_an_older_api_is_not_kept_when_it_breaks(browse: Browse, site: Site) -> None:
    site.replies.append(Reply((sse("delta", {"text": "Half a thought"}),), cut=True))
    turn = ask(browse())
    expect(turn.locator(".error")).to_be_visible()
    expect(turn).not_to_contain_text("Half a thought")


WRONG: tuple[Any, ...] = (None, 5, True, [], "x", {"a": 1}, [None], [[]])


def test_segments_of_the_wrong_types_do_no_harm(browse: Browse, site: Site) -> None:
    page = browse()
    for key in ("text", "citations", "kind", "check", "mark"):
        for value in WRONG:
            parts = [{**quote("Run it.", "1", "Run"), key: value}]
            meta = sse("meta", {"sources": value})
            site.replies.append(Reply((meta, sse("delta", value), sse("delta", parts[0]), sse("final", QUOTED))))
            turn = ask(page)
            turn.locator(".copy_answer").wait_for()
            expect(turn.locator(".card")).to_have_count(2)


def test_a_mark_that_the_quote_does_not_hold_marks_nothing(browse: Browse, site: Site) -> None:
    for mark in ("Nowhere said.", "", " ", "***", "| |", "<b>x</b>"):
        site.replies.append(checked(of_segments(framing("Quoted:\n\n"), quote("Run it & sync.", "1", mark))))
    page = browse()
    for _ in range(6):
        turn = ask(page)
        turn.locator(".copy_answer").wait_for()
        expect(turn.locator("mark")).to_have_count(0)
        expect(turn.locator(".card")).to_contain_text("Run it & sync.")


def test_the_place_of_the_mark_is_marked_and_no_earlier_one_of_the_same_letters(browse: Browse, site: Site) -> None:
    text = "Write the plugin's name below `plugins:`:\n\n```yaml\nplugins:\n  - search\n```\n"
    site.replies.append(checked(of_segments(quote(text, "1", "plugins:\n  - search"), quote(text, "2", "`plugins:`"))))
    page = browse()
    expect(ask(page).locator("mark")).to_have_text(["plugins:\n  - search", "plugins:"])


def test_a_citation_of_code_sits_in_its_corner_and_covers_nothing(browse: Browse, site: Site) -> None:
    reply = of_segments(segment("```sh\nuv sync --all " + "x" * 90 + "\nuv lock\n```\n\n", "1"))
    site.replies.append(checked(reply))
    turn = ask(browse())
    turn.locator(".code .copy").wait_for()
    code, text, copy, chip = (
        turn.locator(s).bounding_box() for s in (".code", ".code pre", ".code .copy", ".code sup")
    )
    assert code
    assert text
    assert copy
    assert chip
    for corner in (copy, chip):
        assert text["x"] + text["width"] <= corner["x"] + 1
        assert corner["x"] + corner["width"] <= code["x"] + code["width"]
    assert copy["y"] + copy["height"] <= chip["y"] + 1
    assert abs(chip["y"] + chip["height"] - code["y"] - code["height"]) < 14


def rows(turn: Locator) -> list[float]:
    heights: list[float] = turn.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    return heights


def test_the_rows_of_a_table_are_short_and_its_columns_readable(browse: Browse, site: Site) -> None:
    table = "| variable | default | what it does |\n| --- | --- | --- |\n" + "".join(
        f"| `CHAPTERVERSE_{name}` | one at random for each process | {LONG.strip()} |\n" for name in ("KEY", "STORE")
    )
    site.replies.append(checked(of_segments(segment(table, "1"))))
    page = browse(viewport={"width": 1440, "height": 900})
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    assert max(rows(turn)) < 300
    widths = turn.locator("tbody tr").first.locator("td").evaluate_all("all => all.map(cell => cell.offsetWidth)")
    assert min(widths) > 80
    assert turn.locator("td").first.evaluate("cell => getComputedStyle(cell).verticalAlign") == "top"
    page.get_by_role("button", name="Expand").click()
    assert turn.locator(".scroll").evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_the_tip_of_a_citation_is_plain_text_in_a_box_of_the_theme(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("**Run it.**", citations=["1"])))
    turn = ask(browse("/light.html"))
    turn.locator(".tip").wait_for(state="attached")
    turn.locator("sup a").hover()
    tip = turn.locator(".tip")
    expect(tip).to_be_visible()
    style = tip.evaluate(
        "node => { const { fontWeight, lineHeight, fontSize, borderTopColor, boxShadow, borderTopLeftRadius } ="
        " getComputedStyle(node); return [fontWeight, parseFloat(lineHeight) / parseFloat(fontSize), borderTopColor,"
        " boxShadow, borderTopLeftRadius]; }"
    )
    line = turn.locator(".source").first.evaluate("node => getComputedStyle(node).borderTopColor")
    assert style[:3] == ["400", 1.5, line]
    assert style[3] != "none"
    assert style[4] != "0px"
    # It is beside the link: within, it would be part of what the link shows, and not of its name.
    expect(turn.locator("sup a")).to_have_text("1")


def test_what_a_finger_presses_is_28_pixels_large(browse: Browse, site: Site) -> None:
    site.replies.append(checked(of_segments(segment("Run it. ", "2"), segment("Sync.", check="unconfirmed"))))
    page = browse(viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    turn.get_by_role("button", name="Not helpful").click()
    page.locator(".feedback label").first.wait_for()
    targets = ("dialog a >> visible=true", "dialog button >> visible=true", ".feedback label")
    for target in [each for selector in targets for each in page.locator(selector).all()]:
        box = target.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 28, target.evaluate("node => node.outerHTML")


def test_a_task_list_shows_boxes_and_its_mark(browse: Browse, site: Site) -> None:
    text = "- [x] streamed answers\n- [ ] a run on AWS\n- [X] alarms\n\n"
    site.replies.append(checked(of_segments(framing("**Deploying**\n\n"), quote(text, "1", "[ ] a run on AWS"))))
    turn = ask(browse())
    expect(turn.locator("li")).to_have_text(["☑ streamed answers", "☐ a run on AWS", "☑ alarms"])
    expect(turn.locator("mark")).to_have_text("a run on AWS")


def test_a_marked_sentence_is_marked_through_its_code(browse: Browse, site: Site) -> None:
    site.replies.append(checked(QUOTED))
    turn = ask(browse())
    mark = turn.locator("p mark").first
    code = turn.locator("p code:has(mark)").first
    color = "node => getComputedStyle(node).backgroundColor"
    expect(code).to_be_visible()
    assert code.evaluate(color) == mark.evaluate(color)


def test_the_tools_end_with_the_card_and_a_long_path_is_short(browse: Browse, site: Site) -> None:
    path = " › ".join(["class flask.Response(response=None, status=None, headers=None, mimetype=None)"] * 4)
    site.replies.append(checked(of_segments(framing(f"**{path}**\n\n"), quote("It is sent.\n\n", "1"))))
    turn = ask(browse())
    last = turn.locator(".status .down")
    expect(last).to_be_visible()
    end = "node => node.getBoundingClientRect().right"
    assert turn.locator(".card").evaluate(end) - last.evaluate(end) <= 1
    height = turn.locator(".crumb").evaluate("node => node.offsetHeight")
    assert height <= 3 * 19 + 14


def test_the_sign_of_a_sentence_without_a_source_is_as_high_as_a_number(browse: Browse, site: Site) -> None:
    site.replies.append(checked(of_segments(segment("Run it. ", "2"), segment("Sync.", check="unconfirmed"))))
    turn = ask(browse())
    turn.locator(".copy_answer").wait_for()
    number, sign = (turn.locator(selector).bounding_box() for selector in ("sup a", ".unconfirmed"))
    assert number
    assert sign
    assert abs(number["height"] - sign["height"]) <= 4


def test_a_signature_of_400_characters_is_short_on_screen_and_whole_where_it_is_kept(
    browse: Browse, site: Site
) -> None:
    signature = "class flask.Response(" + ", ".join(f"argument_{n}=None" for n in range(25)) + ")"
    chunk = source(1, chapter=signature, section="Methods")
    parts = [framing(f"**{signature} › Methods**\n\n"), quote("It is sent.\n\n", "1"), segment("So.", "2")]
    sources = [chunk, source(2, section=signature)]
    wait = Event()
    site.replies.append(checked(of_segments(*parts, source_chunks=sources), wait))
    page = browse(permissions=["clipboard-read", "clipboard-write"])
    turn = ask(page)
    height = "node => node.getBoundingClientRect().height / parseFloat(getComputedStyle(node).fontSize)"
    expect(turn.locator(".busy")).to_have_text(f"Reading {signature} › Methods…")
    assert turn.locator(".busy span").evaluate(height) < 2
    wait.set()
    turn.locator(".copy_answer").click()
    expect(turn.get_by_text("Copied")).to_be_visible()
    assert turn.locator(".crumb > span").last.evaluate(height) < 5
    assert turn.locator(".source").evaluate(height) < 3
    turn.locator("sup a").hover()
    assert turn.locator(".tip b").evaluate(height) < 5
    assert f"Locking › {signature}" in page.evaluate("navigator.clipboard.readText()")


def test_what_scrolls_is_shaded_where_there_is_more_of_it(browse: Browse, site: Site) -> None:
    wide = "```sh\nuv sync " + "x" * 90 + "\n```\n\n```sh\nuv lock\n```\n\n"
    table = "| " + " | ".join(["a_long_heading"] * 8) + " |\n" + "|---" * 8 + "|\n| b |\n"
    site.replies.append(checked(of_segments(segment(wide + table, "1"))))
    turn = ask(browse())
    # Code fades out before its button, and a table into the edge of the panel.
    shaded = """node => [getComputedStyle(node), getComputedStyle(node.parentElement, '::after')].some(
        style => style.backgroundImage !== 'none')"""
    expect(turn.locator(".more")).to_have_count(2)
    code, short, scroll = turn.locator("pre").first, turn.locator("pre").last, turn.locator(".scroll")
    assert [node.evaluate(shaded) for node in (code, short, scroll)] == [True, False, True]
    for node in (code, scroll):
        node.evaluate("node => node.scrollLeft = 9999")
    expect(turn.locator(".more")).to_have_count(0)


def test_a_tip_in_a_table_that_scrolls_is_drawn_whole(browse: Browse, site: Site) -> None:
    table = "| " + " | ".join(["a_long_heading"] * 8) + " |\n" + "|---" * 8 + "|\n| b |\n"
    site.replies.append(checked(of_segments(segment(table, "1"), segment("\n\nWords. " * 40, "2"))))
    page = browse()
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    turn.locator("td .cite").hover()
    expect(turn.locator(".scroll.more")).to_have_count(1)
    tip = turn.locator("td .tip").bounding_box()
    assert tip
    shown = page.screenshot(clip=tip)
    turn.locator(".scroll").evaluate("node => node.classList.remove('more')")
    assert page.screenshot(clip=tip) == shown


FORMATS = "".join(f"**{name.upper()}**\n\n```{name}\nsample: {name}\n```\n\n" for name in ("yaml", "toml", "json"))


def test_a_sample_in_several_formats_stands_once_behind_their_names(browse: Browse, site: Site) -> None:
    text = f"{FORMATS}**Bold** words.\n\n```sh\nrun\n```\n\n**Alone**\n\n```sh\nstop\n```\n"
    site.replies.append(checked(of_segments(framing("**Locking › Section 1**\n\n"), quote(text, "1", "sample: toml"))))
    page = browse()
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator(".tabs button")).to_have_text(["YAML", "TOML", "JSON"])
    expect(turn.locator("pre >> visible=true")).to_have_text(["sample: toml", "run", "stop"])
    turn.get_by_role("button", name="JSON").click()
    expect(turn.locator("pre >> visible=true")).to_have_text(["sample: json", "run", "stop"])
    expect(turn.get_by_role("button", name="JSON")).to_have_attribute("aria-pressed", "true")
    expect(turn.get_by_role("button", name="TOML")).to_have_attribute("aria-pressed", "false")
    expect(turn.locator(".card")).to_contain_text("Alone")
    page.emulate_media(media="print")
    displays = turn.locator(".code").evaluate_all("nodes => nodes.map(node => getComputedStyle(node).display)")
    assert displays == ["grid"] * 5


def test_steps_are_no_formats(browse: Browse, site: Site) -> None:
    text = "".join(f"**Step {n}**\n\n```sh\nrun {n}\n```\n\n" for n in (1, 2))
    site.replies.append(checked(of_segments(segment(text, "1"))))
    turn = ask(browse())
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator("pre >> visible=true")).to_have_text(["run 1", "run 2"])
    expect(turn.locator("strong")).to_have_text(["Step 1", "Step 2"])


def test_a_link_in_a_quote_leads_there_though_the_mark_crosses_it(browse: Browse, site: Site) -> None:
    text = "See [the *second* page](/second.html#s2) on locks.\n\n"
    parts = [framing("**Locking › Section 1**\n\n"), quote(text, "1", text.strip())]
    site.replies.append(checked(of_segments(*parts)))
    page = browse()
    turn = ask(page)
    turn.locator("mark").first.wait_for()
    turn.get_by_role("link", name="the second page").click()
    page.wait_for_url("**/second.html#s2")


def test_what_was_quoted_is_no_closest_page_and_what_is_close_is_not_asked_next(browse: Browse, site: Site) -> None:
    near = [source(2), source(3)]
    site.replies.append(
        checked(
            of_segments(
                quote("So.\n\n", "2"), status="partial", nearest=near, follow_ups=["Locking › Section 3", "More?"]
            )
        )
    )
    turn = ask(browse())
    expect(turn.locator(".next button")).to_have_text(["More?"])
    expect(turn.get_by_role("list", name="Closest pages").get_by_role("link")).to_have_text(["›Locking › Section 3"])
