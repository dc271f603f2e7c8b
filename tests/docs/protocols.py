"""Protocols of others, as their packages ship them, and the table of docs/vendors.md: `python -m tests.docs.protocols`.

Each is compiled alone. Random values of all definitions, right and wrong ones, are decoded by the types of both
libraries; the validator jsonschema says which of them are right. Examples that a package ships are decoded and encoded.
The packages are installed by `python -m tests.interop.install schemas apps dap`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Final

from mcpspec.support.objects import is_array
from mcpspec_codegen.names import to_pascal
from mcpspec_codegen.nodes import definitions_key, is_schema
from mcpspec_codegen.openrpc import is_openrpc, read_openrpc
from mcpspec_codegen.use_names import find_unusable
from tests.codegen.helpers import Schema
from tests.docs.keywords import compiled_package
from tests.docs.markdown import replace_block
from tests.futures.values import Values
from tests.interop import install
from tests.paths import ROOT, SCHEMA

__all__ = ["PAGE", "PROTOCOLS", "OtherProtocol", "ProtocolResult", "measure", "render"]

PAGE: Final = ROOT / "docs" / "vendors.md"
COUNT: Final = 5
"""How many values are made of each definition; as many wrong ones are made of them."""
_NODE = install.INTEROP / "schemas" / "node_modules"
_FACES = ["structs", "models", "exact.structs", "exact.models"]


def _as_it_is(schema: Schema) -> Schema:
    return schema


@dataclass(frozen=True)
class OtherProtocol:
    """A schema of others, and what was changed of it."""

    name: str
    package: str
    """The package that ships it, and its version."""
    path: Path
    prepare: Callable[[Schema], Schema] = _as_it_is
    changed: str = ""

    def read(self) -> Schema:
        """Return the schema as it is compiled."""
        return self.prepare(json.loads(self.path.read_text(encoding="utf-8")))


def _opened(node: Any) -> Any:
    """Return a schema in which no object is closed."""
    if not is_schema(node):
        return [_opened(each) for each in node] if is_array(node) else node
    return {key: _opened(value) for key, value in node.items() if key != "additionalProperties" or value is not False}


def _with_senders(schema: Schema) -> Schema:
    """Return the schema of Apps with open objects, and with what its messages lack: senders and a result."""
    senders = json.loads((SCHEMA / "supplement.json").read_text(encoding="utf-8"))["senders"]["ext/apps"]
    made: Schema = _opened(schema)
    made["$defs"]["EmptyResult"] = {"type": "object"}
    for side, messages in senders.items():
        for kind in ("Request", "Notification"):
            listed = [{"$ref": f"#/$defs/{name}"} for name in messages if name.endswith(kind)]
            made["$defs"][side + kind] = {"anyOf": listed}
    return made


def _installed(part: str, pattern: str) -> Path:
    return next(iter((install.INTEROP / part).glob(pattern)), install.INTEROP / part / "none")


_DAP = "lib/python*/site-packages/debugpy/_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json"
_OPENRPC = _NODE / "@open-rpc" / "examples" / "build" / "service-descriptions"

PROTOCOLS: Final = [
    *(
        OtherProtocol(
            f"Agent Client Protocol {version}",
            "@agentclientprotocol/sdk 2.4.0",
            _NODE / "@agentclientprotocol" / "sdk" / "schema" / version / "schema.json",
        )
        for version in ("v1", "v2")
    ),
    OtherProtocol(
        "MCP Apps, alone",
        "@modelcontextprotocol/ext-apps 2.0.4",
        _installed("apps", "node_modules/@modelcontextprotocol/ext-apps/dist/src/generated/schema.json"),
        _with_senders,
        "closed objects are open; unions of the messages, and `EmptyResult`, are added",
    ),
    *(
        OtherProtocol(f"OpenRPC: {name}", "@open-rpc/examples 1.7.2", _OPENRPC / f"{name}-openrpc.json")
        for name in ("api-with-examples", "link-example", "petstore", "petstore-expanded", "simple-math")
    ),
    OtherProtocol("Debug Adapter Protocol", "debugpy 1.8.22", _installed("dap", _DAP)),
]


@dataclass(frozen=True)
class ProtocolResult:
    """The measurements of a protocol."""

    definitions: int
    methods: int
    values: int
    differences: dict[str, list[str]]
    """Library → the values that its types accept and jsonschema rejects, or the other way round."""
    examples: int
    faults: list[str]
    """Examples that are rejected, or change on the way."""


def measure(protocol: OtherProtocol, count: int = COUNT) -> ProtocolResult:
    """Compile a protocol, use every name, and compare its types with jsonschema and with the examples."""
    document = protocol.read()
    with compiled_package({}, document) as types:
        assert find_unusable([f"measured_types.{face}" for face in _FACES], is_decoding=True) is None
        schema = _as_schema(document)
        values = Values(schema, Random(protocol.name))
        names = [*schema[definitions_key(schema)]]
        pairs = [(name, each) for name in names for _ in range(count) for each in _pair(values, name)]
        differences = {
            library: [
                f"{name}: {json.dumps(value)}"
                for name, value in pairs
                if values.accepts(name, value) != _accepts(module, name, value)
            ]
            for library, module in types.items()
        }
        examples = [*_examples(document)]
        faults = [f"{name}: {json.dumps(value)}" for name, value in examples if not _is_kept(types, name, value)]
        methods = len(import_module("measured_types.methods").METHODS) if _has_methods() else 0
        return ProtocolResult(len(names), methods, len(pairs), differences, len(examples), faults)


def _has_methods() -> bool:
    return (Path(import_module("measured_types.structs").__file__ or "").parent / "methods.py").exists()


def _as_schema(document: Schema) -> Schema:
    """Return a document as a JSON Schema for validators, whose root is a definition."""
    if is_openrpc(document):
        return read_openrpc(document, "")[0]
    root = {key: document[key] for key in ("anyOf",) if key in document}
    key = definitions_key(document)
    rest = {key: value for key, value in document.items() if key not in (*root, "title")}
    return {**rest, key: {**document[key], **({to_pascal(document["title"]): root} if root else {})}}


def _pair(values: Values, name: str) -> tuple[Any, Any]:
    made = values.make(name)
    return made, values.spoil(made)


def _accepts(module: Any, name: str, value: Any) -> bool:
    try:
        module.decode(json.dumps(value), getattr(module, to_pascal(name)))
    except module.DecodeError:
        return False
    return True


def _is_kept(types: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether both libraries decode a value, and encode it as it was."""
    return all(
        _accepts(module, name, value)
        and json.loads(module.encode(module.decode(json.dumps(value), getattr(module, name)))) == value
        for module in types.values()
    )


def _examples(document: Schema) -> Iterator[tuple[str, Any]]:
    """Yield the examples of a document of OpenRPC: parameters and results, each with the name of the type."""
    components = document.get("components", {})

    def value(part: Schema, kind: str) -> Schema:
        found: Schema = components[kind][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        return found

    methods: list[Schema] = document["methods"] if is_openrpc(document) else []
    for method in methods:
        base = to_pascal(method["name"])
        names = [value(param, "contentDescriptors")["name"] for param in method["params"]]
        examples: list[Schema] = method.get("examples", [])
        for example in examples:
            given = [value(each, "examples")["value"] for each in example["params"]]
            if names:
                yield base + "Params", dict(zip(names, given, strict=False))
            yield base + "Result", value(example["result"], "examples")["value"]


def render(protocol: OtherProtocol, found: ProtocolResult) -> str:
    """Render the measurements of a protocol as a row of the table."""
    name = f"{protocol.name} ({protocol.changed})" if protocol.changed else protocol.name
    differing = [len(found.differences[library]) for library in ("structs", "models")]
    kept = f"{found.examples - len(found.faults)} of {found.examples}" if found.examples else "ships none"
    cells = [name, protocol.package, found.definitions, found.methods, found.values, *differing, kept]
    return f"| {' | '.join(map(str, cells))} |"


_HEAD: Final = """
| protocol | package | types | methods | values | structs differ | models differ | examples kept |
|---|---|---|---|---|---|---|---|
"""


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    rows = [render(protocol, measure(protocol)) + "\n" for protocol in PROTOCOLS]
    PAGE.write_text(replace_block(page, "protocols", _HEAD + "".join(rows)), encoding="utf-8")
