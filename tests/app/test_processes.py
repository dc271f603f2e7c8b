"""Servers made of functions in child processes, over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.listening import running_on

SERVER = """
import asyncio
import logging
import os
import subprocess
import sys
import typedmcp

server = typedmcp.Server("odd", version="1")
print("while it is being imported")

@server.tool
def chatty(text: str) -> str:
    print("a print in a thread", text)
    sys.stdout.write("written\\n")
    os.write(1, b"to the descriptor\\n")
    subprocess.run(["echo", "from a child"])
    logging.getLogger("x").warning("a warning")
    return text

@server.tool
async def chatty_too(text: str) -> str:
    print("a print in the loop", text, flush=True)
    return text

@server.tool
def endless() -> str:
    raise SystemExit(3)

@server.tool
def blob(size: int) -> bytes:
    return bytes(size)

@server.tool
async def who(ctx: typedmcp.Context) -> dict[str, str]:
    return {name: ctx.headers[name] for name in ("x-own", "host") if name in ctx.headers}

if __name__ == "__main__":
    server.run(*sys.argv[1:2], **({"port": int(sys.argv[2])} if sys.argv[2:] else {}))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "srv \u00fc.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


def message(id: int | None, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method, "params": params}


def opening() -> list[dict[str, Any]]:
    client = {"name": "by hand", "version": "1"}
    first = message(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    return [first, message(None, "notifications/initialized")]


def call(id: int, name: str, **arguments: Any) -> dict[str, Any]:
    return message(id, "tools/call", name=name, arguments=arguments)


def answers(script: Path, messages: list[dict[str, Any]], end: str) -> tuple[dict[int, Any], str]:
    """Return the responses of a server to the last lines, and what it wrote to standard error."""
    data = "".join(json.dumps(one, ensure_ascii=False) + end for one in messages).encode()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, script], input=data, capture_output=True, timeout=60, check=True, env=env)
    lines = done.stdout.splitlines()
    return {found["id"]: found for found in map(json.loads, lines) if "id" in found}, done.stderr.decode()


@each("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_output_that_tools_print_stays_out_of_the_stream(script: Path, end: str) -> None:
    text = "h\u00e9\u2028\U0001f600 \\r\\n"
    found, beside = answers(script, [*opening(), call(1, "chatty", text=text), call(2, "chatty_too", text=text)], end)
    for id in (1, 2):
        assert found[id]["result"]["content"] == [{"type": "text", "text": text}]
    for written in (
        "while it is",
        "in a thread",
        "written",
        "to the descriptor",
        "from a child",
        "a warning",
        "in the loop",
    ):
        assert written in beside


def test_a_tool_that_ends_its_process_ends_only_its_call(script: Path) -> None:
    found, _ = answers(script, [*opening(), call(1, "endless"), call(2, "chatty", text="still there")], "\n")
    assert "error" in found[1] or found[1]["result"]["isError"]
    assert found[2]["result"]["content"][0]["text"] == "still there"


def test_a_large_binary_result_arrives_whole(script: Path) -> None:
    found, _ = answers(script, [*opening(), call(1, "blob", size=3_000_000)], "\n")
    (block,) = found[1]["result"]["content"]
    assert len(block["resource"]["blob"]) == 4_000_000


def test_a_tool_sees_the_headers_of_its_request(script: Path) -> None:
    async def main(url: str, revision: str) -> None:
        async with typedmcp.connect(url, headers={"X-Own": "mine"}, revisions=[revision]) as client:
            result = await client.call_tool("who")
            assert result.structured_content == {"x-own": "mine", "host": url.removeprefix("http://")[:-4]}

    with running_on([sys.executable, str(script), "http", "0"]) as url:
        for revision in ("2026-07-28", "2025-11-25"):
            asyncio.run(asyncio.wait_for(main(url, revision), 60))


SLOW = """
import asyncio
import sys
import typedmcp

async def opened(server):
    print("opening", file=sys.stderr, flush=True)
    if sys.argv[1] == "begin":
        await asyncio.sleep(60)
    yield
    print("closing", file=sys.stderr, flush=True)
    if sys.argv[1] == "end":
        await asyncio.sleep(60)

server = typedmcp.Server(lifespan=opened)
server.add_tool(lambda: "", name="nothing")
if __name__ == "__main__":
    server.run(*sys.argv[2:3], **({"port": 0} if sys.argv[2:] else {}))
"""


@each(
    "phase, seen, number, transport",
    [
        ("begin", ["opening"], signal.SIGTERM, []),
        ("begin", ["opening"], signal.SIGINT, ["http"]),
        ("end", ["opening", "closing"], signal.SIGINT, []),
        ("end", ["opening", "closing"], signal.SIGTERM, ["http"]),
    ],
)
def test_a_signal_ends_the_server_while_a_lifespan_takes_long(
    phase: str, seen: list[str], number: signal.Signals, transport: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    command = [sys.executable, str(path), phase, *transport]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for step in seen:
            while process.stderr.readline().strip().decode() != step:
                assert process.poll() is None
            if phase == "end" and transport and step == "opening":
                while b"running on" not in process.stderr.readline():
                    assert process.poll() is None
            time.sleep(0.1)  # it goes on waiting
            process.send_signal(number)
        process.communicate(timeout=50)  # less than the lifespan takes


@each("transport", ["stdio", "http"])
def test_the_error_of_a_lifespan_is_printed_with_its_traceback(transport: str, tmp_path: Path) -> None:
    path = tmp_path / "failing.py"
    path.write_text(SLOW.replace("yield", "raise KeyError('DB')\n    yield"))
    arguments = [] if transport == "stdio" else ["http"]
    done = subprocess.run([sys.executable, path, "now", *arguments], capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
    assert b"KeyError: 'DB'" in done.stderr
    assert b"failing.py" in done.stderr


@each(
    "transport, options, text",
    [
        ("stdio", {"port": 8000}, "port: for HTTP only"),
        ("stdio", {"host": "127.0.0.1"}, "host: for HTTP only"),
        ("http", {"port": 65536}, "port must be from 0 to 65535, not 65536"),
        ("http", {"port": -1}, "port must be from 0 to 65535, not -1"),
        ("http", {"port": "8000"}, "port must be an integer, not '8000'"),
        ("http", {"path": "mcp"}, "use '/mcp'"),
        ("http", {"sse_path": "sse"}, "use '/sse'"),
    ],
)
def test_an_invalid_address_is_rejected(transport: Any, options: dict[str, Any], text: str) -> None:
    server = typedmcp.Server()
    server.add_tool(lambda: "", name="nothing")
    with pytest.raises(typedmcp.UsageError, match=text):
        server.run(transport, **options)


def test_serving_inside_an_event_loop_is_an_error_with_a_remedy() -> None:
    server = typedmcp.Server()
    server.add_tool(lambda: "", name="nothing")

    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match=r"await typedmcp\.serve_async there"):
            server.run("http", port=0)

    asyncio.run(main())
