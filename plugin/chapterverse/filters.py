"""Filters of a search: a small language over the payload fields of chunks, and the tree that stores take.

    {"language": "de"}                                               equals
    {"tags": ["linux", "macos"]}                                     equals (or contains) one of these
    {"url": "https://docs.example/guide/"}                           an address starts with this
    {"chapter_title": {"$contains": "Linux"}}                        contains this
    {"created_at": {"$gte": "2026-01-01", "$lt": "2026-07-01"}}      every condition of a field holds
    {"$or": [{"type": "faq"}, {"chunk_index": 0, "version": "2.0"}]} any of these filters holds, each as a whole

`parse_filter` reads it. `resolve` replaces conditions by the values of one generation that fulfill them, so a store
only needs "is one of these". Thus all stores find the same chunks, although their engines treat ranges, dates and
patterns apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeGuard, TypeVar

from chapterverse.errors import InputError

if TYPE_CHECKING:
    from chapterverse.model import Chunk

#: Fields that filters may name.
FIELDS = (
    "type", "url", "chapter_title", "source_file_path", "source_domain", "content_type", "tags", "language", "version",
    "scope", "chunk_index", "created_at", "importance", "topic", "entity", "conversation_id",
)  # fmt: skip
#: Of these, whole numbers; those that only some documents have; and those that few filters name: each index makes a
#: shard open about 5 ms later, so the embedded engine has none for these and looks at the points instead.
NUMBERS = frozenset({"chunk_index", "importance"})
OPTIONAL = frozenset({"topic", "entity", "conversation_id"})
SELDOM = OPTIONAL | {"importance"}
_ADDRESS, _DATE, _LIST = "url", "created_at", "tags"

#: Most nested filters, conditions and values: far more than a reader needs, few enough for a store.
MAX_FILTER_DEPTH, MAX_CONDITIONS, MAX_VALUES = 5, 100, 1000

_Test: TypeAlias = Callable[[Any, Any], bool]
_EQUAL = ("$eq", "$in")
_ORDER: Mapping[str, _Test] = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_TEXT: Mapping[str, _Test] = {"$prefix": str.startswith, "$contains": operator.contains}
_TESTS = {"$eq": operator.eq, **_ORDER, **_TEXT}
OPERATORS = ("$and", "$or", *_EQUAL, *_ORDER, *_TEXT)

_Leaf = TypeVar("_Leaf", covariant=True)


@dataclass(frozen=True, slots=True)
class In:
    """The field equals one of these values, or a list field contains one. Never true without values."""

    field: str
    values: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """The field's value has this relation to the operand. Dates are compared as instants."""

    field: str
    operator: str
    operand: str | int | datetime

    def among(self, values: Iterable[str | int]) -> tuple[str | int, ...]:
        """Return those values that fulfill it; an invalid date never does."""
        test = _TESTS[self.operator]
        if self.field == _DATE:
            dated = ((value, _instant(value)) for value in values)
            return tuple(value for value, at in dated if at is not None and test(at, self.operand))
        return tuple(value for value in values if test(value, self.operand))


@dataclass(frozen=True, slots=True)
class And(Generic[_Leaf]):
    """All parts hold. Always true without parts."""

    parts: tuple[_Leaf | And[_Leaf] | Or[_Leaf], ...]


@dataclass(frozen=True, slots=True)
class Or(Generic[_Leaf]):
    """At least one part holds. Never true without parts."""

    parts: tuple[_Leaf | And[_Leaf] | Or[_Leaf], ...]


#: A filter for stores.
Filter: TypeAlias = In | And[In] | Or[In]
#: A filter as parsed from a request.
FilterTree: TypeAlias = In | FieldCondition | And[In | FieldCondition] | Or[In | FieldCondition]

#: A filter for every chunk, and one for none.
EVERYTHING: Filter = And(())
NOTHING: Filter = In("chunk_id", ())


def parse_filter(filters: object) -> FilterTree | None:
    """Parse a request's filter; an empty object filters nothing.

    Raises:
        InputError: it is invalid, or over a limit. The message quotes nothing of the input but our own names.
    """
    if not isinstance(filters, Mapping):
        raise InputError("filters must be an object.", field="filters")
    if not filters:
        return None
    tree = _group(filters, 1)
    leaves = list(_leaves(tree))
    if len(leaves) > MAX_CONDITIONS:
        raise InputError(f"A filter may hold at most {MAX_CONDITIONS} conditions.", field="filters")
    if sum(len(leaf.values) for leaf in leaves if isinstance(leaf, In)) > MAX_VALUES:
        raise InputError(f"A filter may hold at most {MAX_VALUES} values.", field="filters")
    return tree


class FieldValues(Protocol):
    """Lists a field's values in one generation; implemented by `Snapshot`."""

    def values(self, field: str) -> tuple[str | int, ...]: ...


def resolve(tree: FilterTree | None, index: FieldValues) -> Filter | None:
    """Return the filter for stores, with each condition replaced by the values that fulfill it in this generation.

    Raises:
        IndexFault: the values can't be read.
    """
    return None if tree is None else _resolve(tree, index)


def holds(filters: Filter, chunk: Chunk) -> bool:
    """Whether a chunk fulfills a filter, as a store would say."""
    if isinstance(filters, In):
        value = getattr(chunk, filters.field)
        return not set(filters.values).isdisjoint(value if isinstance(value, tuple) else (value,))
    return (all if isinstance(filters, And) else any)(holds(part, chunk) for part in filters.parts)


def all_of(*parts: FilterTree | None) -> FilterTree | None:
    """Return a filter that holds if all of these do; None filters nothing."""
    trees = [part for part in parts if part is not None]
    return _join(trees) if trees else None


def map_addresses(tree: FilterTree | None, address: Callable[[str], str]) -> FilterTree | None:
    """Return a filter with every address, or prefix of one, replaced by `address(it)`."""
    return None if tree is None else _map_addresses(tree, address)


def fields(tree: FilterTree | None) -> frozenset[str]:
    """Return the fields that a filter names anywhere."""
    return frozenset() if tree is None else frozenset(leaf.field for leaf in _leaves(tree))


def version_of(tree: FilterTree | None) -> str | None:
    """Return the docs version that a filter restricts to; None for several versions or no condition on them."""
    if isinstance(tree, And):
        return next((version for part in tree.parts if (version := version_of(part)) is not None), None)
    if isinstance(tree, In) and tree.field == "version" and len(tree.values) == 1:
        return str(tree.values[0])
    return None


def _group(filters: Mapping[Any, object], depth: int) -> FilterTree:
    if depth > MAX_FILTER_DEPTH:
        raise InputError(f"A filter may be nested at most {MAX_FILTER_DEPTH} deep.", field="filters")
    return _join([_part(name, value, depth) for name, value in filters.items()])


def _part(name: object, value: object, depth: int) -> FilterTree:
    if name == "$and":
        return _join(_groups("$and", value, depth))
    if name == "$or":
        return Or(tuple(_groups("$or", value, depth)))
    if isinstance(name, str) and name in FIELDS:
        return _of_field(name, value)
    if name in OPERATORS:
        raise InputError(
            f'In a filter {name} belongs inside a field: {{"created_at": {{"$gte": "2026-01-31"}}}}.', field="filters"
        )
    if isinstance(name, str) and name.startswith("$"):
        raise _unknown_operator()
    raise InputError(f"A filter names no known field; known are {', '.join(FIELDS)}.", field="filters")


def _groups(name: str, value: object, depth: int) -> list[FilterTree]:
    groups = value if _is_list(value) else []
    if not groups or not all(isinstance(group, Mapping) and group for group in groups):
        raise InputError(f"In a filter {name} needs a list of filters, each with a field.", field="filters")
    return [_group(group, depth + 1) for group in groups]


def _of_field(field: str, value: object) -> FilterTree:
    if not isinstance(value, Mapping):
        # A plain address means the page with all its sections, or all pages below a folder.
        return _make_condition(field, "$prefix" if field == _ADDRESS else "$in", value if _is_list(value) else [value])
    if not value:
        raise _of_other_kind(field)
    return _join([_condition(field, name, operand) for name, operand in value.items()])


def _condition(field: str, name: object, operand: object) -> FilterTree:
    if name not in OPERATORS:
        raise _unknown_operator()
    allowed = (*_EQUAL, *(_ORDER if field in NUMBERS or field == _DATE else _TEXT))
    if name not in allowed:
        raise InputError(f"The filter on {field} takes no {name}, only {', '.join(allowed)}.", field="filters")
    values = operand if name == "$in" else [operand]
    if not _is_list(values):
        raise InputError(f"The filter on {field} needs a list in $in.", field="filters")
    return _make_condition(field, str(name), values)


def _make_condition(field: str, name: str, values: Sequence[object]) -> FilterTree:
    """Return a filter that holds if the field has a relation to one of the values."""
    operands = tuple(dict.fromkeys(_operand(field, value) for value in values))
    if not operands:
        raise _of_other_kind(field)
    # A list field contains an element or not; there are no partial matches.
    equal = name in _EQUAL or (field == _LIST and name == "$contains")
    if equal and field != _DATE:
        return In(field, operands)
    conditions = tuple(FieldCondition(field, "$eq" if equal else name, one) for one in operands)
    return Or(conditions) if len(conditions) > 1 else conditions[0]


def _operand(field: str, value: object) -> Any:
    operand = _instant(value) if field == _DATE else value
    if type(operand) is not (datetime if field == _DATE else int if field in NUMBERS else str):
        raise _of_other_kind(field)
    return operand


def _instant(value: object) -> datetime | None:
    """Return the instant of an ISO 8601 date, UTC by default; a day is its first second."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return instant if instant is None or instant.tzinfo else instant.replace(tzinfo=UTC)


def _join(parts: Sequence[FilterTree]) -> FilterTree:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _resolve(tree: FilterTree, index: FieldValues) -> Filter:
    if isinstance(tree, In):
        return tree
    if isinstance(tree, FieldCondition):
        values = index.values(tree.field)
        matching = tree.among(values)
        # Every chunk has a value of most fields, and a list of thousands would slow the store down.
        everywhere = tree.field != _LIST and tree.field not in OPTIONAL
        return EVERYTHING if everywhere and len(matching) == len(values) else In(tree.field, matching)
    parts = tuple(_resolve(part, index) for part in tree.parts)
    return And(parts) if isinstance(tree, And) else Or(parts)


def _map_addresses(tree: FilterTree, address: Callable[[str], str]) -> FilterTree:
    if isinstance(tree, And | Or):
        return type(tree)(tuple(_map_addresses(part, address) for part in tree.parts))
    if tree.field != _ADDRESS:
        return tree
    if isinstance(tree, In):
        return In(_ADDRESS, tuple(address(str(value)) for value in tree.values))
    # A part of an address is not an address.
    return tree if tree.operator == "$contains" else replace(tree, operand=address(str(tree.operand)))


def _leaves(tree: FilterTree) -> Iterator[In | FieldCondition]:
    if isinstance(tree, And | Or):
        for part in tree.parts:
            yield from _leaves(part)
    else:
        yield tree


def _is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _unknown_operator() -> InputError:
    return InputError(f"A filter uses no known operator; known are {', '.join(OPERATORS)}.", field="filters")


def _of_other_kind(field: str) -> InputError:
    if field == _DATE:
        return InputError(f"The filter on {field} needs dates, as 2026-01-31 or 2026-01-31T12:00:00Z.", field="filters")
    return InputError(
        f"The filter on {field} needs values of type {'int' if field in NUMBERS else 'str'}.", field="filters"
    )


def _operand_schema(kind: str, *operators: str) -> dict[str, Any]:
    """Return the JSON Schema of a filter field's operand."""
    value: dict[str, Any] = {"type": kind}
    if kind == "integer":
        value |= {"minimum": -(2**63), "maximum": 2**63 - 1}
    list_of_values = {"type": "array", "items": value}
    by_operator = {"$eq": value, "$in": list_of_values} | dict.fromkeys(operators, value)
    operators_object = {"type": "object", "properties": by_operator, "additionalProperties": False, "minProperties": 1}
    return {"anyOf": [value, list_of_values, operators_object]}


def _level_schema(depth: int = 1) -> dict[str, Any]:
    """Return the JSON Schema of a filter, with each level of nesting written out."""
    texts = "|".join(field for field in FIELDS if field not in NUMBERS and field != _DATE)
    members = {
        f"^({texts})$": _operand_schema("string", *_TEXT),
        f"^{_DATE}$": _operand_schema("string", *_ORDER),
        f"^({'|'.join(sorted(NUMBERS))})$": _operand_schema("integer", *_ORDER),
    }
    if depth < MAX_FILTER_DEPTH:
        inner = {**_level_schema(depth + 1), "minProperties": 1}
        members[r"^\$(and|or)$"] = {"type": "array", "minItems": 1, "items": inner}
    return {"type": "object", "patternProperties": members, "additionalProperties": False}


#: The JSON Schema of a filter.
FILTER_SCHEMA = {
    **_level_schema(),
    "description": "Field to a value, to a list of values of which one must match, or to an object of operators that"
    " must all hold: $eq and $in on every field, $gt, $gte, $lt and $lte on chunk_index, importance and created_at,"
    " $prefix and $contains on all others. A plain url is the beginning of an address. Fields together must all hold;"
    f" $and and $or take lists of such objects. At most {MAX_FILTER_DEPTH} levels, {MAX_CONDITIONS} conditions"
    f" and {MAX_VALUES} values.",
    "examples": [
        {"tags": ["linux", "macos"], "created_at": {"$gte": "2026-01-01"}},
        {"$or": [{"url": "https://docs.example/guide/"}, {"chapter_title": {"$contains": "Linux"}}]},
    ],
}
