from __future__ import annotations

from pathlib import Path

import pytest

from fakes.docs import CountingEmbedder, prose
from indexing.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path, CountingEmbedder())
    for name in "abc":
        made.put(f"{name}.md", prose((name, 1)), prose((name, 2)))
    return made
