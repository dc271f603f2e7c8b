"""Encoding requests: from parameters in the dialect to those of the server's revision."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, Raw

from mcpspec.support.converters import with_meta
from mcpspec.support.methods import Method
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.client.requests.call_options import CallOptions
from typedmcp.errors import UsageError
from typedmcp.protocol.meta import CAPABILITIES, LOG_LEVEL, VERSION
from typedmcp.revisions.conversions import downgrader
from typedmcp.revisions.features import DIALECT, methods_of

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "META_PLACEHOLDER",
    "RequestEncoder",
    "is_mapping",
    "is_of_mcpspec",
    "is_plain_struct",
    "revision_of",
    "to_dialect_params",
    "types_of",
]

D = dialect.structs

META_PLACEHOLDER: dict[str, Any] = {VERSION: DIALECT, CAPABILITIES: {}}
"""The `_meta` of parameters until the encoder replaces it."""


class RequestEncoder:
    """Builds the parameters of requests to one server, ready to be encoded as JSON.

    `client_meta` is the `_meta` of every request in a modern revision, and None in a legacy one.
    """

    def __init__(self, revision: str, client_meta: Mapping[str, Any] | None) -> None:
        self.revision = revision
        self.is_modern: bool = client_meta is not None
        self._client_meta = None if client_meta is None else dict(client_meta)
        self._encoded_client_meta = None if client_meta is None else Raw(msgspec.json.encode(client_meta))
        self._converters: dict[str, Callable[[Any, Any], Any]] = {}
        """The functions `(params, meta) -> params` by method."""

    def members(self, options: CallOptions) -> Mapping[str, Any] | None:
        """Return the members of `_meta` that the options of a call set; None for none."""
        members, capabilities, level = options.get("meta"), options.get("capabilities"), options.get("log_level")
        if not self.is_modern or (capabilities is None and level is None):
            return members
        made: dict[str, Any] = dict(members or {})
        if capabilities is not None:
            made[CAPABILITIES] = capabilities
        if level is not None:
            made[LOG_LEVEL] = level
        return made

    def meta(self, members: Mapping[str, Any] | None) -> Any:
        """Return the `_meta` of a request, including these members, or UNSET."""
        if self._client_meta is None:
            return UNSET if not members else dict(members)
        return {**self._client_meta, **members} if members else self._encoded_client_meta

    def params(self, method: str, params: Any, meta: Any) -> Any:
        """Return the parameters in the server's revision, from parameters in the dialect.

        Raises `UsageError` for a method that the server's revision does not have.
        """
        if (convert := self._converters.get(method)) is None:
            is_dialect = self.revision == DIALECT
            convert = with_meta(cast(Any, type(params))) if is_dialect else _downgrade(method, self.revision)
            self._converters[method] = convert
        return convert(params, meta)

    def raw_params(self, params: Mapping[str, Any], options: CallOptions) -> dict[str, Any]:
        """Return the parameters of a call that is made for somebody else, whose `_meta` the client writes."""
        meta = self.meta(self.members(options) if options else None)
        return {**params} if meta is UNSET else {**params, "_meta": meta}

    def plain_params(self, params: Mapping[str, Any] | None, options: CallOptions) -> dict[str, Any]:
        """Return the parameters of a method that the protocol does not have. A `_meta` in `params` takes precedence."""
        own = dict(params or {})
        meta = {**(self._client_meta or {}), **(self.members(options) or {})}
        return {**own, "_meta": {**meta, **own.get("_meta", {})}} if meta else own

    def own_params(self, record: Method[Any, Any], params: Any, options: CallOptions) -> dict[str, Any]:
        """Return the parameters of a method of a package that extends the protocol, as plain JSON.

        The client writes `_meta`. Raises `DecodeError` for parameters that do not fit.
        """
        types = types_of(record)
        plain = dict(params or {}) if params is None or is_mapping(params) else types.to_builtins(params)
        own = {key: value for key, value in plain.pop("_meta", {}).items() if key not in META_PLACEHOLDER}
        meta = {**own, **(self._client_meta or {}), **(self.members(options) or {})}
        if record.params is not NoneType:
            declared: Any = getattr(record.params, "model_fields", None) or dir(record.params)
            required = {"_meta": {**META_PLACEHOLDER, **meta}} if "meta" in declared else {}
            types.from_builtins({**plain, **required}, record.params)
        return {**plain, "_meta": meta} if meta else plain

    def exact_params(self, record: Method[Any, Any], params: Any, options: CallOptions) -> Any:
        """Return parameters that are given in the server's revision. Raises `DecodeError` for an invalid mapping."""
        if params is None or is_mapping(params):
            plain = dict(params or {})
            if self._client_meta is not None:  # modern revisions require it
                plain["_meta"] = {**self._client_meta, **plain.get("_meta", {})}
            params = types_of(record).from_builtins(plain, record.params)
        meta = {**(self._client_meta or {}), **(self.members(options) or {})}
        built = types_of(record).to_builtins(params)
        return {**built, "_meta": {**built.get("_meta", {}), **meta}} if meta else built


def is_of_mcpspec(record: Method[Any, Any]) -> bool:
    """Return whether a method record is one of the protocol, and not of a package that extends it."""
    package, _, types = record.message.__module__.rpartition(".")
    if not package.startswith("mcpspec.v"):
        return False
    name = "methods" if types == "structs" else f"{types}_methods"
    known = import_module(f"{package.removesuffix('.exact')}.{name}").METHODS.get(record.name)
    return known is record or (known is not None and package.endswith(".exact") and known.exact is record)


def types_of(record: Method[Any, Any]) -> Any:
    """Return the module with the types of a record, and with the functions that decode and encode them."""
    return sys.modules[record.message.__module__]


def is_plain_struct(record: Method[Any, Any]) -> bool:
    """Return whether a record is one of the dialect's, on plain structs."""
    return dialect.methods.METHODS.get(record.name) is record


def is_mapping(value: object) -> TypeIs[Mapping[str, Any]]:
    """Return whether parameters are a mapping of plain JSON, and not a Struct."""
    return isinstance(value, Mapping)


def revision_of(record: Method[Any, Any]) -> str:
    """Return the revision of a method record."""
    package = record.message.__module__.split(".")[1]
    return package.removeprefix("v").replace("_", "-")


def to_dialect_params(record: Method[Any, Any], params: Any) -> Any:
    """Return the parameters for a record of the dialect's revision, plain or not, as the plain struct.

    Raises `DecodeError` for a mapping that does not fit.
    """
    if not is_mapping(params):
        if is_plain_struct(record):
            return params
        params = types_of(record).to_builtins(params)
    own: Mapping[str, Any] = params.get("_meta", {})
    plain = {key: to_builtins(value) for key, value in params.items()}
    plain["_meta"] = {**META_PLACEHOLDER, **own}
    return D.from_builtins(plain, dialect.methods.CLIENT_REQUESTS[record.name].params)


@cache
def _downgrade(method: str, revision: str) -> Callable[[Any, Any], Any]:
    """Return a function `(params, meta) -> params of the revision`."""
    record = methods_of(revision).CLIENT_REQUESTS.get(method)
    known = dialect.methods.CLIENT_REQUESTS.get(method)
    if known is None or record is None:
        raise UsageError(f"{method}: not a method of {revision}, which the server speaks")
    source: Any = known.params
    target: Any = record.exact.params
    if not (isinstance(target, type) and issubclass(target, msgspec.Struct)):
        return lambda _params, meta: None if meta is UNSET else {"_meta": meta}
    return downgrader(revision).method_between(source, target) or with_meta(source)
