"""Servers that break the protocol: every call ends with a result or with an error that names the cause."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import typedmcp
from tests.conformance import server
from tests.server.scripted import MODERN_REVISION, SUPPORTED, Json, run
from typedmcp.client import Client, connect
from typedmcp.dialect import structs
from typedmcp.limits import Limits
from typedmcp.transports.memory import MemoryTransport

COMPLETE: Json = {"resultType": "complete", "content": [{"type": "text", "text": "good"}]}
DISCOVERED: Json = {
    "resultType": "complete",
    "supportedVersions": [MODERN_REVISION],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "public",
}
INITIALIZED: Json = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}


class Script:
    """The server, played by the test."""

    def __init__(self, transport: MemoryTransport, reports: list[typedmcp.Diagnostic]) -> None:
        self.transport = transport
        self.reports = reports
        self._rest = b""
        self._lines: list[bytes] = []

    async def receive(self) -> Any:
        """Wait for the next message of the client."""
        while not self._lines:
            async with asyncio.timeout(10):
                data = await self.transport.read()
            assert data, "the client ended the connection"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines += lines
        return json.loads(self._lines.pop(0))

    async def settled(self) -> list[Any]:
        """Return the messages that the client sends within a short time."""
        await asyncio.sleep(0.02)
        found: list[Any] = []
        try:
            async with asyncio.timeout(0.02):
                while True:
                    found.append(await self.receive())
        except TimeoutError:
            return found

    def send(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def raw(self, line: bytes) -> None:
        self.transport.write(line + b"\n")

    def kinds(self) -> list[str]:
        return [str(report.kind) for report in self.reports]


@asynccontextmanager
async def played(revision: str = MODERN_REVISION, **options: Any) -> AsyncGenerator[tuple[Client, Script]]:
    """Connect a client to a server that the test plays, and complete the negotiation."""
    reports: list[typedmcp.Diagnostic] = []
    near, far = typedmcp.memory_pair()
    script = Script(far, reports)
    client = connect(near, revisions=[revision], on_diagnostic=reports.append, **options)
    opening = asyncio.create_task(client.open())
    request = await script.receive()
    script.send(id=request["id"], result=DISCOVERED if revision == MODERN_REVISION else INITIALIZED)
    if revision != MODERN_REVISION:
        await script.receive()
    await opening
    try:
        yield client, script
    finally:
        await client.close()


def text(result: structs.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, structs.TextContent)
    return content.text


INVALID_MESSAGES: dict[str, tuple[list[bytes], list[str]]] = {
    "not JSON": ([b"Starting server..."], ["malformed"]),
    "half a response": ([b'{"jsonrpc":"2.0","resu'], ["malformed"]),
    "not UTF-8": ([b'{"jsonrpc":"2.0","method":"\xff"}'], ["malformed"]),
    "a number": ([b"7"], ["malformed"]),
    "an empty array": ([b"[]"], []),
    "blank lines": ([b"", b" \r"], []),
    "a response to no request": ([b'{"jsonrpc":"2.0","id":99,"result":{}}'], ["unexpected response"]),
    "an error to no request": ([b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":""}}'], ["unexpected response"]),
    "an id that is null": ([b'{"jsonrpc":"2.0","id":null,"result":{}}'], ["malformed"]),
    "a request": ([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'], ["unexpected message"]),
    "an invalid request": ([b'{"jsonrpc":"2.0","id":{},"method":"ping"}'], ["malformed"]),
    "an unknown notification": ([b'{"jsonrpc":"2.0","method":"x/y"}'], ["unexpected message"]),
    "progress of no call": (
        [b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":1}}'],
        ["unexpected message"],
    ),
    "invalid progress": (
        [b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'],
        ["rejected notification"],
    ),
    "deep nesting": (
        [b'{"jsonrpc":"2.0","method":"x","params":' + b'{"a":' * 100_000 + b"1" + b"}" * 5001],
        ["malformed"],
    ),
}


@pytest.mark.parametrize("junk", INVALID_MESSAGES)
def test_invalid_messages_are_reported_and_calls_go_on(junk: str) -> None:
    lines, kinds = INVALID_MESSAGES[junk]

    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            for line in lines:
                script.raw(line)
            assert await script.settled() == []
            script.send(id=request["id"], result=COMPLETE)
            assert text(await call) == "good"
            assert script.kinds() == kinds

    run(main)


WRONG_RESPONSES: dict[str, tuple[Json, type[Exception], str]] = {
    "result and error": (
        {"result": COMPLETE, "error": {"code": 1, "message": "x"}},
        typedmcp.ProtocolError,
        "both `result` and `error`",
    ),
    "neither": ({}, typedmcp.ProtocolError, "method: required, but missing"),
    "a result that is null": ({"result": None}, typedmcp.ProtocolError, "expected object"),
    "a result without content": ({"result": {"resultType": "complete"}}, typedmcp.ProtocolError, "content"),
    "a result of an unknown type": ({"result": {**COMPLETE, "resultType": "x"}}, typedmcp.ProtocolError, "resultType"),
    "an error that is a string": ({"error": "no"}, typedmcp.ProtocolError, "must be objects"),
    "an error without a code": ({"error": {"message": "no"}}, typedmcp.RemoteError, "no"),
    "an error": ({"error": {"code": -32601, "message": "no"}}, typedmcp.MethodNotFoundError, "no"),
}


@pytest.mark.parametrize("wrong", WRONG_RESPONSES)
def test_a_wrong_response_fails_the_call_with_the_cause(wrong: str) -> None:
    answer, error, fault = WRONG_RESPONSES[wrong]

    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], **answer)
            with pytest.raises(error, match=fault) as caught:
                await call
            assert "tools/call" in str(caught.value)
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=COMPLETE)
            assert text(await call) == "good"

    run(main)


def test_a_response_over_the_limit_fails_its_call_only() -> None:
    async def main() -> None:
        async with played(limits=Limits(message_bytes=10_000)) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            script.send(id=request["id"], result={**COMPLETE, "structuredContent": {"a": "x" * 20_000}})
            with pytest.raises(typedmcp.ProtocolError, match="longer than the limit"):
                await call
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=COMPLETE)
            assert text(await call) == "good"

    run(main)


def test_a_second_response_is_reported() -> None:
    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            id = (await script.receive())["id"]
            script.send(id=id, result=COMPLETE)
            script.send(id=id, result=COMPLETE)
            assert text(await call) == "good"
            await script.settled()
            assert script.kinds() == ["unexpected response"]

    run(main)


def test_a_response_with_its_id_as_a_string_is_accepted_and_reported() -> None:
    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=str((await script.receive())["id"]), result=COMPLETE)
            assert text(await call) == "good"
            assert script.kinds() == ["id type mismatch"]

    run(main)


def test_an_error_without_an_id_fails_the_only_open_call() -> None:
    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            await script.receive()
            script.send(id=None, error={"code": -32700, "message": "cannot read this"})
            with pytest.raises(typedmcp.RemoteError, match="cannot read this"):
                await call

    run(main)


def test_a_late_response_is_reported_as_late() -> None:
    async def main() -> None:
        async with played() as (client, script):
            with pytest.raises(typedmcp.RequestTimeoutError):
                await client.call_tool("x", timeout=0.01)
            request, cancelled = await script.receive(), await script.receive()
            assert cancelled["method"] == "notifications/cancelled"
            assert cancelled["params"]["requestId"] == request["id"]
            script.send(id=request["id"], result=COMPLETE)
            await script.settled()
            assert script.kinds() == ["late message"]

    run(main)


def test_progress_restarts_the_timeout_up_to_max_time() -> None:
    async def main() -> None:
        async with played() as (client, script):
            start = asyncio.get_running_loop().time()
            call = asyncio.create_task(client.call_tool("x", timeout=0.1, max_time=0.35, on_progress=lambda _: None))
            token = (await script.receive())["params"]["_meta"]["progressToken"]
            for step in range(20):
                await asyncio.sleep(0.04)
                script.send(method="notifications/progress", params={"progressToken": token, "progress": step})
                if call.done():
                    break
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"no answer within 0.35 s"):
                await call
            assert asyncio.get_running_loop().time() - start > 0.3

    run(main)


@pytest.mark.parametrize("calls", [1, 50])
def test_the_end_of_the_connection_fails_every_call_at_once(calls: int) -> None:
    async def main() -> None:
        async with played() as (client, script):
            tasks = [asyncio.create_task(client.call_tool("x")) for _ in range(calls)]
            for _ in tasks:
                await script.receive()
            await script.transport.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, typedmcp.ConnectionLostError) for result in results)
            assert len({str(result) for result in results}) == calls  # each names its id

    run(main)


def test_a_repeated_cursor_ends_the_iteration_with_an_error() -> None:
    page: Json = {"resultType": "complete", "tools": [], "nextCursor": "again", "ttlMs": 0, "cacheScope": "private"}

    async def main() -> None:
        async with played() as (client, script):

            async def all_tools() -> list[structs.Tool]:
                return [tool async for tool in client.tools()]

            listing = asyncio.create_task(all_tools())
            for _ in range(2):
                script.send(id=(await script.receive())["id"], result=page)
            with pytest.raises(typedmcp.ProtocolError, match="'again' twice"):
                await listing

    run(main)


def test_an_input_request_without_its_capability_fails_the_call() -> None:
    input_required = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}

    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=input_required)
            with pytest.raises(typedmcp.ProtocolError, match="requested roots/list, which the client has not declared"):
                await call

    run(main)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("ping", None, None),
        ("roots/list", None, -32601),
        ("x/y", None, -32601),
        ("elicitation/create", {"message": 3}, -32602),
        ("elicitation/create", {"message": "fails", "requestedSchema": {"type": "object", "properties": {}}}, -32603),
    ],
)
def test_every_request_of_a_legacy_server_gets_a_response(method: str, params: Any, code: int | None) -> None:
    def fails(_params: Any) -> Any:
        raise RuntimeError("secret")

    async def main() -> None:
        async with played("2025-06-18", elicit=fails) as (_, script):
            script.send(id="s1", method=method, **({} if params is None else {"params": params}))
            answer = await script.receive()
            assert answer["id"] == "s1"
            assert answer.get("error", {}).get("code") == code
            assert "secret" not in json.dumps(answer)

    run(main)


def test_a_server_request_that_is_cancelled_gets_no_response() -> None:
    was_called = asyncio.Event()
    ended: list[bool] = []

    async def thinks(_params: Any) -> Any:
        was_called.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> None:
        async with played("2025-06-18", elicit=thinks) as (_, script):
            form: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            script.send(id=5, method="elicitation/create", params=form)
            await was_called.wait()
            script.send(method="notifications/cancelled", params={"requestId": 5})
            assert await script.settled() == []
            assert ended == [True]

    run(main)


def test_failing_callbacks_are_reported_and_calls_go_on() -> None:
    def fails(_params: Any) -> None:
        raise RuntimeError("broken callback")

    async def main() -> None:
        async with played(on_log=fails) as (client, script):
            script.send(method="notifications/message", params={"level": "info", "data": "x"})
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=COMPLETE)
            assert text(await call) == "good"
            assert "broken callback" in script.reports[0].text

    run(main)


def test_a_server_that_never_answers_times_out_on_connect() -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        client = connect(near, timeout=0.05, probe=0.05)
        with pytest.raises(typedmcp.RequestTimeoutError, match="initialize"):
            await client.open()
        await far.close()

    run(main)


def test_a_subscription_that_is_never_acknowledged_times_out() -> None:
    async def main() -> None:
        async with played(timeout=0.05) as (client, _):
            with pytest.raises(typedmcp.RequestTimeoutError, match="subscriptions/listen"):
                async with client.listen(tools=True):
                    pass

    run(main)


@pytest.mark.parametrize("end", ["result", "error", "connection"])
def test_a_subscription_ends_when_the_server_ends_it(end: str) -> None:
    async def main() -> None:
        async with played() as (client, script):
            subscription = client.listen(tools=True)
            entering = asyncio.create_task(subscription.__aenter__())
            request = await script.receive()
            meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": request["id"]}}
            script.send(method="notifications/subscriptions/acknowledged", params={"notifications": {}, **meta})
            await entering
            script.send(method="notifications/tools/list_changed", params=meta)
            if end == "result":
                script.send(id=request["id"], result={"resultType": "complete", **meta})
            elif end == "error":
                script.send(id=request["id"], error={"code": -1, "message": "no more"})
            else:
                await script.transport.close()
            assert (await anext(subscription)).kind == "tools"
            if end == "result":
                with pytest.raises(StopAsyncIteration):
                    await anext(subscription)
            else:
                with pytest.raises(typedmcp.Error, match="no more" if end == "error" else "the connection ended"):
                    await anext(subscription)
            await subscription.close()

    run(main)


def test_clients_open_and_close_in_any_order_from_any_task() -> None:
    rng = random.Random(7)

    async def main() -> None:
        clients = [connect(server.Everything(), revisions=[rng.choice(SUPPORTED)]) for _ in range(200)]

        async def use(client: Client) -> None:
            await client.open()
            await asyncio.sleep(rng.random() * 0.05)
            with suppress(typedmcp.ConnectionLostError):  # another task may have closed it
                await client.call_tool("test_simple_text")

        async def close(client: Client) -> None:
            await asyncio.sleep(rng.random() * 0.3)
            await client.close()

        users = [asyncio.create_task(use(client)) for client in clients]
        await asyncio.gather(*users[:100])
        for task in rng.sample(users[100:], 50):
            task.cancel()
        order = rng.sample(clients, len(clients)) + rng.sample(clients, 50)
        await asyncio.gather(*(close(client) for client in order))
        await asyncio.gather(*users, return_exceptions=True)

    run(main)


# Cached results


@pytest.mark.parametrize(
    ("ttl", "between", "requests"),
    [
        (60_000, None, 1),
        (0, None, 2),
        (60_000, {"method": "notifications/tools/list_changed"}, 2),
        (60_000, {"method": "notifications/prompts/list_changed"}, 1),
    ],
)
def test_a_list_is_requested_again_after_a_change(ttl: int, between: Json | None, requests: int) -> None:
    page: Json = {"resultType": "complete", "tools": [], "ttlMs": ttl, "cacheScope": "private"}

    async def main() -> None:
        async with played() as (client, script):
            counted = 0

            async def serve() -> None:
                nonlocal counted
                while True:
                    script.send(id=(await script.receive())["id"], result=page)
                    counted += 1

            serving = asyncio.create_task(serve())
            first = await client.list_tools()
            if between is not None:
                script.send(**between)
                await asyncio.sleep(0.01)
            second = await client.list_tools()
            assert first == second
            assert first is not second
            assert counted == requests
            await client.list_tools(fresh=True)
            assert counted == requests + 1
            serving.cancel()
            await asyncio.wait([serving])

    run(main)


# Results with invalid parts


def tool(name: str, **more: Any) -> Json:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def listed(tools: list[Any], revision: str) -> Json:
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {"tools": tools, **(modern if revision == MODERN_REVISION else {})}


@pytest.mark.parametrize("revision", [MODERN_REVISION, "2025-06-18"])
def test_an_invalid_tool_does_not_hide_the_others(revision: str) -> None:
    tools: list[Any] = [tool(f"t{number}") for number in range(312)]
    tools[17] = {"name": "t17", "inputSchema": {"type": "array"}}
    tools[40] = {**tools[40], "icons": [{"src": "a:b", "sizes": "48x48"}], "x-unknown": {"a": None}}

    async def main() -> None:
        async with played(revision) as (client, script):
            listing = asyncio.create_task(client.list_tools())
            script.send(id=(await script.receive())["id"], result={**listed(tools, revision), "x": [1]})
            names = [found.name for found in (await listing).tools]
            assert names == [f"t{number}" for number in range(312) if number != 17]
            problems = [report for report in script.reports if report.kind is typedmcp.DiagnosticKind.INVALID_DATA]
            assert "result.tools[17].inputSchema.type" in problems[0].text
            assert problems[0].params == tools[17]
            assert problems[0].method == "tools/list"

    run(main)


@pytest.mark.parametrize("revision", [MODERN_REVISION, "2025-06-18"])
def test_content_of_an_unknown_type_does_not_hide_the_rest(revision: str) -> None:
    strange = {"type": "hologram", "data": "x"}
    result = {**COMPLETE, "content": [strange, {"type": "text", "text": "good"}]}

    async def main() -> None:
        async with played(revision) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=result)
            assert text(await call) == "good"
            (problem,) = script.reports
            assert problem.text.startswith("result.content[0].type: ")
            assert problem.params == strange

    run(main)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"degrees": 3}, None),
        ({"degrees": "warm"}, r'result.structuredContent.degrees: "warm" is not of type "number"'),
        (None, "result.structuredContent"),
    ],
    ids=str,
)
def test_results_are_validated_against_the_output_schema(content: Any, fault: str | None) -> None:
    pytest.importorskip("jsonschema_rs")
    schema = {"type": "object", "properties": {"degrees": {"type": "number"}}}
    result = COMPLETE if content is None else {**COMPLETE, "structuredContent": content}

    async def main() -> None:
        async with played() as (client, script):
            listing = asyncio.create_task(client.list_tools())
            script.send(
                id=(await script.receive())["id"], result=listed([tool("t", outputSchema=schema)], MODERN_REVISION)
            )
            await listing
            call = asyncio.create_task(client.call_tool("t"))
            script.send(id=(await script.receive())["id"], result=result)
            if fault is None:
                assert text(await call) == "good"
            else:
                with pytest.raises(typedmcp.ProtocolError, match=fault):
                    await call

    run(main)


# Regressions


@pytest.mark.parametrize("params", [b"[]", b"null", b"5", b'{"_meta":[]}', b'"\xff"', b'{"a":"\xff"}'], ids=repr)
@pytest.mark.parametrize("method", ["tools/list_changed", "progress", "message", "resources/updated", "cancelled"])
def test_no_notification_can_end_the_connection(method: str, params: bytes) -> None:
    async def main() -> None:
        async with played(on_log=print) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            script.raw(b'{"jsonrpc":"2.0","method":"notifications/' + method.encode() + b'","params":' + params + b"}")
            script.send(id=request["id"], result=COMPLETE)
            assert text(await call) == "good"

    run(main)


def test_progress_cannot_extend_connecting_for_ever() -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])

        async def claim() -> None:
            for step in range(1000):
                for token in (1, 2):
                    params = {"progressToken": token, "progress": step}
                    script.send(method="notifications/progress", params=params)
                await asyncio.sleep(0.01)

        claiming = asyncio.create_task(claim())
        client = connect(near, timeout=0.1, probe=0.05, on_diagnostic=lambda _: None)
        async with asyncio.timeout(5):
            with pytest.raises(typedmcp.RequestTimeoutError):
                await client.open()
        claiming.cancel()
        await asyncio.wait([claiming])
        await far.close()

    run(main)


def test_max_time_includes_rounds_and_callbacks() -> None:
    input_required = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}

    async def never() -> list[str]:
        await asyncio.Event().wait()
        return []

    async def main() -> None:
        async with played(roots=never) as (client, script):
            call = asyncio.create_task(client.call_tool("x", max_time=0.1))
            script.send(id=(await script.receive())["id"], result=input_required)
            async with asyncio.timeout(5):
                with pytest.raises(typedmcp.RequestTimeoutError, match=r"no answer within 0.1 s"):
                    await call

    run(main)


def test_closing_a_client_that_is_opening_ends_the_opening() -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        client = connect(near)
        opening = asyncio.create_task(client.open())
        await Script(far, []).receive()
        async with asyncio.timeout(5):
            await client.close()
            with pytest.raises(typedmcp.ConnectionLostError):
                await opening
        await far.close()

    run(main)


def test_a_cancelled_callback_does_not_stop_later_callbacks() -> None:
    received: list[Any] = []

    async def cancelled(params: Any) -> None:
        received.append(params.data)
        raise asyncio.CancelledError

    async def main() -> None:
        async with played(on_log=cancelled) as (client, script):
            for number in range(3):
                script.send(method="notifications/message", params={"level": "info", "data": number})
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=COMPLETE)
            await call
            await asyncio.sleep(0.01)
            assert received == [0, 1, 2]

    run(main)


def test_server_requests_are_limited_and_not_answered_if_the_server_does_not_read() -> None:
    async def never(_params: Any) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        async with played("2025-06-18", elicit=never) as (_, script):
            form: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            for number in range(300):
                script.send(id=f"q{number}", method="elicitation/create", params=form)
            refused = await script.settled()
            assert len(refused) == 300 - 256
            assert all(answer["error"]["code"] == -32603 for answer in refused)

    run(main)


@pytest.mark.parametrize("options", [{"roots": "file:///a"}, {"log_level": "loud"}, {"revisions": ["1999-01-01"]}])
def test_invalid_options_of_a_client_are_named(options: Json) -> None:
    with pytest.raises(typedmcp.UsageError):
        connect(server.Everything(), **options)
