"""The transformed template: valid, with few rights, and with the names that the service reads."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chapterverse.manifests import SETTINGS
from infra.conftest import ROOT, Tool

TEMPLATE = ROOT / "infra" / "template.yaml"
PAGE = ROOT / "site_example" / "docs" / "running" / "deploy.md"

#: What each planted error looks like, and the rule of cfn-lint that sees it once the template is transformed.
PLANTED = {
    "E3030": ("RESPONSE_STREAM", "STREAMING"),
    "W3037": ("secretsmanager:GetSecretValue", "secretsmanager:GetSecretValu"),
    "E1020": ("!Sub \"dynamodb:${Counters}\"", "!Ref RateTabel"),
}  # fmt: skip


def transform(tool: Tool, template: Path) -> str:
    done = tool("lint", "python", ROOT / "scripts" / "transform.py", template)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def text(tool: Tool) -> str:
    return transform(tool, TEMPLATE)


@pytest.fixture(scope="module")
def template(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def lint(tool: Tool, folder: Path, text: str) -> set[str]:
    """Return the rules of cfn-lint that a transformed template breaks."""
    file = folder / "template.json"
    file.write_text(text, "utf-8")
    done = tool("lint", "cfn-lint", "--format", "json", file)
    return {found["Rule"]["Id"] for found in json.loads(done.stdout or "[]")}


def test_the_transformed_template_is_sound(tool: Tool, text: str, tmp_path: Path) -> None:
    assert lint(tool, tmp_path, text) == set()


def test_planted_errors_are_caught(tool: Tool, tmp_path: Path) -> None:
    raw = TEMPLATE.read_text("utf-8")
    for right, wrong in PLANTED.values():
        assert right in raw
        raw = raw.replace(right, wrong)
    (tmp_path / "planted.yaml").write_text(raw, "utf-8")
    assert lint(tool, tmp_path, transform(tool, tmp_path / "planted.yaml")) >= set(PLANTED)


def test_sam_takes_the_template(tool: Tool) -> None:
    done = tool("lint", "sam", "validate", "--lint", "--template", TEMPLATE)
    assert done.returncode == 0, done.stdout + done.stderr


def check(tool: Tool, folder: Path, text: str) -> dict[str, Any]:
    """Return what checkov says of a transformed template."""
    file = folder / "template.json"
    file.write_text(text, "utf-8")
    how = ("--framework", "cloudformation", "--skip-download", "--output", "json")
    found: dict[str, Any] = json.loads(tool("checkov", "checkov", "--file", file, *how).stdout)
    return found


def test_checkov_finds_nothing_that_has_no_reason(tool: Tool, text: str, tmp_path: Path) -> None:
    found = check(tool, tmp_path, text)
    assert [check["check_id"] for check in found["results"]["failed_checks"]] == []
    assert found["summary"]["passed"] >= 15
    skipped = found["results"]["skipped_checks"]
    assert all(len(check["check_result"]["suppress_comment"].split()) >= 5 for check in skipped)
    # In the raw template the address is a line of the function and no resource, so nobody looks at it.
    assert ("CKV_AWS_258", "AWS::Lambda::Url.FunctionUrl") in {(c["check_id"], c["resource"]) for c in skipped}


def test_checkov_sees_a_planted_fault(tool: Tool, text: str, tmp_path: Path) -> None:
    assert '"BlockPublicPolicy": true' in text
    found = check(tool, tmp_path, text.replace('"BlockPublicPolicy": true', '"BlockPublicPolicy": false'))
    assert [check["check_id"] for check in found["results"]["failed_checks"]] == ["CKV_AWS_54"]


def test_the_function_runs_what_is_packed_where_it_is_unpacked(template: dict[str, Any]) -> None:
    asks = "import package as p; print(p.VERSION, p.DEPLOYED, p.HOME, p.BOOTSTRAP.name)"
    done = subprocess.run(
        [sys.executable, "-c", asks], cwd=ROOT / "scripts", capture_output=True, text=True, check=True
    )
    version, machine, home, bootstrap = done.stdout.split()
    function = template["Resources"]["Function"]["Properties"]
    assert function["Runtime"] == f"python{version}"
    assert function["Architectures"] == [{"Ref": "Architecture"}]
    architecture, names = template["Parameters"]["Architecture"], {"aarch64": "arm64", "x86_64": "x86_64"}
    assert architecture["Default"] == names[machine]
    assert architecture["AllowedValues"] == [*names.values()]
    wrapper = function["Environment"]["Variables"]["AWS_LAMBDA_EXEC_WRAPPER"]
    assert wrapper == {"Fn::If": ["Streams", f"{home}/{bootstrap}", {"Ref": "AWS::NoValue"}]}
    handler, _, name = function["Handler"].rpartition(".")
    assert callable(getattr(importlib.import_module(handler), name))


def statements(template: dict[str, Any], role: str) -> Iterator[dict[str, Any]]:
    """Yield a role's permissions under any conditions."""
    for policy in template["Resources"][role]["Properties"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            branches = statement["Fn::If"][1:] if "Fn::If" in statement else [statement]
            yield from (branch for branch in branches if "Action" in branch)


def actions(template: dict[str, Any], role: str) -> set[str]:
    listed = (s["Action"] if isinstance(s["Action"], list) else [s["Action"]] for s in statements(template, role))
    return {action for found in listed for action in found}


def test_the_function_may_do_what_it_needs_and_nothing_else(template: dict[str, Any]) -> None:
    assert actions(template, "FunctionRole") == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "dynamodb:GetItem",
        "dynamodb:UpdateItem",
        # With Records=on alone, on the table of conversations alone.
        "dynamodb:BatchWriteItem",
        "dynamodb:ConditionCheckItem",
        "dynamodb:DeleteItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "secretsmanager:GetSecretValue",
        "ssm:GetParameter",
        "kms:Decrypt",
        "s3:GetObject",
        "s3:ListBucket",
        "bedrock:InvokeModel",
        "bedrock:InvokeModelWithResponseStream",
        # With GuardrailArn alone, on that guardrail alone.
        "bedrock:ApplyGuardrail",
    }


def test_the_publisher_writes_the_index_and_updates_the_function(template: dict[str, Any]) -> None:
    assert actions(template, "PublisherRole") == {
        "lambda:GetFunction",
        "lambda:GetFunctionConfiguration",
        "lambda:UpdateFunctionCode",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
    }
    (trust,) = template["Resources"]["PublisherRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert set(trust["Condition"]) == {"StringEquals"}
    assert {name.rpartition(":")[2] for name in trust["Condition"]["StringEquals"]} == {"aud", "sub"}


@pytest.mark.parametrize("role", ["FunctionRole", "PublisherRole"])
def test_no_right_is_for_everything(template: dict[str, Any], role: str) -> None:
    for statement in statements(template, role):
        assert "*" not in json.dumps(statement["Action"])
        # An ARN of the stack's own, or one that the operator named.
        assert re.search(r"Arn|Ref", json.dumps(statement["Resource"])), statement


def test_the_address_is_public_by_both_permissions_and_cors_is_the_apps(template: dict[str, Any]) -> None:
    resources = template["Resources"].values()
    public = [r["Properties"] for r in resources if r["Type"] == "AWS::Lambda::Permission" and "Condition" not in r]
    assert {p["Action"] for p in public} == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    assert all(p.get("InvokedViaFunctionUrl") or p.get("FunctionUrlAuthType") == "NONE" for p in public)
    (url,) = (r["Properties"] for r in resources if r["Type"] == "AWS::Lambda::Url")
    assert "Cors" not in url


def test_variables_are_those_that_the_service_reads(template: dict[str, Any]) -> None:
    variables = template["Resources"]["Function"]["Properties"]["Environment"]["Variables"]
    settings = {setting.variable for setting in SETTINGS.values()}
    assert set(variables) - settings == {"AWS_LAMBDA_EXEC_WRAPPER"}
    generated = template["Resources"]["Secret"]["Properties"]["GenerateSecretString"]
    names = {*json.loads(generated["SecretStringTemplate"]), generated["GenerateStringKey"]}
    assert names <= settings
    # What is secret stands in no variable.
    assert names & set(variables) == set()


def test_defaults_are_those_of_the_service(template: dict[str, Any]) -> None:
    variables = template["Resources"]["Function"]["Properties"]["Environment"]["Variables"]
    fields = {setting.variable: setting.default for setting in SETTINGS.values()}
    defaults = {name: p.get("Default") for name, p in template["Parameters"].items()}
    given = {name: defaults[value["Ref"]] for name, value in variables.items() if "Ref" in value}
    switched = {"on": True, "off": False}
    # "off" is a word of its own for a budget, and no for a switch; a site has no name by default.
    differing = {n for n, v in given.items() if fields[n] != (switched.get(v, v) if isinstance(fields[n], bool) else v)}
    assert differing == {"CHAPTERVERSE_SITE"}


def test_alarms_watch_metrics_that_the_service_writes(template: dict[str, Any]) -> None:
    metrics = (ROOT / "lambda" / "chapterverse_api" / "ext" / "aws" / "metrics.py").read_text("utf-8")
    alarms = (r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::CloudWatch::Alarm")
    names = {alarm["MetricName"] for alarm in alarms if alarm["Namespace"] == "ChapterVerse"}
    assert names == {"Errors", "BudgetShare"}
    assert [name for name in (*names, "ChapterVerse", "Site") if f'"{name}"' not in metrics] == []


def test_alarms_are_those_that_operators_read_of_and_reach_them(template: dict[str, Any]) -> None:
    page = (ROOT / "site_example" / "docs" / "running" / "operating.md").read_text("utf-8")
    named = re.findall(r"^\| `(\w+)` \|", page.partition("{ #alarms }")[2].partition("\n## ")[0], re.MULTILINE)
    alarms = {n: r["Properties"] for n, r in template["Resources"].items() if r["Type"] == "AWS::CloudWatch::Alarm"}
    assert sorted(alarms) == sorted(named)
    watched = {a["MetricName"] for a in alarms.values() if a["Namespace"] == "AWS/Lambda"}
    assert watched == {"Errors", "Throttles", "Duration"}
    assert all(alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}] for alarm in alarms.values())
    topic = template["Resources"]["AlarmTopic"]["Properties"]
    assert topic["Subscription"] == [{"Protocol": "email", "Endpoint": {"Ref": "AlarmEmail"}}]


def test_the_bucket_refuses_what_is_not_encrypted_on_its_way(template: dict[str, Any]) -> None:
    (policy,) = (r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::S3::BucketPolicy")
    assert policy["Bucket"] == {"Ref": "Bucket"}
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Resource"] == [{"Fn::GetAtt": ["Bucket", "Arn"]}, {"Fn::Sub": "${Bucket.Arn}/*"}]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_counters_expire_by_the_attribute_that_the_limiter_writes(template: dict[str, Any]) -> None:
    table = template["Resources"]["Counters"]["Properties"]
    limiter = (ROOT / "lambda" / "chapterverse_api" / "ext" / "dynamodb" / "limiter.py").read_text("utf-8")
    expiry = table["TimeToLiveSpecification"]
    assert expiry["Enabled"] is True
    assert f'"#expires": "{expiry["AttributeName"]}"' in limiter
    assert table["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]


def test_conversations_have_the_keys_and_the_expiry_that_the_records_write(template: dict[str, Any]) -> None:
    table = template["Resources"]["Conversations"]
    records = (ROOT / "lambda" / "chapterverse_api" / "ext" / "dynamodb" / "records.py").read_text("utf-8")
    expiry = table["Properties"]["TimeToLiveSpecification"]
    assert (expiry["Enabled"], table["Condition"]) == (True, "KeepsRecords")
    assert f'"{expiry["AttributeName"]}": until' in records
    keys = {key["AttributeName"]: key["KeyType"] for key in table["Properties"]["KeySchema"]}
    assert keys == {"pk": "HASH", "sk": "RANGE"}
    (statement,) = (s for s in statements(template, "FunctionRole") if s["Sid"] == "KeepConversations")
    assert statement["Resource"] == {"Fn::GetAtt": ["Conversations", "Arn"]}
    variables = template["Resources"]["Function"]["Properties"]["Environment"]["Variables"]
    assert variables["CHAPTERVERSE_RECORDS"]["Fn::If"][1] == {"Fn::Sub": "dynamodb:${Conversations}"}


def test_every_parameter_and_output_is_documented_with_its_default(template: dict[str, Any]) -> None:
    page = PAGE.read_text("utf-8")
    shown = {name: p["Default"] for name, p in template["Parameters"].items()}
    rows = {name: f"| `{name}` | {f'`{default}`' if default != '' else ''}" for name, default in shown.items()}
    assert [row for row in rows.values() if row not in page] == []
    assert [name for name in template["Outputs"] if f"`{name}`" not in page] == []
    assert all(p.get("Description") for p in template["Parameters"].values())
