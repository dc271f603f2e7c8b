"""Servers and clients that are written for mcp 1.x, on typedmcp."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

import typedmcp
from tests.server.scripted import run
from tests.spoken import MODERN_REVISION
from typedmcp_cli.command_line import run_command_line
from typedmcp_mcp1 import ClientSession, McpError
from typedmcp_mcp1.server.fastmcp import Context, FastMCP
from typedmcp_mcp1.server.fastmcp.exceptions import ToolError
from typedmcp_mcp1.server.lowlevel import Server
from typedmcp_mcp1.shared.memory import create_connected_server_and_client_session
from typedmcp_mcp1.shared.message import SessionMessage

types: Any = import_module("typedmcp_mcp1.types")
"""The types, whose names on the wire no type checker knows."""


def connected(server: Any, **options: Any) -> Any:
    return create_connected_server_and_client_session(server, **options)


class Choice(BaseModel):
    size: int


mcp = FastMCP("Demo", instructions="Ask.")


@mcp.tool()
async def order(ctx: Context, what: str) -> str:
    """Order something"""
    await ctx.info(f"ordering {what}")
    await ctx.report_progress(1, 2, "half")
    answer = await ctx.elicit("Which size?", Choice)
    return f"{what}: {answer.action} {getattr(answer, 'data', None)}"


@mcp.tool()
async def think(ctx: Context) -> str:
    message = types.SamplingMessage(role="user", content=types.TextContent(text="think"))
    made = await ctx.session.create_message([message], max_tokens=10)
    roots = await ctx.session.list_roots()
    return f"{made.content.text} {[str(root.uri) for root in roots.roots]}"


@mcp.tool()
async def change(ctx: Context) -> None:
    await ctx.session.send_resource_updated("data://x")
    await ctx.session.send_tool_list_changed()


async def answer_form(_context: Any, params: Any) -> Any:
    assert params.message == "Which size?"
    return types.ElicitResult(action="accept", content={"size": 3})


async def answer_model(_context: Any, params: Any) -> Any:
    assert params.maxTokens == 10
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="thought"), model="m")


async def list_roots(_context: Any) -> Any:
    return types.ListRootsResult(roots=[types.Root(uri=types.Uri("file:///home"))])


def test_a_function_asks_its_client_and_waits_for_the_answers() -> None:
    async def main() -> None:
        logged, steps, told = list[str](), list[tuple[float, float | None, str | None]](), list[str]()

        async def on_log(params: Any) -> None:
            logged.append(params.data)

        async def on_message(message: Any) -> None:
            told.append(message.root.method)

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))

        async with connected(
            mcp,
            logging_callback=on_log,
            message_handler=on_message,
            elicitation_callback=answer_form,
            sampling_callback=answer_model,
            list_roots_callback=list_roots,
        ) as session:
            result = await session.call_tool("order", {"what": "tea"}, progress_callback=on_progress)
            assert result.content[0].text == "tea: accept size=3"
            assert result.structuredContent == {"result": "tea: accept size=3"}
            result = await session.call_tool("think")
            assert result.content[0].text == "thought ['file:///home']"
            await session.call_tool("change")
            await session.send_ping()
        assert (logged, steps) == (["ordering tea"], [(1, 2, "half")])
        assert told == [
            "notifications/message",
            "notifications/progress",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        ]

    run(main)


def test_errors_of_the_client_reach_the_function_and_those_of_the_function_the_client() -> None:
    async def refuse(_context: Any, _params: Any) -> Any:
        return types.ErrorData(code=types.INVALID_REQUEST, message="not now")

    async def main() -> None:
        async with connected(mcp, elicitation_callback=refuse) as session:
            result = await session.call_tool("order", {"what": "tea"})
            assert result.isError
            assert result.content[0].text == "Error executing tool order: not now"
            result = await session.call_tool("order", {})
            assert result.isError
            assert "what\n  Field required" in result.content[0].text
            with pytest.raises(McpError, match="Unknown prompt: p") as caught:
                await session.get_prompt("p")
            assert caught.value.error.code == 0

    run(main)


def test_a_server_is_called_without_a_client() -> None:
    async def main() -> None:
        assert [tool.name for tool in await mcp.list_tools()] == ["order", "think", "change"]
        with pytest.raises(ToolError, match="Unknown tool: cook"):
            await mcp.call_tool("cook", {})

    run(main)


low = Server("low")


@low.list_tools()
async def list_tools() -> Any:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return [types.Tool(name="double", inputSchema=schema, outputSchema=schema)]


@low.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    assert name == "double"
    return {"n": 2 * arguments["n"] if arguments["n"] < 100 else "many"}


levels: list[str] = []


@low.set_logging_level()
async def set_level(level: Any) -> None:
    levels.append(level)


subscribed: list[str] = []


@low.subscribe_resource()
async def subscribe(uri: Any) -> None:
    subscribed.append(f"+{uri}")


@low.unsubscribe_resource()
async def unsubscribe(uri: Any) -> None:
    subscribed.append(f"-{uri}")


@low.list_resources()
async def list_resources(request: Any) -> Any:
    start = int((request.params.cursor if request.params else None) or 0)
    resource = types.Resource(uri=types.Uri(f"data://{start}"), name=str(start))
    return types.ListResourcesResult(resources=[resource], nextCursor=str(start + 1))


def test_a_low_level_server_checks_arguments_and_results_and_gets_all_requests() -> None:
    async def main() -> None:
        async with connected(low) as session:
            assert (await session.call_tool("double", {"n": 2})).structuredContent == {"n": 4}
            wrong = await session.call_tool("double", {"n": "x"})
            assert wrong.content[0].text.startswith("Input validation error: arguments.n")
            wrong = await session.call_tool("double", {"n": 100})
            assert wrong.content[0].text.startswith("Output validation error: structuredContent.n")
            await session.set_logging_level("error")
            await session.subscribe_resource("data://a")
            await session.unsubscribe_resource("data://a")
            page = await session.list_resources(cursor="3")
            assert (page.resources[0].uri, page.nextCursor) == ("data://3", "4")
        assert levels == ["error"]
        assert subscribed == ["+data://a", "-data://a"]

    run(main)


def test_streams_of_messages_of_ones_own_carry_a_session() -> None:
    async def main() -> None:
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        serving = asyncio.create_task(low.run(from_client, to_client))
        async with ClientSession(from_server, to_server) as session:
            result: Any = await session.initialize()
            assert result.serverInfo.name == "low"
            called: Any = await session.call_tool("double", {"n": 21})
            assert called.structuredContent == {"n": 42}
        await serving

    run(main)


def test_a_server_speaks_newer_revisions_when_it_is_told_to() -> None:
    newest = FastMCP("newest", revisions=[MODERN_REVISION])

    @newest.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async def main() -> None:
        async with typedmcp.connect(newest.low_level.configure()) as client:
            assert client.revision == MODERN_REVISION
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}

    run(main)


def test_the_command_serves_the_servers_of_mcp_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from typedmcp_mcp1.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\n"
        "def add(a: int, b: int) -> int:\n    return a + b\nserver = mcp\n"
    )
    assert run_command_line(["call", str(program), "add", "a=1", "b=2"]) == 0
    assert run_command_line(["list", str(program)]) == 0
    start = ["--", sys.executable, "-P", "-m", "typedmcp", "run", str(program)]
    assert run_command_line(["call", "add", "a=1", "b=2", *start]) == 0
    assert capfd.readouterr().out == "3\nTools\n  add  a b\n3\n"


def test_typedmcp_says_how_it_serves_a_server_of_mcp_1() -> None:
    async def main() -> None:
        for kind, remedy in ((FastMCP("x"), "server.low_level.configure()"), (Server("x"), "server.configure()")):
            with pytest.raises(typedmcp.UsageError, match=re.escape(remedy)):
                typedmcp.asgi(kind)
            with pytest.raises(typedmcp.UsageError, match=re.escape(remedy)):
                async with typedmcp.connect(kind):
                    pass
        configured: Any = FastMCP("x", token_verifier=object(), auth=None)
        with pytest.raises(typedmcp.UsageError, match="start the program with Python"):
            configured.__typedmcp_config__()

    run(main)
