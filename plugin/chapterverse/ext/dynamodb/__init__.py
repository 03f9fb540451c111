"""A table of DynamoDB: conditional writes, items in DynamoDB's form, and errors that state what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chapterverse.errors import ChapterVerseError
from chapterverse.ext.aws import AwsFault, AwsService

#: Seconds for one request with its tries. They are few, because an answer waits for it.
CALL_SECONDS = 2.0
#: The code of a condition that does not hold, in a transaction; that of a single write ends in "Exception".
CONDITION_FAILED = "ConditionalCheckFailed"

#: An integer in DynamoDB's form.
_INTEGER = re.compile(r"-?[0-9]{1,38}")


def attributes(fields: Mapping[str, str | int]) -> dict[str, Any]:
    """Return texts and integers in DynamoDB's form: `{"spent": {"N": "17"}}`."""
    return {name: {"N" if isinstance(content, int) else "S": str(content)} for name, content in fields.items()}


@dataclass(frozen=True, slots=True)
class TableErrors:
    """The errors of a table: their type and sentences, in which `{table}` is the table's name.

    Attributes:
        kind: the type of the errors.
        missing: the message if there is no such table.
        denied: the message if the credentials may not use it.
        unfit: the message if it has other keys.
        unreadable: the message if a reply is malformed.
    """

    kind: type[ChapterVerseError]
    missing: str
    denied: str
    unfit: str
    unreadable: str

    @property
    def malformed(self) -> ChapterVerseError:
        return self.kind(self.unreadable)


class Item(dict[str, Mapping[str, Any]]):
    """An item of a reply, in DynamoDB's form.

    Raises:
        TableErrors.kind: it is no item, or a value has another type.
    """

    def __init__(self, fields: object, errors: TableErrors) -> None:
        if not isinstance(fields, dict) or not all(isinstance(value, dict) for value in fields.values()):
            raise errors.malformed
        super().__init__(fields)
        self._errors = errors

    def text(self, name: str) -> str:
        """Return a text; "" if there is none of that name."""
        text = self.get(name, {}).get("S", "")
        if not isinstance(text, str):
            raise self._errors.malformed
        return text

    def number(self, name: str) -> int:
        """Return an integer; 0 if there is none of that name."""
        digits = self[name].get("N") if name in self else "0"
        if not isinstance(digits, str) or not _INTEGER.fullmatch(digits):
            raise self._errors.malformed
        return int(digits)


class DynamoTable:
    """Safe to share between threads. Every method raises an error of the type `errors.kind`."""

    def __init__(self, service: AwsService, name: str, errors: TableErrors) -> None:
        self._service = service
        self.name = name
        self.errors = errors

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send an operation on any tables, and return its reply."""
        try:
            return self._call(operation, request)
        except AwsFault as error:
            raise self._explain(error) from error

    def send(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send an operation on this table, and return its reply."""
        return self.call(operation, {"TableName": self.name, **request})

    def update(self, request: Mapping[str, Any]) -> tuple[bool, Mapping[str, Any]]:
        """Send an `UpdateItem`; return whether its condition held, and the reply."""
        try:
            return True, self._call("UpdateItem", {"TableName": self.name, **request})
        except AwsFault as error:
            if error.code == f"{CONDITION_FAILED}Exception":
                return False, error.body
            raise self._explain(error) from error

    def transact(self, actions: Sequence[Mapping[str, Any]]) -> list[str]:
        """Carry out all of the actions, or none.

        Returns:
            Empty if all were carried out; else a code for each action: "ConditionalCheckFailed",
            "TransactionConflict", "None" …
        """
        try:
            self._call("TransactWriteItems", {"TransactItems": actions})
        except AwsFault as error:
            reasons = error.body.get("CancellationReasons")
            if error.code != "TransactionCanceledException":
                raise self._explain(error) from error
            if not isinstance(reasons, list) or len(reasons) != len(actions):
                raise self.errors.malformed from error
            return [str(reason.get("Code")) if isinstance(reason, dict) else "" for reason in reasons]
        return []

    def item(self, fields: object) -> Item:
        """Return an item of a reply."""
        return Item(fields, self.errors)

    def _call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._service.call(f"DynamoDB_20120810.{operation}", request)

    def _explain(self, error: AwsFault) -> ChapterVerseError:
        sentence = {
            "ResourceNotFoundException": self.errors.missing,
            "AccessDeniedException": self.errors.denied,
            "AccessDenied": self.errors.denied,
            "ValidationException": self.errors.unfit,
        }.get(error.code)
        return self.errors.kind(sentence.format(table=self.name) if sentence else str(error))
