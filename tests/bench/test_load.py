"""Servers over HTTP, and what they do under load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.plan import ContenderFailed
from bench.suites import http
from bench.suites._processes import MODERN, Contender, python

_WRK = shutil.which("wrk")
pytestmark = pytest.mark.skipif(_WRK is None, reason="wrk is not installed")

_SERVER = """
import asyncio, re, sys

UNDER_LOAD, connections = {under_load!r}, 0


async def serve(reader, writer):
    global connections
    connections += 1
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            body = await reader.readexactly(int(re.search(rb"(?i)content-length: (\\d+)", head)[1]))
            id, text = re.search(rb'"id":(\\d+)', body)[1], re.search(rb'"text":"(\\w+)"', body)[1]
            answer = b'{{"jsonrpc":"2.0","id":%b,"result":{{"content":[{{"type":"text","text":"%b"}}]}}}}' % (id, text)
            status = b"200 OK"
            if connections > 1:
                if UNDER_LOAD == "busy":
                    answer = b'{{"jsonrpc":"2.0","id":%b,"error":{{"code":-1,"message":"busy"}}}}' % id
                elif UNDER_LOAD == "refuses":
                    status = b"503 Busy"
                elif UNDER_LOAD == "hangs up":
                    break
                elif UNDER_LOAD == "dies":
                    sys.exit("too much")
            head = b"HTTP/1.1 %b\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
            writer.write(head % (status, len(answer)) + answer)
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
    ("under_load", "said"),
    [
        ("answers", None),
        ("busy", r"under load: .*'wrong': [1-9]"),
        ("refuses", r"under load: .*'not_2xx': [1-9]"),
        ("hangs up", r"under load: .*('requests': 0|'broken': [1-9])"),
        ("dies", "under load"),
    ],
)
def test_a_server_is_measured_as_long_as_it_answers_rightly(tmp_path: Path, under_load: str, said: str | None) -> None:
    assert _WRK is not None
    script = tmp_path / "server.py"
    script.write_text(_SERVER.format(under_load=under_load), encoding="utf-8")
    with http.running(Contender(under_load, python(script)), http.Load(_WRK, MODERN, "echo"), 1) as server:
        assert server.rate(0.2, 1) > 0
        if said is None:
            assert server.rate(0.2, 8) > 0
        else:
            with pytest.raises(ContenderFailed, match=said):
                server.rate(0.2, 8)


def test_a_server_that_streams_has_to_report_progress_under_load(tmp_path: Path) -> None:
    assert _WRK is not None
    script = tmp_path / "server.py"
    script.write_text(_SERVER.format(under_load="answers"), encoding="utf-8")
    with http.listening(Contender("no stream", python(script))) as (process, port):
        server = http.Server(process, http.Load(_WRK, MODERN, "report"), port)
        with pytest.raises(ContenderFailed, match=r"under load: .*'wrong': [1-9]"):
            server.rate(0.2, 8)
