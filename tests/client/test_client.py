"""The client with a server that has every feature: calls look the same in every revision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from mcpspec.v2025_06_18 import methods as older_methods
from mcpspec.v2025_06_18 import structs as older
from tests.cases import each
from tests.conformance import server
from tests.server.scripted import MODERN_REVISION, SUPPORTED, run
from typedmcp.client import ChangeEvent, Client, connect, with_defaults
from typedmcp.dialect import methods, structs
from typedmcp.revisions.features import DIALECT

each_revision = each("revision", SUPPORTED)
either_era = each("revision", [MODERN_REVISION, "2025-11-25"])
ANSWER = structs.CreateMessageResult(role="assistant", model="m", content=structs.TextContent(text="Paris, of course."))
REPLIES = {"What is your name?": {"name": "Ada"}, "Step 1: What is your name?": {"name": "Ada"}}


def answer(_params: Any) -> structs.CreateMessageResult:
    """Return the same message for every sampling request."""
    return ANSWER


def decline(_params: Any) -> None:
    """Decline every elicitation."""


def fill_in(params: Any) -> dict[str, Any]:
    """Change one of the defaults of a form."""
    return with_defaults(params, {"age": 36})


def elicit(params: Any) -> Any:
    """Fill in a form with its defaults, or with the first valid value."""
    if params.message == "no":
        return None
    fields = structs.to_builtins(params)["requestedSchema"]["properties"]
    return {name: {"name": "Ada", "color": "green", "ok": True}.get(name, "x") for name in fields}


def connected(revision: str, **options: Any) -> Client:
    everything: dict[str, Any] = {"sample": answer, "elicit": elicit, "roots": ["file:///home/ada"], **options}
    return connect(server.Everything(), revisions=[revision], **everything)


def text(result: structs.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, structs.TextContent)
    return content.text


@each_revision
def test_a_client_knows_name_revision_and_capabilities_of_its_server(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            assert client.revision == revision
            assert client.server.info is not None
            assert client.server.info.name == "Everything"
            assert client.server.capabilities.tools is not None
            await client.ping()

    run(main)


@each_revision
def test_lists_can_be_read_by_page_and_as_a_whole(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            names = [name for name in server.TOOLS if name not in server.LATE]
            assert [tool.name for tool in (await client.list_tools()).tools] == names
            assert [tool.name async for tool in client.tools()] == names
            assert [prompt.name async for prompt in client.prompts()] == [
                name for name in server.PROMPTS if name not in server.LATE
            ]
            assert [resource.uri async for resource in client.resources()] == [r.uri for r in server.RESOURCES]
            assert [t.uri_template async for t in client.resource_templates()] == [server.TEMPLATE]

    run(main)


@each_revision
def test_calls_return_the_results_of_the_server(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            assert text(await client.call_tool("test_simple_text")).startswith("This is a simple text")
            assert text(await client.call_tool("test_x_mcp_header", {"region": "north"})) == "Region: north"
            assert (await client.call_tool("test_error_handling")).is_error is True
            (contents,) = (await client.read_resource(server.STATIC_BINARY)).contents
            assert contents == structs.BlobResourceContents(
                uri=server.STATIC_BINARY, mime_type="image/png", blob=server.PNG
            )
            prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
            assert prompt.messages[0].content == structs.TextContent(text="Prompt with arguments: arg1='a', arg2='b'")
            ref = structs.PromptReference(name="test_prompt_with_arguments")
            completion = (await client.complete(ref, "arg1", "par")).completion
            assert completion.values == ["paris", "park", "party"]

    run(main)


@each_revision
def test_a_call_waits_for_the_callbacks_of_its_progress(revision: str) -> None:
    async def main() -> None:
        steps: list[Any] = []

        async def slow(progress: structs.ProgressNotificationParams) -> None:
            await asyncio.sleep(0.001)
            await client.call_tool("test_tool_with_progress", on_progress=inner.append)  # which waits for no other one
            steps.append(progress.progress)

        inner: list[Any] = []
        async with connected(revision) as client:
            await client.call_tool("test_tool_with_progress", on_progress=slow)
            assert steps == [0, 50, 100]
            assert len(inner) == 9

    run(main)


def test_a_call_does_not_wait_for_a_callback_that_does_not_end() -> None:
    ended: list[str] = []

    async def hang(progress: structs.ProgressNotificationParams) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("cancelled")

    async def main() -> None:
        async with connected(MODERN_REVISION, grace=0.01) as client:
            await client.call_tool("test_tool_with_progress", on_progress=hang)
            assert not ended
        assert ended == ["cancelled"]

    run(main)


@each_revision
def test_progress_and_log_callbacks_run_in_order(revision: str) -> None:
    async def main() -> None:
        steps: list[Any] = []
        logs: list[Any] = []

        async def slow(params: structs.LoggingMessageNotificationParams) -> None:
            await asyncio.sleep(0)
            logs.append((params.level, params.data))

        async with connected(revision, on_log=slow) as client:
            await client.call_tool("test_tool_with_progress", on_progress=lambda p: steps.append(p.progress))
            assert steps == [0, 50, 100]
            await client.call_tool("test_logging_tool")
            await client.ping()
            assert logs == [
                ("debug", "Looking closely"),
                ("info", {"step": 1, "of": 2}),
                ("error", "Nothing is wrong, this is a test"),
            ]
            await client.set_log_level("error")
            await client.call_tool("test_logging_tool")
            await client.ping()
            assert [level for level, _ in logs[3:]] == ["error"]

    run(main)


@each_revision
def test_the_server_can_request_sampling_and_roots(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            assert text(await client.call_tool("test_sampling", {"prompt": "hi"})) == "LLM response: Paris, of course."
            roots = await client.call_tool("test_input_required_result_list_roots")
            assert text(roots) == "Roots: file:///home/ada"

    run(main)


@each("revision", [MODERN_REVISION, "2025-11-25", "2025-06-18"])
@each(
    "tool, answer",
    [
        ("elicitation", "Hello, Ada!"),
        ("request_state", "state-ok"),
        ("multiple_inputs", "Paris, of course. Ada, 1 folder(s)."),
        ("multi_round", "Ada likes green."),
        ("capabilities", "Answered: client_roots, greeting, user_name"),
    ],
)
def test_the_server_can_request_elicitation_in_several_rounds(tool: str, answer: str, revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            assert text(await client.call_tool(f"test_input_required_result_{tool}")) == answer
            prompt = await client.get_prompt("test_input_required_result_prompt")
            assert prompt.messages[0].content == structs.TextContent(text="Prompt with context: x")

    run(main)


@each("revision", [MODERN_REVISION, "2025-11-25"])
def test_elicitation_fills_in_the_defaults_of_a_form(revision: str) -> None:
    async def main() -> None:
        async with connected(revision, elicit=fill_in) as client:
            answer = text(await client.call_tool("test_elicitation_sep1034_defaults"))
            content = json.loads(answer.partition("content=")[2])
            assert content == {"name": "John Doe", "age": 36, "score": 95.5, "status": "active", "verified": True}

    run(main)


@either_era
def test_elicitation_can_be_declined(revision: str) -> None:
    async def main() -> None:
        async with connected(revision, elicit=decline) as client:
            answer = await client.call_tool("test_elicitation", {"message": "Who?"})
            assert text(answer) == "User response: action=decline, content={}"

    run(main)


def test_rounds_of_input_are_limited_and_can_be_returned_to_the_caller() -> None:
    async def main() -> None:
        async with connected(MODERN_REVISION) as client:
            with pytest.raises(typedmcp.InputUnavailableError, match="more than 1 times"):
                await client.call_tool("test_input_required_result_multi_round", rounds=1)
            handed = await client.send(methods.TOOLS_CALL, {"name": "test_input_required_result_elicitation"}, rounds=0)
            assert isinstance(handed, structs.InputRequiredResult)

    run(main)


@either_era
def test_a_cancelled_call_is_cancelled_at_the_server(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            started = asyncio.Event()
            call = asyncio.create_task(client.call_tool("test_wait", on_progress=lambda _: started.set()))
            await started.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert text(await client.call_tool("test_cancelled_waits")) == "1"

    run(main)


CALLS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "call_tool": lambda client, options: client.call_tool("test_simple_text", **options),
    "list_tools": lambda client, options: client.list_tools(**options),
    "list_tools, kept": lambda client, options: client.list_tools(**options),
    "read_resource": lambda client, options: client.read_resource("test://static-text", **options),
    "get_prompt": lambda client, options: client.get_prompt("test_simple_prompt", **options),
    "ping": lambda client, options: client.ping(**options),
    "send a name": lambda client, options: client.send("tools/list", {}, **options),
    "send a method": lambda client, options: client.send(methods.TOOLS_LIST, {}, **options),
}


@each(
    "options, said",
    [
        ({"timeout": "1"}, "timeout must be a number of seconds, not '1'"),
        ({"probe": "1"}, "probe must be a number of seconds, not '1'"),
        ({"revisions": "2025-06-18"}, r"revisions must be a list, such as \['2025-06-18'\], not a string"),
        ({"revisions": []}, f"revisions is empty: name at least one of {DIALECT}, "),
        ({"limits": {"threads": 1}}, "limits must be a Limits, "),
        ({"elicit": 3}, "elicit must be a function, not 3"),
    ],
    ids=str,
)
def test_an_option_of_another_type_raises_usage_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=said):
        connect(server.Everything(), **options)


def test_a_call_rejects_a_time_that_is_not_a_number_and_a_closed_client_says_so() -> None:
    async def main() -> None:
        async with connected(MODERN_REVISION) as client:
            with pytest.raises(typedmcp.UsageError, match="max_time must be a number of seconds, not '1'"):
                await client.list_tools(max_time="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            with pytest.raises(typedmcp.UsageError, match="rounds must be an integer, not '1'"):
                await client.list_tools(rounds="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(typedmcp.ConnectionLostError, match="the client has been closed"):
            await client.list_tools()

    run(main)


@either_era
@each("name", CALLS)
def test_an_unknown_option_of_a_call_raises_type_error(name: str, revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            if "kept" in name:
                await client.list_tools()
            with pytest.raises(
                TypeError, match="unknown option 'read_timeout_seconds' of a call; known: capabilities, fresh"
            ):
                await CALLS[name](client, {"read_timeout_seconds": 1})

    run(main)


@either_era
def test_a_call_that_times_out_is_cancelled_at_the_server(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"tools/call \(id \d+\): no answer within 0.05 s"):
                await client.call_tool("test_wait", timeout=0.05)
            await client.ping()
            assert text(await client.call_tool("test_cancelled_waits")) == "1"

    run(main)


@each_revision
@each(
    "call, named, error, code",
    [
        ("call_tool", "no_such_tool", typedmcp.InvalidParamsError, -32602),
        ("get_prompt", "no_such_prompt", typedmcp.InvalidParamsError, -32602),
        ("send", "x/y", typedmcp.MethodNotFoundError, -32601),
        ("read_resource", "test://none", typedmcp.InvalidParamsError, None),
    ],
    ids=["tool", "prompt", "method", "resource"],
)
def test_an_error_response_raises_an_exception_that_names_the_call(
    call: str, named: str, error: Any, code: Any, revision: str
) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            with pytest.raises(error) as caught:
                await getattr(client, call)(named)
            assert caught.value.code == (code or (-32602 if revision == MODERN_REVISION else -32002))
            assert caught.value.method in str(caught.value)

    run(main)


@each_revision
def test_each_change_is_delivered_once(revision: str) -> None:
    async def main() -> None:
        async with connected(revision) as client:
            async with client.listen(tools=True, uris=[server.WATCHED]) as changes:
                await client.call_tool("test_trigger_tool_change")
                await client.call_tool("test_trigger_resource_change")
                await client.call_tool("test_trigger_prompt_change")
                received = [await anext(changes), await anext(changes)]
                assert received == [ChangeEvent("tools"), ChangeEvent("resource", server.WATCHED)]
                assert "test_late_tool" in [tool.name async for tool in client.tools()]
            await client.call_tool("test_trigger_tool_change")
            async with client.listen(prompts=True) as changes:
                await client.call_tool("test_trigger_tool_change")
                await client.call_tool("test_trigger_prompt_change")
                assert await anext(changes) == ChangeEvent("prompts")

    run(main)


def test_method_records_of_a_legacy_revision_are_sent_as_they_are() -> None:
    async def main() -> None:
        async with connected("2025-06-18") as client:
            result = await client.send(
                older_methods.TOOLS_CALL, older.CallToolRequestParams(name="test_structured_content")
            )
            assert type(result) is older.CallToolResult
            assert isinstance(result.content[1], older.ResourceLink)
            newer = await client.send(methods.TOOLS_CALL, {"name": "test_structured_content"})
            assert type(newer) is structs.CallToolResult
        async with connected("2025-11-25") as client:
            with pytest.raises(typedmcp.UsageError, match="the server speaks 2025-11-25"):
                await client.send(older_methods.TOOLS_CALL, {"name": "x"})

    run(main)


def test_the_revision_of_any_server_is_negotiated() -> None:
    async def main() -> None:
        for spoken in SUPPORTED:
            service = typedmcp.ServerConfig(server.Everything(), revisions=[spoken])
            async with connect(service) as client:
                assert client.revision == spoken
        async with connect(server.Everything()) as client:
            assert client.revision == DIALECT
        with pytest.raises(typedmcp.UnsupportedVersionError):
            await connect(
                typedmcp.ServerConfig(server.Everything(), revisions=[MODERN_REVISION]), revisions=["2025-06-18"]
            )

    run(main)


def test_clients_close_twice_and_in_any_order_and_later_calls_fail() -> None:
    async def main() -> None:
        clients = [await connected(revision) for revision in SUPPORTED]
        for client in (*clients[::2], *clients[1::2], *clients):
            await client.close()
        with pytest.raises(typedmcp.ConnectionLostError):
            await clients[0].ping()
        with pytest.raises(typedmcp.UsageError):
            await clients[0].open()

    run(main)
