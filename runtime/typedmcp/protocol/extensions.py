"""Extensions: what a vendor, or an official extension, adds to the protocol, as servers and clients both see it.

An extension has an identifier, under which both sides declare it in `capabilities.extensions`, and the methods of a
package that `mcpspec-codegen compile` has made. `typedmcp.server.extensions` adds the behavior of a server,
`typedmcp.client.extensions` that of a client.
https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, overload

import msgspec

from mcpspec.features import NAME_PARAMS
from mcpspec.support.methods import Method
from mcpspec.support.structs import from_builtins
from typedmcp import dialect
from typedmcp.errors import DecodeError, UsageError
from typedmcp.protocol.option_checks import check_extensions
from typedmcp.revisions.features import SUPPORTED
from typedmcp_schemas.nesting import encode_json

__all__ = [
    "DeclaredExtensions", "Extension", "ExtensionMethods", "ExtensionResult", "check_distinct", "check_settings",
    "merged_names",
]  # fmt: skip

SettingsT = TypeVar("SettingsT")

_CORE_RESULT_TYPES: Final = ("complete", "input_required")


class ExtensionMethods(Protocol):
    """The `methods` module of a package, as far as extensions need it."""

    @property
    def METHODS(self) -> Mapping[str, Method[Any, Any]]: ...  # noqa: N802


class ExtensionResult(NamedTuple):
    """A type of result that an extension adds to those of a method."""

    extension: str
    """The identifier of the extension."""
    kind: Any
    """The Struct of the result, whose `resultType` is a constant."""


class Extension:
    """An extension of the protocol: its identifier, its methods, and what it adds to the methods of the protocol.

    `identifier` is a prefix of labels with dots, a slash and a name, such as `com.example/search`. `methods` is the
    module `methods` of the compiled package (with Pydantic, `models_methods`); of its records those count
    that the protocol does not have. `results` are types that the extension adds to the results of a method, by the name
    of the method: Structs whose `resultType` is a constant. `names` are the parameters that the header `Mcp-Name`
    repeats, by method. `revisions` are the protocol revisions on which peers can use the extension; by default all.

    Raises `UsageError` for an identifier, a result or a name that is not valid.
    """

    def __init__(
        self,
        identifier: str,
        methods: ExtensionMethods | None = None,
        *,
        results: Mapping[str, type[msgspec.Struct] | Sequence[type[msgspec.Struct]]] | None = None,
        names: Mapping[str, str] | None = None,
        revisions: Iterable[str] = SUPPORTED,
    ) -> None:
        check_extensions([identifier])
        self.identifier: str = identifier
        """The key in `capabilities.extensions`."""
        self.methods: Mapping[str, Method[Any, Any]] = _own_methods(methods)
        """The records of the extension's requests and notifications, by name."""
        self.results: Mapping[tuple[str, str], ExtensionResult] = _results_of(identifier, results or {})
        """The results that the extension adds, by method and `resultType`."""
        self.names: Mapping[str, str] = dict(names or {})
        """The parameters that the header `Mcp-Name` repeats, by method."""
        self.revisions: frozenset[str] = frozenset(revisions)
        """The revisions on which the extension can be used."""
        self._check_names()
        if unknown := sorted(self.revisions - {*SUPPORTED}):
            raise UsageError(f"{identifier}: unknown revision {unknown[0]!r}; known: {', '.join(SUPPORTED)}")

    def __repr__(self) -> str:
        return f"<Extension {self.identifier}>"

    def _check_names(self) -> None:
        for method, member in self.names.items():
            record = self.methods.get(method)
            if record is None:
                raise UsageError(f"{self.identifier}: names: {method!r} is no method of the extension")
            if member not in _json_names(record.params):
                raise UsageError(f"{self.identifier}: names: {method} has no parameter {member!r}")

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities that a peer lacks which has not declared the extension."""
        return {"extensions": {self.identifier: {}}}

    def is_declared(self, capabilities: DeclaredExtensions) -> bool:
        """Return whether a peer has declared the extension in its capabilities."""
        return self.identifier in (capabilities.extensions or ())

    @overload
    def settings_of(self, capabilities: DeclaredExtensions) -> Mapping[str, Any] | None: ...
    @overload
    def settings_of(self, capabilities: DeclaredExtensions, kind: type[SettingsT]) -> SettingsT | None: ...
    def settings_of(self, capabilities: DeclaredExtensions, kind: Any = dict[str, Any]) -> Any:
        """Return the settings that a peer has declared for the extension; None if it has not declared the extension.

        `capabilities` are `ctx.client_capabilities` in a server, and `client.server.capabilities` in a client. `kind`
        is the type to return, such as a Struct. Raises `DecodeError` for settings that do not fit the type.
        """
        if not self.is_declared(capabilities):
            return None
        settings: Any = (capabilities.extensions or {})[self.identifier]
        try:
            return from_builtins(settings, kind)
        except DecodeError as error:
            place = f"capabilities.extensions[{self.identifier!r}]"
            raise DecodeError(f"{place}.{error.path}" if error.path else place, error.reason) from None

    def check_record(self, method: Method[Any, Any], sender: str) -> None:
        """Raise `UsageError` for a record that is no message of the extension which this side sends."""
        if self.methods.get(method.name) is not method:
            known = ", ".join(self.methods) or "none"
            raise UsageError(f"{self.identifier}: {method.name} is no record of its methods; it has {known}")
        if method.sender not in (sender, "both"):
            raise UsageError(f"{self.identifier}: {method.name} is sent by the {method.sender}, not by the {sender}")


class DeclaredExtensions(Protocol):
    """The capabilities of a client or a server, as far as extensions need them."""

    @property
    def extensions(self) -> Mapping[str, Any] | None: ...


def _own_methods(module: ExtensionMethods | None) -> dict[str, Method[Any, Any]]:
    """Return the records of a package that the protocol does not have. Input requests are no messages."""
    records: Mapping[str, Method[Any, Any]] = {} if module is None else module.METHODS
    known = dialect.methods.METHODS
    return {name: record for name, record in records.items() if name not in known and record.kind != "input"}


def _results_of(
    identifier: str, results: Mapping[str, type[msgspec.Struct] | Sequence[type[msgspec.Struct]]]
) -> dict[tuple[str, str], ExtensionResult]:
    made: dict[tuple[str, str], ExtensionResult] = {}
    for method, kinds in results.items():
        if method not in dialect.methods.CLIENT_REQUESTS:
            raise UsageError(f"{identifier}: results: {method!r} is no request of the protocol")
        for kind in kinds if isinstance(kinds, Sequence) else [kinds]:
            made[method, _result_type(identifier, method, kind)] = ExtensionResult(identifier, kind)
    return made


def _result_type(identifier: str, method: str, kind: type[msgspec.Struct]) -> str:
    """Return the constant `resultType` of a result. Raises `UsageError` for a type without one, or with a taken one."""
    hints = [field.type for field in msgspec.structs.fields(kind) if field.encode_name == "resultType"]
    names = get_args(hints[0]) if hints and get_origin(hints[0]) is not None else ()
    if len(names) != 1 or not isinstance(names[0], str):
        text = f"{kind.__name__} needs a member resultType with one constant, as in Literal['task']"
        raise UsageError(f"{identifier}: results: {text}")
    if names[0] in _CORE_RESULT_TYPES:
        raise UsageError(f"{identifier}: results: {method} has results of the resultType {names[0]!r} already")
    return names[0]


def _json_names(params: Any) -> Iterable[str]:
    """Return the names that the parameters of a method have on the wire."""
    struct_fields: tuple[str, ...] | None = getattr(params, "__struct_encode_fields__", None)
    if struct_fields is not None:
        return struct_fields
    fields: Mapping[str, Any] = getattr(params, "model_fields", {})
    return [field.alias or name for name, field in fields.items()]


def check_settings(identifier: str, settings: Mapping[str, Any] | msgspec.Struct | None) -> dict[str, Any]:
    """Return settings of an extension as plain JSON. Raises `UsageError` for settings that are no JSON object."""
    if settings is None:
        return {}
    try:
        plain: Any = msgspec.json.decode(encode_json(settings))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{identifier}: settings must be JSON: {error}") from error
    if not isinstance(plain, dict):
        raise UsageError(f"{identifier}: settings must be an object, not {settings!r}")
    return cast("dict[str, Any]", plain)


def merged_names(extensions: Iterable[Extension]) -> Mapping[str, str]:
    """Return the parameters that the header `Mcp-Name` repeats: those of the protocol and of extensions."""
    merged = dict(NAME_PARAMS)
    for extension in extensions:
        merged.update(extension.names)
    return merged


def check_distinct(extensions: Sequence[Extension]) -> None:
    """Raise `UsageError` for two extensions with the same identifier, method or result."""
    owners: dict[str | tuple[str, str], str] = {}
    for extension in extensions:
        keys: list[str | tuple[str, str]] = [extension.identifier, *extension.methods, *extension.results]
        for key in keys:
            if key in owners:
                what = key if isinstance(key, str) else f"{key[0]} results of the resultType {key[1]!r}"
                raise UsageError(f"extensions: {extension.identifier} and {owners[key]} both have {what}")
            owners[key] = extension.identifier
