"""How much the tests of this folder do: some of everything in `make test-rest`, all of it in a nightly run."""

from __future__ import annotations

import os

#: How many times each test strikes, races, is stopped or meets trouble; 0 for all steps, and for a night of the others.
STRIKES = int(os.environ.get("CHAPTERVERSE_STRIKES", "8"))
#: How many kills at random moments must land, over all seeds.
KILLS = int(os.environ.get("CHAPTERVERSE_KILLS", "60"))
