"""What one peer can take of what all peers share, and the table of docs/limits.md: `python -m tests.docs.shares`.

Each limit is made small. One client takes as much as it gets, and a second one must be served all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import typedmcp
from tests.docs.markdown import replace_block
from tests.paths import ROOT
from tests.server.http.asgi_driver import Served, ToolHandler, make_served, message, run_loop, serving
from tests.spoken import LEGACY
from tests.typedmcp_auth.verifiers.issuer import RESOURCE, issuing
from typedmcp import Limits, MemoryStore
from typedmcp.stores import EVENT_STREAM_BYTES, StoreLimits, StreamNotFoundError
from typedmcp_auth import IntrospectionVerifier
from typedmcp_extensions.tasks import MemoryTaskStore, ServerTasks, TaskLimits
from typedmcp_gateway import Gateway

__all__ = ["PAGE", "SHARED", "Shared", "measure", "render"]

PAGE: Final = ROOT / "docs" / "limits.md"
KIB: Final = 1 << 10
PLACES: Final = 16
"""How many uses of each thing the limit allows in a measurement."""
GREEDY: Final = 40
"""How many uses the first client tries."""
ANN, BOB = "10.0.0.1", "10.0.0.2"


@dataclass(frozen=True)
class Shared:
    """Something that all clients of a process share."""

    name: str
    option: str
    default: str
    taken: Callable[[], Awaitable[int]]
    """Lets one client take what it gets. Raises `AssertionError` if the second client is not served then."""
    places: int = PLACES
    """How many uses the limit allows in the measurement."""


def default_of(limits: Callable[[], object], name: str) -> str:
    """Return the default of a limit, in bytes or as a number."""
    value: int = getattr(limits(), name)
    return f"{value >> 20:,} MiB" if name.endswith("_bytes") else f"{value:,}"


class Waiting(ToolHandler):
    """A handler that counts the calls that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0

    async def wait(self, ctx: Any, text: str = "waited") -> str:
        self.waiting += 1
        return await super().wait(ctx, text)

    async def block(self, ctx: Any) -> str:
        return str(await ctx.in_thread(self._block))

    def _block(self) -> str:
        self.waiting += 1
        self.freed.wait(20)
        return "blocked"


async def _requests() -> int:
    handler = Waiting()
    async with serving(handler, limits=Limits(call_bytes=PLACES * 4 * KIB)) as served:
        served.address = ANN
        for number in range(GREEDY):
            served.call("wait", id=number)
        await run_loop()
        served.address = BOB
        assert (await served.call("turn").reply()).text == "turned"
        return handler.waiting


async def _bodies() -> int:
    async with serving(limits=Limits(call_bytes=PLACES * 100 * KIB)) as served:
        served.address = ANN
        opened = [served.open("POST", {}, [b"x" * 100 * KIB], ends=False) for _ in range(GREEDY)]
        await run_loop()
        served.address = BOB
        text = "x" * 100 * KIB
        assert (await served.call("echo", {"text": text}).reply()).text == text
        return sum(not each.is_done for each in opened)


async def _streams() -> int:
    async with serving(limits=Limits(stream_bytes=PLACES * 16 * KIB)) as served:
        served.address = ANN
        opened = [served.listen(id=number, toolsListChanged=True) for number in range(GREEDY)]
        await run_loop()
        served.address = BOB
        await served.listen(toolsListChanged=True).next_message()
        return sum(each.status == 200 for each in opened)


async def _legacy_sse() -> int:
    async with serving(limits=Limits(stream_bytes=PLACES * 16 * KIB), sse_path="/sse") as served:
        served.address = ANN
        opened = [served.open("GET", path="/sse") for _ in range(GREEDY)]
        await run_loop()
        served.address = BOB
        assert (await served.open("GET", path="/sse").event()).event == "endpoint"
        return sum(each.status == 200 for each in opened)


async def _kept_streams() -> int:
    """Return how many streams of the first client can be resumed, when that of the second one still can be."""
    event = b"x" * (4 * KIB - EVENT_STREAM_BYTES)
    store = MemoryStore(limits=StoreLimits(kept_bytes=PLACES * 4 * KIB))
    for client in (BOB, ANN):
        await store.create_session(client, {}, client)
        for number in range(1 if client == BOB else GREEDY):
            await store.create_stream(client, str(number), b"", [event], last=True)
    assert await _is_kept(store, BOB, "0")
    return sum([await _is_kept(store, ANN, str(number)) for number in range(GREEDY)])


async def _is_kept(store: MemoryStore, session: str, stream: str) -> bool:
    with suppress(StreamNotFoundError):
        return [len(events) async for events in store.follow_stream(session, stream, 0)] == [1]
    return False


async def _subscriptions() -> int:
    uris = [f"a://{number:0{KIB - 128 - 4}}" for number in range(GREEDY)]
    async with serving(limits=Limits(subscription_bytes=PLACES * KIB)) as served:
        served.address = ANN
        granted = await served.listen(resourceSubscriptions=uris).next_message()
        served.address = BOB
        others = await served.listen(resourceSubscriptions=["a://1"]).next_message()
        assert others["params"]["notifications"]["resourceSubscriptions"] == ["a://1"]
        return len(granted["params"]["notifications"]["resourceSubscriptions"])


async def _sessions() -> int:
    store = MemoryStore(limits=StoreLimits(session_bytes=PLACES * 2 * KIB))
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": client}
    body = message(id=0, method="initialize", params=params)
    async with serving(store=store) as served:
        served.address = ANN
        replies = [await served.post(body) for _ in range(GREEDY)]
        served.address = BOB
        assert (await served.post(body)).status == 200
        return sum(reply.status == 200 for reply in replies)


async def _threads() -> int:
    handler = Waiting()
    async with serving(handler, limits=Limits(threads=PLACES)) as served:
        served.address = ANN
        for number in range(GREEDY):
            served.call("block", id=number)
        await run_loop()
        served.address = BOB
        taken = handler.waiting
        asked = served.call("block")
        while handler.waiting == taken:
            await asyncio.sleep(0.001)
        handler.freed.set()
        assert (await asked.reply()).text == "blocked"
        return taken


async def _introspections() -> int:
    answer = {"active": True, "sub": "bob", "aud": RESOURCE}
    async with issuing(active={"t": answer}, gate=asyncio.Event()) as issuer:
        verifier = IntrospectionVerifier(
            issuer.url,
            "mcp",
            "hush",
            audience=RESOURCE,
            endpoint=f"{issuer.url}/introspect",
            max_requests=PLACES // 2,
            max_waiting=PLACES // 2,
        )
        async with serving(auth=typedmcp.Auth(verifier)) as served:
            served.address = ANN
            for number in range(GREEDY):
                served.bearer = f"invented-{number}"
                served.ask("tools/list")
            await run_loop()
            taken = sum(not each.is_done for each in served.opened)
            served.address, served.bearer = BOB, "t"
            asked = served.ask("tools/list")
            while not any(b"token=t&" in request.body for request in issuer.requests):
                await asyncio.sleep(0.001)
            assert issuer.gate is not None
            issuer.gate.set()
            assert (await asked.reply()).status == 200
            return taken


async def _tasks() -> int:
    tasks = ServerTasks(MemoryTaskStore(limits=TaskLimits(tasks=PLACES)))
    server = typedmcp.Server("tasks", extensions=[tasks])

    @server.tool(task="required")
    async def wait() -> str:
        await asyncio.sleep(3600)
        return ""

    served = make_served(server)
    await served.app.open()
    try:
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        }
        served.address = ANN
        params: Any = {"name": "wait", "arguments": {}}
        replies = [await served.ask("tools/call", params, meta=meta).reply() for _ in range(GREEDY)]
        served.address = BOB
        assert "taskId" in (await served.ask("tools/call", params, meta=meta).reply()).json["result"]
        return sum("result" in reply.json for reply in replies)
    finally:
        await served.app.close()


# Gateways


@asynccontextmanager
async def _gateway(target: object, **options: Any) -> AsyncGenerator[Served]:
    served = make_served(Gateway(target, **options))
    await served.app.open()
    try:
        yield served
    finally:
        for opened in served.opened:
            await opened.discard()
        await served.app.close()


async def _until_still(count: Callable[[], int]) -> int:
    """Return a count once it has not changed for many turns of the loop."""
    last, turns = -1, 0
    while turns < 300:
        await asyncio.sleep(0)
        turns = turns + 1 if count() == last else 0
        last = count()
    return last


async def _gateway_calls() -> int:
    handler = Waiting()
    async with _gateway(typedmcp.ServerConfig(handler), max_calls=PLACES) as served:
        served.address = ANN
        for number in range(GREEDY):
            served.call("wait", id=number)
        taken = await _until_still(lambda: handler.waiting)
        served.address = BOB
        assert (await served.call("turn").reply()).text == "turned"
        return taken


async def _gateway_connections() -> int:
    handler = Waiting()
    target = typedmcp.ServerConfig(handler, revisions=[LEGACY[0]])
    async with _gateway(target, max_connections=PLACES) as served:
        served.address = ANN
        for session in [await served.session(LEGACY[0]) for _ in range(GREEDY)]:
            session.call("wait")
        taken = await _until_still(lambda: handler.waiting)
        served.address = BOB
        other = await served.session(LEGACY[0])
        assert (await other.call("turn").reply()).text == "turned"
        return taken


async def _gateway_parked() -> int:
    target = typedmcp.ServerConfig(ToolHandler(), revisions=[LEGACY[0]])
    roots: dict[str, Any] = {"meta": {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}}
    async with _gateway(target, max_parked=PLACES, max_connections=1000) as served:
        served.address = ANN
        replies = [await served.call("roots", id=number, **roots).reply() for number in range(GREEDY)]
        served.address = BOB
        assert (await served.call("roots", **roots).reply()).json["result"]["resultType"] == "input_required"
        return sum("result" in reply.json for reply in replies)


async def _gateway_subscriptions() -> int:
    server = typedmcp.Server("notes")

    @server.resource("note://{name}")
    def note(name: str) -> str:
        return name

    uris = [f"note://{number}" for number in range(160)]
    async with _gateway(server) as served:
        served.address = ANN
        granted = await served.listen(resourceSubscriptions=uris).next_message()
        served.address = BOB
        others = await served.listen(resourceSubscriptions=["note://last"]).next_message()
        assert others["params"]["notifications"]["resourceSubscriptions"] == ["note://last"]
        return len(granted["params"]["notifications"]["resourceSubscriptions"])


_OF_GATEWAYS = "option of `Gateway`"
SHARED: Final[Sequence[Shared]] = (
    Shared("requests in progress", "`call_bytes`", default_of(Limits, "call_bytes"), _requests),
    Shared("bodies that arrive", "`call_bytes`", default_of(Limits, "call_bytes"), _bodies),
    Shared("event streams and listeners", "`stream_bytes`", default_of(Limits, "stream_bytes"), _streams),
    Shared("streams of HTTP+SSE", "`stream_bytes`", default_of(Limits, "stream_bytes"), _legacy_sse),
    Shared("streams to resume", "`StoreLimits.kept_bytes`", default_of(StoreLimits, "kept_bytes"), _kept_streams),
    Shared("resources of listeners", "`subscription_bytes`", default_of(Limits, "subscription_bytes"), _subscriptions),
    Shared("sessions", "`StoreLimits.session_bytes`", default_of(StoreLimits, "session_bytes"), _sessions),
    Shared("threads of functions that block", "`threads`", default_of(Limits, "threads"), _threads),
    Shared("introspections", "`max_requests` and `max_waiting` of the verifier", "16 and 256", _introspections),
    Shared("tasks", "`TaskLimits.tasks`", default_of(TaskLimits, "tasks"), _tasks),
    Shared("calls of a gateway over one connection", f"`max_calls`, {_OF_GATEWAYS}", "1,000", _gateway_calls),
    Shared("connections of a gateway", f"`max_connections`, {_OF_GATEWAYS}", "100", _gateway_connections),
    Shared("calls of a gateway that wait for answers", f"`max_parked`, {_OF_GATEWAYS}", "1,000", _gateway_parked),
    Shared("subscriptions of a gateway over one connection", "none", "500", _gateway_subscriptions, 500),
)


async def measure() -> list[tuple[Shared, int]]:
    """Return how much one client got of each thing."""
    return [(each, await each.taken()) for each in SHARED]


def render(measured: Sequence[tuple[Shared, int]]) -> str:
    """Render the measurements as a table."""
    lines = ["\n| shared by all clients | option | default | one client got |", "|---|---|---|---|"]
    lines += [
        f"| {each.name} | {each.option} | {each.default} | {taken} of {each.places} |" for each, taken in measured
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(page, "shares", render(asyncio.run(measure()))), encoding="utf-8")
