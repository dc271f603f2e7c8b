"""The method tables agree with the schemas, in every revision and for both backends.

What is expected is read from the schema files here, by other code than the compiler's.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, TypeAlias

import pytest

from mcpspec.features import DRAFT, FEATURES
from mcpspec.support.methods import Method
from tests.cases import each
from tests.generated.backends import annotations_of
from tests.generated.vectors import REVISIONS, has_vectors, minimal_value

ROOT = Path(__file__).resolve().parents[2]
TASKS = "ext/tasks"

Defs: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """The methods of a version for one backend, and its types."""

    version: str
    backend: str

    @property
    def methods(self) -> ModuleType:
        return import_module(f"{package(self.version)}.{'models_' if self.backend == 'models' else ''}methods")

    @property
    def types(self) -> ModuleType:
        return import_module(f"{package(self.version)}.{self.backend}")

    @property
    def records(self) -> dict[str, Any]:
        return dict(self.methods.METHODS)

    def __str__(self) -> str:
        return f"{self.version}-{self.backend}"


@dataclass(frozen=True)
class Expected:
    """A method as described by the schema."""

    name: str
    sender: str
    kind: str
    message: str
    params: str | None
    """Name of the definition; None if the parameters are inline."""
    params_required: bool
    results: frozenset[str]
    """Names of the possible definitions of the result."""

    def __str__(self) -> str:
        return self.name


def package(version: str) -> str:
    return f"mcpspec.v{version.replace('-', '_')}" if version[0].isdigit() else f"mcpspec.{version.replace('/', '.')}"


@cache
def definitions(version: str) -> Defs:
    schema = json.loads((ROOT / "schema" / f"{version}.json").read_text(encoding="utf-8"))
    found: Defs = schema.get("$defs") or schema["definitions"]
    return found


def referred(node: Any) -> str:
    return str(node["$ref"]).rpartition("/")[2]


def named_members(defs: Defs, union: str) -> list[str]:
    """List the messages of a union. An inline one is the definition with the same method."""
    node = defs.get(union, {"anyOf": []})
    if "anyOf" in node:
        return [referred(member) for member in node["anyOf"]]
    if "$ref" in node:
        return [referred(node)]
    method = node["properties"]["method"]
    return [
        name for name, other in defs.items() if name != union and other.get("properties", {}).get("method") == method
    ]


def senders(defs: Defs) -> Iterator[tuple[str, str, str]]:
    """List message, sender and kind of all messages."""
    for side in ("Client", "Server"):
        for kind in ("Request", "Notification"):
            for message in named_members(defs, side + kind):
                yield message, side.lower(), kind.lower()
    if "ServerRequest" not in defs:
        for message in named_members(defs, "InputRequest"):
            yield message, "server", "input"


def results(version: str, message: str, kind: str) -> frozenset[str]:
    defs = definitions(version)
    if kind == "notification":
        return frozenset()
    base = message.removesuffix("Request")
    if f"{base}ResultResponse" in defs:
        node = defs[f"{base}ResultResponse"]["properties"]["result"]
        found = {referred(member) for member in node.get("anyOf", [node])}
    else:
        found = {f"{base}Result" if f"{base}Result" in defs else "EmptyResult"}
    if version == "2025-11-25" and message in ("CallToolRequest", "CreateMessageRequest", "ElicitRequest"):
        found.add("CreateTaskResult")
    return frozenset(found)


@cache
def expected(version: str) -> dict[str, Expected]:
    defs = definitions(version)
    found: dict[str, Expected] = {}
    for message, sender, kind in senders(defs):
        node = defs[message]
        name = node["properties"]["method"]["const"]
        params = node["properties"].get("params", {})
        found[name] = Expected(
            name=name,
            sender="both" if name in found else sender,
            kind=kind,
            message=message,
            params=referred(params) if "$ref" in params else None,
            params_required="params" in node["required"],
            results=results(version, message, kind),
        )
    return found


TASK_METHODS = {
    "tasks/get": ("client", "request", "GetTaskRequest", "GetTaskResult"),
    "tasks/update": ("client", "request", "UpdateTaskRequest", "UpdateTaskResult"),
    "tasks/cancel": ("client", "request", "CancelTaskRequest", "CancelTaskResult"),
    "notifications/tasks": ("server", "notification", "TaskStatusNotification", None),
    "elicitation/create": ("server", "input", "ElicitRequest", "ElicitResult"),
    "roots/list": ("server", "input", "ListRootsRequest", "ListRootsResult"),
    "sampling/createMessage": ("server", "input", "CreateMessageRequest", "CreateMessageResult"),
}


TARGETS = [Target(version, backend) for version in REVISIONS for backend in ("structs", "models")]
ALL_TARGETS = [*TARGETS, Target(TASKS, "structs"), Target(TASKS, "models")]

each_revision = each("target", TARGETS, ids=str)
each_version = each("target", ALL_TARGETS, ids=str)


def pairs() -> Iterator[tuple[Target, Expected]]:
    return ((target, method) for target in TARGETS for method in expected(target.version).values())


each_method = each("target, method", pairs(), ids=str)
each_request = each("target, method", ((at, it) for at, it in pairs() if it.kind != "notification"), ids=str)


@each_revision
def test_every_message_that_a_side_sends_has_a_record_and_no_other(target: Target) -> None:
    assert target.records.keys() == expected(target.version).keys()


@each_method
def test_a_record_has_the_sender_of_its_message(target: Target, method: Expected) -> None:
    record = target.records[method.name]
    assert (record.name, record.sender, record.kind) == (method.name, method.sender, method.kind)
    assert record.message is getattr(target.types, method.message)


@each_method
def test_the_parameters_of_a_record_are_those_of_its_message(target: Target, method: Expected) -> None:
    record = target.records[method.name]
    assert record.params_required is method.params_required
    if method.params is not None:
        assert record.params is getattr(target.types, method.params)
    else:
        assert record.params.__name__ == f"{method.message}Params"
        assert record.params is getattr(target.types, f"{method.message}Params")


@each_request
def test_a_result_is_decoded_to_the_type_that_the_schema_gives(target: Target, method: Expected) -> None:
    record = target.records[method.name]
    for definition in (name for name in method.results if has_vectors(target.version, name)):
        value = target.types.decode(minimal_value(target.version, definition), record.result)
        assert isinstance(
            value, target.types.Result if definition == "EmptyResult" else getattr(target.types, definition)
        )


@each_request
def test_a_request_with_one_kind_of_result_has_that_type_alone(target: Target, method: Expected) -> None:
    record = target.records[method.name]
    if len(method.results) == 1:
        assert record.result is getattr(target.types, *method.results)
    else:
        assert not isinstance(record.result, type) or record.result.__name__ not in method.results


@each_revision
def test_a_notification_has_no_result(target: Target) -> None:
    assert {record.result for record in target.records.values() if record.kind == "notification"} == {NoneType}


@each_revision
def test_a_server_either_sends_requests_or_puts_them_into_results(target: Target) -> None:
    inputs = {name for name, record in target.records.items() if record.kind == "input"}
    assert bool(inputs) == ("InputRequest" in definitions(target.version))
    assert {target.records[name].sender for name in inputs} <= {"server"}
    assert bool(target.methods.SERVER_REQUESTS) == (not inputs)


@each("backend", ["structs", "models"])
def test_three_requests_of_2026_07_28_come_in_results(backend: str) -> None:
    records = Target("2026-07-28", backend).records
    inputs = {name for name, record in records.items() if record.kind == "input"}
    assert inputs == {"elicitation/create", "roots/list", "sampling/createMessage"}


@each("backend", ["structs", "models"])
@each("name", ["tools/call", "sampling/createMessage", "elicitation/create"])
def test_three_requests_of_2025_11_25_may_result_in_a_task(backend: str, name: str) -> None:
    target = Target("2025-11-25", backend)
    value = target.types.decode(minimal_value(target.version, "CreateTaskResult"), target.records[name].result)
    assert isinstance(value, target.types.CreateTaskResult)


@each("backend", ["structs", "models"])
def test_the_tasks_extension_has_the_methods_of_its_specification(backend: str) -> None:
    target = Target(TASKS, backend)
    assert target.records.keys() == TASK_METHODS.keys()
    for name, (sender, kind, message, result) in TASK_METHODS.items():
        record = target.records[name]
        assert (record.sender, record.kind) == (sender, kind)
        assert record.message is getattr(target.types, message)
        assert record.params is getattr(target.types, f"{message}Params")
        assert record.result is (getattr(target.types, result) if result else NoneType)


@each(
    "target, method",
    ((target, method) for target, method in pairs() if has_vectors(target.version, method.message)),
    ids=str,
)
def test_a_message_decodes_to_the_types_of_its_record(target: Target, method: Expected) -> None:
    record = target.records[method.name]
    message = target.types.decode(minimal_value(target.version, method.message), record.message)
    assert type(message) is record.message
    assert message.method == method.name
    if record.params_required:
        params = target.types.decode(target.types.encode(message.params), record.params)
        assert type(params) is type(message.params)


@each_version
def test_the_types_of_a_record_can_be_decoded_and_reject_null(target: Target) -> None:
    for record in target.records.values():
        for kind in (record.message, record.params, record.result):
            if kind is NoneType:
                assert target.types.decode(b"null", kind) is None
                continue
            with pytest.raises(target.types.DecodeError):
                target.types.decode(b"null", kind)


@each_version
def test_parameters_that_may_be_absent_need_no_arguments(target: Target) -> None:
    optional = [record for record in target.records.values() if not record.params_required]
    assert optional
    for record in optional:
        assert target.types.encode(record.params()) == b"{}"


@each_version
def test_static_types_are_those_of_the_record(target: Target) -> None:
    for name, record in target.records.items():
        annotation = annotations_of(record)[constant_name(name)]
        params, _, result = annotation.removeprefix("Final[Method[").removesuffix("]]").partition(", ")
        assert [record.params] == named_types(target, params)
        if record.kind == "notification":
            assert result == "None"
        elif "|" in result:
            results = expected(target.version)[name].results
            assert set(named_types(target, result)) == {getattr(target.types, definition) for definition in results}
        else:
            assert [record.result] == named_types(target, result)


def named_types(target: Target, annotation: str) -> list[Any]:
    names = [part.strip().split(".") for part in annotation.split("|")]
    assert {module for module, _ in names} == {target.backend}
    return [getattr(target.types, name) for _, name in names]


# Lookup tables


TABLES = {
    "METHODS": ({"client", "server", "both"}, {"request", "notification", "input"}),
    "CLIENT_REQUESTS": ({"client", "both"}, {"request"}),
    "SERVER_REQUESTS": ({"server", "both"}, {"request"}),
    "INPUT_REQUESTS": ({"server"}, {"input"}),
    "CLIENT_NOTIFICATIONS": ({"client", "both"}, {"notification"}),
    "SERVER_NOTIFICATIONS": ({"server", "both"}, {"notification"}),
}
"""Tables of a module, each with the senders and the kinds of its records."""


@each_version
@each("table", TABLES)
def test_a_table_has_the_records_of_its_sender_and_kind(target: Target, table: str) -> None:
    senders, kinds = TABLES[table]
    methods = target.records.values()
    fitting = {record.name: record for record in methods if record.sender in senders and record.kind in kinds}
    found = getattr(target.methods, table)
    assert dict(found) == fitting
    assert list(found) == sorted(found)


@each_version
@each("table", TABLES)
def test_tables_are_read_only(target: Target, table: str) -> None:
    found = getattr(target.methods, table)
    with pytest.raises(TypeError):
        found["x/y"] = next(iter(target.records.values()))
    with pytest.raises(TypeError):
        del found["tools/list"]


@each_version
def test_records_are_frozen_and_slotted(target: Target) -> None:
    for record in target.records.values():
        with pytest.raises(FrozenInstanceError):
            record.name = "x/y"
        assert not hasattr(record, "__dict__")


@each_version
def test_records_may_be_keys_and_copies_of_them_are_equal(target: Target) -> None:
    assert len(set(target.records.values())) == len(target.records)
    for record in target.records.values():
        assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301


@each("version", [*REVISIONS, TASKS])
def test_both_backends_have_the_same_methods(version: str) -> None:
    def facts(target: Target) -> list[tuple[object, ...]]:
        return [
            (r.name, r.sender, r.kind, r.message.__name__, r.params_required, r.handler)
            for r in target.records.values()
        ]

    assert facts(Target(version, "structs")) == facts(Target(version, "models"))


# Names


def constant_name(method: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method).replace("/", "_").upper()


@each_version
def test_every_record_is_a_constant_named_after_its_method(target: Target) -> None:
    members: dict[str, Any] = vars(target.methods)
    constants = {name: members[name] for name in members if isinstance(members[name], Method)}
    assert constants == {constant_name(name): record for name, record in target.records.items()}
    assert constants.keys() <= set(target.methods.__all__)


@each(
    "version, constant, method",
    [
        ("2026-07-28", "TOOLS_CALL", "tools/call"),
        ("2026-07-28", "NOTIFICATIONS_PROGRESS", "notifications/progress"),
        ("2026-07-28", "NOTIFICATIONS_TOOLS_LIST_CHANGED", "notifications/tools/list_changed"),
        ("2026-07-28", "RESOURCES_TEMPLATES_LIST", "resources/templates/list"),
        ("2026-07-28", "SAMPLING_CREATE_MESSAGE", "sampling/createMessage"),
        ("2025-11-25", "LOGGING_SET_LEVEL", "logging/setLevel"),
        ("2024-11-05", "INITIALIZE", "initialize"),
        ("2024-11-05", "PING", "ping"),
        (TASKS, "TASKS_UPDATE", "tasks/update"),
    ],
)
@each("backend", ["structs", "models"])
def test_constants_are_named_as_documented(version: str, backend: str, constant: str, method: str) -> None:
    assert getattr(Target(version, backend).methods, constant).name == method


# Versions and error codes

JSON_RPC = {
    "PARSE_ERROR": -32700,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
}
CODES = {
    "2024-11-05": {"RESOURCE_NOT_FOUND": -32002},
    "2025-03-26": {"RESOURCE_NOT_FOUND": -32002},
    "2025-06-18": {"RESOURCE_NOT_FOUND": -32002},
    "2025-11-25": {"RESOURCE_NOT_FOUND": -32002, "URL_ELICITATION_REQUIRED": -32042},
    "2026-07-28": {
        "HEADER_MISMATCH": -32020,
        "MISSING_REQUIRED_CLIENT_CAPABILITY": -32021,
        "UNSUPPORTED_PROTOCOL_VERSION": -32022,
    },
}


def code_constants(target: Target) -> dict[str, int]:
    named = {name: getattr(target.methods, name) for name in target.methods.__all__}
    return {name: value for name, value in named.items() if name.isupper() and isinstance(value, int)}


@each_revision
def test_the_protocol_version_is_that_of_the_schema(target: Target) -> None:
    assert target.version == target.methods.PROTOCOL_VERSION


@each("backend", ["structs", "models"])
@each("version", CODES)
def test_error_codes_are_those_of_the_revision(version: str, backend: str) -> None:
    assert code_constants(Target(version, backend)) == JSON_RPC | CODES[version]


@each_revision
def test_error_codes_are_those_of_the_feature_record(target: Target) -> None:
    record = FEATURES.get(target.version, DRAFT)
    assert record is not None
    assert code_constants(target) == record.error_codes


def stated_codes(node: Any) -> Iterator[int]:
    children: list[Any] = []
    if isinstance(node, dict):
        members: dict[str, Any] = {**node}
        code: Any = members.get("properties", {}).get("code", {})
        if "const" in code:
            yield code["const"]
        children = list(members.values())
    elif isinstance(node, list):
        children = [*node]
    for child in children:
        yield from stated_codes(child)


@each_version
def test_every_error_code_that_the_schema_states_has_a_constant(target: Target) -> None:
    assert set(stated_codes(definitions(target.version))) <= set(code_constants(target).values())


def test_schemas_of_some_revisions_contain_error_codes() -> None:
    assert set(stated_codes(definitions("2025-11-25"))) == {-32042}
    assert len(set(stated_codes(definitions("2026-07-28")))) == 8
