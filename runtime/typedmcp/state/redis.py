"""State that workers on any number of machines share, in Redis 6.2 or newer.

Everything is one script of `scripts`, so it is done wholly or not at all, in one round trip. Each worker has one more
connection on which it waits for what concerns it: its inbox, a Redis stream, and the bus, one that all share. Both are
read from the last number on that was read, so nothing is lost between two connections.

A worker renews its lease from time to time. One that has not is dead for the others, and its streams end with their
wills, in the step in which that is found: everybody sees the same end. If it was only slow, it finds its streams ended.

Redis Cluster is not supported: a script touches keys of many names. Redis must not evict keys (`noeviction`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from typedmcp.errors import UsageError
from typedmcp.state import Event, Gone, Hear, TooMany, scripts
from typedmcp.state.memory import Limits, heard

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["RedisStore"]

_LOG = logging.getLogger("typedmcp")
_BEATS = 3  # in a lease
_BATCH = 100  # news read at once
_RECHECKS = 3  # leases after which a follower looks without having been told
_SHORTEST, _LONGEST = 0.05, 2.0  # seconds between two attempts to reach Redis


class RedisStore:
    """A `Store` in Redis. All workers of one service give the same `prefix`, limits and lease.

    `url` is that of a Redis server, or a client of `redis.asyncio`, which stays yours to close. `lease` is after how
    many seconds a worker that is silent counts as dead. At most `connections` are used for operations, and two more
    to listen and to renew the lease. `timeout` is how many seconds an operation may take before it raises
    `ConnectionError`; whether it was done is not known then. The other options are those of `Limits`.
    """

    is_shared: bool = True

    def __init__(
        self,
        url: str | Redis = "redis://127.0.0.1:6379",
        *,
        prefix: str = "typedmcp:",
        lease: float = 10.0,
        ttl: float = Limits.ttl,
        sessions: int = Limits.sessions,
        events: int = Limits.events,
        event_bytes: int = Limits.event_bytes,
        keep: float = Limits.keep,
        backlog: int = Limits.backlog,
        connections: int = 8,
        timeout: float = 5.0,
    ) -> None:
        for name, value in {"lease": lease, "connections": connections, "timeout": timeout}.items():
            if not value > 0:
                raise UsageError(f"{name} must be positive, not {value:g}")
        self.worker: str = secrets.token_hex(5)
        self._limits = Limits(ttl, sessions, events, event_bytes, keep, backlog)
        self._lease = lease
        self._timeout = timeout
        times = (max(1, int(seconds * 1000)) for seconds in (ttl, lease, keep))
        self._link = _Link(url, (prefix, self.worker, *times, events, event_bytes), connections, timeout)
        self._inbox, self._bus = f"{prefix}inbox:{self.worker}", f"{prefix}bus"
        self._wakes = _Wakes()
        self._read = self._read_news = 0  # the last numbers that were read: of all, and of what was published
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, hear: Hear) -> None:
        """Begin."""
        self._read, self._read_news = map(int, await self._link.run(scripts.OPEN))
        await self._beat()
        self._tasks = [asyncio.ensure_future(self._listen(hear)), asyncio.ensure_future(self._live())]

    async def close(self) -> None:
        """End the streams that are open with their wills. Where Redis cannot be reached, they end with the lease."""
        if self._link.is_closed:
            return
        await _ended(self._tasks)
        try:
            await self._bury(self.worker, is_over=True)
        except ConnectionError as error:
            _LOG.warning("the streams of this worker end with its lease: %s", error)
        for _ in range(2):  # followers in this process have one more look, after the one that may be under way
            self._wakes.wake_all()
            await self._link.rest()
        await self._link.close()
        self._wakes.wake_all()

    async def create(self, session: str, fields: Mapping[str, str]) -> None:
        """Begin a session. Raises `TooMany`."""
        answer = await self._link.run(scripts.CREATE, session, self._limits.sessions, *_flat(fields))
        if answer == scripts.TOO_MANY:
            raise TooMany(f"there are {self._limits.sessions} sessions")

    async def load(self, session: str) -> dict[str, str] | None:
        """What is kept of a session."""
        answer = await self._link.run(scripts.LOAD, session)
        if answer is None:
            return None
        texts = [_text(each) for each in answer]
        return dict(zip(texts[::2], texts[1::2], strict=True))

    async def change(self, session: str, fields: Mapping[str, str | None]) -> bool:
        """Set and drop fields."""
        dropped = [_bytes(name) for name, value in fields.items() if value is None]
        kept = {name: value for name, value in fields.items() if value is not None}
        return bool(await self._link.run(scripts.CHANGE, session, len(dropped), *dropped, *_flat(kept)))

    async def delete(self, session: str) -> bool:
        """End a session, with its streams."""
        return bool(await self._link.run(scripts.DELETE, session))

    async def begin(self, session: str, stream: str, will: bytes) -> None:
        """Begin a stream. Raises `Gone` where the session is over."""
        if await self._link.run(scripts.BEGIN, session, stream, will) == scripts.GONE:
            raise Gone("the session is over")

    async def append(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Add events to a stream. Raises `Gone`."""
        number: int = await self._link.run(scripts.APPEND, session, stream, int(last), *events)
        if number == scripts.GONE:
            raise Gone("the stream has ended")
        return number

    async def follow(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[Event]]:
        """The events after a number. Raises `Gone`.

        Once it has begun, it waits where Redis cannot be reached.
        """
        has_begun = False
        while True:
            with self._wakes.expected(f"{session}/{stream}") as woken:
                pause = self._lease * _RECHECKS
                try:
                    has_ended, events = await self._events(session, stream, after)
                except ConnectionError:
                    if not has_begun or self._link.is_closed:
                        raise
                    pause, has_ended, events = _LONGEST, False, []
                if events or not has_begun:
                    after = events[-1].number if events else after
                    has_begun = True
                    yield events
                if has_ended:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await woken

    async def tell(self, worker: str, news: bytes) -> None:
        """Have one worker hear something."""
        await self._link.run(scripts.TELL, worker, news)

    async def publish(self, news: bytes) -> int:
        """Have every worker hear something."""
        number: int = await self._link.run(scripts.PUBLISH, self._limits.backlog, news)
        return number

    async def published(self, after: int) -> list[Event] | None:
        """What was published after a number; None for a number that is unknown or too old."""
        answer = None if after < 0 else await self._link.run(scripts.PUBLISHED, after)
        if answer is None:
            return None
        return [Event(int(number), news) for number, news in zip(answer[::2], answer[1::2], strict=True)]

    async def _events(self, session: str, stream: str, after: int) -> tuple[bool, list[Event]]:
        has_ended, *data = await self._link.run(scripts.READ, session, stream, after)
        if has_ended == scripts.GONE:
            raise Gone(f"the stream is not kept, or not all of its events after {after}")
        return bool(has_ended), [Event(number, each) for number, each in enumerate(data, after + 1)]

    # The lease

    async def _live(self) -> None:
        attempts = _Attempts("its lease cannot be renewed")
        while True:
            await asyncio.sleep(attempts.pause or self._lease / _BEATS)
            with attempts.attempt():
                await self._beat()

    async def _beat(self) -> None:
        was_known, *dead = await self._link.run(scripts.BEAT, f"{self._read}-0", is_urgent=True)
        if not was_known:
            self._wakes.wake_all()  # what it should have been told is lost
        for worker in dead:
            await self._bury(worker)

    async def _bury(self, worker: str | bytes, *, is_over: bool = False) -> None:
        while await self._link.run(scripts.BURY, worker, int(is_over), is_urgent=True):
            pass

    # News

    async def _listen(self, hear: Hear) -> None:
        attempts = _Attempts("news cannot be read")
        while True:
            await asyncio.sleep(attempts.pause)
            with attempts.attempt():
                self._take(await self._link.read((self._inbox, self._bus), self._read), hear)

    def _take(self, batches: Iterable[Sequence[_Entry]], hear: Hear) -> None:
        # All numbers come from one counter: in their order, news are in that of asking. Where a batch was cut off,
        # the other stream may have something earlier than what was cut off.
        full = [batch[-1][0] for batch in batches if len(batch) == _BATCH]
        until = min(full, default=None)
        for number, entry in sorted((entry for batch in batches for entry in batch), key=lambda entry: entry[0]):
            if until is not None and number > until:
                break
            self._read = number
            if b"wake" in entry:
                self._wakes.wake(entry[b"wake"].decode())
            elif b"before" in entry:
                self._take_published(number, int(entry[b"before"]))
                heard(hear, number, entry[b"d"])
            else:
                heard(hear, None, entry[b"d"])

    def _take_published(self, number: int, before: int) -> None:
        if before != self._read_news:
            _LOG.warning("news after number %d were dropped before this worker could read them", self._read_news)
        self._read_news = number


_Entry = tuple[int, Mapping[bytes, bytes]]


class _Link:
    """The way to Redis: runs scripts, a few at a time. Raises `ConnectionError` for whatever goes wrong."""

    def __init__(self, url: str | Redis, fixed: tuple[object, ...], connections: int, timeout: float) -> None:
        self._errors: Any = _library("redis.exceptions")
        self._is_ours = isinstance(url, str)
        self._client: Any = _client(url, connections, timeout) if isinstance(url, str) else _checked(url)
        self._fixed = fixed
        self._timeout = timeout
        # An answer has to come before the client gives up on the connection.
        self._block = int(min(timeout, self._client.connection_pool.connection_kwargs.get("socket_timeout") or 5) * 500)
        self._places = _places(connections)
        self._connections = connections
        self._numbers = count(1)
        self.is_closed: bool = False

    async def run(self, script: scripts.Script, *args: object, is_urgent: bool = False) -> Any:
        """Run a script. An urgent one does not wait for others, and must be harmless when it is run twice."""
        if self.is_closed:
            raise ConnectionError("the store is closed")
        with self._wrapped():
            async with asyncio.timeout(self._timeout):
                place = None if is_urgent else await self._places.get()
                # In a task of its own: the library may lose a cancellation, and gives up the connection for others.
                task = asyncio.ensure_future(self._evaluate(script, place, args))
                task.add_done_callback(partial(self._leave, place))
                await asyncio.wait((task,))
            return task.result()

    async def read(self, streams: tuple[str, str], after: int) -> list[list[_Entry]]:
        """Wait for entries of two streams. After a while, nothing."""
        ids = (f"{after}-0", f"{after}-0")
        command = ("XREAD", "COUNT", _BATCH, "BLOCK", self._block, "STREAMS", *streams, *ids)
        with self._wrapped():
            async with asyncio.timeout(self._timeout + self._block / 1000):
                return _entries(await self._client.execute_command(*command))

    async def rest(self) -> None:
        """Wait until what was asked for is done."""
        for _ in range(4):  # whoever was woken comes to ask
            await asyncio.sleep(0)
        places: list[int] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while len(places) < self._connections:
                    places.append(await self._places.get())
        for place in places:
            self._places.put_nowait(place)

    async def close(self) -> None:
        """End."""
        self.is_closed = True
        if self._is_ours:
            with self._wrapped():
                await self._client.aclose()

    async def _evaluate(self, script: scripts.Script, place: int | None, args: tuple[object, ...]) -> Any:
        whole = (0, *self._fixed, "" if place is None else place, next(self._numbers), *args)
        async with asyncio.timeout(self._timeout):
            try:
                return await self._client.evalsha(script.digest, *whole)
            except self._errors.NoScriptError:
                return await self._client.eval(script.text, *whole)

    def _leave(self, place: int | None, task: asyncio.Task[Any]) -> None:
        if place is not None:
            self._places.put_nowait(place)
        if not task.cancelled():
            task.exception()  # nobody else may ask

    @contextmanager
    def _wrapped(self) -> Generator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ConnectionError(f"Redis did not answer within {self._timeout:g} s") from error
        except (self._errors.RedisError, OSError) as error:
            raise ConnectionError(f"Redis: {error}") from error


class _Wakes:
    """Who waits in this process for a change of a stream."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    @contextmanager
    def expected(self, id: str) -> Generator[asyncio.Future[None]]:
        """A future that is done when the stream has changed."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, set()).add(woken)
        try:
            yield woken
        finally:
            others = self._waiting[id]
            others.discard(woken)
            if not others:
                del self._waiting[id]

    def wake(self, id: str) -> None:
        """Have those who wait for a stream look."""
        for woken in self._waiting.get(id, ()):
            if not woken.done():
                woken.set_result(None)

    def wake_all(self) -> None:
        """Have everybody look."""
        for id in self._waiting:
            self.wake(id)


class _Attempts:
    """Something that is tried again when Redis could not be reached, later each time, and logged once."""

    def __init__(self, failure: str) -> None:
        self._failure = failure
        self.pause: float = 0.0

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Try. `pause` is how many seconds to wait before the next time."""
        try:
            yield
        except Exception as error:
            if not self.pause:
                _LOG.warning("%s: %s", self._failure, error, exc_info=not isinstance(error, ConnectionError))
            self.pause = min(_LONGEST, max(_SHORTEST, self.pause * 2))
        else:
            self.pause = 0.0


async def _ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    # Where the library is about to connect, a cancellation may be lost.
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_SHORTEST)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError("RedisStore needs the extra `redis`: pip install 'typedmcp[redis]'") from error


def _client(url: str, connections: int, timeout: float) -> Any:
    # A script that is sent again is not done again, so the library may do so.
    lost = _library("redis.exceptions").ConnectionError
    pause = _library("redis.backoff").ConstantBackoff(_SHORTEST)
    retry = _library("redis.asyncio.retry").Retry(pause, 2, supported_errors=(lost,))
    options = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "max_connections": connections + 2}
    return _library("redis.asyncio").Redis.from_url(url, retry=retry, protocol=2, **options)


def _checked(client: Any) -> Any:
    if not isinstance(client, _library("redis.asyncio").Redis):
        raise UsageError(f"RedisStore takes a URL or a redis.asyncio.Redis, not {type(client).__name__}")
    if client.connection_pool.connection_kwargs.get("decode_responses"):
        raise UsageError("RedisStore needs a client without decode_responses")
    return client


def _places(number: int) -> asyncio.LifoQueue[int]:
    places: asyncio.LifoQueue[int] = asyncio.LifoQueue()
    for place in range(number):
        places.put_nowait(place)
    return places


def _entries(answer: Any) -> list[list[_Entry]]:
    # Which form it has depends on the client's protocol and on the library's version.
    pairs: Any = cast(Any, answer).items() if isinstance(answer, dict) else answer or ()
    flat: list[Any] = [batch[0] if batch and isinstance(batch[0], list) else batch for _, batch in pairs]
    return [[(int(id.partition(b"-")[0]), entry) for id, entry in batch] for batch in flat]


def _flat(fields: Mapping[str, str]) -> list[bytes]:
    return [_bytes(each) for item in fields.items() for each in item]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
