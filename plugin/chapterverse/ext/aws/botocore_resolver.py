"""Resolves profiles, SSO, roles and instance metadata by botocore. Loaded on demand."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws.signing import AccessKeys


def region() -> str:
    """Return the region of the profile in use, "" without one."""
    config = Path(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config").expanduser()
    if not config.exists() or find_spec("botocore") is None:
        return ""
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        return str(Session().get_config_variable("region") or "")
    except BotoCoreError:
        return ""


def credentials(title: str) -> Any:
    """Return botocore's credentials; None if it finds none.

    Args:
        title: the name of the service, for messages.

    Raises:
        ConfigurationError: botocore is not installed.
    """
    if find_spec("botocore") is None:
        raise ConfigurationError(
            f"There are no AWS credentials for {title} in the environment: set AWS_ACCESS_KEY_ID and "
            'AWS_SECRET_ACCESS_KEY, or let botocore look further by pip install "chapterverse[aws]".'
        )
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        return Session().get_credentials()
    except BotoCoreError:
        return None


def keys(source: Any) -> AccessKeys | None:
    """Return the keys of botocore's credentials, renewed if they expire soon; None if that failed."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        frozen = source.get_frozen_credentials()
    except (BotoCoreError, ClientError):
        return None
    return AccessKeys(frozen.access_key, frozen.secret_key, frozen.token or "")
