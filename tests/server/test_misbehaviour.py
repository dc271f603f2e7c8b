"""Misbehaviour of handlers and clients costs one call, and affects no other."""

from __future__ import annotations

import asyncio
import contextvars
import json
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import CARRIERS, EVERYTHING, MODERN_REVISION, SUPPORTED, Json, run, served
from typedmcp.dialect import structs

Context: TypeAlias = typedmcp.Context
each_revision = each("revision", SUPPORTED)
either_era = each("revision", [MODERN_REVISION, "2025-11-25"])

VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE", default="clean")


def text(value: object) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=str(value))], result_type="complete")


def text_from(result: Json) -> str:
    found: str = result["content"][0]["text"]
    return found


class Tools:
    """A handler with a table of functions by tool names."""

    def __init__(self, **tools: Callable[[Any, Context], Any]) -> None:
        self.tools: dict[str, Callable[[Any, Context], Any]] = {"good": lambda _params, _ctx: text("good"), **tools}

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        made = self.tools[params.name](params, ctx)
        return await made if hasattr(made, "__await__") else made


class Plain(Tools):
    """The same with a plain method."""

    def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        return self.tools[params.name](params, ctx)


# Errors that are errors themselves


class UnprintableError(Exception):
    def __repr__(self) -> str:
        raise ValueError("no")


class Forgetful(typedmcp.RemoteError):
    def __init__(self) -> None:
        pass


BROKEN: dict[str, Callable[[], BaseException]] = {
    "data that is no JSON": lambda: typedmcp.RemoteError(-32000, "x", object()),
    "a code that is no integer": lambda: typedmcp.RemoteError("x", "y"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "one without a code": Forgetful,
    "one that cannot be printed": UnprintableError,
    "the end of the process": lambda: SystemExit(3),
    "the end of a generator": GeneratorExit,
    "a group": lambda: BaseExceptionGroup("several", [ValueError(), KeyError()]),
}


@either_era
@each("kind", [Tools, Plain])
@each("error", BROKEN)
def test_an_error_that_cannot_be_encoded_becomes_an_internal_error(
    error: str, kind: type[Tools], revision: str
) -> None:
    def fails(_params: Any, _ctx: Context) -> Any:
        raise BROKEN[error]()

    async def main() -> None:
        async with served(kind(fails=fails)) as client:
            await client.open(revision)
            assert (await client.error("tools/call", {"name": "fails", "arguments": {}}))["code"] == -32603
            assert len(client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)) == 1
            assert text_from(await client.call("good")) == "good"

    run(main)


# The context of a task, and the task itself


@either_era
@each("carrier", CARRIERS)
@each("kind", [Tools, Plain])
def test_context_variables_are_reset_before_the_next_handler(kind: type[Tools], carrier: str, revision: str) -> None:
    def sets(_params: Any, _ctx: Context) -> Any:
        VARIABLE.set("left")
        return text("set")

    async def main() -> None:
        tools = kind(sets=sets, gets=lambda _params, _ctx: text(VARIABLE.get()))
        async with served(tools, over=carrier) as client:
            await client.open(revision)
            ids = [client.start("tools/call", {"name": name, "arguments": {}}) for name in ("sets", "gets")]
            answers = [await client.answer_to(id) for id in ids]
            assert [text_from(answer["result"]) for answer in answers] == ["set", "clean"]

    run(main)


class Incomparable:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("these cannot be compared")


@each("carrier", CARRIERS)
def test_values_in_context_variables_need_not_be_comparable(carrier: str) -> None:
    def sets(_params: Any, _ctx: Context) -> Any:
        VARIABLE.set(Incomparable())
        return text("set")

    async def main() -> None:
        VARIABLE.set(Incomparable())
        async with served(Tools(sets=sets), over=carrier) as client:
            assert text_from(await client.call("sets")) == "set"
            assert text_from(await client.call("good")) == "good"

    run(main)


@each("carrier", CARRIERS)
def test_a_handler_that_cancels_its_own_task_affects_no_other_request(carrier: str) -> None:
    def cancels(_params: Any, _ctx: Context) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return text("cancelled")

    async def main() -> None:
        async with served(Tools(cancels=cancels), over=carrier) as client:
            assert text_from(await client.call("cancels")) == "cancelled"
            assert text_from(await client.call("good")) == "good"

    run(main)


# What is sent


@either_era
def test_encoded_json_in_a_result_is_sent_on_one_line(revision: str) -> None:
    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            ctx.log("error", msgspec.Raw(b'{\n"a": 1}'))
            return msgspec.Raw(b'{"a":\n [1,\r\n null]}')

    async def main() -> None:
        async with served(Handler()) as client:
            await client.open(revision)
            asked = client.start("x/y", meta={"io.modelcontextprotocol/logLevel": "debug"})
            assert (await client.receive())["params"]["data"] == {"a": 1}
            assert (await client.answer_to(asked))["result"] == {"a": [1, None]}

    run(main)


@each("given", [None, [1], "x"], ids=str)
def test_a_result_that_is_no_object_is_an_internal_error(given: object) -> None:
    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            return given

    async def main() -> None:
        async with served(Handler()) as client:
            assert (await client.error("x/y"))["code"] == -32603

    run(main)


def test_the_result_of_an_unknown_method_gets_a_result_type_on_modern_revisions() -> None:
    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            return {"a": 1}

    async def main() -> None:
        async with served(Handler()) as client:
            result = await client.result("x/y")
            assert (result["resultType"], result["a"]) == ("complete", 1)

    run(main)


@either_era
def test_nothing_is_sent_for_a_call_after_its_response(revision: str) -> None:
    tasks: list[asyncio.Task[None]] = []
    failures: list[BaseException] = []

    async def later(ctx: Context) -> None:
        await asyncio.sleep(0)
        await ctx.progress(50)
        await ctx.log("error", "late")
        try:
            await ctx.elicit("late?", {"type": "object", "properties": {}})
        except typedmcp.InputUnavailableError as error:
            failures.append(error)

    async def leaves(_params: Any, ctx: Context) -> Any:
        tasks.append(asyncio.create_task(later(ctx)))
        return text("done")

    async def main() -> None:
        async with served(Tools(leaves=leaves)) as client:
            await client.open(revision, **EVERYTHING)
            meta = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
            assert text_from(await client.call("leaves", meta=meta)) == "done"
            await asyncio.gather(*tasks)
            await client.settled()
            assert client.unread() == []
            assert "has its response already" in str(failures[0])

    run(main)


def test_invalid_content_does_not_reach_a_legacy_client() -> None:
    def wrong(_params: Any, _ctx: Context) -> Any:
        content: Any = [{"type": "audio", "data": "", "mimeType": "audio/wav"}]
        return structs.CallToolResult(content=content, result_type="complete")

    async def main() -> None:
        async with served(Tools(wrong=wrong)) as client:
            await client.open("2024-11-05")
            assert (await client.error("tools/call", {"name": "wrong", "arguments": {}}))["code"] == -32603
            assert "got dict" in client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)[0].text

    run(main)


# Asking


FORM: Json = {"type": "object", "properties": {"name": {"type": "string"}}}


async def answer_form(client: Any, id: int, params: Json, key: str) -> Json:
    """Accept the one form that a call requests, on any revision. Return the call's result."""
    content = {"action": "accept", "content": {"name": "Ada"}}
    if client.is_modern:
        result = (await client.answer_to(id))["result"]
        assert list(result["inputRequests"]) == [key]
        again = {**params, "inputResponses": {key: content}, "requestState": result["requestState"]}
        found: Json = await client.result("tools/call", again)
        return found
    question = await client.receive()
    client.send({"id": question["id"], "result": content})
    answer: Json = await client.answer_to(id)
    last: Json = answer["result"]
    return last


@either_era
@each("way", ["arguments changed", "in a task group"])
def test_an_input_request_works_the_same_on_every_revision(way: str, revision: str) -> None:
    async def asks(params: Any, ctx: Context) -> Any:
        params.arguments["changed"] = way
        if way == "arguments changed":
            answer = await ctx.elicit("Who?", FORM, key="who")
        else:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(ctx.elicit("Who?", FORM, key="who"))
            answer = task.result()
        return text(answer.content)

    async def main() -> None:
        async with served(Tools(asks=asks)) as client:
            await client.open(revision, **EVERYTHING)
            params: Json = {"name": "asks", "arguments": {}}
            id = client.start("tools/call", params)
            assert text_from(await answer_form(client, id, params, "who")) == "{'name': 'Ada'}"

    run(main)


def test_an_error_to_one_of_several_input_requests_is_raised_as_it_is() -> None:
    async def asks(_params: Any, ctx: Context) -> Any:
        return text(await ctx.ask({"a": structs.ListRootsRequest(), "b": structs.ListRootsRequest()}))

    async def main() -> None:
        async with served(Tools(asks=asks)) as client:
            await client.open("2025-06-18", **EVERYTHING)
            id = client.start("tools/call", {"name": "asks", "arguments": {}})
            questions = [await client.receive(), await client.receive()]
            client.send({"id": questions[0]["id"], "error": {"code": -1, "message": "no"}})
            assert (await client.answer_to(id))["error"] == {"code": -1, "message": "no"}

    run(main)


@each("error", [{"code": 10**30, "message": "x"}, {"code": "x"}, {}], ids=str)
def test_a_malformed_error_of_the_client_is_raised_as_a_remote_error(error: Json) -> None:
    async def asks(_params: Any, ctx: Context) -> Any:
        return text(await ctx.list_roots())

    async def main() -> None:
        async with served(Tools(asks=asks)) as client:
            await client.open("2025-06-18", **EVERYTHING)
            id = client.start("tools/call", {"name": "asks", "arguments": {}})
            client.send({"id": (await client.receive())["id"], "error": error})
            answer = (await client.answer_to(id))["error"]
            assert answer["code"] == -32603
            assert answer["message"] == error.get("message", "an error without a message")

    run(main)


def test_an_open_input_request_ends_when_the_client_disconnects() -> None:
    ended: list[BaseException] = []

    async def asks(_params: Any, ctx: Context) -> Any:
        try:
            await ctx.list_roots()
        except typedmcp.ConnectionLostError as error:
            ended.append(error)
            raise
        return text("")

    async def main() -> None:
        async with served(Tools(asks=asks), grace=60) as client:
            await client.open("2025-06-18", **EVERYTHING)
            client.start("tools/call", {"name": "asks", "arguments": {}})
            await client.receive()
        ((text),) = [str(error) for error in ended]
        assert text == "roots/list (id 1): the connection ended; the call may have taken effect (-31503)"

    run(main)


# Threads


class InThreads(Tools):
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        return self.tools[params.name](params, ctx)

    @typedmcp.in_thread
    def fallback(self, method: str, params: Any, ctx: Context) -> Any:
        return {"loop": _has_loop()}


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@either_era
def test_a_fallback_can_run_in_a_thread(revision: str) -> None:
    async def main() -> None:
        async with served(InThreads()) as client:
            await client.open(revision)
            assert (await client.result("x/y"))["loop"] is False

    run(main)


@either_era
def test_a_method_in_a_thread_is_called_again_in_a_thread(revision: str) -> None:
    def asks(params: Any, _ctx: Context) -> Any:
        assert not _has_loop()
        if params.input_responses:
            return text(params.input_responses["who"].content)
        question = structs.ElicitRequestFormParams(
            message="Who?", requested_schema=structs.from_builtins(FORM, structs.ElicitRequestFormParamsRequestedSchema)
        )
        return structs.InputRequiredResult(
            result_type="input_required", input_requests={"who": structs.ElicitRequest(params=question)}
        )

    async def main() -> None:
        async with served(InThreads(asks=asks)) as client:
            await client.open(revision, **EVERYTHING)
            params: Json = {"name": "asks", "arguments": {}}
            id = client.start("tools/call", params)
            assert text_from(await answer_form(client, id, params, "who")) == "{'name': 'Ada'}"

    run(main)


def test_a_handler_in_a_thread_sees_the_end_of_the_connection() -> None:
    seen: list[bool] = []

    def waits(_params: Any, ctx: Context) -> Any:
        ctx.progress(1)
        deadline = time.monotonic() + 60
        while not ctx.cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        seen.append(ctx.cancelled)
        return text("")

    async def main() -> None:
        async with served(InThreads(waits=waits), grace=0.1) as client:
            client.start("tools/call", {"name": "waits", "arguments": {}}, meta={"progressToken": 1})
            await client.receive()
        async with asyncio.timeout(60):
            while not seen:
                await asyncio.sleep(0.01)
        assert seen == [True]

    run(main)


def test_the_limit_on_threads_is_kept() -> None:
    running: list[int] = []
    most = 0

    def counts(_params: Any, _ctx: Context) -> Any:
        nonlocal most
        running.append(1)
        most = max(most, len(running))
        time.sleep(0.02)
        running.pop()
        return text("")

    async def main() -> None:
        async with served(InThreads(counts=counts), limits=typedmcp.Limits(threads=2)) as client:
            ids = [client.start("tools/call", {"name": "counts", "arguments": {}}) for _ in range(8)]
            for id in ids:
                assert "result" in await client.answer_to(id)

    run(main)
    assert most == 2


# Floods


def test_waiting_notifications_are_limited() -> None:
    class Waits:
        def __init__(self) -> None:
            self.go = asyncio.Event()
            self.entered = 0

        async def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            self.entered += 1
            await self.go.wait()
            return {}

    async def main() -> None:
        handler = Waits()
        async with served(handler, limits=typedmcp.Limits(requests_in_flight=10)) as client:
            for _ in range(50):
                client.send({"method": "x/y"})
            await client.settled()
            assert handler.entered <= 11
            assert len(client.of_kind(typedmcp.DiagnosticKind.REJECTED_NOTIFICATION)) == 50 - handler.entered
            handler.go.set()

    run(main)


@each("count, answered", [(3, 3), (4, 1)])
def test_a_batch_beyond_the_limit_is_rejected(count: int, answered: int) -> None:
    async def main() -> None:
        async with served(Tools(), limits=typedmcp.Limits(batch_messages=3)) as client:
            await client.open("2025-03-26")
            batch = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in range(count)]
            client.send_bytes(json.dumps(batch).encode() + b"\n")
            answer = await client.receive()
            if answered == 1:
                assert answer["error"] == {"code": -32600, "message": "a batch of 4 messages; the limit is 3"}
            else:
                assert len(answer) == 3

    run(main)


def test_delayed_changes_are_sent_once_when_the_client_reads_again() -> None:
    async def main() -> None:
        changes = typedmcp.Changes()
        handler = Tools(large=lambda _params, _ctx: text("x" * (6 << 20)))
        async with served(handler, changes=changes) as client:
            await client.open("2025-06-18")
            id = client.start("tools/call", {"name": "large", "arguments": {}})
            async with asyncio.timeout(60):
                while not client.session.is_congested(None):
                    await asyncio.sleep(0)
            changes.tools_changed()
            changes.tools_changed()
            assert len(text_from((await client.answer_to(id))["result"])) == 6 << 20
            assert (await client.receive())["method"] == "notifications/tools/list_changed"
            await client.settled()
            assert client.unread() == []

    run(main)


# What is not the protocol's, or not offered


def test_an_unknown_notification_reaches_the_fallback_on_modern_revisions() -> None:
    received: list[Any] = []

    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            received.append((method, params, ctx.id))
            return {}

    async def main() -> None:
        async with served(Handler()) as client:
            client.send({"method": "x/y", "params": {"a": 1}})
            await client.settled()
            assert received == [("x/y", {"a": 1}, None)]

    run(main)


@each("method", ["resources/subscribe", "resources/unsubscribe"])
def test_subscribing_without_resources_is_not_found(method: str) -> None:
    async def main() -> None:
        async with served(Tools()) as client:
            await client.open("2025-06-18")
            assert (await client.error(method, {"uri": "a:b"}))["code"] == -32601

    run(main)


@each(
    "options, said",
    [
        ({"codec": "pydant"}, "codec must be 'msgspec' or 'pydantic', not 'pydant'"),
        ({"revisions": []}, "revisions is empty"),
        ({"revisions": ["1999-01-01"]}, "unknown revision '1999-01-01'"),
        ({"revisions": "2025-06-18"}, r"revisions must be a list, such as \['2025-06-18'\], not a string"),
        ({"grace": -1}, "grace must be at least 0"),
        ({"grace": "3"}, "grace must be a number of seconds, not '3'"),
        ({"input_timeout": 0}, "input_timeout must be positive, not 0"),
        ({"input_timeout": "3"}, "input_timeout must be a number of seconds, not '3'"),
        ({"limits": {"threads": 1}}, r"limits must be a Limits, such as Limits\(threads=8\), not {'threads': 1}"),
        *[
            (
                {"capabilities": structs.ServerCapabilities(extensions={name: {}})},
                f"capabilities: '{name}' cannot identify an extension",
            )
            for name in ("charts", "/charts", "9com/charts", "com.example-/charts", "com..example/charts", "a/-b")
        ],
        ({"strict": "no"}, "strict must be True or False, not 'no'"),
        ({"state_signer": b"secret"}, r"state_signer must be a StateSigner, such as StateSigner\(key\), not bytes"),
    ],
    ids=str,
)
def test_an_error_names_the_invalid_option(options: Json, said: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=said):
        typedmcp.ServerConfig(Tools(), **options)


@each(
    "name, said",
    [
        ("websocket", "'http', not 'websocket'$"),
        ("streamable-http", "'http', not 'streamable-http': 'http' serves it$"),
        ("sse", "'http', not 'sse': 'http' with sse_path=\"/sse\" serves it$"),
    ],
)
def test_serving_rejects_the_name_of_a_transport_that_it_does_not_have(name: Any, said: str) -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match=f"transport must be a Transport, 'stdio' or {said}"):
            await typedmcp.serve_async(Tools(), name)

    run(main)
    with pytest.raises(typedmcp.UsageError, match=f"transport must be 'stdio' or {said}"):
        typedmcp.serve(Tools(), name)


class HalfTransport:
    """A transport that lacks members."""

    async def read(self) -> bytes:
        return b""

    def write(self, data: bytes) -> None: ...


def test_an_error_names_the_members_that_a_transport_lacks() -> None:
    async def main() -> None:
        said = "HalfTransport, which lacks: is_congested, drain, close"
        with pytest.raises(typedmcp.UsageError, match=said):
            await typedmcp.serve_async(Tools(), HalfTransport())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(typedmcp.UsageError, match="to be a transport it lacks: is_congested, drain, close"):
            async with typedmcp.connect(HalfTransport()):
                pass

    run(main)


def test_a_class_is_rejected_as_a_handler() -> None:
    with pytest.raises(typedmcp.UsageError, match=r"Tools is a class; pass an instance: Tools\(\)"):
        typedmcp.ServerConfig(Tools)


# Transports of one's own


def test_a_transport_that_cannot_write_ends_the_connection_and_is_reported() -> None:
    class Breaks:
        is_congested = False

        def __init__(self) -> None:
            self.lines = [b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b""]

        async def read(self) -> bytes:
            return self.lines.pop(0)

        def write(self, data: bytes) -> None:
            raise BrokenPipeError("nobody is there")

        async def drain(self) -> None: ...

        async def close(self) -> None: ...

    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        await typedmcp.serve_async(Tools(), Breaks(), on_diagnostic=reports.append)
        assert [(report.kind, report.text) for report in reports] == [
            (typedmcp.DiagnosticKind.CONNECTION_ERROR, "the connection broke: nobody is there")
        ]

    run(main)


@each_revision
def test_a_server_can_serve_outside_the_main_thread(revision: str) -> None:
    """Other threads have no signal handlers. The transport is in memory: standard input belongs to the test."""
    failures: list[BaseException] = []

    async def main() -> None:
        async with served(Tools()) as client:
            await client.open(revision)
            assert text_from(await client.call("good")) == "good"

    def work() -> None:
        try:
            run(main)
        except BaseException as error:
            failures.append(error)

    import threading

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == []
