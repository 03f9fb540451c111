"""A base address that contains the version which each request adds."""

from __future__ import annotations

import pytest

from chapterverse.net.address import strip_version

HOST = "http://localhost:11434"


@pytest.mark.parametrize("end", ["/v1", "/v2/", "/V1//"])
def test_a_version_at_the_end_is_left_out(end: str) -> None:
    assert strip_version(f"{HOST}{end}") == HOST
    assert strip_version(f" {HOST}/proxy{end}") == f"{HOST}/proxy"


@pytest.mark.parametrize("url", [HOST, f"{HOST}/", f"{HOST}/api", f"{HOST}/v1/openai", "https://v1.example.com"])
def test_any_other_address_is_taken_as_it_is(url: str) -> None:
    assert strip_version(url) == url
