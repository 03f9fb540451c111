"""The HTTP application: routes, guard, and one shape for every error."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response

from chapterverse.errors import ChapterVerseError
from chapterverse.extensions import foreign, load_routers
from chapterverse.manifests import EXTENSIONS
from chapterverse.settings import Settings
from chapterverse.version import __version__
from chapterverse_api import rejections, validation
from chapterverse_api.http import routes
from chapterverse_api.http.files import StaticSite, widget_routes
from chapterverse_api.http.guard.middleware import Guard
from chapterverse_api.http.guard.origin import AllowList
from chapterverse_api.http.guard.rate import RateLimit
from chapterverse_api.index.site_index import parse_host
from chapterverse_api.observability import metrics
from chapterverse_api.rejections import Rejection
from chapterverse_api.service_loader import ServiceLoader

if TYPE_CHECKING:
    from chapterverse_api.service import Service


def create_app(
    service: Service | None = None,
    *,
    settings: Settings | None = None,
    site_dir: Path | None = None,
    hosts: Collection[str] = (),
) -> FastAPI:
    """Return the application.

    Args:
        service: the service that answers; None opens one with `settings` at the first request.
        settings: None takes the service's own, or the environment's.
        site_dir: folder of a built site to serve on the same origin.
        hosts: names, addresses and URLs of this server, besides loopback and `settings.base_url`. Without a list of
            allowed origins a request with another `Host` is rejected.

    Raises:
        ConfigurationError: a setting is invalid, or `site_dir` is not a folder.
    """
    settings = settings or (service.settings if service else Settings.from_environment())
    own_hosts = [parse_host(host) if "://" in host else host for host in (*hosts, settings.base_url)]
    app = FastAPI(
        title="Chapter & Verse",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(
                Guard,
                allowed=AllowList(settings.origins, own_hosts),
                site=settings.site if metrics.is_wanted() else None,
            )
        ],
    )
    app.state.service = loader = ServiceLoader(settings, service)
    app.state.load_models = loader.load_models
    app.state.rates = RateLimit(settings, loader)
    app.state.program_rates = RateLimit(settings, loader, programs=True)
    _add_error_handlers(app, loader)
    _add_routes(app, settings)
    if site_dir is not None:
        app.router.default = StaticSite(site_dir)
    return app


def _add_routes(app: FastAPI, settings: Settings) -> None:
    # `include_router` would create each route again.
    app.router.routes += routes.router.routes
    for router in load_routers(settings, EXTENSIONS):
        app.router.routes += router.routes
    app.router.routes += widget_routes()
    for router in load_routers(settings, foreign()):
        app.router.routes += router.routes


def _add_error_handlers(app: FastAPI, loader: ServiceLoader) -> None:
    @app.exception_handler(Rejection)
    @app.exception_handler(ChapterVerseError)
    @app.exception_handler(RequestValidationError)
    @app.exception_handler(HTTPException)
    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            rejection = validation.rejection(error.errors())
        elif isinstance(error, HTTPException):
            rejection = rejections.from_status(error.status_code, error.headers)
        else:
            rejection = rejections.report(error, site=loader.site)
        return rejection.response(request.scope["path"])
