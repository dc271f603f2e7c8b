"""Programs in the style of the official SDK and of fastmcp, which run here after a changed import."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import typedmcp
from tests.cases import each
from typedmcp import Context, Image, ToolError, UserMessage, connect, text_of
from typedmcp import Server as MCPServer
from typedmcp.dialect.structs import (
    CallToolResult,
    CompleteResultCompletion,
    CreateMessageResult,
    Icon,
    PromptReference,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)

PIXEL = b"\x89PNG\r\n\x1a\n"


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


# Construction of the protocol's types


def test_content_takes_its_type_and_meta_under_their_names_on_the_wire() -> None:
    block = TextContent(type="text", text="a", _meta={"by": "me"})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert block == TextContent(text="a", meta={"by": "me"})
    result = CallToolResult(content=[block], _meta={"n": 1})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert result.meta == {"n": 1}


@each("members", [{"_meta": {}, "meta": {}}, {"type": "image"}, {"_metas": {}}])
def test_a_member_that_is_given_twice_or_is_wrong_or_unknown_is_an_error(members: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"_meta|type is always 'text'"):
        TextContent(text="a", **members)


# Programs


class Reply(BaseModel):
    text: str


def echo_server() -> MCPServer:
    mcp = MCPServer("Echo", instructions="Echo.", icons=[Icon(src="https://x/i.png", sizes=["64x64"])])

    @mcp.tool(annotations=ToolAnnotations(title="Echo", read_only_hint=True))
    def echo(
        text: str = Field(description="The text to echo"), times: Annotated[int, Field(ge=1, le=3)] = 1
    ) -> Annotated[CallToolResult, Reply]:
        """Echo a text."""
        said = text * times
        return CallToolResult(
            content=[TextContent(type="text", text=said)],  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
            structured_content={"text": said},
            _meta={"times": times},  # pyright: ignore[reportCallIssue]
        )

    @mcp.resource("echo://{text}")
    def echo_resource(text: str) -> str:
        return f"Echo: {text}"

    @mcp.prompt("ask")
    def ask(text: str) -> list[Any]:
        return [UserMessage(f"Echo {text}"), {"role": "assistant", "content": text}]

    @mcp.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> CompleteResultCompletion | None:
        if isinstance(ref, PromptReference) and argument.name == "text":
            return CompleteResultCompletion(values=["hello"], has_more=False)
        return None

    return mcp


def test_a_server_with_a_result_of_its_own_templates_prompts_and_completion() -> None:
    async def main() -> None:
        async with connect(echo_server()) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.output_schema is not None
            assert tool.output_schema["properties"]["text"]["type"] == "string"
            assert tool.input_schema["properties"]["text"]["description"] == "The text to echo"
            result = await client.call_tool("echo", {"text": "a", "times": 2})
            assert (text_of(result), result.structured_content) == ("aa", {"text": "aa"})
            assert result.meta is not None
            assert result.meta["times"] == 2
            assert text_of((await client.read_resource("echo://b")).contents) == "Echo: b"
            assert [message.role for message in (await client.get_prompt("ask", {"text": "x"})).messages] == [
                "user",
                "assistant",
            ]
            found = await client.complete(PromptReference(name="ask"), "text", "he")
            assert found.completion.values == ["hello"]

    run(main())


@dataclass
class AppContext:
    database: dict[str, int]


@asynccontextmanager
async def opened(server: MCPServer) -> AsyncGenerator[AppContext]:
    yield AppContext({"rows": 3})


class Booking(BaseModel):
    accept: bool = Field(description="Take another day?")
    day: str = Field(default="Monday", description="The other day")


def busy_server() -> MCPServer:
    mcp = MCPServer("Busy", lifespan=opened)

    @mcp.tool()
    def rows(ctx: Context[AppContext]) -> int:
        return ctx.lifespan.database["rows"]

    @mcp.tool()
    async def work(ctx: Context, steps: int = 2) -> str:
        for step in range(steps):
            await ctx.report_progress(progress=step + 1, total=steps, message=f"step {step + 1}")
            await ctx.info(f"did {step + 1}")
        return "done"

    @mcp.tool()
    async def book(ctx: Context, day: str) -> str:
        answer = await ctx.elicit(message=f"{day} is taken.", schema=Booking)
        if answer.action == "accept" and answer.data is not None:
            return answer.data.day if answer.data.accept else "nothing"
        return answer.action

    @mcp.tool()
    async def poem(ctx: Context, topic: str) -> str:
        return text_of(await ctx.sample(f"A poem about {topic}", max_tokens=100))

    @mcp.tool()
    def picture() -> Image:
        return Image(data=PIXEL, format="png")

    @mcp.tool()
    def refuse() -> str:
        raise ToolError("no")

    return mcp


def _poet(params: Any) -> CreateMessageResult:
    (message,) = params.messages
    assert isinstance(message, SamplingMessage)
    content = TextContent(text=f"sampled: {text_of([message.content])}")
    return CreateMessageResult(role="assistant", model="m", content=content)


@each("revision", ["2026-07-28", "2025-06-18"])
def test_a_server_with_a_lifespan_progress_forms_sampling_and_images(revision: str) -> None:
    async def main() -> None:
        steps, messages = list[Any](), list[Any]()
        async with connect(
            busy_server(),
            elicit=lambda question: {"accept": True, "day": "Tuesday"},
            sample=_poet,
            on_log=messages.append,
            revisions=[revision],
        ) as client:
            assert text_of(await client.call_tool("rows")) == "3"
            assert text_of(await client.call_tool("work", on_progress=steps.append)) == "done"
            assert text_of(await client.call_tool("book", {"day": "Monday"})) == "Tuesday"
            assert text_of(await client.call_tool("poem", {"topic": "rain"})) == "sampled: A poem about rain"
            assert (await client.call_tool("picture")).content[0].type == "image"
            assert text_of(await client.call_tool("refuse")) == "no"
        assert [(step.progress, step.total, step.message) for step in steps] == [(1, 2, "step 1"), (2, 2, "step 2")]
        assert [message.data for message in messages] == ["did 1", "did 2"]

    run(main())


def test_a_sampling_answer_may_be_a_text() -> None:
    async def main() -> None:
        async with connect(busy_server(), sample=lambda params: "a short poem") as client:
            assert text_of(await client.call_tool("poem", {"topic": "rain"})) == "a short poem"
        async with connect(busy_server(), sample=lambda params: 5) as client:  # type: ignore[arg-type,return-value]  # pyright: ignore[reportArgumentType]
            with pytest.raises(typedmcp.UsageError, match="sample returned int, expected CreateMessageResult or str"):
                await client.call_tool("poem", {"topic": "rain"})

    run(main())


def test_mounted_servers() -> None:
    weather, main_server = MCPServer("Weather"), MCPServer("Main")

    @weather.tool()
    def forecast(city: str) -> str:
        return f"sun in {city}"

    main_server.mount(weather, "weather")

    async def main() -> None:
        async with connect(main_server) as client:
            assert text_of(await client.call_tool("weather_forecast", {"city": "Oslo"})) == "sun in Oslo"

    run(main())


def test_a_call_on_the_server_itself_says_to_connect() -> None:
    call: Any = echo_server().call_tool
    with pytest.raises(typedmcp.UsageError, match=r"async with typedmcp\.connect\(server\) as client"):
        call("echo", {"text": "a"})
