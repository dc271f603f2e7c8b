"""The callbacks that answer input requests of a server: sampling, elicitation and roots.

They use the dialect. A modern server puts its input requests into an `InputRequiredResult`, a legacy server sends
requests of its own.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from mcpspec.features import NAME_PARAMS
from mcpspec.support.error_text import format_value
from mcpspec.support.objects import is_object
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.client.options import ConnectOptions, to_root
from typedmcp.errors import (
    DecodeError,
    InvalidParamsError,
    MethodNotFoundError,
    RemoteError,
    UsageError,
    to_invalid_params,
)
from typedmcp.observers import Instrumentation, MessageInfo, default_instrumentation
from typedmcp.protocol.backends import check_struct
from typedmcp.protocol.input_checks import find_answer_fault, find_request_fault
from typedmcp.revisions.capabilities import client_capabilities, missing_capabilities
from typedmcp.revisions.features import methods_of, structs_of
from typedmcp.revisions.input_requests import downgrade_result, upgrade_request
from typedmcp.transports.concurrency import is_awaitable

if TYPE_CHECKING:
    from typedmcp.client.extensions import ClientExtension

__all__ = ["Callbacks", "with_defaults"]

D = dialect.structs

_URL_SCHEMES: Final = frozenset({"https", "http"})
"""The schemes of URLs that reach `elicit_url`."""

ElicitParams: TypeAlias = "D.ElicitRequestFormParams | D.ElicitRequestURLParams"


def with_defaults(params: ElicitParams, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return `content` with the defaults of the form's other fields."""
    schema = to_builtins(params).get("requestedSchema", {})
    fields: dict[str, Any] = schema.get("properties", {})
    defaults = {name: field["default"] for name, field in fields.items() if is_object(field) and "default" in field}
    return {**defaults, **(content or {})}


class Callbacks:
    """The callbacks of a client. The client declares a capability for each callback."""

    def __init__(self, options: ConnectOptions, extensions: Sequence[ClientExtension]) -> None:
        self.extensions: Sequence[ClientExtension] = extensions
        """The extensions that the client supports."""
        self.telemetry: Instrumentation | None = options.get("telemetry", default_instrumentation())
        """Observes the answers to input requests, if the client has telemetry."""
        self._sample = options.get("sample")
        self._elicit = options.get("elicit")
        self._elicit_url = options.get("elicit_url")
        self._roots = options.get("roots")
        self._more_capabilities = _capabilities_of(options)

    def capabilities(self, revision: str) -> Any:
        """Return the capabilities to declare, in the types of a revision."""
        return from_builtins(self.declared(revision), structs_of(revision).ClientCapabilities)

    def declared(self, revision: str) -> dict[str, Any]:
        """Return the capabilities to declare on a revision, as plain JSON."""
        own = client_capabilities(
            revision,
            sampling=self._sample is not None,
            forms=self._elicit is not None,
            urls=self._elicit_url is not None,
            roots=self._roots is not None,
        )
        extensions = self._extensions_on(revision)
        return {**own, **self._more_capabilities, **({"extensions": extensions} if extensions else {})}

    def _extensions_on(self, revision: str) -> dict[str, Any]:
        """Return the extensions to declare on a revision, with their settings."""
        own = {
            each.extension.identifier: dict(each.settings)
            for each in self.extensions
            if revision in each.extension.revisions
        }
        return {**own, **(self._more_capabilities.get("extensions") or {})}

    @property
    def name_params(self) -> Mapping[str, str]:
        """The parameters that the header `Mcp-Name` repeats, by method."""
        if not self.extensions:
            return NAME_PARAMS
        for each in self.extensions:
            if each.names is not None:
                return each.names
        from typedmcp.protocol.extensions import merged_names  # few clients have extensions

        return merged_names(each.extension for each in self.extensions)

    def find_refusal(self, request: Any, revision: str) -> RemoteError | None:
        """Return the error for an input request that must not reach a callback, or None if one may answer it.

        That is `MethodNotFoundError` for a request that the client has not declared, and `InvalidParamsError` for a
        mode or a member that it has not declared, for what the specification forbids, or for a URL that is not for a
        browser.
        """
        declared = self.declared(revision)
        if missing := missing_capabilities(request, declared):
            ((name, parts),) = missing.items()
            if name not in declared:
                return MethodNotFoundError(request.method)
            names = " and ".join(f"{name}.{part}" for part in parts)
            return InvalidParamsError(f"{request.method} needs {names}, which the client has not declared")
        if (fault := find_request_fault(request) or _find_scheme_fault(request)) is not None:
            return InvalidParamsError(f"{request.method} is wrong: {fault}")
        return None if self._callback_for(request) is not None else MethodNotFoundError(request.method)

    def _callback_for(self, request: Any) -> Any:
        if isinstance(request, D.ElicitRequest):
            return self._elicit_url if isinstance(request.params, D.ElicitRequestURLParams) else self._elicit
        return self._roots if isinstance(request, D.ListRootsRequest) else self._sample

    async def answer(self, request: Any, revision: str) -> Any:
        """Return the result for one input request of a modern server that is not refused, in the dialect."""
        if self.telemetry is None:
            return await self._answer(request)
        message = MessageInfo(request.method, None, None, is_known=True)
        return await self.telemetry.observe_answer(message, revision, partial(self._answer, request))

    async def _answer(self, request: Any) -> Any:
        callback = self._callback_for(request)
        if isinstance(request, D.ListRootsRequest):
            roots = await _await(callback()) if callable(callback) else callback
            return D.ListRootsResult(roots=[to_root(root) for root in roots])
        answer = await _await(callback(request.params))
        if isinstance(request, D.CreateMessageRequest):
            return _to_message_result(answer)
        if isinstance(request.params, D.ElicitRequestURLParams):
            return _to_consent(answer)
        return _to_elicit_result(request.params, answer)

    async def answer_legacy(self, method: str, params: bytes, revision: str) -> Any:
        """Return the result for a request of a legacy server, in the types of its revision.

        Raises `RemoteError` for the error to respond with.
        """
        if self.telemetry is None:
            return await self._answer_legacy(method, params, revision)
        answer = partial(self._answer_legacy, method, params, revision)
        from typedmcp.protocol.observation import is_known_method, read_meta  # loaded where it is used

        message = MessageInfo(method, None, read_meta(params), is_known_method(method, revision))
        return await self.telemetry.observe_answer(message, revision, answer)

    async def _answer_legacy(self, method: str, params: bytes, revision: str) -> Any:
        if method == "ping":
            return {}
        if method not in methods_of(revision).SERVER_REQUESTS or method not in dialect.methods.INPUT_REQUESTS:
            raise MethodNotFoundError(method)
        try:
            request = upgrade_request(method, params, revision)
        except DecodeError as error:
            raise to_invalid_params(error) from error
        if (refusal := self.find_refusal(request, revision)) is not None:
            raise refusal
        return downgrade_result(method, await self._answer(request), revision)


def _capabilities_of(options: ConnectOptions) -> Mapping[str, Any]:
    """Return the capabilities to declare in addition, with the extension that a way to sign in belongs to."""
    given = options.get("capabilities") or {}
    name: str | None = getattr(options.get("auth"), "extension", None)
    return given if name is None else {**given, "extensions": {name: {}, **given.get("extensions", {})}}


def _find_scheme_fault(request: Any) -> str | None:
    """Return what is wrong with a URL that could run code or open a program, as `javascript:` and `file:` do."""
    if not isinstance(request, D.ElicitRequest) or not isinstance(request.params, D.ElicitRequestURLParams):
        return None
    if urlsplit(request.params.url).scheme in _URL_SCHEMES:
        return None
    return f"params.url: expected https or http, got {format_value(request.params.url)}"


def _to_message_result(value: Any) -> D.CreateMessageResult:
    if isinstance(value, str):
        return D.CreateMessageResult(role="assistant", model="unknown", content=D.TextContent(text=value))
    if not isinstance(value, D.CreateMessageResult):
        raise UsageError(f"sample returned {type(value).__name__}, expected CreateMessageResult or str")
    try:
        return check_struct(value)
    except DecodeError as error:
        raise UsageError(f"sample returned a wrong CreateMessageResult: {error}") from None


def _to_consent(value: Any) -> D.ElicitResult:
    """Return the result for a URL. Only True and `ElicitResult` can accept: anything else is no consent."""
    if isinstance(value, D.ElicitResult):
        return D.ElicitResult(action=value.action)  # it never has content
    if value is None or isinstance(value, bool):
        return D.ElicitResult(action="accept" if value else "decline")
    raise UsageError(f"elicit_url returned {type(value).__name__}, expected ElicitResult, True, False or None")


def _to_elicit_result(params: D.ElicitRequestFormParams, value: Any) -> D.ElicitResult:
    """Return the result of a callback. Raises `UsageError` if it does not fit the form."""
    result = _as_elicit_result(params, value)
    form: Any = params.requested_schema
    if form is not None and (fault := find_answer_fault(form, result)) is not None:
        raise UsageError(f"elicit returned an answer that does not fit the form: {fault}")
    return result


def _as_elicit_result(params: D.ElicitRequestFormParams, value: Any) -> D.ElicitResult:
    if value is None:
        return D.ElicitResult(action="decline")
    if isinstance(value, D.ElicitResult):
        return value
    if not isinstance(value, Mapping):
        raise UsageError(f"elicit returned {type(value).__name__}, expected ElicitResult, a mapping or None")
    content = with_defaults(params, cast("Mapping[str, Any]", value))
    return from_builtins({"action": "accept", "content": content}, D.ElicitResult)


async def _await(value: Any) -> Any:
    return await value if is_awaitable(value) else value
