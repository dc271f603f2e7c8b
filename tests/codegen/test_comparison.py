"""The report of changes: what breaks whom, by a table of cases, and by random types against `jsonschema`."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator

from mcpspec_codegen.comparison.changes import Change, find_changes
from mcpspec_codegen.comparison.interfaces import InterfaceShape, MethodShape
from mcpspec_codegen.comparison.reports import is_failure, write_changes
from tests.cases import each

Json: TypeAlias = Any
Edit: TypeAlias = Callable[[dict[str, Any], dict[str, MethodShape]], object]

_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"enum": ["up", "down"]}, "hits": {"type": "array", "items": {"$ref": "#/$defs/Hit"}}},
    "required": ["hits"],
}
_TYPES: dict[str, Any] = {
    "FindParams": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 20},
            "limit": {"type": "integer"},
            "filter": {"anyOf": [{"$ref": "#/$defs/Word"}, {"$ref": "#/$defs/Range"}]},
        },
        "required": ["query"],
        "minProperties": 1,
    },
    "FindResult": _RESULT,
    "Hit": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "rank": {"type": "number"}},
        "required": ["text"],
    },
    "Word": {"type": "object", "properties": {"kind": {"const": "word"}}, "required": ["kind"]},
    "Range": {"type": "object", "properties": {"kind": {"const": "range"}}, "required": ["kind"]},
    "Note": {"type": "object", "properties": {"text": {"type": "string"}}},
    "Id": {"type": ["string", "integer"]},
    "Sent": {"type": "object", "properties": {"jsonrpc": {"const": "2.0"}}},
    "Batch": {"type": "array", "items": {"$ref": "#/$defs/Sent"}},
    "Message": {"anyOf": [{"$ref": "#/$defs/Sent"}, {"$ref": "#/$defs/Batch"}]},
    "TellParams": {"type": "object", "properties": {"id": {"$ref": "#/$defs/Id"}}},
}


def _method(sender: str, kind: str, message: str, params: str | None) -> MethodShape:
    return MethodShape(sender, kind, message, params, params_required=False, result=None)


_METHODS = {
    "find": MethodShape("client", "request", "FindRequest", "FindParams", params_required=True, result="FindResult"),
    "tell": _method("both", "notification", "Tell", "TellParams"),
}


def _members(types: dict[str, Any], name: str) -> dict[str, Any]:
    members: dict[str, Any] = types[name]["properties"]
    return members


CASES: dict[str, tuple[Edit, list[str]]] = {
    "a required member, of parameters": (
        lambda types, _: (_members(types, "FindParams").update(page={"type": "string"}),
                          types["FindParams"]["required"].append("page")),
        ["+ FindParams.page: string  [clients send]"],
    ),
    "an optional member": (
        lambda types, _: _members(types, "Hit").update(note={"$ref": "#/$defs/Note"}),
        ["+ Hit.note: Note, optional"],
    ),
    "an optional member that is gone": (
        lambda types, _: _members(types, "Hit").pop("rank"),
        ["- Hit.rank: number, optional  [servers send]"],
    ),
    "a required member that is gone": (
        lambda types, _: (_members(types, "Hit").pop("text"), types["Hit"]["required"].clear()),
        ["- Hit.text: string  [servers send, clients get]"],
    ),
    "a member that is optional now": (
        lambda types, _: types["Hit"]["required"].clear(),
        ["~ Hit.text: optional now  [clients get]"],
    ),
    "a member that is required now": (
        lambda types, _: types["Hit"]["required"].append("rank"),
        ["~ Hit.rank: required now  [servers send]"],
    ),
    "a member of a union": (
        lambda types, _: _members(types, "FindParams")["filter"]["anyOf"].append({"$ref": "#/$defs/Note"}),
        ["~ FindParams.filter: + Note  [servers get]"],
    ),
    "a value of an enumeration for another": (
        lambda types, _: _members(types, "FindResult").update(status={"enum": ["up", "away"]}),
        ['~ FindResult.status: + "away", - "down"  [servers send, clients get]'],
    ),
    "a wider type": (
        lambda types, _: _members(types, "FindParams").update(limit={"type": "number"}),
        ["~ FindParams.limit: integer => number  [servers get]"],
    ),
    "a bound": (
        lambda types, _: _members(types, "FindParams")["query"].update(maxLength=10),
        ["~ FindParams.query: string (length at most 20) => string (length at most 10)  [clients send]"],
    ),
    "an object with a limit of the whole now": (
        lambda types, _: types["Hit"].update(dependentRequired={"rank": ["text"]}),
        ["~ Hit: other values  [servers send]"],
    ),
    "an object that has lost a limit of the whole": (
        lambda types, _: types["FindParams"].pop("minProperties"),
        ["~ FindParams: other values  [servers get]"],
    ),
    "a type that both sides send": (
        lambda types, _: types.update(Id={"type": "string"}),
        ["~ Id: - integer  [both send]"],
    ),
    "an object that is closed now": (
        lambda types, _: types["Hit"].update(additionalProperties=False),
        ["~ Hit: object => closed object  [servers send]"],
    ),
    "a type that no message has": (
        lambda types, _: _members(types, "Note").pop("text"),
        ["- Note.text: string, optional"],
    ),
    "a type that nothing uses yet": (
        lambda types, _: types.update(Other={"type": "object", "properties": {"a": {}}}),
        ["+ Other: object"],
    ),
    "a type with another name": (
        lambda types, _: (types.update(Term=types.pop("Word")),
                          _members(types, "FindParams").update(
                              filter={"anyOf": [{"$ref": "#/$defs/Term"}, {"$ref": "#/$defs/Range"}]})),
        ["~ Word: Word => Term", "~ FindParams.filter: + Term, - Word"],
    ),
    "the order of a union": (
        lambda types, _: _members(types, "FindParams")["filter"]["anyOf"].reverse(),
        [],
    ),
    "a new method": (
        lambda _, methods: methods.update(ping=_method("both", "request", "Ping", None)),
        ["+ ping: client or server request, no params"],
    ),
    "a method that is gone": (
        lambda _, methods: methods.pop("find"),
        ["- find: client request, FindParams -> FindResult  [clients send]"],
    ),
    "a notification that is gone": (
        lambda _, methods: methods.pop("tell"),
        ["- tell: client or server notification, TellParams, optional"
         "  [both send, both get]"],
    ),
    "a notification of one side": (
        lambda _, methods: methods.update(tell=_method("server", "notification", "Tell", "TellParams")),
        ["~ tell: sent by both => server  [clients send, servers get]"],
    ),
    "messages that are not batched any more": (
        lambda types, _: (types.pop("Batch"), types.update(Message={"$ref": "#/$defs/Sent"})),
        ["~ Message: - Batch  [both send]", "- Batch: list of Sent"],
    ),
    "another result": (
        lambda _, methods: methods.update(
            find=MethodShape("client", "request", "FindRequest", "FindParams", params_required=True, result="Hit")),
        ["~ find: returns FindResult => Hit  [servers send, clients get]"],
    ),
}  # fmt: skip

VERDICTS = {
    "an optional member": "compatible", "a type that no message has": "words", "a type that nothing uses yet": "words",
    "a type with another name": "words", "a new method": "compatible",
}  # fmt: skip
"""All other cases break somebody."""


def _compare(edit: Edit) -> list[Change]:
    types, methods = copy.deepcopy(_TYPES), {**_METHODS}
    edit(types, methods)
    codes = {"GONE": -32000}
    return find_changes(InterfaceShape(_TYPES, _METHODS, codes), InterfaceShape(types, methods, codes))


@each("name", CASES)
def test_a_change_is_told_with_those_that_it_breaks(name: str) -> None:
    edit, expected = CASES[name]
    changes = _compare(edit)
    lines = [line.strip() for line in write_changes(changes) if line.startswith(" ")]
    assert [line for line in lines if not line.startswith(("- TellParams", "- Find"))] == expected
    assert [change.verdict for change in changes][:1] in ([], [VERDICTS.get(name, "breaking")])


@each("fail_on, failing", [(None, 0), ("breaking", 1), ("compatible", 2), ("any", 3)])
def test_a_status_is_about_a_verdict_and_worse_ones(fail_on: str | None, failing: int) -> None:
    names = ["a bound", "a new method", "a type that nothing uses yet"]
    assert [is_failure(_compare(CASES[name][0]), fail_on) for name in names] == [
        number < failing for number in range(3)
    ]


# Random types, against `jsonschema`

_SCALARS: list[dict[str, Any]] = [
    {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {},
    {"type": "string", "minLength": 2}, {"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 1},
    {"type": "number", "maximum": 5}, {"type": "number", "exclusiveMinimum": 0}, {"enum": ["a", "b"]}, {"const": "a"},
    {"enum": ["a", 1, None]}, {"type": ["string", "null"]}, {"type": ["integer", "null"], "minimum": 3},
]  # fmt: skip


def _random_type(random: Random, depth: int) -> dict[str, Any]:
    kind = random.choice(["scalar", "scalar", "list", "map", "union", "object", "reference"])
    if kind == "scalar" or not depth:
        return copy.deepcopy(random.choice(_SCALARS))
    if kind == "list":
        bounds = random.choice([{}, {"minItems": 1}, {"maxItems": 2}])
        return {"type": "array", "items": _random_type(random, depth - 1), **bounds}
    if kind == "map":
        return {"type": "object", "additionalProperties": _random_type(random, depth - 1)}
    if kind == "union":
        return {"anyOf": [_random_type(random, depth - 1) for _ in range(random.randint(2, 3))]}
    return {"$ref": f"#/$defs/{random.choice('AB')}"} if kind == "reference" else _random_object(random, depth)


def _random_object(random: Random, depth: int) -> dict[str, Any]:
    names = random.sample(["a", "b", "c"], random.randint(1, 3))
    made: dict[str, Any] = {"type": "object", "properties": {name: _random_type(random, depth - 1) for name in names}}
    made["required"] = [name for name in names if random.random() < 0.5]
    return {**made, **random.choice([{}, {}, {"additionalProperties": False}])}


def _edit(node: Any, random: Random) -> Any:
    """Change one part of a type."""
    inner = [key for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)]
    inner += ["properties"] if "properties" in node else []
    inner += ["anyOf"] if "anyOf" in node else []
    if not inner or random.random() < 0.2:
        return _random_type(random, 1)
    made, key = {**node}, random.choice(inner)
    if key == "anyOf":
        options = [*made[key]]
        index = random.randrange(len(options))
        made[key] = random.choice(
            [
                [*options, _random_type(random, 1)],
                options[1:],
                [*options[:index], _edit(options[index], random), *options[index + 1 :]],
            ]
        )
    elif key == "properties":
        made |= _edit_members(made, random)
    else:
        made[key] = _edit(made[key], random)
    return made


def _edit_members(node: dict[str, Any], random: Random) -> dict[str, Any]:
    members, required = {**node["properties"]}, {*node["required"]}
    name = random.choice(["a", "b", "c"])
    if name not in members:
        members[name] = _random_type(random, 1)
    elif random.random() < 0.3 and len(members) > 1:
        members.pop(name)
        required.discard(name)
    elif random.random() < 0.5:
        required ^= {name}
    else:
        members[name] = _edit(members[name], random)
    return {"properties": members, "required": sorted(required)}


def _random_value(node: dict[str, Any], types: dict[str, Any], random: Random, depth: int = 6) -> Json:
    """Return a value that may be one of a type."""
    if "$ref" in node:
        return _random_value(types[node["$ref"][-1]], types, random, depth - 1) if depth > 0 else None
    if "anyOf" in node:
        return _random_value(random.choice(node["anyOf"]), types, random, depth)
    if "enum" in node or "const" in node:
        return random.choice(node.get("enum") or [node["const"]])
    kind: Any = node.get("type", "string")
    kind = kind if isinstance(kind, str) else random.choice(kind)
    if kind == "array":
        return [
            _random_value(node["items"], types, random, depth - 1)
            for _ in range(random.randint(0, 3) if depth > 0 else 0)
        ]
    if kind == "object":
        members: dict[str, Any] = node.get("properties", {"x": node.get("additionalProperties", {})})
        kept = [name for name in members if name in node.get("required", []) or (depth > 0 and random.random() < 0.6)]
        return {name: _random_value(members[name], types, random, depth - 1) for name in kept}
    values: dict[str, list[Any]] = {
        "string": ["", "a", "b", "abc", "abcd"],
        "integer": [-1, 0, 1, 3, 7],
        "number": [-1, 0.5, 3, 5.5, 7],
    }
    return random.choice({**values, "boolean": [True, False], "null": [None]}[kind])


def _shape(types: dict[str, Any]) -> InterfaceShape:
    sent = MethodShape("client", "request", "Request", "T", params_required=True, result=None)
    return InterfaceShape(types, {"send": sent}, {})


def _values(types: dict[str, Any], random: Random) -> list[Json]:
    drawn = [_random_value(types["T"], types, random) for _ in range(40)]
    return [*filter(_validator(types).is_valid, drawn)]


def _validator(types: dict[str, Any]) -> Any:
    return Draft202012Validator({"$defs": types, "$ref": "#/$defs/T"})


def test_values_agree_with_what_is_said_of_senders_and_readers() -> None:
    random = Random(20310501)
    seen: Counter[str] = Counter()
    for _ in range(400):
        old = {"A": _random_object(random, 1), "B": {"type": "integer"}, "T": _random_object(random, 3)}
        new = {**old, "T": {**old["T"], **_edit_members(old["T"], random)}}
        if random.random() < 0.3:
            new["A"] = {**old["A"], **_edit_members(old["A"], random)}
        changes = find_changes(_shape(old), _shape(new))
        hit = {role for change in changes for _, role in change.hits}
        for role, sent, read in (("send", old, new), ("get", new, old)):
            wrong = [value for value in _values(sent, random) if not _validator(read).is_valid(value)]
            assert role in hit or not wrong, (write_changes(changes), str(old), str(new), wrong[0])
            seen[f"{role}, {'hit' if role in hit else 'not hit'}, {'with' if wrong else 'without'} a witness"] += 1
    assert seen["send, not hit, without a witness"] > 60, seen
    assert seen["send, hit, with a witness"] > 60, seen
    assert seen["get, not hit, without a witness"] > 60, seen
    assert seen["get, hit, with a witness"] > 60, seen
