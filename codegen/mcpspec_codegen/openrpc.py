"""Read OpenRPC documents: each method as types of its parameters and its result, with annotations that name it.

The schemas of an OpenRPC document are of draft-07. A method without a result is a notification. All are handled by the
server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpspec_codegen.annotated_methods import METHOD_KEYWORDS
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.names import to_pascal
from mcpspec_codegen.nodes import Pointer, Schema, is_schema, pointer_text

__all__ = ["is_openrpc", "read_openrpc"]

_SCHEMAS, _DESCRIPTORS = "#/components/schemas/", "#/components/contentDescriptors/"


def is_openrpc(content: Schema) -> bool:
    """Return whether a document lists methods as OpenRPC does."""
    return isinstance(content.get("openrpc"), str)


def read_openrpc(content: Schema, file: str) -> tuple[Schema, dict[str, Pointer]]:
    """Return the definitions of an OpenRPC document as a schema, and the place of each in the document.

    Raises `SchemaError` for methods that are no objects of the document, and for names that two definitions would have.
    """
    return _DocumentReader(content, file).read()


@dataclass(slots=True)
class _DocumentReader:
    content: Schema
    file: str
    definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    places: dict[str, Pointer] = field(default_factory=dict[str, Pointer])

    def read(self) -> tuple[Schema, dict[str, Pointer]]:
        for name, schema in self._components("schemas").items():
            self._define(name, schema, ("components", "schemas", name))
        methods = self.content.get("methods")
        if not isinstance(methods, list) or not methods:
            raise self._error("expected a list of methods", "methods")
        for index, method in enumerate(methods):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            self._method(method, ("methods", index))
        return {"definitions": _with_references(self.definitions)}, self.places

    def _method(self, method: Any, at: Pointer) -> None:
        if not is_schema(method) or not isinstance(name := method.get("name"), str):
            raise self._error("expected an object with the `name` of a method", *at)
        base = to_pascal(name)
        text = method.get("description") or method.get("summary")
        described = {"description": text} if isinstance(text, str) else {}
        keywords = dict(zip(sorted(METHOD_KEYWORDS), (name, "server"), strict=True))
        result = method.get("result")
        if method.get("params") or result is None:
            params = self._params(method, at)
            self._define(base + "Params", {**described, **params, **keywords}, (*at, "params"))
        if result is not None:
            schema = self._resolve(result, (*at, "result")).get("schema", True)
            said = {} if schema is True else {"allOf": [schema]} if "$ref" in schema else schema
            self._define(base + "Result", {**said, **keywords}, (*at, "result", "schema"))

    def _params(self, method: Schema, at: Pointer) -> Schema:
        listed = [self._resolve(each, (*at, "params", index)) for index, each in enumerate(method.get("params", []))]
        needed = [each for each in listed if each.get("required")]
        if method.get("paramStructure") == "by-position":
            places = [_described(each) for each in listed]
            return {"type": "array", "items": places, "additionalItems": False, "minItems": len(needed)}
        properties = {each["name"]: _described(each) for each in listed}
        return {"type": "object", "properties": properties, "required": [each["name"] for each in needed]}

    def _resolve(self, descriptor: Any, at: Pointer) -> Schema:
        """Return a content descriptor, which may be a reference to one of the components."""
        found = descriptor
        if is_schema(found) and isinstance(ref := found.get("$ref"), str):
            found = self._components("contentDescriptors").get(ref.removeprefix(_DESCRIPTORS))
        if not is_schema(found) or not isinstance(found.get("name"), str):
            raise self._error("expected a content descriptor with a `name` and a `schema`", *at)
        return found

    def _components(self, kind: str) -> Mapping[str, Any]:
        found = self.content.get("components", {}).get(kind, {})
        if not is_schema(found):
            raise self._error("expected an object", "components", kind)
        return found

    def _define(self, name: str, schema: Any, at: Pointer) -> None:
        if name in self.definitions:
            raise self._error(f"`{name}` is the name of another type, too; rename one of them", *at)
        self.definitions[name], self.places[name] = schema, at

    def _error(self, reason: str, *at: str | int) -> SchemaError:
        return SchemaError(self.file, pointer_text(at), reason)


def _described(descriptor: Schema) -> Any:
    """Return the schema of a descriptor, with its text unless the schema has one."""
    schema = descriptor.get("schema", True)
    text = descriptor.get("description") or descriptor.get("summary")
    if not is_schema(schema) or "$ref" in schema or not isinstance(text, str):
        return schema
    return {"description": text, **schema}


def _with_references(value: Any) -> Any:
    """Return schemas whose references lead to the definitions, and not to the components."""
    if is_schema(value):
        ref = value.get("$ref")
        changed = {key: _with_references(child) for key, child in value.items()}
        if isinstance(ref, str) and ref.startswith(_SCHEMAS):
            changed["$ref"] = "#/definitions/" + ref.removeprefix(_SCHEMAS)
        return changed
    return [_with_references(each) for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
