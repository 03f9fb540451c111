from __future__ import annotations

from api.scripted import FOUND, Client, Scripted, error_of
from chapterverse.errors import IndexCorrupt
from chapterverse_api.app import create_app
from chapterverse_api.contract import RetrievalRequest, dump


def test_passages_are_returned() -> None:
    service = Scripted()
    response = Client(create_app(service)).post("/v1/retrieve", {"query": "a", "filters": {"tags": ["x", "y"]}})
    assert (response.status_code, response.json()) == (200, dump(FOUND))
    assert service.asked == [RetrievalRequest(query="a", filters={"tags": ["x", "y"]})]


def test_a_damaged_index_is_503() -> None:
    response = Client(create_app(Scripted([IndexCorrupt("/srv/x")]))).post("/v1/retrieve", {"embedding": [0.5]})
    assert (response.status_code, error_of(response)["code"]) == (503, "index_unavailable")
    assert "/srv" not in response.text
