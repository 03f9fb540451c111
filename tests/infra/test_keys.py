"""`make secret` and `make destroy`, with the real boto3 against moto and a stand-in for `sam`."""

from __future__ import annotations

import json

import pytest

from infra.desk import STACK, Desk


def test_a_key_is_set_and_the_others_stay(desk: Desk) -> None:
    desk.deployed()
    done = desk.run("secret", "COHERE_API_KEY", typed="key-of-cohere\n")
    assert done.returncode == 0, done.stderr
    assert "key-of-cohere" not in done.stdout + done.stderr
    held = desk.client("secretsmanager").get_secret_value(SecretId=desk.output("Secret"))["SecretString"]
    assert json.loads(held) == {"COHERE_API_KEY": "key-of-cohere", "CHAPTERVERSE_SIGNING_KEY": "generated"}


@pytest.mark.parametrize("typed", ["", "  \n"])
def test_a_key_that_is_set_is_not_overwritten_by_nothing(desk: Desk, typed: str) -> None:
    desk.deployed()
    held = json.dumps({"COHERE_API_KEY": "key-of-cohere"})
    desk.client("secretsmanager").put_secret_value(SecretId=desk.output("Secret"), SecretString=held)
    said = desk.said("secret", "COHERE_API_KEY", typed=typed)
    assert said == "No key was given, so COHERE_API_KEY stays as it is.\n"
    held = desk.client("secretsmanager").get_secret_value(SecretId=desk.output("Secret"))["SecretString"]
    assert json.loads(held)["COHERE_API_KEY"] == "key-of-cohere"


def test_a_key_that_the_function_does_not_read_is_refused(desk: Desk) -> None:
    said = desk.said("secret", "COHERE_APIKEY")
    assert said == "COHERE_APIKEY is no key that the function reads: did you mean COHERE_API_KEY?\n"
    assert desk.said("secret", "PASSWORD").startswith("PASSWORD is no key that the function reads: it reads CHAPTERVE")


@pytest.mark.parametrize("forever", [True, False])
def test_a_secret_that_was_deleted_is_one_sentence(desk: Desk, forever: bool) -> None:
    desk.deployed()
    desk.client("secretsmanager").delete_secret(SecretId=desk.output("Secret"), ForceDeleteWithoutRecovery=forever)
    said = desk.said("secret", "COHERE_API_KEY", typed="key\n")
    assert said.startswith("The stack's secret was deleted: restore it in Secrets Manager")


@pytest.mark.parametrize("held", ["no JSON", "[]"])
def test_a_secret_that_is_no_object_is_one_sentence(desk: Desk, held: str) -> None:
    desk.deployed()
    desk.client("secretsmanager").put_secret_value(SecretId=desk.output("Secret"), SecretString=held)
    said = desk.said("secret", "COHERE_API_KEY", typed="key\n")
    assert said.startswith("The stack's secret holds no JSON object of names and keys")


@pytest.mark.parametrize("name", ["", "cohere", "COHERE_API_KEY=x"])
def test_a_key_needs_the_name_of_a_variable(desk: Desk, name: str) -> None:
    assert "Name the variable that the key is for" in desk.said("secret", *([name] if name else []))


def test_nothing_deployed_is_one_sentence(desk: Desk) -> None:
    assert "so nothing was deployed from here." in desk.said("destroy")


def test_destroy_asks_for_the_name_and_then_removes_all(desk: Desk) -> None:
    desk.deployed()
    client, bucket = desk.client("s3"), desk.output("IndexStore").split("/")[2]
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"old", b"new"):
        client.put_object(Bucket=bucket, Key="index/docs/head.json", Body=body)
    for typed in ("", "yes\n"):
        assert desk.said("destroy", typed=typed) == "Nothing was removed.\n"
    assert len(client.list_object_versions(Bucket=bucket)["Versions"]) == 2
    assert desk.calls == []

    done = desk.run("destroy", typed=f"{STACK}\n")
    assert done.returncode == 0, done.stderr
    assert bucket not in {found["Name"] for found in client.list_buckets()["Buckets"]}
    assert desk.calls[-1][:5] == ["delete", "--no-prompts", "--stack-name", STACK, "--region"]
    assert "There is no stack chat in eu-central-1" in desk.said("secret", "COHERE_API_KEY")


def test_a_bucket_that_is_gone_already_keeps_nothing_else(desk: Desk) -> None:
    desk.deployed()
    client, bucket = desk.client("s3"), desk.output("IndexStore").split("/")[2]
    client.delete_bucket(Bucket=bucket)
    # moto would not delete the stack, unlike CloudFormation, which takes for deleted what is not there.
    done = desk.run("destroy", typed=f"{STACK}\n", SAM="/bin/true")
    assert (done.returncode, done.stdout.count("Removed.")) == (0, 1), done.stderr
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})


def test_a_server_that_is_not_of_the_stack_is_not_said_to_be_removed(desk: Desk) -> None:
    desk.deployed()
    desk.stack.template_dict["Outputs"]["IndexStore"] = {"Value": "qdrant:https://qdrant.example.com"}
    desk.stack.output_map = desk.stack._create_output_map()
    assert "eu-central-1: the function, its counters and its keys.\n" in desk.run("destroy").stdout
