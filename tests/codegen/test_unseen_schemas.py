"""Unseen schemas: likely changes of MCP compile without a change of the compiler."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.codegen.helpers import (
    BACKENDS,
    NEWEST,
    Change,
    Outcome,
    Schema,
    codegen,
    compiled,
    decode,
    list_in_errata,
    newest_schema,
    pin,
    python,
    small_folder,
    small_schema,
)

_STRING: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer"}
_TEXT = {"type": "text", "text": "hi"}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _const(value: str) -> Schema:
    return {"const": value, "type": "string"}


def _object(properties: Mapping[str, Schema], *optional: str, **others: Any) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"properties": dict(properties), "required": required, "type": "object", **others}


def _list(items: Schema, **others: Any) -> Schema:
    return {"items": items, "type": "array", **others}


def _map(values: Schema) -> Schema:
    return {"additionalProperties": values, "type": "object"}


def _either(*members: Schema) -> Schema:
    return {"anyOf": list(members)}


@dataclass(frozen=True, slots=True)
class Case:
    """An addition to the schema, with valid values of its types, and invalid ones with the place of the fault."""

    name: str
    definitions: Schema = field(default_factory=dict[str, Any])
    change: Change = lambda _: None
    accepted: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    rejected: list[tuple[str, Any, str]] = field(default_factory=list[tuple[str, Any, str]])


def _add_to_content(defs: Schema) -> None:
    defs["ContentBlock"]["anyOf"].append(_ref("VideoContent"))


def _rename_uri(defs: Schema) -> None:
    root = defs["Root"]
    root["properties"] = {"locationUri" if key == "uri" else key: node for key, node in root["properties"].items()}
    root["required"] = ["locationUri" if key == "uri" else key for key in root["required"]]


def _add_limits(defs: Schema) -> None:
    per_user = _object({"maxCalls": _INTEGER})
    defs["ToolAnnotations"]["properties"]["limits"] = _object({"maxSeconds": _INTEGER, "perUser": per_user}, "perUser")


_CIRCLE, _SQUARE = {"kind": "circle", "radius": 2}, {"kind": "square", "side": 3}
_FUNCTIONS = {"field": _STRING, "constant": _STRING, "member": _STRING, "fooBar": _STRING}

_CASES = [
    Case(
        "a new content type",
        {"VideoContent": _object({"data": _STRING, "lengthMs": _INTEGER, "type": _const("video")}, "lengthMs")},
        _add_to_content,
        accepted=[
            ("VideoContent", {"type": "video", "data": "AA==", "lengthMs": 5}),
            ("ContentBlock", {"type": "video", "data": "AA=="}),
            ("ContentBlock", _TEXT),
            ("CallToolResult", {"resultType": "complete", "content": [_TEXT, {"type": "video", "data": "AA=="}]}),
        ],
        rejected=[
            ("VideoContent", {"type": "audio", "data": "AA=="}, "type"),
            ("ContentBlock", {"type": "vidoe", "data": "AA=="}, "type"),
            ("ContentBlock", {"type": "video"}, "data"),
            (
                "CallToolResult",
                {"resultType": "x", "content": [_TEXT, {"type": "video", "data": 1}]},
                "content[1].data",
            ),
        ],
    ),
    Case(
        "a new tagged union",
        {
            "Circle": _object({"kind": _const("circle"), "radius": _INTEGER}),
            "Square": _object({"kind": _const("square"), "side": _INTEGER}),
            "Shape": _either(_ref("Circle"), _ref("Square")),
            "Drawing": _object({"shapes": _list(_ref("Shape")), "byName": _map(_ref("Shape"))}, "byName"),
        },
        accepted=[
            ("Shape", _CIRCLE),
            ("Shape", _SQUARE),
            ("Drawing", {"shapes": []}),
            ("Drawing", {"shapes": [_SQUARE, _CIRCLE], "byName": {"a": _SQUARE}}),
        ],
        rejected=[
            ("Shape", {"kind": "oval", "radius": 2}, "kind"),
            ("Shape", {"radius": 2}, "kind"),
            ("Shape", {"kind": "square"}, "side"),
            ("Shape", "circle", ""),
            ("Drawing", {"shapes": [_CIRCLE, {"kind": "circle", "radius": "2"}]}, "shapes[1].radius"),
            ("Drawing", {"shapes": [], "byName": {"a b": {"side": 3}}}, 'byName["a b"].kind'),
        ],
    ),
    Case(
        "a tagged object with the members of another",
        {
            "Cone": _object({"solid": _const("cone"), "height": _INTEGER}),
            "Cube": _object({"solid": _const("cube"), "side": _INTEGER}),
            "Solid": _either(_ref("Cone"), _ref("Cube")),
        },
        accepted=[("Solid", {"solid": "cone", "height": 2}), ("Solid", {"solid": "cube", "side": 3})],
        rejected=[("Solid", {"solid": "cube", "height": 2}, "side")],
    ),
    Case(
        "a new tagged union that is written in place",
        {
            "Frame": _object(
                {
                    "edge": _either(
                        _object({"style": _const("line"), "px": _INTEGER}), _object({"style": _const("none")})
                    )
                }
            )
        },
        accepted=[("Frame", {"edge": {"style": "line", "px": 1}}), ("Frame", {"edge": {"style": "none"}})],
        rejected=[
            ("Frame", {"edge": {"style": "dots"}}, "edge.style"),
            ("Frame", {"edge": {"style": "line"}}, "edge.px"),
        ],
    ),
    Case(
        "a new untagged union of two objects",
        {
            "Point": _object({"x": _INTEGER, "y": _INTEGER}),
            "Address": _object({"street": _STRING, "city": _STRING}, "city"),
            "Place": _either(_ref("Point"), _ref("Address")),
            "Trip": _object({"start": _ref("Place"), "stops": _list(_either(_ref("Point"), _ref("Address")))}, "stops"),
        },
        accepted=[
            ("Place", {"x": 1, "y": 2}),
            ("Place", {"street": "Long Lane"}),
            ("Trip", {"start": {"street": "Long Lane", "city": "Oslo"}, "stops": [{"x": 1, "y": 2}, {"street": "A"}]}),
        ],
        rejected=[
            ("Place", {"x": 1, "y": "2"}, "y"),
            ("Place", {"city": "Oslo"}, "street"),
            ("Place", [], ""),
            ("Trip", {"start": {"x": 1}}, "start.y"),
            ("Trip", {"start": {"x": 1, "y": 2}, "stops": [{"x": 1, "y": 2}, {"street": 5}]}, "stops[1].street"),
        ],
    ),
    Case(
        "a renamed field",
        change=_rename_uri,
        accepted=[
            ("Root", {"locationUri": "file:///a"}),
            ("ListRootsResult", {"roots": [{"locationUri": "file:///a"}]}),
        ],
        rejected=[
            ("Root", {"uri": "file:///a"}, "locationUri"),
            ("ListRootsResult", {"roots": [{"locationUri": 1}]}, "roots[0].locationUri"),
        ],
    ),
    Case(
        "a lone tagged object",
        {
            "Fish": _object({"species": _const("fish"), "fins": _INTEGER}, "fins"),
            "Fowl": _object({"species": _const("fowl")}),
            "Animal": _either(_ref("Fish"), _ref("Fowl")),
            "Tank": _object(
                {"pet": _ref("Fish"), "others": _list(_ref("Fish")), "byName": _map(_ref("Fish"))}, "others", "byName"
            ),
            "Pet": _ref("Fish"),
        },
        accepted=[
            ("Tank", {"pet": {"species": "fish"}, "others": [{"species": "fish", "fins": 2}], "byName": {}}),
            ("Fish", {"species": "fish"}),
            ("Pet", {"species": "fish"}),
        ],
        rejected=[
            ("Tank", {"pet": {"fins": 2}}, "pet.species"),
            ("Tank", {"pet": {"species": "fowl"}}, "pet.species"),
            ("Tank", {"pet": {"species": "fish"}, "others": [{}]}, "others[0].species"),
            ("Tank", {"pet": {"species": "fish"}, "byName": {"a": {"species": "fowl"}}}, "byName.a.species"),
            ("Fish", {"fins": 2}, "species"),
            ("Pet", {"fins": 2}, "species"),
        ],
    ),
    Case(
        "a tagged object, or a value that is none",
        {
            "Crab": _object({"species": _const("crab"), "legs": _INTEGER}, "legs"),
            "Squid": _object({"species": _const("squid")}),
            "Catch": _either(_ref("Crab"), _ref("Squid")),
            "Bowl": _object({"pet": _either(_ref("Crab"), {"type": "null"}), "toy": _either(_ref("Crab"), _STRING)}),
        },
        accepted=[
            ("Bowl", {"pet": {"species": "crab"}, "toy": "ball"}),
            ("Bowl", {"pet": None, "toy": {"species": "crab"}}),
        ],
        rejected=[
            ("Bowl", {"pet": {"legs": 8}, "toy": ""}, "pet.species"),
            ("Bowl", {"pet": None, "toy": {"legs": 8}}, "toy.species"),
        ],
    ),
    Case(
        "a new inline object",
        change=_add_limits,
        accepted=[
            ("ToolAnnotations", {"limits": {"maxSeconds": 3, "perUser": {"maxCalls": 1}}}),
            ("ToolAnnotationsLimits", {"maxSeconds": 3}),
            ("ToolAnnotationsLimitsPerUser", {"maxCalls": 1}),
        ],
        rejected=[
            ("ToolAnnotations", {"limits": {}}, "limits.maxSeconds"),
            ("ToolAnnotations", {"limits": {"maxSeconds": 3, "perUser": {}}}, "limits.perUser.maxCalls"),
        ],
    ),
    Case(
        "an open object with required keys",
        {
            "Tags": _object({"owner": _STRING, "rank": _INTEGER}, "rank", additionalProperties={}),
            "Tagged": _object({"tags": _ref("Tags")}),
        },
        accepted=[
            ("Tags", {"owner": "me", "a.org/color": "red", "rank": 1, "more": [None, {"deep": True}]}),
            ("Tagged", {"tags": {"owner": "me", "items": 1, "copy": None}}),
        ],
        rejected=[
            ("Tags", {"rank": 1}, "owner"),
            ("Tagged", {"tags": {"more": 1}}, "tags.owner"),
            ("Tagged", {"tags": {"owner": "me", "rank": "1"}}, "tags.rank"),
        ],
    ),
    Case(
        "an object without a description of its members",
        {"Anything": {"type": "object"}, "Holder": _object({"extra": _ref("Anything")})},
        accepted=[("Anything", {"a.org/b": [1]}), ("Holder", {"extra": {"a": {"b": None}}}), ("Holder", {"extra": {}})],
        rejected=[("Anything", [], ""), ("Holder", {"extra": "a"}, "extra")],
    ),
    Case(
        "a closed object",
        {
            "Closed": _object({"a": _STRING, "b": _STRING}, "b", additionalProperties=False),
            "Shut": _object({"it": _ref("Closed")}),
        },
        accepted=[("Closed", {"a": "x"}), ("Shut", {"it": {"a": "x", "b": "y"}})],
        rejected=[
            ("Closed", {"a": "x", "c": 1}, "c"),
            ("Shut", {"it": {"a": "x", "A": 1}}, "it.A"),
            ("Closed", {"b": "x"}, "a"),
        ],
    ),
    Case(
        "constants that are no strings",
        {"Fixed": _object({"version": {"const": 2, "type": "integer"}, "nothing": {"const": None}}, "nothing")},
        accepted=[("Fixed", {"version": 2}), ("Fixed", {"version": 2, "nothing": None})],
        rejected=[
            ("Fixed", {"version": 3}, "version"),
            ("Fixed", {}, "version"),
            ("Fixed", {"version": 2, "nothing": 0}, "nothing"),
        ],
    ),
    Case(
        "bounds of integers",
        {
            "Count": _object(
                {"n": {**_INTEGER, "minimum": 1, "maximum": 9}, "m": {**_INTEGER, "exclusiveMinimum": 0}}, "m"
            )
        },
        accepted=[("Count", {"n": 1}), ("Count", {"n": 9, "m": 1})],
        rejected=[
            ("Count", {"n": 0}, "n"),
            ("Count", {"n": 10}, "n"),
            ("Count", {"n": 1, "m": 0}, "m"),
            ("Count", {"n": True}, "n"),
        ],
    ),
    Case(
        "bounds of numbers",
        {"Share": _object({"of": {"type": "number", "minimum": 0, "exclusiveMaximum": 1}})},
        accepted=[("Share", {"of": 0}), ("Share", {"of": 0.0}), ("Share", {"of": 0.999})],
        rejected=[
            ("Share", {"of": -1}, "of"),
            ("Share", {"of": -0.1}, "of"),
            ("Share", {"of": 1}, "of"),
            ("Share", {"of": 1.0}, "of"),
        ],
    ),
    Case(
        "fractional bounds",
        {"Warmth": _object({"at": {"type": "number", "minimum": 0.5, "maximum": 2.5}})},
        accepted=[("Warmth", {"at": 0.5}), ("Warmth", {"at": 1}), ("Warmth", {"at": 2.5})],
        rejected=[("Warmth", {"at": 0.4}, "at"), ("Warmth", {"at": 0}, "at"), ("Warmth", {"at": 3}, "at")],
    ),
    Case(
        "an object, or nothing",
        {
            "Maybe1": {**_object({"a": _STRING}), "type": ["object", "null"]},
            "Maybe2": _object({"a": {"type": ["object", "null"], "additionalProperties": _INTEGER}}),
            "Maybe3": _object({"a": {**_object({"b": _STRING}, "b"), "type": ["string", "object"]}}),
        },
        accepted=[
            ("Maybe1", None),
            ("Maybe1", {"a": "x"}),
            ("Maybe2", {"a": None}),
            ("Maybe2", {"a": {"b": 1}}),
            ("Maybe3", {"a": "x"}),
            ("Maybe3", {"a": {"b": "x"}}),
        ],
        rejected=[
            ("Maybe1", {}, "a"),
            ("Maybe1", "a", ""),
            ("Maybe2", {"a": {"b": "1"}}, "a.b"),
            ("Maybe3", {"a": 1}, "a"),
            ("Maybe3", {"a": {"b": 1}}, "a.b"),
        ],
    ),
    Case(
        "a list, or nothing, or a text",
        {
            "List1": {**_list(_STRING, minItems=1), "type": ["array", "null"]},
            "List2": _object({"a": {**_list(_STRING, minItems=1), "type": ["array", "null"]}}),
            "List3": _object({"a": {**_list(_STRING), "type": ["string", "array"], "minLength": 2}}),
        },
        accepted=[
            ("List1", None),
            ("List1", ["a"]),
            ("List2", {"a": None}),
            ("List2", {"a": ["a"]}),
            ("List3", {"a": "ab"}),
            ("List3", {"a": []}),
        ],
        rejected=[
            ("List1", [], ""),
            ("List2", {"a": []}, "a"),
            ("List2", {"a": [1]}, "a[0]"),
            ("List3", {"a": "a"}, "a"),
            ("List3", {"a": None}, "a"),
        ],
    ),
    Case(
        "a bound of one of several types",
        {"Short": _object({"a": {"type": ["string", "integer", "null"], "minLength": 2, "minimum": 1}})},
        accepted=[("Short", {"a": "ab"}), ("Short", {"a": 1}), ("Short", {"a": None})],
        rejected=[("Short", {"a": "a"}, "a"), ("Short", {"a": 0}, "a")],
    ),
    Case(
        "a type that all members of a union have",
        {"Whole": {"type": ["object", "string"], "anyOf": [_object({"a": _STRING}), _STRING]}},
        accepted=[("Whole", {"a": "x"}), ("Whole", "x")],
        rejected=[("Whole", {"a": 1}, "a"), ("Whole", 1, "")],
    ),
    Case(
        "a closed part of an object, and one with some of its members",
        {
            "Part": _object({"a": _STRING, "b": _STRING}, "a", "b", additionalProperties=False),
            "Parts": {"allOf": [_ref("Part"), _object({"b": _STRING})]},
            "OpenPart": {"allOf": [{"type": "object"}, _ref("Part")]},
        },
        accepted=[("Parts", {"b": "x"}), ("Parts", {"a": "x", "b": "x"}), ("OpenPart", {})],
        rejected=[("Parts", {"a": "x"}, "b"), ("Parts", {"b": "x", "c": 1}, "c"), ("OpenPart", {"c": 1}, "c")],
    ),
    Case(
        "names of members that are listed",
        {"Named": {**_map(_INTEGER), "propertyNames": {"enum": ["a", "b"]}}},
        accepted=[("Named", {}), ("Named", {"a": 1, "b": 2})],
        rejected=[("Named", {"c": 1}, "")],
    ),
    Case(
        "recursion that describes any JSON value",
        {
            "AnyValue": _either({"type": ["string", "number", "boolean", "null"]}, _ref("AnyValues"), _ref("AnyMap")),
            "AnyValues": _list(_ref("AnyValue")),
            "AnyMap": _map(_ref("AnyValue")),
        },
        accepted=[("AnyValue", [None, {"a": [1.5]}]), ("AnyValues", [[True]]), ("AnyMap", {"a": "b"})],
        rejected=[("AnyValues", {}, ""), ("AnyMap", [], "")],
    ),
    Case(
        "members named like functions that classes call",
        {
            "Fields": _object({**_FUNCTIONS, "kind": _const("k")}, *_FUNCTIONS),
            "OpenFields": _object({**_FUNCTIONS, "kind": _const("k")}, *_FUNCTIONS, additionalProperties={}),
        },
        accepted=[
            (name, {"field": "a", "constant": "b", "member": "c", "fooBar": "d", "kind": "k"})
            for name in ("Fields", "OpenFields")
        ],
        rejected=[
            *((name, {"field": 1, "kind": "k"}, "field") for name in ("Fields", "OpenFields")),
            *((name, {"constant": 1, "kind": "k"}, "constant") for name in ("Fields", "OpenFields")),
        ],
    ),
    Case(
        "members named with letters that change",
        {"Letters": _object({"Field": _STRING, "\u0130": _STRING})},
        accepted=[("Letters", {"Field": "a", "\u0130": "b"})],
        rejected=[("Letters", {"Field": "a"}, '["\u0130"]'), ("Letters", {"Field": 1, "\u0130": "b"}, "Field")],
    ),
    Case(
        "bounds of what may be null",
        {
            "Maybe": _object({"n": {"type": ["integer", "null"], "minimum": 1}}),
            "MaybeText": _object({"s": {"type": ["string", "null"], "minLength": 1}}),
        },
        accepted=[("Maybe", {"n": 1}), ("Maybe", {"n": None}), ("MaybeText", {"s": None}), ("MaybeText", {"s": "a"})],
        rejected=[("Maybe", {"n": 0}, "n"), ("MaybeText", {"s": ""}, "s")],
    ),
    Case(
        "bounds of lengths",
        {
            "Sized": _object(
                {"s": {**_STRING, "minLength": 1, "maxLength": 3}, "l": _list(_STRING, minItems=1, maxItems=2)}
            )
        },
        accepted=[("Sized", {"s": "abc", "l": ["a", "b"]}), ("Sized", {"s": "\u00e9", "l": [""]})],
        rejected=[
            ("Sized", {"s": "", "l": ["a"]}, "s"),
            ("Sized", {"s": "abcd", "l": ["a"]}, "s"),
            ("Sized", {"s": "a", "l": []}, "l"),
            ("Sized", {"s": "a", "l": ["a", "b", "c"]}, "l"),
        ],
    ),
    Case(
        "scalars of several types with bounds on each",
        {
            "Size": _object(
                {"inPixels": {"type": ["string", "number", "null"], "minLength": 2, "minimum": 1.5}}, "inPixels"
            ),
            "Level": {"type": ["string", "integer"], "maxLength": 2, "maximum": 9},
        },
        accepted=[
            ("Size", {}),
            ("Size", {"inPixels": None}),
            ("Size", {"inPixels": "2x"}),
            ("Size", {"inPixels": 1.5}),
            ("Size", {"inPixels": 2}),
            ("Level", "up"),
            ("Level", 9),
        ],
        rejected=[
            ("Size", {"inPixels": "2"}, "inPixels"),
            ("Size", {"inPixels": 1.25}, "inPixels"),
            ("Size", {"inPixels": 1}, "inPixels"),
            ("Size", {"inPixels": True}, "inPixels"),
            ("Level", "low", ""),
            ("Level", 10, ""),
        ],
    ),
    Case(
        "bounds within lists, maps, unions and definitions",
        {
            "Grade": {**_INTEGER, "minimum": 1},
            "Graded": _object({"it": _ref("Grade")}),
            "Items": _object({"words": _list({**_STRING, "minLength": 2})}),
            "Values": _object({"counts": _map({**_INTEGER, "minimum": 1})}),
            "Member": _object({"limit": _either({**_INTEGER, "minimum": 1}, {"type": "null"})}),
        },
        accepted=[
            ("Graded", {"it": 1}),
            ("Items", {"words": ["ab"]}),
            ("Values", {"counts": {"a": 1}}),
            ("Member", {"limit": None}),
        ],
        rejected=[
            ("Graded", {"it": 0}, "it"),
            ("Items", {"words": ["ab", "a"]}, "words[1]"),
            ("Values", {"counts": {"a": 0}}, "counts.a"),
            ("Member", {"limit": 0}, "limit"),
        ],
    ),
    Case(
        "a constant or any text",
        {"Mode": _object({"mode": _either(_const("auto"), _STRING)})},
        accepted=[("Mode", {"mode": "auto"}), ("Mode", {"mode": "manual"})],
        rejected=[("Mode", {"mode": 1}, "mode")],
    ),
    Case(
        "a definition that is one value",
        {"Only": {"const": "only"}, "OnlyHolder": _object({"it": _ref("Only")})},
        accepted=[("OnlyHolder", {"it": "only"})],
        rejected=[("OnlyHolder", {"it": "other"}, "it")],
    ),
]


def _all_of_it(defs: Schema) -> None:
    for case in _CASES:
        defs.update(case.definitions)
        case.change(defs)
    _add_messages(defs)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the newest revision with all new cases and messages at once."""
    return compiled(tmp_path_factory.mktemp("unseen"), _all_of_it)


def _values(case: Case) -> list[tuple[str, Any]]:
    return [*case.accepted, *((kind, value) for kind, value, _ in case.rejected)]


Outcomes = Callable[[str, str, Any], Outcome]


@pytest.fixture(scope="module")
def outcome(package: Path) -> Outcomes:
    """Decode a value of a type with a backend."""
    values = [value for case in _CASES for value in _values(case)]
    found = {
        (backend, json.dumps(value)): outcome
        for backend in BACKENDS
        for value, outcome in zip(values, decode(package, backend, values), strict=True)
    }
    return lambda backend, kind, value: found[backend, json.dumps((kind, value))]


@each("case", _CASES, ids=lambda case: case.name)
def test_the_case_itself_agrees_with_the_json_schema(case: Case) -> None:
    validator: Any = importlib.import_module("jsonschema").Draft202012Validator
    schema = newest_schema(_all_of_it)
    valid = {
        json.dumps((kind, value)): validator({**schema, **_ref(kind)}).is_valid(value)
        for kind, value in _values(case)
        if kind in schema["$defs"]  # else it is named by its place
    }
    accepted = {json.dumps(pair) for pair in case.accepted}
    assert {text for text, is_valid in valid.items() if is_valid} == accepted & valid.keys()


@each("backend", BACKENDS)
@each("case", _CASES, ids=lambda case: case.name)
def test_a_value_that_the_schema_allows_is_decoded_and_encoded_unchanged(
    case: Case, backend: str, outcome: Outcomes
) -> None:
    outcomes = [outcome(backend, kind, value) for kind, value in case.accepted]
    assert outcomes == [Outcome(encoded=value) for _, value in case.accepted]


@each("backend", BACKENDS)
@each("case", _CASES, ids=lambda case: case.name)
def test_a_value_that_the_schema_forbids_is_rejected_at_its_place(case: Case, backend: str, outcome: Outcomes) -> None:
    outcomes = [outcome(backend, kind, value) for kind, value, _ in case.rejected]
    assert outcomes == [Outcome(rejected_at=path) for _, _, path in case.rejected]


def _request(method: str, params: str) -> Schema:
    envelope = {"id": _ref("RequestId"), "jsonrpc": _const("2.0")}
    return _object({**envelope, "method": _const(method), "params": _ref(params)})


def _add_messages(defs: Schema) -> None:
    """Add requests of the client, one of them for a new capability, and a notification of the server."""
    response = {"id": _ref("RequestId"), "jsonrpc": _const("2.0"), "result": _ref("InspectToolResult")}
    defs["InspectToolRequest"] = _request("tools/inspect", "InspectToolRequestParams")
    defs["InspectToolRequestParams"] = _object(
        {"_meta": _ref("RequestMetaObject"), "name": _STRING, "depth": _INTEGER}, "depth"
    )
    defs["InspectToolResult"] = _object({"resultType": _STRING, "report": _STRING})
    defs["InspectToolResultResponse"] = _object(response)
    defs["TuneRequest"] = _request("music/tune", "RequestParams")
    defs["ToolInspectedNotification"] = _object(
        {
            "jsonrpc": _const("2.0"),
            "method": _const("notifications/tools/inspected"),
            "params": _object({"name": _STRING}),
        }
    )
    defs["ClientRequest"]["anyOf"] += [_ref("InspectToolRequest"), _ref("TuneRequest")]
    defs["ServerNotification"]["anyOf"].append(_ref("ToolInspectedNotification"))


_DESCRIBE = """
import json, sys
from mcpspec import LATEST, revision

package, backend = revision(LATEST), sys.argv[1]
prefix = "" if backend == "structs" else "models_"
types, methods, handlers = (getattr(package, name) for name in (backend, prefix + "methods", prefix + "handlers"))
tables = ("CLIENT_REQUESTS", "SERVER_REQUESTS", "INPUT_REQUESTS", "CLIENT_NOTIFICATIONS", "SERVER_NOTIFICATIONS")

def answer(stub, handler):
    try:
        getattr(stub(), handler)(None, None)
    except AttributeError:
        return None
    except handlers.UnimplementedMethodError as error:
        return [error.method, error.code]

def described(method):
    return {
        "sender": method.sender,
        "kind": method.kind,
        "message": method.message.__name__,
        "params": method.params.__name__,
        "params_required": method.params_required,
        "result": [name for name in types.__all__ if getattr(types, name) is method.result] or method.result.__name__,
        "handler": method.handler,
        "modules": sorted({kind.__module__.rpartition(".")[2] for kind in (method.message, method.params)}),
        "tables": [table for table in tables if getattr(methods, table).get(method.name) is method],
        "server_stub": answer(handlers.ServerStub, method.handler),
        "client_stub": answer(handlers.ClientStub, method.handler),
        "protocols": [
            name
            for name in sorted(handlers.__all__)
            if not name.endswith("Stub") and method.handler in getattr(getattr(handlers, name), "__dict__", {})
        ],
    }

print(json.dumps({name: described(method) for name, method in methods.METHODS.items()}))
"""


@pytest.fixture(scope="module", params=BACKENDS)
def methods(request: pytest.FixtureRequest, package: Path) -> Any:
    """Return the method records of a backend as plain data, with the name of the backend."""
    backend: str = request.param
    return {"backend": backend, **json.loads(python(package, _DESCRIBE, backend))}


def test_a_new_request_of_the_client_has_a_record_and_a_handler_on_the_server(methods: Any) -> None:
    assert methods["tools/inspect"] == {
        "sender": "client",
        "kind": "request",
        "message": "InspectToolRequest",
        "params": "InspectToolRequestParams",
        "params_required": True,
        "result": ["InspectToolResult"],
        "handler": "inspect_tool",
        "modules": [methods["backend"]],
        "tables": ["CLIENT_REQUESTS"],
        "server_stub": ["tools/inspect", -32601],
        "client_stub": None,
        "protocols": ["ServerTools"],
    }


def test_a_new_request_without_a_result_of_its_own_has_the_empty_result(methods: Any) -> None:
    record = methods["music/tune"]
    assert record["params"] == "RequestParams"
    assert "EmptyResult" in record["result"]
    assert record["protocols"] == ["ServerMusic"]
    assert record["server_stub"] == ["music/tune", -32601]


def test_a_new_notification_of_the_server_has_a_record_and_a_handler_on_the_client(methods: Any) -> None:
    assert methods["notifications/tools/inspected"] == {
        "sender": "server",
        "kind": "notification",
        "message": "ToolInspectedNotification",
        "params": "ToolInspectedNotificationParams",
        "params_required": True,
        "result": "NoneType",
        "handler": "tool_inspected",
        "modules": [methods["backend"]],
        "tables": ["SERVER_NOTIFICATIONS"],
        "server_stub": None,
        "client_stub": ["notifications/tools/inspected", -32601],
        "protocols": ["ClientTools"],
    }


_META: dict[str, Any] = {
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/protocolVersion": NEWEST,
}


@each("backend", BACKENDS)
def test_a_new_message_is_decoded_through_the_unions_of_messages(backend: str, package: Path) -> None:
    head = {"jsonrpc": "2.0", "id": 1, "method": "tools/inspect"}
    request: dict[str, Any] = {**head, "params": {"_meta": _META, "name": "a", "depth": 2}}
    notification = {"jsonrpc": "2.0", "method": "notifications/tools/inspected", "params": {"name": "a"}}
    result = {"resultType": "complete", "report": "fine"}
    outcomes = decode(
        package,
        backend,
        [
            ("ClientRequest", request),
            ("ServerNotification", notification),
            ("InspectToolResultResponse", {"jsonrpc": "2.0", "id": 1, "result": result}),
            ("ClientRequest", {**head, "params": {"_meta": _META}}),
            ("ServerNotification", {**notification, "params": {}}),
            ("ServerNotification", request),
        ],
    )
    assert outcomes == [
        Outcome(encoded=request),
        Outcome(encoded=notification),
        Outcome(encoded={"jsonrpc": "2.0", "id": 1, "result": result}),
        Outcome(rejected_at="params.name"),
        Outcome(rejected_at="params.name"),
        Outcome(rejected_at="method"),
    ]


def test_a_new_revision_becomes_the_latest_and_the_others_stay(tmp_path: Path) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    pin(schema, "2031-05-01", small_schema(_add_video))
    list_in_errata(schema, "2031-05-01")
    assert codegen(schema, output, "generate") == 0
    shown = python(
        output,
        "import json, mcpspec\n"
        "revisions = [mcpspec.revision(version) for version in mcpspec.VERSIONS]\n"
        "print(json.dumps([mcpspec.LATEST, mcpspec.VERSIONS, [it.__name__ for it in revisions],\n"
        "    [it.methods.PROTOCOL_VERSION for it in revisions],\n"
        "    [hasattr(it.structs, 'VideoContent') and hasattr(it.models, 'VideoContent') for it in revisions]]))",
    )
    packages = [f"mcpspec.v{version.replace('-', '_')}" for version in (NEWEST, "2031-05-01")]
    versions = [NEWEST, "2031-05-01"]
    assert json.loads(shown) == ["2031-05-01", versions, packages, versions, [False, True]]


def _add_video(defs: Schema) -> None:
    defs["VideoContent"] = _object({"data": _STRING, "type": _const("video")})


_CANDIDATE = "Candidate"


def _add_bounds(defs: Schema) -> None:
    defs["Bounded"] = _object({"share": {"type": "number", "minimum": 0, "maximum": 1}})


def _candidate(node: Schema, **others: Schema) -> Change:
    """Make a type with one member `it`."""
    return lambda defs: defs.update({_CANDIDATE: _object({"it": node}), **others})


def _holder(name: str) -> Change:
    """Make a type with a member whose type has a given name."""
    return lambda defs: defs.update({name: _object({"text": _STRING}), _CANDIDATE: _object({"it": _ref(name)})})


def _with_method(method: str) -> Change:
    def change(defs: Schema) -> None:
        defs[_CANDIDATE] = _object({"it": _STRING})
        defs["TuneRequest"] = _request(method, "RequestParams")
        defs["ClientRequest"]["anyOf"].append(_ref("TuneRequest"))

    return change


def _field_named_by_its_type(defs: Schema) -> None:
    defs["CandidateIt"] = _object({"kind": _const("a")})
    defs["OtherIt"] = _object({"kind": _const("b")})
    defs["AnyIt"] = _either(_ref("CandidateIt"), _ref("OtherIt"))
    defs[_CANDIDATE] = _object({"it": _ref("CandidateIt")})


@each(
    "change, right, wrong",
    [
        pytest.param(_candidate({**_STRING, "not": {"const": "x"}}), "y", "x", id="not"),
        pytest.param(_candidate({**_ref("Cursor"), "minLength": 2}), "ab", "a", id="a bound beside a reference"),
        pytest.param(
            _candidate({"additionalProperties": {}, "required": ["a"], "type": "object"}),
            {"a": 1},
            {},
            id="required alone",
        ),
        pytest.param(
            _candidate(_object({"a": _INTEGER}, additionalProperties=_STRING)),
            {"a": 1, "b": "x"},
            {"a": 1, "b": 2},
            id="a type for all other members",
        ),
        pytest.param(_candidate({"const": True}), True, False, id="a constant boolean"),
        pytest.param(
            _candidate({"oneOf": [_object({"a": _STRING}), _object({"b": _STRING})]}),
            {"a": "x"},
            {"c": "x"},
            id="oneOf",
        ),
        pytest.param(
            _candidate({**_object({"c": _INTEGER}), "anyOf": [_object({"a": _STRING}), _object({"b": _STRING})]}),
            {"a": "x", "c": 1},
            {"a": "x"},
            id="a union beside properties",
        ),
        pytest.param(
            _candidate(_either(_either(_object({"a": _STRING}), _STRING), _either(_object({"b": _STRING}), _INTEGER))),
            {"b": "x"},
            {"c": "x"},
            id="unions within a union",
        ),
        pytest.param(_candidate(_const('a"b\\c')), 'a"b\\c', "a", id="a constant with a quote and a backslash"),
        pytest.param(_field_named_by_its_type, {"kind": "a"}, {}, id="a lone tagged object that has its place's name"),
        pytest.param(_holder("Model"), {"text": "x"}, {"text": 1}, id="a type named Model"),
        pytest.param(_holder("Meta"), {"text": "x"}, {"text": 1}, id="a type named Meta"),
        pytest.param(_holder("DecodeError"), {"text": "x"}, {"text": 1}, id="a type named DecodeError"),
        pytest.param(_holder("thing"), {"text": "x"}, {"text": 1}, id="a type with a small letter"),
        pytest.param(
            _candidate(_object({"str": _STRING, "list": _list(_STRING), "mro": _STRING})),
            {"str": "x", "list": ["x"], "mro": "x"},
            {"str": "x", "list": ["x"], "mro": 1},
            id="fields named like types",
        ),
        pytest.param(
            _candidate(_object({"modelDump": _STRING, "modelFields": _STRING})),
            {"modelDump": "x", "modelFields": "x"},
            {"modelDump": "x", "modelFields": 1},
            id="fields named like methods of models",
        ),
        pytest.param(_with_method("x-music/tune"), "x", 1, id="a method with a hyphen"),
    ],
)
def test_an_unusual_schema_is_compiled_exactly_or_rejected(
    change: Change, right: Any, wrong: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No keyword is ignored silently, and every generated module works."""
    schema, output = small_folder(tmp_path / "schema", small_schema(_add_bounds, change)), tmp_path / "output"
    file = schema / f"{NEWEST}.json"
    if codegen(schema, output, "generate") == 2:
        error = capsys.readouterr().err
        assert f"error: {file}#/" in error
        assert "`$ref` leads to no definition" not in error  # that would be a slip of the case
        return
    for backend in BACKENDS:
        known = {"share": 0.5}
        values = [("Bounded", known), (_CANDIDATE, {"it": right}), (_CANDIDATE, {"it": wrong})]
        outcomes = decode(output, backend, values)
        assert outcomes[:2] == [Outcome(encoded=known), Outcome(encoded={"it": right})]
        assert outcomes[2].rejected_at is not None
