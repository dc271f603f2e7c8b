"""Schemas of other protocols, as their packages ship them: compiled alone, and exact."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcpspec_codegen.names import to_pascal
from mcpspec_codegen.use_names import find_unusable
from tests.docs.keywords import compiled_package
from tests.futures.values import Values
from tests.interop import install

AGENT_CLIENT = install.INTEROP / "schemas" / "node_modules" / "@agentclientprotocol" / "sdk" / "schema"
FACES = ["structs", "models", "exact.structs", "exact.models"]


def _differences(path: Path, count: int) -> list[str]:
    """Compile a schema, use every name, and return the values that types and jsonschema treat differently."""
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    with compiled_package({}, schema) as types:
        assert find_unusable([f"measured_types.{face}" for face in FACES], is_decoding=True) is None
        schema["$defs"][to_pascal(schema.pop("title"))] = {"anyOf": schema.pop("anyOf")}
        values = Values(schema, Random(str(path.name)))
        return [
            f"{library}: {name}: {json.dumps(value)}"
            for name in schema["$defs"]
            for _ in range(count)
            for value in _pair(values, name)
            for library, module in types.items()
            if values.accepts(name, value) != _accepts(module, name, value)
        ]


def _pair(values: Values, name: str) -> tuple[Any, Any]:
    made = values.make(name)
    return made, values.spoil(made)


def _accepts(module: Any, name: str, value: Any) -> bool:
    try:
        module.decode(json.dumps(value), getattr(module, name))
    except module.DecodeError:
        return False
    return True


@pytest.mark.long
@pytest.mark.skipif(not AGENT_CLIENT.exists(), reason="the schemas of others are not installed: run `make interop`")
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_agent_client_protocol_is_compiled_exactly(version: str) -> None:
    found = _differences(AGENT_CLIENT / version / "schema.json", 10)
    # A notification with an `id` is none: JSON-RPC forbids what the schema of a notification allows.
    assert [each for each in found if '"id"' not in each] == []
