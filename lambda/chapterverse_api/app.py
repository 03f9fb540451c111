"""The HTTP application: routes, guard, and one shape for every error."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.types import ASGIApp

from chapterverse import __version__
from chapterverse.errors import ChapterVerseError
from chapterverse.settings import Settings
from chapterverse_api import rejections, validation
from chapterverse_api.http.guard.headers import ResponseHeaders
from chapterverse_api.http.guard.last_resort import LastResort
from chapterverse_api.http.guard.origin import AllowList, Everyone, OriginGuard
from chapterverse_api.http.guard.rate import RateLimit
from chapterverse_api.http.guard.request_id import RequestId
from chapterverse_api.http.guard.request_metrics import RequestMetrics
from chapterverse_api.http.guard.threads import WorkerThreads
from chapterverse_api.http.routes import Service, chat, feedback, retrieve, status, threads, widget
from chapterverse_api.http.routes.site import StaticSite
from chapterverse_api.index.addresses import host_of
from chapterverse_api.observability import metrics
from chapterverse_api.provider import ServiceProvider


def create_app(
    service: Service | None = None,
    *,
    settings: Settings | None = None,
    site_dir: Path | None = None,
    hosts: Collection[str] = (),
) -> FastAPI:
    """Return the application.

    Args:
        service: what answers; None opens one with `settings` at the first request.
        settings: None means the service's own, or the environment's.
        site_dir: folder of a built site, to be served on the same origin.
        hosts: names, addresses and URLs that it is reached by, besides loopback and `settings.base_url`. Where no
            origin is allowed by name, a request whose `Host` is none of them is refused.

    Raises:
        ConfigurationError: a setting can't be used, or `site_dir` is no folder.
    """
    settings = settings or (service.settings if service else Settings.from_environment())
    reached = [host_of(host) if "://" in host else host for host in (*hosts, settings.base_url)]
    app = FastAPI(
        title="Chapter & Verse",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestId),
            *([Middleware(RequestMetrics, site=settings.site)] if metrics.wanted() else []),
            Middleware(ResponseHeaders),
            Middleware(OriginGuard, allowed=AllowList(settings.origins, reached)),
            Middleware(WorkerThreads),
            Middleware(LastResort),
        ],
    )
    app.state.service = opening = ServiceProvider(settings, service)
    app.state.rates = RateLimit(settings, opening)
    _add_errors(app, opening)
    # There is nothing to forget where nothing is kept; what names the database may be among the secrets.
    keeps = settings.records or settings.secrets_arn
    for routes in (chat, retrieve, feedback, status, *([threads] if keeps else [])):
        # Not included, which would make each of them anew.
        app.router.routes.extend(routes.router.routes)
    app.router.routes.extend(widget.routes())
    if site_dir is not None:
        app.router.default = StaticSite(site_dir)
    return app


def unusable(refusal: rejections.Rejection) -> ASGIApp:
    """Return what answers where the application can't be made: one sentence, which the page that asks may read."""
    return RequestId(ResponseHeaders(OriginGuard(refusal.response(), allowed=Everyone())))


def _add_errors(app: FastAPI, opening: ServiceProvider) -> None:
    @app.exception_handler(rejections.Rejection)
    @app.exception_handler(ChapterVerseError)
    async def refused(_: Request, error: Exception) -> Response:
        return rejections.report(error, site=opening.site).response()

    @app.exception_handler(RequestValidationError)
    async def out_of_contract(_: Request, error: RequestValidationError) -> Response:
        return validation.rejection(error.errors()).response()

    @app.exception_handler(HTTPException)
    async def turned_away(_: Request, error: HTTPException) -> Response:
        return rejections.of_status(error.status_code).response(dict(error.headers or {}))
