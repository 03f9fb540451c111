from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from ext.aws.test_events import FUNCTION_URL

SCRIPT = """
import gc, json, sys
from chapterverse_api.handler import handler
loaded, collects = sorted(sys.modules), gc.isenabled()
status = handler(json.loads(sys.argv[1]), None)["statusCode"]
asked = sorted(sys.modules)
import pydantic.v1
from fastapi.openapi.models import Operation
built = Operation.__pydantic_complete__
print(json.dumps({"loaded": loaded, "collects": collects, "legacy": pydantic.v1.BaseModel.__module__, "status": status,
    "asked": asked, "built": built, "openapi": handler.mangum.app.openapi()}))
"""
PLAIN = """
import json
from chapterverse_api.app import create_app
print(json.dumps({"openapi": create_app().openapi()}))
"""


def seen(script: str = SCRIPT) -> dict[str, Any]:
    command = [sys.executable, "-c", script, json.dumps(FUNCTION_URL)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
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


def test_what_fastapi_describes_an_api_with_is_built_when_somebody_asks_for_that() -> None:
    found, plain = seen(), seen(PLAIN)
    assert found["status"] == 200
    assert not found["built"]
    assert found["openapi"] == plain["openapi"]
    assert len(found["openapi"]["paths"]) >= 4


def test_the_first_request_makes_no_route_anew() -> None:
    # FastAPI would, of a router that another one includes, and then asks of each model whether it is one of pydantic 1.
    assert not {"pydantic.v1", "pydantic.v1.main"} & set(seen()["asked"])
