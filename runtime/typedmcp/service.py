"""A handler object with all that is needed to serve it on any number of connections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_object
from typedmcp import dialect
from typedmcp.changes import Changes
from typedmcp.codec import Backend
from typedmcp.dispatch import capabilities_of, functions_of
from typedmcp.edge.convert import with_meta
from typedmcp.edge.revisions import DIALECT, SUPPORTED, is_modern
from typedmcp.errors import UsageError
from typedmcp.lifespan import Lifespan, Running
from typedmcp.meta import SERVER_INFO
from typedmcp.peer import Kind, Report
from typedmcp.sealer import Sealer
from typedmcp.wire import DEFAULT_LIMIT

__all__ = ["Service"]

D = dialect.structs

_log = logging.getLogger("typedmcp")


def _to_log(report: Report) -> None:
    """Where reports go unless somebody takes them: the log `typedmcp`."""
    level = logging.WARNING if report.kind is Kind.FAILED else logging.DEBUG
    _log.log(level, "%s: %s", report.kind, report.text, exc_info=report.error)


class Service:
    """What is served: a handler, who it says it is, and the limits.

    `handler` is a `Server`, a subclass of `dialect.handlers.ServerStub`, or any object with some of its methods.
    `lifespan` is a function that gets the handler and gives an async context manager, which is entered before the first
    request and left after the last; what it yields is `ctx.lifespan`.
    `revisions` are the protocol revisions to speak, all by default. `codec` is the library whose types the handler
    takes and gives. `sealer` seals `requestState`; `changes` is the hub; `on_report` hears of everything that is not
    an error of a call. Limits: `limit` bytes a message, `in_flight` requests at a time, `batch` messages in a frame,
    `subscriptions` to resources for one listener, `threads` for handlers that block, `rounds` of input requests for
    one call, `grace` seconds for open requests when the connection ends.
    """

    def __init__(
        self,
        handler: object,
        *,
        name: str | None = None,
        version: str | None = None,
        title: str | None = None,
        instructions: str | None = None,
        lifespan: Lifespan | None = None,
        revisions: Sequence[str] = SUPPORTED,
        codec: Backend = "msgspec",
        capabilities: D.ServerCapabilities | None = None,
        sealer: Sealer | None = None,
        changes: Changes | None = None,
        on_report: Callable[[Report], None] = _to_log,
        limit: int = DEFAULT_LIMIT,
        in_flight: int = 65_536,
        batch: int = 1000,
        subscriptions: int = 10_000,
        threads: int = 32,
        rounds: int = 10,
        grace: float = 5.0,
    ) -> None:
        if unknown := [revision for revision in revisions if revision not in SUPPORTED]:
            raise UsageError(f"no revision {unknown[0]!r}; there are {', '.join(SUPPORTED)}")
        if not revisions:
            raise UsageError(f"no revisions to speak; there are {', '.join(SUPPORTED)}")
        if codec not in ("msgspec", "pydantic"):
            raise UsageError(f"no codec {codec!r}; there are msgspec and pydantic")
        limits = {
            "limit": limit, "in_flight": in_flight, "batch": batch, "subscriptions": subscriptions, "threads": threads,
            "rounds": rounds,
        }  # fmt: skip
        for option, value in limits.items():
            if value < 1:
                raise UsageError(f"{option} must be positive, not {value}")
        if grace < 0:
            raise UsageError(f"grace must not be negative, it is {grace:g}")
        if isinstance(handler, type):
            raise UsageError(f"{handler.__name__} is a class: give an object, {handler.__name__}()")
        own: dict[str, Any] = _own(handler, codec)
        self.handler = handler
        self.functions: dict[str, Callable[..., Any]] = functions_of(handler)
        self.info: D.Implementation = _named(handler, own.get("info"), name, version, title)
        self.instructions: str | None = own.get("instructions") if instructions is None else instructions
        lifespans = own.get("lifespans", dict)
        self.running: Running = Running(lifespans if lifespan is None else lambda: {**lifespans(), handler: lifespan})
        """Its lifespan: to be entered by whatever serves it."""
        self.revisions: list[str] = [revision for revision in SUPPORTED if revision in revisions]
        self.legacy: list[str] = [revision for revision in self.revisions if not is_modern(revision)]
        self.speaks_dialect: bool = DIALECT in self.revisions
        self.codec: Backend = codec
        self.capabilities: D.ServerCapabilities = (
            capabilities or own.get("capabilities") or capabilities_of(self.functions)
        )
        self.sealer: Sealer = sealer or Sealer()
        self.changes: Changes = own.get("changes", Changes()) if changes is None else changes
        self.on_report = on_report
        self.limit = limit
        self.in_flight = in_flight
        self.batch = batch
        self.subscriptions = subscriptions
        self.threads = threads
        self.rounds = rounds
        self.grace = grace
        self.result_meta: dict[str, Any] = {SERVER_INFO: D.to_builtins(self.info)}
        """What every modern result's `_meta` says of the server."""
        self.copiers: dict[type, Callable[[Any, Any], Any]] = {}
        """What puts another `_meta` into a result, by its class."""
        self.alone: msgspec.Raw = msgspec.Raw(msgspec.json.encode(self.result_meta))

    def lifespan_of(self, owner: object) -> Any:
        """What the lifespan of a handler yielded: of the one that is served, or of a server mounted in it."""
        return self.running.states.get(self.handler if owner is None else owner)

    def named(self, result: Any) -> Any:
        """A modern result whose `_meta` names the server."""
        kind: Any = result.__class__
        copy = self.copiers.get(kind)
        if copy is not None:
            own = result.meta
            return copy(result, self.alone if own is UNSET else {**self.result_meta, **own})
        if is_object(result):
            return {"resultType": "complete", **result, "_meta": {**self.result_meta, **result.get("_meta", {})}}
        if not isinstance(result, msgspec.Struct):
            return result
        self.copiers[kind] = with_meta(kind)
        return self.named(result)


def _own(handler: object, codec: Backend) -> dict[str, Any]:
    """What a handler says of itself, where it is a `Server`."""
    said = getattr(handler, "__service__", None)
    if said is None or isinstance(handler, type):
        return {}
    if codec != "msgspec":
        raise UsageError("a Server makes its own types: codec is for handlers")
    found: dict[str, Any] = said()
    return found


def _named(
    handler: object, info: D.Implementation | None, name: str | None, version: str | None, title: str | None
) -> D.Implementation:
    """Who the server says it is: as the options say, else as it says itself."""
    if info is None:
        info = D.Implementation(name=type(handler).__name__, version="0")
    given = {"name": name, "version": version, "title": title}
    return msgspec.structs.replace(info, **{member: value for member, value in given.items() if value is not None})
