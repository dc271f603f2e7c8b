"""Servers over HTTP under load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.plan import FULL, ContenderError
from bench.suites import http
from bench.suites.processes import JAVA_MAX_WARM_UP_SECONDS, MODERN, Contender, make_python_command

_WRK = shutil.which("wrk")
__all__ = ["SERVER"]

pytestmark = pytest.mark.skipif(_WRK is None, reason="wrk is not installed")

SERVER = """
import asyncio, re, sys

UNDER_LOAD, connections = {under_load!r}, 0


async def serve(reader, writer):
    global connections
    connections += 1
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            body = await reader.readexactly(int(re.search(rb"(?i)content-length: (\\d+)", head)[1]))
            id, text = re.search(rb'"id":(\\d+)', body)[1], re.search(rb'"text":"(\\w+)"', body)[1]
            result = b'{{"content":[{{"type":"text","text":"%b"}}]}}' % text
            response = b'{{"jsonrpc":"2.0","id":%b,"result":%b}}' % (id, result)
            status = b"200 OK"
            if connections > 1:
                if UNDER_LOAD == "busy":
                    response = b'{{"jsonrpc":"2.0","id":%b,"error":{{"code":-1,"message":"busy"}}}}' % id
                elif UNDER_LOAD == "rejects":
                    status = b"503 Busy"
                elif UNDER_LOAD == "hangs up":
                    break
                elif UNDER_LOAD == "dies":
                    sys.exit("too much")
            head = b"HTTP/1.1 %b\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
            writer.write(head % (status, len(response)) + response)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        connections -= 1
        writer.close()


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("under_load", "error"),
    [
        ("responds", None),
        ("busy", r"under load: .*'wrong': [1-9]"),
        ("rejects", r"under load: .*'not_2xx': [1-9]"),
        ("hangs up", r"under load: .*('requests': 0|'broken': [1-9])"),
        ("dies", "under load"),
    ],
)
def test_a_server_must_respond_correctly_under_load(tmp_path: Path, under_load: str, error: str | None) -> None:
    assert _WRK is not None
    script = tmp_path / "server.py"
    script.write_text(SERVER.format(under_load=under_load), encoding="utf-8")
    with http.run_server(
        Contender(under_load, make_python_command(script)), http.Load(_WRK, MODERN, "echo"), 1
    ) as server:
        assert server.rate(0.2, 1) > 0
        if error is None:
            assert server.rate(0.2, 8) > 0
        else:
            with pytest.raises(ContenderError, match=error):
                server.rate(0.2, 8)


def test_a_streaming_server_must_report_progress_under_load(tmp_path: Path) -> None:
    assert _WRK is not None
    script = tmp_path / "server.py"
    script.write_text(SERVER.format(under_load="responds"), encoding="utf-8")
    with http.start_listening(Contender("no stream", make_python_command(script))) as (process, port):
        server = http.HttpServerRun(process, http.Load(_WRK, MODERN, "report"), port)
        with pytest.raises(ContenderError, match=r"under load: .*'wrong': [1-9]"):
            server.rate(0.2, 8)


def test_ids_of_the_longest_run_have_as_many_digits_as_their_placeholder() -> None:
    fastest = 100_000  # requests per second, more than any server makes
    assert fastest * http.MAX_SECONDS < http.IDS_PER_TURN
    warm_up = int(JAVA_MAX_WARM_UP_SECONDS / FULL.seconds)
    turns = warm_up + 3 * FULL.parts * 2
    assert len(str(http.ID_PLACEHOLDER + turns * http.IDS_PER_TURN)) == len(str(http.ID_PLACEHOLDER))
