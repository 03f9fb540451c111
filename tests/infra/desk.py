"""An operator's setting: a terminal, credentials, a folder for the configuration, and a stand-in for `sam`."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from moto.cloudformation.models import cloudformation_backends

from fakes import s3_server
from infra.conftest import ROOT, Tool

STACK = "chat"
#: moto's own.
ACCOUNT = "123456789012"
ANSWERS = f"{STACK}\neu-central-1\ndocs\nhttps://docs.example.com\n\n"
#: What the stand-in for SAM makes of the stack: as much of the template as the scripts look at.
TEMPLATE = {
    "Resources": {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"VersioningConfiguration": {"Status": "Enabled"}}},
    },
    "Outputs": {
        "Endpoint": {"Value": "https://abc.lambda-url.eu-central-1.on.aws"},
        "IndexStore": {"Value": {"Fn::Sub": "s3://${Bucket}/index"}},
        "IndexSite": {"Value": "docs"},
        "Secret": {"Value": "ARN"},
        "FunctionName": {"Value": "chat-Function-1"},
        "LogGroup": {"Value": "/chapterverse/chat"},
    },
}
#: And of the secret, as the real template generates it.
KEYS = json.dumps({"COHERE_API_KEY": "", "CHAPTERVERSE_SIGNING_KEY": "generated"})
SAM = """#!{python}
import json, os, sys, uuid, boto3
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
client = boto3.client("cloudformation", region_name="eu-central-1")
if sys.argv[1] == "deploy":
    secrets = boto3.client("secretsmanager", region_name="eu-central-1")
    arn = secrets.create_secret(Name=str(uuid.uuid4()), SecretString={keys!r})["ARN"]
    made = {{"StackName": {stack!r}, "TemplateBody": {template!r}.replace("ARN", arn)}}
    held = [stack for stack in client.describe_stacks()["Stacks"] if stack["StackName"] == {stack!r}]
    if "DECLINED" in os.environ:
        # As the real one does when its question is answered by no: what it would have done waits, and it ends well.
        kind = "UPDATE" if held else "CREATE"
        client.create_change_set(ChangeSetName="sam" + uuid.uuid4().hex, ChangeSetType=kind, **made)
    elif not held:
        client.create_stack(**made)
else:
    client.delete_stack(StackName={stack!r})
"""


@dataclass(frozen=True)
class Desk:
    """An operator's setting: a terminal, credentials, a folder for the configuration."""

    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, ROOT / "scripts" / "stack.py", *arguments],
            input=typed,
            capture_output=True,
            text=True,
            env=self.environment | environment,
        )

    def typed_at(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run at a terminal, at which nothing is typed."""
        ours, theirs = os.openpty()
        try:
            command: list[str | Path] = [sys.executable, ROOT / "scripts" / "stack.py", *arguments]
            return subprocess.run(command, stdin=theirs, capture_output=True, env=self.environment)
        finally:
            os.close(ours)
            os.close(theirs)

    def said(self, *arguments: str, typed: str = "", **environment: str) -> str:
        """Return the one sentence of a run that failed."""
        done = self.run(*arguments, typed=typed, **environment)
        assert done.returncode == 1, done
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    @property
    def calls(self) -> list[list[str]]:
        """The calls of SAM."""
        log = self.folder / "sam.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def config(self) -> Path:
        return self.folder / "samconfig.toml"

    def configure(self, *overrides: str) -> None:
        """Save answers as if they had been given."""
        lines = ("version = 0.1", "[default.deploy.parameters]", f'stack_name = "{STACK}"', 'region = "eu-central-1"')
        shown = f"parameter_overrides = {json.dumps(overrides)}"
        self.config.write_text("\n".join((*lines, "confirm_changeset = true", shown, "")), "utf-8")

    def deployed(self) -> None:
        """Have deployed, without the second or two that it takes."""
        self.configure()
        arn = self.client("secretsmanager").create_secret(Name=uuid.uuid4().hex, SecretString=KEYS)["ARN"]
        template = json.dumps(TEMPLATE).replace("ARN", arn)
        self.client("cloudformation").create_stack(StackName=STACK, TemplateBody=template)

    def passed(self, tool: Tool) -> dict[str, str]:
        """Return the parameters of the last deployment as the real SAM reads them."""
        call = self.calls[-1]
        reads = "import json, sys; from samcli.cli.types import CfnParameterOverridesType as Type"
        shows = "print(json.dumps(Type().convert(tuple(sys.argv[1:]), None, None)))"
        options = call[call.index("--parameter-overrides") + 1 : call.index("--config-file")]
        found: dict[str, str] = json.loads(tool("lint", "python", "-c", f"{reads}; {shows}", *options).stdout)
        return found

    @property
    def stack(self) -> Any:
        """What moto holds."""
        (stack,) = (s for s in cloudformation_backends[ACCOUNT]["eu-central-1"].stacks.values() if s.name == STACK)
        return stack

    def becomes(self, status: str) -> None:
        """Let moto say that the stack is in this status, with nothing to show."""
        stack = self.stack
        stack.status = status
        stack.template_dict["Outputs"] = {}
        stack.output_map = stack._create_output_map()

    def client(self, service: str) -> Any:
        where = {"endpoint_url": self.environment["AWS_ENDPOINT_URL"], "region_name": "eu-central-1"}
        return boto3.client(service, aws_access_key_id="testing", aws_secret_access_key="testing-secret", **where)

    def output(self, name: str) -> str:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return next(str(o["OutputValue"]) for o in stack["Outputs"] if o["OutputKey"] == name)


@contextmanager
def made(folder: Path, python: Path) -> Iterator[Desk]:
    """Set a desk up in a folder, whose stand-in for SAM runs by this Python; its stack is removed at the end."""
    sam = folder / "sam"
    names = {"python": python, "log": str(folder / "sam.log"), "stack": STACK, "template": json.dumps(TEMPLATE)}
    names |= {"keys": KEYS}
    sam.write_text(SAM.format(**names), "utf-8")
    sam.chmod(0o755)
    own = {"HOME": str(folder), "SAM": str(sam), "CONFIG": str(folder / "samconfig.toml"), "PATH": "/usr/bin:/bin"}
    desk = Desk(folder, s3_server.shared().environment | {"AWS_EC2_METADATA_DISABLED": "true"} | own)
    with _uploaded():
        yield desk
    desk.client("cloudformation").delete_stack(StackName=STACK)


@contextmanager
def _uploaded() -> Iterator[None]:
    """Have something to upload: the scripts look whether it is there, and only SAM would read it."""
    file = ROOT / "dist" / "lambda.zip"
    file.parent.mkdir(exist_ok=True)
    # Another process may be at a desk too: who leaves last takes it away, and nobody comes meanwhile.
    with (ROOT / ".cache" / "desks.lock").open("w") as desks:
        fcntl.flock(desks, fcntl.LOCK_SH)
        if not file.exists():
            file.touch()
        yield
        with suppress(BlockingIOError):
            fcntl.flock(desks, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not file.stat().st_size:
                file.unlink()
