"""Manages the stack on AWS:  stack.py deploy|destroy|secret [NAME]

Runs in the environment of `infra/lint.txt`, which has SAM and boto3, so that operators need only credentials.
SAM=PROGRAM uses another SAM, CONFIG=FILE another stack than `infra/samconfig.toml`.
"""

from __future__ import annotations

import contextlib
import difflib
import getpass
import json
import os
import re
import subprocess
import sys
from typing import Any, NoReturn

import environment
import samconfig
import tools
from samconfig import SamConfig

TEMPLATE = environment.ROOT / "infra" / "template.yaml"
PACKAGE = environment.ROOT / "dist" / "lambda.zip"

#: Status after a failed first deployment; CloudFormation accepts no update of such a stack.
ROLLED_BACK = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")

NEXT = """
The chat answers at {Endpoint}

1. Publish the index, and tell the site where the chat is:
     export CHAPTERVERSE_ENDPOINT={Endpoint}
     export CHAPTERVERSE_STORE={IndexStore} CHAPTERVERSE_SITE={IndexSite} CHAPTERVERSE_PUBLISH=1
     mkdocs build
2. Look whether it is there:
     curl {Endpoint}/v1/status
3. With a model or a Qdrant server, set its key and name it in {config}:
     make secret NAME=COHERE_API_KEY

For the workflows in infra/workflows, as variables of the environment at GitHub:
     AWS_REGION={region} ENDPOINT={Endpoint} INDEX_STORE={IndexStore} INDEX_SITE={IndexSite} FUNCTION={FunctionName}
     PUBLISHER={Publisher}"""


def deploy() -> None:
    session = _session(samconfig.read() or SamConfig())
    if not PACKAGE.exists():
        sys.exit(f"There is no {PACKAGE.name} in dist: run make deploy, which packs it first.")
    config = samconfig.read() or samconfig.write(session.region_name or "eu-central-1")
    overrides = samconfig.overrides(TEMPLATE)
    if (_find(session, config) or {}).get("StackStatus") in ROLLED_BACK:
        _unfinished(config, rolled_back=True)
    # Without a terminal, as in CI, the commit of the file counts as confirmation.
    confirm = () if sys.stdin.isatty() else ("--no-confirm-changeset",)
    before = _pending_changes(session, config)
    # An empty change set is no failure.
    how = ("--template-file", str(TEMPLATE), "--no-fail-on-empty-changeset", *confirm)
    _sam("deploy", *how, "--parameter-overrides", *overrides)
    outputs = {"Publisher": "none: set GitHubRepository and deploy again"} | _outputs(session, config)
    # If its question is answered with no, SAM succeeds and leaves the change set pending.
    if "Endpoint" not in outputs or _pending_changes(session, config) - before:
        sys.exit("Nothing was deployed: run make deploy again, and answer its question with y.")
    print(NEXT.format(**outputs, region=config.region, config=samconfig.PATH))


def destroy() -> None:
    config = _require_config()
    session = _session(config)
    outputs = _outputs(session, config)
    store = outputs.get("IndexStore", "")
    # A Qdrant server does not belong to the stack, and stays.
    index = f", its keys and {store}" if store.startswith("s3://") else " and its keys"
    what = f"the function, its counters{index}" if outputs else "what its deployment made before it ended"
    print(f"This removes the stack {config.stack} in {config.region}: {what}.")
    try:
        answer = input("Type the name of the stack to remove it: ").strip()
    except EOFError:
        answer = ""
    if answer != config.stack:
        sys.exit("Nothing was removed.")
    if store.startswith("s3://"):
        _empty(session, store.removeprefix("s3://").partition("/")[0])
    profile = ("--profile", config.profile) if config.profile else ()
    _sam("delete", "--no-prompts", "--stack-name", config.stack, "--region", config.region, *profile)
    print(f"Removed. {samconfig.PATH} is still there for another time.")


def secret(name: str) -> None:
    _check(name)
    config = _require_config()
    session = _session(config)
    arn = _outputs(session, config).get("Secret")
    if not arn:
        stack = _find(session, config) or {}
        _unfinished(config, rolled_back=stack.get("StackStatus") in ROLLED_BACK)
    if ":ssm:" in arn:
        sys.exit("The keys are in a parameter of your own: change it in Parameter Store.")
    client = session.client("secretsmanager", region_name=config.region)
    keys = _read_keys(client, arn)
    value = (getpass.getpass(f"{name} (not shown): ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not value:
        sys.exit(f"No key was given, so {name} stays as it is.")
    client.put_secret_value(SecretId=arn, SecretString=json.dumps(keys | {name: value}))
    print(f"{name} is set; the function reads it within a quarter of an hour.")


def _check(name: str) -> None:
    """Exit with one sentence unless the function reads a secret of that name; it would silently ignore another one."""
    sys.path.insert(0, str(environment.ROOT / "plugin"))
    from chapterverse.settings import secret_settings

    known = sorted(secret_settings([name]))
    # An invalid name may be a key, so it is not repeated.
    if not re.fullmatch("[A-Z][A-Z0-9_]{2,60}", name):
        sys.exit("Name the variable that the key is for, such as make secret NAME=COHERE_API_KEY.")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        rest = f"did you mean {near[0]}?" if near else f"it reads {', '.join(known)}."
        sys.exit(f"{name} is no key that the function reads: {rest}")


def _read_keys(client: Any, arn: str) -> dict[str, Any]:
    """Return the secret's names and keys, or exit with one sentence."""
    gone = (client.exceptions.ResourceNotFoundException, client.exceptions.InvalidRequestException)
    try:
        keys = json.loads(client.get_secret_value(SecretId=arn)["SecretString"])
    except gone:
        sys.exit("The stack's secret was deleted: restore it in Secrets Manager, or name one of your own in SecretArn.")
    except (KeyError, ValueError):
        keys = None
    if not isinstance(keys, dict):
        sys.exit("The stack's secret holds no JSON object of names and keys: mend it in Secrets Manager.")
    return keys


def _empty(session: Any, bucket: str) -> None:
    """Delete all objects of a bucket, because a stack can't delete a bucket with content."""
    # The bucket may have been deleted by hand.
    with contextlib.suppress(session.client("s3").exceptions.NoSuchBucket):
        session.resource("s3").Bucket(bucket).object_versions.delete()


def _unfinished(config: SamConfig, rolled_back: bool) -> NoReturn:
    stack = config.stack
    if rolled_back:
        sys.exit(f"The first deployment of the stack {stack} was rolled back: run make destroy, then make deploy.")
    sys.exit(f"The first deployment of the stack {stack} was not finished: run make deploy.")


def _require_config() -> SamConfig:
    return samconfig.read() or sys.exit(f"There is no {samconfig.PATH}, so nothing was deployed from here.")


def _session(config: SamConfig) -> Any:
    """Return a boto3 session with valid credentials, or exit with one sentence."""
    import boto3
    from botocore import exceptions

    try:
        session = boto3.session.Session(profile_name=config.profile or None, region_name=config.region or None)
        session.client("sts", region_name=session.region_name or "us-east-1").get_caller_identity()
    except exceptions.ClientError as error:
        code = error.response["Error"]["Code"]
        sys.exit(f"AWS refused the credentials ({code}): sign in again, or set others, and run it once more.")
    except exceptions.ProfileNotFound:
        profile = config.profile or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
        sys.exit(f"There is no profile {profile} in the settings of AWS: `aws configure list-profiles` names those.")
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError):
        sys.exit(
            "There are no AWS credentials: run `aws configure` or `aws sso login`, or set AWS_PROFILE, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    except exceptions.BotoCoreError as fault:
        sys.exit(f"AWS could not be asked ({type(fault).__name__}): check the network and the region.")
    return session


def _outputs(session: Any, config: SamConfig) -> dict[str, str]:
    stack = _find(session, config)
    if stack is None:
        sys.exit(f"There is no stack {config.stack} in {config.region}: nothing was deployed, or it is gone.")
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _find(session: Any, config: SamConfig) -> dict[str, Any] | None:
    from botocore.exceptions import ClientError

    client = session.client("cloudformation", region_name=config.region)
    try:
        (stack,) = client.describe_stacks(StackName=config.stack)["Stacks"]
    except ClientError as refused:
        # CloudFormation's code for a missing stack.
        if refused.response["Error"]["Code"] != "ValidationError":
            raise
        return None
    result: dict[str, Any] = stack
    return result


def _pending_changes(session: Any, config: SamConfig) -> set[str]:
    """Return the stack's change sets that were not executed."""
    from botocore.exceptions import ClientError

    pages = session.client("cloudformation", region_name=config.region).get_paginator("list_change_sets")
    try:
        changes = [change for page in pages.paginate(StackName=config.stack) for change in page["Summaries"]]
    except ClientError as refused:
        # There is no stack yet, or the deploying role may not list change sets.
        if refused.response["Error"]["Code"] not in ("ValidationError", "AccessDenied"):
            raise
        return set()
    return {change["ChangeSetId"] for change in changes if change.get("ExecutionStatus") == "AVAILABLE"}


def _sam(command: str, *arguments: str) -> None:
    program = os.environ.get("SAM") or tools.programs("lint") / "sam"
    whole = [program, command, *arguments, "--config-file", samconfig.PATH]
    try:
        done = subprocess.run(whole, env={"SAM_CLI_TELEMETRY": "0", **os.environ})
    except OSError:
        sys.exit(f"There is no program {program}: leave SAM unset to take the one of infra/lint.txt.")
    if done.returncode:
        sys.exit(f"sam {command} failed: the lines above say why.")


def _enter() -> None:
    """Restart in the environment that has SAM and boto3."""
    home = tools.HOME / "lint"
    if sys.prefix != str(home):
        python = str(tools.programs("lint") / "python")
        os.execv(python, [python, *sys.argv])


def main(arguments: list[str]) -> None:
    match arguments:
        case ["deploy"]:
            deploy()
        case ["destroy"]:
            destroy()
        case ["secret", *name]:
            secret(" ".join(name))
        case _:
            _usage()


def _usage() -> NoReturn:
    sys.exit("Use stack.py deploy|destroy|secret NAME.")


if __name__ == "__main__":
    _enter()
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
    except (BotoCoreError, ClientError) as refused:
        sys.exit(f"AWS did not do it: {refused}")
