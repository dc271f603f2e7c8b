"""Reports and logs about functions that failed: the function, its place, the cause and what to change."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer

import typedmcp
from tests.cases import each
from tests.serving import serving_http
from typedmcp import Context, Diagnostic, Server, ServerConfig
from typedmcp.dialect import structs
from typedmcp_extensions.tasks import ClientTasks, ServerTasks

HERE = re.escape(__file__)


async def helper() -> int:
    return 1


def fail(a: int) -> int:
    raise LookupError(f"no {a}")


async def forgot() -> Any:
    return helper()


async def forgot_inside() -> Any:
    return {"found": [1, helper()]}


@dataclass
class Found:
    number: Any


async def forgot_in_a_record() -> Any:
    return Found(helper())


async def forgot_the_context(ctx: Context) -> Any:
    return ctx.elicit("Who?", bool)


async def forgot_a_task() -> Any:
    return [asyncio.get_running_loop().create_future()]


async def used_a_coroutine() -> Any:
    return helper().bit_length()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def indexed_a_coroutine() -> Any:
    return helper()[0]  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def wrong_text() -> int:
    return "three"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def wrong_member() -> dict[str, int]:
    return {"a": "x"}  # type: ignore[dict-item]  # pyright: ignore[reportReturnType]


def nothing() -> dict[str, int]:
    return None  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def without_json() -> Any:
    return {"users": [{"id": object()}]}


def wholly_without_json() -> Any:
    return object()


FAILURES: dict[str, tuple[Callable[..., Any], str]] = {
    "a coroutine": (forgot, r"returned the coroutine of helper\(\), which was not awaited; did you forget `await`\?"),
    "a coroutine in a dict": (
        forgot_inside,
        r'returned the coroutine of helper\(\) at \["found"\]\[1\], which was not awaited; did you forget `await`\?',
    ),
    "a coroutine in a record": (forgot_in_a_record, r"the coroutine of helper\(\) at \.number, which was not awaited"),
    "a question to the client": (forgot_the_context, r"returned the coroutine of Context\.elicit\(\), which was not"),
    "a future": (forgot_a_task, r"returned (Future|_asyncio\.Future) at \[0\], which was not awaited"),
    "a text for a number": (
        wrong_text,
        r'returned str "three": expected integer, got string; change the value or the return annotation, int$',
    ),
    "a wrong member": (
        wrong_member,
        r"returned dict: a: expected integer, got string; change the value or the return anno",
    ),
    "nothing": (nothing, "returned null: expected object, got null; change the value"),
    "an object in it": (
        without_json,
        r'returned dict with object at \["users"\]\[0\]\["id"\]: TypeError: object has no JSON form; return text, ',
    ),
    "an object": (wholly_without_json, "returned object: TypeError: object has no JSON form; return text, content, JS"),
}
"""Functions whose result cannot be sent, with what the report says after the name and the place."""


async def _reports(function: Callable[..., Any], thread: bool = True, **options: Any) -> tuple[list[Diagnostic], str]:
    """Return the reports about a call of a tool, and the text of the result."""
    server, reports = Server(**options), list[Diagnostic]()
    server.add_tool(function, name="it", thread=thread)
    async with typedmcp.connect(ServerConfig(server, on_diagnostic=reports.append)) as client:
        return reports, typedmcp.text_of(await client.call_tool("it"))


@each("name", FAILURES)
def test_the_report_of_an_unusable_result_names_the_function_its_line_the_value_and_the_remedy(name: str) -> None:
    function, says = FAILURES[name]
    (report,), text = asyncio.run(_reports(function))
    line = function.__code__.co_firstlineno
    place = rf"^tool 'it' failed: {function.__name__}\(\) at {HERE}:{line} "
    assert re.search(place + ".*" + says, report.text)
    assert text in ("it failed", "it failed: its result does not fit its schema")


@pytest.mark.filterwarnings("ignore:coroutine 'helper' was never awaited")
@each("function", [used_a_coroutine, indexed_a_coroutine])
def test_a_coroutine_that_is_used_as_its_result_brings_the_question_for_await(function: Callable[..., Any]) -> None:
    (report,), _ = asyncio.run(_reports(function))
    assert report.text.endswith("; did you forget `await`?")
    del report
    gc.collect()  # Python warns about the coroutine now, and not in another test


def test_debug_sends_the_same_text_to_the_client() -> None:
    (report,), text = asyncio.run(_reports(wrong_text, debug=True))
    assert report.text.endswith(text.partition("its schema: ")[2])
    assert "wrong_text() at" in text


# Tracebacks


def plain_tool() -> int:
    return fail(1)


async def async_tool() -> int:
    return fail(1)


def generator_tool() -> Iterator[int]:
    yield fail(1)


def chained_tool() -> int:
    try:
        return fail(1)
    except LookupError as error:
        raise ValueError("worse") from error


async def tool_in_a_thread(ctx: Context) -> int:
    return await ctx.in_thread(fail, 1)


def _logged(caplog: pytest.LogCaptureFixture, use: Callable[[typedmcp.Client], Any], server: Server) -> str:
    async def main() -> None:
        async with typedmcp.connect(server) as client:
            with suppress(typedmcp.RemoteError):
                await use(client)

    asyncio.run(main())
    formatter = logging.Formatter()
    return "\n".join(formatter.format(record) for record in caplog.records)


def _call_it(client: typedmcp.Client) -> Any:
    return client.call_tool("it")


def _files(log: str) -> list[str]:
    return re.findall(r'File "(.+?)", line', log)


@each("function", [plain_tool, async_tool, generator_tool, chained_tool])
@each("in_thread", [True, False])
def test_the_traceback_of_a_failing_tool_begins_in_its_file(
    function: Callable[..., Any], in_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    server.add_tool(function, name="it", thread=in_thread)
    log = _logged(caplog, _call_it, server)
    assert _files(log) == [__file__] * len(_files(log)) != []
    assert f"in {function.__name__}" in log
    assert "LookupError: no 1" in log


def test_frames_of_the_library_that_the_function_called_come_after_it(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.add_tool(tool_in_a_thread, name="it")
    files = _files(_logged(caplog, _call_it, server))
    assert files[0] == files[-1] == __file__
    assert any("typedmcp" in file for file in files[1:-1])


def test_tracebacks_of_resources_and_prompts_begin_in_their_file(caplog: pytest.LogCaptureFixture) -> None:
    for use in ("resource", "prompt"):
        server = Server()
        server.add_resource(plain_tool, "data://it")
        server.add_prompt(plain_tool, name="it")
        uses: dict[str, Callable[[typedmcp.Client], Any]] = {
            "resource": lambda client: client.read_resource("data://it"),
            "prompt": lambda client: client.get_prompt("it"),
        }
        caplog.clear()
        assert set(_files(_logged(caplog, uses[use], server))) == {__file__}


def test_the_level_debug_of_the_logger_shows_the_whole_traceback(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.add_tool(plain_tool, name="it")
    with caplog.at_level(logging.DEBUG, logger="typedmcp"):
        log = _logged(caplog, _call_it, server)
    assert _files(log)[0].endswith("tools.py")


def test_an_unusable_result_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.add_tool(wrong_text, name="it")
    log = _logged(caplog, _call_it, server)
    assert len(log.splitlines()) == 1
    assert "wrong_text() at" in log


class Broken(BaseModel):
    x: int = 1

    @field_serializer("x")
    def serialize(self, x: int) -> int:
        raise ValueError("cannot serialize")


def returns_broken() -> Broken:
    return Broken()


def test_the_traceback_of_a_serializer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.add_tool(returns_broken, name="it")
    log = _logged(caplog, _call_it, server)
    assert "in serialize" in log
    assert "cannot serialize" in log


# Text that is no Unicode

NAME = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
"""The name of a file, as `os.listdir` returns it."""
ESCAPED = r"caf\udce9.txt"


def text_of_name() -> str:
    return NAME


def text_by(x: str) -> str:
    return NAME


async def awaited_text() -> str:
    return NAME


def without_annotation():  # type: ignore[no-untyped-def]
    return NAME


def names() -> list[str]:
    return [NAME]


def key() -> dict[str, int]:
    return {NAME: 1}


def block() -> structs.TextContent:
    return structs.TextContent(text=NAME)


def whole() -> structs.CallToolResult:
    return structs.CallToolResult(content=[], structured_content={"a": [NAME]})


async def question(ctx: Context) -> Any:
    return await ctx.elicit(f"Open {NAME}?", bool)


@each("function", [text_of_name, awaited_text, without_annotation, names, key, block, whole])
@each("path", ["itself", "mounted", "in middleware", "over HTTP", "legacy", "a task"])
def test_a_result_that_is_no_unicode_is_a_failed_call_and_the_report_names_the_function(
    function: Callable[..., Any], path: str
) -> None:
    async def main() -> None:
        inner = Server("inner", extensions=[ServerTasks()])
        inner.add_tool(function, name="it", task="optional" if path == "a task" else None)
        server, name = inner, "it"
        if path == "mounted":
            server, name = Server("outer"), "m_it"
            server.mount(inner, "m")
        if path == "in middleware":
            server.middleware(pass_on)
        reports = list[Diagnostic]()
        config = ServerConfig(server, on_diagnostic=reports.append)
        options: Any = {"extensions": [ClientTasks()]} if path == "a task" else {}
        if path == "legacy":
            options["version"] = "2025-06-18"
        async with AsyncExitStack() as stack:
            target: Any = config
            if path == "over HTTP":
                target = await stack.enter_async_context(serving_http(typedmcp.asgi(config))) + "/mcp"
            client = await stack.enter_async_context(typedmcp.connect(target, **options))
            result = await client.call_tool(name, {})
        assert result.is_error
        assert typedmcp.text_of(result) == "it failed"
        (report,) = reports
        place = f"tool 'it' failed: {function.__name__}() at {__file__}:{function.__code__.co_firstlineno} returned"
        assert report.text.startswith(place)
        assert 'return Unicode, such as text.encode(errors="backslashreplace").decode()' in report.text
        assert ESCAPED in report.text or function is key

    asyncio.run(main())


async def pass_on(ctx: Context, params: Any, call_next: Any) -> Any:
    return await call_next()


def test_resources_and_prompts_that_are_no_unicode_are_reported_with_their_function() -> None:
    async def main() -> None:
        inner, server = Server("inner"), Server("outer")
        inner.add_resource(text_of_name, "data://it")
        inner.add_resource(text_by, "data://x/{x}")
        inner.add_prompt(text_of_name, name="it")
        server.mount(inner, "m")
        for target, prefix in ((inner, ""), (server, "m")):
            reports = list[Diagnostic]()
            async with typedmcp.connect(ServerConfig(target, on_diagnostic=reports.append)) as client:
                slash = f"{prefix}/" * bool(prefix)
                for uri in (f"data://{slash}it", f"data://{slash}x/1"):
                    with pytest.raises(typedmcp.RemoteError, match="internal error in resources/read"):
                        await client.read_resource(uri)
                with pytest.raises(typedmcp.RemoteError, match="internal error in prompts/get"):
                    await client.get_prompt("m_it" if prefix else "it")
            assert [__file__ in report.text for report in reports] == [True] * 3
            assert all(ESCAPED in report.text for report in reports)

    asyncio.run(main())


def test_texts_of_errors_and_of_questions_that_are_no_unicode() -> None:
    async def main() -> None:
        server, reports = Server(), list[Diagnostic]()

        @server.tool
        def error() -> str:
            raise typedmcp.ToolError(f"cannot open {NAME}")

        @server.tool
        def protocol_error() -> str:
            raise typedmcp.RemoteError(-32000, f"cannot open {NAME}")

        server.add_tool(question)
        async with typedmcp.connect(
            ServerConfig(server, on_diagnostic=reports.append), elicit=lambda _: {"value": True}
        ) as client:
            assert typedmcp.text_of(await client.call_tool("error")) == f"cannot open {ESCAPED}"
            with pytest.raises(typedmcp.RemoteError, match=re.escape(f"cannot open {ESCAPED}")):
                await client.call_tool("protocol_error")
            assert (await client.call_tool("question")).is_error
        (report,) = reports
        assert report.text.startswith("tool 'question' failed: UnicodeEncodeError")

    asyncio.run(main())


# Functions that do not await


def as_text(ctx: Context) -> str:
    return str(ctx.elicit("Delete?", bool))


def formatted(ctx: Context) -> str:
    return f"asked: {ctx.sample('Hello')}"


async def async_formatted(ctx: Context) -> str:
    return f"asked: {ctx.ask({})}"


def as_truth(ctx: Context) -> str:
    asked: Any = ctx.elicit("Delete?", bool)
    return "deleted" if asked else "kept"


def by_attribute(ctx: Context) -> str:
    asked: Any = ctx.elicit("Delete?", bool)
    return str(asked.action)


def repeated(ctx: Context) -> list[str]:
    roots: Any = ctx.list_roots()
    return [root.uri for root in roots]


@pytest.mark.filterwarnings("ignore:coroutine 'Context:RuntimeWarning")
@each("function", [as_text, formatted, async_formatted, as_truth, by_attribute, repeated])
def test_a_question_that_is_not_awaited_is_not_taken_for_its_answer(function: Callable[..., Any]) -> None:
    for thread in (True, False):
        (report,), text = asyncio.run(_reports(function, thread))
        in_thread = thread and function is not async_formatted
        says = "cannot be awaited in a thread" if in_thread else "was not awaited"
        assert text == "it failed"
        assert re.search(rf"Context\.\w+\(\) {says}; make the function async, and write `await`", report.text)
        del report
        gc.collect()


def test_a_question_in_a_thread_fails_at_once_also_if_nothing_uses_its_answer() -> None:
    def forgotten(ctx: Context) -> str:
        ctx.elicit("Delete?", bool)  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
        return "deleted"

    async def in_a_thread(ctx: Context) -> str:
        return await asyncio.to_thread(forgotten, ctx)

    for function in (forgotten, in_a_thread):
        (report,), text = asyncio.run(_reports(function))
        assert text == "it failed"
        assert "Context.elicit() cannot be awaited in a thread; make the function async" in report.text


def test_a_function_that_is_not_async_may_return_a_question_of_the_event_loop_and_pass_it_to_asyncio() -> None:
    def returned(ctx: Context) -> Any:
        return ctx.elicit("Delete?", bool)

    async def in_a_task(ctx: Context) -> str:
        task = asyncio.create_task(ctx.elicit("Delete?", bool))
        (elicited,) = await asyncio.gather(task)
        assert repr(task)
        return elicited.action

    async def main() -> None:
        server = Server()
        server.add_tool(returned, thread=False)
        server.add_tool(in_a_task)
        async with typedmcp.connect(server, elicit=lambda _: {"value": True}, version="2025-11-25") as client:
            assert typedmcp.text_of(await client.call_tool("in_a_task")) == "accept"
            assert typedmcp.text_of(await client.call_tool("returned")) == '{"action":"accept","data":true}'

    asyncio.run(main())
