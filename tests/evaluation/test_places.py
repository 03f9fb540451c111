from __future__ import annotations

import pytest

from chapterverse_api.ext.evaluation.places import ExpectedPlace, SitePlaces, match_place, pages, ranks
from fakes.docs import point

PUBLISHED = "https://docs.example/guide/"
SERVED = "http://127.0.0.1:8765/"


def site(*urls: str, addresses: tuple[str, ...] = (PUBLISHED, SERVED)) -> SitePlaces:
    chunks = (point("x", "x", url=url, chapter_title=f"Chapter of {url}").chunk for url in urls)
    return SitePlaces(addresses, chunks)


@pytest.mark.parametrize(
    "address",
    [
        "https://docs.example/guide/start/#first-steps",
        "http://docs.example/guide/start/#first-steps",
        "HTTPS://DOCS.example/guide/start#first-steps",
        "https://docs.example/guide/start/index.html#first-steps",
        "https://docs.example/guide/start/?utm=1&b=2#first-steps",
        "https://docs.example/guide/st%61rt/#first%2Dsteps",
        "https://docs.example/guide/start/#first-steps:~:text=now",
        "http://127.0.0.1:8765/start/#first-steps",
        "start/#first-steps",
        "start#first-steps",
        "./start/index.html#first-steps",
        "/guide/start/#first-steps",
        "//docs.example/guide/start/#first-steps",
    ],
)
def test_one_section_has_many_spellings(address: str) -> None:
    assert site().place(address) == ExpectedPlace("start", "first-steps")


@pytest.mark.parametrize("address", [PUBLISHED, PUBLISHED[:-1], SERVED, "", ".", "index.html", "#", "?a=b"])
def test_the_home_page_has_many_spellings_too(address: str) -> None:
    assert site().place(address) == ExpectedPlace("")


def test_letters_are_compared_as_they_are_read() -> None:
    decomposed, composed = "u\u0308ber/#cafe\u0301", "über/#café"
    assert site().place(decomposed) == site().place(composed) == site().place("%C3%BCber/#caf%C3%A9")


@pytest.mark.parametrize(
    "address",
    [
        "https://other.example/guide/start/#first-steps",
        "https://docs.example/start/#first-steps",
        "https://docs.example/guidebook/#first-steps",
        "https://docs.example:8443/guide/start/#first-steps",
        "start.html#first-steps",
        "Start/#first-steps",
        "start/#First-Steps",
        "startindex.html#first-steps",
        "http://[::1#first-steps",
        "javascript:start/#first-steps",
    ],
)
def test_what_is_somewhere_else_is_told_from_it(address: str) -> None:
    here = site("https://docs.example/guide/start/#first-steps")
    assert here.place(address) != ExpectedPlace("start", "first-steps")
    assert not here.holds(here.place(address))


def test_a_site_below_another_address_of_its_own() -> None:
    both = site(addresses=("https://docs.example/", "https://docs.example/v2/"))
    assert both.place("https://docs.example/v2/a/") == both.place("https://docs.example/a/") == ExpectedPlace("a")


def test_a_site_whose_address_is_not_known_is_compared_whole() -> None:
    nowhere = site("https://docs.example/a/#b", addresses=("", ""))
    assert nowhere.holds(nowhere.place("https://docs.example/a#b"))
    assert not nowhere.holds(nowhere.place("a/#b"))


def test_the_index_knows_its_sections_its_pages_and_their_titles() -> None:
    known = site(f"{PUBLISHED}a/#one", f"{PUBLISHED}a/", f"{PUBLISHED}b/#two")
    assert [known.holds(known.place(a)) for a in ("a/#one", "a/", "b/", "b/#two")] == [True] * 4
    assert [known.holds(known.place(a)) for a in ("a/#two", "c/", "b/#")] == [False, False, True]
    assert known.chapter(ExpectedPlace("a", "nowhere")) == f"Chapter of {PUBLISHED}a/#one"
    assert known.chapter(ExpectedPlace("c")) is None


A, B = ExpectedPlace("a"), ExpectedPlace("b")
A1, A2, B1 = ExpectedPlace("a", "1"), ExpectedPlace("a", "2"), ExpectedPlace("b", "1")


@pytest.mark.parametrize(
    ("expected", "found", "at"),
    [
        ([A1], [B1, A1], (2,)),
        ([A1], [], (None,)),
        ([A1], [A2, A], (None,)),
        # Several chunks of one section count once, at the first.
        ([A1], [A1, A1, A1], (1,)),
        ([A1, B1], [A1, A1, B1], (1, 3)),
        # A page is found by any of its sections.
        ([A], [B1, A2, A1], (2,)),
        # Where a page and a section of it are expected, each result serves one of them, the section first.
        ([A, A1], [A1], (None, 1)),
        ([A, A1], [A1, A2], (2, 1)),
        ([A, A1], [A2, A1], (1, 2)),
    ],
)
def test_ranks(expected: list[ExpectedPlace], found: list[ExpectedPlace], at: tuple[int | None, ...]) -> None:
    assert ranks(expected, found) == at


def test_pages_count_once_however_many_of_their_sections_are_expected() -> None:
    assert pages([A1, A2, B1, A]) == (A, B)
    assert ranks(pages([A1, A2, B1]), [A2, A1, B]) == (1, 3)


def test_a_result_is_right_by_its_section_or_by_its_page_alone() -> None:
    assert [match_place([A1, B], place) for place in (A1, A2, B1, ExpectedPlace("c", "1"))] == [
        "anchor",
        "page",
        "anchor",
        None,
    ]
