from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SCRIPT = """
import gc, json, sys
import chapterverse_api.handler
loaded, collects = sorted(sys.modules), gc.isenabled()
import pydantic.v1
print(json.dumps({"loaded": loaded, "collects": collects, "legacy": pydantic.v1.BaseModel.__module__}))
"""


def seen() -> dict[str, Any]:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_a_cold_start_imports_neither_the_service_nor_what_no_model_is_made_of() -> None:
    found = seen()
    assert "chapterverse_api.app" in found["loaded"]
    assert not {"pydantic.v1", "pydantic.v1.main"} & set(found["loaded"])
    assert "chapterverse_api.service" not in found["loaded"]
    assert not [name for name in found["loaded"] if name.startswith(("chapterverse.store", "chapterverse.embedding"))]
    # Afterwards all is as it was.
    assert found["collects"]
    assert found["legacy"] == "pydantic.v1.main"
