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
from typedmcp.edge.convert import with_meta
from typedmcp.edge.revisions import DIALECT, methods
from typedmcp.edge.rules import down
from typedmcp.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["NO_META", "Outgoing", "revision_of", "typed"]

D = dialect.structs


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
        """What is encoded for parameters in the dialect.

        Raises `UsageError` for a method that the server's revision does not have.
        """
        if self.revision == DIALECT:
            return with_meta(cast(Any, type(params)))(params, meta)
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


def typed(method: str, params: Any) -> Any:
    """The parameters of a method of the dialect's, which may be given as a mapping.

    Raises `DecodeError` for a mapping that is not what the method takes.
    """
    if not is_mapping(params):
        return params
    own: Mapping[str, Any] = params.get("_meta", {})
    plain = {key: to_builtins(value) for key, value in params.items()}
    return from_builtins({**plain, "_meta": {**_NO_META, **own}}, dialect.methods.CLIENT_REQUESTS[method].params)


NO_META: Any = D.RequestMetaObject(protocol_version=DIALECT, client_capabilities=D.ClientCapabilities())
"""Stands where the `_meta` of a call is going to be."""
_NO_META: dict[str, Any] = to_builtins(NO_META)


@cache
def _older(method: str, revision: str) -> Callable[[Any, Any], Any]:
    record = methods(revision).CLIENT_REQUESTS.get(method)
    known = dialect.methods.CLIENT_REQUESTS.get(method)
    if known is None or record is None:
        raise UsageError(f"{revision} does not have {method}")
    source: Any = known.params
    target: Any = record.params
    if not (isinstance(target, type) and issubclass(target, msgspec.Struct)):
        return lambda _params, meta: UNSET if meta is UNSET else {"_meta": meta}
    return down(revision).with_meta(source, target)
