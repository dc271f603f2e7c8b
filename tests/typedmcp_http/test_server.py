"""A server in a process of its own, ended by signals. tests/docs/test_operators.py has the usual ends."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from tests.cases import each
from tests.server.http.asgi_driver import in_loop
from tests.server.http.streaming import connections

SERVER = """
import asyncio, signal
import typedmcp

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
server = typedmcp.Server("slow")

@server.tool
async def wait() -> str:
    await asyncio.sleep(600)
    return "waited"

server.run("http", port=0, grace=60)
print("after the end")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="servers are ended by signals")
@each("first", [signal.SIGINT, signal.SIGTERM])
@in_loop
async def test_a_second_ctrl_c_ends_a_server_at_once_and_quietly(first: int) -> None:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "running on" in line)
            port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
            async with connections(port, 1) as (connection,):
                calling = asyncio.create_task(connection.call("wait"))
                await asyncio.sleep(0.3)
                process.send_signal(first)
                next(line for line in process.stderr if "Waiting for connections" in line)
                process.send_signal(signal.SIGINT)
                await calling
                assert b"-31503" in await connection.body()
            out, err = await asyncio.to_thread(process.communicate)
        finally:
            process.kill()
    assert process.returncode == 0
    assert out == "after the end\n"
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="servers are ended by signals")
def test_a_server_that_has_nothing_to_do_ends_quietly_on_ctrl_c() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            next(line for line in process.stderr if "running on" in line)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in err) == (0, False)
