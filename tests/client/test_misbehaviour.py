"""Servers that break the protocol: every call ends with a result or with an error that names the cause."""

from __future__ import annotations

import asyncio
import gc
import json
import random
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import typedmcp
from mcpspec.support.unknown import decode_keeping
from tests.cases import each
from tests.conformance import server
from tests.server.scripted import MODERN_REVISION, SUPPORTED, Json, run
from typedmcp.client import Client, connect
from typedmcp.client import client as client_module
from typedmcp.client.results import output_validation
from typedmcp.dialect import structs
from typedmcp.limits import Limits
from typedmcp.transports.memory import MemoryTransport

COMPLETE: Json = {"resultType": "complete", "content": [{"type": "text", "text": "good"}]}
DISCOVERED: Json = {
    "resultType": "complete",
    "supportedVersions": [MODERN_REVISION],
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
    "ttlMs": 0,
    "cacheScope": "public",
}
INITIALIZED: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}


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
async def played(
    revision: str = MODERN_REVISION, described: Json | None = None, **options: Any
) -> AsyncGenerator[tuple[Client, Script]]:
    """Connect a client to a server that the test plays, and complete the negotiation.

    `described` replaces members of the server's description, such as its capabilities.
    """
    reports: list[typedmcp.Diagnostic] = []
    near, far = typedmcp.memory_pair()
    script = Script(far, reports)
    client = connect(near, revisions=[revision], on_diagnostic=reports.append, **options)
    opening = asyncio.create_task(client.open())
    request = await script.receive()
    initialized = {**INITIALIZED, "protocolVersion": revision}
    description = DISCOVERED if revision == MODERN_REVISION else initialized
    script.send(id=request["id"], result={**description, **(described or {})})
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


@each("junk", INVALID_MESSAGES)
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
    "content that is no list": (
        {"result": {"resultType": "complete", "content": 5}},
        typedmcp.ProtocolError,
        "content",
    ),
    "a result of an unknown type": ({"result": {**COMPLETE, "resultType": "x"}}, typedmcp.ProtocolError, "resultType"),
    "an error that is a string": ({"error": "no"}, typedmcp.ProtocolError, "must be objects"),
    "an error without a code": ({"error": {"message": "no"}}, typedmcp.RemoteError, "no"),
    "an error": ({"error": {"code": -32601, "message": "no"}}, typedmcp.MethodNotFoundError, "no"),
}


@each("wrong", WRONG_RESPONSES)
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


def test_a_response_that_is_too_deep_fails_its_call_only() -> None:
    async def main() -> None:
        async with played(limits=Limits(message_depth=50)) as (client, script):
            for depth, is_read in ((47, True), (48, False), (100_000, False), (47, True)):
                call = asyncio.create_task(client.call_tool("x"))
                deep = b"[" * depth + b"]" * depth
                result = json.dumps({**COMPLETE, "_meta": {}}).encode().replace(b"{}", b'{"a":%b}' % deep)
                script.raw(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % ((await script.receive())["id"], result))
                if is_read:
                    assert text(await call) == "good"
                else:
                    with pytest.raises(typedmcp.ProtocolError, match=r"deeply: more than 50 levels.*\(message_depth\)"):
                        await call
            assert script.kinds() == ["malformed", "malformed"]

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
            call = asyncio.create_task(client.call_tool("x", timeout=0.5, max_time=0.8, on_progress=lambda _: None))
            token = (await script.receive())["params"]["_meta"]["progressToken"]
            for step in range(100):
                await asyncio.sleep(0.04)
                script.send(method="notifications/progress", params={"progressToken": token, "progress": step})
                if call.done():
                    break
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"no answer within 0.8 s"):
                await call
            assert asyncio.get_running_loop().time() - start > 0.7

    run(main)


@each("calls", [1, 50])
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


def test_an_input_request_without_its_capability_fails_the_call() -> None:
    input_required = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}

    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=input_required)
            with pytest.raises(typedmcp.ProtocolError, match="requested roots/list, which the client has not declared"):
                await call

    run(main)


@each(
    "method, params, code",
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
            script.send(method="notifications/cancelled", params={"requestId": 5, "reason": "too\nslow"})
            assert await script.settled() == []
            assert ended == [True]
            (report,) = script.reports
            assert (str(report.kind), report.id, report.params) == ("cancelled", 5, "too\nslow")
            assert report.text == 'the server cancelled request 5: "too\\nslow"'

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


@each("end", ["result", "error", "connection"])
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


@each(
    "ttl, between, requests",
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


@each("revision", [MODERN_REVISION, "2025-06-18"])
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


@each("revision", [MODERN_REVISION, "2025-06-18"])
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


@each(
    "content, fault",
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


@each("has_extra, check_output", [(False, True), (True, False)])
def test_without_the_extra_and_on_request_no_result_is_validated(
    monkeypatch: pytest.MonkeyPatch, has_extra: bool, check_output: bool
) -> None:
    monkeypatch.setattr(client_module, "can_validate", lambda: has_extra)

    async def main() -> None:
        async with played(check_output=check_output) as (client, script):
            listing = asyncio.create_task(client.list_tools())
            tools = listed([tool("t", outputSchema={"type": "object", "required": ["a"]})], MODERN_REVISION)
            script.send(id=(await script.receive())["id"], result=tools)
            await listing
            call = asyncio.create_task(client.call_tool("t"))
            script.send(id=(await script.receive())["id"], result={**COMPLETE, "structuredContent": {}})
            assert text(await call) == "good"

    run(main)


def test_an_output_schema_is_compiled_before_the_first_call_of_its_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jsonschema_rs")
    compiled: list[bytes] = []
    real = vars(output_validation)["_compile"]

    def compile_it(schema: bytes) -> Any:
        compiled.append(schema)
        return real(schema)

    monkeypatch.setattr(output_validation, "_compile", compile_it)

    async def main() -> None:
        async with played() as (client, script):
            listing = asyncio.create_task(client.list_tools())
            tools = [tool(f"t{number}", outputSchema={"type": "object", "title": str(number)}) for number in range(9)]
            script.send(id=(await script.receive())["id"], result=listed(tools, MODERN_REVISION))
            await listing
            assert compiled == []
            for _ in range(2):
                call = asyncio.create_task(client.call_tool("t3"))
                script.send(id=(await script.receive())["id"], result={**COMPLETE, "structuredContent": {}})
                await call
            assert compiled == [b'{"type":"object","title":"3"}']

    run(main)


def test_the_output_schemas_used_least_recently_are_forgotten_and_the_first_is_reported() -> None:
    pytest.importorskip("jsonschema_rs")
    schema = {"type": "object", "required": ["a"], "title": "x" * 1000}

    async def call(client: Client, script: Script, name: str) -> Any:
        called = asyncio.create_task(client.call_tool(name))
        script.send(id=(await script.receive())["id"], result={**COMPLETE, "structuredContent": {}})
        return await called

    async def main() -> None:
        async with played(limits=Limits(output_schema_bytes=5000)) as (client, script):
            listing = asyncio.create_task(client.list_tools())
            tools = [tool(f"t{number}", outputSchema=schema) for number in range(9)]
            script.send(id=(await script.receive())["id"], result=listed(tools, MODERN_REVISION))
            await listing
            (report,) = script.reports
            assert report.text.startswith("the output schema of t0 is forgotten")
            assert "5000 bytes (output_schema_bytes)" in report.text
            assert text(await call(client, script, "t6")) == "good"
            for name in ("t7", "t8"):
                with pytest.raises(typedmcp.ProtocolError, match="structuredContent"):
                    await call(client, script, name)

    run(main)


EXTERNAL: Json = {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}


@each("check_output", [True, False])
def test_a_tool_whose_output_schema_refers_to_another_document_is_not_called(check_output: bool) -> None:
    pytest.importorskip("jsonschema_rs")

    async def main() -> None:
        async with played(check_output=check_output) as (client, script):
            for schema in (EXTERNAL, {"type": "object"}):  # the second time, the server has mended it
                listing = asyncio.create_task(client.list_tools())
                tools = listed([tool("t", outputSchema=schema), tool("u")], MODERN_REVISION)
                script.send(id=(await script.receive())["id"], result=tools)
                assert [found.name for found in (await listing).tools] == ["t", "u"]
                if schema is EXTERNAL and check_output:
                    for _ in range(2):
                        with pytest.raises(typedmcp.ProtocolError, match=r"'t' is refused: outputSchema.*\$ref"):
                            await client.call_tool("t")
                    (report,) = script.reports
                    assert "calls of t are refused: outputSchema.properties.a.$ref: refers to" in report.text
                    assert await script.settled() == []
                else:
                    call = asyncio.create_task(client.call_tool("t"))
                    script.send(id=(await script.receive())["id"], result={**COMPLETE, "structuredContent": {}})
                    assert text(await call) == "good"

    run(main)


# Regressions


@each("params", [b"[]", b"null", b"5", b'{"_meta":[]}', b'"\xff"', b'{"a":"\xff"}'], ids=repr)
@each("method", ["tools/list_changed", "progress", "message", "resources/updated", "cancelled"])
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


@each("options", [{"roots": "file:///a"}, {"log_level": "loud"}, {"revisions": ["1999-01-01"]}])
def test_invalid_options_of_a_client_are_named(options: Json) -> None:
    with pytest.raises(typedmcp.UsageError):
        connect(server.Everything(), **options)


# Floods: the work that messages make is limited, not only the reports


async def call_during(script: Script, client: Client, flood: bytes) -> None:
    """Make a call, and send bytes before its response."""
    call = asyncio.create_task(client.call_tool("x"))
    request = await script.receive()
    script.transport.write(flood)
    script.send(id=request["id"], result=COMPLETE)
    await call


FLOODS = {
    "malformed progress": b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}\n',
    "no messages": b"starting...\n",
    "responses to nothing": b'{"jsonrpc":"2.0","id":999,"result":{}}\n',
    "unknown notifications": b'{"jsonrpc":"2.0","method":"x/y"}\n',
}


@each("name", FLOODS)
def test_too_many_invalid_messages_end_the_session(name: str) -> None:
    async def main() -> None:
        limits = Limits(invalid_messages=100)
        async with played(limits=limits) as (client, script):
            await call_during(script, client, FLOODS[name] * 50)
            with pytest.raises(typedmcp.ProtocolError, match=r"more than 100 within 10 s \(invalid_messages\)"):
                await call_during(script, client, FLOODS[name] * 100_000)
            assert len(script.reports) == 101
            assert script.reports[-1].kind is typedmcp.DiagnosticKind.CONNECTION_ERROR
            with pytest.raises(typedmcp.ProtocolError, match="too many invalid messages"):
                await client.call_tool("y")

    run(main)


def test_a_batch_with_too_many_messages_is_reported_once() -> None:
    async def main() -> None:
        async with played("2025-06-18", limits=Limits(batch_messages=10)) as (client, script):
            await call_during(script, client, b"[" + b"{}," * 9 + b"{}]\n")
            assert script.kinds() == ["malformed"] * 10
            script.reports.clear()
            await call_during(script, client, b"[" + b"{}," * 100_000 + b"{}]\n")
            (report,) = script.reports
            assert report.text == "a batch of 100001 messages; the limit is 10 (batch_messages)"

    run(main)


def test_a_result_with_too_many_invalid_parts_is_rejected() -> None:
    async def main() -> None:
        async with played(limits=Limits(result_problems=200)) as (client, script):
            for count in (200, 100_000):
                call = asyncio.create_task(client.call_tool("x"))
                request = await script.receive()
                script.send(id=request["id"], result={"resultType": "complete", "content": [{"type": 1}] * count})
                if count == 200:
                    assert (await call).content == []
                    assert len(script.reports) == 101
                    continue
                with pytest.raises(typedmcp.ProtocolError, match=r"more than 200 invalid parts .*\(result_problems\)"):
                    await call

    run(main)


def test_async_callbacks_that_are_dropped_are_closed() -> None:
    async def main() -> None:
        begun: list[Any] = []

        async def on_log(params: structs.LoggingMessageNotificationParams) -> None:
            begun.append(params.data)
            await asyncio.Event().wait()

        options: Any = {"on_log": on_log, "limits": Limits(waiting_notifications=2)}
        async with played(**options) as (client, script):
            for number in range(9):
                script.send(method="notifications/message", params={"level": "info", "data": number})
            await call_during(script, client, b"")
            assert [report.text for report in script.reports] == [
                "more than 2 notifications wait for callbacks: one is dropped"
            ] * 7
        assert begun == [0]
        gc.collect()  # a coroutine that was never awaited is a warning, and so an error

    run(main)


def test_notifications_that_wait_for_callbacks_are_limited_by_their_bytes() -> None:
    async def main() -> None:
        begun: list[Any] = []
        go_on = asyncio.Event()

        async def on_log(params: structs.LoggingMessageNotificationParams) -> None:
            begun.append(params.logger)
            await go_on.wait()

        def flood(numbers: range) -> None:
            for number in numbers:
                params = {"level": "info", "logger": f"{number}", "data": "x" * 1000}
                script.send(method="notifications/message", params=params)

        options: Any = {"on_log": on_log, "limits": Limits(waiting_message_bytes=3500)}
        async with played(**options) as (client, script):
            flood(range(9))
            await call_during(script, client, b"")
            assert [report.text for report in script.reports] == [
                "more than 3500 bytes (waiting_message_bytes) wait for callbacks: one is dropped"
            ] * 6
            go_on.set()
            await script.settled()
            flood(range(9, 12))  # there is room again
            await call_during(script, client, b"")
            await script.settled()
            assert begun == ["0", "1", "2", "9", "10", "11"]
        gc.collect()

    run(main)


def test_requests_of_a_server_are_limited_by_their_bytes() -> None:
    go_on = asyncio.Event()

    async def decline(_params: Any) -> Any:
        await go_on.wait()

    async def main() -> None:
        async with played("2025-06-18", elicit=decline, limits=Limits(waiting_message_bytes=3500)) as (_, script):
            form: Json = {"message": "x" * 1000, "requestedSchema": {"type": "object", "properties": {}}}

            def flood(ids: str) -> None:
                for id in ids:
                    script.send(id=id, method="elicitation/create", params=form)

            flood("abcde")
            refused = await script.settled()
            assert [answer["id"] for answer in refused] == ["d", "e"]
            assert all("3500 bytes (waiting_message_bytes)" in answer["error"]["message"] for answer in refused)
            go_on.set()
            assert [answer["id"] for answer in await script.settled()] == ["a", "b", "c"]
            flood("fgh")
            assert [answer["result"] for answer in await script.settled()] == [{"action": "decline"}] * 3

    run(main)


# What is understood although it breaks the specification


@each("strict", [False, True])
@each("order", ["result first", "error first"])
def test_null_beside_a_result_is_read_as_absent_unless_strict(order: str, strict: bool) -> None:
    async def main() -> None:
        async with played(strict=strict) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            members: Json = {"result": COMPLETE, "error": None}
            script.send(id=request["id"], **dict(sorted(members.items(), reverse=order == "result first")))
            if strict:
                with pytest.raises(typedmcp.ProtocolError, match="both `result` and `error`"):
                    await call
                assert script.kinds() == ["malformed"]
                return
            assert typedmcp.text_of(await call) == "good"
            (report,) = script.reports
            assert (report.kind, report.text) == ("tolerated", "error: null was read as absent")

    run(main)


@each("strict", [False, True])
@each("fault", ["a method that is null", "a byte order mark"])
def test_what_a_response_has_too_much_is_left_out_unless_strict(fault: str, strict: bool) -> None:
    async def main() -> None:
        async with played(strict=strict) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            more = {"method": None} if "method" in fault else {}
            line = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": COMPLETE, **more}).encode()
            script.raw(line if more else BOM_UTF8 + line)
            if strict and more:
                with pytest.raises(typedmcp.ProtocolError, match="method: expected string, got null"):
                    await call
            elif strict:
                await script.settled()
                assert script.kinds() == ["malformed"]
                call.cancel()
            else:
                assert typedmcp.text_of(await call) == "good"
                assert script.kinds() == ["tolerated"]

    run(main)


def test_null_beside_an_error_is_read_as_absent() -> None:
    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            script.send(id=request["id"], error={"code": 5, "message": "no"}, result=None)
            with pytest.raises(typedmcp.RemoteError, match="no"):
                await call
            assert script.kinds() == ["tolerated"]

    run(main)


@each(
    "revision, strict, pages",
    [("2025-06-18", False, 1), ("2025-06-18", True, 2), (MODERN_REVISION, False, 2)],
)
def test_an_empty_cursor_ends_the_list_of_a_legacy_server_unless_strict(
    revision: str, strict: bool, pages: int
) -> None:
    async def main() -> None:
        async with played(revision, strict=strict) as (client, script):
            listing = asyncio.create_task(collected(client))
            for number in range(pages):
                request = await script.receive()
                tool = {"name": f"t{number}", "inputSchema": {"type": "object"}}
                header = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                more = {} if number else {"nextCursor": ""}
                script.send(id=request["id"], result={**header, "tools": [tool], **more})
                assert request["params"].get("cursor") == ("" if number else None)
            assert await listing == [f"t{number}" for number in range(pages)]
            assert script.kinds() == (["tolerated"] if pages == 1 else [])

    async def collected(client: Client) -> list[str]:
        return [tool.name async for tool in client.tools()]

    run(main)


@each("strict", [False, True])
def test_null_in_the_result_of_initialize_is_read_as_absent_unless_strict(strict: bool) -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        near, far = typedmcp.memory_pair()
        script = Script(far, reports)
        client = connect(near, revisions=["2025-06-18"], on_diagnostic=reports.append, strict=strict)
        opening = asyncio.create_task(client.open())
        request = await script.receive()
        nulls: Json = {"instructions": None, "capabilities": {"tools": None, "logging": {}}}
        script.send(id=request["id"], result={**INITIALIZED, **nulls})
        if strict:
            with pytest.raises(typedmcp.ProtocolError, match=r"result\..*: expected .*, got null"):
                await opening
        else:
            await opening
            assert client.server.instructions is None
            assert client.server.capabilities.logging is not None
            assert client.server.capabilities.tools is None
            (report,) = reports
            assert report.kind is typedmcp.DiagnosticKind.TOLERATED
            assert "result.instructions" in report.text
            assert "result.capabilities.tools" in report.text
        await client.close()

    run(main)


@each("strict", [False, True])
def test_a_strict_client_takes_no_result_that_it_would_have_to_repair(strict: bool) -> None:
    async def main() -> None:
        async with played(strict=strict) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            script.send(id=request["id"], result={"resultType": "complete", "structuredContent": 1})
            if strict:
                with pytest.raises(typedmcp.ProtocolError, match=r"result\.content: required, but missing"):
                    await call
                assert script.reports == []
            else:
                assert (await call).content == []
                assert script.kinds() == ["tolerated"]

    run(main)


def test_undeclared_members_are_kept_where_one_asks_for_them() -> None:
    async def main() -> None:
        tool = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"category": "input"}, "x-price": 1}
        sent: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [tool], "more": [1]}
        async with played() as (client, script):
            call = asyncio.create_task(client.send("tools/list"))
            request = await script.receive()
            script.send(id=request["id"], result=sent)
            result = await call
            assert result == sent
            kept = decode_keeping(json.dumps(result), structs.ListToolsResult)
            assert kept.value.tools[0].name == "t"
            kept.value.tools[0].name = "other_t"
            assert json.loads(kept.encode()) == {**sent, "tools": [{**tool, "name": "other_t"}]}
            assert script.reports == []

    run(main)


def test_a_strict_client_takes_no_string_as_the_id_of_a_response() -> None:
    async def main() -> None:
        async with played(strict=True) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            request = await script.receive()
            script.send(id=str(request["id"]), result=COMPLETE)
            script.send(id=request["id"], result=COMPLETE)
            assert typedmcp.text_of(await call) == "good"
            assert script.kinds() == ["unexpected response"]

    run(main)


# Negotiation and requests that never left


@each(
    "answer, error, text",
    [
        ({"error": {"code": -32603, "message": "the database is down"}}, typedmcp.RemoteError, "the database is down"),
        ({"result": []}, typedmcp.ProtocolError, "server/discover: result"),
    ],
)
def test_a_client_without_legacy_revisions_raises_the_error_of_discovery(
    answer: Json, error: type[Exception], text: str
) -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        script = Script(far, [])
        opening = asyncio.create_task(connect(near, revisions=[MODERN_REVISION]).open())
        request = await script.receive()
        script.send(id=request["id"], **answer)
        with pytest.raises(error, match=text):
            await opening

    run(main)


def test_a_client_without_legacy_revisions_answers_no_requests_before_discovery() -> None:
    async def main() -> None:
        near, far = typedmcp.memory_pair()
        reports: list[typedmcp.Diagnostic] = []
        script = Script(far, reports)
        client = connect(near, revisions=[MODERN_REVISION], on_diagnostic=reports.append)
        opening = asyncio.create_task(client.open())
        request = await script.receive()
        script.send(id="p", method="ping")
        script.send(id=request["id"], result=DISCOVERED)
        await opening
        assert await script.settled() == []
        assert [report.kind for report in reports] == ["unexpected message"]
        await client.close()

    run(main)


def test_a_result_that_requests_nothing_and_has_no_state_fails_the_call() -> None:
    async def main() -> None:
        async with played() as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result={"resultType": "input_required"})
            with pytest.raises(typedmcp.ProtocolError, match="no input and gave no state"):
                await call

    run(main)


def test_all_requested_input_is_gathered_before_the_call_is_repeated() -> None:
    async def main() -> None:
        async with played(roots=["file:///a"]) as (client, script):
            call = asyncio.create_task(client.call_tool("x"))
            asked = {"first": {"method": "roots/list"}, "second": {"method": "roots/list"}}
            result = {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}
            script.send(id=(await script.receive())["id"], result=result)
            again = await script.receive()
            assert [*again["params"]["inputResponses"]] == ["first", "second"]
            assert again["params"]["requestState"] == "s"
            script.send(id=again["id"], result=COMPLETE)
            await call

    run(main)
