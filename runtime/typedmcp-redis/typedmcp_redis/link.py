"""The connections to Redis that stores share: scripts, a few at a time, and streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as LostConnectionError
from redis.exceptions import NoScriptError, RedisError

from typedmcp.errors import UsageError

__all__ = ["MAX_PAUSE", "READ_BATCH", "RedisLink", "RetryLoop", "Script", "StreamEntry", "cancel_all"]

_log = logging.getLogger("typedmcp")

READ_BATCH = 100
"""Entries of streams that are read at once."""
MIN_PAUSE, MAX_PAUSE = 0.05, 2.0
"""Seconds between two attempts to reach Redis."""

StreamEntry: TypeAlias = tuple[int, Mapping[bytes, bytes]]
"""An entry of a Redis stream: its number and its fields."""


class Script(NamedTuple):
    """A script with the digest by which Redis finds it."""

    digest: str
    text: str


class RedisLink:
    """The connections to Redis. Runs scripts, a few at a time, and raises `ConnectionError` for every failure."""

    def __init__(self, url: str | Redis, fixed: tuple[object, ...], connections: int, timeout: float) -> None:
        self._owns_client = isinstance(url, str)
        self._client: Any = _client(url, connections, timeout) if isinstance(url, str) else _checked(url)
        self._fixed = fixed
        """The arguments that every script gets first."""
        self._timeout = timeout
        # Redis has to answer before the client's socket timeout closes the connection.
        socket_timeout = self._client.connection_pool.connection_kwargs.get("socket_timeout")
        self._block_ms = int(min(timeout, socket_timeout or 5) * 500)
        self._slots = _slots(connections)
        self._connections = connections
        self._numbers = count(1)
        self.is_closed: bool = False

    async def run(self, script: Script, *args: object, is_urgent: bool = False) -> Any:
        """Run a script. An urgent one does not wait for a slot, and must be harmless if it runs twice."""
        if self.is_closed:
            raise ConnectionError("the store is closed")
        with self._wrap_errors():
            async with asyncio.timeout(self._timeout):
                slot = None if is_urgent else await self._slots.get()
                # A task of its own, since the library can lose a cancellation, and then breaks a shared connection.
                task = asyncio.ensure_future(self._evaluate(script, slot, args))
                task.add_done_callback(partial(self._release, slot))
                await asyncio.wait((task,))
            return task.result()

    async def read(self, streams: tuple[str, ...], after: int) -> list[list[StreamEntry]]:
        """Wait for entries of Redis streams. Returns no entries if none comes for a while."""
        ids = (f"{after}-0",) * len(streams)
        command = ("XREAD", "COUNT", READ_BATCH, "BLOCK", self._block_ms, "STREAMS", *streams, *ids)
        with self._wrap_errors():
            async with asyncio.timeout(self._timeout + self._block_ms / 1000):
                return _entries(await self._client.execute_command(*command))

    async def wait_idle(self) -> None:
        """Wait until no script is running."""
        for _ in range(4):  # followers that were woken first ask for their slots
            await asyncio.sleep(0)
        slots: list[int] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while len(slots) < self._connections:
                    slots.append(await self._slots.get())
        for slot in slots:
            self._slots.put_nowait(slot)

    async def close(self) -> None:
        """Close the connections, if the store created the client."""
        self.is_closed = True
        if self._owns_client:
            with self._wrap_errors():
                await self._client.aclose()

    async def _evaluate(self, script: Script, slot: int | None, args: tuple[object, ...]) -> Any:
        arguments = (0, *self._fixed, "" if slot is None else slot, next(self._numbers), *args)
        async with asyncio.timeout(self._timeout):
            try:
                return await self._client.evalsha(script.digest, *arguments)
            except NoScriptError:
                return await self._client.eval(script.text, *arguments)

    def _release(self, slot: int | None, task: asyncio.Task[Any]) -> None:
        if slot is not None:
            self._slots.put_nowait(slot)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller may have been cancelled

    @contextmanager
    def _wrap_errors(self) -> Generator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ConnectionError(f"Redis did not answer within {self._timeout:g} s") from error
        except (RedisError, OSError) as error:
            raise ConnectionError(f"Redis: {error}") from error


class RetryLoop:
    """The pauses between attempts that fail. They grow, and only the first failure is logged."""

    def __init__(self, failure: str) -> None:
        self._failure = failure
        self.pause: float = 0.0
        """Seconds to wait before the next attempt."""

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Run one attempt, and suppress its exception."""
        try:
            yield
        except Exception as error:
            if not self.pause:
                _log.warning("%s: %s", self._failure, error, exc_info=not isinstance(error, ConnectionError))
            self.pause = min(MAX_PAUSE, max(MIN_PAUSE, self.pause * 2))
        else:
            self.pause = 0.0


async def cancel_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks until they end: the library can lose a cancellation while it connects."""
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=MIN_PAUSE)


def _client(url: str, connections: int, timeout: float) -> Any:
    # The library may send a script again: the scripts do not do the same command twice.
    retry = cast(Any, Retry)(cast(Any, ConstantBackoff)(MIN_PAUSE), 2, supported_errors=(LostConnectionError,))
    options = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "max_connections": connections + 2}
    return cast(Any, Redis).from_url(url, retry=retry, protocol=2, **options)


def _checked(client: Any) -> Any:
    if not isinstance(client, Redis):
        raise UsageError(f"RedisStore takes a URL or a redis.asyncio.Redis, not {type(client).__name__}")
    if client.connection_pool.connection_kwargs.get("decode_responses"):
        raise UsageError("RedisStore needs a client without decode_responses")
    return client


def _slots(number: int) -> asyncio.LifoQueue[int]:
    slots: asyncio.LifoQueue[int] = asyncio.LifoQueue()
    for slot in range(number):
        slots.put_nowait(slot)
    return slots


def _entries(answer: Any) -> list[list[StreamEntry]]:
    # The form of the answer depends on the client's protocol and on the library's version.
    pairs: Any = cast(Any, answer).items() if isinstance(answer, dict) else answer or ()
    flat: list[Any] = [batch[0] if batch and isinstance(batch[0], list) else batch for _, batch in pairs]
    return [[(int(id.partition(b"-")[0]), entry) for id, entry in batch] for batch in flat]
