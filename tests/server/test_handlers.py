"""Handler objects: how their methods are called, and how their results and failures are sent."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Awaitable
from typing import Any, TypeAlias

import msgspec
import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import EVERYTHING, LEGACY, MODERN_REVISION, SUPPORTED, Client, Json, run, served
from typedmcp.dialect import handlers, models, structs
from typedmcp.server.handlers import functions_of

Context: TypeAlias = typedmcp.Context
each_revision = each("revision", SUPPORTED)


def text(value: str) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=value)], result_type="complete")


async def text_from(client: Client, name: str = "x") -> str:
    result = await client.call(name)
    found: str = result["content"][0]["text"]
    return found


# Kinds of handlers


class Plain:
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        return text(f"plain {threading.current_thread() is threading.main_thread()}")


class Async:
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        return text("async")


class Waiting:
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        await asyncio.sleep(0)
        return text("waited")


class Threaded:
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        return text(f"plain {threading.current_thread() is threading.main_thread()}")


class GivesFuture:
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Awaitable[structs.CallToolResult]:
        future: asyncio.Future[structs.CallToolResult] = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.set_result, text("future"))
        return future


class Stub(handlers.ServerStub[Context]):
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        return text("stub")


@each_revision
@each(
    "handler, says",
    [
        (Plain, "plain True"), (Async, "async"), (Waiting, "waited"), (Threaded, "plain False"),
        (GivesFuture, "future"), (Stub, "stub"),
    ],
)  # fmt: skip
def test_any_object_with_some_of_the_methods_is_a_handler(handler: type, says: str, revision: str) -> None:
    async def main() -> None:
        async with served(handler()) as client:
            await client.open(revision)
            assert await text_from(client) == says

    run(main)


def test_a_handler_may_come_from_code_without_a_module() -> None:
    class Handler:
        async def list_tools(self, params: object, ctx: object) -> structs.ListToolsResult:
            return structs.ListToolsResult(tools=[])

    function: Any = Handler.list_tools
    function.__module__ = None
    assert "list_tools" in typedmcp.ServerConfig(Handler()).functions


def test_capabilities_follow_from_the_implemented_methods() -> None:
    for handler in (Plain(), Stub()):
        made = typedmcp.ServerConfig(handler).capabilities
        assert structs.to_builtins(made) == {"tools": {"listChanged": True}, "logging": {}}


@each_revision
def test_a_method_that_the_handler_lacks_is_not_found(revision: str) -> None:
    async def main() -> None:
        async with served(Stub()) as client:
            await client.open(revision)
            for method, params in (("prompts/list", {}), ("resources/read", {"uri": "a:b"})):
                error = await client.error(method, params)
                assert (error["code"], error["message"]) == (-32601, f"method not found: {method}")

    run(main)


class OnlyActs:
    """A handler that lists nothing, in either library."""

    def __init__(self, types: Any = structs) -> None:
        self.types = types

    def call_tool(self, params: Any, ctx: Context) -> Any:
        return self.types.CallToolResult(content=[])

    def read_resource(self, params: Any, ctx: Context) -> Any:
        return self.types.ReadResourceResult(contents=[])

    def get_prompt(self, params: Any, ctx: Context) -> Any:
        return self.types.GetPromptResult(messages=[])


LISTS = {
    "tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}  # fmt: skip


@each_revision
@each("types", [structs, models], ids=["structs", "models"])
def test_lists_that_the_capabilities_promise_are_empty_if_the_handler_has_none(revision: str, types: Any) -> None:
    async def main() -> None:
        async with served(OnlyActs(types), codec="msgspec" if types is structs else "pydantic") as client:
            await client.open(revision)
            for method, member in LISTS.items():
                assert (await client.result(method))[member] == []

    run(main)


def test_a_handler_with_a_fallback_answers_the_lists_itself() -> None:
    class Gateway(OnlyActs):
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            return {"tools": [{"name": method, "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}

    async def main() -> None:
        async with served(Gateway()) as client:
            assert [tool["name"] for tool in (await client.result("tools/list"))["tools"]] == ["tools/list"]

    run(main)


class Completes:
    def complete(self, params: structs.CompleteRequestParams, ctx: Context) -> structs.CompleteResult:
        return structs.CompleteResult(completion=structs.CompleteResultCompletion(values=["a"]))


COMPLETE: Json = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}


@each_revision
def test_completion_is_unknown_unless_the_capabilities_promise_it(revision: str) -> None:
    async def main() -> None:
        async with served(Completes()) as client:
            await client.open(revision)
            assert (await client.result("completion/complete", COMPLETE))["completion"]["values"] == ["a"]
        async with served(Completes(), capabilities=structs.ServerCapabilities()) as client:
            await client.open(revision)
            assert (await client.error("completion/complete", COMPLETE))["code"] == -32601

    run(main)


def test_an_object_without_methods_is_rejected_with_the_possible_methods() -> None:
    with pytest.raises(typedmcp.UsageError, match=r"object implements none of: .*call_tool"):
        typedmcp.ServerConfig(object())


def test_an_async_method_cannot_be_marked_for_a_thread() -> None:
    with pytest.raises(typedmcp.UsageError, match="is async"):
        typedmcp.in_thread(Async.call_tool)


def test_the_names_of_handler_methods_are_those_of_the_protocol() -> None:
    assert set(functions_of(Stub())) == {"call_tool"}


@each(
    "options",
    [{"revisions": ["1999-01-01"]}, {"grace": -1}, {"state_signer": lambda: typedmcp.StateSigner(b"short")}],
    ids=["revisions", "grace", "state_signer"],
)
def test_invalid_options_are_rejected_before_serving(options: dict[str, Any]) -> None:
    async def main() -> None:
        made: dict[str, Any] = {name: value() if callable(value) else value for name, value in options.items()}
        _mine, theirs = typedmcp.memory_pair()
        await typedmcp.serve_async(Stub(), theirs, **made)

    with pytest.raises((typedmcp.UsageError, ValueError)):
        asyncio.run(main())


# Results and failures


class Returns:
    def __init__(self, result: Any) -> None:
        self.result = result

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class Mine(structs.CallToolResult):
    """A result of a user's own class."""


NAN = structs.CallToolResult(content=[], structured_content={"x": float("nan")}, result_type="complete")
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def with_meta(value: Any) -> structs.CallToolResult:
    meta = structs.ResultMetaObject()
    meta["x"] = value
    return structs.CallToolResult(content=[], meta=meta, result_type="complete")


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@each_revision
@each(
    "result, reported",
    [
        (None, "returned NoneType, expected InputRequiredResult or CallToolResult"),
        ({"content": []}, "returned dict, expected"),
        (structs.ListToolsResult(tools=[], ttl_ms=0, cache_scope="public", result_type="complete"), "ListToolsResult"),
        (with_meta(object()), "object"),
        (with_meta(nested(198)), "nested too deeply: more than 200 levels of arrays and objects"),
        (with_meta(nested(400)), "nested too deeply: more than 200 levels of arrays and objects"),
        (with_meta(ENDLESS), "nested too deeply: more than 200 levels of arrays and objects"),
        (RuntimeError("secret"), "secret"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
    ids=[
        "None",
        "a dict",
        "another result",
        "no JSON",
        "deep",
        "very deep",
        "endless",
        "an exception",
        "a cancellation of nobody's",
    ],
)
def test_a_broken_result_is_an_internal_error_for_the_client_and_a_diagnostic_for_the_operator(
    result: Any, reported: str, revision: str
) -> None:
    async def main() -> None:
        async with served(Returns(result)) as client:
            await client.open(revision)
            error = await client.error("tools/call", {"name": "x", "arguments": {}})
            assert error == {"code": -32603, "message": "internal error in tools/call"}
            (report,) = client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)
            assert reported in report.text
            assert (report.method, report.error is not None) == ("tools/call", True)
            assert (await client.error("tools/call", {"name": "x", "arguments": {}}))["code"] == -32603

    run(main)


LARGE_NAN = structs.CallToolResult(
    content=[structs.TextContent(text="wind " * 50_000)],
    structured_content={"x": [{"y": float("nan")}]},
    result_type="complete",
)


@each("revision", [MODERN_REVISION, "2025-11-25", "2025-06-18"])
@each("result", [NAN, LARGE_NAN], ids=["small", "large"])
def test_nan_is_never_sent_as_null(result: Any, revision: str) -> None:
    async def main() -> None:
        async with served(Returns(result)) as client:
            await client.open(revision)
            assert (await client.error("tools/call", {"name": "x", "arguments": {}}))["code"] == -32603
            assert "NaN" in client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)[0].text

    run(main)


@each_revision
def test_a_result_as_deep_as_the_limit_is_sent(revision: str) -> None:
    async def main() -> None:
        async with served(Returns(with_meta(nested(197)))) as client:
            await client.open(revision)
            result = (await client.request("tools/call", {"name": "x", "arguments": {}}))["result"]
            assert result["_meta"]["x"] == nested(197)

    run(main)


@each_revision
def test_null_in_a_result_is_sent(revision: str) -> None:
    async def main() -> None:
        block = structs.TextContent(text="x", meta={"a": None})
        result = structs.CallToolResult(content=[block], meta={"n": None}, result_type="complete")
        async with served(Returns(result)) as client:
            await client.open(revision)
            assert (await client.call("x"))["_meta"]["n"] is None

    run(main)


@each_revision
def test_a_result_of_a_subclass_is_sent_as_its_base_class(revision: str) -> None:
    async def main() -> None:
        async with served(Returns(Mine(content=[], result_type="complete"))) as client:
            await client.open(revision)
            assert (await client.call("x"))["content"] == []

    run(main)


@each_revision
def test_a_result_object_can_be_returned_twice(revision: str) -> None:
    """The server's name is added to a copy."""

    async def main() -> None:
        shared = text("x")
        async with served(Returns(shared)) as client:
            await client.open(revision)
            assert await client.call("x") == await client.call("x")
            assert shared == text("x")

    run(main)


@each_revision
def test_a_remote_error_of_a_handler_is_sent_unchanged(revision: str) -> None:
    async def main() -> None:
        async with served(Returns(typedmcp.RemoteError(7, "seven", {"a": 1}))) as client:
            await client.open(revision)
            error = await client.error("tools/call", {"name": "x", "arguments": {}})
            assert error == {"code": 7, "message": "seven", "data": {"a": 1}}
            assert client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR) == []

    run(main)


# Fallback and forwarding


class Fallback:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    async def fallback(self, method: str, params: Json, ctx: Context) -> Any:
        self.seen.append((method, params))
        if ctx.id is None:
            return None
        return msgspec.Raw(b'{"verbatim": [1,  2.0, null]}') if method == "x/raw" else {"echo": params}


@each_revision
def test_a_fallback_gets_known_and_unknown_methods_with_their_parameters(revision: str) -> None:
    async def main() -> None:
        handler = Fallback()
        async with served(handler) as client:
            await client.open(revision)
            for method in ("x/unknown", "tools/call", "tasks/get"):
                result = await client.result(method, {"a": [1, None], "name": "n", "taskId": "t"})
                assert result["echo"]["a"] == [1, None]
            client.send(
                {"method": "x/told", "params": {"b": 1, **({"_meta": client.meta()} if client.is_modern else {})}}
            )
            await client.settled()
            assert [method for method, _ in handler.seen] == ["x/unknown", "tools/call", "tasks/get", "x/told"]

    run(main)


@each_revision
def test_a_raw_result_is_sent_unchanged_and_the_context_has_the_raw_message(revision: str) -> None:
    lines: list[bytes] = []

    class Forwarding(Fallback):
        async def fallback(self, method: str, params: Json, ctx: Context) -> Any:
            lines.append(ctx.raw)
            return await super().fallback(method, params, ctx)

    async def main() -> None:
        async with served(Forwarding()) as client:
            await client.open(revision)
            meta = json.dumps(client.meta()) if client.is_modern else "{}"
            line = b'{"id": "q",  "jsonrpc":"2.0","method":"x/raw","params":{"_meta": %s, "n": 1.0}}' % meta.encode()
            client.send_bytes(line + b"\n")
            answer = await client.receive()
            assert answer == {"jsonrpc": "2.0", "id": "q", "result": {"verbatim": [1, 2.0, None]}}
            assert lines == [line]

    run(main)


# One handler does not disturb another

var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="clean")


class Polluting:
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        before = var.get()
        var.set(params.name)
        if params.name == "slow":
            await asyncio.sleep(0.01)
        return text(f"{before} {var.get()}")


@each_revision
def test_context_variables_of_a_handler_are_invisible_to_the_next(revision: str) -> None:
    async def main() -> None:
        async with served(Polluting()) as client:
            await client.open(revision)
            names = ("a", "slow", "b", "slow", "c")
            ids = [client.start("tools/call", {"name": name, "arguments": {}}) for name in names]
            texts = [(await client.answer_to(id))["result"]["content"][0]["text"] for id in ids]
            assert texts == [f"clean {name}" for name in names]

    run(main)


class UsesTasks:
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        before = asyncio.current_task()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.sleep(0, "inner"))
        assert asyncio.current_task() is before
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            return text(f"{task.result()} timed out")
        return text("not reached")


@each_revision
def test_handlers_can_use_timeouts_and_task_groups_from_their_first_step(revision: str) -> None:
    async def main() -> None:
        async with served(UsesTasks()) as client:
            await client.open(revision)
            ids = [client.start("tools/call", {"name": "x", "arguments": {}}) for _ in range(5)]
            for id in ids:
                assert (await client.answer_to(id))["result"]["content"][0]["text"] == "inner timed out"

    run(main)


class TellsFromThread:
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        for step in range(1, 4):
            ctx.progress(step, 3)
        ctx.log("error", "from a thread")
        ctx.changes.tools_changed()
        return text("told")


@each_revision
def test_a_handler_in_a_thread_can_send_progress_logs_and_changes(revision: str) -> None:
    async def main() -> None:
        async with served(TellsFromThread()) as client:
            await client.open(revision)
            meta = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}
            await client.call("x", meta=meta if revision == MODERN_REVISION else {"progressToken": "t"})
            await client.settled()
            methods = [message["method"] for message in client.unread()]
            assert methods[:4] == ["notifications/progress"] * 3 + ["notifications/message"]
            assert methods[4:] == ([] if revision == MODERN_REVISION else ["notifications/tools/list_changed"])

    run(main)


def test_requests_beyond_the_limit_are_rejected_and_the_others_served() -> None:
    gate = asyncio.Event()

    class Gated:
        async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
            await gate.wait()
            return text("open")

    async def main() -> None:
        async with served(Gated(), limits=typedmcp.Limits(requests_in_flight=3)) as client:
            ids = [client.start("tools/call", {"name": "x", "arguments": {}}) for _ in range(5)]
            for id in ids[3:]:
                error = (await client.answer_to(id))["error"]
                assert (error["code"], error["message"]) == (-32603, "more than 3 requests in flight")
            gate.set()
            for id in ids[:3]:
                assert "result" in await client.answer_to(id)

    run(main)


class AsksByContext:
    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> structs.ListToolsResult:
        await ctx.list_roots()
        raise AssertionError


class AsksByResult:
    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> Any:
        return structs.InputRequiredResult(input_requests={"roots": structs.ListRootsRequest()})


@each("handler", [AsksByContext(), AsksByResult()], ids=["context", "result"])
@each("revision", [*LEGACY, MODERN_REVISION])
def test_methods_that_cannot_request_input_raise(revision: str, handler: Any) -> None:
    async def main() -> None:
        async with served(handler) as client:
            await client.open(revision, **EVERYTHING)
            assert (await client.error("tools/list"))["code"] == -32603
            assert (
                "tools/list cannot ask the client for input"
                in client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)[0].text
            )

    run(main)


# On Pydantic


class Models:
    async def call_tool(self, params: models.CallToolRequestParams, ctx: Context) -> Any:
        assert type(params) is models.CallToolRequestParams
        assert params.meta["io.modelcontextprotocol/protocolVersion"] == ctx.revision
        if params.name == "ask":
            answer = await ctx.elicit("who?", {"type": "object", "properties": {"n": {"type": "string"}}})
            return models.CallToolResult(content=[models.TextContent(text=str(answer.content))], result_type="complete")
        content: list[Any] = [models.TextContent(text=str(params.arguments))]
        return models.CallToolResult(content=content, result_type="complete")

    async def list_tools(self, params: models.PaginatedRequestParams, ctx: Context) -> models.ListToolsResult:
        tool = models.Tool(name="t", title="T", input_schema={"type": "object"})
        return models.ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="public", result_type="complete")


@each_revision
def test_with_the_pydantic_codec_handlers_take_and_return_models(revision: str) -> None:
    async def main() -> None:
        async with served(Models(), codec="pydantic") as client:
            await client.open(revision, **EVERYTHING)
            result = await client.result("tools/call", {"name": "x", "arguments": {"a": 1}})
            assert result["content"] == [{"type": "text", "text": "{'a': 1}"}]
            assert ("resultType" in result) == (revision == MODERN_REVISION)
            (tool,) = (await client.result("tools/list"))["tools"]
            assert ("title" in tool) == (revision >= "2025-06-18")
            error = await client.error("tools/call", {"name": 1})
            assert (error["code"], error["message"]) == (-32602, "params.name: expected string, got 1")

    run(main)


class OfModels(handlers.ServerStub[Context]):
    """A handler on structs that returns a model."""

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        return models.CallToolResult(content=[])


class OfStructs(Models):
    """A handler on models that returns a struct."""

    async def call_tool(self, params: models.CallToolRequestParams, ctx: Context) -> Any:
        return structs.CallToolResult(content=[])


@each_revision
@each(
    "handler, codec, remedy",
    [
        (OfModels(), "msgspec", "serve it with codec='pydantic'"),
        (OfStructs(), "pydantic", "serve it without codec='pydantic'"),
    ],
    ids=["models", "structs"],
)
def test_a_result_of_the_other_library_is_reported_with_the_codec_to_serve_it_with(
    handler: Any, codec: Any, remedy: str, revision: str
) -> None:
    async def main() -> None:
        async with served(handler, codec=codec) as client:
            await client.open(revision)
            await client.error("tools/call", {"name": "x", "arguments": {}})
            (report,) = client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)
            assert remedy in str(report.error)

    run(main)


@each("revision", ["2025-06-18", "2025-11-25", MODERN_REVISION])
def test_input_requests_work_with_the_pydantic_codec(revision: str) -> None:
    async def main() -> None:
        accept = {"action": "accept", "content": {"n": "Ada"}}
        async with served(Models(), codec="pydantic") as client:
            await client.open(revision, **EVERYTHING)
            id = client.start("tools/call", {"name": "ask", "arguments": {}})
            if client.is_modern:
                first = (await client.answer_to(id))["result"]
                (key,) = first["inputRequests"]
                retry: Json = {"name": "ask", "arguments": {}, "requestState": first["requestState"]}
                id = client.start("tools/call", {**retry, "inputResponses": {key: accept}})
            else:
                question = await client.receive()
                client.send({"id": question["id"], "result": accept})
            assert (await client.answer_to(id))["result"]["content"][0]["text"] == "{'n': 'Ada'}"

    run(main)


@each_revision
@each("code, sent", [(-32002, -32602), (-32042, -32603), (-32050, -32603), (-32000, -32000)])
def test_an_error_code_that_the_revision_reserves_is_replaced_and_reported(code: int, sent: int, revision: str) -> None:
    async def main() -> None:
        async with served(
            Returns(typedmcp.RemoteError.from_wire({"code": code, "message": "of an upstream"}))
        ) as client:
            await client.open(revision)
            error = await client.error("tools/call", {"name": "x"})
            is_replaced = revision == MODERN_REVISION and code != sent
            assert error == {"code": sent if is_replaced else code, "message": "of an upstream"}
            texts = [report.text for report in client.of_kind(typedmcp.DiagnosticKind.DROPPED)]
            assert texts == [f"the error code {code} is reserved in {revision}; {sent} was sent"] * is_replaced

    run(main)


class Careless:
    """A handler whose results break rules that Structs do not check; models do."""

    async def list_tools(self, params: Any, ctx: Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[], ttl_ms=-5)

    async def complete(self, params: Any, ctx: Context) -> structs.CompleteResult:
        values = [str(number) for number in range(150)]
        return structs.CompleteResult(completion=structs.CompleteResultCompletion(values=values))


@each_revision
def test_a_result_that_breaks_a_rule_is_repaired_and_reported(revision: str) -> None:
    async def main() -> None:
        async with served(Careless()) as client:
            await client.open(revision)
            result = await client.result("tools/list")
            assert result.get("ttlMs") == (0 if revision == MODERN_REVISION else None)
            completion = (await client.result("completion/complete", COMPLETE))["completion"]
            assert completion["values"] == [str(number) for number in range(100)]
            assert (completion["total"], completion["hasMore"]) == (150, True)
            assert [report.text for report in client.of_kind(typedmcp.DiagnosticKind.INVALID_DATA)] == [
                "tools/list: ttlMs must be at least 0, not -5; 0 was sent",
                "completion/complete: completion.values: 150 suggestions; the first 100 were sent",
            ]

    run(main)


class Chatty:
    """A handler that sends as many messages as it is told to."""

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        for step in range(int((params.arguments or {})["messages"])):
            await (ctx.progress(step) if params.name == "progress" else ctx.error(step))
        return text("done")


@each_revision
@each("name", ["progress", "log"])
def test_a_request_sends_a_limited_number_of_messages_in_a_second(
    name: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("typedmcp.server.context.monotonic", lambda: clock[0])

    async def main() -> None:
        async with served(Chatty(), limits=typedmcp.Limits(request_messages_per_second=3)) as client:
            await client.open(revision)
            meta: Json = {"progressToken": 1}
            if client.is_modern:
                meta["io.modelcontextprotocol/logLevel"] = "info"
            for sent, arrived in ((3, 3), (8, 3)):  # each request has its own limit
                await client.call(name, meta=meta, messages=sent)
                assert len(client.unread()) == arrived
                for _ in range(arrived):
                    await client.receive()
            (report,) = client.of_kind(typedmcp.DiagnosticKind.DROPPED)
            assert "more than 3 messages of one request in a second" in report.text

    run(main)


def test_a_second_later_a_request_sends_messages_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("typedmcp.server.context.monotonic", lambda: clock[0])

    class Slow:
        async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
            for step in range(6):
                await ctx.progress(step)
                clock[0] += 0.25
            return text("done")

    async def main() -> None:
        async with served(Slow(), limits=typedmcp.Limits(request_messages_per_second=2)) as client:
            await client.call("x", meta={"progressToken": 1})
            assert [message["params"]["progress"] for message in client.unread()] == [0, 1, 4, 5]

    run(main)
