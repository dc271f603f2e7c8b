"""Servers made of functions, as clients of several revisions see them."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, NewType, TypedDict

import msgspec
import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import served
from typedmcp import Context, Diagnostic, Server, UsageError
from typedmcp.dialect import structs

REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"]


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content]


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def call_one_tool(server: Server, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    async with typedmcp.connect(server, **options) as client:
        return await client.call_tool(name, arguments)


@dataclass
class Forecast:
    city: str
    degrees: float


City = NewType("City", str)


class Alert(TypedDict):
    level: int


# Results of tools


def test_return_values_become_content_and_structured_content() -> None:
    server = Server()
    given: dict[str, tuple[Any, Any, list[Any], Any]] = {
        "text": (str, "grün", ["grün"], None),
        "nothing": (None, None, [], None),
        "integer": (int, 3, ["3"], {"result": 3}),
        "record": (
            Forecast,
            Forecast("Oslo", 3.5),
            ['{"city":"Oslo","degrees":3.5}'],
            {"city": "Oslo", "degrees": 3.5},
        ),
        "typed dict": (Alert, {"level": 3}, ['{"level":3}'], {"level": 3}),
        "list": (list[int], [1, 2], ["[1,2]"], {"result": [1, 2]}),
        "texts": (list[str], ["a", "b"], ['["a","b"]'], {"result": ["a", "b"]}),
        "records": (list[Alert], [{"level": 1}], ['[{"level":1}]'], {"result": [{"level": 1}]}),
        "mapping": (dict[str, int], {"a": 1}, ['{"a":1}'], {"a": 1}),
        "optional": (Forecast | None, None, [], {"result": None}),
        "anything": (Any, {"a": 1}, ['{"a":1}'], {"a": 1}),
        "a block": (structs.TextContent, structs.TextContent(text="x"), ["x"], None),
        "blocks": (list[structs.TextContent], [structs.TextContent(text="x"), "y", 1], ["x", "y", "1"], None),
    }
    for name, (hint, value, _, _) in given.items():

        def tool(value: Any = value) -> Any:
            return value

        tool.__annotations__ = {"return": hint}
        server.add_tool(tool, name=name.replace(" ", "_"))

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            for name, (_, _, content, structured) in given.items():
                result = await client.call_tool(name.replace(" ", "_"))
                found = result.structured_content
                assert (texts(result), found, result.is_error) == (content, structured, False), name

    run(main())


def test_a_tool_has_an_output_schema_if_the_annotation_determines_it() -> None:
    server = Server()

    @server.tool
    def forecast() -> Forecast:
        raise NotImplementedError

    @server.tool
    def count() -> int:
        raise NotImplementedError

    @server.tool
    def text() -> str:
        raise NotImplementedError

    @server.tool(structured=True)
    def said() -> str:
        return "so"

    @server.tool(structured=False)
    def unsaid() -> Forecast:
        raise NotImplementedError

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            tools = {tool.name: tool.output_schema async for tool in client.tools()}
            assert tools["forecast"]["properties"]["degrees"] == {"type": "number"}  # type: ignore[index]
            assert tools["count"]["required"] == ["result"]  # type: ignore[index]
            assert tools["text"] is tools["unsaid"] is None
            assert tools["said"]["properties"] == {"result": {"type": "string"}}  # type: ignore[index]
            assert (await client.call_tool("said")).structured_content == {"result": "so"}

    run(main())


def test_a_result_that_does_not_fit_its_annotation_is_reported() -> None:
    server, reports = Server(), list[Diagnostic]()

    @server.tool
    def alert() -> Alert:
        return {"level": "high"}  # type: ignore[typeddict-item]

    result = run(call_one_tool(typedmcp.ServerConfig(server, on_diagnostic=reports.append), "alert"))  # type: ignore[arg-type]
    assert result.is_error
    assert texts(result) == ["alert failed: its result does not fit its schema"]
    assert "level: expected integer, got string" in reports[0].text


def test_a_generator_returns_a_list() -> None:
    server = Server()

    @server.tool
    def plain() -> Iterator[int]:
        yield from (1, 2)

    @server.tool
    async def with_waiting() -> AsyncIterator[str]:
        for text in ("a", "b"):
            await asyncio.sleep(0)
            yield text

    assert texts(run(call_one_tool(server, "plain"))) == ["[1,2]"]
    assert texts(run(call_one_tool(server, "with_waiting"))) == ['["a","b"]']


def test_bytes_and_images_become_content_for_their_media_type() -> None:
    server = Server()
    png = b"\x89PNG\r\n\x1a\n0000"

    @server.tool
    def picture() -> typedmcp.Image:
        return typedmcp.Image(data=png)

    @server.tool
    def raw() -> bytes:
        return png

    @server.tool
    def mixed() -> Any:
        return ["look:", typedmcp.Image(data=png, format="png"), {"a": 1}]

    for name in ("picture", "raw"):
        (block,) = run(call_one_tool(server, name)).content
        assert (type(block), block.mime_type) == (structs.ImageContent, "image/png")
    first, second, third = run(call_one_tool(server, "mixed")).content
    assert (first.text, second.mime_type, third.text) == ("look:", "image/png", '{"a":1}')


@each("kind", [bytes, bytearray, memoryview])
def test_bytes_bytearray_and_memoryview_are_bytes(kind: Any) -> None:
    server = Server()

    def picture() -> Any:
        return kind(b"\x89PNG\r\n\x1a\n0000")

    picture.__annotations__ = {"return": kind}
    server.add_tool(picture)
    server.add_resource(picture, "picture://it")

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            (block,) = (await client.call_tool("picture")).content
            assert isinstance(block, structs.ImageContent)
            (found,) = (await client.read_resource("picture://it")).contents
            assert (type(found), getattr(found, "blob", "")) == (structs.BlobResourceContents, block.data)

    run(main())


@each(
    "hint, embeds",
    [
        (bytes, True), (list[bytes], True), (typedmcp.File | None, True), (list[structs.EmbeddedResource], True),
        (str, False), (typedmcp.Image, False), (dict[str, bytes], False), (Any, False),
    ],
    ids=str,
)  # fmt: skip
@each("is_mounted", [False, True])
def test_a_server_whose_tools_embed_resources_declares_them(hint: Any, embeds: bool, is_mounted: bool) -> None:
    server, outer = Server(), Server()
    outer.mount(server)

    def tool() -> Any: ...

    tool.__annotations__ = {"return": hint}
    server.add_tool(tool)
    later = Server()
    later.mount(server)

    async def main() -> None:
        for part in (outer, later) if is_mounted else (server,):
            async with served(part) as client:
                capabilities = (await client.result("server/discover"))["capabilities"]
                assert ("resources" in capabilities) is embeds
                assert (await client.result("resources/list"))["resources"] == []

    run(main())


def test_a_list_of_any_values_may_contain_images() -> None:
    server = Server()

    @server.tool
    def pictures() -> list[Any]:
        return ["look:", typedmcp.Image(data=b"\x89PNG\r\n\x1a\n0000")]

    result = run(call_one_tool(server, "pictures"))
    assert [block.type for block in result.content] == ["text", "image"]
    assert [block["type"] for block in result.structured_content["result"]] == ["text", "image"]


def test_a_newtype_of_str_returns_text() -> None:
    server = Server()

    @server.tool
    def city() -> City:
        return City("Oslo")

    result = run(call_one_tool(server, "city"))
    assert (texts(result), result.structured_content) == (["Oslo"], None)


def test_long_results_and_unicode_arrive_unchanged() -> None:
    server = Server()
    text = "ä\u2028\U0001f600\x00\r\n" * 500_000

    @server.tool
    def long() -> str:
        return text

    assert texts(run(call_one_tool(server, "long"))) == [text]


ENDLESS: dict[str, Any] = {}
ENDLESS["x"] = [ENDLESS]
WITHOUT_JSON: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": {"a": float("inf")},
    "object": object(),
    "set": {1, object()},
    "deep": {"a": json.loads("[" * 190 + "]" * 190)},
    "very deep": {"a": json.loads("[" * 400 + "]" * 400)},
    "endless": ENDLESS,
}


@each("value", WITHOUT_JSON.values(), ids=WITHOUT_JSON)
def test_a_result_without_a_json_form_is_a_failed_call(value: Any) -> None:
    server = Server()

    @server.tool
    def odd() -> Any:
        return value

    result = run(call_one_tool(typedmcp.ServerConfig(server, on_diagnostic=lambda _: None), "odd"))  # type: ignore[arg-type]
    assert result.is_error
    assert texts(result) == ["odd failed"]


def test_functions_that_return_awaitables_or_generators_are_resolved() -> None:
    def wrapped(function: Any) -> Any:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    async def waits(a: int) -> int:
        await asyncio.sleep(0)
        return a

    async def generates(a: int) -> AsyncIterator[int]:
        yield a
        yield a + 1

    class Called:
        async def __call__(self, a: int) -> int:
            return await waits(a)

    server = Server()
    for thread in (True, False):
        server.add_tool(wrapped(waits), name=f"waits_{thread}", thread=thread)
        server.add_tool(wrapped(generates), name=f"generates_{thread}", thread=thread)
        server.add_tool(functools.partial(Called(), 1), name=f"partial_{thread}", thread=thread)
        server.add_resource(functools.partial(wrapped(waits), 1), f"waits://{thread}", thread=thread, name="waits")

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            for thread in (True, False):
                assert texts(await client.call_tool(f"waits_{thread}", {"a": 1})) == ["1"]
                assert texts(await client.call_tool(f"generates_{thread}", {"a": 1})) == ["[1,2]"]
                assert texts(await client.call_tool(f"partial_{thread}")) == ["1"]
                (found,) = (await client.read_resource(f"waits://{thread}")).contents
                assert isinstance(found, structs.TextResourceContents)
                assert found.text == "1"

    run(main())


# Errors


class Broken(Exception):  # noqa: N818
    pass


def failing(**options: Any) -> Server:
    server = Server(**options)

    @server.tool
    def known() -> str:
        raise typedmcp.ToolError("no such city: Atlantis")

    @server.tool
    async def secret() -> str:
        raise Broken("the password is 1234")

    @server.tool(errors=(Broken,))
    async def shown() -> str:
        raise Broken("out of stock")

    @server.tool
    def protocol() -> str:
        raise typedmcp.RemoteError(-32000, "no", {"a": 1})

    @server.tool
    def in_pieces() -> str:
        raise typedmcp.ToolError(content=["first", {"code": 7}])

    return server


@each(
    "tool, options, content",
    [
        ("known", {}, ["no such city: Atlantis"]),
        ("secret", {}, ["secret failed"]),
        ("secret", {"debug": True}, ["secret failed: Broken: the password is 1234"]),
        ("secret", {"errors": (Broken,)}, ["the password is 1234"]),
        ("shown", {}, ["out of stock"]),
        ("in_pieces", {}, ['["first",{"code":7}]']),
    ],
)
def test_a_client_sees_only_visible_exceptions(tool: str, options: dict[str, Any], content: list[str]) -> None:
    service: Any = typedmcp.ServerConfig(failing(**options), on_diagnostic=lambda _: None)
    result = run(call_one_tool(service, tool))
    assert result.is_error
    assert texts(result) == content


@each(
    "options, error, text",
    [
        ({}, Broken("the password is 1234"), "internal error in {method}"),
        ({"debug": True}, Broken("out of stock"), "{what} failed: Broken: out of stock"),
        ({"errors": (Broken,)}, Broken("out of stock"), "out of stock"),
        ({}, typedmcp.ToolError("out of stock"), "out of stock"),
        ({}, typedmcp.InvalidParamsError("no such city"), "no such city"),
    ],
)
def test_a_client_sees_only_visible_exceptions_of_resources_and_prompts(
    options: dict[str, Any], error: Exception, text: str
) -> None:
    server = Server(**options)
    reports: list[Diagnostic] = []

    @server.resource("stock://all")
    @server.resource("stock://{of}")
    def stock(of: str = "all") -> str:
        raise error

    @server.prompt
    async def ask() -> str:
        raise error

    async def main() -> None:
        async with typedmcp.connect(typedmcp.ServerConfig(server, on_diagnostic=reports.append)) as client:
            for uri in ("stock://all", "stock://shoes"):
                with pytest.raises(typedmcp.RemoteError) as caught:
                    await client.read_resource(uri)
                assert caught.value.code == (-32602 if isinstance(error, typedmcp.InvalidParamsError) else -32603)
                assert caught.value.message == text.format(method="resources/read", what=f"resource {uri!r}")
            with pytest.raises(typedmcp.RemoteError) as caught:
                await client.get_prompt("ask")
            assert caught.value.message == text.format(method="prompts/get", what="prompt 'ask'")

    run(main())
    hidden = isinstance(error, Broken) and "errors" not in options
    assert [type(report.error) for report in reports] == ([Broken] * 3 if hidden else [])


def test_a_hidden_exception_is_reported_with_its_traceback() -> None:
    reports: list[Diagnostic] = []
    service: Any = typedmcp.ServerConfig(failing(), on_diagnostic=reports.append)
    run(call_one_tool(service, "secret"))
    assert [(report.kind, type(report.error)) for report in reports] == [
        (typedmcp.DiagnosticKind.INTERNAL_ERROR, Broken)
    ]


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no words")


@each(
    "error, text",
    [
        (typedmcp.ToolError(content=float("nan")), "ToolError; its content cannot be encoded: ValueError: JSON has"),
        (Unspeakable(), "tell failed"),
    ],
)
def test_an_exception_that_cannot_be_shown_is_a_failed_call(error: Exception, text: str) -> None:
    server = Server()
    reports: list[Diagnostic] = []

    @server.tool
    async def tell() -> str:
        raise error

    result = run(call_one_tool(typedmcp.ServerConfig(server, on_diagnostic=reports.append), "tell"))  # type: ignore[arg-type]
    assert result.is_error
    assert texts(result)[0].startswith(text)


def test_errors_of_the_protocol_are_not_turned_into_results() -> None:
    with pytest.raises(typedmcp.RemoteError, match="no") as caught:
        run(call_one_tool(failing(), "protocol"))
    assert (caught.value.code, caught.value.data) == (-32000, {"a": 1})
    with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool: nobody"):
        run(call_one_tool(failing(), "nobody"))


@each("revision", REVISIONS)
def test_an_invalid_argument_is_a_failed_call_that_names_it(revision: str) -> None:
    server = Server()

    @server.tool
    def plan(city: str, days: int = 1, place: Forecast | None = None) -> str:
        return f"{city} {days} {place}"

    cases: dict[str, dict[str, Any]] = {
        "days: expected integer, got string": {"city": "Oslo", "days": "three"},
        "city: required, but missing": {},
        "unknown argument 'town'; known: city, days, place": {"city": "Oslo", "town": 1},
        "place.degrees: expected number, got string": {"city": "Oslo", "place": {"city": "Oslo", "degrees": "x"}},
    }
    for expected, arguments in cases.items():
        result = run(call_one_tool(server, "plan", arguments, revisions=[revision]))
        assert (result.is_error, texts(result)) == (True, [expected])


# Functions and threads


@dataclass
class Step:
    count: int
    size: float = 1.5


def test_an_integer_may_be_written_with_a_fraction_of_zero() -> None:
    server, got = Server(), list[Any]()

    @server.tool
    async def fast(n: int, m: int | None = None, x: float = 0.5) -> None:
        got.append((n, m, x))

    @server.tool
    def nested(steps: list[Step], names: dict[str, int], **rest: int) -> None:
        got.append((steps, names, rest))

    calls: dict[str, dict[str, Any]] = {
        "fast": {"n": 3.0, "m": -2.0, "x": 2.0},
        "nested": {"steps": [{"count": 1.0, "size": 2.0}], "names": {"a": 1e3}, "more": 5.0},
    }

    async def main() -> None:
        async with served(server) as client:
            for name, arguments in calls.items():
                result = await client.call(name, **arguments)
                assert result.get("isError", False) is False, result
        assert repr(got) == "[(3, -2, 2.0), ([Step(count=1, size=2.0)], {'a': 1000}, {'more': 5})]"

    run(main())


@each("value", [1.5, 1e300, True, "1.5"])
def test_a_number_that_is_no_integer_is_still_refused(value: Any) -> None:
    server = Server()

    @server.tool
    def add(n: int, m: int = 1) -> int:
        return n + m

    async def main() -> None:
        async with served(server) as client:
            result = await client.call("add", n=value, m=1.0)
            assert result["isError"] is True
            assert result["content"][0]["text"].startswith("n: expected integer, got ")

    run(main())


def test_an_unhashable_item_for_a_set_is_a_failed_call() -> None:
    server = Server()

    @dataclass(frozen=True)
    class Group:
        names: list[str]

    @server.tool
    async def count(groups: set[Group]) -> str:
        return str(len(groups))

    result = run(call_one_tool(server, "count", {"groups": [{"names": ["a"]}]}))
    assert (result.is_error, texts(result)) == (True, ["groups: unhashable type: 'list'"])


def test_plain_functions_run_in_threads_unless_thread_is_false() -> None:
    server = Server()
    loop_thread: list[int] = []

    @server.tool
    async def asynchronous() -> int:
        loop_thread.append(threading.get_ident())
        return threading.get_ident()

    @server.tool
    def plain() -> int:
        return threading.get_ident()

    @server.tool(thread=False)
    def at_once() -> int:
        return threading.get_ident()

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            ids = {}
            for name in ("asynchronous", "plain", "at_once"):
                ids[name] = int(texts(await client.call_tool(name))[0])
            assert ids["asynchronous"] == ids["at_once"] == loop_thread[0] != ids["plain"]

    run(main())


def test_a_tool_that_takes_too_long_ends() -> None:
    server = Server()

    @server.tool(timeout=0.02)
    async def slow() -> str:
        await asyncio.sleep(10)
        return "late"

    result = run(call_one_tool(typedmcp.ServerConfig(server, on_diagnostic=lambda _: None), "slow"))  # type: ignore[arg-type]
    assert (result.is_error, texts(result)) == (True, ["slow took longer than 0.02 s"])


def test_a_function_stays_a_function() -> None:
    server = Server()

    @server.tool
    def double(a: int) -> int:
        return 2 * a

    @server.tool("other", title="Another")
    def triple(a: int) -> int:
        return 3 * a

    assert (double(2), triple(2)) == (4, 6)


# The context


def test_the_context_sends_notifications_and_requests() -> None:
    server = Server("weather", version="2")

    @server.resource("cities://all")
    def cities() -> list[str]:
        return ["Oslo"]

    @server.tool
    async def everything(ctx: Context, steps: int) -> list[str]:
        await ctx.info("begin")
        await ctx.progress(1, steps, "one")
        (content,) = await ctx.read_resource("cities://all")
        roots = await ctx.list_roots()
        answer = await ctx.sample("Say hello", system_prompt="politely")
        form = await ctx.elicit("Where?", Forecast)
        assert isinstance(answer.content, structs.TextContent)
        assert isinstance(content, structs.TextResourceContents)
        return [content.text, roots[0].uri, answer.content.text, str(form.data), str(ctx.principal), str(ctx.headers)]

    def sample(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
        assert params.system_prompt == "politely"
        return structs.CreateMessageResult(content=structs.TextContent(text="hello"), model="m", role="assistant")

    async def main(revision: str) -> None:
        heard: list[Any] = []
        async with typedmcp.connect(
            server, revisions=[revision], sample=sample, elicit=lambda _: {"city": "Rome", "degrees": 30},
            roots=["file:///a"], on_log=lambda params: heard.append(params.data),
        ) as client:  # fmt: skip
            steps: list[Any] = []
            result = await client.call_tool("everything", {"steps": 2}, on_progress=steps.append)
            expected = ['["Oslo"]', "file:///a", "hello", "Forecast(city='Rome', degrees=30.0)", "None", "{}"]
            assert result.structured_content == {"result": expected}
            assert steps[0].message == "one"
            assert "begin" in heard

    run(main("2026-07-28"))
    run(main("2025-11-25"))


# Resources


def library() -> Server:
    server = Server()

    @server.resource("config://app", title="Settings", mime_type="application/json")
    def config() -> dict[str, int]:
        return {"a": 1}

    @server.resource("file:///{path*}")
    def file(path: str) -> bytes:
        return path.encode()

    @server.resource("weather://{city}/{days}{?units}")
    async def weather(city: str, days: int, units: Literal["c", "f"] = "c", ctx: Context | None = None) -> str:
        assert ctx is not None
        return f"{city} {days + 1} {units}"

    return server


def test_a_resource_may_return_a_whole_result_or_request_input() -> None:
    server = typedmcp.Server("s")

    @server.resource("full://x")
    def full() -> structs.ReadResourceResult:
        contents = structs.TextResourceContents(uri="full://x", text="x")
        return structs.ReadResourceResult(contents=[contents], ttl_ms=60_000, cache_scope="public")

    @server.resource("asks://x")
    def asks() -> structs.InputRequiredResult:
        return structs.InputRequiredResult(input_requests={"roots": structs.ListRootsRequest()})

    async def main() -> None:
        async with typedmcp.connect(server, roots=["file:///a"]) as client:
            result = await client.read_resource("full://x")
            assert (result.ttl_ms, result.cache_scope) == (60_000, "public")
            with pytest.raises(typedmcp.RemoteError, match="no result after 10 rounds"):
                await client.read_resource("asks://x")

    run(main())


def test_resources_are_read_by_their_uris() -> None:
    async def main() -> None:
        async with typedmcp.connect(library()) as client:
            assert [resource.uri async for resource in client.resources()] == ["config://app"]
            templates = [template.uri_template async for template in client.resource_templates()]
            assert templates == ["file:///{path*}", "weather://{city}/{days}{?units}"]
            (content,) = (await client.read_resource("config://app")).contents
            assert (content.text, content.mime_type) == ('{"a":1}', "application/json")  # type: ignore[union-attr]
            (content,) = (await client.read_resource("file:///a/b")).contents
            assert content.blob == "YS9i"  # type: ignore[union-attr]
            (content,) = (await client.read_resource("weather://S%C3%A3o/3?units=f")).contents
            assert (content.text, content.uri) == ("São 4 f", "weather://S%C3%A3o/3?units=f")  # type: ignore[union-attr]

    run(main())


@each(
    "uri, error, text",
    [
        ("config://other", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///../etc/passwd", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///a/%2e%2e/b", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:////etc/passwd", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///a%00", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///a%ff", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///a/%2E%2e/b", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///a%5c..%5cb", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///C:x", typedmcp.ResourceNotFoundError, "resource not found"),
        ("file:///%5ca", typedmcp.ResourceNotFoundError, "resource not found"),
        ("weather://Oslo/three", typedmcp.InvalidParamsError, "days: expected integer, got string"),
        ("weather://Oslo/3?units=k", typedmcp.InvalidParamsError, 'units: expected "c" or "f", got "k"'),
        ("weather://Oslo/3?units=k#c", typedmcp.InvalidParamsError, 'units: expected "c" or "f", got "k"'),
    ],
)
def test_unknown_and_unsafe_uris_are_rejected(uri: str, error: type[Exception], text: str) -> None:
    async def main() -> None:
        async with typedmcp.connect(library()) as client:
            with pytest.raises(error, match=text):
                await client.read_resource(uri)

    run(main())


def values_of(**values: str) -> list[str]:
    return [*values.values()]


def name_of(name: str) -> str:
    return name


EQUAL_URIS = {
    "http://example.com": [
        "http://example.com/",
        "HTTP://EXAMPLE.com",
        "http://Example.com:80",
        "http://example.com:80/",
    ],
    "https://example.com/a%7Eb": ["https://example.com:443/a~b", "HTTPS://example.com/a%7eb"],
    "https://example.com?v=1": ["https://example.com/?v=1"],
    "https://example.com{?q}": ["https://example.com/?q=%41", "https://example.com?q=A#top", "https://example.com:443"],
    "http://{host}/status": ["http://a.test/status", "HTTP://a.test:80/status"],
    "file:///caf%c3%a9/a%20b": ["file:///caf%C3%A9/a%20b", "file:///café/a b", "FILE:///caf%c3%A9/a b"],
    "notes://Ada/~own/{name}": ["notes://Ada/%7Eown/x", "Notes://Ada/%7eown/x%20y", "notes://Ada/~own/é"],
    "notes://{user}/": ["notes://Ada/", "NOTES://Ada/"],
}
OTHER_URIS = {
    "http://example.com": [
        "https://example.com/",
        "http://example.com:443",
        "http://example.com/a",
        "http://example.com.a/",
    ],
    "notes://Ada/1": ["notes://ada/1", "notes://Ada/%2531", "notes://Ada/1/", "notes://Ada:80/1"],
    "notes://a%2Fb": ["notes://a/b"],
    "http://example.com/{name}": ["http://example.com/a/b", "http://example.com"],
}


@each("uri", EQUAL_URIS)
def test_a_resource_is_found_by_every_spelling_of_its_uri(uri: str) -> None:
    async def main() -> None:
        server = Server()
        server.add_resource(values_of, uri)
        outer = Server()
        outer.mount(server, "in")
        async with typedmcp.connect(server) as client, typedmcp.connect(outer) as through:
            for spelling in (uri.replace("{", "").replace("}", ""), *EQUAL_URIS[uri]):
                (content,) = (await client.read_resource(spelling)).contents
                assert content.uri == spelling
                if "//" in spelling and not spelling.lower().startswith(("http", "file")):
                    scheme, rest = spelling.split("://")
                    (content,) = (await through.read_resource(f"{scheme}://in/{rest}")).contents
                    assert content.uri == f"{scheme}://in/{rest}"

    run(main())


@each("uri", OTHER_URIS)
def test_a_resource_is_not_found_by_a_uri_that_is_not_equal(uri: str) -> None:
    async def main() -> None:
        server = Server()
        server.add_resource(values_of, uri)
        async with typedmcp.connect(server) as client:
            for other in OTHER_URIS[uri]:
                with pytest.raises(typedmcp.ResourceNotFoundError):
                    await client.read_resource(other)

    run(main())


def test_a_resource_without_variables_comes_first_by_every_spelling() -> None:
    async def main() -> None:
        server = Server()
        server.add_resource(name_of, "data://{name}")
        server.add_resource(lambda: "home", "data://~")
        server.add_resource(lambda: "escaped", "data://%7E%7e")
        async with typedmcp.connect(server) as client:
            read = [(await client.read_resource(f"data://{uri}")).contents[0] for uri in ("~", "%7E", "~~", "%7Ex")]
            assert [content.text for content in read] == ["home", "home", "escaped", "~x"]  # type: ignore[union-attr]

    run(main())


# Prompts and completion


def test_prompts_take_text_and_return_messages() -> None:
    server = Server()

    @server.prompt(title="Review")
    def review(code: str, strict: bool = False, tags: list[str] | None = None) -> list[Any]:
        """Review code.

        Args:
            code: What to look at.
        """
        return ["Look:", typedmcp.AssistantMessage(f"{code} {strict} {tags}")]

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            (prompt,) = [prompt async for prompt in client.prompts()]
            assert [(a.name, a.required) for a in prompt.arguments or []] == [
                ("code", True), ("strict", False), ("tags", False),
            ]  # fmt: skip
            result = await client.get_prompt("review", {"code": "x", "strict": "true", "tags": '["a"]'})
            assert [(m.role, m.content.text) for m in result.messages] == [  # type: ignore[union-attr]
                ("user", "Look:"), ("assistant", "x True ['a']"),
            ]  # fmt: skip
            assert result.description == "Review code."
            for arguments, text in (
                ({}, "code: required"),
                ({"code": "x", "strict": "maybe"}, "strict: expected boolean"),
            ):
                with pytest.raises(typedmcp.InvalidParamsError, match=text):
                    await client.get_prompt("review", arguments)
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown prompt: nobody"):
                await client.get_prompt("nobody")

    run(main())


def test_completion_uses_functions_then_types_then_the_fallback() -> None:
    server = Server()

    @server.prompt
    def review(code: str, language: str, kind: Literal["short", "long"] = "short") -> str:
        return code

    @server.completion(review, "language")
    def languages(typed: str, known: dict[str, str]) -> list[str]:
        return ["python", "perl", known.get("code", "")]

    @server.completion
    async def rest(ref: Any, argument: Any) -> list[str]:
        return [f"{argument.name}-{number}" for number in range(150)]

    async def main() -> None:
        async with typedmcp.connect(server) as client:

            async def suggested(argument: str, value: str, **known: str) -> Any:
                ref = structs.PromptReference(name="review")
                return (await client.complete(ref, argument, value, known)).completion

            assert (await suggested("language", "p", code="pascal")).values == ["python", "perl", "pascal"]
            assert (await suggested("kind", "l")).values == ["long"]
            found = await suggested("code", "")
            assert (len(found.values), found.total, found.has_more) == (100, 150, True)

    run(main())


def test_completion_is_declared_once_there_is_something_to_suggest() -> None:
    server = Server()

    @server.prompt
    def plain(code: str) -> str:
        return code

    params = {"ref": {"type": "ref/prompt", "name": "plain"}, "argument": {"name": "code", "value": ""}}

    async def main() -> None:
        async with served(server) as client:
            assert "completions" not in (await client.result("server/discover"))["capabilities"]
            assert (await client.error("completion/complete", params))["code"] == -32601

            @server.prompt
            def review(kind: Literal["short", "long"]) -> str:
                return kind

            assert "completions" in (await client.result("server/discover"))["capabilities"]
            assert (await client.result("completion/complete", params))["completion"]["values"] == []

    run(main())


INVALID_COMPLETIONS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda server, _: server.completion("review"), r"completion of 'review': name the argument"),
    (lambda server, review: server.completion(review, "ctiy")(str), "'review': it has no argument 'ctiy'"),
    (lambda server, _: server.completion("review", "ctiy")(str), "'review': it has no argument 'ctiy'"),
    (lambda server, _: server.completion("a://{b}", "c")(str), "completion of 'a://{b}': it has no argument 'c'"),
    (lambda server, _: server.completion(print, "code")(str), "it is neither a prompt nor a resource"),
    (lambda server, _: server.completion("review", "code")(3), "completion of 'code': 3 is not a function"),
]


@each("make, text", INVALID_COMPLETIONS)
def test_a_completion_for_an_unknown_argument_is_rejected(make: Any, text: str) -> None:
    server = Server()

    @server.prompt
    def review(code: str) -> str:
        return code

    @server.resource("a://{b}")
    def resource(b: str) -> str:
        return b

    with pytest.raises(UsageError, match=text):
        make(server, review)


def test_methods_can_suggest_completions() -> None:
    from typedmcp import Context as Ctx

    class Reviews:
        def review(self, code: str) -> str:
            return code

    server, reviews = Server(), Reviews()
    server.add_prompt(reviews.review)

    @server.completion(reviews.review, "code")
    def codes(typed: str, ctx: Ctx) -> list[str]:
        return [f"{typed}-{ctx.method}"]

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            found = await client.complete(structs.PromptReference(name="review"), "code", "x")
            assert found.completion.values == ["x-completion/complete"]

    run(main())


def test_completion_for_an_unknown_item_is_an_error() -> None:
    server = Server()

    @server.prompt
    def review(code: str, kind: Literal["short", "long"] = "short") -> str:
        return code

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            found = await client.complete(structs.PromptReference(name="review"), "code", "x")
            assert found.completion.values == []
            for ref in (structs.PromptReference(name="revue"), structs.ResourceTemplateReference(uri="a://{b}")):
                with pytest.raises(typedmcp.InvalidParamsError, match=r"unknown (prompt|resource): "):
                    await client.complete(ref, "code", "x")

    run(main())


# Changes and lists


@each("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_an_empty_cursor_is_that_of_the_first_page_unless_the_server_is_strict(method: str) -> None:
    async def main() -> None:
        async with served(eight_tools()) as client:
            page = await client.result(method, {"cursor": ""})
            assert page == await client.result(method)
            (report,) = client.of_kind(typedmcp.DiagnosticKind.TOLERATED)
            assert (report.method, report.text) == (method, "params.cursor: empty, but the first page has no cursor")
        async with served(eight_tools(), strict=True) as client:
            error = await client.error(method, {"cursor": ""})
            assert (error["code"], error["message"]) == (
                -32602,
                "params.cursor: empty, but the first page has no cursor",
            )

    run(main())


def test_adding_and_removing_publishes_a_change() -> None:
    server = Server()

    @server.tool
    def first() -> str:
        return ""

    async def main(revision: str) -> None:
        async with typedmcp.connect(server, revisions=[revision]) as client, client.listen(tools=True) as changes:

            async def next_change() -> Any:
                return await asyncio.wait_for(anext(aiter(changes)), 60)

            server.add_tool(lambda: "", name="second")
            assert (await next_change()).kind == "tools"
            assert [tool.name async for tool in client.tools()] == ["first", "second"]
            server.remove_tool("second")
            assert (await next_change()).kind == "tools"
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool"):
                await client.call_tool("second")

    for revision in ("2026-07-28", "2025-11-25"):
        run(main(revision))


def test_a_second_tool_of_one_name_is_rejected_without_replace() -> None:
    server = Server()
    server.add_tool(lambda: "old", name="a")
    with pytest.raises(UsageError, match="already has 'a' among its tools"):
        server.add_tool(lambda: "new", name="a")
    server.add_tool(lambda: "new", name="a", replace=True)
    assert texts(run(call_one_tool(server, "a"))) == ["new"]


def eight_tools() -> Server:
    server = Server(page=3)
    for number in range(8):
        server.add_tool(lambda: "", name=f"t{number}")
    return server


def test_lists_come_in_pages() -> None:
    server = eight_tools()

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            first = await client.list_tools()
            second = await client.list_tools(str(first.next_cursor))
            assert [[tool.name for tool in page.tools] for page in (first, second)] == [
                ["t0", "t1", "t2"],
                ["t3", "t4", "t5"],
            ]
            assert [tool.name async for tool in client.tools()] == [f"t{number}" for number in range(8)]
            for cursor in ("t99", "-1:t0", "3:t2", "9" * 5000 + ":t0"):
                with pytest.raises(typedmcp.InvalidParamsError, match="invalid cursor"):
                    await client.list_tools(cursor)

    run(main())


@each("gone", [["t2"], ["t0"], ["t1", "t2"], ["t7"]])
def test_removing_a_tool_between_pages_skips_no_other(gone: list[str]) -> None:
    server = eight_tools()

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            page = await client.list_tools()
            for name in gone:
                server.remove_tool(name)
            names = [tool.name for tool in page.tools]
            while isinstance(page.next_cursor, str):
                page = await client.list_tools(page.next_cursor)
                names += [tool.name for tool in page.tools]
            assert set(names) >= {f"t{number}" for number in range(8)} - set(gone)

    run(main())


# Middleware, mounting, lifespan


def test_middleware_runs_around_every_request_with_the_first_one_outermost() -> None:
    server, seen = Server(), list[str]()

    @server.middleware
    async def outer(ctx: Context, params: Any, call_next: Any) -> Any:
        seen.append(f"outer {ctx.method}")
        try:
            return await call_next(params)
        finally:
            seen.append("out")

    @server.middleware
    async def inner(ctx: Context, params: Any, call_next: Any) -> Any:
        if ctx.method == "tools/call":
            params = msgspec.structs.replace(params, arguments={"text": params.arguments["text"] + "!"})
        return await call_next(params)

    @server.tool
    async def echo(text: str) -> str:
        return text

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            assert texts(await client.call_tool("echo", {"text": "hi"})) == ["hi!"]
            await client.list_tools()
            with pytest.raises(typedmcp.InvalidParamsError):
                await client.call_tool("nobody", {"text": ""})

    run(main())
    assert seen == ["outer tools/call", "out", "outer tools/list", "out", "outer tools/call", "out"]


def test_middleware_that_returns_nothing_is_named() -> None:
    reports = list[str]()
    server = Server()
    server.add_tool(lambda: "", name="tool")

    @server.middleware
    async def forgetful(ctx: Context, params: Any, call_next: Any) -> Any:
        await call_next()

    async def main() -> None:
        service: Any = typedmcp.ServerConfig(server, on_diagnostic=lambda report: reports.append(report.text))
        async with typedmcp.connect(service) as client:
            with pytest.raises(typedmcp.RemoteError, match="internal error in tools/call"):
                await client.call_tool("tool")

    run(main())
    assert len(reports) == 1
    assert "middleware 'forgetful' returned None; it must return a result" in reports[0]


@each(
    "error, content, message",
    [
        (typedmcp.ToolError("not today"), "not today", "not today"),
        (Broken("the password is 1234"), None, "internal error in {}"),
        (typedmcp.InvalidParamsError("not so"), None, "not so"),
    ],
)
def test_exceptions_of_middleware_are_shown_like_those_of_functions(
    error: Exception, content: str | None, message: str
) -> None:
    server = Server()
    server.add_tool(lambda: "", name="tool")
    server.add_prompt(lambda: "", name="prompt")

    @server.middleware
    async def refuse(ctx: Context, params: Any, call_next: Any) -> Any:
        raise error

    async def main() -> None:
        service: Any = typedmcp.ServerConfig(server, on_diagnostic=lambda _: None)
        async with typedmcp.connect(service) as client:
            if content is None:
                with pytest.raises(typedmcp.RemoteError) as caught:
                    await client.call_tool("tool")
                assert caught.value.message == message.format("tools/call")
            else:
                result = await client.call_tool("tool")
                assert (result.is_error, texts(result)) == (True, [content])
            with pytest.raises(typedmcp.RemoteError) as caught:
                await client.get_prompt("prompt")
            assert caught.value.message == message.format("prompts/get")

    run(main())


def test_a_mounted_server_is_listed_under_its_prefix_and_stays_unchanged() -> None:
    outer, inner = Server("outer"), Server("inner")

    @asynccontextmanager
    async def opened(server: Server) -> AsyncGenerator[str]:
        yield f"opened by {server.name}"

    inner = Server("inner", lifespan=opened)

    @inner.tool
    async def now(ctx: Context, city: str) -> str:
        return f"{city}: {ctx.lifespan}"

    @inner.resource("weather://all")
    async def everything() -> str:
        return "rain"

    @inner.resource("weather://{city}/now")
    async def weather(city: str) -> str:
        return f"rain in {city}"

    @inner.prompt
    def ask(kind: Literal["rain", "sun"]) -> str:
        return kind

    outer.mount(inner, "w")

    async def main() -> None:
        async with typedmcp.connect(outer) as client:
            assert [tool.name async for tool in client.tools()] == ["w_now"]
            assert texts(await client.call_tool("w_now", {"city": "Oslo"})) == ["Oslo: opened by inner"]
            assert [r.uri async for r in client.resources()] == ["weather://w/all"]
            assert [r.uri_template async for r in client.resource_templates()] == ["weather://w/{city}/now"]
            for uri in ("weather://w/all", "weather://w/Oslo/now"):
                (content,) = (await client.read_resource(uri)).contents
                assert content.uri == uri
            assert (await client.get_prompt("w_ask", {"kind": "sun"})).messages[0].content.text == "sun"  # type: ignore[union-attr]
            ref = structs.PromptReference(name="w_ask")
            assert (await client.complete(ref, "kind", "r")).completion.values == ["rain"]
            inner.add_tool(lambda: "x", name="later")
            assert texts(await client.call_tool("w_later")) == ["x"]
        async with typedmcp.connect(inner) as client:
            assert [tool.name async for tool in client.tools()] == ["now", "later"]

    run(main())
    with pytest.raises(UsageError, match="cannot be mounted in itself"):
        inner.mount(outer)


def test_mounting_does_not_change_a_server() -> None:
    kept = structs.TextResourceContents(uri="thing:one", text="1")
    inner, middle, outer = Server("inner"), Server("middle"), Server("outer")
    inner.add_resource(lambda: kept, "thing:one", name="one")

    @inner.resource("thing:{n}/of")
    def other(n: str) -> str:
        return n

    middle.mount(inner, "in")
    outer.mount(middle, "mid")

    async def main() -> None:
        async with typedmcp.connect(outer) as client:
            assert [resource.uri async for resource in client.resources()] == ["thing:mid/in/one"]
            for _ in range(3):
                (found,) = (await client.read_resource("thing:mid/in/one", fresh=True)).contents
                assert (found.uri, kept.uri) == ("thing:mid/in/one", "thing:one")
            (found,) = (await client.read_resource("thing:mid/in/2/of")).contents
            assert found.uri == "thing:mid/in/2/of"

    run(main())


@each("by", ["the context", "the server"])
def test_changes_in_a_mounted_server_are_published_under_the_outer_names(by: str) -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.add_resource(lambda: "", "data://it", name="it")
    outer.mount(inner, "in")

    @inner.tool
    async def change(ctx: Context) -> None:
        (ctx.changes if by == "the context" else inner).resource_updated("data://it")

    async def main() -> None:
        heard: list[str | None] = []
        outer.changes.listen(lambda _, uri: heard.append(uri))
        async with typedmcp.connect(outer) as client:
            await client.call_tool("in_change")
        assert heard == ["data://in/it"]

    run(main())


def test_a_tool_reads_the_resources_of_its_own_server_mounted_or_not() -> None:
    @asynccontextmanager
    async def opened(server: Server) -> AsyncGenerator[str]:
        yield server.name

    inner, outer = Server("inner", lifespan=opened), Server("outer", lifespan=opened)
    outer.mount(inner, "in")
    inner.add_resource(lambda: "inner", "name://it", name="name")
    outer.add_resource(lambda: "outer", "name://it", name="name")
    for server in (inner, outer):

        @server.tool
        async def read(ctx: Context, uri: str) -> list[str]:
            (found,) = await ctx.read_resource(uri)
            assert isinstance(found, structs.TextResourceContents)
            return [found.uri, found.text, ctx.lifespan]

    async def main() -> None:
        async with typedmcp.connect(outer) as client:
            for tool, uri, expected in (
                ("read", "name://it", ["name://it", "outer", "outer"]),
                ("read", "name://in/it", ["name://in/it", "inner", "outer"]),
                ("in_read", "name://it", ["name://it", "inner", "inner"]),
            ):
                result = await client.call_tool(tool, {"uri": uri})
                assert result.structured_content == {"result": expected}

    run(main())


def test_a_lifespan_begins_before_the_first_request_and_ends_after_the_last() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def opened(server: Server) -> AsyncGenerator[dict[str, int]]:
        steps.append("begin")
        async with asyncio.TaskGroup():  # the task that enters it must leave it
            yield {"answer": 42}
        steps.append("end")

    server = Server(lifespan=opened)

    @server.tool
    async def answer(ctx: Context) -> int:
        steps.append("call")
        return int(ctx.lifespan["answer"])

    assert texts(run(call_one_tool(server, "answer"))) == ["42"]
    assert steps == ["begin", "call", "end"]


def test_a_lifespan_that_fails_keeps_the_server_from_serving() -> None:
    @asynccontextmanager
    async def opened(server: Server) -> AsyncGenerator[None]:
        raise OSError("no database")
        yield

    with pytest.raises(OSError, match="no database"):
        run(call_one_tool(Server(lifespan=opened), "any"))


def test_entering_a_lifespan_is_cancelled_with_its_last_user() -> None:
    steps: list[str] = []

    async def opened(server: Server) -> AsyncGenerator[None]:
        try:
            await asyncio.sleep(60)
            yield
        finally:
            steps.append("closed")

    async def main() -> None:
        before = asyncio.all_tasks()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), typedmcp.connect(Server(lifespan=opened)):
                pass  # never reached
        assert asyncio.all_tasks() == before

    run(main())
    assert steps == ["closed"]


def test_a_lifespan_may_be_an_async_generator() -> None:
    async def opened(server: Server) -> AsyncGenerator[str]:
        yield server.name

    server = Server("it", lifespan=opened)

    @server.tool
    async def name(ctx: Context) -> str:
        return str(ctx.lifespan)

    assert texts(run(call_one_tool(server, "name"))) == ["it"]
    with pytest.raises(UsageError, match="lifespan must return an async context manager, not 3"):
        run(call_one_tool(Server(lifespan=lambda _: 3), "name"))  # type: ignore[arg-type,return-value]


# Given schemas


def test_a_complete_result_is_not_changed_to_fit_a_given_schema() -> None:
    pytest.importorskip("jsonschema_rs")
    kept = structs.CallToolResult(content=[structs.TextContent(text="hi")], result_type="complete")
    server = Server(debug=True)
    server.add_tool(lambda: kept, name="whole", output_schema={"type": "object"})
    result = run(call_one_tool(typedmcp.ServerConfig(server, on_diagnostic=lambda _: None), "whole"))  # type: ignore[arg-type]
    (text,) = texts(result)
    assert text.startswith("whole failed: its result does not fit its schema: <lambda>() at ")
    assert text.endswith(
        " returned CallToolResult: structuredContent: required by the output schema, but missing; "
        "change the value or `output_schema`"
    )
    assert kept.structured_content is None


def test_given_schemas_are_enforced_and_invalid_ones_rejected() -> None:
    pytest.importorskip("jsonschema_rs")
    server = Server()

    @server.tool(
        input_schema={"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}, "required": ["a"]},
        output_schema={"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
    )
    def given(**arguments: Any) -> Any:
        return {"b": "yes"} if arguments["a"] == 1 else {"b": 2}

    async def main() -> None:
        service: Any = typedmcp.ServerConfig(server, on_diagnostic=lambda _: None)
        async with typedmcp.connect(service, check_output=False) as client:
            assert (await client.call_tool("given", {"a": 1})).structured_content == {"b": "yes"}
            assert texts(await client.call_tool("given", {"a": 4}))[0].startswith("a: ")
            assert texts(await client.call_tool("given", {"a": 2})) == [
                "given failed: its result does not fit its schema"
            ]

    run(main())

    def anything(**arguments: Any) -> str:
        return ""

    for schema, why in (
        ({"$schema": "http://example.org/own"}, "dialect"),
        ({"$ref": "https://example.org/schema.json"}, "not fetched"),
        ({"type": "nonsense"}, "nonsense"),
    ):
        with pytest.raises(UsageError, match=why):
            server.add_tool(anything, name="x", input_schema=schema)
