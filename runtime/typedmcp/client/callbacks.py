"""The callbacks that answer input requests of a server: sampling, elicitation and roots.

They use the dialect. A modern server puts its input requests into an `InputRequiredResult`, a legacy server sends
requests of its own.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from mcpspec.support.objects import is_object
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.errors import (
    INTERNAL_ERROR,
    DecodeError,
    Error,
    MethodNotFoundError,
    RemoteError,
    UsageError,
    to_invalid_params,
)
from typedmcp.revisions.capabilities import client_capabilities
from typedmcp.revisions.features import methods_of, structs_of
from typedmcp.revisions.input_requests import downgrade_result, upgrade_request
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["Callbacks", "Elicit", "Roots", "Sample", "to_remote_error", "with_defaults"]

D = dialect.structs

ElicitParams: TypeAlias = "D.ElicitRequestFormParams | D.ElicitRequestURLParams"

Sample: TypeAlias = Callable[
    ["D.CreateMessageRequestParams"], "D.CreateMessageResult | Awaitable[D.CreateMessageResult]"
]
"""Asks the model for a message."""

Elicit: TypeAlias = Callable[
    [ElicitParams], "D.ElicitResult | Mapping[str, Any] | Awaitable[D.ElicitResult | Mapping[str, Any] | None] | None"
]
"""Asks the user. A mapping accepts, with this content and the form's defaults for other fields. None declines."""

Roots: TypeAlias = "Sequence[str | D.Root] | Callable[[], Sequence[str | D.Root] | Awaitable[Sequence[str | D.Root]]]"
"""The roots, as URIs or `Root` objects, or a function that returns them."""


def with_defaults(params: ElicitParams, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return `content` with the defaults of the form's other fields."""
    schema = to_builtins(params).get("requestedSchema", {})
    fields: dict[str, Any] = schema.get("properties", {})
    defaults = {name: field["default"] for name, field in fields.items() if is_object(field) and "default" in field}
    return {**defaults, **(content or {})}


@dataclass(frozen=True)
class Callbacks:
    """The callbacks of a client. The client declares a capability for each callback."""

    sample: Sample | None = None
    elicit: Elicit | None = None
    roots: Roots | None = None
    more_capabilities: Mapping[str, Any] | None = None
    """Capabilities in addition to those of the callbacks, such as `{"sampling": {"tools": {}}}`."""

    def capabilities(self, revision: str) -> Any:
        """Return the capabilities to declare, in the types of a revision."""
        declared = client_capabilities(
            revision,
            sampling=self.sample is not None,
            elicitation=self.elicit is not None,
            roots=self.roots is not None,
        )
        return from_builtins({**declared, **(self.more_capabilities or {})}, structs_of(revision).ClientCapabilities)

    async def answer(self, request: Any) -> Any:
        """Return the result for one input request, in the dialect.

        Raises `MethodNotFoundError` for a request whose capability the client has not declared.
        """
        if isinstance(request, D.CreateMessageRequest) and self.sample is not None:
            result = await _await(self.sample(request.params))
            if not isinstance(result, D.CreateMessageResult):
                raise UsageError(f"sample returned {type(result).__name__}, expected CreateMessageResult")
            return result
        if isinstance(request, D.ElicitRequest) and self.elicit is not None:
            return _to_elicit_result(request.params, await _await(self.elicit(request.params)))
        if isinstance(request, D.ListRootsRequest) and self.roots is not None:
            roots = await _await(self.roots()) if callable(self.roots) else self.roots
            return D.ListRootsResult(roots=[D.Root(uri=root) if isinstance(root, str) else root for root in roots])
        raise MethodNotFoundError(str(request.method))

    async def answer_legacy(self, method: str, params: bytes, revision: str) -> Any:
        """Return the result for a request of a legacy server, in the types of its revision.

        Raises `RemoteError` for the error to respond with.
        """
        if method == "ping":
            return {}
        if method not in methods_of(revision).SERVER_REQUESTS or method not in dialect.methods.INPUT_REQUESTS:
            raise MethodNotFoundError(method)
        try:
            request = upgrade_request(method, params, revision)
        except DecodeError as error:
            raise to_invalid_params(error) from error
        return downgrade_result(method, await self.answer(request), revision)


def _to_elicit_result(params: ElicitParams, value: Any) -> D.ElicitResult:
    if value is None:
        return D.ElicitResult(action="decline")
    if isinstance(value, D.ElicitResult):
        return value
    if not isinstance(value, Mapping):
        raise UsageError(f"elicit returned {type(value).__name__}, expected ElicitResult, a mapping or None")
    if isinstance(params, D.ElicitRequestURLParams):
        return D.ElicitResult(action="accept")
    content = with_defaults(params, cast("Mapping[str, Any]", value))
    return from_builtins({"action": "accept", "content": content}, D.ElicitResult)


async def _await(value: Any) -> Any:
    return await value if is_awaitable(value) else value


def to_remote_error(error: BaseException, method: str) -> RemoteError:
    """Return the error response for a callback that failed. Only typedmcp's own exceptions are disclosed."""
    if isinstance(error, RemoteError):
        return error
    return RemoteError(INTERNAL_ERROR, str(error) if isinstance(error, Error) else f"the client failed in {method}")
