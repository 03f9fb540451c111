"""`make deploy`, with the real boto3 against moto and a stand-in for `sam`."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml

from fakes import s3_server
from fakes.moto_server import Application, Environ
from infra.conftest import ROOT, Tool
from infra.desk import ANSWERS, STACK, Desk


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
    assert desk.run("deploy", typed=ANSWERS).returncode == 0
    reads = (
        "import sys; from samcli.lib.config.samconfig import SamConfig; from pathlib import Path; f = Path(sys.argv[1])"
    )
    shows = "import json; print(json.dumps(SamConfig(f.parent, f.name).get_all(['deploy'], 'parameters')))"
    done = tool("lint", "python", "-c", f"{reads}\n{shows}", desk.config)
    found = json.loads(done.stdout)
    assert (found["stack_name"], found["resolve_s3"], found["capabilities"]) == (STACK, True, "CAPABILITY_IAM")


def test_a_second_deploy_asks_nothing(desk: Desk) -> None:
    assert desk.run("deploy", typed=ANSWERS).returncode == 0
    desk.client("cloudformation").delete_stack(StackName=STACK)
    assert desk.run("deploy").returncode == 0
    assert len(desk.calls) == 2


def test_only_a_terminal_is_asked_whether_to_go_on(desk: Desk) -> None:
    desk.configure()
    assert desk.run("deploy").returncode == 0
    assert "--no-confirm-changeset" in desk.calls[-1]
    assert desk.typed_at("deploy").returncode == 0
    assert "--no-confirm-changeset" not in desk.calls[-1]


def test_no_is_said_to_have_done_nothing(desk: Desk) -> None:
    desk.configure()
    nothing = "Nothing was deployed: run make deploy again, and answer its question with y.\n"
    assert desk.said("deploy", DECLINED="1") == nothing
    desk.client("cloudformation").delete_stack(StackName=STACK)
    assert "The chat answers at" in desk.run("deploy").stdout
    assert desk.said("deploy", DECLINED="1") == nothing
    # What still waits from then is no matter of the next run, which changes nothing.
    assert "The chat answers at" in desk.run("deploy").stdout


def test_every_parameter_is_passed_so_that_no_last_value_stays(desk: Desk, tool: Tool) -> None:
    deployed = ROOT / "infra" / "template.yaml"
    parameters = yaml.load(deployed.read_text("utf-8"), Loader=yaml.BaseLoader)["Parameters"]
    defaults = {name: says["Default"] for name, says in parameters.items()}
    said = {"Generator": "cohere", "AllowedOrigins": "https://a.example, https://b.example", "Prices": 'a="1"'}
    desk.configure(*(f"{name}={value}" for name, value in said.items()), 'Rates="off"')
    assert desk.run("deploy").returncode == 0
    assert desk.passed(tool) == defaults | said | {"Rates": "off"}
    desk.configure()
    assert desk.run("deploy").returncode == 0
    assert desk.passed(tool) == defaults


def test_a_misspelt_parameter_is_refused(desk: Desk) -> None:
    desk.configure("Site=docs", "DailyBudget=7")
    said = desk.said("deploy")
    assert said == f"{desk.config} sets DailyBudget, which is no parameter: did you mean DailyBudgetUsd?\n"
    desk.configure("Colour=red")
    assert "sets Colour, which is no parameter: see Parameters in infra/template.yaml." in desk.said("deploy")
    assert desk.calls == []


@pytest.mark.parametrize("line", ["Site", "Site=docs Rates=off", "Site docs"])
def test_a_line_that_sam_would_read_otherwise_is_refused(desk: Desk, line: str) -> None:
    desk.configure(line)
    assert 'must have parameter_overrides as a list of "Name=value"' in desk.said("deploy")


def test_a_deployment_that_was_rolled_back_says_what_to_do(desk: Desk) -> None:
    desk.deployed()
    desk.becomes("ROLLBACK_COMPLETE")
    cure = "The first deployment of the stack chat was rolled back: run make destroy, then make deploy.\n"
    assert desk.said("deploy") == cure
    assert desk.said("secret", "COHERE_API_KEY", typed="key\n") == cure
    desk.becomes("REVIEW_IN_PROGRESS")
    begun = "The first deployment of the stack chat was not finished: run make deploy.\n"
    assert desk.said("secret", "COHERE_API_KEY", typed="key\n") == begun
    done = desk.run("destroy", typed=f"{STACK}\n")
    assert done.returncode == 0, done.stderr
    assert "eu-central-1: what its deployment made before it ended.\n" in done.stdout


def test_what_aws_refuses_is_one_sentence_and_no_missing_stack(desk: Desk) -> None:
    desk.deployed()
    s3_server.shared().faults.extend([s3_server.well, denied])
    assert desk.said("destroy").startswith("AWS did not do it: An error occurred (AccessDenied) when calling")


def denied(environ: Environ, start: Any, bucket: Application) -> list[bytes]:
    """Answer as CloudFormation does to a role without the right."""
    start("403 Forbidden", [("Content-Type", "text/xml")])
    return [b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"]


def test_a_folder_that_is_missing_is_one_sentence_before_the_questions(desk: Desk) -> None:
    missing = desk.folder / "missing" / "preview.toml"
    done = desk.run("deploy", typed=ANSWERS, CONFIG=str(missing))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"There is no folder {missing.parent} for preview.toml: make it")
    assert "can't be read (Is a directory)" in desk.said("deploy", CONFIG=str(desk.folder))


def test_nobody_to_ask_is_one_sentence(desk: Desk) -> None:
    assert "nobody to ask: run make deploy in a terminal first." in desk.said("deploy")
    assert not desk.config.exists()


def test_no_credentials_are_one_sentence(desk: Desk) -> None:
    said = desk.said("deploy", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert said.startswith("There are no AWS credentials: run `aws configure`")


def expired(environ: Environ, start: Any, bucket: Application) -> list[bytes]:
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
    assert desk.said("deploy", AWS_PROFILE="nobody").startswith("There is no profile nobody in the settings of AWS")


def test_a_missing_sam_is_one_sentence(desk: Desk) -> None:
    said = desk.said("deploy", typed=ANSWERS, SAM="/no/such/sam")
    assert said.startswith("There is no program /no/such/sam")


def test_a_deployment_that_sam_gave_up_is_one_sentence(desk: Desk) -> None:
    assert desk.said("deploy", typed=ANSWERS, SAM="/bin/false") == "sam deploy failed: the lines above say why.\n"


def test_a_damaged_file_of_answers_is_one_sentence(desk: Desk) -> None:
    desk.config.write_text("[default.deploy.parameters]\nstack_name = 'chat'\n")
    assert "names no stack_name and region" in desk.said("deploy")
