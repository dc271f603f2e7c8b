"""Access to both backends with one interface, and comparisons of their results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from typing_extensions import TypeIs

import mcpspec
from mcpspec import features

__all__ = [
    "BACKENDS",
    "FACES",
    "PACKAGES",
    "Backend",
    "annotations_of",
    "backend",
    "definitions",
    "is_list",
    "is_object",
    "open_members",
    "same_json",
    "type_tree",
]

BACKENDS = ("exact.structs", "exact.models")
FACES = (*BACKENDS, "structs", "models")
"""The modules of types of a revision: the exact ones, and the plain ones."""
PACKAGES = {
    **{version: "mcpspec.v" + version.replace("-", "_") for version in mcpspec.VERSIONS},
    **({"draft": "mcpspec.draft"} if features.DRAFT else {}),
    "ext/apps": "mcpspec.ext.apps",
    "ext/tasks": "mcpspec.ext.tasks",
}


@dataclass(frozen=True)
class Backend:
    """A module of types."""

    name: str
    module: ModuleType

    @property
    def decode(self) -> Callable[[bytes, Any], Any]:
        return self.module.decode  # type: ignore[no-any-return]

    @property
    def encode(self) -> Callable[[Any], bytes]:
        return self.module.encode  # type: ignore[no-any-return]

    def type(self, name: str) -> Any:
        return getattr(self.module, name)


def backend(version: str, name: str) -> Backend:
    return Backend(name, import_module(f"{PACKAGES[version]}.{name}"))


def definitions(version: str, name: str) -> dict[str, Any]:
    """Return the types of a module, by their names."""
    module = backend(version, name).module
    shared = {"DecodeError", "MISSING", "NULL", "UNSET", "UnsetType"}
    return {key: getattr(module, key) for key in module.__all__ if key[0].isupper() and key not in shared}


def annotations_of(record: Any) -> dict[str, Any]:
    """Return the annotations of the module that defines the record of a method: that of its package or its base's."""
    package, _, library = record.message.__module__.rpartition(".")
    found = import_module(f"{package}.{'models_' if library == 'models' else ''}methods")
    return found.__annotations__


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return whether a parsed JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeIs[list[Any]]:
    """Return whether a parsed JSON value is an array."""
    return isinstance(value, list)


def same_json(left: bytes, right: bytes) -> bool:
    """Return whether two JSON texts are equal. `1` differs from `1.0`, and the order of members does not matter."""
    return json.dumps(json.loads(left), sort_keys=True) == json.dumps(json.loads(right), sort_keys=True)


def open_members(kind: Any) -> dict[str, Any] | None:
    """Return the declared members of an open object by attribute; None for other types."""
    declared: dict[str, Any] | None = getattr(kind, "__attributes__", None)
    return declared


def type_tree(value: Any) -> Any:
    """Return the names of the types in a decoded value, by member. Both backends must agree on them."""
    import msgspec
    from pydantic import BaseModel
    from pydantic_core import MISSING

    if isinstance(value, msgspec.Struct):
        members = {name: getattr(value, name) for name in value.__struct_fields__}
        if (tag := value.__struct_config__.tag_field) is not None:
            members[tag] = value.__struct_config__.tag
    elif isinstance(value, BaseModel):
        members = {name: getattr(value, name) for name in type(value).model_fields}
    elif (declared := open_members(value.__class__)) is not None:
        members = {name: getattr(value, name) for name in declared}
    elif is_list(value):
        return [type_tree(item) for item in value]
    elif is_object(value):
        return {key: type_tree(item) for key, item in value.items()}
    else:
        return type(value).__name__
    present = {
        name: type_tree(member)
        for name, member in members.items()
        if member is not msgspec.UNSET and member is not MISSING
    }
    return type(value).__name__, present
