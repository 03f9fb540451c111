"""The HTTP application: routes, guard, one shape for every error, and the service, opened at the first question."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.extensions import foreign, load_part, load_part_of_offer, load_routers
from chapterverse.manifests import EXTENSIONS
from chapterverse.settings import Settings
from chapterverse.text.hosts import parse_host
from chapterverse.version import __version__
from chapterverse_api import log, rejections
from chapterverse_api.http import routes
from chapterverse_api.http.admission import RateLimit
from chapterverse_api.http.guard import AllowList, Guard
from chapterverse_api.rejections import Rejection

if TYPE_CHECKING:
    from chapterverse_api.service import Service

#: Seconds until secrets are fetched again.
REFRESH_SECONDS = 600.0
#: The same after a key was refused: its owner may just have replaced it.
REFRESH_AFTER_REFUSED_KEY_SECONDS = 60.0
#: Seconds until a fetch that failed is tried again.
RETRY_SECONDS = 10.0


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
                write_metrics=partial(load_part("metrics"), settings.site) if _is_on_lambda() else None,
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
        app.router.default = load_part("static_site")(site_dir)
    return app


def _is_on_lambda() -> bool:
    # CloudWatch reads its log.
    return bool(os.environ.get("AWS_LAMBDA_FUNCTION_NAME"))


def _add_routes(app: FastAPI, settings: Settings) -> None:
    # `include_router` would create each route again.
    app.router.routes += routes.router.routes
    for router in load_routers(settings, EXTENSIONS):
        app.router.routes += router.routes
    app.router.routes += routes.widget_routes()
    for router in load_routers(settings, foreign()):
        app.router.routes += router.routes


def _add_error_handlers(app: FastAPI, loader: ServiceLoader) -> None:
    @app.exception_handler(Rejection)
    @app.exception_handler(ChapterVerseError)
    @app.exception_handler(RequestValidationError)
    @app.exception_handler(HTTPException)
    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            rejection = rejections.from_problems(error.errors())
        elif isinstance(error, HTTPException):
            rejection = rejections.from_status(error.status_code, error.headers)
        else:
            rejection = rejections.report(error, site=loader.site)
        return rejection.response(request.scope["path"])


class ServiceLoader:
    """Returns the service, which opens at the first call. A later call tries again if that failed.

    The secrets that `CHAPTERVERSE_SECRETS_ARN` names are fetched at the first question, never before. Ten minutes
    later, or a minute later if a key is refused, they are fetched again, in the background while the old service
    answers. If they have changed, a service that is opened with the new ones takes its place.

    Args:
        service: the service to return; None opens one.
        clock: monotonic seconds.
    """

    def __init__(
        self, settings: Settings, service: Service | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._service = service
        self._renews = service is None and bool(settings.secrets_arn)
        self._clock = clock
        self._lock = Lock()
        self._last_try = 0.0
        self._failure = ""
        self._warnings: list[str] = []

    def __call__(self) -> Service:
        """Return the service.

        Raises:
            ConfigurationError: a setting can't be used, or the secrets can't be fetched.
        """
        with self._lock:
            if self._service is None:
                self._service = self._open()
            elif self._renews and self._is_due(self._service):
                self._last_try = self._clock()
                Thread(target=self._renew, args=(self._service,), name="chapterverse-secrets", daemon=True).start()
            return self._service

    def load_models(self) -> Callable[[], None]:
        """Load the models of one's own servers in the background; return what ends that. For processes that stay."""
        load_models = load_part_of_offer("cold_models", "generator", self._settings)
        stop: Callable[[], None] = load_models(self) if load_models else lambda: None
        return stop

    @property
    def site(self) -> str:
        """The address of the documentation; empty until it is known. Opens nothing."""
        return self._settings.base_url or (self._service.site if self._service else "")

    def _open(self) -> Service:
        # Limit how often a missing secret is fetched, however many questions arrive.
        if self._failure and self._clock() - self._last_try < RETRY_SECONDS:
            raise ConfigurationError(self._failure)
        self._last_try = self._clock()
        try:
            service = _load_service(self._resolve())
        except ConfigurationError as error:
            self._failure = str(error) if self._settings.secrets_arn else ""
            raise
        self._failure = ""
        return service

    def _is_due(self, service: Service) -> bool:
        interval = REFRESH_AFTER_REFUSED_KEY_SECONDS if service.resources.key_refused else REFRESH_SECONDS
        return self._clock() - self._last_try >= (RETRY_SECONDS if self._failure else interval)

    def _renew(self, service: Service) -> None:
        """Fetch the secrets again. If they have changed, replace this service by one that is opened with them."""
        try:
            settings = self._resolve()
            renewed = _load_service(settings) if settings != service.settings else service
        # An error raised in this thread would be lost.
        except Exception as error:
            # The old service answers on, and the log states why.
            rejection = rejections.report(error)
            self._failure = str(error) if isinstance(error, ChapterVerseError) else rejection.message
            return
        self._failure = ""
        if renewed is not service:
            with self._lock:
                self._service = renewed.inherit_from(service)

    def _resolve(self) -> Settings:
        if not self._settings.secrets_arn:
            return self._settings
        warnings: list[str] = []
        settings: Settings = load_part("secrets_arn")(self._settings, warnings.append)
        for warning in warnings if warnings != self._warnings else ():
            log.event("error", code="secret_left_out", message=warning)
        self._warnings = warnings
        return settings


def _load_service(settings: Settings) -> Service:
    # Lazy: importing the service before the first request would slow a cold start by a third.
    from chapterverse_api.service import Service

    return Service.open(settings)
