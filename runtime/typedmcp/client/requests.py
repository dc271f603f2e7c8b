"""Requests on their way out: from the dialect to what the server's revision has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, Raw

from mcpspec._support.methods import Method
from mcpspec._support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.edge.revisions import DIALECT, methods
from typedmcp.edge.rules import down
from typedmcp.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["Outgoing", "is_mapping", "revision_of"]


class Outgoing:
    """Makes the parameters of requests for one server.

    `said` is what every request on a modern wire says of the client; None on older ones.
    """

    def __init__(self, revision: str, said: Mapping[str, Any] | None) -> None:
        self.revision = revision
        self._said = None if said is None else dict(said)
        self._alone = None if said is None else Raw(msgspec.json.encode(said))

    def meta(self, more: Mapping[str, Any] | None) -> Any:
        """The `_meta` of a request, with these members: what it is encoded from."""
        if self._said is None:
            return UNSET if not more else dict(more)
        return {**self._said, **more} if more else self._alone

    def params(self, method: str, params: Any, meta: Any) -> Any:
        """What is encoded for parameters in the dialect, which may be a mapping.

        Raises `DecodeError` for a mapping that is not what the method takes, and `UsageError` for a method that the
        server's revision does not have.
        """
        if is_mapping(params):
            params = _typed(method, params)
        if self.revision == DIALECT:
            return _with_meta(cast(Any, type(params)))(params, meta)
        return _older(method, self.revision)(params, meta)

    def exact(self, record: Method[Any, Any], params: Any, meta: Any) -> Any:
        """What is encoded for parameters in the types of the server's own revision: they go as they are."""
        if params is None or is_mapping(params):
            params = from_builtins(dict(params or {}), record.params)
        if meta is UNSET or params is UNSET:
            return params
        return {**to_builtins(params), "_meta": {**to_builtins(params).get("_meta", {}), **meta}}


def is_mapping(value: object) -> TypeIs[Mapping[str, Any]]:
    """Whether parameters are given as plain JSON."""
    return isinstance(value, Mapping)


def revision_of(record: Method[Any, Any]) -> str:
    """The revision that a method record is of."""
    found = record.message.__module__.split(".")[1]
    return found.removeprefix("v").replace("_", "-")


def _typed(method: str, params: Mapping[str, Any]) -> Any:
    record = dialect.methods.CLIENT_REQUESTS.get(method)
    if record is None:
        return dict(params)
    own: Mapping[str, Any] = params.get("_meta", {})
    plain = {key: to_builtins(value) for key, value in params.items()}
    return from_builtins({**plain, "_meta": {**_NOBODY, **own}}, record.params)


_NOBODY: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": DIALECT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""Stands in for the `_meta` that a client adds."""


@cache
def _with_meta(kind: type[Any]) -> Callable[[Any, Any], Any]:
    """A function that copies parameters with another `_meta`."""
    if not issubclass(kind, msgspec.Struct):
        return lambda params, meta: params if meta is UNSET else {**params, "_meta": meta}
    names = [field.name for field in msgspec.structs.fields(kind)]
    if "meta" not in names:
        return lambda params, _meta: params
    copied = ", ".join(f"{name}=params.{name}" for name in names if name != "meta")
    scope: dict[str, Any] = {"Params": kind}
    exec(f"def copy(params, meta): return Params(meta=meta, {copied})", scope)  # noqa: S102  # names of generated types
    made: Callable[[Any, Any], Any] = scope["copy"]
    return made


@cache
def _older(method: str, revision: str) -> Callable[[Any, Any], Any]:
    record = methods(revision).CLIENT_REQUESTS.get(method)
    known = dialect.methods.CLIENT_REQUESTS.get(method)
    if known is None:
        return lambda params, meta: params if meta is UNSET else {**params, "_meta": meta}
    if record is None:
        raise UsageError(f"{revision} does not have {method}")
    source: Any = known.params
    target: Any = record.params
    if not (isinstance(target, type) and issubclass(target, msgspec.Struct)):
        return lambda _params, meta: UNSET if meta is UNSET else {"_meta": meta}
    return down(revision).with_meta(source, target)
