"""`make deploy`, `make secret` and `make destroy`, with real boto3 against moto and a stand-in for `sam`."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from fakes import s3_server
from infra.conftest import ROOT, Tool

STACK = "chat"
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
SAM = """#!{python}
import json, sys, uuid, boto3
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
client = boto3.client("cloudformation", region_name="eu-central-1")
if sys.argv[1] == "deploy":
    keys = json.dumps({{"COHERE_API_KEY": "", "CHAPTERVERSE_SIGNING_KEY": "generated"}})
    secrets = boto3.client("secretsmanager", region_name="eu-central-1")
    arn = secrets.create_secret(Name=str(uuid.uuid4()), SecretString=keys)["ARN"]
    client.create_stack(StackName={stack!r}, TemplateBody={template!r}.replace("ARN", arn))
else:
    client.delete_stack(StackName={stack!r})
"""


@dataclass(frozen=True)
class Desk:
    """What an operator has: a terminal, credentials, a folder for the settings."""

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

    def said(self, *arguments: str, typed: str = "", **environment: str) -> str:
        """Return the one sentence of a run that failed."""
        done = self.run(*arguments, typed=typed, **environment)
        assert done.returncode == 1, done
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    @property
    def calls(self) -> list[list[str]]:
        """What SAM was told."""
        log = self.folder / "sam.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def config(self) -> Path:
        return self.folder / "samconfig.toml"

    def client(self, service: str) -> Any:
        where = {"endpoint_url": self.environment["AWS_ENDPOINT_URL"], "region_name": "eu-central-1"}
        return boto3.client(service, aws_access_key_id="testing", aws_secret_access_key="testing-secret", **where)

    def output(self, name: str) -> str:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return next(str(o["OutputValue"]) for o in stack["Outputs"] if o["OutputKey"] == name)


@pytest.fixture
def desk(tool: Tool, tmp_path: Path) -> Iterator[Desk]:
    # The stand-in and the scripts run by the Python of the tools, which `tool` made.
    python = ROOT / ".cache" / "infra" / "lint" / "bin" / "python"
    assert tool("lint", "python", "--version").returncode == 0
    sam = tmp_path / "sam"
    names = {"python": python, "log": str(tmp_path / "sam.log"), "stack": STACK, "template": json.dumps(TEMPLATE)}
    sam.write_text(SAM.format(**names), "utf-8")
    sam.chmod(0o755)
    server = s3_server.shared()
    made = {"HOME": str(tmp_path), "SAM": str(sam), "CONFIG": str(tmp_path / "samconfig.toml"), "PATH": "/usr/bin:/bin"}
    desk = Desk(tmp_path, server.environment | {"AWS_EC2_METADATA_DISABLED": "true"} | made)
    yield desk
    desk.client("cloudformation").delete_stack(StackName=STACK)


@pytest.fixture(scope="module", autouse=True)
def package() -> Iterator[None]:
    """Something to upload: the scripts look whether it is there, and only SAM would read it."""
    file = ROOT / "dist" / "lambda.zip"
    if file.exists():
        yield
        return
    file.parent.mkdir(exist_ok=True)
    file.touch()
    yield
    file.unlink()


def test_deploy_asks_once_saves_the_answers_and_says_what_comes_next(desk: Desk) -> None:
    wrong = ANSWERS.replace("docs\n", "My Docs\ndocs\n", 1).replace(".com\n", ".com/path\nhttps://docs.example.com\n")
    done = desk.run("deploy", typed=wrong)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("That must be") == 2
    parameters = tomllib.loads(desk.config.read_text())["default"]["deploy"]["parameters"]
    assert (parameters["stack_name"], parameters["region"]) == (STACK, "eu-central-1")
    # An empty answer is left to the template's default.
    assert parameters["parameter_overrides"] == ["Site=docs", "AllowedOrigins=https://docs.example.com"]
    assert f"CHAPTERVERSE_STORE={desk.output('IndexStore')} CHAPTERVERSE_SITE=docs" in done.stdout
    assert "curl https://abc.lambda-url.eu-central-1.on.aws/v1/status" in done.stdout
    (call,) = desk.calls
    assert call[0] == "deploy"
    assert call[call.index("--config-file") + 1] == str(desk.config)


def test_what_the_saved_answers_say_is_what_sam_reads(desk: Desk, tool: Tool) -> None:
    desk.run("deploy", typed=ANSWERS)
    reads = (
        "import sys; from samcli.lib.config.samconfig import SamConfig; from pathlib import Path; f = Path(sys.argv[1])"
    )
    shows = "import json; print(json.dumps(SamConfig(f.parent, f.name).get_all(['deploy'], 'parameters')))"
    done = tool("lint", "python", "-c", f"{reads}\n{shows}", desk.config)
    found = json.loads(done.stdout)
    assert (found["stack_name"], found["resolve_s3"], found["capabilities"]) == (STACK, True, "CAPABILITY_IAM")


def test_a_second_deploy_asks_nothing(desk: Desk) -> None:
    desk.run("deploy", typed=ANSWERS)
    desk.client("cloudformation").delete_stack(StackName=STACK)
    assert desk.run("deploy").returncode == 0
    assert len(desk.calls) == 2


def test_nobody_to_ask_is_one_sentence(desk: Desk) -> None:
    assert "nobody to ask: run make deploy in a terminal first." in desk.said("deploy")
    assert not desk.config.exists()


def test_no_credentials_are_one_sentence(desk: Desk) -> None:
    said = desk.said("deploy", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert said.startswith("There are no AWS credentials: run `aws configure`")


def expired(environ: s3_server.Environ, start: Any, bucket: s3_server.Application) -> list[bytes]:
    """Answer as STS does when a session is over."""
    start("403 Forbidden", [("Content-Type", "text/xml")])
    return [b"<ErrorResponse><Error><Code>ExpiredToken</Code><Message>over</Message></Error></ErrorResponse>"]


def test_credentials_that_nobody_takes_are_one_sentence(desk: Desk) -> None:
    s3_server.shared().faults.append(expired)
    said = desk.said("deploy")
    assert said.startswith("AWS refused the credentials (ExpiredToken): sign in again")


def test_no_network_is_one_sentence(desk: Desk) -> None:
    said = desk.said("deploy", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert said.startswith("AWS could not be asked (EndpointConnectionError): check the network")


def test_an_unknown_profile_is_one_sentence(desk: Desk) -> None:
    assert "There are no AWS credentials" in desk.said("deploy", AWS_PROFILE="nobody")


def test_a_missing_sam_is_one_sentence(desk: Desk) -> None:
    said = desk.said("deploy", typed=ANSWERS, SAM="/no/such/sam")
    assert said.startswith("There is no program /no/such/sam")


def test_a_deployment_that_sam_gave_up_is_one_sentence(desk: Desk) -> None:
    assert desk.said("deploy", typed=ANSWERS, SAM="/bin/false") == "sam deploy failed: the lines above say why.\n"


def test_a_damaged_file_of_answers_is_one_sentence(desk: Desk) -> None:
    desk.config.write_text("[default.deploy.parameters]\nstack_name = 'chat'\n")
    assert "names no stack_name and region" in desk.said("deploy")


def test_a_key_is_set_and_the_others_stay(desk: Desk) -> None:
    desk.run("deploy", typed=ANSWERS)
    done = desk.run("secret", "COHERE_API_KEY", typed="key-of-cohere\n")
    assert done.returncode == 0, done.stderr
    assert "key-of-cohere" not in done.stdout + done.stderr
    held = desk.client("secretsmanager").get_secret_value(SecretId=desk.output("Secret"))["SecretString"]
    assert json.loads(held) == {"COHERE_API_KEY": "key-of-cohere", "CHAPTERVERSE_SIGNING_KEY": "generated"}


@pytest.mark.parametrize("name", ["", "cohere", "COHERE_API_KEY=x"])
def test_a_key_needs_the_name_of_a_variable(desk: Desk, name: str) -> None:
    assert "Name the variable that the key is for" in desk.said("secret", *([name] if name else []))


def test_nothing_deployed_is_one_sentence(desk: Desk) -> None:
    assert "so nothing was deployed from here." in desk.said("destroy")


def test_destroy_asks_for_the_name_and_then_removes_all(desk: Desk) -> None:
    desk.run("deploy", typed=ANSWERS)
    client, bucket = desk.client("s3"), desk.output("IndexStore").split("/")[2]
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"old", b"new"):
        client.put_object(Bucket=bucket, Key="index/docs/head.json", Body=body)
    for typed in ("", "yes\n"):
        assert desk.said("destroy", typed=typed) == "Nothing was removed.\n"
    assert len(client.list_object_versions(Bucket=bucket)["Versions"]) == 2
    assert [call[0] for call in desk.calls] == ["deploy"]

    done = desk.run("destroy", typed=f"{STACK}\n")
    assert done.returncode == 0, done.stderr
    assert bucket not in {found["Name"] for found in client.list_buckets()["Buckets"]}
    assert desk.calls[-1][:5] == ["delete", "--no-prompts", "--stack-name", STACK, "--region"]
    assert "There is no stack chat in eu-central-1" in desk.said("secret", "COHERE_API_KEY")
