"""A session of a revision with a handshake, as its client sees it: what the server sends, and when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import typedmcp
from tests.cases import each
from tests.server.scripted import EVERYTHING, LEGACY, Json, run, served
from tests.server.test_legacy_revisions import Everything
from tests.server.test_misbehaviour import Tools, text
from typedmcp.dialect import structs

NEWEST = LEGACY[0]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
PAGE = "https://example.org/a?b"

each_legacy = each("revision", LEGACY)


@each_legacy
def test_no_request_is_sent_before_the_client_is_ready(revision: str) -> None:
    async def main() -> None:
        async with served(Everything(), strict=True) as client:
            client.revision = revision
            info = {"name": "c", "version": "1"}
            params: Json = {"protocolVersion": revision, "capabilities": EVERYTHING, "clientInfo": info}
            await client.result("initialize", params)
            sampling: Json = {"name": "sample", "arguments": {}}
            assert (await client.error("tools/call", sampling))["code"] == -32600
            assert await client.result("ping") == {}
            assert client.unread() == []
            client.send({"method": "notifications/initialized"})
            client.start("tools/call", sampling)
            assert (await client.receive())["method"] == "sampling/createMessage"

    run(main)


@each_legacy
def test_a_ping_is_answered_while_a_handler_waits(revision: str) -> None:
    async def main() -> None:
        handler = Everything()
        async with served(handler) as client:
            await client.open(revision)
            id = client.start("tools/call", {"name": "wait", "arguments": {}})
            await handler.waiting.wait()
            assert await client.result("ping") == {}
            client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
            await client.settled()

    run(main)


@each_legacy
def test_an_unknown_log_level_is_rejected_and_changes_nothing(revision: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision)
            await client.result("logging/setLevel", {"level": "error"})
            error = await client.error("logging/setLevel", {"level": "loud"})
            assert error["code"] == -32602
            assert "params.level" in error["message"]
            await client.call("log")
            assert [message["params"]["level"] for message in client.unread()] == ["error"]

    run(main)


@each_legacy
def test_a_log_level_holds_for_requests_with_metadata_that_came_before(revision: str) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision)
            counts: list[int] = []
            for level in ("emergency", "debug"):
                await client.result("logging/setLevel", {"level": level})
                await client.call("log", meta={"a": 1})
                counts.append(len(client.unread()))
            assert counts[0] < counts[1]

    run(main)


@each_legacy
@each("value", [3, "x", None, [], {"a": 1}], ids=repr)
def test_reserved_keys_of_metadata_may_have_any_value(revision: str, value: object) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            await client.open(revision)
            keys = ("io.modelcontextprotocol/other", "dev.mcp/x", "com.mcp.tools/x")
            result = await client.call("meta", meta={"traceparent": "t", **dict.fromkeys(keys, value)})
            assert result["content"][0]["text"] == "t"

    run(main)


# Requests to the client


def elicit_form(_params: Any, ctx: typedmcp.Context) -> Awaitable[Any]:
    return ctx.elicit("?", SCHEMA)


def elicit_url(_params: Any, ctx: typedmcp.Context) -> Awaitable[Any]:
    return ctx.elicit_url("?", PAGE)


def sample_with_tools(_params: Any, ctx: typedmcp.Context) -> Awaitable[Any]:
    message = structs.SamplingMessage(role="user", content=structs.TextContent(text="?"))
    tool = structs.Tool(name="t", input_schema={"type": "object"})
    return ctx.sample(structs.CreateMessageRequestParams(messages=[message], max_tokens=1, tools=[tool]))


def list_roots(_params: Any, ctx: typedmcp.Context) -> Awaitable[Any]:
    return ctx.list_roots()


DECLARED: list[tuple[Callable[[Any, typedmcp.Context], Awaitable[Any]], Json, Json | None]] = [
    (elicit_form, {}, {"elicitation": {}}),
    (elicit_form, {"elicitation": {}}, None),
    (elicit_form, {"elicitation": {"form": {}}}, None),
    (elicit_form, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    (elicit_url, {"elicitation": {}}, {"elicitation": {"url": {}}}),
    (elicit_url, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
    (elicit_url, {"elicitation": {"url": {}}}, None),
    (sample_with_tools, {"sampling": {}}, {"sampling": {"tools": {}}}),
    (sample_with_tools, {"sampling": {"tools": {}}}, None),
    (list_roots, {}, {"roots": {}}),
    (list_roots, {"roots": {}}, None),
]


@each("ask, declared, missing", DECLARED)
def test_only_declared_parts_of_a_capability_are_used(
    ask: Callable[[Any, typedmcp.Context], Awaitable[Any]], declared: Json, missing: Json | None
) -> None:
    async def main() -> None:
        async with served(Tools(ask=ask)) as client:
            await client.open(NEWEST, **declared)
            id = client.start("tools/call", {"name": "ask", "arguments": {}})
            first = await client.receive()
            if missing is None:
                assert first["id"] != id or "method" in first
                assert "task" not in first.get("params", {})
            else:
                assert first["id"] == id
                assert first["error"]["data"] == {"requiredCapabilities": missing}

    run(main)


def test_each_elicitation_at_a_url_has_its_mode_text_url_and_an_id_of_its_own() -> None:
    async def visit(_params: Any, ctx: typedmcp.Context) -> Any:
        answers = [await ctx.elicit_url("Sign in", PAGE) for _ in range(3)]
        return text([answer.action for answer in answers])

    async def main() -> None:
        async with served(Tools(visit=visit)) as client:
            await client.open(NEWEST, elicitation={"url": {}})
            id = client.start("tools/call", {"name": "visit", "arguments": {}})
            asked = list[Any]()
            for action in ("accept", "decline", "cancel"):
                asked.append(await client.receive())
                client.send({"id": asked[-1]["id"], "result": {"action": action}})
            result = (await client.answer_to(id))["result"]
            assert result["content"][0]["text"] == "['accept', 'decline', 'cancel']"
            assert {request["method"] for request in asked} == {"elicitation/create"}
            assert len({request["id"] for request in asked}) == 3
            ids = {request["params"].pop("elicitationId") for request in asked}
            assert len(ids) == 3
            assert all(len(each) > 16 for each in ids)
            for request in asked:
                assert request["params"] == {"mode": "url", "message": "Sign in", "url": PAGE}

    run(main)
