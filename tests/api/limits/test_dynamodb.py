from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from api.limits.test_contract import DAY, HOUR, MIDNIGHT, MINUTE
from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws import AwsFault, AwsService
from chapterverse.settings import Settings
from chapterverse_api.ext.dynamodb.limiter import ABANDONED_SECONDS, MAX_STALE_ATTRIBUTES, DynamoLimiter
from chapterverse_api.limits import ACCOUNT_SECONDS, LimiterFault, RateWindow, Reservation
from fakes import dynamodb_server
from fakes.dynamodb_server import DynamoServer, doubled, refused, said, unanswered
from fakes.moto_server import Application, Environ, Fault

WINDOWS = [RateWindow(10, MINUTE), RateWindow(60, HOUR), RateWindow(200, DAY)]


@pytest.fixture
def table(dynamodb: DynamoServer) -> str:
    name = dynamodb.table()
    dynamodb.calls.clear()
    return name


@pytest.fixture
def limiter(table: str) -> DynamoLimiter:
    return DynamoLimiter(dynamodb_server.patient(), table)


def only_item(dynamodb: DynamoServer, table: str) -> dict[str, Any]:
    (item,) = dynamodb.items(table)
    return item


def test_every_step_is_one_request(dynamodb: DynamoServer, limiter: DynamoLimiter) -> None:
    assert limiter.admit("a", WINDOWS, MIDNIGHT) is None
    assert limiter.admit("a", [RateWindow(1, MINUTE)], MIDNIGHT) == 60.0
    reserved = limiter.reserve("docs", 7, 10, MIDNIGHT)
    assert reserved
    assert limiter.reserve("docs", 7, 10, MIDNIGHT) is None
    limiter.settle(reserved, 1)
    assert limiter.use_token("t", MIDNIGHT + 300, MIDNIGHT)
    assert [operation for operation, _ in dynamodb.calls] == ["UpdateItem"] * 6
    assert limiter.spent_micros("docs") == 1
    assert dynamodb.calls[-1][0] == "GetItem"
    assert dynamodb.calls[-1][1]["ConsistentRead"] is True


def test_what_is_over_the_cap_by_itself_is_not_sent(dynamodb: DynamoServer, limiter: DynamoLimiter) -> None:
    assert limiter.reserve("docs", 11, 10, MIDNIGHT) is None
    assert limiter.admit("a", [], MIDNIGHT) is None
    assert dynamodb.calls == []


def test_every_item_expires(dynamodb: DynamoServer, table: str, limiter: DynamoLimiter) -> None:
    now = MIDNIGHT + 12.5
    assert limiter.admit("a", WINDOWS, now) is None
    assert limiter.reserve("docs", 7, 10, now)
    assert limiter.use_token("t", now + 300, now)
    ends = {item["pk"]["S"].partition("#")[0]: float(item["expires"]["N"]) for item in dynamodb.items(table)}
    assert ends == {
        "requests": MIDNIGHT + 12 + 2 * DAY,
        "account": MIDNIGHT + 12 + ACCOUNT_SECONDS,
        "token": now + 300.5,
    }


@pytest.mark.parametrize("fault", [unanswered, doubled])
def test_what_arrives_twice_counts_once(dynamodb: DynamoServer, limiter: DynamoLimiter, fault: Fault) -> None:
    def again() -> None:
        dynamodb.faults.append(fault)

    for expected in (None, None, 60.0):
        again()
        assert limiter.admit("a", [RateWindow(2, MINUTE)], MIDNIGHT) == expected
    again()
    reserved = limiter.reserve("docs", 70, 100, MIDNIGHT)
    assert reserved
    assert (reserved.spent, limiter.spent_micros("docs")) == (0, 70)
    again()
    limiter.settle(reserved, 20)
    assert limiter.spent_micros("docs") == 20
    again()
    assert limiter.use_token("t", MIDNIGHT + 300, MIDNIGHT)
    again()
    assert not limiter.use_token("t", MIDNIGHT + 300, MIDNIGHT)
    assert not dynamodb.faults


NONE = "DynamoDB answered with something that is no reply: check AWS_ENDPOINT_URL."


def attributes(**said: Any) -> dict[str, Any]:
    return {"Attributes": said}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"Attributes": None},
        {"Attributes": []},
        {"Attributes": {"spent": 5}},
        attributes(),
        attributes(spent={"N": "7"}),
        attributes(**{"spent": {"N": "7"}, "open@1-0": {"N": "7"}, "last": {"S": "other"}, "owner": {"S": "other"}}),
    ],
)
def test_a_reply_that_does_not_show_what_was_written_permits_nothing(
    dynamodb: DynamoServer, limiter: DynamoLimiter, body: dict[str, Any]
) -> None:
    for step in (
        lambda: limiter.reserve("docs", 7, 10, MIDNIGHT),
        lambda: limiter.admit("a", WINDOWS, MIDNIGHT),
        lambda: limiter.use_token("t", MIDNIGHT + 300, MIDNIGHT),
    ):
        dynamodb.faults.append(said(body))
        with pytest.raises(LimiterFault) as caught:
            step()
        assert str(caught.value) == NONE


def granting(reply: Callable[[str], dict[str, Any]], status: str = "200 OK") -> Fault:
    """Answer a reservation with what `reply` makes of the attribute that it would write, without doing anything."""

    def answer(environ: Environ, start: Any, table: Application) -> Iterable[bytes]:
        request = json.loads(environ["wsgi.input"].read())
        return said(reply(request["ExpressionAttributeNames"]["#open"]), status)(environ, start, table)

    return answer


@pytest.mark.parametrize("spent", [{"N": "x"}, {"N": "1.5"}, {"N": 7}, {"S": "7"}, {"N": "6"}, {"N": "-9"}, {}])
def test_a_sum_that_is_none_permits_nothing(
    dynamodb: DynamoServer, limiter: DynamoLimiter, spent: dict[str, Any]
) -> None:
    refusal = "x#ConditionalCheckFailedException"
    for reply in (
        granting(lambda own: attributes(spent=spent, **{own: {"N": "7"}})),
        granting(lambda own: attributes(spent={"N": "7"}, **{own: spent})),
        granting(lambda own: {"__type": refusal, "Item": {"spent": spent, own: {"N": "7"}}}, "400 Bad"),
    ):
        dynamodb.faults.append(reply)
        with pytest.raises(LimiterFault) as caught:
            limiter.reserve("docs", 7, 10, MIDNIGHT)
        assert str(caught.value) == NONE
    if spent not in ({"N": "6"}, {"N": "-9"}):
        dynamodb.faults.append(said({"Item": {"spent": spent}}))
        with pytest.raises(LimiterFault):
            limiter.spent_micros("docs")


@pytest.mark.parametrize("item", [None, [1], {"spent": 1}, {"60@0": {"N": "x"}}])
def test_an_item_that_is_none_is_told(dynamodb: DynamoServer, limiter: DynamoLimiter, item: object) -> None:
    dynamodb.faults.append(said({"__type": "x#ConditionalCheckFailedException", "Item": item}, "400 Bad Request"))
    with pytest.raises(LimiterFault) as caught:
        limiter.admit("a", [RateWindow(1, MINUTE)], 0.0)
    assert str(caught.value) == NONE


def test_names_that_are_none_of_ours_are_left(dynamodb: DynamoServer, limiter: DynamoLimiter, table: str) -> None:
    for key, names in (("account#docs", ["open@", "open@x-y"]), (f"requests#a#{int(MIDNIGHT // DAY)}", ["9@x", "60@"])):
        dynamodb.call("PutItem", TableName=table, Item={"pk": {"S": key}, **{name: {"N": "1"} for name in names}})
    assert limiter.reserve("docs", 7, 10, MIDNIGHT)
    assert limiter.admit("a", WINDOWS, MIDNIGHT) is None


def test_what_a_moments_trouble_refuses_is_asked_again(dynamodb: DynamoServer, limiter: DynamoLimiter) -> None:
    dynamodb.faults.extend(
        [refused("ThrottlingException"), refused("InternalServerError", "500 Internal Server Error")]
    )
    assert limiter.reserve("docs", 7, 10, MIDNIGHT)
    assert limiter.spent_micros("docs") == 7


def test_a_clients_item_stays_small(dynamodb: DynamoServer, table: str, limiter: DynamoLimiter) -> None:
    windows = [RateWindow(3, MINUTE), RateWindow(100_000, DAY)]
    sizes = []
    for minute in range(2 * MAX_STALE_ATTRIBUTES):
        assert limiter.admit("a", windows, MIDNIGHT + 60 * minute) is None
        sizes.append(len(only_item(dynamodb, table)))
    assert max(sizes) <= MAX_STALE_ATTRIBUTES + 7
    # No window that still counts was removed.
    last = MIDNIGHT + 60 * (2 * MAX_STALE_ATTRIBUTES - 1)
    assert [limiter.admit("a", windows, last) for _ in range(3)] == [None, None, 60.0]
    assert only_item(dynamodb, table)[f"86400@{int(MIDNIGHT)}"]["N"] == str(2 * MAX_STALE_ATTRIBUTES + 2)


def test_what_killed_processes_left_goes_from_the_item_and_stays_spent(
    dynamodb: DynamoServer, table: str, limiter: DynamoLimiter
) -> None:
    left = [limiter.reserve("docs", 10, 10_000, MIDNIGHT) for _ in range(MAX_STALE_ATTRIBUTES + 1)]
    alive = limiter.reserve("docs", 10, 10_000, MIDNIGHT + ABANDONED_SECONDS - 1)
    assert alive
    assert limiter.reserve("docs", 10, 10_000, MIDNIGHT + ABANDONED_SECONDS)
    names = [name for name in only_item(dynamodb, table) if name.startswith("open@")]
    assert len(names) == 2
    spent = 10 * (MAX_STALE_ATTRIBUTES + 3)
    assert limiter.spent_micros("docs") == spent
    for reserved in left:
        assert reserved
        limiter.settle(reserved, 0)
    assert limiter.spent_micros("docs") == spent
    limiter.settle(alive, 4)
    assert limiter.spent_micros("docs") == spent - 6


def test_an_item_that_can_not_be_made_smaller_is_left_as_it_is(dynamodb: DynamoServer, limiter: DynamoLimiter) -> None:
    for _ in range(MAX_STALE_ATTRIBUTES + 1):
        assert limiter.reserve("docs", 10, 10_000, MIDNIGHT)
    dynamodb.faults.extend([dynamodb_server.well, refused("AccessDeniedException")])
    assert limiter.reserve("docs", 10, 10_000, MIDNIGHT + ABANDONED_SECONDS)
    assert limiter.spent_micros("docs") == 10 * (MAX_STALE_ATTRIBUTES + 2)


def all_steps(limiter: DynamoLimiter) -> list[str]:
    """Return what each step says that fails."""
    said = []
    for step in (
        lambda: limiter.admit("a", WINDOWS, MIDNIGHT),
        lambda: limiter.reserve("docs", 1, 10, MIDNIGHT),
        lambda: limiter.settle(Reservation("1-2", "docs", 1, 0), 0),
        lambda: limiter.spent_micros("docs"),
        lambda: limiter.use_token("t", MIDNIGHT + 300, MIDNIGHT),
    ):
        with pytest.raises(LimiterFault) as caught:
            step()
        said.append(str(caught.value))
    return said


def test_a_table_that_is_missing_is_told(dynamodb: DynamoServer) -> None:
    limiter = DynamoLimiter(dynamodb_server.patient(), "nowhere")
    said = (
        "There is no DynamoDB table nowhere in this account and region: make it, or name another in "
        "CHAPTERVERSE_LIMITER."
    )
    assert set(all_steps(limiter)) == {said}


def test_a_table_that_may_not_be_used_is_told(dynamodb: DynamoServer, table: str, limiter: DynamoLimiter) -> None:
    dynamodb.faults.extend([refused("AccessDeniedException")] * 5)
    said = (
        f"The DynamoDB table {table} may not be used with these credentials: allow dynamodb:UpdateItem and "
        "dynamodb:GetItem on it."
    )
    assert set(all_steps(limiter)) == {said}


def test_a_table_with_another_key_is_told(dynamodb: DynamoServer) -> None:
    name = dynamodb.table(key="id")
    assert set(all_steps(DynamoLimiter(dynamodb_server.patient(), name))) == {
        f"The DynamoDB table {name} can't hold the counters: it needs the partition key pk, a string, and no sort key."
    }


@pytest.mark.parametrize("code", ["UnrecognizedClientException", "SomethingNewException"])
def test_any_other_refusal_is_told_without_the_services_own_words(
    dynamodb: DynamoServer, limiter: DynamoLimiter, code: str
) -> None:
    dynamodb.faults.append(refused(code))
    with pytest.raises(LimiterFault) as caught:
        limiter.reserve("docs", 1, 10, MIDNIGHT)
    assert "DynamoDB" in str(caught.value)
    assert "secret words" not in str(caught.value)
    assert isinstance(caught.value.__cause__, AwsFault)


def test_a_service_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(LimiterFault, match="DynamoDB can't be reached"):
        DynamoLimiter(AwsService("dynamodb", seconds=0.2), "limits").spent_micros("docs")


def test_without_a_region_it_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(ConfigurationError, match="DynamoDB needs a region"):
        DynamoLimiter.from_settings(Settings(), "limits")


def test_without_credentials_it_is_a_fault_of_the_limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "half a pair")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(LimiterFault, match="There are no AWS credentials for DynamoDB"):
        DynamoLimiter.from_settings(Settings(), "limits").spent_micros("docs")
