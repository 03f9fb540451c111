from __future__ import annotations

from pathlib import Path

from api import quill
from chapterverse.settings import Settings


def test_status_tells_what_is_served(tmp_path: Path) -> None:
    status = quill.service(quill.publish(tmp_path)).status()
    assert (status.status, status.degraded) == ("ok", [])
    assert status.models == {
        "embedder": "none",
        "reranker": "none",
        "generator": "extractive",
        "reading_model": "none",
        "checker": "words",
    }
    (index,) = status.indexes
    assert (index.site, index.version, index.generation, index.pages) == ("quill", "", 1, 6)


def test_status_tells_of_a_missing_and_of_a_broken_index(tmp_path: Path) -> None:
    settings = Settings(store=f"edge:{tmp_path}")
    assert (quill.service(settings).status().status, quill.service(settings).status().degraded) == (
        "degraded",
        ["index"],
    )
    quill.publish(tmp_path)
    next(tmp_path.glob("*/*/head.json")).write_text("{")
    assert quill.service(settings).status().degraded == ["index"]
