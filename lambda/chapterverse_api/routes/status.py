"""`GET /v1/health`: is it alive; `GET /v1/status`: what does it answer from."""

from __future__ import annotations

from fastapi import APIRouter, Request

from chapterverse_api.contract import Health, ServiceStatus
from chapterverse_api.refusals import documented
from chapterverse_api.routes import service

router = APIRouter()


@router.get("/health", responses=documented(403))
async def health() -> Health:
    """Say that the process is up; neither the index nor a model is asked."""
    return Health()


@router.get("/status", responses=documented(403, 500, 503))
def status(request: Request) -> ServiceStatus:
    """Return the indexes that are served, the models in use, and the parts that are degraded."""
    return service(request).status()
