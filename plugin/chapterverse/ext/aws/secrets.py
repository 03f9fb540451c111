"""Reads secrets from Secrets Manager or Parameter Store: a JSON object of variable names and values.

`CHAPTERVERSE_SECRETS_ARN` names them: ARNs of secrets or parameters, or plain names of secrets, comma-separated. A
value of an earlier secret takes precedence over a later one's, and a variable that is set over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws import AwsFault, AwsService
from chapterverse.settings import TOOL_SECRETS, Settings, secret_settings
from chapterverse.text.json_text import parse_json

#: Seconds for one secret with its tries. They are few, because a reader may be waiting.
_CALL_SECONDS = 4.0

_ARN = re.compile(
    r"arn:[\w-]+:(?:(secretsmanager):([\w-]+):\d+:secret:|(ssm):([\w-]+):\d+:parameter/)([\w/+=.@:-]{1,1024})",
    re.ASCII,
)
_NAME = re.compile(r"[\w/+=.@-]{1,512}", re.ASCII)

_ABSENT = "does not exist in its region: check the ARN"
_DENIED = "may not be read with these credentials: allow secretsmanager:GetSecretValue, or ssm:GetParameter, on it"
_LOCKED = "can't be decrypted with these credentials: allow kms:Decrypt on its key"
#: Messages by the services' codes of errors.
_REASONS = {
    "ResourceNotFoundException": _ABSENT,
    "ParameterNotFound": _ABSENT,
    "AccessDeniedException": _DENIED,
    "DecryptionFailure": _LOCKED,
    "InvalidKeyId": _LOCKED,
}


@dataclass(frozen=True, slots=True)
class _SecretLocation:
    """One secret or parameter.

    Attributes:
        region: the region; empty for the environment's.
        name: the name in its service.
        label: the name in messages. A plain name is not shown, because it may be a secret in the wrong variable.
    """

    service: str
    region: str
    name: str = field(repr=False)
    label: str

    def read(self) -> str | AwsFault:
        """Return the text, "" if there is none, or the error of the service."""
        service = AwsService(self.service, region=self.region, seconds=_CALL_SECONDS)
        try:
            if self.service == "ssm":
                reply = service.call("AmazonSSM.GetParameter", {"Name": self.name, "WithDecryption": True})
                text = _object(reply.get("Parameter")).get("Value")
            else:
                text = service.call("secretsmanager.GetSecretValue", {"SecretId": self.name}).get("SecretString")
        except AwsFault as fault:
            return fault
        return text if isinstance(text, str) else ""


def resolve_secrets(settings: Settings, warn: Callable[[str], object]) -> Settings:
    """Return settings with the secrets that they name.

    Args:
        warn: takes a sentence about each secret with values that are ignored.

    Raises:
        ConfigurationError: one of them is missing, denied, out of reach, or no JSON object of strings.
    """
    values: dict[str, str] = {}
    for location in _locations(settings.secrets_arn):
        fields = _read(location)
        known = secret_settings(fields)
        chosen_fields = {
            name: value for name, value in fields.items() if name in known or name.startswith(TOOL_SECRETS)
        }
        values = {**chosen_fields, **values}
        if extra := len(fields) - len(chosen_fields):
            warn(
                f"{location.label} holds {extra} {'name' if extra == 1 else 'names'} besides those of secrets, which "
                f"{'is' if extra == 1 else 'are'} left out: it may hold {', '.join(sorted(known))}."
            )
    return settings.with_secrets(values)


def _locations(setting: str) -> list[_SecretLocation]:
    names = [name.strip() for name in setting.split(",") if name.strip()]
    return [_location(name, number) for number, name in enumerate(names, 1)]


def _location(name: str, number: int) -> _SecretLocation:
    if arn := _ARN.fullmatch(name):
        service, region = (arn[1], arn[2]) if arn[1] else (arn[3], arn[4])
        return _SecretLocation(service, region, name, f"The secret {arn[5]} of CHAPTERVERSE_SECRETS_ARN")
    if _NAME.fullmatch(name):
        return _SecretLocation("secretsmanager", "", name, f"Secret number {number} of CHAPTERVERSE_SECRETS_ARN")
    raise ConfigurationError(
        "CHAPTERVERSE_SECRETS_ARN names no secret: set it to the ARN of a secret in Secrets Manager, or of a parameter "
        "in Parameter Store."
    )


def _read(place: _SecretLocation) -> dict[str, str]:
    text = place.read()
    if isinstance(text, AwsFault):
        reason = _REASONS.get(text.code)
        raise ConfigurationError(f"{place.label} {reason}." if reason else f"{place.label}: {text}")
    fields = _parse(text)
    if fields is None:
        raise ConfigurationError(
            f'{place.label} is no JSON object of strings: store it as {{"COHERE_API_KEY": "…"}}, names of variables '
            "and their values."
        )
    return fields


def _parse(text: str) -> dict[str, str] | None:
    try:
        fields = parse_json(text)
    except ValueError:
        # Not raised, because an error of ours would refer to this one, whose message quotes the secret.
        return None
    is_valid = isinstance(fields, dict) and all(isinstance(value, str) for value in fields.values())
    return fields if is_valid else None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
