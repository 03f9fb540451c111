"""AWS services over plain HTTPS, signed with the standard library. No SDK is loaded on the query path.

To make a boto3 client costs 150 ms and 30 MB, and the query path needs only a few requests of S3, DynamoDB, Secrets
Manager and Parameter Store. Credentials and regions come from `AWS_*`. Only a profile or a role is resolved by
botocore.
"""

from __future__ import annotations

from chapterverse.ext.aws.service import AwsFault, AwsService

__all__ = ["AwsFault", "AwsService"]
