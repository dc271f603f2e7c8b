"""Random operations on two stores, which have to behave alike: a simple model and a store, or two stores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.server.store.suite import Worker, numbered
from typedmcp.server.store.memory import MemoryStore
from typedmcp.stores import (
    MessageCallback,
    Store,
    StoredEvent,
    StoreLimits,
    StreamNotFoundError,
    TooManySessionsError,
    TooManySubscriptionsError,
)

__all__ = ["LIMITS", "Clock", "StoresBehaveAlike", "check"]


class Clock:
    """A clock that runs, and can be set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


LIMITS: dict[str, Any] = {
    "ttl": 1000, "unused_ttl": 1000, "keep": 500, "sessions": 2, "events": 4, "event_bytes": 30, "backlog": 3,
}  # fmt: skip


@dataclass
class ModelStream:
    events: list[bytes] = field(default_factory=lambda: list[bytes]())
    ended: float | None = None

    def after(self, number: int) -> list[StoredEvent]:
        """A stream with all its events; the kept ones are the newest within the limits, and at least one."""
        kept = len(self.events)
        while kept > 1 and (kept > LIMITS["events"] or sum(map(len, self.events[-kept:])) > LIMITS["event_bytes"]):
            kept -= 1
        if not len(self.events) - kept <= number <= len(self.events):
            raise StreamNotFoundError
        return numbered(*self.events[number:], first=number + 1)


@dataclass
class ModelSession:
    fields: dict[str, str]
    used: float
    streams: dict[str, ModelStream] = field(default_factory=lambda: dict[str, ModelStream]())
    uris: set[str] = field(default_factory=lambda: set[str]())


class Model:
    """A store that keeps everything, and decides by the clock what has expired."""

    worker = "model"
    is_shared = False

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sessions: dict[str, ModelSession] = {}
        self.names: set[str] = set()
        self.messages: list[bytes] = []

    async def open(self, on_message: MessageCallback) -> None:
        self.on_message = on_message

    async def close(self) -> None:
        pass

    async def use_once(self, name: str, seconds: float) -> bool:
        """Record a name, which never expires here."""
        is_new = name not in self.names
        self.names.add(name)
        return is_new

    def alive(self) -> dict[str, ModelSession]:
        now = self.clock()
        return {name: session for name, session in self.sessions.items() if session.used + LIMITS["ttl"] > now}

    def used(self, name: str) -> ModelSession:
        if name not in self.alive():
            raise StreamNotFoundError
        self.sessions[name].used = self.clock()
        return self.sessions[name]

    def stream(self, session: str, name: str) -> ModelStream:
        found = self.alive()[session].streams.get(name) if session in self.alive() else None
        if found is None or (found.ended is not None and found.ended + LIMITS["keep"] <= self.clock()):
            raise StreamNotFoundError
        return found

    async def create_session(self, session: str, fields: Mapping[str, str], client: str | None = None) -> None:
        self.sessions.pop(session, None)
        if len(self.alive()) >= LIMITS["sessions"]:
            raise TooManySessionsError
        self.sessions[session] = ModelSession(dict(fields), self.clock())

    async def load_session(self, session: str) -> dict[str, str] | None:
        return dict(self.used(session).fields) if session in self.alive() else None

    async def update_session(self, session: str, fields: Mapping[str, str | None]) -> bool:
        if session not in self.alive():
            return False
        found = self.used(session)
        whole = {**found.fields, **fields}
        found.fields = {name: value for name, value in whole.items() if value is not None}
        return True

    async def delete_session(self, session: str) -> bool:
        was_there = session in self.alive()
        self.sessions.pop(session, None)
        return was_there

    async def load_subscriptions(self, session: str) -> set[str]:
        return set(self.used(session).uris) if session in self.alive() else set()

    async def subscribe(self, session: str, uri: str, limit: int) -> bool:
        if session not in self.alive():
            return False
        if len(self.used(session).uris | {uri}) > limit:
            raise TooManySubscriptionsError
        self.used(session).uris.add(uri)
        return True

    async def unsubscribe(self, session: str, uri: str) -> bool:
        if session not in self.alive():
            return False
        self.used(session).uris.discard(uri)
        return True

    async def create_stream(
        self, session: str, stream: str, final_event: bytes, events: Sequence[bytes] = (), *, last: bool = False
    ) -> int:
        self.used(session).streams[stream] = ModelStream()
        return await self.append_events(session, stream, events, last=last)

    async def append_events(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        self.used(session)
        found = self.stream(session, stream)
        if found.ended is not None:
            raise StreamNotFoundError
        found.events.extend(events)
        found.ended = self.clock() if last else None
        return len(found.events)

    async def follow_stream(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[StoredEvent]]:
        found = self.stream(session, stream)
        yield found.after(after)
        if found.ended is None:
            await asyncio.Event().wait()

    async def send(self, worker: str, message: bytes) -> None:
        self.on_message(None, message)

    async def publish(self, message: bytes) -> int:
        self.messages.append(message)
        self.on_message(len(self.messages), message)
        return len(self.messages)

    async def messages_after(self, after: int) -> list[StoredEvent] | None:
        if not len(self.messages) - LIMITS["backlog"] <= after <= len(self.messages):
            return None
        return numbered(*self.messages[after:], first=after + 1)


class StoresBehaveAlike(RuleBasedStateMachine):
    """Random operations on two stores, with the same results. The first one only waits when it has to."""

    names = st.sampled_from("ab")
    data = st.lists(st.binary(max_size=12), max_size=3)

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.one, self.other = map(Worker, self.stores())
        self.numbers: list[tuple[int, int]] = [(0, 0)]
        for worker in (self.one, self.other):
            self.runner.run(worker.store.open(worker.on_message))

    def stores(self) -> tuple[Store, Store]:
        return Model(self.clock), MemoryStore(limits=StoreLimits(**LIMITS), clock=self.clock)

    def age(self, seconds: float) -> None:
        self.clock.ahead += seconds

    def teardown(self) -> None:
        for worker in (self.one, self.other):
            self.runner.run(worker.store.close())
        self.runner.close()

    def compare(self, operation: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
        async def answer(store: Store) -> Any:
            try:
                return await operation(store)
            except (StreamNotFoundError, TooManySessionsError, TooManySubscriptionsError) as error:
                return type(error)

        expected = self.runner.run(answer(self.one.store))
        assert self.runner.run(answer(self.other.store)) == expected
        return expected

    @rule(session=names, fields=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))
    def create_session(self, session: str, fields: dict[str, str]) -> None:
        self.compare(lambda store: store.create_session(session, fields))

    @rule(session=names)
    def load_session(self, session: str) -> None:
        self.compare(lambda store: store.load_session(session))

    @rule(session=names, fields=st.dictionaries(st.text(max_size=1), st.none() | st.text(max_size=3), max_size=3))
    def update_session(self, session: str, fields: dict[str, str | None]) -> None:
        self.compare(lambda store: store.update_session(session, fields))

    @rule(session=names)
    def delete_session(self, session: str) -> None:
        self.compare(lambda store: store.delete_session(session))

    @rule(name=names)
    def use_once(self, name: str) -> None:
        self.compare(lambda store: store.use_once(name, 1e6))

    @rule(session=names, uri=names)
    def subscribe(self, session: str, uri: str) -> None:
        self.compare(lambda store: store.subscribe(session, uri, 1))

    @rule(session=names, uri=names)
    def unsubscribe(self, session: str, uri: str) -> None:
        self.compare(lambda store: store.unsubscribe(session, uri))

    @rule(session=names)
    def load_subscriptions(self, session: str) -> None:
        self.compare(lambda store: store.load_subscriptions(session))

    @rule(session=names, stream=names, events=data, last=st.booleans())
    def create_stream(self, session: str, stream: str, events: list[bytes], last: bool) -> None:
        self.compare(lambda store: store.create_stream(session, stream, b"final_event", events, last=last))

    @rule(session=names, stream=names, events=data, last=st.booleans())
    def append_events(self, session: str, stream: str, events: list[bytes], last: bool) -> None:
        self.compare(lambda store: store.append_events(session, stream, events, last=last))

    @rule(session=names, stream=names, after=st.integers(-1, 8))
    def follow_stream(self, session: str, stream: str, after: int) -> None:
        async def first(store: Store) -> Any:
            events = aiter(store.follow_stream(session, stream, after))
            coming = asyncio.ensure_future(anext(events, None))
            if store is self.one.store:
                await asyncio.sleep(0)  # enough for an operation that does not wait
                coming.cancel()
            try:
                return await coming
            except asyncio.CancelledError:
                return "waits"

        async def alike() -> None:
            expected = await attempt(first(self.one.store))
            if expected != "waits":
                assert await attempt(first(self.other.store)) == expected

        async def attempt(coming: Coroutine[Any, Any, Any]) -> Any:
            try:
                return await coming
            except StreamNotFoundError:
                return StreamNotFoundError

        self.runner.run(alike())

    @rule(message=st.binary(max_size=5))
    def publish(self, message: bytes) -> None:
        numbers = [self.runner.run(worker.store.publish(message)) for worker in (self.one, self.other)]
        self.numbers.append((numbers[0], numbers[1]))
        for worker, number in zip((self.one, self.other), numbers, strict=True):
            assert self.runner.run(worker.messages.get()) == (number, message)

    @rule(at=st.integers(0, 10))
    def published(self, at: int) -> None:
        after = self.numbers[at % len(self.numbers)]
        answers = [
            self.runner.run(worker.store.messages_after(number))
            for worker, number in zip((self.one, self.other), after, strict=True)
        ]
        texts = [None if answer is None else [event.data for event in answer] for answer in answers]
        assert texts[0] == texts[1]

    @rule()
    def advance(self) -> None:
        self.age(300)  # no sum of these is near a limit, so the duration of a step does not matter


def check(machine: type[RuleBasedStateMachine], examples: int) -> None:
    """Run a state machine, in the same way each time."""
    case: Any = cast(Any, machine).TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # shrinking a case takes longer than reading it
        suppress_health_check=[*cast(Any, HealthCheck)],
    )
    case("runTest").runTest()
