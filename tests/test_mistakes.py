"""Mistakes of people who begin: each error names the place, the cause, and what to write instead."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.paths import ROOT
from typedmcp import Context, Server, connect


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


@dataclass
class Table:
    persons: int


def untyped(value: Any) -> Any:
    """Return a value that type checkers know nothing about, as in code without checks."""
    return value


def greet() -> str:
    return "hello"


# Registration and options


def decorate_without_server() -> None:
    untyped(typedmcp).tool(run)


def name_of_another_library() -> None:
    untyped(typedmcp).FastMCP("s")


def register_unknown_class() -> None:
    class Odd: ...

    def f(a: Odd) -> None: ...

    f.__annotations__["a"] = Odd
    Server("s").tool(f)


def register_template_without_variable() -> None:
    @Server("s").resource("a://{x}")
    def f(y: str) -> str:
        return y


def pass_one_middleware() -> None:
    async def log(ctx: Context, params: Any, call_next: Any) -> Any:
        return await call_next(params)

    Server("s", middleware=untyped(log))


def run_with_misspelt_option() -> None:
    untyped(Server("s")).run(prot=80)


def run_over_http_with_misspelt_option() -> None:
    untyped(Server("s")).run("http", prot=80)


def run_over_stdio_with_port() -> None:
    untyped(Server("s")).run(port=80, path="/a")


def enter_without_async() -> None:
    with untyped(connect(Server("s"))):
        pass


def connect_to_number() -> None:
    async def main() -> None:
        async with connect(untyped(8000)):
            pass

    run(main())


def start_unknown_program() -> None:
    async def main() -> None:
        async with connect(["no-such-program-here"]):
            pass

    run(main())


RAISED: dict[Callable[[], None], tuple[type[Exception], str]] = {
    decorate_without_server: (ImportError, r"no attribute 'tool'; decorate with a server: .* then @server\.tool$"),
    name_of_another_library: (
        ImportError,
        r"no attribute 'FastMCP'; it is called Server here; .* from typedmcp_mcp1\.server\.fastmcp import FastMCP$",
    ),
    register_unknown_class: (
        typedmcp.UsageError,
        r"tool 'f': f\(\), parameter 'a': Odd has no JSON form; use a dataclass, TypedDict, Struct or model$",
    ),
    register_template_without_variable: (
        typedmcp.UsageError,
        r"resource 'a://\{x\}': f\(\), parameter 'y': the URI has no such variable; its variables are x$",
    ),
    pass_one_middleware: (typedmcp.UsageError, r"middleware must be a list, such as \[log\]$"),
    run_with_misspelt_option: (typedmcp.UsageError, "unknown option 'prot' of run and serve; .*mean 'port'"),
    run_over_http_with_misspelt_option: (typedmcp.UsageError, "unknown option 'prot' of run and serve; .*mean 'port'"),
    run_over_stdio_with_port: (typedmcp.UsageError, r'port and path: for HTTP only: run\("http", …\)'),
    enter_without_async: (typedmcp.UsageError, r"entered with `async with`; typedmcp\.sync\.connect is for code"),
    connect_to_number: (typedmcp.UsageError, "cannot connect to int; expected a URL, a file, a command"),
    start_unknown_program: (
        typedmcp.ConnectionLostError,
        "cannot start 'no-such-program-here': no such program, neither as a path nor in the folders of PATH$",
    ),
}


@each("mistake", RAISED, ids=lambda mistake: mistake.__name__)
def test_a_mistake_raises_an_error_that_says_what_to_write(mistake: Callable[[], None]) -> None:
    kind, text = RAISED[mistake]
    with pytest.raises(kind, match=text):
        mistake()


def test_the_warning_about_the_name_of_a_tool_is_at_the_line_of_the_author() -> None:
    server = Server("s")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        server.tool("my tool")(greet)
        server.tool(name="their tool")(greet)
        server.add_tool(greet, name="our tool")
    assert [warning.filename for warning in caught] == [__file__] * 3


# Calls


def asking_server() -> Server:
    server = Server("s")

    @server.tool
    async def book(ctx: Context) -> str:
        return str(await ctx.elicit("How many?", Table))

    @server.tool
    async def book_with_an_object(ctx: Context) -> str:
        table: object = Table(2)
        return str(await ctx.elicit("How many?", table))

    @server.tool
    def refuse() -> str:
        raise typedmcp.ToolError

    @server.resource("a://b")
    def odd() -> object:
        return {"a": object()}

    @server.prompt
    def strange() -> Any:
        return [{"role": "nobody", "content": "a"}]

    return server


def test_a_call_that_needs_a_callback_names_the_option() -> None:
    async def main() -> None:
        async with connect(asking_server()) as client:
            with pytest.raises(typedmcp.MissingCapabilityError, match=r"elicitation; declare it with .*, elicit=…\)"):
                await client.call_tool("book")

    run(main())


def test_a_result_type_that_does_not_fit_is_named() -> None:
    async def main() -> None:
        async with connect(asking_server()) as client:
            with pytest.raises(typedmcp.ToolError, match=r"^ToolError without a text$"):
                await client.call_tool("refuse", result_type=int)
        server = Server("t")
        server.add_tool(lambda: "a", name="f")
        async with connect(server) as client:
            with pytest.raises(typedmcp.ProtocolError, match=r"does not fit the result_type int$"):
                await client.call_tool("f", result_type=int)

    run(main())


def test_arguments_in_place_of_options_are_explained() -> None:
    async def main() -> None:
        async with connect(asking_server()) as client:
            with pytest.raises(TypeError, match=r"unknown option 'city' of a call; .* are one mapping, \{…\}$"):
                await untyped(client).call_tool("book", city="Oslo")

    run(main())


REPORTED = {
    ("tools/call", "book_with_an_object"): r"has no JSON form; .* pass the class Table",
    ("resources/read", "a://b"): r"odd\(\) at .*test_mistakes\.py:\d+ returned dict with object",
    ("prompts/get", "strange"): r"strange\(\) at .*test_mistakes\.py:\d+ returned list: ",
}


@each("method, name", REPORTED)
def test_a_report_about_a_value_of_the_author_has_the_place_and_the_remedy(method: str, name: str) -> None:
    async def main() -> list[str]:
        reports = list[typedmcp.Diagnostic]()
        config = typedmcp.ServerConfig(asking_server(), on_diagnostic=reports.append)
        async with connect(config, elicit=lambda question: None) as client:
            uses: dict[str, Callable[[str], Any]] = {
                "tools/call": client.call_tool,
                "resources/read": client.read_resource,
                "prompts/get": client.get_prompt,
            }
            with suppress(typedmcp.RemoteError):
                await uses[method](name)
        return [report.text for report in reports]

    (report,) = run(main())
    assert re.search(REPORTED[method, name], report)


# Addresses and processes


def test_an_address_without_a_server_says_that_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match=f"127.0.0.1:{port}/mcp: no server listens there"):
            await connect(f"http://127.0.0.1:{port}/mcp")

    run(main())


def test_https_to_a_server_without_tls_suggests_http() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            with pytest.raises(typedmcp.ConnectionLostError, match="does not seem to speak TLS: try http://"):
                await connect(f"https://127.0.0.1:{port}/mcp")

    run(main())


def test_a_missing_token_is_explained_with_the_text_of_the_server() -> None:
    error = typedmcp.AuthorizationRequiredError(
        401, "Bearer", '{"error": {"code": 1, "message": "a token is required"}}'
    )
    assert str(error.attach_call("tools/list", 1)) == (
        "tools/list (id 1): the access token is missing or not valid (401, Bearer): a token is required; "
        "connect(…, auth=…) sends one"
    )


def test_a_file_that_does_not_run_its_server_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("import typedmcp\nserver = typedmcp.Server('s')\n", encoding="utf-8")

    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match=r"exit status 0; .* must call server\.run\(\)$"):
            await connect(file)

    run(main())


def test_an_extra_that_is_missing_is_named_with_the_commands_that_install_it(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError('no uvicorn')", encoding="utf-8")
    code = "import typedmcp; typedmcp.Server('s').run('http')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False, capture_output=True, text=True, cwd=ROOT, timeout=30, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    expected = "serving HTTP needs the extra http: pip install 'typedmcp[http]', or in a checkout, python tools/instal"
    assert expected in done.stderr
