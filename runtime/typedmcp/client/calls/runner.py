"""Calls: encoding, caching, rounds of input, decoding and validation."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from mcpspec.support.structs import from_builtins
from typedmcp import dialect
from typedmcp.client.connection.manager import ConnectionManager
from typedmcp.client.incoming.callbacks import Callbacks
from typedmcp.client.incoming.handler import IncomingMessageHandler
from typedmcp.client.options import CallOptions, check_call_options
from typedmcp.client.requests.encoder import META_PLACEHOLDER, is_mapping
from typedmcp.client.results.cache import CacheKey, ResponseCache, cache_key
from typedmcp.client.results.decoder import ResultDecoder, ResultProblem, result_decoder, to_protocol_error
from typedmcp.client.results.icons import drop_unsafe_icons
from typedmcp.client.results.output_validation import ListedTools
from typedmcp.client.session.session import ClientSession, RepeatableError
from typedmcp.errors import (
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    DecodeError,
    HeaderMismatchError,
    InputUnavailableError,
    InvalidParamsError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    UnsupportedVersionError,
    UsageError,
)
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.option_checks import check_integer
from typedmcp.protocol.pending import Call
from typedmcp.revisions.features import FEATURES
from typedmcp.revisions.results import CACHEABLE_METHODS

if TYPE_CHECKING:
    from typedmcp.client.extensions import LegacyCallForm

__all__ = ["CallRunner", "Finish", "UrlElicitation", "UrlElicitations"]

D = dialect.structs

_FIRST_PAUSE: Final = 0.1
"""Seconds before a call whose result is only a state is repeated. Doubled each time."""

_MAX_PAUSE: Final = 5.0


class _Unfinished:
    """A round after which a call is repeated, and why: the input that the server requests, or its error."""

    __slots__ = ("reason",)

    def __init__(self, reason: D.InputRequiredResult | RemoteError | None) -> None:
        self.reason: Any = reason


_NOT_BEGUN: Final = _Unfinished(None)

Finish: TypeAlias = Callable[[Any, int], Any]
"""Converts the result and the id of a call to the value that the call returns."""


class CallRunner:
    """Makes calls to one server, in its revision, with parameters and results in the dialect."""

    def __init__(
        self,
        connection: ConnectionManager,
        callbacks: Callbacks,
        cache: ResponseCache,
        checks_output: bool,
        incoming: IncomingMessageHandler,
    ) -> None:
        self._connection = connection
        self._callbacks = callbacks
        self._cache = cache
        self._incoming = incoming
        self._decoders: dict[tuple[str, str], ResultDecoder] = {}
        """The decoders of results by method and revision."""
        self._newer: defaultdict[str, set[str]] = defaultdict(set)
        """The members of newer revisions that were reported, by method."""
        self.completions: Mapping[type, Callable[[str, Any, Any, CallOptions], Awaitable[Any]]] = {}
        """The functions that turn results of extensions into those of calls, by type."""
        self.legacy_forms: Sequence[LegacyCallForm] = ()
        """The forms that extensions have on revisions whose protocol has them."""
        self._tools = ListedTools(connection.limits, incoming.report) if checks_output else None

    def reset(self) -> None:
        """Drop the cached results and tools of the last session."""
        self._cache.clear()
        if self._tools is not None:
            self._tools.clear()

    async def call(self, method: str, params: Any, options: CallOptions, finish: Finish | None = None) -> Any:
        """Call a method of the dialect, within the time for all rounds. Return the result as converted by `finish`."""
        check_call_options(options)
        rounds = self._rounds_of(options)
        session = self._connection.session
        start = asyncio.get_running_loop().time() if session is None or session.has_ended else session.time()
        outcome: Any = _NOT_BEGUN
        # Most calls need one round, which the session itself ends in time. The timer below is dear.
        if session is not None and not session.has_ended and not self.completions:
            outcome = await self._make_round(session, method, params, options, finish, rounds)
            if outcome.__class__ is not _Unfinished:
                return outcome
        max_time = options.get("max_time", self._connection.max_time)
        try:
            async with asyncio.timeout_at(None if max_time is None else start + max_time):
                result = await self._finish_rounds(method, params, options, finish, rounds, outcome)
                if not self.completions or "max_time" in options:
                    return await self._complete(method, params, result, options, finish)
        except TimeoutError:
            raise RequestTimeoutError(max_time or 0.0).attach_call(method, "none") from None
        return await self._complete(method, params, result, options, finish)  # which the usual time does not limit

    async def _complete(
        self, method: str, params: Any, result: Any, options: CallOptions, finish: Finish | None
    ) -> Any:
        """Return the result that a function of an extension makes of one of its results; others unchanged."""
        complete = self.completions.get(result.__class__)
        if complete is None:
            return result
        made = await complete(method, params, result, options)
        self._validate_output(params, made, 0)
        return made if finish is None else finish(made, 0)

    async def list_page(self, method: str, cursor: str | None, options: CallOptions) -> Any:
        """Call a method that lists something. Return one page. If the server rejects the cursor, forget all pages."""
        params = D.PaginatedRequestParams(meta=META_PLACEHOLDER)
        if cursor is not None:
            params.cursor = cursor
        try:
            page = await self.call(method, params, options)
        except InvalidParamsError:
            if cursor is not None:
                self._cache.invalidate(method)
            raise
        # An empty cursor ends the lists of some legacy servers. Modern revisions forbid that.
        is_end = page.next_cursor == "" and not FEATURES[self._connection.server.revision].is_modern
        if is_end and self._incoming.tolerate("result.nextCursor: an empty cursor was read as absent", method):
            page.next_cursor = None
        return page

    async def list_items(self, method: str, member: str, key: str, options: CallOptions) -> AsyncGenerator[Any]:
        """Iterate over the items of all pages, whose names are the attribute `key`.

        If the server rejects a cursor, begin again, once, with the others. The list ends at a page that brings nothing
        new, and has a cursor that an earlier page had.
        """
        limit = self._connection.limits.list_pages
        cursor: str | None = None
        seen, cursors = set[str](), set[int]()
        has_begun_again = False
        for _ in range(limit):
            try:
                page = await self.list_page(method, cursor, options)
            except InvalidParamsError:
                if cursor is None or has_begun_again:
                    raise
                cursor, has_begun_again = None, True
                cursors.clear()
                continue
            items = {getattr(item, key): item for item in getattr(page, member)}
            cursor = page.next_cursor
            if items.keys() <= seen and hash(cursor) in cursors:
                text = f"result.nextCursor: it repeats, and brings no more {member}: the list was read as ended"
                if not self._incoming.tolerate(text, method):
                    raise ProtocolError(text)
                return
            for name, item in items.items():
                if not has_begun_again or name not in seen:
                    yield item
            if cursor is None:
                return
            seen.update(items)
            cursors.add(hash(cursor))  # a cursor may be as long as a message
            await asyncio.sleep(0)  # pages from the cache come without waiting
        raise ProtocolError(f"the server has more than {limit} pages of {member}")

    # Rounds of input

    async def _finish_rounds(
        self, method: str, params: Any, options: CallOptions, finish: Finish | None, rounds: int, outcome: Any
    ) -> Any:
        """Repeat a call with the requested input until it has a result. `outcome` is that of its first round."""
        pause = _FIRST_PAUSE
        for _ in range(rounds + 1):
            if outcome is _NOT_BEGUN:
                session = await self._connection.connect()
                outcome = await self._make_round(session, method, params, options, finish, rounds)
            if outcome.__class__ is not _Unfinished:
                return outcome
            reason, outcome = outcome.reason, _NOT_BEGUN
            if isinstance(reason, RemoteError):
                await self._elicit_urls(method, reason)
                continue
            params = await self._add_input(method, params, reason)
            if not reason.input_requests:  # the server is not ready, and nothing else slows the repetition down
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
        raise InputUnavailableError(f"{method}: the server requested input more than {rounds} times")

    async def _make_round(
        self, session: ClientSession, method: str, params: Any, options: CallOptions, finish: Finish | None, rounds: int
    ) -> Any:
        """Send a request and return the value of the call, or `_Unfinished` if it needs another round."""
        key = self._cache_key(method, params, options)
        cached = None if key is None else self._cache.get(key, session.time())
        if cached is not None:
            return self.decode(method, Raw(cached), 0)
        generation = self._cache.generation
        try:
            if self.legacy_forms or (direct := session.direct) is None or session.is_congested:
                exchange: Any = self._exchange_in_any_form if self.legacy_forms else self.exchange
                raw, id = await exchange(session, method, params, options, is_dialect=True)
                if raw.__class__ is not Raw:
                    return raw
            else:
                call, encoded = self._start_call(session, method, params, options, is_dialect=True)
                try:
                    raw, id = await direct.begin(call, encoded), call.id
                except asyncio.CancelledError:
                    direct.withdraw(call)
                    raise
        except RemoteError as error:
            if error.code != URL_ELICITATION_REQUIRED or not rounds:
                raise
            return _Unfinished(error)
        if "on_progress" in options:
            await self._incoming.running.settle()
        result = self.decode(method, raw, id)
        needs_input = isinstance(result, D.InputRequiredResult)
        if needs_input and rounds:
            return _Unfinished(result)
        self._validate_output(params, result, id)
        if key is not None and not needs_input:
            is_public = result.cache_scope == "public"
            self._cache.put(key, bytes(raw), result.ttl_ms, session.time(), generation, is_public=is_public)
        return result if finish is None else finish(result, id)

    async def _exchange_in_any_form(
        self, session: ClientSession, method: str, params: Any, options: CallOptions, *, is_dialect: bool
    ) -> tuple[Any, int]:
        """Make a call, in the form of an extension if one has it on the server's revision: that may have the value."""
        for form in self.legacy_forms:
            is_used = self._connection.server.revision in form.revisions
            if is_used and (made := await form.call(method, params, options)) is not None:
                return made, 0
        return await self.exchange(session, method, params, options, is_dialect=is_dialect)

    def _rounds_of(self, options: CallOptions) -> int:
        """Return how many times a call may be repeated. Raises `UsageError` for a wrong option."""
        rounds = options.get("rounds")
        if rounds is None:
            return self._connection.limits.input_rounds
        check_integer("rounds", rounds)
        if rounds < 0:
            raise UsageError(f"rounds must not be negative, got {rounds}")
        return rounds

    async def _add_input(self, method: str, params: Any, result: D.InputRequiredResult) -> Any:
        """Return the parameters of the next round, with the requested input and the unchanged server state."""
        requests = result.input_requests or {}
        if not requests and result.request_state is None:
            raise ProtocolError(f"{method}: the server requested no input and gave no state to continue with")
        limit = self._connection.limits.input_requests
        if len(requests) > limit:
            text = (
                f"{method}: the server requested {len(requests)} inputs at once; the limit is {limit} (input_requests)"
            )
            raise InputUnavailableError(text)
        responses = {key: await self.answer(method, request) for key, request in requests.items()}
        return msgspec.structs.replace(params, input_responses=responses or None, request_state=result.request_state)

    async def answer(self, method: str, request: Any) -> Any:
        """Answer an input request with a callback. Raises `ProtocolError` for one that the client has not declared."""
        refusal = self._callbacks.find_refusal(request, self._connection.server.revision)
        if refusal is None:
            return await self._callbacks.answer(request, self._connection.server.revision)
        if refusal.code == METHOD_NOT_FOUND:
            text = f"{method}: the server requested {request.method}, which the client has not declared"
            raise ProtocolError(text) from refusal
        raise ProtocolError(f"{method}: the server's {refusal.message}") from refusal

    async def _elicit_urls(self, method: str, error: RemoteError) -> None:
        """Ask the user to open the URLs in an error of 2025-11-25.

        Raises the error if the user does not accept, or the client has not declared that it can ask, and
        `InputUnavailableError` for too many URLs.
        """
        try:
            elicitations = from_builtins(error.data, UrlElicitations).elicitations
        except DecodeError:
            raise error from None
        limit = self._connection.limits.input_requests
        if len(elicitations) > limit:
            count = f"{len(elicitations)} URLs at once; the limit is {limit} (input_requests)"
            raise InputUnavailableError(f"{method}: the server wants to open {count}") from error
        for elicitation in elicitations:
            params = D.ElicitRequestURLParams(message=elicitation.message, url=elicitation.url)
            request = D.ElicitRequest(params=params)
            if self._callbacks.find_refusal(request, self._connection.server.revision) is not None:
                raise error
            answer = await self._callbacks.answer(request, self._connection.server.revision)
            if answer.action != "accept":
                raise error

    # One exchange

    async def exchange(
        self, session: ClientSession, method: str, params: Any, options: CallOptions, *, is_dialect: bool = False
    ) -> tuple[Raw, int]:
        """Send a request and return its result and id. Sends it again, with a new id, if that is safe.

        With `is_dialect` the parameters are in the dialect, otherwise they are sent as they are.
        """
        check_call_options(options)
        start = session.time()
        try:
            call, encoded = self._start_call(session, method, params, options, is_dialect=is_dialect)
            return await session.exchange(call, encoded), call.id
        except RepeatableError:
            rejection = None
        except RemoteError as error:
            if self._connection.heads is None:
                raise
            rejection = error
        max_time = options.get("max_time", self._connection.max_time)
        try:
            async with asyncio.timeout_at(None if max_time is None else start + max_time):
                if rejection is None:
                    session = await self._connection.connect()
                elif not await self._can_repeat(rejection, method, params):
                    raise rejection
                call, encoded = self._start_call(session, method, params, options, is_dialect=is_dialect)
                return await session.exchange(call, encoded), call.id
        except TimeoutError:
            raise RequestTimeoutError(max_time or 0.0).attach_call(method, "none") from None

    async def _can_repeat(self, error: RemoteError, method: str, params: Any) -> bool:
        """Return whether the same call may succeed now: with other headers, or with a server that was upgraded."""
        if isinstance(error, UnsupportedVersionError):
            return self._connection.server.revision in error.supported
        if error.code != HeaderMismatchError.CODE or method != "tools/call":
            return False
        name = params.get("name") if is_mapping(params) else params.name
        async with aclosing(self.list_items("tools/list", "tools", "name", {"fresh": True})) as tools:
            async for tool in tools:  # which updates their headers
                if tool.name == name:
                    break
        return True

    def _start_call(
        self, session: ClientSession, method: str, params: Any, options: CallOptions, *, is_dialect: bool
    ) -> tuple[Call, Any]:
        """Register a call, and return it with its parameters in the server's revision."""
        if self._connection.undeclared:
            self._connection.check_declared(method)
        timeout, latest, on_progress = self._connection.timeout, self._connection.max_time, None
        if options:
            timeout, latest = options.get("timeout", timeout), options.get("max_time", latest)
            on_progress = options.get("on_progress")
        call = session.start_call(method, timeout=timeout, latest=latest, on_progress=on_progress)
        if is_dialect:
            if self._tools is not None and method == "tools/call":
                self._tools.prepare(params.name)
            encoder = self._connection.encoder
            members = encoder.members(options) if options else None
            if on_progress is not None:
                members = {**(members or {}), "progressToken": call.id}
            try:
                params = encoder.params(method, params, encoder.meta(members))
            except BaseException:
                session.requests.cancel_call(call.id)
                raise
        elif on_progress is not None:
            params = {**params, "_meta": _with_token(params.get("_meta", {}), call.id)}
        return call, params

    # Results

    def decode(self, method: str, raw: Raw, id: int) -> Any:
        """Decode a result into the dialect. `id` is that of the request, for errors."""
        found: list[ResultProblem] = []
        try:
            result = self._decoder_of(method)(raw, found, self._connection.limits.result_problems, self._newer[method])
        except DecodeError as error:
            raise to_protocol_error(error).attach_call(method, id) from error
        except ProtocolError as error:
            raise error.attach_call(method, id) from None
        if self._connection.heads is not None and method == "tools/list":
            result.tools = self._connection.heads.register_tools(result.tools, self._incoming.report)
        if self._incoming.is_strict and (faults := [each for each in found if not each.is_allowed]):
            raise ProtocolError(str(faults[0])).attach_call(method, id)
        for problem in found:
            kind = DiagnosticKind.TOLERATED if problem.is_tolerated else DiagnosticKind.INVALID_DATA
            self._incoming.report(Diagnostic(kind, str(problem), method, params=problem.value))
        drop_unsafe_icons(method, result, self._incoming.report)
        return result

    def _decoder_of(self, method: str) -> ResultDecoder:
        key = (method, self._connection.server.revision)
        decoder = self._decoders.get(key)
        if decoder is None:
            added = tuple(
                (name, result.kind)
                for each in self._callbacks.extensions
                for (extended, name), result in each.extension.results.items()
                if extended == method
            )
            decoder = self._decoders[key] = result_decoder(*key, added)
        return decoder

    def _cache_key(self, method: str, params: Any, options: CallOptions) -> CacheKey | None:
        has_hints = method in CACHEABLE_METHODS and FEATURES[self._connection.server.revision].has_cache_hints
        return cache_key(method, params) if has_hints and not options.get("fresh") else None

    def _validate_output(self, params: Any, result: Any, id: int) -> None:
        """Note the output schemas of listed tools, and validate the results of called ones.

        Raises `ProtocolError` for a result that does not fit the `outputSchema` of its tool.
        """
        if self._tools is None:
            return
        if isinstance(result, D.CallToolResult):
            if (fault := self._tools.find_fault(params.name, result)) is not None:
                raise ProtocolError(f"result.{fault}").attach_call("tools/call", id)
        elif isinstance(result, D.ListToolsResult):
            self._tools.add(result.tools)


def _with_token(meta: Any, token: int) -> dict[str, Any]:
    """Return a `_meta`, which may be encoded already, with a progress token."""
    members: dict[str, Any] = msgspec.json.decode(meta) if isinstance(meta, Raw) else meta
    return {**members, "progressToken": token}


class UrlElicitation(msgspec.Struct):
    """A URL to open, in an error of 2025-11-25."""

    message: str
    url: str


class UrlElicitations(msgspec.Struct):
    """The `data` of a `URL_ELICITATION_REQUIRED` error (2025-11-25)."""

    elicitations: list[UrlElicitation]
