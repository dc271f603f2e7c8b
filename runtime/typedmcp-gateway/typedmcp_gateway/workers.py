"""Calls that wait for answers, with several workers: the next attempt goes to the worker that holds the call.

The workers pass messages to each other through the store. The worker that holds the call says at short intervals that
it works on the attempt, so that its death is noticed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from typedmcp import Context
from typedmcp.building import to_builtins
from typedmcp.dialect import methods, structs
from typedmcp.errors import INTERNAL_ERROR, InvalidParamsError, RemoteError
from typedmcp.services import WorkerLink
from typedmcp_gateway.callers import CallerKey
from typedmcp_gateway.questions import ParkedCalls

__all__ = ["WorkerCalls"]


_PULSE_SECONDS: Final = 2.0
"""Seconds between two messages that say that an attempt goes on."""
_SILENCE_SECONDS: Final = 10.0
"""Seconds without a message after which the worker that holds a call counts as dead."""
_CONTINUED: Final = "parked call continued"
_ANSWERED: Final = "parked call answered"
_CANCELLED: Final = "parked call cancelled"


class _Reply(msgspec.Struct, omit_defaults=True):
    """The end of an attempt: a result, or an error."""

    result: dict[str, Any] | None = None
    code: int = 0
    message: str = ""
    data: Any = None


class WorkerCalls:
    """Passes attempts to the workers that hold their calls, and answers those of other workers.

    `max_bytes` bounds the result of an attempt.
    """

    def __init__(self, link: WorkerLink, parked: ParkedCalls, max_bytes: int) -> None:
        self._link = link
        self._parked = parked
        self._max_bytes = max_bytes
        self._waiting: dict[str, asyncio.Queue[_Reply | None]] = {}
        """The attempts of this worker's clients that another one answers, by id. None says that they go on."""
        self._running: dict[str, asyncio.Task[Any]] = {}
        """The attempts that this worker answers for others, by id."""
        link.message_handlers.update(
            {_CONTINUED: self._on_continued, _ANSWERED: self._on_answered, _CANCELLED: self._on_cancelled}
        )

    @property
    def worker(self) -> str:
        """The name of this worker."""
        return self._link.worker

    # For the worker that got the request

    async def resume(self, owner: str, state: str, ctx: Context, caller: CallerKey, answers: Mapping[str, Any]) -> Any:
        """Return the result of an attempt, which the worker `owner` answers.

        Raises `RemoteError` for an error of the call, and if that worker is dead.
        """
        id = secrets.token_urlsafe(12)
        plain = {key: to_builtins(answer) for key, answer in answers.items()}
        replies: asyncio.Queue[_Reply | None] = asyncio.Queue()
        self._waiting[id] = replies
        try:
            await self._link.send_to(owner, _CONTINUED, self.worker, id, state, caller, plain)
            reply = None
            while reply is None:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    reply = await replies.get()
        except TimeoutError:
            text = "requestState: the worker that holds the call has ended; call again without it"
            raise InvalidParamsError(text, {"path": "params.requestState"}) from None
        except ConnectionError as error:
            ctx.report(f"the store cannot be reached: {error}", error)
            raise RemoteError(INTERNAL_ERROR, "the worker that holds the call cannot be reached") from error
        except asyncio.CancelledError:
            self._link.spawn(self._link.send_to(owner, _CANCELLED, id))
            raise
        finally:
            del self._waiting[id]
        if reply.result is None:
            raise RemoteError(reply.code, reply.message, reply.data)
        asks = reply.result.get("resultType") == "input_required"
        kind: Any = structs.InputRequiredResult if asks else methods.CLIENT_REQUESTS[ctx.method].result
        return structs.from_builtins(reply.result, kind)

    def _on_answered(self, id: str, reply: dict[str, Any] | None) -> None:
        """Take the end of an attempt, or None while it goes on."""
        if (replies := self._waiting.get(id)) is not None:
            replies.put_nowait(None if reply is None else msgspec.convert(reply, _Reply))

    # For the worker that holds the call

    def _on_continued(self, worker: str, id: str, state: str, caller: Sequence[str], answers: dict[str, Any]) -> None:
        """Continue a call with the answers that another worker has got."""
        self._running[id] = task = self._link.spawn(self._continue(worker, id, state, tuple(caller), answers))
        task.add_done_callback(lambda _: self._running.pop(id, None))

    def _on_cancelled(self, id: str) -> None:
        """Cancel an attempt, since its client has left."""
        if (task := self._running.get(id)) is not None:
            task.cancel()

    async def _continue(self, worker: str, id: str, state: str, caller: CallerKey, answers: Mapping[str, Any]) -> None:
        pulse = self._link.spawn(self._pulse(worker, id))
        try:
            reply = await self._attempt(state, caller, answers)
        except asyncio.CancelledError:
            with suppress(ConnectionError):
                await self._link.send_to(worker, _ANSWERED, id, _ended())
            raise
        finally:
            pulse.cancel()
        await self._link.send_to(worker, _ANSWERED, id, reply)

    async def _attempt(self, state: str, caller: CallerKey, answers: Mapping[str, Any]) -> _Reply:
        try:
            result = to_builtins(await self._parked.resume(state, caller, None, answers))
        except RemoteError as error:
            return _Reply(None, error.code, error.message, error.data)
        size = len(msgspec.json.encode(result))
        if size > self._max_bytes:
            most = f"workers pass at most {self._max_bytes} to each other (http_body_bytes)"
            text = f"the result has {size} bytes; {most}"
            return _Reply(None, INTERNAL_ERROR, text)
        return _Reply(result)

    async def _pulse(self, worker: str, id: str) -> None:
        while True:
            await self._link.send_to(worker, _ANSWERED, id, None)
            await asyncio.sleep(_PULSE_SECONDS)


def _ended() -> _Reply:
    return _Reply(None, INTERNAL_ERROR, "the worker that held the call has ended; call again without requestState")
