"""AWS services over plain HTTPS, signed with the standard library. No SDK is loaded on the query path.

A boto3 client costs 150 ms and 30 MB where it is made; what the query path asks of S3, DynamoDB, Secrets Manager and
Parameter Store are a few requests. Credentials and regions are those of `AWS_*`; boto3 is asked only where those name
a profile or a role that it alone can resolve.
"""

from __future__ import annotations

from chapterverse.net.aws.service import AwsFault, AwsService

__all__ = ["AwsFault", "AwsService"]
