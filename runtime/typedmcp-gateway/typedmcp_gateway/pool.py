"""A pool of clients: many callers share few connections and processes.

A client belongs to a target and an identity. Callers lease it; the pool opens it, checks it after a pause, replaces it
after its connection has ended, and closes it when it was not used for a while.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias, Unpack

from typedmcp import Client, ConnectOptions, connect
from typedmcp.building import FairLimit, check_integer, check_seconds, log_failure
from typedmcp.client import Target, check_connect_options, describe_target, target_key
from typedmcp.errors import ConnectionLostError, Error, RemoteError, UsageError
from typedmcp_hosts import ServerEntry

__all__ = ["ClientLease", "ClientPool", "PoolMember"]

_FIRST_PAUSE: Final = 0.1
"""Seconds after a connection that failed, in which callers get the same error. Doubled with each failure."""
_MAX_PAUSE: Final = 5.0
_CHECK_SECONDS: Final = 5.0
"""Seconds that a server may take to answer a health check."""
_REMEMBERED_FAILURES: Final = 1000
"""Targets and identities whose last failure is remembered."""

_Key: TypeAlias = "tuple[str, str, int]"


class PoolMember(NamedTuple):
    """One connection of a pool, or the failure to open it."""

    target: str
    """The address or the command of the server, without what may be secret."""
    identity: str
    is_connected: bool
    leases: int
    """The leases at the moment."""
    waiting: int
    """The callers that wait for a lease."""
    error: Exception | None
    """Why the last attempt to connect failed. None if it did not."""


@dataclass(eq=False)
class _Slot:
    """The place of one client in the pool."""

    key: _Key
    described: str
    """The target, as text for messages."""
    identity: str
    options: ConnectOptions
    turns: FairLimit
    users: int = 0
    """Callers that have a lease or wait for one."""
    client: Client | None = None
    has_place: bool = False
    """True while the slot counts among the clients of the pool."""
    is_retired: bool = False
    """True once the client must be closed as soon as nothing uses it."""
    checked: float = 0.0
    """The time of the loop at which the server last answered."""
    used: float = 0.0
    kept: float = 0.0
    """The time of the loop until which the client stays open although nothing uses it."""
    error: Exception | None = None
    failures: int = 0
    retry: float = 0.0
    """The time of the loop before which no connection is tried."""
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_connected(self) -> bool:
        return self.client is not None and self.client.is_connected


class ClientPool:
    """Clients by target and identity, shared by many callers. Enter it with `async with`.

    ```python
    async with ClientPool(max_clients=20) as pool:
        async with pool.lease("https://api.example/mcp", identity="alice", auth=token_of_alice) as client:
            await client.call_tool("search", {"query": "tea"})
    ```

    `options` are those of `connect`, for every client. `limits` are those of `connect` as well, and bound each client.
    """

    def __init__(
        self,
        *,
        max_clients: int = 100,
        max_leases: int = 100,
        idle_seconds: float = 300.0,
        check_after: float = 30.0,
        wait_seconds: float | None = 30.0,
        **options: Unpack[ConnectOptions],
    ) -> None:
        """Make a pool. Raises `UsageError` for a bound that makes no sense.

        `max_clients` bounds the connections and processes. If all are in use, callers wait; if some are idle, the one
        that was idle longest is closed. `max_leases` bounds the leases of one client at a time. Callers that wait for
        either take turns, and get `RequestTimeoutError` after `wait_seconds` (None: never).

        A client that was idle for `check_after` seconds is asked whether it is alive before it is leased, as is one
        whose last call lost the connection. After `idle_seconds` it is closed.
        """
        for name, number in (("max_clients", max_clients), ("max_leases", max_leases)):
            check_integer(name, number)
            if number < 1:
                raise UsageError(f"{name} must be at least 1, not {number}")
        for name, seconds in (("idle_seconds", idle_seconds), ("check_after", check_after)):
            check_seconds(name, seconds)
        if wait_seconds is not None:
            check_seconds("wait_seconds", wait_seconds)
        check_connect_options(options)
        self._options = options
        self._max_leases = max_leases
        self._idle_seconds = idle_seconds
        self._check_after = check_after
        self._wait_seconds = wait_seconds
        self._places = FairLimit(max_clients)
        self._slots: dict[_Key, _Slot] = {}
        self._targets: dict[int, Target] = {}
        """The targets without a name, such as handlers. They are kept, so that their numbers stay theirs."""
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __aenter__(self) -> ClientPool:
        if self._is_closed:
            raise UsageError("the pool has been closed; make another one")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    # For callers

    def lease(
        self,
        target: Target,
        *,
        identity: str = "",
        caller: str | None = None,
        exclusive: bool = False,
        **options: Unpack[ConnectOptions],
    ) -> ClientLease:
        """Return a context manager, whose `async with` yields the client of a target and an identity.

        `target` is one of `connect`, or a `ServerEntry`. `identity` names the credentials, capabilities and session
        that callers may share: everything that `options` set for this client. The options of the first lease of an
        identity count. Callers that wait take turns by `caller`, which is the identity by default. With `exclusive`
        nothing else uses the client meanwhile: the pool opens another one if necessary.

        Entering it raises the errors of `connect`, and `RequestTimeoutError` if the pool is full for too long. After a
        connection has failed, callers get its error for a moment, and no further attempt is made.
        """
        entry = target if isinstance(target, ServerEntry) else None
        found = entry.target if entry is not None else target
        name, turn = self._name_of(found), identity if caller is None else caller
        return ClientLease(self, found, entry, name, identity, turn, exclusive, options)

    @property
    def members(self) -> list[PoolMember]:
        """The connections at the moment, and the failures that are remembered."""
        return [
            PoolMember(
                slot.described,
                slot.identity,
                slot.is_connected,
                slot.turns.used,
                slot.turns.waiting,
                slot.error,
            )
            for slot in self._slots.values()
        ]

    async def check(self) -> list[PoolMember]:
        """Ask all connected servers whether they are alive. Close the connections of those that do not answer.

        The `error` of a member says why its check failed.
        """
        slots = [slot for slot in self._slots.values() if slot.is_connected]
        for slot, is_alive in zip(slots, await asyncio.gather(*map(self._is_alive, slots)), strict=True):
            if not is_alive:
                self._drop_client(slot)
        return self.members

    def retire(self, target: Target, identity: str | None = None, *, only_idle: bool = False) -> None:
        """Close the clients of a target, or those of one identity: idle ones now, others after their last lease.

        With `only_idle` the others stay. A failure to connect is still remembered for its moment.
        """
        name = self._name_of(target.target if isinstance(target, ServerEntry) else target)
        for slot in list(self._slots.values()):
            has_failed = slot.client is None and not slot.users and self._now() < slot.retry
            is_meant = slot.key[0] == name and identity in (None, slot.identity) and not has_failed
            if is_meant and not (only_idle and slot.users):
                slot.is_retired = True
                del self._slots[slot.key]
                self._drop_if_unused(slot)

    async def close(self) -> None:
        """Close all clients. Calls that are open fail, and callers that wait get `ConnectionLostError`."""
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for slot in list(self._slots.values()):
            self._drop_client(slot)
        self._slots.clear()
        while self._closing:
            await asyncio.wait(self._closing)

    # For leases

    def try_acquire(self, lease: ClientLease) -> _Slot | None:
        """Return the slot for a lease if its client can be used at once."""
        slot = self._slots.get((lease.name, lease.identity, 0))
        if slot is None or lease.is_exclusive or (client := slot.client) is None or not client.is_connected:
            return None
        if get_running_loop().time() - slot.checked >= self._check_after or not slot.turns.try_acquire():
            return None
        slot.users += 1
        return slot

    async def acquire(self, lease: ClientLease, caller: Hashable) -> _Slot:
        """Return the slot for a lease, with a client that is connected. `caller` takes turns with others."""
        if self._is_closed:
            raise _closed_error()
        slot = self._slot_for(lease)
        slot.users += 1
        try:
            what = f"all {slot.turns.limit} leases of the client are in use (max_leases): try again later"
            await slot.turns.acquire(caller, self._wait_seconds, what)
            try:
                if not slot.is_connected or self._now() - slot.checked >= self._check_after:
                    await self._ensure_open(slot, lease, caller)
            except BaseException:
                slot.turns.release()
                raise
        except BaseException:
            self._leave(slot)
            raise
        return slot

    def release(self, slot: _Slot, error: BaseException | None) -> None:
        """Take back a lease, which ended with this exception, or with none."""
        slot.turns.release()
        slot.used = get_running_loop().time()
        if error is None or isinstance(error, RemoteError):
            slot.checked = slot.used
        elif isinstance(error, ConnectionLostError):
            slot.checked = 0.0  # the next lease asks first
        self._leave(slot)

    def keep(self, slot: _Slot, seconds: float) -> None:
        """Keep the client of a slot open for some seconds after its last lease, unless the pool is full."""
        slot.kept = max(slot.kept, self._now() + seconds)

    # Slots

    def _slot_for(self, lease: ClientLease) -> _Slot:
        name = lease.name
        for number in range(len(self._slots) + 2) if lease.is_exclusive else (0,):
            # Exclusive leases have slots of their own, from number 1 on.
            key = (name, lease.identity, number + lease.is_exclusive)
            slot = self._slots.get(key)
            if slot is None:
                limit = FairLimit(1 if lease.is_exclusive else self._max_leases)
                slot = self._slots[key] = _Slot(key, lease.describe(), lease.identity, lease.options, limit)
                return slot
            if not lease.is_exclusive or not slot.users:
                return slot
        raise AssertionError("more exclusive slots in use than there are slots")

    def _name_of(self, target: Target) -> str:
        name = target_key(target)
        if name is None:
            self._targets.setdefault(id(target), target)
            return f"{type(target).__name__} {id(target)}"
        return name

    async def _ensure_open(self, slot: _Slot, lease: ClientLease, caller: Hashable) -> None:
        """Connect the client of a slot, or check that it is alive. One caller does it, and the others wait for it."""
        async with slot.opening:
            if self._is_closed:
                raise _closed_error()
            if slot.is_connected and self._now() - slot.checked >= self._check_after and not await self._is_alive(slot):
                self._drop_client(slot)
            if slot.is_connected:
                return
            self._drop_client(slot)
            if slot.error is not None and self._now() < slot.retry:
                raise slot.error
            await self._take_place(slot, caller)
            await self._open(slot, lease)

    async def _take_place(self, slot: _Slot, caller: Hashable) -> None:
        """Count the slot among the clients. Closes an idle client if the pool is full, and waits if there is none."""
        if not self._places.has_room:
            self._close_idle()
        names = "max_clients; of a gateway, max_connections"
        what = f"all {self._places.limit} clients of the pool are in use ({names}): try again later"
        await self._places.acquire(caller, self._wait_seconds, what)
        slot.has_place = True

    async def _open(self, slot: _Slot, lease: ClientLease) -> None:
        try:
            if self._is_closed:
                raise _closed_error()
            slot.client = client = lease.make_client(self._options)
            await client.open()
        except BaseException as error:
            self._drop_client(slot)
            if isinstance(error, Exception):
                slot.error = error
                slot.retry = self._now() + min(_FIRST_PAUSE * 2**slot.failures, _MAX_PAUSE)
                slot.failures += 1
            raise
        slot.error, slot.failures, slot.checked = None, 0, self._now()
        if self._sweeping is None:
            self._sweeping = get_running_loop().create_task(self._sweep())

    async def _is_alive(self, slot: _Slot) -> bool:
        """Return whether the server of a connected client answers. An error response is an answer, too."""
        assert slot.client is not None
        try:
            await slot.client.ping(timeout=_CHECK_SECONDS, max_time=_CHECK_SECONDS)
        except RemoteError:
            pass
        except Error as error:
            slot.error = error
            return False
        slot.checked = self._now()
        return True

    def _leave(self, slot: _Slot) -> None:
        slot.users -= 1
        if slot.users:
            return
        if slot.is_retired:
            self._drop_if_unused(slot)
        elif self._places.waiting and slot.client is not None:
            self._close_idle()
        elif slot.client is None and (slot.error is None or len(self._slots) > _REMEMBERED_FAILURES):
            self._forget(slot)

    def _drop_if_unused(self, slot: _Slot) -> None:
        if not slot.users:
            self._drop_client(slot)
            self._forget(slot)

    def _forget(self, slot: _Slot) -> None:
        if self._slots.get(slot.key) is slot:
            del self._slots[slot.key]

    def _close_idle(self) -> None:
        """Close the client that was idle longest, if there is an idle one. Those that are kept come last."""
        idle = [slot for slot in self._slots.values() if slot.client is not None and not slot.users]
        if idle:
            now = self._now()
            self._drop_if_unused(min(idle, key=lambda slot: (slot.kept > now, slot.used)))

    def _drop_client(self, slot: _Slot) -> None:
        """Close the client of a slot, if there is one. Its place is free once it is closed."""
        client, slot.client = slot.client, None
        had_place, slot.has_place = slot.has_place, False
        if client is None and not had_place:
            return
        task = get_running_loop().create_task(self._close_client(client))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_client(self, client: Client | None) -> None:
        try:
            if client is not None:
                await client.close()
        except Exception as error:
            log_failure(logging.WARNING, "a client of a pool could not be closed", error)
        finally:
            self._places.release()

    async def _sweep(self) -> None:
        """Close the clients that were idle for too long, and forget old failures."""
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(max(0.05, min(self._idle_seconds / 4, _MAX_PAUSE)))
                now = self._now()
                for slot in list(self._unused()):
                    end = max(slot.used + self._idle_seconds, slot.kept) if slot.client else slot.retry
                    if now >= end or (slot.client is not None and not slot.is_connected):
                        self._drop_if_unused(slot)

    def _unused(self) -> Iterator[_Slot]:
        return (slot for slot in self._slots.values() if not slot.users)

    @staticmethod
    def _now() -> float:
        return get_running_loop().time()


class ClientLease:
    """The use of a client of a pool. `ClientPool.lease` makes it, and `async with` enters it."""

    def __init__(
        self,
        pool: ClientPool,
        target: Target,
        entry: ServerEntry | None,
        name: str,
        identity: str,
        caller: str,
        is_exclusive: bool,
        options: ConnectOptions,
    ) -> None:
        self.target = target
        self.name = name
        """The name of the target in the pool."""
        self.identity = identity
        self.caller = caller
        self.is_exclusive = is_exclusive
        self.options = options
        self._pool = pool
        self._entry = entry
        self._slot: Any = None

    def describe(self) -> str:
        """Return the target as text for messages, without secrets."""
        return describe_target(self.target) if self._entry is None else self._entry.describe()

    def make_client(self, defaults: ConnectOptions) -> Client:
        """Return a new client with the options of the pool and of the lease."""
        options: ConnectOptions = {**defaults, **self.options}
        if self._entry is not None:
            return self._entry.connect(**self._entry.select_options(options))
        return connect(self.target, **options)

    async def __aenter__(self) -> Client:
        self._slot = await self._pool.acquire(self, self.caller)
        client: Client = self._slot.client
        return client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._pool.release(self._slot, error)


def _closed_error() -> ConnectionLostError:
    return ConnectionLostError("the pool has been closed")
