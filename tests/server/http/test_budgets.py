"""What one client makes the server keep is counted, limited, and does not take anything from other clients."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from typing import Any

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import (
    CompleteResponse,
    OpenRequest,
    Served,
    SessionClient,
    ToolHandler,
    in_loop,
    message,
    run_loop,
    serving,
    verify,
)
from typedmcp import Limits, MemoryStore
from typedmcp.server.http.messages import cache_short_values
from typedmcp.stores import StoreLimits

KIB = 1 << 10
MIB = 1 << 20
ANN, BOB = "10.0.0.1", "10.0.0.2"


async def initialize(served: Served, address: str, **client: str) -> CompleteResponse:
    """Send `initialize` from an address."""
    served.address = address
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1", **client},
    }
    return await served.post(message(id=0, method="initialize", params=params))


async def session_from(served: Served, address: str, revision: str = "2025-11-25") -> SessionClient:
    """Begin a session from an address."""
    served.address = address
    return await served.session(revision)


def in_use(served: Served, name: str) -> int:
    return served.app.limits_in_use()[name]


# Sessions


@in_loop
async def test_one_client_cannot_take_the_sessions_of_all() -> None:
    store = MemoryStore(limits=StoreLimits(session_bytes=64 * KIB))
    async with serving(store=store) as served:
        last = [await initialize(served, ANN, title="x" * 4000) for _ in range(20)][-1]
        assert (last.status, "retry-after" in last.headers) == (503, True)
        assert served.kinds == ["limit reached"], "once, although many were refused"
        assert (await initialize(served, BOB)).status == 200


@in_loop
async def test_the_addresses_of_one_network_are_one_client() -> None:
    store = MemoryStore(limits=StoreLimits(session_bytes=64 * KIB))
    async with serving(store=store) as served:
        replies = [await initialize(served, f"2001:db8:0:1::{host:x}", title="x" * 4000) for host in range(20)]
        assert replies[-1].status == 503
        assert (await initialize(served, "2001:db8:0:2::1")).status == 200
        for text in ("::ffff:10.0.0.1", "testclient", "fe80::1%eth0"):
            assert (await initialize(served, text)).status == 200


@in_loop
async def test_an_authenticated_client_is_counted_by_its_principal() -> None:
    auth = typedmcp.Auth(verify, resource="https://x/mcp", issuers=["https://i"])
    async with serving(store=MemoryStore(limits=StoreLimits(session_bytes=64 * KIB)), auth=auth) as served:
        served.bearer = "ann"
        replies = [await initialize(served, f"10.0.1.{host}", title="x" * 4000) for host in range(20)]
        assert replies[-1].status == 503
        served.bearer = "bob"
        assert (await initialize(served, "10.0.1.0")).status == 200


# Subscriptions


@in_loop
async def test_subscriptions_of_sessions_are_limited_in_bytes() -> None:
    async with serving(store=MemoryStore(limits=StoreLimits(session_bytes=64 * KIB))) as served:
        bob, ann = await session_from(served, BOB), await session_from(served, ANN)
        uris = [f"a://{number}{'x' * 4000}" for number in range(10)]
        last = [await ann.ask("resources/subscribe", {"uri": uri}).reply() for uri in uris][-1]
        assert last.code == -32602
        assert "limit" in last.json["error"]["message"]
        assert (await bob.ask("resources/subscribe", {"uri": "a://1"}).reply()).json["result"] == {}
        assert served.kinds == ["limit reached"]


@in_loop
async def test_a_listener_is_granted_the_resources_for_which_there_is_room() -> None:
    uris = [f"a://{number}{'x' * 1000}" for number in range(50)]
    async with serving(limits=Limits(subscription_bytes=64 * KIB)) as served:
        served.address = ANN
        ann = served.listen(resourceSubscriptions=uris)
        granted = (await ann.next_message())["params"]["notifications"]["resourceSubscriptions"]
        assert granted == uris[: len(granted)]
        assert len(granted) == 15, "each counts its length and 128 bytes; the share is 16 KiB"
        assert in_use(served, "call_bytes") < 8 * KIB, "the message was dropped"
        served.address = BOB
        bob = served.listen(resourceSubscriptions=["a://1"])
        assert (await bob.next_message())["params"]["notifications"]["resourceSubscriptions"] == ["a://1"]
        ann.disconnect()
        await ann.done()
        assert in_use(served, "subscription_bytes") == 5 + 128


class Refusing(ToolHandler):
    """A handler that lets nobody subscribe."""

    async def authorize_subscriptions(self, _params: Any, _ctx: typedmcp.Context) -> Any:
        raise typedmcp.ToolError("not for you")


@in_loop
async def test_a_listener_that_is_refused_holds_nothing() -> None:
    async with serving(Refusing()) as served:
        reply = await served.listen(resourceSubscriptions=["a://1"]).reply()
        assert "error" in reply.answer
        assert in_use(served, "subscription_bytes") == 0


# Calls in progress


@in_loop
async def test_calls_whose_client_has_left_are_counted_until_they_end() -> None:
    async with serving(limits=Limits(call_bytes=256 * KIB)) as served:
        bob, ann = await session_from(served, BOB), await session_from(served, ANN)
        for number in range(10):
            call = ann.call("wait", {"text": "x" * 10_000}, id=number)
            await served.handler.entered.wait()
            call.disconnect()
        await run_loop()
        waiting = [request for request in served.opened if not request.is_done]
        assert len(waiting) == 5, "each counts 14 KiB, and the share is 64 KiB"
        assert (await ann.call("echo", id="more").reply()).code == -32603
        assert (await ann.notify("notifications/cancelled", {"requestId": 0})).status == 202
        await run_loop()
        assert (await ann.call("echo", id="more").reply()).text == "echo"
        served.address = BOB
        assert (await bob.call("echo").reply()).text == "echo"
        assert served.kinds == ["limit reached"]
        served.handler.go.set()
        await run_loop()
        assert in_use(served, "call_bytes") == 0


@each("count", [1, 3])
@in_loop
async def test_the_headers_of_a_post_count_once_while_its_calls_wait(count: int) -> None:
    async with serving() as served:
        session = await session_from(served, ANN, "2025-03-26")
        session.headers["x-padding"] = "p" * 20 * KIB
        calls = [
            json.loads(message(id=id, method="tools/call", params={"name": "wait", "arguments": {}}))
            for id in range(count)
        ]
        call = session.post(json.dumps(calls if count > 1 else calls[0]).encode())
        await run_loop()
        assert 20 * KIB < in_use(served, "call_bytes") - count * 4 * KIB < 22 * KIB
        served.handler.go.set()
        await call.reply()
        assert in_use(served, "call_bytes") == 0


@in_loop
async def test_too_many_calls_of_one_client_are_refused_with_a_status_that_asks_for_patience() -> None:
    async with serving(limits=Limits(call_bytes=64 * KIB)) as served:
        served.address = ANN
        calls = [served.call("wait", id=number) for number in range(8)]
        await run_loop()
        refused = [await call.reply() for call in calls if call.is_done]
        assert len(refused) == 4, "each counts more than 4 KiB, and the share is 16 KiB"
        assert {(reply.status, reply.code, "retry-after" in reply.headers) for reply in refused} == {
            (503, -32603, True)
        }
        served.address = BOB
        assert (await served.call("turn").reply()).text == "turned"
        served.handler.go.set()
        served.address = ANN
        await run_loop()
        assert (await served.call("turn").reply()).text == "turned"


@in_loop
async def test_bodies_that_arrive_slowly_are_counted() -> None:
    async with serving(limits=Limits(call_bytes=MIB)) as served:
        served.address = ANN
        slow = [served.open("POST", {}, [b"x" * 100 * KIB], ends=False) for _ in range(3)]
        await run_loop()
        assert in_use(served, "call_bytes") == 300 * KIB
        reply = await served.post(b"x" * 100 * KIB)
        assert (reply.status, "retry-after" in reply.headers) == (503, True)
        assert (await served.call("echo").reply()).code == -32603
        served.address = BOB
        assert (await served.call("echo", {"text": "x" * 100 * KIB}).reply()).text == "x" * 100 * KIB
        for each in slow:
            each.disconnect()
        await run_loop()
        assert in_use(served, "call_bytes") == 0
        served.address = ANN
        assert (await served.call("echo").reply()).text == "echo"


@in_loop
async def test_a_body_in_small_parts_is_counted_once_it_is_large() -> None:
    async with serving() as served:
        small = served.open("POST", {}, [b"x" * KIB] * 64, ends=False)
        large = served.open("POST", {}, [b"x" * KIB] * 65, ends=False)
        await run_loop(100)
        assert in_use(served, "call_bytes") == 65 * KIB
        large.upload(b"x" * KIB)
        small.disconnect()
        large.disconnect()


class LargeResults(ToolHandler):
    async def large(self, ctx: Any, size: int = 3 * MIB) -> str:
        return "x" * size


@in_loop
async def test_a_large_result_is_sent_in_pieces_and_counts_until_it_is_read() -> None:
    async with serving(LargeResults(), limits=Limits(call_bytes=4 * MIB)) as served:
        served.address = ANN
        call = served.call("large", held=True)
        await run_loop()
        assert in_use(served, "call_bytes") > 3 * MIB
        assert (await served.call("echo").reply()).code == -32603
        served.address = BOB
        assert (await served.call("echo").reply()).text == "echo"
        call.release()
        reply = await call.reply()
        assert (reply.headers["content-length"], len(reply.text)) == (str(len(reply.body)), 3 * MIB)
        assert [len(part.get("body", b"")) <= MIB for part in call.sent] == [True] * 5


@in_loop
async def test_the_results_of_a_batch_count_while_others_are_missing() -> None:
    async with serving(LargeResults(), limits=Limits(call_bytes=4 * MIB)) as served:
        session = await session_from(served, ANN, "2025-03-26")
        names = ["large"] * 5 + ["wait"]
        arguments = [{"size": 400 * KIB}] * 5 + [{}]
        calls = [
            json.loads(message(id=id, method="tools/call", params={"name": name, "arguments": each}))
            for id, (name, each) in enumerate(zip(names, arguments, strict=True))
        ]
        post = session.post(json.dumps(calls).encode())
        await run_loop()
        assert 1 * MIB < in_use(served, "call_bytes") < 1.5 * MIB
        await session.notify("notifications/cancelled", {"requestId": 5})
        answers = json.loads((await post.reply()).body)
        assert sorted(each.get("error", {}).get("code", 0) for each in answers) == [-32603, -32603, 0, 0, 0]
        assert in_use(served, "call_bytes") == 0


class LargeLater(ToolHandler):
    async def large(self, ctx: Any, size: int = MIB) -> str:
        await self.go.wait()
        return "x" * size


@in_loop
async def test_large_results_that_are_ready_together_do_not_take_the_budget_of_others() -> None:
    async with serving(LargeLater(), limits=Limits(call_bytes=4 * MIB)) as served:
        served.address = ANN
        calls = [served.call("large", id=number, held=True) for number in range(10)]
        await run_loop()
        served.handler.go.set()
        await run_loop()
        assert MIB < in_use(served, "call_bytes") < 1.1 * MIB, "that of the first, which crosses the line"
        served.address = BOB
        assert (await served.call("large").reply()).text == "x" * MIB
        for call in calls:
            call.release()
        replies = [await call.reply() for call in calls]
        assert [len(reply.text) for reply in replies if reply.code is None] == [MIB]
        errors = [reply for reply in replies if reply.code is not None]
        assert {(reply.code, reply.status) for reply in errors} == {(-32603, 200)}, "not 503: the call was executed"
        assert all("the result is dropped" in reply.json["error"]["message"] for reply in errors)
        assert served.kinds == ["limit reached"]
        assert in_use(served, "call_bytes") == 0


@in_loop
async def test_a_client_that_exceeds_its_share_with_one_result_takes_nothing_from_others() -> None:
    async with serving(LargeResults(), limits=Limits(call_bytes=4 * MIB)) as served:
        served.address = ANN
        call = served.call("large", {"size": 8 * MIB}, held=True)
        await run_loop()
        assert in_use(served, "call_bytes") > 8 * MIB
        assert (await served.call("echo").reply()).code == -32603
        served.address = BOB
        assert (await served.call("echo").reply()).text == "echo"
        call.release()
        assert len((await call.reply()).text) == 8 * MIB
        served.address = ANN
        assert (await served.call("echo").reply()).text == "echo"


# Event streams


class Announced(ToolHandler):
    async def large(self, ctx: Any, size: int = MIB) -> str:
        ctx.progress(1)
        await self.go.wait()
        return "x" * size


@in_loop
async def test_large_results_in_streams_that_are_not_read_are_limited_for_each_client() -> None:
    meta = {"progressToken": 1}
    async with serving(Announced(), limits=Limits(stream_bytes=4 * MIB)) as served:
        served.address = ANN
        calls = [served.call("large", id=number, meta=meta, held=True) for number in range(10)]
        await run_loop()
        served.handler.go.set()
        await run_loop()
        assert MIB < in_use(served, "stream_bytes") < 1.5 * MIB, "the first result, and 16 KiB for each stream"
        served.address = BOB
        assert (await served.call("large", meta=meta).reply()).answer["result"]["content"][0]["text"] == "x" * MIB
        for call in calls:
            call.release()
        answers = [(await call.reply()).answer for call in calls]
        assert [len(each["result"]["content"][0]["text"]) for each in answers if "result" in each] == [MIB]
        errors = [each["error"] for each in answers if "error" in each]
        assert {each["code"] for each in errors} == {-32603}
        assert all("the result is dropped" in each["message"] for each in errors)
        assert served.kinds == ["limit reached"]
        assert in_use(served, "stream_bytes") == 0


@each("in_session", [False, True])
@in_loop
async def test_a_large_event_is_sent_in_pieces(in_session: bool) -> None:
    async with serving(Announced()) as served:
        session = await session_from(served, ANN)
        served.handler.go.set()
        call = (session if in_session else served).call("large", {"size": 5 * MIB}, meta={"progressToken": 1})
        reply = await call.reply()
        assert reply.answer["result"]["content"][0]["text"] == "x" * 5 * MIB
        assert max(len(part.get("body", b"")) for part in call.sent) < MIB + KIB


class Chatty(ToolHandler):
    async def chat(self, ctx: Any, count: int = 30) -> str:
        for step in range(count):
            ctx.progress(step, message="x" * 1000)
        await self.go.wait()
        return "done"


@in_loop
async def test_streams_that_are_not_read_share_a_budget() -> None:
    limits = Limits(stream_bytes=256 * KIB)
    async with serving(Chatty(), limits=limits) as served:
        meta = {"progressToken": 1}
        served.address = ANN
        calls = [served.call("chat", id=number, meta=meta, held=True) for number in range(6)]
        await run_loop()
        assert in_use(served, "stream_bytes") < 100 * KIB, "the share is 64 KiB, and the messages have 180 KiB"
        assert {*served.kinds} == {"limit reached", "dropped"}
        assert served.kinds.count("limit reached") == 1
        served.address = BOB
        bob = served.call("chat", meta=meta)
        assert [(await bob.next_message())["params"]["progress"] for _ in range(30)] == [*range(30)]
        served.handler.go.set()
        for call in calls:
            call.release()
            assert (await call.reply()).answer["result"]["content"][0]["text"] == "done"


@in_loop
async def test_open_streams_are_counted_for_each_client() -> None:
    async with serving(limits=Limits(stream_bytes=256 * KIB)) as served:
        ann, bob = [await session_from(served, ANN) for _ in range(5)], await session_from(served, BOB)
        served.address = ANN
        for session in ann[:4]:
            await session.listening()
        reply = await ann[4].get().reply()
        assert (reply.status, "retry-after" in reply.headers) == (503, True)
        served.address = BOB
        await bob.listening()


@in_loop
async def test_reaching_the_number_of_streams_is_reported_once() -> None:
    async with serving(limits=Limits(http_streams=2)) as served:
        sessions = [await served.session() for _ in range(4)]
        for session in sessions[:2]:
            await session.listening()
        for session in sessions[2:]:
            assert (await session.get().reply()).status == 503
        assert served.kinds == ["limit reached"]


# HTTP with SSE


async def sse_client(served: Served) -> tuple[OpenRequest, str]:
    """Open an event stream of 2024-11-05, and return it with the path and query for messages."""
    stream = served.open("GET", {"accept": "text/event-stream"}, path="/sse")
    event = await stream.event()
    assert isinstance(event.data, bytes)
    return stream, event.data.decode()


async def initialize_over_sse(served: Served, stream: OpenRequest, target: str) -> None:
    """Initialize a connection of 2024-11-05."""
    path, _, query = target.partition("?")
    info = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    for body in (message(id=0, method="initialize", params=info), message(method="notifications/initialized")):
        assert (await served.post(body, path=path, query=query.encode())).status == 202
    assert (await stream.next_message())["id"] == 0


@in_loop
async def test_large_results_in_a_stream_of_http_with_sse_are_limited() -> None:
    async with serving(LargeLater(), sse_path="/sse", limits=Limits(stream_bytes=4 * MIB)) as served:
        served.address = ANN
        stream, target = await sse_client(served)
        await initialize_over_sse(served, stream, target)
        stream.hold()
        path, _, query = target.partition("?")
        for number in range(10):
            body = message(id=number, method="tools/call", params={"name": "large", "arguments": {}})
            assert (await served.post(body, path=path, query=query.encode())).status == 202
        served.handler.go.set()
        await run_loop()
        assert MIB < in_use(served, "stream_bytes") < 1.2 * MIB
        stream.release()
        answers = [await stream.next_message() for _ in range(10)]
        assert sorted(each["id"] for each in answers) == [*range(10)]
        assert sorted(each.get("error", {}).get("code", 0) for each in answers) == [-32603] * 9 + [0]
        assert served.kinds == ["limit reached"]


@in_loop
async def test_posts_to_a_stream_that_is_not_read_wait_before_they_are_queued() -> None:
    limits = Limits(sse_queue_bytes=100 * KIB, call_bytes=4 * MIB, http_stream_buffer_bytes=10 * KIB)
    async with serving(LargeResults(), sse_path="/sse", limits=limits) as served:
        served.address = ANN
        stream, target = await sse_client(served)
        path, _, query = target.partition("?")
        await initialize_over_sse(served, stream, target)
        stream.hold()
        call = {"name": "echo", "arguments": {"text": "x" * 90 * KIB}}
        bodies = [message(id=number, method="tools/call", params=call) for number in range(10, 30)]
        posts = [served.open("POST", (), body, path=path, query=query.encode()) for body in bodies]
        await run_loop()
        waiting = [each for each in posts if not each.is_done]
        refused = [each for each in posts if each.is_done and each.status == 503]
        assert len(waiting) > 3, "the queue has room for two"
        assert len(refused) > 3, "the share is 1 MiB, in which there is room for twelve"
        messages_waiting = sum(len(body) for body in bodies[: len(waiting)])
        assert messages_waiting + 4 * KIB * (len(waiting) - 1) < in_use(served, "call_bytes")
        stream.release()
        answered = len(posts) - len(refused)
        ids = [(await stream.next_message())["id"] for _ in range(answered)]
        assert len(ids) == len({*ids}) == answered
        assert {(await each.reply()).status for each in waiting} == {202}


# Header values


@each("length, checks", [(1, 1), (256, 1), (257, 3), (60_000, 3)])
def test_results_of_checks_are_cached_for_short_header_values_only(length: int, checks: int) -> None:
    checked: list[bytes] = []

    def note(value: bytes) -> bool:
        checked.append(value)
        return True

    check = cache_short_values(note)
    value = b"v" * length
    assert [check(value) for _ in range(3)] == [True] * 3
    assert checked == [value] * checks


# Turns


class Blocking(ToolHandler):
    def __init__(self) -> None:
        super().__init__()
        self.blocked: list[str] = []

    async def block(self, ctx: Any, name: str = "") -> str:
        return str(await ctx.in_thread(self._block, name))

    def _block(self, name: str) -> str:
        self.blocked.append(name)
        if name == "ann":
            self.freed.wait(10)
        return name


@in_loop
async def test_the_blocking_calls_of_one_client_leave_threads_for_others() -> None:
    async with serving(Blocking(), limits=Limits(threads=4)) as served:
        served.address = ANN
        for number in range(40):
            served.call("block", {"name": "ann"}, id=number)
        served.address = BOB
        await run_loop()
        for _ in range(3):
            assert (await served.call("block", {"name": "bob"}).reply()).text == "bob"
        assert served.handler.blocked.count("ann") == 3
        served.handler.freed.set()


class InOrder(ToolHandler):
    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    async def note(self, ctx: Any, name: str, padding: str = "") -> str:
        self.order.append(name)
        return name


@in_loop
async def test_large_bodies_of_one_client_let_others_pass() -> None:
    async with serving(InOrder()) as served:
        await served.call("note", {"name": "first"}).reply()
        served.address = ANN
        large = [served.call("note", {"name": "ann", "padding": "x" * 100 * KIB}, id=at) for at in range(20)]
        served.address = BOB
        bob = served.call("note", {"name": "bob"})
        other = served.call("note", {"name": "bob", "padding": "x" * 100 * KIB}, id=2)
        await asyncio.gather(bob.reply(), other.reply(), *(each.reply() for each in large))
        places = [at for at, name in enumerate(served.handler.order) if name == "bob"]
        assert places[0] <= 3, "others are served between two large bodies"
        assert places[1] <= 5, "clients take turns"
        assert gc.isenabled()


def test_the_names_of_limits_in_use_are_those_of_limits() -> None:
    app = typedmcp.asgi(ToolHandler())
    assert {*app.limits_in_use()} <= {*Limits.__struct_fields__}
    assert not any(app.limits_in_use().values())


@each("thread", [True, False])
@in_loop
async def test_what_a_handler_sends_from_a_thread_counts_for_its_client(thread: bool) -> None:
    class FromThread(ToolHandler):
        async def shout(self, ctx: Any) -> str:
            def send() -> None:
                ctx.progress(1, message=threading.current_thread().name)

            await ctx.in_thread(send) if thread else send()
            await self.go.wait()
            return "done"

    async with serving(FromThread(), limits=Limits(stream_bytes=256 * KIB)) as served:
        served.address = ANN
        call = served.call("shout", meta={"progressToken": 1})
        await call.next_message()
        budget = served.app.config.budgets.streams
        assert budget.held_by(f"address {ANN}") == 16 * KIB
        assert json.dumps(served.app.limits_in_use())
