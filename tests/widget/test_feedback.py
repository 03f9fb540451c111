"""Readers' feedback: thumbs, reasons and comments, and an API without feedback."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from chapterverse_api.contract import Feedback
from widget.chat import ask
from widget.pages import answer
from widget.standin import Reply, Site, refused, stream

Browse = Callable[..., Page]


def thumb(page: Page, name: str) -> Locator:
    return page.locator(".turn").last.get_by_role("button", name=name, exact=True)


def live(page: Page) -> Locator:
    return page.locator("[aria-live=polite]")


def rate_down(page: Page) -> Locator:
    """Press "Not helpful" by keyboard, and return the form that opens."""
    thumb(page, "Not helpful").focus()
    page.keyboard.press("Enter")
    form = page.locator(".turn form")
    form.wait_for()
    return form


def test_a_good_answer_takes_one_press(browse: Browse, site: Site) -> None:
    page = browse("/strict.html")
    ask(page)
    up = thumb(page, "Helpful")
    expect(up).to_have_attribute("aria-pressed", "false")
    up.focus()
    page.keyboard.press("Enter")
    expect(live(page)).to_have_text("Thank you for your feedback.")
    expect(page.locator(".turn").get_by_text("Thank you for your feedback.")).to_be_visible()
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(up).to_be_focused()
    expect(page.locator(".turn form")).to_have_count(0)
    assert site.opinions == [{"turn_id": "t", "rating": "up"}]


def test_a_bad_answer_is_told_at_once_and_explained_by_keyboard(browse: Browse, site: Site) -> None:
    page = browse("/strict.html")
    ask(page)
    form = rate_down(page)
    expect(form.get_by_role("group", name="What was wrong with it?")).to_be_visible()
    expect(form.get_by_role("radio", name="It is wrong")).to_be_focused()
    expect(thumb(page, "Not helpful")).to_have_attribute("aria-pressed", "true")
    assert site.opinions == [{"turn_id": "t", "rating": "down"}]
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Tab"):
        page.keyboard.press(key)
    expect(form.get_by_role("textbox", name="Anything to add?")).to_be_focused()
    page.keyboard.type("Since 2.0\nit is --frozen.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(form).to_have_count(0)
    expect(thumb(page, "Not helpful")).to_be_focused()
    expect(live(page)).to_have_text("Thank you for your feedback.")
    assert site.opinions[1:] == [
        {"turn_id": "t", "rating": "down", "reason": "outdated", "comment": "Since 2.0\nit is --frozen."}
    ]
    assert site.asked[1:] == []


def test_the_reasons_are_those_that_the_api_knows(browse: Browse) -> None:
    page = browse()
    ask(page)
    values = rate_down(page).locator("input").evaluate_all("inputs => inputs.map(input => input.value)")
    assert values == list(get_args(get_args(Feedback.model_fields["reason"].annotation)[0]))
    field = page.get_by_role("textbox", name="Anything to add?")
    field.fill("x" * 2001)
    assert field.evaluate("field => field.maxLength") == 2000


def test_escape_closes_the_form_and_not_the_chat(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page)
    form = rate_down(page)
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(thumb(page, "Not helpful")).to_be_focused()
    assert len(site.opinions) == 1


def test_a_reader_may_think_again(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page)
    rate_down(page)
    rate_down(page)
    expect(page.locator(".turn form")).to_have_count(1)
    thumb(page, "Helpful").click()
    expect(page.locator(".turn form")).to_have_count(0)
    expect(thumb(page, "Helpful")).to_have_attribute("aria-pressed", "true")
    expect(thumb(page, "Not helpful")).to_have_attribute("aria-pressed", "false")
    assert [opinion["rating"] for opinion in site.opinions] == ["down", "down", "up"]


@pytest.mark.parametrize("failure", ["refused", "offline"])
def test_a_comment_that_does_not_arrive_is_kept(browse: Browse, site: Site, failure: str) -> None:
    page = browse()
    ask(page)
    form = rate_down(page)
    comment = form.get_by_role("textbox", name="Anything to add?")
    comment.fill("Since 2.0")
    if failure == "offline":
        page.route("**/v1/feedback", lambda route: route.abort("connectionrefused"))
    else:
        site.receipts.append(refused(503, "The records cannot be reached."))
    form.get_by_role("button", name="Send feedback").click()
    expect(live(page)).to_have_text("Your feedback could not be sent.")
    expect(page.locator(".turn").get_by_text("Your feedback could not be sent.")).to_be_visible()
    expect(comment).to_have_value("Since 2.0")
    page.unroute("**/v1/feedback")
    form.get_by_role("button", name="Send feedback").click()
    expect(form).to_have_count(0)
    assert site.opinions[-1] == {"turn_id": "t", "rating": "down", "comment": "Since 2.0"}


def test_a_press_that_does_not_arrive_does_not_stay(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page)
    site.receipts.append(Reply((b"<h1>Bad gateway</h1>",), 502, "text/html"))
    thumb(page, "Helpful").click()
    expect(live(page)).to_have_text("Your feedback could not be sent.")
    expect(thumb(page, "Helpful")).to_have_attribute("aria-pressed", "false")
    thumb(page, "Helpful").click()
    expect(live(page)).to_have_text("Thank you for your feedback.")
    expect(thumb(page, "Helpful")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("name", ["Helpful", "Not helpful"])
def test_an_api_without_the_route_makes_the_thumbs_go_away(browse: Browse, site: Site, name: str) -> None:
    page = browse()
    ask(page)
    site.receipts.append(refused(404))
    thumb(page, name).click()
    expect(thumb(page, name)).to_have_count(0)
    expect(page.locator(".turn form")).to_have_count(0)
    expect(page.get_by_text("could not be sent")).to_have_count(0)
    expect(page.get_by_role("region", name="Ask the docs")).to_be_focused()
    expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()


def test_the_form_does_not_take_the_focus_from_a_reader_who_moved_on(browse: Browse, site: Site) -> None:
    held: list[Route] = []
    page = browse()
    ask(page)
    page.route("**/v1/feedback", lambda route: held.append(route))
    with page.expect_request("**/v1/feedback"):
        thumb(page, "Not helpful").click()
    field = page.get_by_role("textbox", name="Ask a question")
    field.focus()
    page.keyboard.type("And")
    held[0].continue_()
    expect(page.locator(".turn form")).to_be_visible()
    page.keyboard.type(" then?")
    expect(field).to_have_value("And then?")


@pytest.mark.parametrize("case", ["not wanted", "not wanted by the tag", "without an id"])
def test_no_thumbs_where_nobody_wants_them(browse: Browse, site: Site, case: str) -> None:
    if case == "without an id":
        site.replies.append(stream(answer("Hm.", turn_id=None)))
    else:
        site.config["feedback"] = False if case == "not wanted" else "false"
    page = browse()
    ask(page)
    expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
    expect(thumb(page, "Helpful")).to_have_count(0)


def test_an_answer_of_an_earlier_page_can_be_rated(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page).locator(".answered").wait_for()
    page.reload()
    thumb(page, "Helpful").click()
    expect(live(page)).to_have_text("Thank you for your feedback.")
    assert site.opinions == [{"turn_id": "t", "rating": "up"}]


def test_the_form_comes_into_view(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("A long answer.\n\n" * 12, citations=["1"])))
    page = browse(viewport={"width": 1280, "height": 600})
    turn = ask(page)
    turn.locator(".down").click()
    submit = turn.locator(".feedback .chip")
    expect(submit).to_be_in_viewport()
    bottom = "node => node.getBoundingClientRect().bottom"
    assert submit.evaluate(bottom) <= page.locator(".thread").evaluate(bottom)
