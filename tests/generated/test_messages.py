"""Messages are as they stand on the wire, in every revision: requests have an id, and all have `jsonrpc`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from mcpspec.support.methods import Method
from tests.cases import each
from tests.generated.backends import PACKAGES
from tests.generated.vectors import REVISIONS, minimal_value

FACES = ("exact.structs", "exact.models", "structs", "models")
MODULES = {"structs": "methods", "models": "models_methods"}
TABLES = (
    "METHODS",
    "CLIENT_REQUESTS",
    "CLIENT_NOTIFICATIONS",
    "SERVER_REQUESTS",
    "SERVER_NOTIFICATIONS",
    "INPUT_REQUESTS",
)


def types_of(version: str, face: str) -> Any:
    return import_module(f"{PACKAGES[version]}.{face}")


def methods_of(version: str, face: str) -> Any:
    """Return the tables of methods, with the types of a face."""
    package, _, library = face.rpartition(".")
    module = import_module(f"{PACKAGES[version]}.{MODULES[library]}")
    if not package:
        return module
    tables = {name: getattr(module, name) for name in TABLES if hasattr(module, name)}
    return SimpleNamespace(**{name: {key: m.exact for key, m in table.items()} for name, table in tables.items()})


def messages(*kinds: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the messages of some kinds in all revisions and faces."""
    for version, face in product(REVISIONS, FACES):
        for record in methods_of(version, face).METHODS.values():
            if record.kind in kinds:
                yield version, face, record


def named(part: Any) -> str:
    return str(getattr(part, "name", part))


def union_of(types: Any, record: Method[Any, Any]) -> Any:
    side = "Client" if record.sender in ("client", "both") else "Server"
    return getattr(types, f"{side}{'Request' if record.kind == 'request' else 'Notification'}")


def value_of(version: str, record: Method[Any, Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(minimal_value(version, record.message.__name__))
    return value


@each("version, face, record", messages("request"), ids=named)
def test_a_request_without_an_id_can_neither_be_made_nor_decoded(version: str, face: str, record: Any) -> None:
    types, value = types_of(version, face), value_of(version, record)
    whole = types.decode(json.dumps(value).encode(), record.message)
    assert whole.id == value["id"]
    params = {"params": whole.params} if "params" in value else {}
    assert json.loads(types.encode(record.message(id=value["id"], **params))).keys() == value.keys()
    with pytest.raises((TypeError, ValueError), match="id"):
        record.message(**params)
    del value["id"]
    for kind in (record.message, union_of(types, record)):
        with pytest.raises(types.DecodeError, match="id: required, but missing"):
            types.decode(json.dumps(value).encode(), kind)


@each("version, face, record", messages("request", "notification"), ids=named)
def test_constructors_fill_in_jsonrpc_and_decoding_requires_it(version: str, face: str, record: Any) -> None:
    types, value = types_of(version, face), value_of(version, record)
    made = types.decode(json.dumps(value).encode(), record.message)
    assert made.jsonrpc == json.loads(types.encode(made))["jsonrpc"] == "2.0"
    assert ("id" in value) == (record.kind == "request")
    del value["jsonrpc"]
    for kind in (record.message, union_of(types, record)):
        with pytest.raises(types.DecodeError, match="jsonrpc: required, but missing"):
            types.decode(json.dumps(value).encode(), kind)


@each("version", REVISIONS)
@each("face", FACES)
def test_a_table_lists_either_messages_or_input_requests(version: str, face: str) -> None:
    """What stands only inside an input request has no envelope, and is in no table of messages."""
    methods = methods_of(version, face)
    for record in methods.METHODS.values():
        tables = [
            name
            for name in ("CLIENT_REQUESTS", "SERVER_REQUESTS", "CLIENT_NOTIFICATIONS", "SERVER_NOTIFICATIONS")
            if record.name in getattr(methods, name)
        ]
        is_input = record.name in methods.INPUT_REQUESTS
        assert is_input == (record.kind == "input") == (not tables)
        fields = getattr(record.message, "model_fields", None) or record.message.__struct_fields__
        assert ("jsonrpc" in fields) != is_input
