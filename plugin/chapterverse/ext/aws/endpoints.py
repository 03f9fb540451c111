"""AWS regions and endpoints, by the variables that boto3 reads."""

from __future__ import annotations

import os
import re

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws.credentials import find_region
from chapterverse.net.address import Address

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


def title(service: str) -> str:
    """Return the name of a service in messages: "Secrets Manager" for "secretsmanager"."""
    return _NAMES[service][0]


def region_for(service: str, region: str = "") -> str:
    """Return the region of requests: this one, that of AWS_REGION or AWS_DEFAULT_REGION, or the profile's.

    Raises:
        ConfigurationError: no region is named, or the name is malformed.
    """
    name = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or find_region()
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
