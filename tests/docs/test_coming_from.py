"""Our lines in the table of `docs/coming-from.md` run, and do what the table says."""

from __future__ import annotations

import asyncio
import base64
import html
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import pytest
from pydantic import BaseModel, Field

import typedmcp
import typedmcp_auth
import typedmcp_gateway
import typedmcp_hosts
from tests import acme
from tests.cases import each
from tests.docs.markdown import prose, tables
from tests.docs.peers import run
from tests.interop import install
from tests.paths import ROOT
from tests.server.http import asgi_driver
from tests.server.http.asgi_driver import serving
from typedmcp import Client, Context, RemoteError, Server, ToolError, connect, text_of
from typedmcp.app import CallNext
from typedmcp.dialect import structs
from typedmcp_extensions.apps import AppPage, AppsClient, AppsServer, load_page
from typedmcp_extensions.tasks import TASKS, ServerTasks

_PAGE = ROOT / "docs" / "coming-from.md"
_HEADS = ["what", "MCPServer", "fastmcp", "here", "verdict", "what differs"]
_CLIENT_HEADS = ["what", "mcp.Client", "fastmcp.Client", "here", "verdict", "what differs"]
_VERDICTS = ("same", "differs", "not here")


class Row(NamedTuple):
    """A row of the page: its heading, its name, the code of three libraries, the verdict and the difference."""

    theme: str
    what: str
    official: str
    fastmcp: str
    here: str
    verdict: str
    about: str


def _rows() -> list[Row]:
    found: list[Row] = []
    lines = prose(_PAGE)
    for number, (heads, *rows) in tables(_PAGE):
        if heads in (_HEADS, _CLIENT_HEADS):
            theme = next(line for line in reversed(lines[:number]) if line.startswith("## ")).removeprefix("## ")
            found += [Row(theme, what, *map(_code, cells[:3]), *cells[3:]) for what, *cells in rows]
    return found


def _code(cell: str) -> str:
    found = re.fullmatch(r"`(.*)`|<code>(.*)</code>", cell)
    return html.unescape(found[1] or found[2]) if found else ""


ROWS = _rows()
HERE = {row.what: row.here for row in ROWS}

Check = Callable[[str], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def row(what: str) -> Callable[[Check], Check]:
    """Make a function the test of a row. It gets our code."""

    def decorate(check: Check) -> Check:
        assert what not in CHECKS, what
        CHECKS[what] = check
        return check

    return decorate


def test_each_row_has_a_test_and_each_test_a_row() -> None:
    named = [row.what for row in ROWS]
    assert len(named) == len(set(named))
    assert {row.verdict for row in ROWS} == set(_VERDICTS)
    assert set(CHECKS) == {row.what for row in ROWS if row.verdict != "not here"}


def test_our_lines_compile_even_if_they_are_not_run() -> None:
    for row in ROWS:
        compile(f"async def f():\n{textwrap.indent(_defined(row.here or 'pass'), '    ')}", row.what, "exec")


def _defined(code: str) -> str:
    return f"{code}\ndef g(): ..." if code.startswith("@") else code


@pytest.mark.long
@each("library", ["MCPServer", "fastmcp"])
def test_their_lines_run_too(library: str, tmp_path: Path) -> None:
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        pytest.skip("the other libraries are not installed: run `make bench`")
    column = Row._fields.index("official" if library == "MCPServer" else "fastmcp")
    given = [(row.theme, row.what, row[column]) for row in ROWS if row[column]]
    (tmp_path / "server.py").touch()
    command = [str(python), str(ROOT / "tests" / "docs" / "peers.py"), library]
    environment = {**os.environ, "FASTMCP_CHECK_FOR_UPDATES": "off"}
    printed = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment
    )
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == {}


SESSIONS = next(rows for _, (heads, *rows) in tables(_PAGE) if heads == ["session", "mcp 1.x", "mcp 2.x", "here"])
_PLACES = {"ServerSession": "mcp.server.session", "ClientSession": "mcp.client.session", "Client": "mcp"}
_OURS = {"ctx": Context, "client": Client, "server": Server}


def test_each_method_of_a_session_is_on_the_page_and_what_stands_in_its_place_exists() -> None:
    from typedmcp_mcp1 import ClientSession, ServerSession

    named = {name for row in SESSIONS for name in re.findall(r"`\w+Session\.(\w+)`", row[1])}
    same = {"call_tool", "complete", "get_prompt", "list_resource_templates", "read_resource"}
    methods = {name for kind in (ClientSession, ServerSession) for name in vars(kind) if not name.startswith("_")}
    assert sorted(methods - named - same - {"client", "experimental"}) == []
    for row in SESSIONS:
        for place, name in re.findall(r"`(ctx|client|server)\.(\w+)", row[3]):
            assert (
                hasattr(_OURS[place], name)
                or name in _OURS[place].__annotations__
                or (place, name) == ("client", "server")
            )


@pytest.mark.long
@each("environment, column", [("py1", 1), ("py2", 2)])
def test_the_methods_of_the_other_sessions_exist(environment: str, column: int) -> None:
    if not (install.INTEROP / environment / ".installed").exists():
        pytest.skip("the libraries of others are not installed: run tests/interop/install.py")
    places = {**_PLACES, "Context": "mcp.server.mcpserver"}
    names = sorted({found for row in SESSIONS for found in re.findall(r"`(\w+)\.(\w+)`", row[column])})
    check = "import importlib, json, sys\nfor place, kind, name in json.load(sys.stdin):\n"
    check += "    kind = getattr(importlib.import_module(place), kind)\n"
    check += "    assert hasattr(kind, name) or name in getattr(kind, '__annotations__', {}), (kind, name)"
    given = json.dumps([(places[kind], kind, name) for kind, name in names])
    subprocess.run([str(install.python(environment)), "-c", check], input=given, text=True, check=True, timeout=60)


# Names that the rows use


class Point(BaseModel):
    x: int


@dataclass
class Place:
    name: str


class Person(BaseModel):
    name: str


class Thing:
    def method(self, a: int) -> int:
        return a


@asynccontextmanager
async def lifespan(server: object) -> AsyncGenerator[dict[str, int]]:
    yield {"opened": 1}


async def m(ctx: Context, params: Any, call_next: CallNext) -> Any:
    result = await call_next()
    if ctx.method == "tools/call":
        result.content = [structs.TextContent(text="from the middleware")]
    return result


def verify(token: str) -> typedmcp.Principal | None:
    return typedmcp.Principal("ada") if token == "good" else None  # noqa: S105


def _names() -> dict[str, Any]:
    server = Server("s")

    def f(a: int = 1) -> int:
        return a

    sub = Server("sub")
    sub.add_tool(f)
    return {
        **{name: getattr(typedmcp, name) for name in typedmcp.__all__},
        **{name: getattr(typedmcp_auth, name) for name in typedmcp_auth.__all__},
        "pem": "of a test", "Annotated": Annotated, "Any": Any,
        "Field": Field, "Literal": Literal, "Person": Person, "Place": Place, "Point": Point, "Path": Path, "f": f,
        "key": bytes(16), "lifespan": lifespan, "m": m, "path": ROOT / "LICENSE", "server": server, "structs": structs,
        "ServerTasks": ServerTasks, "sub": sub, "sys": sys, "thing": Thing(), "typedmcp_gateway": typedmcp_gateway,
        "typedmcp_hosts": typedmcp_hosts, "verify": verify,
    }  # fmt: skip


async def ran(code: str, names: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Run code and return the names that it leaves, with the value of an expression as `_`."""
    names = _names() | more if names is None else names
    await run(code, names)
    return names


async def served(code: str, function: str = "def f(a: int = 1) -> int: return a", **names: Any) -> Server:
    """Return the server after a decorator has been applied to a function."""
    return cast(Server, (await ran(f"{code}\n{function}", **names))["server"])


async def inside(code: str, decorator: str = "@server.tool", arguments: str = "") -> Server:
    """Return a server with a function that contains the code and takes the context."""
    body = code if code.startswith(("return", "raise", "yield")) else f"return ({code})"
    return await served(decorator, f"async def f(ctx: Context{arguments}):\n    {body}", Any=Any)


async def called(server: Server, arguments: dict[str, Any] | None = None, **options: Any) -> structs.CallToolResult:
    """Call the tool `f`."""
    async with connect(server, **options) as client:
        return await client.call_tool("f", arguments)


async def tools_of(server: Server) -> dict[str, structs.Tool]:
    async with connect(server) as client:
        return {tool.name: tool async for tool in client.tools()}


async def read(server: Server, uri: str) -> Any:
    async with connect(server) as client:
        return (await client.read_resource(uri)).contents


# A server


@row("server")
async def _(code: str) -> None:
    assert (await ran(code))["server"].name == "s"


@row("version and title")
async def _(code: str) -> None:
    async with connect((await ran(code))["_"]) as client:
        assert client.server.info == structs.Implementation(name="s", version="1", title="T")


@row("instructions")
async def _(code: str) -> None:
    async with connect((await ran(code))["_"]) as client:
        assert client.server.instructions == "Be brief."


@row("icons and website")
async def _(code: str) -> None:
    async with connect((await ran(code))["_"]) as client:
        info = client.server.info
        assert info is not None
        assert (info.icons, info.website_url) == ([structs.Icon(src="https://x/i.png")], "https://x")


@row("duplicate names")
async def _(code: str) -> None:
    names = await ran("@server.tool\ndef f(): return 'first'")
    with pytest.raises(typedmcp.UsageError, match="replace=True"):
        await ran("@server.tool\ndef f(): ...", names)
    await ran(f"{code}\ndef f(): return 'second'", names)
    assert text_of(await called(names["server"])) == "second"


@row("page size of lists")
async def _(code: str) -> None:
    server = (await ran(code))["_"]
    for number in range(51):
        server.add_tool(lambda: 1, name=f"f{number}")
    async with connect(server) as client:
        assert len((await client.list_tools()).tools) == 50
        assert len([tool async for tool in client.tools()]) == 51


@row("cache time of lists")
async def _(code: str) -> None:
    server = (await ran(code))["_"]
    server.add_tool(lambda: 1, name="one")
    server.add_resource(lambda: "x", "data://a")
    async with connect(server) as client:
        assert (await client.list_tools()).ttl_ms == 60_000
        assert (await client.read_resource("data://a")).ttl_ms == 0


@row("text of exceptions")
async def _(code: str) -> None:
    server = (await ran(code))["_"]
    await ran("@server.tool\ndef f(): raise LookupError('the reason')", {"server": server})
    assert "the reason" in text_of(await called(server))


@row("experimental capabilities")
async def _(code: str) -> None:
    async with connect((await ran(code))["server"]) as client:
        assert client.server.capabilities.experimental == {"x": {}}


# Tools


@row("tool")
@row("plain function without a thread")
async def _(code: str) -> None:
    for written in (code, code if "(" in code else f"{code}()"):
        assert (await called(await served(written), {"a": 3})).structured_content == {"result": 3}


@row("different name")
async def _(code: str) -> None:
    assert list(await tools_of(await served(code))) == ["add"]


@row("title and description")
async def _(code: str) -> None:
    tool = (await tools_of(await served(code)))["f"]
    assert (tool.title, tool.description) == ("Add", "Adds.")


@row("annotations")
async def _(code: str) -> None:
    assert (await tools_of(await served(code)))["f"].annotations == structs.ToolAnnotations(read_only_hint=True)


@row("icons and `_meta`")
async def _(code: str) -> None:
    tool = (await tools_of(await served(code)))["f"]
    assert (tool.icons, tool.meta) == ([structs.Icon(src="https://x/i.png")], {"a": 1})


@row("tool without a decorator")
@row("lambda")
@row("method of an object")
async def _(code: str) -> None:
    (tool,) = await tools_of((await ran(code))["server"])
    assert tool in ("add", "one", "method")


@row("remove a tool")
async def _(code: str) -> None:
    names = await ran("server.add_tool(f)")
    async with connect(names["server"]) as client, client.listen(tools=True) as changes:
        await ran(code, names)
        assert (await anext(changes)).kind == "tools"
        assert [tool async for tool in client.tools()] == []


async def _schema(hint: str, function: str = "") -> Any:
    server = await served("@server.tool", function or f"def f(a: {hint}): return a")
    return (await tools_of(server))["f"].input_schema


@row("description of a parameter")
async def _(code: str) -> None:
    for hint in (code, HERE["description of a parameter"], 'Annotated[int, Field(description="How many.")]'):
        assert (await _schema(hint))["properties"]["a"]["description"] == "How many."


@row("docstring")
async def _(code: str) -> None:
    server = await served("@server.tool", f"def f(a: int):\n    {code}")
    tool = (await tools_of(server))["f"]
    assert tool.description == "Adds."
    assert tool.input_schema["properties"]["a"]["description"] == "A number."


@row("constraints")
async def _(code: str) -> None:
    assert (await _schema(code))["properties"]["a"]["minimum"] == 1
    server = await served("@server.tool", f"def f(a: {code}): return a")
    assert text_of(await called(server, {"a": 0})) == "a: expected integer >= 1, got 0"


@row("argument of the wrong type")
async def _(code: str) -> None:
    server = (await ran(f"{code}\n@server.tool\ndef f(a: int, b: list[int] = []): return a"))["server"]
    assert text_of(await called(server, {"a": "1", "b": "[1]"})) == (
        "a: expected integer, got string\nb: expected array, got string"
    )
    assert text_of(await called(server, {"a": 1, "b": "[1]"})) == "b: expected array, got string"


@row("unknown argument")
async def _(code: str) -> None:
    assert (await called(await served(code), {"z": 1})).is_error is True
    rest = await served(code, "def f(**rest): return rest")
    assert (await called(rest, {"z": 1})).structured_content == {"z": 1}


@row("parameter without a type")
async def _(code: str) -> None:
    assert (await _schema("", code))["properties"]["a"] == {}


@row("references in schemas")
async def _(code: str) -> None:
    tool = "def f(a: Place | None = None): ..."
    kept = (await tools_of(await served(f"server = {code}", f"@server.tool\n{tool}")))["f"].input_schema
    assert "$ref" in json.dumps(kept)
    assert "$ref" not in json.dumps((await tools_of(await served(f"@server.tool\n{tool}")))["f"].input_schema)


@row("custom input schema")
async def _(code: str) -> None:
    server = await served(code)
    assert (await tools_of(server))["f"].input_schema == {"type": "object", "required": ["a"]}
    assert "required" in text_of(await called(server, {}))


@row("list as the result")
async def _(code: str) -> None:
    assert text_of(await called(await served("@server.tool", code))) == '["a","b"]'


@row("model as the result")
async def _(code: str) -> None:
    server = await served("@server.tool", code)
    assert (await called(server)).structured_content == {"x": 1}
    assert (await tools_of(server))["f"].output_schema is not None


@row("`-> str`")
async def _(code: str) -> None:
    for decorator, expected in (("@server.tool", None), (code, {"result": "x"})):
        assert (await called(await served(decorator, "def f() -> str: return 'x'"))).structured_content == expected


@row("no structured content")
async def _(code: str) -> None:
    result = await called(await served(code))
    assert (result.structured_content, text_of(result)) == (None, "1")


@row("custom output schema")
async def _(code: str) -> None:
    for given, fits in (({"a": 1}, True), ({"b": 1}, False)):
        server = await served(code, f"def f(): return {given}")
        assert ((await called(server)).is_error is not True) is fits
        assert (await tools_of(server))["f"].output_schema == {"type": "object", "required": ["a"]}


@row("complete result object")
async def _(code: str) -> None:
    assert text_of(await called(await inside(code))) == "x"


@row("`_meta` of a result")
async def _(code: str) -> None:
    meta = (await called(await inside(code))).meta
    assert meta is not None
    assert meta["a"] == 1


@row("image")
@row("audio")
@row("file")
@row("bytes")
async def _(code: str) -> None:
    (block,) = (await called(await inside(code))).content
    if isinstance(block, structs.EmbeddedResource):
        assert block.resource.mime_type == "application/pdf"
        assert block.resource.uri == "file:///a"
    else:
        assert isinstance(block, structs.ImageContent | structs.AudioContent)
        assert block.mime_type in ("image/png", "audio/wav")
        assert base64.b64decode(block.data) in (b"x", b"\x89PNG\r\n\x1a\n")


@row("generator")
async def _(code: str) -> None:
    for kind in ("def", "async def"):
        server = await served("@server.tool", f"{kind} f():\n    {code}\n    {code}")
        assert json.loads(text_of(await called(server))) == [1, 1]


@row("failed tool")
async def _(code: str) -> None:
    result = await called(await inside(code))
    assert (result.is_error, text_of(result)) == (True, "no such city")


@row("other exception")
async def _(code: str) -> None:
    assert text_of(await called(await inside(code))) == "f failed"
    assert text_of(await called(await inside(code, "@server.tool(errors=(LookupError,))"))) == "x"


@row("protocol error")
async def _(code: str) -> None:
    with pytest.raises(RemoteError) as caught:
        await called(await inside(code))
    assert (caught.value.code, caught.value.message) == (-32000, "m")


@row("unknown tool")
@row("unknown prompt, wrong arguments")
async def _(code: str) -> None:
    names = await ran("server.add_tool(f)\n@server.prompt\ndef p(x: int): return str(x)")
    async with connect(names["server"]) as client:
        with pytest.raises(typedmcp.InvalidParamsError, match="nope"):
            await ran(code, client=client)
        with pytest.raises(typedmcp.InvalidParamsError, match="x: expected integer"):
            await client.get_prompt("p", {"x": "y"})


@row("background tasks")
async def _(code: str) -> None:
    server = await served(f'{code}\n@server.tool(task="optional")')
    assert (await called(server, extensions=[TASKS])).result_type == "task"
    assert (await called(server)).result_type == "complete"


@row("user interfaces (MCP Apps)")
async def _(code: str) -> None:
    server = await served(code, server=Server("s", extensions=[AppsServer()]), AppPage=AppPage)
    async with connect(server, extensions=[AppsClient()]) as client:
        [tool] = (await client.list_tools()).tools
        assert (await load_page(client, tool)).html == "<p>"


@row("timeout")
async def _(code: str) -> None:
    server = await served(code.replace("5", "0.01"), "async def f():\n    import asyncio\n    await asyncio.sleep(9)")
    assert (await called(server)).is_error is True
    assert (await called(await served(code))).is_error is not True


@row("authorization of a tool")
async def _(code: str) -> None:
    server = await served(code)
    for token, status in (("ada:x", 200), ("ada", 403)):
        async with serving(server, auth=typedmcp.Auth(asgi_driver.verify)) as application:
            application.bearer = token
            listed = (await application.ask("tools/list").reply()).json["result"]["tools"]
            assert [tool["name"] for tool in listed] == ["f"] * (status == 200)
            assert (await application.call("f").reply()).status == status


# Resources


@row("resource")
async def _(code: str) -> None:
    server = await served(code, "def f(ctx: Context): return ctx.method")
    assert (await read(server, "data://motd"))[0].text == "resources/read"


@row("template")
async def _(code: str) -> None:
    assert (await read(await served(code, "def f(name): return name"), "users://ada"))[0].text == "ada"


@row("several segments")
async def _(code: str) -> None:
    for written in (code, code.replace("{name*}", "{+name}")):
        assert (await read(await served(written, "def f(name): return name"), "files://a/b"))[0].text == "a/b"


@row("query")
async def _(code: str) -> None:
    server = await served(code, "def f(name: str, limit: int = 9): return limit")
    assert (await read(server, "find://x"))[0].text == "9"
    assert (await read(server, "find://x?limit=3"))[0].text == "3"
    with pytest.raises(RemoteError, match="not found"):
        await read(server, "find://x?other=3")


@row("media type")
async def _(code: str) -> None:
    assert (await read(await served(code, "def f(): return 'x'"), "data://a"))[0].mime_type == "text/html"
    plain = await served('@server.resource("data://a")', "def f(): return {}")
    assert (await read(plain, "data://a"))[0].mime_type == "application/json"


@row("title, annotations, `_meta`")
async def _(code: str) -> None:
    async with connect(await served(code, "def f(): return 'x'")) as client:
        (found,) = [resource async for resource in client.resources()]
        assert (found.title, found.meta) == ("A", {"a": 1})
        assert (await client.read_resource("data://a")).contents[0].meta is None


@row("binary resource")
async def _(code: str) -> None:
    assert (await read(await inside(code, '@server.resource("data://a")'), "data://a"))[0].blob == "eA=="


@row("several contents")
async def _(code: str) -> None:
    found = await read(await inside(code, '@server.resource("data://a")'), "data://a")
    assert [(part.uri, part.text) for part in found] == [("data://a/1", "a"), ("data://a/2", "b")]


@row("static text")
@row("file on disk")
async def _(code: str) -> None:
    names = await ran(code)
    text = (await read(names["server"], "data://a"))[0].text
    assert text in ("x", names["path"].read_text())


@row("resource not found")
@row("other error")
async def _(code: str) -> None:
    with pytest.raises(RemoteError) as caught:
        await read(await inside(code, '@server.resource("data://a")'), "data://a")
    assert caught.value.code == (-32602 if "NotFound" in code else -32603)


@row("`..` in a URI")
async def _(code: str) -> None:
    assert (await read(await served(code, "def f(name): return name"), "files://a/../b"))[0].text == "a/../b"
    careful = await served(code.replace(", safe=False", ""), "def f(name): return name")
    with pytest.raises(RemoteError, match="not found"):
        await read(careful, "files://a/../b")


@row("remove a resource")
async def _(code: str) -> None:
    names = await ran("server.add_resource(f, 'data://a')")
    await ran(code, names)
    with pytest.raises(RemoteError, match="not found"):
        await read(names["server"], "data://a")


# Prompts and completion


async def _prompt(server: Server, **arguments: str) -> structs.GetPromptResult:
    async with connect(server) as client:
        return await client.get_prompt("f", arguments)


@row("prompt")
@row("title of a prompt")
async def _(code: str) -> None:
    server = await served(code, "def f(x): return x")
    assert text_of(await _prompt(server, x="1")) == "1"
    async with connect(server) as client:
        (prompt,) = [prompt async for prompt in client.prompts()]
        assert prompt.title == ("Ask" if "title" in code else None)


@row("messages")
async def _(code: str) -> None:
    assert [message.role for message in (await _prompt(await inside(code, "@server.prompt"))).messages] == [
        "user", "assistant"
    ]  # fmt: skip


@row("arguments that are not text")
async def _(code: str) -> None:
    assert text_of(await _prompt(await served("@server.prompt", code), xs="[1, 2]")) == "3"


@row("`_meta` of a prompt result")
async def _(code: str) -> None:
    meta = (await _prompt(await inside(code, "@server.prompt"))).meta
    assert meta is not None
    assert meta["a"] == 1


@row("prompt without a decorator")
async def _(code: str) -> None:
    async with connect((await ran(code))["server"]) as client:
        assert [prompt.name async for prompt in client.prompts()] == ["ask"]


@row("remove a prompt")
async def _(code: str) -> None:
    names = await ran("server.add_prompt(f)")
    await ran(code, names)
    with pytest.raises(RemoteError, match="unknown prompt"):
        await _prompt(names["server"])


@row("completion")
async def _(code: str) -> None:
    suggest = f"{code}\nasync def suggest(ref, argument, context): return ['apple', 'bread']"
    server = await served(f"{suggest}\n@server.prompt", "def f(x: str, y: Literal['a', 'b']): return x")
    async with connect(server) as client:
        for argument, typed, expected in (("x", "a", ["apple"]), ("y", "", ["a", "b"])):
            found = await client.complete(structs.PromptReference(name="f"), argument, typed)
            assert found.completion.values == expected


# The context


@row("get the context")
async def _(code: str) -> None:
    for written in (code, code.replace(": Context", "")):
        assert text_of(await called(await served("@server.tool", written))).isdigit()


@row("progress")
async def _(code: str) -> None:
    steps: list[structs.ProgressNotificationParams] = []
    async with connect(await inside(code)) as client:
        await client.call_tool("f", on_progress=steps.append)
    assert [(step.progress, step.total, step.message) for step in steps] == [(1, 10, "m")]


@row("log message")
@row("log message with data")
async def _(code: str) -> None:
    messages: list[structs.LoggingMessageNotificationParams] = []
    await called(await inside(code), on_log=messages.append)
    assert [(message.level, message.data) for message in messages] in ([("info", "m")], [("info", {"a": 1})])


@row("read a resource")
async def _(code: str) -> None:
    server = await inside(f"({code})[0].text")
    server.add_resource(lambda: "hello", "data://motd")
    assert text_of(await called(server)) == "hello"


def _answering(content: dict[str, Any]) -> Callable[[Any], structs.ElicitResult]:
    return lambda question: structs.ElicitResult(action="accept", content=content)


@row("form")
async def _(code: str) -> None:
    for revisions in (["2026-07-28"], ["2025-06-18"]):
        result = await called(
            await inside(f"({code}).data.name"), elicit=_answering({"name": "Ada"}), revisions=revisions
        )
        assert text_of(result) == "Ada"


@row("choice")
async def _(code: str) -> None:
    assert text_of(await called(await inside(f"({code}).data"), elicit=_answering({"value": "b"}))) == "b"


def _consents(question: structs.ElicitRequestURLParams) -> bool:
    return question.url.startswith("https:")


@row("page to open")
async def _(code: str) -> None:
    server = await inside(f"({code}).action")
    assert text_of(await called(server, elicit_url=_consents)) == "accept"


def _sampled(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    assert params.max_tokens == 9
    return structs.CreateMessageResult(role="assistant", model="m", content=structs.TextContent(text="hello"))


@row("sampling")
async def _(code: str) -> None:
    assert text_of(await called(await inside(f"text_of({code})"), sample=_sampled)) == "hello"


@row("roots")
async def _(code: str) -> None:
    assert text_of(await called(await inside(f"({code})[0].uri"), roots=["file:///a"])) == "file:///a"


@row("rounds by hand")
async def _(code: str) -> None:
    server = await served(
        "@server.tool",
        f"async def f(ctx: Context):\n    if ctx.params.request_state is None:\n        {code}\n"
        "    return ctx.params.request_state",
    )
    for revision in ("2026-07-28", "2025-11-25"):
        assert text_of(await called(server, revisions=[revision])) == "s"


@row("headers")
@row("principal")
@row("revision")
async def _(code: str) -> None:
    """In memory there are no headers and no credentials; the tests of HTTP cover both."""
    for revision in ("2026-07-28", "2024-11-05"):
        text = text_of(await called(await inside(f"repr({code})"), revisions=[revision]))
        assert text == {"ctx.headers": "{}", "ctx.principal": "None", "ctx.revision": repr(revision)}[code]


@row("session id")
async def _(code: str) -> None:
    """In memory the connection is the session, on every revision."""
    for revision in ("2026-07-28", "2025-11-25"):
        server = await inside(f"str({code} == {code} and len({code}))")
        assert text_of(await called(server, revisions=[revision])) == "64"


@row("`_meta` of the request")
async def _(code: str) -> None:
    async with connect(await inside(f"{code}['a']")) as client:
        assert text_of(await client.call_tool("f", meta={"a": 1})) == "1"


@row("client")
async def _(code: str) -> None:
    server = await inside(f"repr(({code}))")
    assert text_of(await called(server, name="me")).startswith("(Implementation(name='me', version='0'), ClientCap")


@row("lists have changed")
@row("a resource has changed")
async def _(code: str) -> None:
    server = await inside(f"[{code}, 'told'][1]")
    server.add_resource(lambda: "x", "data://motd")
    await ran("global server", {"server": server})
    for revision in ("2026-07-28", "2025-11-25"):
        async with (
            connect(server, revisions=[revision]) as client,
            client.listen(tools=True, uris=["data://motd"]) as changes,
        ):
            await client.call_tool("f")
            assert (await anext(changes)).kind in ("tools", "resource")


@row("close a stream")
async def _(code: str) -> None:
    assert (await called(await inside(code))).content == []


# Lifespan, middleware, composition


@row("lifespan")
@row("state of the lifespan")
async def _(code: str) -> None:
    server = Server("s", lifespan=lifespan) if code.startswith("ctx") else (await ran(code))["_"]
    seen = "ctx.lifespan" if not code.startswith("ctx") else code
    await ran(
        f"@server.tool\nasync def f(ctx: Context): return {seen}['opened']", {"server": server, "Context": Context}
    )
    assert text_of(await called(server)) == "1"


@row("middleware")
async def _(code: str) -> None:
    server = (await ran(code))["_"]
    server.add_tool(lambda: "x", name="f")
    assert text_of(await called(server)) == "from the middleware"


@row("extensions, custom methods")
async def _(code: str) -> None:
    server = (await ran(code, SEARCH=acme.ACME))["_"]
    async with connect(server, extensions=[acme.ACME]) as client:
        assert acme.ACME.settings_of(client.server.capabilities) == {}


@row("mounting")
async def _(code: str) -> None:
    async with connect((await ran(code))["server"]) as client:
        assert text_of(await client.call_tool("sub_f")) == "1"


@row("proxy")
async def _(code: str) -> None:
    names = await ran(code.replace('"http://x/mcp"', "server"))  # nothing listens at that address
    names["server"].add_tool(lambda: "x", name="f")
    async with connect(names["_"]) as client:
        assert text_of(await client.call_tool("f")) == "x"


# Running


@row("stdio")
@row("HTTP")
@row("HTTP with SSE")
@row("in a running event loop")
async def _(code: str) -> None:
    """These lines run until a signal ends them; tests of stdio and HTTP cover them."""
    names: dict[str, Any] = {**_names(), "transport": object()}
    function, arguments = code.removeprefix("await ").split("(", 1)
    target: Any = Server.run if function == "server.run" else typedmcp.serve_async
    bound = eval(f"(lambda *args, **options: (args, options))({arguments}", names)  # noqa: S307
    own = (names["server"],) if target is Server.run else ()
    inspect.signature(target).bind(*own, *bound[0], **bound[1])
    options = {name: value for name, value in bound[1].items() if name not in ("port", "host")}
    typedmcp.asgi(names["server"], **options)


@row("ASGI application")
@row("no sessions")
@row("resumable streams")
@row("hosts and origins")
@row("bearer tokens")
@row("key of the signed state")
async def _(code: str) -> None:
    assert callable((await ran(code))["_"])


@row("signed tokens")
@row("introspected tokens")
async def _(code: str) -> None:
    """Other tests verify tokens of an issuer that exists."""
    assert (await ran(code))["_"].issuer == "https://y"


@row("fixed tokens")
async def _(code: str) -> None:
    assert (await ran(code))["_"]("t") == typedmcp.Principal("a", frozenset(["x"]))


@row("scopes of all requests")
async def _(code: str) -> None:
    made = (await ran(code, verify=asgi_driver.verify))["_"]
    async with serving(auth=made) as application:
        for token, status in (("ada:x", 200), ("ada", 403)):
            application.bearer = token
            assert (await application.call("who").reply()).status == status


@row("tokens bound to a key (DPoP)")
async def _(code: str) -> None:
    made = (await ran(code, verify=asgi_driver.verify))["_"]
    async with serving(auth=made) as application:
        reply = await application.call("who").reply()
        assert (reply.status, reply.headers["www-authenticate"].split(" ")[:2]) == (401, ["Bearer,", "DPoP"])


@row("in another application")
async def _(code: str) -> None:
    from starlette.applications import Starlette

    assert (await ran(code, app=typedmcp.asgi(Server("s")), Starlette=Starlette))[
        "_"
    ].router.lifespan_context is not None


# Clients


def _for_clients() -> Server:
    server = Server("s", description="for clients")

    @server.tool
    async def f(ctx: Context, a: int) -> int:
        if a < 0:
            raise ToolError("negative")
        await ctx.progress(1)
        await ctx.info("m")
        return a

    server.add_resource(lambda: "hello", "data://motd")
    server.prompt("p")(_as_it_is)
    server.completion("p", "x")(_fruit)
    return server


def _as_it_is(x: str) -> str:
    return x


def _fruit(typed: str) -> list[str]:
    return ["apple", "bread"]


@row("server in this process")
@row("older revision")
@row("cache")
async def _(code: str) -> None:
    async with (await ran(code, server=_for_clients()))["_"] as client:
        assert text_of(await client.call_tool("f", {"a": 3})) == "3"


@row("URL")
@row("sign in with a browser")
@row("headers and token")
async def _(code: str) -> None:
    client = (await ran(code))["_"]
    with pytest.raises(typedmcp.ConnectionLostError):
        await client.open()
    await client.close()


@row("file with a server")
async def _(code: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=r"no such file: server\.py"):
        await (await ran(code))["_"].open()


@row("command")
@row("several servers")
async def _(code: str) -> None:
    made = (await ran(code))["_"]
    assert isinstance(made, Client | typedmcp_hosts.ClientGroup)


async def _by_client(code: str, **names: Any) -> Any:
    async with connect(_for_clients()) as client:
        return (await ran(code, client=client, **names))["_"]


@row("call")
@row("call timeout")
@row("call in tests")
async def _(code: str) -> None:
    result = await _by_client(code)
    assert (text_of(result), result.structured_content, result.is_error) == ("1", {"result": 1}, False)


@row("typed result")
async def _(code: str) -> None:
    assert await _by_client(code) == 1


@row("failed call as an exception")
async def _(code: str) -> None:
    await _by_client(code)
    with pytest.raises(ToolError, match="negative"):
        await _by_client(code.replace('"a": 1', '"a": -1'))


@row("all pages")
async def _(code: str) -> None:
    assert [tool.name for tool in await _by_client(code)] == ["f"]


@row("progress of a call")
async def _(code: str) -> None:
    steps: list[structs.ProgressNotificationParams] = []
    await _by_client(code, steps=steps)
    assert [step.progress for step in steps] == [1]


@row("server information")
async def _(code: str) -> None:
    assert (await _by_client(code)).name == "s"


@row("ping")
async def _(code: str) -> None:
    assert await _by_client(code) is None


@row("log level")
async def _(code: str) -> None:
    for revision in ("2026-07-28", "2025-11-25"):
        messages: list[structs.LoggingMessageNotificationParams] = []
        server = _for_clients()
        async with connect(server, revisions=[revision], on_log=messages.append) as client:
            await ran(code, client=client)
            await client.call_tool("f", {"a": 1})
            assert messages == []


@row("read")
async def _(code: str) -> None:
    assert text_of((await _by_client(code)).contents) == "hello"


@row("get a prompt")
async def _(code: str) -> None:
    assert text_of(await _by_client(code)) == "1"


@row("complete")
async def _(code: str) -> None:
    assert (await _by_client(code)).completion.values == ["apple"]


@row("answer forms")
@row("answer sampling requests")
@row("list roots")
@row("receive log messages")
async def _(code: str) -> None:
    messages: list[Any] = []
    async with (await ran(code, server=_for_clients(), answer=_sampled, messages=messages))["_"] as client:
        await client.call_tool("f", {"a": 1})
        assert [message.data for message in messages] == (["m"] if "messages" in code else [])


@row("receive changes")
async def _(code: str) -> None:
    server = _for_clients()
    for revision in ("2026-07-28", "2025-11-25"):
        async with connect(server, revisions=[revision]) as client, (await ran(code, client=client))["_"] as changes:
            server.add_tool(lambda: 1, name=f"later_in_{revision}")
            assert (await anext(changes)).kind == "tools"


# Clients that sign in


@row("without a browser")
@row("fixed redirect")
@row("registered client")
@row("client by its URL")
@row("stored tokens")
@row("client with a secret")
@row("client with a private key")
@row("assertion of a platform")
@row("bound tokens (DPoP)")
@row("identity provider")
async def _(code: str) -> None:
    """The option of the line is accepted for a server that nobody runs. `tests/typedmcp_auth` has what each does."""
    option = (await ran(code))["_"]
    with pytest.raises(typedmcp.ConnectionLostError):
        async with connect("http://127.0.0.1:1/mcp", auth=option):
            pass


@each("what", CHECKS)
def test_our_line_does_what_the_row_says(what: str) -> None:
    asyncio.run(asyncio.wait_for(cast("Any", CHECKS[what](HERE[what])), 60))
