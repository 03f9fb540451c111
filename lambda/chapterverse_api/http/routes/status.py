"""`GET /v1/health`: whether the process is up. `GET /v1/status`: what it answers from."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi import APIRouter, Request
from starlette.responses import Response

from chapterverse_api.contract import Health, ServiceStatus
from chapterverse_api.http.request_context import get_service
from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1")

#: Threads for the status, separate from those for answers: anybody may request it at any rate, and each call waits if
#: the store hangs.
_THREADS = 4
_threads = RunVar[CapacityLimiter]("chapterverse-status")


@router.get("/health", responses=openapi_entries(403))
async def health() -> Health:
    """Say that the process is up; neither the index nor a model is asked."""
    return Health()


@router.get("/status", responses=openapi_entries(403, 500, 503))
async def status(request: Request) -> ServiceStatus:
    """Return the indexes that are served, the models in use, and the parts that are degraded."""
    return await to_thread.run_sync(lambda: get_service(request.app).status(), limiter=_limiter())


@router.head("/health", include_in_schema=False)
@router.head("/status", include_in_schema=False)
async def head() -> Response:
    """Answer a monitor that wants no body; what the status would hold is not asked for."""
    return Response(media_type="application/json")


def _limiter() -> CapacityLimiter:
    # A limiter belongs to an event loop, so it is created during a request.
    try:
        return _threads.get()
    except LookupError:
        _threads.set(CapacityLimiter(_THREADS))
        return _threads.get()
