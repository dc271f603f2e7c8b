"""Calls: encoding, caching, rounds of input, decoding and validation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from mcpspec.support.methods import Method
from mcpspec.support.structs import from_builtins
from typedmcp import dialect
from typedmcp.client.cache import CacheKey, ResponseCache, cache_key
from typedmcp.client.callbacks import Callbacks
from typedmcp.client.connection import ConnectionManager
from typedmcp.client.negotiation import supported_versions
from typedmcp.client.options import CallOptions, check_call_options
from typedmcp.client.output_validation import OutputValidator
from typedmcp.client.request_encoder import (
    META_PLACEHOLDER,
    is_mapping,
    is_of_mcpspec,
    is_plain_struct,
    revision_of,
    to_dialect_params,
    types_of,
)
from typedmcp.client.result_decoder import ResultProblem, result_decoder
from typedmcp.client.session import ClientSession, SessionLostError
from typedmcp.errors import (
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    DecodeError,
    HeaderMismatchError,
    InputUnavailableError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    UnsupportedVersionError,
    UsageError,
)
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.option_checks import check_integer
from typedmcp.revisions.features import DIALECT, FEATURES

__all__ = ["CallRunner", "Finish"]

D = dialect.structs

Finish: TypeAlias = Callable[[Any, int], Any]
"""Converts the result and the id of a call to the value that the call returns."""


class CallRunner:
    """Makes calls to one server, in its revision, with parameters and results in the dialect."""

    def __init__(
        self,
        connection: ConnectionManager,
        callbacks: Callbacks,
        cache: ResponseCache,
        validator: OutputValidator | None,
        report: Callable[[Diagnostic], None],
    ) -> None:
        self._connection = connection
        self._callbacks = callbacks
        self._cache = cache
        self._validator = validator
        self._report = report
        self._validated_tools: dict[str, D.Tool] = {}
        """The listed tools whose results are validated."""

    def reset(self) -> None:
        """Drop the cached results and tools of the last session."""
        self._cache.clear()
        self._validated_tools.clear()

    async def call(self, method: str, params: Any, options: CallOptions, finish: Finish | None = None) -> Any:
        """Call a method of the dialect, within the time for all rounds. Return the result as converted by `finish`."""
        check_call_options(options)
        max_time = options.get("max_time", self._connection.max_time)
        try:
            async with asyncio.timeout(max_time):
                return await self._call_in_rounds(method, params, options, finish)
        except TimeoutError:
            raise RequestTimeoutError(max_time or 0.0).attach_call(method, "none") from None

    async def call_record(self, record: Method[Any, Any], params: Any, options: CallOptions) -> Any:
        """Call a method by its record, with its parameters and result in the record's revision."""
        if record.sender == "server" or record.kind == "notification":
            raise UsageError(f"{record.name} is not a request of clients")
        session = await self._connection.connect()
        if not is_of_mcpspec(record):
            return await self._call_own(session, record, params, options)
        revision, negotiated = revision_of(record), self._connection.server.revision
        if revision == DIALECT:
            result = await self.call(record.name, to_dialect_params(record, params or {}), options)
            if is_plain_struct(record):
                return result
            return types_of(record).from_builtins(D.to_builtins(result), record.result)
        if revision != negotiated:
            raise UsageError(f"{record.name} is a method of {revision}; the server speaks {negotiated}")
        exact = self._connection.encoder.exact_params(record, params, options.get("meta"))
        raw, id = await self.exchange(session, record.name, exact, options)
        try:
            return types_of(record).decode(bytes(raw), record.result)
        except DecodeError as error:
            raise _to_protocol_error(error).attach_call(record.name, id) from error

    async def _call_own(
        self, session: ClientSession, record: Method[Any, Any], params: Any, options: CallOptions
    ) -> Any:
        """Call a method of a package that extends the protocol, with the types of that package."""
        plain = self._connection.encoder.own_params(record, params, options.get("meta"))
        raw, id = await self.exchange(session, record.name, plain, options)
        try:
            return types_of(record).decode(bytes(raw), record.result)
        except DecodeError as error:
            raise _to_protocol_error(error).attach_call(record.name, id) from error

    async def notify(self, record: Method[Any, Any], params: Any) -> None:
        """Send a notification of a package that extends the protocol."""
        if record.kind != "notification" or record.sender == "server" or is_of_mcpspec(record):
            raise UsageError(f"{record.name} is not a notification of a package that extends the protocol")
        session = await self._connection.connect()
        session.notify(record.name, self._connection.encoder.own_params(record, params, None))

    async def call_plain(self, method: str, params: Mapping[str, Any] | None, options: CallOptions) -> Any:
        """Call a method that the protocol does not have, with plain JSON as parameters and result."""
        session = await self._connection.connect()
        plain = self._connection.encoder.plain_params(params, options.get("meta"))
        raw, id = await self.exchange(session, method, plain, options)
        try:
            return msgspec.json.decode(raw)
        except ValueError as error:
            raise ProtocolError(f"result: {error}").attach_call(method, id) from error

    async def list_page(self, method: str, cursor: str | None, options: CallOptions) -> Any:
        """Call a method that lists something. Return one page."""
        params = D.PaginatedRequestParams(meta=META_PLACEHOLDER)
        if cursor is not None:
            params.cursor = cursor
        return await self.call(method, params, options)

    # Rounds of input

    async def _call_in_rounds(self, method: str, params: Any, options: CallOptions, finish: Finish | None) -> Any:
        """Repeat a call with the requested input until it has a result."""
        rounds = options.get("rounds")
        if rounds is None:
            rounds = self._connection.limits.input_rounds
        check_integer("rounds", rounds)
        if rounds < 0:
            raise UsageError(f"rounds must not be negative, got {rounds}")
        for _ in range(rounds + 1):
            session = await self._connection.connect()
            key = None if options.get("fresh") else self._cache_key(method, params)
            cached = None if key is None else self._cache.get(key, self._now())
            if cached is not None:
                return self._decode(method, Raw(cached), 0)
            generation = self._cache.generation
            try:
                raw, id = await self.exchange(session, method, params, options, is_dialect=True)
            except RemoteError as error:
                if error.code != URL_ELICITATION_REQUIRED or not rounds:
                    raise
                await self._elicit_urls(error)
                continue
            result = self._decode(method, raw, id)
            needs_input = isinstance(result, D.InputRequiredResult)
            if not needs_input or not rounds:
                self._validate_output(params, result, id)
                if key is not None and not needs_input:
                    self._cache.put(key, bytes(raw), result.ttl_ms, self._now(), generation)
                return result if finish is None else finish(result, id)
            params = await self._add_input(method, params, result)
        raise InputUnavailableError(f"{method}: the server requested input more than {rounds} times")

    async def _add_input(self, method: str, params: Any, result: D.InputRequiredResult) -> Any:
        """Return the parameters of the next round, with the requested input and the unchanged server state."""
        requests = result.input_requests or {}
        responses = {key: await self._answer(method, request) for key, request in requests.items()}
        return msgspec.structs.replace(params, input_responses=responses or None, request_state=result.request_state)

    async def _answer(self, method: str, request: Any) -> Any:
        try:
            return await self._callbacks.answer(request)
        except RemoteError as error:
            if error.code == METHOD_NOT_FOUND:
                text = f"{method}: the server requested {request.method}, which the client has not declared"
                raise ProtocolError(text) from error
            raise

    async def _elicit_urls(self, error: RemoteError) -> None:
        """Ask the user to open the URLs in an error of 2025-11-25. Raises the error if the user does not accept."""
        try:
            elicitations = from_builtins(error.data, _UrlElicitations).elicitations
        except DecodeError:
            raise error from None
        for elicitation in elicitations:
            params = D.ElicitRequestURLParams(message=elicitation.message, url=elicitation.url)
            answer = await self._callbacks.answer(D.ElicitRequest(params=params))
            if answer.action != "accept":
                raise error

    # One exchange

    async def exchange(
        self, session: ClientSession, method: str, params: Any, options: CallOptions, *, is_dialect: bool = False
    ) -> tuple[Raw, int]:
        """Send a request and return its result and id. Sends it again if the server did not execute it.

        With `is_dialect` the parameters are in the dialect, otherwise they are sent as they are.
        """
        check_call_options(options)
        try:
            return await self._exchange_once(session, method, params, options, is_dialect=is_dialect)
        except SessionLostError:
            session = await self._connection.connect()
        except RemoteError as error:
            if self._connection.param_headers is None or not await self._can_repeat(error, method, params):
                raise
        return await self._exchange_once(session, method, params, options, is_dialect=is_dialect)

    async def _can_repeat(self, error: RemoteError, method: str, params: Any) -> bool:
        """Return whether the same call may succeed now: with other headers, or with a server that was upgraded."""
        if error.code == UnsupportedVersionError.CODE:
            return self._connection.server.revision in supported_versions(error)
        if error.code != HeaderMismatchError.CODE or method != "tools/call":
            return False
        name = params.get("name") if is_mapping(params) else params.name
        cursor: str | None = None
        for _ in range(self._connection.limits.list_pages):  # listing tools updates their headers
            page = await self.list_page("tools/list", cursor, {"fresh": True})
            if page.next_cursor is None or any(tool.name == name for tool in page.tools):
                break
            cursor = page.next_cursor
        return True

    async def _exchange_once(
        self, session: ClientSession, method: str, params: Any, options: CallOptions, *, is_dialect: bool
    ) -> tuple[Raw, int]:
        on_progress = options.get("on_progress")
        call = session.start_call(
            method,
            timeout=options.get("timeout", self._connection.timeout),
            latest=options.get("max_time", self._connection.max_time),
            on_progress=on_progress,
        )
        if is_dialect:
            members = options.get("meta")
            if on_progress is not None:
                members = {**(members or {}), "progressToken": call.id}
            try:
                encoder = self._connection.encoder
                params = encoder.params(method, params, encoder.meta(members))
            except BaseException:
                session.requests.cancel_call(call.id)
                raise
        elif on_progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": call.id}}
        return await session.exchange(call, params), call.id

    # Results

    def _decode(self, method: str, raw: Raw, id: int) -> Any:
        problems: list[ResultProblem] = []
        try:
            result = result_decoder(method, self._connection.server.revision)(raw, problems)
        except DecodeError as error:
            raise _to_protocol_error(error).attach_call(method, id) from error
        except ProtocolError as error:
            raise error.attach_call(method, id) from None
        if self._connection.param_headers is not None and method == "tools/list":
            result.tools = self._connection.param_headers.register_tools(result.tools, self._report)
        for problem in problems:
            self._report(Diagnostic(DiagnosticKind.INVALID_DATA, str(problem), method, params=problem.value))
        return result

    def _validate_output(self, params: Any, result: Any, id: int) -> None:
        """Note the output schemas of listed tools, and validate the results of called ones.

        Raises `ProtocolError` for a result that does not fit the `outputSchema` of its tool.
        """
        if self._validator is None:
            return
        if isinstance(result, D.ListToolsResult):
            for tool in result.tools:
                self._validated_tools.pop(tool.name, None)
                if tool.output_schema is not None:
                    self._add_validated_tool(self._validator, tool)
        elif isinstance(result, D.CallToolResult) and self._validated_tools:
            called_tool = self._validated_tools.get(params.name)
            fault = None if called_tool is None else self._validator.find_fault(called_tool, result)
            if fault is not None:
                raise ProtocolError(f"result.{fault}").attach_call("tools/call", id)

    def _add_validated_tool(self, validator: OutputValidator, tool: D.Tool) -> None:
        problem = validator.find_problem(tool)
        if problem is None:
            self._validated_tools[tool.name] = tool
        else:
            text = f"the results of {tool.name} cannot be validated: {problem}"
            self._report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list", params=problem.value))

    def _cache_key(self, method: str, params: Any) -> CacheKey | None:
        return cache_key(method, params) if FEATURES[self._connection.server.revision].has_cache_hints else None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class _UrlElicitation(msgspec.Struct):
    message: str
    url: str


class _UrlElicitations(msgspec.Struct):
    """The `data` of a `URL_ELICITATION_REQUIRED` error (2025-11-25)."""

    elicitations: list[_UrlElicitation]


def _to_protocol_error(error: DecodeError) -> ProtocolError:
    """Return the error for a result that does not fit its method."""
    if error.path.startswith("result"):
        return ProtocolError(str(error))
    separator = "." if error.path and not error.path.startswith("[") else ""
    return ProtocolError(f"result{separator}{error.path}: {error.reason}")
