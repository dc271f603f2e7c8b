"""Serving one POST until its response is sent: its handlers, its stream, and the disconnection of its client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from mcpspec.support.objects import is_array, is_object
from typedmcp.protocol.budgets import Hold
from typedmcp.protocol.garbage import collector_paused
from typedmcp.revisions.features import FEATURES
from typedmcp.server.batches import without_results
from typedmcp.server.calls import LISTEN, SuspendedCall
from typedmcp.server.context import Context
from typedmcp.server.http.channel import HttpChannel
from typedmcp.server.http.messages import (
    LARGE_BODY_BYTES,
    REQUEST_SCOPE,
    RETRY_LATER,
    HTTPException,
    Receive,
    accepts,
    respond,
    wait_for_disconnect,
)
from typedmcp.server.http.stored_session import StoredSession
from typedmcp.server.http.streams import STREAM_HEADERS, EventStream, whole_stream

__all__ = ["Post"]

_STORED = frozenset(("subscribe", "unsubscribe"))
"""The handlers that wait for the store alone."""


class Post:
    """One POST that has no immediate response. `stored` is its session, if it has one."""

    __slots__ = ("_channel", "_pumping", "_receive", "_state", "_stored", "_watching")

    def __init__(self, channel: HttpChannel, receive: Receive, stored: StoredSession | None = None) -> None:
        self._channel = channel
        self._receive = receive
        self._stored = stored
        self._state = channel.target.state
        self._pumping: asyncio.Task[None] | None = None
        """Sends the stream while the handler waits or changes are stored; None if `finish` sends it itself."""
        self._watching: tuple[asyncio.Task[None], asyncio.TimerHandle] | tuple[()] = ()
        """Wait for a disconnection and for a long silence, once the handler has waited for a moment."""

    async def run(self, body: bytes) -> None:
        """Handle the message, and send the response."""
        channel = self._channel
        if self._state.config.record is not None:
            channel.on_frame = channel.target.open_frames()
            if channel.on_frame is not None:
                channel.on_frame("client", body)
        if len(body) > LARGE_BODY_BYTES:
            suspended = await self._handle_in_turn(body)
        else:
            suspended = channel.target.calls.begin(body, channel)
        del body
        try:
            await self.finish(suspended)
        except HTTPException as error:
            error.on_frame = channel.on_frame
            raise

    async def _handle_in_turn(self, body: bytes) -> SuspendedCall:
        """Handle a large message, which takes long to decode: all of them get at most half of the loop's time."""
        slots, client = self._state.large_bodies, self._channel.client
        await slots.acquire(client)
        loop = self._state.loop
        began = loop.time()
        try:
            with collector_paused():  # looking for cycles in a decoded message would take two thirds of the time
                return self._channel.target.calls.begin(body, self._channel)
        finally:
            loop.call_later(loop.time() - began, slots.release, client)

    async def finish(self, suspended: SuspendedCall) -> None:
        """Wait for the handlers of the message, and send the response."""
        channel, stored = self._channel, self._stored
        channel.on_stream = self._start_pumping
        if channel.stream is not None and (channel.line is None or (stored is not None and stored.is_unsaved)):
            self._start_pumping(channel.stream)
        if suspended is not None:
            if not await self._await_handler(*suspended):
                return
            del suspended  # it would keep the result
        while channel.line is None and channel.open_requests > 0:
            await self._wait_for_change()
        if channel.stream is not None and channel.line is None:
            channel.stream.end()
        headers = await self._save_changes(stored) if stored is not None and stored.is_unsaved else None
        if channel.stream is not None:
            await (channel.stream.pump() if self._pumping is None else self._pumping)
        elif headers or not (
            channel.write and channel.line and channel.code is None and len(channel.line) <= LARGE_BODY_BYTES
            and channel.write(channel.line)
        ):  # fmt: skip
            await self._respond(headers)
        channel.on_stream = channel.on_change = None  # they refer to this object

    # Handlers that wait

    async def _await_handler(self, ctx: Context, rest: Awaitable[bool]) -> bool:
        """Run a handler to its end, in the same task as its first step. Return False if it has been cut short."""
        task = asyncio.current_task()
        assert task is not None
        outside = task.cancelling()
        release = self._channel.target.calls.hold(ctx, task)
        if ctx.method == LISTEN:  # which waits for as long as the client is there
            self._start_watching(ctx, self._receive)
        else:
            self._state.waiting.add(ctx, self._start_watching, self._receive)
        try:
            has_ended = await rest
        finally:
            release()
            self._state.waiting.remove(ctx)
            self._stop_watching()
        if task.cancelling() > outside:
            if not has_ended and not ctx.cancelled:  # the server is stopping
                await self._end_response()
                return False
            await _absorb_cancellation(task, outside)
        return True

    def _start_watching(self, ctx: Context, receive: Receive) -> None:
        """Notice from now on when the client disconnects, which can then resume the stream of a stored session."""
        self._watch(receive, lambda: [ctx])
        channel = self._channel
        is_short = ctx.method_codec.handler_name in _STORED  # one answer of the store
        if channel.target.stored_id is None or channel.stream is not None or ctx.id is None or is_short:
            return
        if FEATURES[ctx.revision].has_empty_events:  # the revision can begin a stream without a message
            channel.open_stream(ctx)

    def _watch(self, receive: Receive, open_calls: Callable[[], Sequence[Context]]) -> None:
        """Notice when the client disconnects, and when nothing is sent for long: proxies close such a connection."""

        async def watch() -> None:
            await wait_for_disconnect(receive)
            for ctx in open_calls():
                self._on_disconnect(ctx)

        def break_silence() -> None:
            if self._channel.stream is None and (asked := [ctx for ctx in open_calls() if ctx.id is not None]):
                self._channel.open_stream(asked[0])

        loop = self._state.loop
        self._watching = loop.create_task(watch()), loop.call_later(self._state.keep_alive, break_silence)

    def _stop_watching(self) -> None:
        for each in self._watching:
            each.cancel()

    def _on_disconnect(self, ctx: Context) -> None:
        """Cancel the request of a client that has disconnected. In a session it goes on, and stores its events."""
        if self._channel.target.stored_id is None:
            self._channel.target.calls.cancel(ctx)
        if self._channel.stream is not None:
            self._channel.stream.detach()

    async def _end_response(self) -> None:
        """Send the available part of the response, since the server is closing."""
        if self._channel.stream is not None and self._pumping is not None:
            self._channel.stream.end()
            await asyncio.wait([self._pumping], timeout=self._state.config.grace)
        else:
            await self._respond(None)

    async def _wait_for_change(self) -> None:
        """Wait until a handler that has a task of its own has responded."""
        changed = self._state.loop.create_future()
        self._channel.on_change = lambda: None if changed.done() else changed.set_result(None)
        self._watch(self._receive, self._open_calls)
        try:
            await changed
        finally:
            self._stop_watching()

    def _open_calls(self) -> list[Context]:
        in_flight = self._channel.target.calls.session.in_flight.values()
        return [ctx for ctx in in_flight if self._channel in (ctx.channel, getattr(ctx.channel, "parent", None))]

    # The response

    def _start_pumping(self, stream: EventStream) -> None:
        """Send a stream in a task of its own. One that is complete before `finish` needs none."""
        self._pumping = self._state.loop.create_task(stream.pump())
        self._pumping.add_done_callback(lambda _: self._state.forget_stream(stream))  # it may end before it begins

    async def _save_changes(self, stored: StoredSession) -> list[tuple[bytes, bytes]] | None:
        """Store the changes of the session, and return further headers of the response."""
        try:
            return await stored.save_for(self._channel)
        except ConnectionError as error:
            if self._channel.stream is None:
                raise
            self._state.report_unreachable_store(error)
            return None

    async def _respond(self, headers: list[tuple[bytes, bytes]] | None) -> None:
        """Send a response that is not a stream. `headers` are those of a result."""
        channel = self._channel
        line = channel.line
        status = channel.status or 200
        if line is None:
            await respond(channel.send, 202)
        elif channel.scope is None and status == 200 and not accepts(channel.headers, b"application/json"):
            if channel.on_frame is not None:
                channel.on_frame("server", line)
            body, media = whole_stream(line), STREAM_HEADERS
            await respond(channel.send, status, body, headers, media=media)
        elif channel.code is not None:
            await respond(channel.send, status, line, self._headers_of_error(status, line), channel.on_frame)
        elif len(line) <= LARGE_BODY_BYTES:
            await respond(channel.send, 200, line, headers, channel.on_frame)
        else:  # it counts until the client has read it; an error if its client holds its share
            with Hold(self._state.config.budgets.calls, channel.client) as hold:
                if not hold.take(len(line)):
                    line = channel.line = without_results(line)  # the result may be large
                await respond(channel.send, 200, line, headers, channel.on_frame)

    def _headers_of_error(self, status: int, line: bytes) -> list[tuple[bytes, bytes]] | None:
        if status == 403 and self._state.auth is not None:
            scope = REQUEST_SCOPE.get({}) if self._channel.scope is None else self._channel.scope
            text, scopes = _required_scopes(line)
            return list(self._state.auth.insufficient_scope(scopes, scope.get("root_path", ""), text).headers)
        return RETRY_LATER if status == 503 else None


def _required_scopes(line: bytes) -> tuple[str | None, list[str]]:
    """Return the text of an error, and the scopes that it names."""
    error: Any = msgspec.json.decode(line).get("error", {})
    data: Any = error.get("data")
    scopes: Any = data.get("requiredScopes") if is_object(data) else None
    return error.get("message"), [scope for scope in scopes if isinstance(scope, str)] if is_array(scopes) else []


async def _absorb_cancellation(task: asyncio.Task[Any], outside: int) -> None:
    """Absorb a cancellation that arrived after the handler had ended: it must not affect the next request."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling() > outside:
        task.uncancel()
