"""What handlers and clients do wrong: it costs them the one call, and nobody else anything."""

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
from tests.runtime.scripted import DIALECT, EVERYTHING, SUPPORTED, Json, run, served
from typedmcp.dialect import structs

Context: TypeAlias = typedmcp.Context
each_revision = pytest.mark.parametrize("revision", SUPPORTED)
either_era = pytest.mark.parametrize("revision", [DIALECT, "2025-11-25"])

VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE", default="clean")


def text(value: object) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=str(value))], result_type="complete")


def told(result: Json) -> str:
    found: str = result["content"][0]["text"]
    return found


class Tools:
    """Calls the function of a table that a tool's name stands for."""

    def __init__(self, **tools: Callable[[Any, Context], Any]) -> None:
        self.tools: dict[str, Callable[[Any, Context], Any]] = {"good": lambda _params, _ctx: text("good"), **tools}

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        made = self.tools[params.name](params, ctx)
        return await made if hasattr(made, "__await__") else made


class Plain(Tools):
    """The same in a plain method."""

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
    "a text that is no UTF-8": lambda: typedmcp.RemoteError(-32000, "bad \ud800"),
    "a code that is no integer": lambda: typedmcp.RemoteError("x", "y"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "one without a code": Forgetful,
    "one that cannot be printed": UnprintableError,
    "the end of the process": lambda: SystemExit(3),
    "the end of a generator": GeneratorExit,
    "a group": lambda: BaseExceptionGroup("several", [ValueError(), KeyError()]),
}


@either_era
@pytest.mark.parametrize("kind", [Tools, Plain])
@pytest.mark.parametrize("error", BROKEN)
def test_an_error_that_nobody_can_be_told_of_is_an_internal_one(error: str, kind: type[Tools], revision: str) -> None:
    def fails(_params: Any, _ctx: Context) -> Any:
        raise BROKEN[error]()

    async def main() -> None:
        async with served(kind(fails=fails)) as client:
            await client.open(revision)
            assert (await client.error("tools/call", {"name": "fails", "arguments": {}}))["code"] == -32603
            assert len(client.of_kind(typedmcp.Kind.FAILED)) == 1
            assert told(await client.call("good")) == "good"

    run(main)


# The context of a task, and the task itself


@either_era
@pytest.mark.parametrize("kind", [Tools, Plain])
def test_what_a_handler_leaves_in_context_variables_is_gone_for_the_next(kind: type[Tools], revision: str) -> None:
    def sets(_params: Any, _ctx: Context) -> Any:
        VARIABLE.set("left")
        return text("set")

    async def main() -> None:
        async with served(kind(sets=sets, gets=lambda _params, _ctx: text(VARIABLE.get()))) as client:
            await client.open(revision)
            ids = [client.start("tools/call", {"name": name, "arguments": {}}) for name in ("sets", "gets")]
            answers = [await client.answer_to(id) for id in ids]
            assert [told(answer["result"]) for answer in answers] == ["set", "clean"]

    run(main)


class Incomparable:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("these cannot be compared")


def test_values_in_context_variables_need_not_be_comparable() -> None:
    def sets(_params: Any, _ctx: Context) -> Any:
        VARIABLE.set(Incomparable())
        return text("set")

    async def main() -> None:
        VARIABLE.set(Incomparable())
        async with served(Tools(sets=sets)) as client:
            assert told(await client.call("sets")) == "set"
            assert told(await client.call("good")) == "good"

    run(main)


def test_a_handler_that_cancels_the_task_it_is_in_harms_nobody_else() -> None:
    def cancels(_params: Any, _ctx: Context) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return text("cancelled")

    async def main() -> None:
        async with served(Tools(cancels=cancels)) as client:
            assert told(await client.call("cancels")) == "cancelled"
            assert told(await client.call("good")) == "good"

    run(main)


# What is sent


@either_era
def test_json_that_is_encoded_already_goes_on_one_line(revision: str) -> None:
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


@pytest.mark.parametrize("given", [None, [1], "x"], ids=str)
def test_a_result_is_an_object(given: object) -> None:
    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            return given

    async def main() -> None:
        async with served(Handler()) as client:
            assert (await client.error("x/y"))["code"] == -32603

    run(main)


def test_a_result_of_a_method_that_is_not_the_protocols_says_its_kind_on_a_modern_wire() -> None:
    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            return {"a": 1}

    async def main() -> None:
        async with served(Handler()) as client:
            result = await client.result("x/y")
            assert (result["resultType"], result["a"]) == ("complete", 1)

    run(main)


@either_era
def test_nothing_is_sent_for_a_call_that_was_answered(revision: str) -> None:
    tasks: list[asyncio.Task[None]] = []
    failures: list[BaseException] = []

    async def later(ctx: Context) -> None:
        await asyncio.sleep(0)
        await ctx.progress(50)
        await ctx.log("error", "late")
        try:
            await ctx.elicit("late?", {"type": "object", "properties": {}})
        except typedmcp.InputUnavailable as error:
            failures.append(error)

    async def leaves(_params: Any, ctx: Context) -> Any:
        tasks.append(asyncio.create_task(later(ctx)))
        return text("done")

    async def main() -> None:
        async with served(Tools(leaves=leaves)) as client:
            await client.open(revision, **EVERYTHING)
            meta = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
            assert told(await client.call("leaves", meta=meta)) == "done"
            await asyncio.gather(*tasks)
            await client.settled()
            assert client.unread() == []
            assert "has been answered" in str(failures[0])

    run(main)


def test_content_that_is_no_content_does_not_reach_an_older_client() -> None:
    def wrong(_params: Any, _ctx: Context) -> Any:
        content: Any = [{"type": "audio", "data": "", "mimeType": "audio/wav"}]
        return structs.CallToolResult(content=content, result_type="complete")

    async def main() -> None:
        async with served(Tools(wrong=wrong)) as client:
            await client.open("2024-11-05")
            assert (await client.error("tools/call", {"name": "wrong", "arguments": {}}))["code"] == -32603
            assert "got dict" in client.of_kind(typedmcp.Kind.FAILED)[0].text

    run(main)


# Asking


FORM: Json = {"type": "object", "properties": {"name": {"type": "string"}}}


async def answer_form(client: Any, id: int, params: Json, key: str) -> Json:
    """Accept the one form that is asked for in a call, whatever the wire; the call's result."""
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
@pytest.mark.parametrize("way", ["arguments changed", "in a task group"])
def test_a_question_works_the_same_on_every_wire(way: str, revision: str) -> None:
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
            assert told(await answer_form(client, id, params, "who")) == "{'name': 'Ada'}"

    run(main)


def test_one_refusal_of_several_questions_is_passed_on_as_that_of_one() -> None:
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


@pytest.mark.parametrize("error", [{"code": 10**30, "message": "x"}, {"code": "x"}, {}], ids=str)
def test_an_error_of_the_client_that_is_none_is_made_one(error: Json) -> None:
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


def test_a_question_that_is_open_when_the_client_leaves_ends_at_once() -> None:
    ended: list[BaseException] = []

    async def asks(_params: Any, ctx: Context) -> Any:
        try:
            await ctx.list_roots()
        except typedmcp.ConnectionLost as error:
            ended.append(error)
            raise
        return text("")

    async def main() -> None:
        async with served(Tools(asks=asks), grace=60) as client:
            await client.open("2025-06-18", **EVERYTHING)
            client.start("tools/call", {"name": "asks", "arguments": {}})
            await client.receive()
        assert [str(error) for error in ended] == ["roots/list (id 1): the connection ended"]

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
def test_a_fallback_that_blocks_runs_in_a_thread_too(revision: str) -> None:
    async def main() -> None:
        async with served(InThreads()) as client:
            await client.open(revision)
            assert (await client.result("x/y"))["loop"] is False

    run(main)


@either_era
def test_a_method_in_a_thread_is_entered_again_in_a_thread(revision: str) -> None:
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
            assert told(await answer_form(client, id, params, "who")) == "{'name': 'Ada'}"

    run(main)


def test_a_handler_in_a_thread_sees_that_the_connection_ends() -> None:
    seen: list[bool] = []

    def waits(_params: Any, ctx: Context) -> Any:
        ctx.progress(1)
        deadline = time.monotonic() + 20
        while not ctx.cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        seen.append(ctx.cancelled)
        return text("")

    async def main() -> None:
        async with served(InThreads(waits=waits), grace=0.1) as client:
            client.start("tools/call", {"name": "waits", "arguments": {}}, meta={"progressToken": 1})
            await client.receive()
        async with asyncio.timeout(10):
            while not seen:
                await asyncio.sleep(0.01)
        assert seen == [True]

    run(main)


def test_so_many_handlers_run_in_threads_at_a_time() -> None:
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
        async with served(InThreads(counts=counts), threads=2) as client:
            ids = [client.start("tools/call", {"name": "counts", "arguments": {}}) for _ in range(8)]
            for id in ids:
                assert "result" in await client.answer_to(id)

    run(main)
    assert most == 2


# Floods


def test_notifications_that_wait_are_bounded_too() -> None:
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
        async with served(handler, in_flight=10) as client:
            for _ in range(50):
                client.send({"method": "x/y"})
            await client.settled()
            assert handler.entered <= 11
            assert len(client.of_kind(typedmcp.Kind.REFUSED)) == 50 - handler.entered
            handler.go.set()

    run(main)


@pytest.mark.parametrize(("count", "answered"), [(3, 3), (4, 1)])
def test_a_batch_may_have_so_many_messages(count: int, answered: int) -> None:
    async def main() -> None:
        async with served(Tools(), batch=3) as client:
            await client.open("2025-03-26")
            batch = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in range(count)]
            client.send_bytes(json.dumps(batch).encode() + b"\n")
            answer = await client.receive()
            if answered == 1:
                assert answer["error"] == {"code": -32600, "message": "a batch of 4 messages, which may have 3"}
            else:
                assert len(answer) == 3

    run(main)


def test_changes_that_were_held_back_are_told_once_the_client_reads_again() -> None:
    async def main() -> None:
        changes = typedmcp.Changes()
        handler = Tools(large=lambda _params, _ctx: text("x" * (6 << 20)))
        async with served(handler, changes=changes) as client:
            await client.open("2025-06-18")
            id = client.start("tools/call", {"name": "large", "arguments": {}})
            async with asyncio.timeout(10):
                while not client.session.congested:
                    await asyncio.sleep(0)
            changes.tools_changed()
            changes.tools_changed()
            assert len(told((await client.answer_to(id))["result"])) == 6 << 20
            assert (await client.receive())["method"] == "notifications/tools/list_changed"
            await client.settled()
            assert client.unread() == []

    run(main)


# What is not the protocol's, or not offered


def test_a_notification_of_another_protocol_reaches_the_fallback_on_a_modern_wire() -> None:
    heard: list[Any] = []

    class Handler:
        def fallback(self, method: str, params: Any, ctx: Context) -> Any:
            heard.append((method, params, ctx.id))
            return {}

    async def main() -> None:
        async with served(Handler()) as client:
            client.send({"method": "x/y", "params": {"a": 1}})
            await client.settled()
            assert heard == [("x/y", {"a": 1}, None)]

    run(main)


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_nobody_subscribes_to_resources_where_there_are_none(method: str) -> None:
    async def main() -> None:
        async with served(Tools()) as client:
            await client.open("2025-06-18")
            assert (await client.error(method, {"uri": "a:b"}))["code"] == -32601

    run(main)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"codec": "pydant"}, "no codec 'pydant'; there are msgspec and pydantic"),
        ({"revisions": []}, "no revisions to speak"),
        ({"revisions": ["1999-01-01"]}, "no revision '1999-01-01'"),
        ({"grace": -1}, "grace must not be negative"),
        ({"limit": 0}, "limit must be positive"),
        ({"in_flight": 0}, "in_flight must be positive"),
        ({"batch": 0}, "batch must be positive"),
        ({"threads": 0}, "threads must be positive"),
        ({"rounds": 0}, "rounds must be positive"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_named(options: Json, said: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=said):
        typedmcp.Service(Tools(), **options)


def test_a_class_is_no_handler() -> None:
    with pytest.raises(typedmcp.UsageError, match=r"Tools is a class: give an object, Tools\(\)"):
        typedmcp.Service(Tools)


# Transports of one's own


def test_a_transport_that_cannot_write_ends_the_connection_and_is_reported() -> None:
    class Breaks:
        congested = False

        def __init__(self) -> None:
            self.lines = [b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b""]

        async def read(self) -> bytes:
            return self.lines.pop(0)

        def write(self, data: bytes) -> None:
            raise BrokenPipeError("nobody is there")

        async def drain(self) -> None: ...

        async def close(self) -> None: ...

    async def main() -> None:
        reports: list[typedmcp.Report] = []
        await typedmcp.serve_async(Tools(), Breaks(), on_report=reports.append)
        assert [(report.kind, report.text) for report in reports] == [
            (typedmcp.Kind.BROKEN, "the connection broke: nobody is there")
        ]

    run(main)


@each_revision
def test_a_server_serves_in_another_thread_than_the_main_one(revision: str) -> None:
    """Where there is no signal handling; tested with the transport, since standard input is the test's own."""
    failures: list[BaseException] = []

    async def main() -> None:
        async with served(Tools()) as client:
            await client.open(revision)
            assert told(await client.call("good")) == "good"

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
