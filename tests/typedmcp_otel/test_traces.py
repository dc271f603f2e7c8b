"""One trace across client and server, on every revision, with what happens in between as children."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import context
from opentelemetry.trace import StatusCode, get_current_span

import typedmcp
from mcpspec.v2026_07_28.exact.structs import CallToolResult, TextContent
from tests.cases import each
from tests.server.http.asgi_driver import serving
from tests.spoken import LEGACY, MODERN_REVISION
from tests.typedmcp_otel.exported import Exported, attributes, span_id, trace_id, tree
from typedmcp import Context
from typedmcp.dialect import structs
from typedmcp_hosts.sync import connect_all

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
REVISIONS = (*LEGACY, MODERN_REVISION)

server = typedmcp.Server("traced")


@server.tool
async def count(ctx: Context) -> str:
    await ctx.progress(1, 2)
    return f"{get_current_span().get_span_context().span_id:x}"


@server.tool
def block() -> str:
    return f"{get_current_span().get_span_context().span_id:x}"


@server.tool
async def ask(ctx: Context) -> str:
    result = await ctx.elicit("Name?", str)
    return str(result.data)


@server.tool
async def sample(ctx: Context) -> str:
    result = await ctx.sample("Say something.")
    return typedmcp.text_of(result)


@server.tool
def fail() -> str:
    raise typedmcp.ToolError("a reason")


@server.prompt
def greet() -> str:
    return "Hello"


@server.resource("data://x?token=secret")
def data() -> str:
    return "data"


def answer(_: object) -> dict[str, str]:
    return {"value": "Ada"}


def say(_: object) -> str:
    return "Words."


def ignore(_: object) -> None:
    pass


def connect(exported: Exported, revision: str, target: Any = server, **options: Any) -> typedmcp.Client:
    telemetry = exported.telemetry
    return typedmcp.connect(
        typedmcp.ServerConfig(target, telemetry=telemetry), telemetry=telemetry, revisions=[revision], **options
    )


@each("revision", REVISIONS)
def test_a_call_is_one_trace_through_client_and_server(revision: str) -> None:
    exported = Exported()

    async def main() -> str:
        async with connect(exported, revision) as client:
            with exported.provider.get_tracer("app").start_as_current_span("app"):
                return typedmcp.text_of(await client.call_tool("count", on_progress=ignore))

    current = asyncio.run(main())
    spans = exported.spans("app", "tools/call count", "notifications/progress")
    assert tree(spans) == [
        "app internal",
        "  tools/call count client",
        "    tools/call count server",
        "      notifications/progress client",
        "        notifications/progress server",
    ]
    assert len({trace_id(span) for span in spans}) == 1
    assert current == f"{span_id(spans[2]):x}", "the handler runs in the span of its request"
    sent, received = attributes(spans[1]), attributes(spans[2])
    assert sent == received
    assert received == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "jsonrpc.request.id": received["jsonrpc.request.id"],
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "count",
    }


def test_a_plain_tool_runs_in_the_span_of_its_request() -> None:
    exported = Exported()

    async def main() -> str:
        async with connect(exported, MODERN_REVISION) as client:
            return typedmcp.text_of(await client.call_tool("block"))

    current = asyncio.run(main())
    assert current == f"{span_id(exported.spans('tools/call block')[1]):x}"


def test_a_handler_in_a_thread_runs_in_the_span_of_its_request() -> None:
    current: list[int] = []

    class Handler:
        @typedmcp.in_thread
        def call_tool(self, params: Any, ctx: Any) -> CallToolResult:
            current.append(get_current_span().get_span_context().span_id)
            ctx.progress(1)
            return CallToolResult(result_type="complete", content=[TextContent(text="")])

    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION, Handler()) as client:
            await client.call_tool("work", on_progress=ignore)

    asyncio.run(main())
    spans = exported.spans("tools/call work", "notifications/progress")
    assert tree(spans) == [
        "tools/call work client",
        "  tools/call work server",
        "    notifications/progress client",
        "      notifications/progress server",
    ]
    assert current == [span_id(spans[1])]


@each("tool, method", [("ask", "elicitation/create"), ("sample", "sampling/createMessage")])
def test_requests_of_a_legacy_server_are_children_of_its_handler(tool: str, method: str) -> None:
    exported = Exported()

    async def main() -> None:
        options: Any = {"elicit": answer, "sample": say}
        async with connect(exported, "2025-11-25", **options) as client:
            await client.call_tool(tool)

    asyncio.run(main())
    spans = exported.spans(f"tools/call {tool}", method)
    assert tree(spans) == [
        f"tools/call {tool} client",
        f"  tools/call {tool} server",
        f"    {method} client",
        f"      {method} server",
    ]


def test_input_that_a_modern_server_requests_is_in_the_trace_of_the_call() -> None:
    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION, elicit=answer) as client:
            with exported.provider.get_tracer("app").start_as_current_span("app"):
                await client.call_tool("ask")

    asyncio.run(main())
    assert tree(exported.spans("app", "tools/call ask", "elicitation/create")) == [
        "app internal",
        "  tools/call ask client",
        "    tools/call ask server",
        "  elicitation/create server",
        "  tools/call ask client",
        "    tools/call ask server",
    ]


def test_input_requests_of_a_result_are_children_of_its_handler_on_legacy_revisions() -> None:
    class Handler:
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.input_responses:
                return CallToolResult(result_type="complete", content=[TextContent(text="done")])
            asked: Any = {"roots": structs.ListRootsRequest()}
            return structs.InputRequiredResult(result_type="input_required", input_requests=asked)

    exported = Exported()

    async def main() -> None:
        async with connect(exported, "2025-11-25", Handler(), roots=["file:///a"]) as client:
            await client.call_tool("roots")

    asyncio.run(main())
    spans = exported.spans("tools/call roots", "roots/list")
    assert tree(spans) == [
        "tools/call roots client",
        "  tools/call roots server",
        "    roots/list client",
        "      roots/list server",
        "  tools/call roots server",
    ]
    assert len({trace_id(span) for span in spans}) == 1


def test_prompts_have_their_name_and_resources_their_uri() -> None:
    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION) as client:
            await client.list_prompts()
            await client.get_prompt("greet")
            await client.read_resource("data://x?token=secret")

    asyncio.run(main())
    sent, received = exported.spans("prompts/get greet")
    assert attributes(sent)["gen_ai.prompt.name"] == attributes(received)["gen_ai.prompt.name"] == "greet"
    sent, received = exported.spans("resources/read")
    assert attributes(sent)["mcp.resource.uri"] == attributes(received)["mcp.resource.uri"] == "data://x…"


@each("revision", ["2025-11-25", MODERN_REVISION])
def test_failures_have_their_error_type(revision: str) -> None:
    exported = Exported()

    async def main() -> None:
        async with connect(exported, revision) as client:
            assert (await client.call_tool("fail")).is_error
            with pytest.raises(typedmcp.InvalidParamsError):
                await client.call_tool("no_such_tool")
            with pytest.raises(typedmcp.MethodNotFoundError):
                await client.send("no/such/method")

    asyncio.run(main())
    sent, received = exported.spans("tools/call fail")
    for span in (sent, received):
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "tool_error"
        assert "rpc.response.status_code" not in attributes(span)
    (unknown,) = exported.spans("tools/call")
    assert attributes(unknown)["error.type"] == attributes(unknown)["rpc.response.status_code"] == "-32602"
    assert unknown.status.description == "unknown tool: no_such_tool"
    assert "gen_ai.tool.name" not in attributes(unknown), "a peer must not add names"
    (other,) = exported.spans("_OTHER")
    assert attributes(other)["error.type"] == "-32601"


def test_a_result_that_cannot_be_sent_is_an_error_of_the_span() -> None:
    class Broken:
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return {"content": "no list"} if params.name == "dict" else object()

    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION, Broken(), on_diagnostic=ignore) as client:
            with pytest.raises(typedmcp.RemoteError):
                await client.call_tool("object")

    asyncio.run(main())
    received = [span for span in exported.spans() if span.name.startswith("tools/call") and span.kind.name == "SERVER"]
    assert [attributes(span)["error.type"] for span in received] == ["-32603"]


def test_a_handler_by_hand_has_the_names_that_it_has_listed_or_served() -> None:
    class Handler:
        async def call_tool(self, params: Any, ctx: Any) -> CallToolResult:
            if params.name != "known":
                raise typedmcp.InvalidParamsError("unknown tool")
            return CallToolResult(result_type="complete", content=[TextContent(text="")])

    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION, Handler()) as client:
            for name in ("known", "known", "other"):
                try:
                    await client.call_tool(name)
                except typedmcp.InvalidParamsError:
                    assert name == "other"

    asyncio.run(main())
    names = [attributes(span).get("gen_ai.tool.name") for span in exported.spans() if span.kind.name == "SERVER"]
    assert names[-3:] == ["known", "known", None]


def test_a_cancelled_call_is_a_cancelled_span_on_both_sides() -> None:
    slow = typedmcp.Server("slow")
    entered = asyncio.Event()

    @slow.tool
    async def wait() -> str:
        entered.set()
        await asyncio.sleep(60)
        return ""

    exported = Exported()

    async def main() -> None:
        async with connect(exported, "2025-11-25", slow) as client:
            call = asyncio.ensure_future(client.call_tool("wait"))
            await entered.wait()
            call.cancel()
            await asyncio.wait([call])

    asyncio.run(main())
    assert [attributes(span)["error.type"] for span in exported.spans("tools/call wait")] == ["cancelled", "cancelled"]


def test_the_span_of_an_http_request_is_linked_or_the_parent_of_a_message_without_trace_context() -> None:
    exported = Exported()
    tracer = exported.provider.get_tracer("web")

    async def main() -> None:
        async with serving(server, telemetry=exported.telemetry) as served:
            for meta in ({"traceparent": TRACEPARENT}, {}):
                with tracer.start_as_current_span("POST"):
                    reply = await served.call("block", meta=meta).reply()
                    assert "result" in reply.json

    asyncio.run(main())
    first, second = exported.spans("POST")
    linked, child = exported.spans("tools/call block")
    assert f"{trace_id(linked):032x}" == TRACEPARENT.split("-")[1]
    assert [link.context.span_id for link in linked.links] == [span_id(first)]
    assert child.parent is not None
    assert child.parent.span_id == span_id(second)


def test_a_connection_has_no_trace_of_its_own() -> None:
    """What was current when a connection began says nothing about its messages."""
    exported = Exported()

    async def main() -> None:
        with exported.provider.get_tracer("app").start_as_current_span("connecting"):
            client = await typedmcp.connect(typedmcp.ServerConfig(server, telemetry=exported.telemetry))
        await client.call_tool("block")
        await client.close()

    asyncio.run(main())
    (span,) = exported.spans("tools/call block")
    assert (span.parent, list(span.links)) == (None, [])


def test_a_request_without_trace_context_belongs_to_the_only_open_call() -> None:
    """As with a server that does not know trace context."""
    exported = Exported()

    async def main() -> None:
        options: Any = {"telemetry": exported.telemetry, "revisions": ["2025-11-25"], "elicit": answer}
        async with typedmcp.connect(server, **options) as client:
            await client.call_tool("count", on_progress=ignore)
            await client.call_tool("ask")

    asyncio.run(main())
    names = "tools/call ask", "tools/call count", "elicitation/create", "notifications/progress"
    assert tree(exported.spans(*names)) == [
        "tools/call count client",
        "  notifications/progress server",
        "tools/call ask client",
        "  elicitation/create server",
    ]


def test_nothing_is_left_in_the_context_of_the_caller() -> None:
    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION) as client:
            before = context.get_current()
            await client.call_tool("count")
            assert context.get_current() == before

    asyncio.run(main())


def test_arguments_and_results_are_recorded_only_on_request() -> None:
    for content in (False, True):
        exported = Exported(content=content)

        async def main(exported: Exported = exported) -> None:
            async with connect(exported, MODERN_REVISION) as client:
                await client.call_tool("block", {})

        asyncio.run(main())
        for span in exported.spans("tools/call block"):
            assert ("gen_ai.tool.call.arguments" in attributes(span)) is content
            assert ("gen_ai.tool.call.result" in attributes(span)) is content


def test_without_spans_of_notifications_their_trace_context_is_that_of_the_request() -> None:
    exported = Exported(notifications=False)
    seen: list[Any] = []

    async def main() -> None:
        async with connect(exported, MODERN_REVISION) as client:
            await client.call_tool("count", on_progress=seen.append)

    asyncio.run(main())
    assert exported.spans("notifications/progress") == []
    received = exported.spans("tools/call count")[1]
    assert seen[0].meta["traceparent"].split("-")[2] == f"{span_id(received):016x}"


def test_the_blocking_client_and_groups_continue_the_trace_of_their_caller() -> None:
    exported = Exported()
    server = typedmcp.Server("plain")

    @server.tool
    def work() -> str:
        return "done"

    tracer = exported.provider.get_tracer("app")
    with typedmcp.sync.connect(server, telemetry=exported.telemetry) as client, tracer.start_as_current_span("app"):
        client.call_tool("work")
    (app,), (sent,) = exported.spans("app"), exported.spans("tools/call work")
    assert sent.parent is not None
    assert sent.parent.span_id == span_id(app)
    with connect_all({"a": server, "b": server}, telemetry=exported.telemetry) as group:
        group.call_tool("a_work")
    assert len(exported.spans("tools/call work")) == 2
