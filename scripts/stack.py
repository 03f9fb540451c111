"""The stack on AWS:  stack.py deploy|destroy|secret [NAME]

Runs in the environment of `infra/lint.txt`, which brings SAM and boto3, so that an operator needs credentials alone.
SAM=PROGRAM takes another SAM, CONFIG=FILE another stack than the one of `infra/samconfig.toml`.
"""

from __future__ import annotations

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
    # Where nothing changed there is nothing to do, and that is no failure.
    _sam("deploy", "--template-file", str(TEMPLATE), "--no-fail-on-empty-changeset")
    outputs = {"Publisher": "none: set GitHubRepository and deploy again"} | _outputs(session, config)
    print(NEXT.format(**outputs, region=config.region, config=samconfig.PATH))


def destroy() -> None:
    config = _deployed()
    session = _session(config)
    store = _outputs(session, config).get("IndexStore", "")
    print(
        f"This removes the stack {config.stack} in {config.region}: the function, its counters, its keys and {store}."
    )
    try:
        answer = input("Type the name of the stack to remove it: ").strip()
    except EOFError:
        answer = ""
    if answer != config.stack:
        sys.exit("Nothing was removed.")
    if store.startswith("s3://"):
        # A bucket that holds something is not deleted with its stack.
        session.resource("s3").Bucket(store.removeprefix("s3://").partition("/")[0]).object_versions.delete()
    profile = ("--profile", config.profile) if config.profile else ()
    _sam("delete", "--no-prompts", "--stack-name", config.stack, "--region", config.region, *profile)
    print(f"Removed. {samconfig.PATH} is still there for another time.")


def secret(name: str) -> None:
    if not re.fullmatch("[A-Z][A-Z0-9_]{2,60}", name):
        sys.exit("Name the variable that the key is for, such as make secret NAME=COHERE_API_KEY.")
    config = _deployed()
    session = _session(config)
    arn = _outputs(session, config)["Secret"]
    if ":ssm:" in arn:
        sys.exit("The keys are in a parameter of your own: change it in Parameter Store.")
    client = session.client("secretsmanager", region_name=config.region)
    value = getpass.getpass(f"{name} (not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    held = json.loads(client.get_secret_value(SecretId=arn)["SecretString"])
    client.put_secret_value(SecretId=arn, SecretString=json.dumps(held | {name: value.strip()}))
    print(f"{name} is set; the function reads it within a quarter of an hour.")


def _deployed() -> SamConfig:
    return samconfig.read() or sys.exit(f"There is no {samconfig.PATH}, so nothing was deployed from here.")


def _session(config: SamConfig) -> Any:
    """Return a session of boto3 whose credentials AWS takes, or exit with one sentence."""
    import boto3
    from botocore import exceptions

    try:
        session = boto3.session.Session(profile_name=config.profile or None, region_name=config.region or None)
        session.client("sts", region_name=session.region_name or "us-east-1").get_caller_identity()
    except exceptions.ClientError as refused:
        code = refused.response["Error"]["Code"]
        sys.exit(f"AWS refused the credentials ({code}): sign in again, or set others, and run it once more.")
    except (exceptions.NoCredentialsError, exceptions.ProfileNotFound, exceptions.PartialCredentialsError):
        sys.exit(
            "There are no AWS credentials: run `aws configure` or `aws sso login`, or set AWS_PROFILE, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    except exceptions.BotoCoreError as failure:
        sys.exit(f"AWS could not be asked ({type(failure).__name__}): check the network and the region.")
    return session


def _outputs(session: Any, config: SamConfig) -> dict[str, str]:
    from botocore.exceptions import ClientError

    try:
        client = session.client("cloudformation", region_name=config.region)
        (stack,) = client.describe_stacks(StackName=config.stack)["Stacks"]
    except ClientError:
        sys.exit(f"There is no stack {config.stack} in {config.region}: nothing was deployed, or it is gone.")
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


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
    """Go on in the environment that has SAM and boto3."""
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
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
