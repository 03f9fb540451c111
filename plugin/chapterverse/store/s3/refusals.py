"""What S3 and boto3 say when they refuse, in one sentence each: what is wrong and what to do.

Nothing of a request or of an answer is repeated but the bucket's name and S3's own short code: an address may hold a
password, and an answer may hold anything.
"""

from __future__ import annotations

import re
from typing import Any

from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexCorrupt, IndexFault


class Missing(IndexFault):
    """There is no such object."""


class Unchanged(IndexFault):
    """The object is still what the caller has."""


class Refused(IndexFault):
    """The condition of a write does not hold."""


class Conflict(Refused):
    """Another write to the same object is on its way; whether the condition holds is not known yet."""


_ANSWERS: dict[str, type[IndexFault]] = {
    "NoSuchKey": Missing, "404": Missing, "InvalidRange": Missing,
    "304": Unchanged, "NotModified": Unchanged,
    "PreconditionFailed": Refused, "412": Refused,
    "ConditionalRequestConflict": Conflict, "OperationAborted": Conflict, "409": Conflict,
}  # fmt: skip
_NO_BUCKET = {"NoSuchBucket", "InvalidBucketName"}
_BAD_KEY = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
_DENIED = {"AccessDenied", "AllAccessDisabled", "AccountProblem", "Forbidden", "403"}
_BUSY = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException",
         "TooManyRequests", "RequestLimitExceeded", "429", "500", "502", "503", "504"}  # fmt: skip
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
_LACKING = {"NotImplemented", "501"}
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")


def explained(error: Exception, bucket: str) -> ChapterVerseError | None:
    """Return what an exception of boto3 means; None for what is none of its."""
    from botocore import exceptions as boto

    if isinstance(error, boto.ClientError):
        return _answered(str(error.response.get("Error", {}).get("Code", "")), bucket)
    if isinstance(error, _credential_errors()):
        return ConfigurationError(
            f"There are no AWS credentials for s3://{bucket}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or AWS_PROFILE."
        )
    if isinstance(error, (boto.NoRegionError, boto.InvalidRegionError)):
        return ConfigurationError(f"The region of s3://{bucket} is not known: set AWS_DEFAULT_REGION.")
    if isinstance(error, boto.FlexibleChecksumError):
        return IndexCorrupt(f"What s3://{bucket} sent is damaged: build the index again.")
    # All that happens between the two machines, an answer that breaks off included.
    if isinstance(error, (boto.HTTPClientError, boto.ConnectionError, boto.IncompleteReadError)):
        return IndexFault(
            f"s3://{bucket} can't be reached ({type(error).__name__}): check the network, AWS_ENDPOINT_URL and "
            "AWS_DEFAULT_REGION, then run again."
        )
    if isinstance(error, boto.BotoCoreError):
        return ConfigurationError(
            f"boto3 can't use its configuration for s3://{bucket} ({type(error).__name__}): check the variables AWS_* "
            "and the file they name."
        )
    return None


def _answered(code: str, bucket: str) -> ChapterVerseError:
    if code in _ANSWERS:
        return _ANSWERS[code](f"s3://{bucket} answered {code}: run it again.")
    if code in _NO_BUCKET:
        return ConfigurationError(f"There is no bucket {bucket!r}: create it, or correct the address of the store.")
    if code in _BAD_KEY:
        return ConfigurationError(f"S3 does not accept the AWS credentials for s3://{bucket} ({code}): renew them.")
    if code in _DENIED:
        return ConfigurationError(
            f"S3 denies access to s3://{bucket}: allow s3:ListBucket and s3:GetObject to read, and s3:PutObject and "
            "s3:DeleteObject to publish."
        )
    if code in _BUSY:
        return IndexFault(f"s3://{bucket} is too busy to answer ({code}), also after retries: run it again later.")
    if code in _ELSEWHERE:
        return ConfigurationError(f"s3://{bucket} is in another region: set AWS_DEFAULT_REGION to its own.")
    if code == "RequestTimeTooSkewed":
        return IndexFault("S3 refuses requests by a clock that is wrong by minutes: set the clock of this machine.")
    if code in _LACKING:
        return unconditional(bucket)
    said = code if _CODE.fullmatch(code) else "an unknown code"
    return IndexFault(f"s3://{bucket} refused a request ({said}): see the error codes of S3.")


def unconditional(bucket: str) -> ConfigurationError:
    """Return the error of a service that writes whatever the condition says."""
    return ConfigurationError(
        f"The service of s3://{bucket} has no conditional writes (If-Match, If-None-Match), without which two builds "
        "could break each other's index: use Amazon S3 or a service that has them."
    )


def _credential_errors() -> tuple[type[Any], ...]:
    from botocore import exceptions as boto

    return (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.ProfileNotFound,
        boto.TokenRetrievalError,
        boto.SSOError,
        boto.MetadataRetrievalError,
    )
