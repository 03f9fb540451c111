"""Opens the service at the first question, and again when its secrets change.

The secrets that `CHAPTERVERSE_SECRETS_ARN` names are fetched at the first question, never before. Ten minutes later, or
a minute later if a key is refused, they are fetched again, in the background while the old service answers. If they
have changed, a service that is opened with the new ones takes its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api import rejections
from chapterverse_api.http.protocols import ChatService
from chapterverse_api.observability import log

if TYPE_CHECKING:
    from chapterverse_api.service import Service

#: Seconds until secrets are fetched again: as a rule, after a key was refused, and after fetching them failed.
LIFETIME, REFUSED, FAILED = 600.0, 60.0, 10.0


class ServiceLoader:
    """Returns the service, which opens at the first call; a try that failed is made again.

    Args:
        service: what is returned; None opens one.
        clock: seconds that only grow.
    """

    def __init__(
        self, settings: Settings, service: ChatService | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._service = service
        self._own: Service | None = None
        self._clock = clock
        self._lock = Lock()
        self._last_try = 0.0
        self._failure = ""
        self._warnings: tuple[str, ...] = ()

    def __call__(self) -> ChatService:
        """Return the service.

        Raises:
            ConfigurationError: a setting can't be used, or the secrets can't be had.
        """
        with self._lock:
            if self._service is None:
                self._service = self._own = self._open_own()
            elif self._own and self._is_due(self._own):
                self._last_try = self._clock()
                Thread(target=self._renew, args=(self._own,), name="chapterverse-secrets", daemon=True).start()
            return self._service

    @property
    def site(self) -> str:
        """Where the documentation is, as far as it is known; never opens anything."""
        return self._settings.base_url or (self._service.site if self._service else "")

    def _open_own(self) -> Service:
        # Readers who ask on and on must not make as many calls of a secret that isn't there.
        if self._failure and self._clock() - self._last_try < FAILED:
            raise ConfigurationError(self._failure)
        self._last_try = self._clock()
        try:
            service = _open(self._resolve())
        except ConfigurationError as error:
            self._failure = str(error) if self._settings.secrets_arn else ""
            raise
        self._failure = ""
        return service

    def _is_due(self, service: Service) -> bool:
        if not self._settings.secrets_arn:
            return False
        interval = FAILED if self._failure else REFUSED if service.key_refused else LIFETIME
        return self._clock() - self._last_try >= interval

    def _renew(self, service: Service) -> None:
        """Open a service with the secrets of now, if they changed, and put it in the place of this one."""
        try:
            settings = self._resolve()
            changed = _open(settings) if settings != service.settings else service
        except ChapterVerseError as error:
            # The old service goes on, and the operator reads why.
            rejections.report(error)
            self._failure = str(error)
            return
        self._failure = ""
        if changed is not service:
            with self._lock:
                self._service = self._own = changed.inherit_from(service)

    def _resolve(self) -> Settings:
        if not self._settings.secrets_arn:
            return self._settings
        from chapterverse.net.aws.secrets import fetch

        secrets = fetch(self._settings.secrets_arn)
        for warning in secrets.warnings if secrets.warnings != self._warnings else ():
            log.event("error", turn_id=None, code="secret_left_out", message=warning)
        self._warnings = secrets.warnings
        return self._settings.with_secrets(secrets.values)


def _open(settings: Settings) -> Service:
    # It is most of this program: a cold Lambda that imported it before its first request would start a third slower.
    from chapterverse_api.service import Service

    return Service.open(settings)
