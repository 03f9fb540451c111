"""Finds AWS keys, regions and endpoints by the variables that boto3 reads, or by botocore.

On Lambda the keys of the environment are valid as long as the process lives. Under SnapStart they would be older, so
the container provides them: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn
from urllib.parse import urlsplit

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.ext.aws.signing import AccessKeys
from chapterverse.ext.net import JsonClient
from chapterverse.ext.net.address import Address, request_target
from chapterverse.ext.net.messages import is_header_safe

#: Seconds before their expiry at which keys are renewed. Containers provide new ones some minutes before.
_RENEWAL_SECONDS = 5 * 60
#: Seconds for an answer of the container, which is on the same machine.
_CONTAINER_SECONDS = 3.0
#: Hosts that the specification allows without encryption: this machine, ECS, and two of EKS.
_ALLOWED_HTTP_HOSTS = {"localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"}
#: A custom endpoint may have regions of its own, such as "auto". A region has no character that ends a part of a host.
_REGION = re.compile(r"[A-Za-z0-9-]{1,63}")
#: Domains of hosts by the beginning of the region: https://docs.aws.amazon.com/general/latest/gr/rande.html
_SUFFIXES = {"cn-": "amazonaws.com.cn", "eusc-": "amazonaws.eu"}
#: Names of services: in messages, and in the variable of an endpoint.
_NAMES = {
    "s3": ("S3", "S3"),
    "dynamodb": ("DynamoDB", "DYNAMODB"),
    "secretsmanager": ("Secrets Manager", "SECRETS_MANAGER"),
    "ssm": ("Parameter Store", "SSM"),
}


def _find_region() -> str:
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


def _find_credentials(title: str) -> Any:
    """Return botocore's credentials; None if it finds none. Raises `ConfigurationError` if it is not installed."""
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


def _read_keys(source: Any) -> AccessKeys | None:
    """Return the keys of botocore's credentials, renewed if they expire soon; None if that failed."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        frozen = source.get_frozen_credentials()
    except (BotoCoreError, ClientError):
        return None
    return AccessKeys(frozen.access_key, frozen.secret_key, frozen.token or "")


class Credentials:
    """The keys of this process, renewed before they expire. Safe to share between threads.

    Args:
        title: the name of the service, for messages.
    """

    def __init__(self, title: str, *, clock: Callable[[], float] = time.time) -> None:
        self._title = title
        self._clock = clock
        self._lock = Lock()
        self._container_keys: AccessKeys | None = None
        self._ends = 0.0
        self._source: Any = None

    def keys(self) -> AccessKeys:
        """Return the keys to sign with.

        Raises:
            ConfigurationError: there are no credentials.
        """
        access, secret = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")
        if access and secret:
            return self._require_sendable(AccessKeys(access, secret, os.environ.get("AWS_SESSION_TOKEN", "")))
        if access or secret:
            self._raise_missing()
        with self._lock:
            url = _container_url()
            return self._require_sendable(self._container_credentials(url) if url else self._botocore_credentials())

    def _container_credentials(self, url: str) -> AccessKeys:
        if self._container_keys and self._clock() < self._ends - _RENEWAL_SECONDS:
            return self._container_keys
        try:
            self._container_keys, self._ends = _fetch(url)
        except (ChapterVerseError, OSError, ValueError, KeyError, TypeError, AttributeError):
            # The container may answer again before the keys expire.
            if self._container_keys is None or self._clock() >= self._ends:
                raise ConfigurationError(
                    f"The container gives no AWS credentials for {self._title}: check the role of the task or function."
                ) from None
        return self._container_keys

    def _botocore_credentials(self) -> AccessKeys:
        if self._source is None:
            self._source = _find_credentials(self._title)
        # botocore renews its credentials itself.
        return (self._source and _read_keys(self._source)) or self._raise_missing()

    def _require_sendable(self, keys: AccessKeys) -> AccessKeys:
        # Checked here, because the error of the HTTP layer would quote the value.
        if not all(map(is_header_safe, (keys.access, keys.secret, keys.token))):
            raise ConfigurationError(
                f"The AWS credentials for {self._title} hold characters that no key has: copy them again."
            )
        return keys

    def _raise_missing(self) -> NoReturn:
        raise ConfigurationError(
            f"There are no AWS credentials for {self._title}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE, or give the machine a role."
        )


def _container_url() -> str:
    """Return the URL at which the container provides keys; "" if it provides none."""
    relative = os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
    url = f"http://169.254.170.2{relative}" if relative else os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("no-url")
    if url and parts.scheme != "https" and parts.hostname not in _ALLOWED_HTTP_HOSTS:
        raise ConfigurationError("AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine.")
    return url


def _fetch(url: str) -> tuple[AccessKeys, float]:
    """Return the container's credentials, and their expiry in seconds since the epoch."""
    parts = urlsplit(url)
    client = JsonClient(f"{parts.scheme}://{parts.netloc}", _authorization(), total_seconds=_CONTAINER_SECONDS)
    reply = client.send("GET", request_target(parts)).body
    ends = datetime.fromisoformat(reply["Expiration"]).timestamp()
    return AccessKeys(str(reply["AccessKeyId"]), str(reply["SecretAccessKey"]), str(reply.get("Token") or "")), ends


def _authorization() -> dict[str, str]:
    file = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
    token = Path(file).read_text("ascii") if file else os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    return {"Authorization": token.strip()} if token else {}


def title(service: str) -> str:
    """Return the name of a service in messages: "Secrets Manager" for "secretsmanager"."""
    return _NAMES[service][0]


def region_for(service: str, region: str = "") -> str:
    """Return the region of requests: this one, that of AWS_REGION or AWS_DEFAULT_REGION, or the profile's.

    Raises:
        ConfigurationError: no region is named, or the name is malformed.
    """
    name = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _find_region()
    if not name:
        raise ConfigurationError(f"{title(service)} needs a region: set AWS_REGION in the environment.")
    if not _REGION.fullmatch(name):
        raise ConfigurationError("AWS_REGION is no name of a region: write it as us-east-1.")
    return name


def custom_endpoint(service: str) -> Address | None:
    """Return the address that AWS_ENDPOINT_URL_<SERVICE> or AWS_ENDPOINT_URL names.

    Raises:
        ConfigurationError: it is no address.
    """
    specific = f"AWS_ENDPOINT_URL_{_NAMES[service][1]}"
    for variable in (specific, "AWS_ENDPOINT_URL"):
        if url := os.environ.get(variable, ""):
            return _address(url, variable)
    return None


def endpoint(service: str, region: str) -> Address:
    """Return the address of a service in a region. Raises as `custom_endpoint` does."""
    return custom_endpoint(service) or Address.parse(f"https://{service}.{region}.{suffix(region)}")


def suffix(region: str) -> str:
    """Return the domain of a region's hosts."""
    return next((ending for start, ending in _SUFFIXES.items() if region.startswith(start)), "amazonaws.com")


def _address(url: str, variable: str) -> Address:
    # AWS has no use for a user and a password, and `Address` would reject them with a message about another setting.
    scheme, mark, rest = url.strip().partition("://")
    host, slash, path = rest.partition("/")
    try:
        return Address.parse(f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}")
    except ConfigurationError:
        raise ConfigurationError(f"{variable} is no address: write it as https://HOST.") from None
