"""A server as a process: its standard streams, its end, and clients that misbehave."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

import pytest

import typedmcp
from tests.cases import each
from tests.paths import ROOT
from typedmcp.server.config import CANCELLATION_SHARE, ServerConfig

SERVER = ROOT / "tests" / "servers" / "talkative.py"
COMMAND = [sys.executable, "-W", "error", str(SERVER)]
PATIENCE = 60
Stream: TypeAlias = int | IO[bytes]
Json: TypeAlias = dict[str, Any]
INFO = {"name": "c", "version": "1"}
OPENING: list[Json] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO},
    },
    {"method": "notifications/initialized"},
]
each_loop = each("loop", [[], ["--asyncio"]], ids=["uvloop", "asyncio"])


def lines(*messages: Json) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


def call(id: int, name: str, **arguments: Any) -> Json:
    return {"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def texts(output: bytes) -> dict[int, str]:
    """Return the texts of results by id. Fail unless every line of the output is a message."""
    messages = [json.loads(line) for line in output.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    return {m["id"]: m["result"]["content"][0]["text"] for m in messages if "content" in m.get("result", {})}


@contextmanager
def process(
    *arguments: str, stdin: Stream = subprocess.PIPE, stdout: Stream = subprocess.PIPE
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server process, and kill it afterwards."""
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, bufsize=0, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE) as server:
        try:
            yield server
        finally:
            server.kill()


def read_lines(stream: IO[bytes] | None, count: int) -> list[Json]:
    assert stream is not None
    data = b""
    while data.count(b"\n") < count:
        chunk = os.read(stream.fileno(), 1 << 16)
        assert chunk, data
        data += chunk
    return [json.loads(line) for line in data.splitlines()]


def write(server: subprocess.Popen[bytes], *messages: Json) -> None:
    assert server.stdin is not None
    server.stdin.write(lines(*messages))


@each_loop
def test_handlers_and_children_print_to_standard_error_and_cannot_read_messages(loop: list[str]) -> None:
    asked = lines(*OPENING, call(1, "print"), call(2, "read"), call(3, "echo", value="é"))
    with process(*loop) as server:
        out, err = server.communicate(asked, timeout=PATIENCE)
    assert texts(out) == {1: "printed", 2: "''", 3: "é"}
    assert server.returncode == 0
    for printed in (b"not a message", b"straight to file descriptor 1", b"from a child"):
        assert printed in err


def test_the_last_line_needs_no_newline_and_requests_before_the_end_get_responses(tmp_path: Path) -> None:
    asked = lines(*OPENING, call(1, "slow", seconds=0.1, leaves=str(tmp_path / "a")), call(2, "echo", value="last"))
    with process() as server:
        out, err = server.communicate(asked.rstrip(b"\n"), timeout=PATIENCE)
    assert texts(out) == {1: "slept", 2: "last"}
    assert (server.returncode, err) == (0, b"")


@each("loop, number", [([], signal.SIGINT), (["--asyncio"], signal.SIGINT), (["--asyncio"], signal.SIGTERM)])
def test_a_signal_lets_open_requests_finish(loop: list[str], number: signal.Signals, tmp_path: Path) -> None:
    with process(*loop) as server:
        slow = call(1, "slow", seconds=0.2, leaves=str(tmp_path / "a"))
        slow["params"]["_meta"] = {"progressToken": 1}
        write(server, *OPENING, slow)
        assert read_lines(server.stdout, 2)[1]["method"] == "notifications/progress"
        server.send_signal(number)
        out, err = server.communicate(timeout=PATIENCE)
    assert texts(out) == {1: "slept"}
    assert (server.returncode, err) == (0, b"")


def test_a_signal_gives_open_requests_limited_time(tmp_path: Path) -> None:
    with process() as server:
        slow = call(1, "slow", seconds=3600, leaves=str(tmp_path / "a"))
        slow["params"]["_meta"] = {"progressToken": 1}
        write(server, *OPENING, slow)
        read_lines(server.stdout, 2)
        server.terminate()
        out, err = server.communicate(timeout=PATIENCE)
    assert (texts(out), server.returncode, err) == ({}, 0, b"")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "ended"


@each("way", ["end of input", "SIGTERM"])
def test_a_call_that_is_open_at_the_end_is_cancelled_before_clients_lose_their_patience(
    way: str, tmp_path: Path
) -> None:
    """Clients kill a server two seconds after they have closed its input."""
    begun = time.monotonic()
    with process("--own-grace", str(tmp_path)) as server:
        late = call(1, "late", leaves=str(tmp_path / "a"))
        late["params"]["_meta"] = {"progressToken": 1}
        write(server, *OPENING, late)
        read_lines(server.stdout, 2)
        open = time.monotonic()
        if way == "SIGTERM":
            server.terminate()
        out, err = server.communicate(timeout=PATIENCE)
        ended = time.monotonic()
    assert (out, server.returncode, err) == (b"", 0, b"")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "ended"
    assert (tmp_path / "lifespan").read_text(encoding="utf-8") == "left"
    assert ended - open < 5 + 10 * (open - begun), "the end took long, as compared with the start"


def test_a_client_that_leaves_while_it_waits_gets_no_response(tmp_path: Path) -> None:
    with process("--long-grace", str(tmp_path)) as server:
        slow = call(1, "slow", seconds=30, leaves=str(tmp_path / "a"))
        slow["params"]["_meta"] = {"progressToken": 1}
        write(server, *OPENING, slow)
        read_lines(server.stdout, 2)
        time.sleep(0.7)  # later than messages that a client writes in one go
        out, err = server.communicate(timeout=PATIENCE)
    assert (out, server.returncode, err) == (b"", 0, b"")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "ended"
    assert (tmp_path / "lifespan").read_text(encoding="utf-8") == "left"


def test_the_default_grace_leaves_time_before_clients_kill_a_server() -> None:
    config = ServerConfig(typedmcp.Server("default"))
    assert config.connection_grace * (1 + CANCELLATION_SHARE) <= 1.5


def test_files_can_be_input_and_output(tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(lines(*OPENING, *[call(id, "echo", value="x" * id) for id in range(1, 300)]))
    with source.open("rb") as stdin, sink.open("wb") as stdout, process(stdin=stdin, stdout=stdout) as server:
        assert server.wait(PATIENCE) == 0
    assert texts(sink.read_bytes()) == {id: "x" * id for id in range(1, 300)}


@each_loop
def test_a_socket_can_be_input_and_output(loop: list[str]) -> None:
    mine, theirs = socket.socketpair()
    with mine, process(*loop, stdin=theirs.fileno(), stdout=theirs.fileno()) as server:
        theirs.close()
        mine.settimeout(PATIENCE)
        mine.sendall(lines(*OPENING, call(1, "echo", value="over a socket")))
        data = b""
        while data.count(b"\n") < 2:
            data += mine.recv(1 << 16)
        assert texts(data) == {1: "over a socket"}
        mine.shutdown(socket.SHUT_WR)
        assert server.wait(PATIENCE) == 0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals here")
@each_loop
def test_a_console_can_be_input_and_output(loop: list[str]) -> None:
    import pty
    import tty

    mine, theirs = pty.openpty()
    tty.setraw(theirs)
    with process(*loop, stdin=theirs, stdout=theirs) as server:
        os.close(theirs)
        os.write(mine, lines(*OPENING, call(1, "echo", value="typed")))
        data = b""
        while data.count(b"\n") < 2:
            data += os.read(mine, 1 << 16)
        assert texts(data) == {1: "typed"}
        server.terminate()
        assert server.wait(PATIENCE) == 0
    os.close(mine)


@each_loop
def test_a_reader_that_closes_its_end_ends_the_server_quietly(loop: list[str]) -> None:
    with process(*loop) as server:
        write(server, *OPENING)
        read_lines(server.stdout, 1)
        assert server.stdout is not None
        server.stdout.close()
        for id in range(1, 50):
            try:
                write(server, call(id, "large", size=100_000))
            except BrokenPipeError:
                break
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(PATIENCE) == 0
        assert server.stderr is not None
        assert server.stderr.read() == b""


@each_loop
def test_a_signal_does_not_wait_for_a_stalled_reader(loop: list[str]) -> None:
    with process(*loop) as server:
        write(server, *OPENING)
        read_lines(server.stdout, 1)
        write(server, *[call(id, "large", size=100_000) for id in range(1, 20)])
        assert server.stdout is not None
        os.read(server.stdout.fileno(), 100)  # it has begun to respond
        server.terminate()
        assert server.wait(PATIENCE) == 0


@each_loop
def test_a_large_message_passes_both_ways(loop: list[str]) -> None:
    large = "é" * (2 << 20)
    with process(*loop) as server:
        out, _ = server.communicate(lines(*OPENING, call(1, "echo", value=large)), timeout=PATIENCE)
    assert texts(out) == {1: large}


STUBBORN = [sys.executable, "-W", "error", str(SERVER.with_name("stubborn.py"))]
NEVER_ENDS: dict[str, tuple[str, Json]] = {
    "async": ("tools/call", {"name": "x", "arguments": {}}),
    "in a thread": ("resources/read", {"uri": "a:b"}),
}


@each("way, handler", [("end of input", "async"), ("SIGTERM", "async"), ("end of input", "in a thread")])
def test_a_handler_that_does_not_end_does_not_keep_the_process(way: str, handler: str) -> None:
    method, params = NEVER_ENDS[handler]
    with subprocess.Popen(STUBBORN, stdin=-1, stdout=-1, stderr=-1, bufsize=0) as server:
        try:
            write(server, *OPENING, {"id": 1, "method": method, "params": {**params, "_meta": {"progressToken": 1}}})
            read_lines(server.stdout, 2)
            if way == "SIGTERM":
                server.terminate()
            out, errors = server.communicate(timeout=PATIENCE)
            assert (out, server.returncode) == (b"", 0)
            assert (b"Stubborn.call_tool did not end within 0.05 s" in errors) is (handler == "async")
        finally:
            server.kill()


def test_a_server_process_can_serve_outside_the_main_thread() -> None:
    ping = lines({"id": 1, "method": "ping"})
    done = subprocess.run([*STUBBORN, "thread"], input=ping, capture_output=True, timeout=PATIENCE, check=True)
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors the POSIX way")
@each(
    "closed, said",
    [("<&-", b"standard input is closed"), (">&-", b"standard output is closed"), ("2>&-", b"")],
)
def test_a_closed_descriptor_is_named(closed: str, said: bytes) -> None:
    command = ["sh", "-c", f'"$0" "$@" {closed}', *COMMAND]
    done = subprocess.run(command, input=lines(*OPENING), capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode == 0) is (not said)
    assert said in done.stderr
    assert (b"protocolVersion" in done.stdout) is (not said)


def test_a_nonblocking_output_gets_everything_from_a_file(tmp_path: Path) -> None:
    """If input or output is a file, threads read and write."""
    source = tmp_path / "in"
    source.write_bytes(lines(*OPENING, *[call(id, "large", size=100_000) for id in range(1, 31)]))
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with source.open("rb") as stdin, process(stdin=stdin, stdout=writing) as server:
        os.close(writing)
        data = b""
        while chunk := os.read(reading, 1 << 20):
            data += chunk
        os.close(reading)
        assert server.wait(PATIENCE) == 0
    assert {id: len(text) for id, text in texts(data).items()} == dict.fromkeys(range(1, 31), 100_000)


def test_a_file_as_input_and_a_stalled_reader_end_in_time(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(lines(*OPENING, *[call(id, "large", size=100_000) for id in range(1, 31)]))
    with source.open("rb") as stdin, process("--asyncio", stdin=stdin) as server:
        assert server.wait(PATIENCE) == 0


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is read from /proc")
@pytest.mark.long
@each_loop
def test_a_stalled_reader_does_not_fill_the_memory(loop: list[str]) -> None:
    """2,000 responses of 100 KB are 200 MB; the client does not read them for a while."""
    count, size = 2_000, 100_000
    with process(*loop) as server:
        write(server, *OPENING)
        read_lines(server.stdout, 1)
        assert server.stdin is not None
        assert server.stdout is not None
        before = resident(server.pid)
        os.set_blocking(server.stdin.fileno(), False)
        waiting = lines(*[call(id, "large", size=size) for id in range(1, count + 1)])
        sent, idle = 0, 0
        while idle < 20:  # all that the server reads while its client does not read
            try:
                sent += os.write(server.stdin.fileno(), waiting[sent : sent + (1 << 16)])
                idle = 0
            except BlockingIOError:
                idle += 1
                time.sleep(0.02)
            if sent == len(waiting):
                break
        assert resident(server.pid) - before < 64 << 20
        answered = 0
        while answered < count:
            answered += os.read(server.stdout.fileno(), 1 << 20).count(b"\n")
            if sent < len(waiting):
                with suppress(BlockingIOError):
                    sent += os.write(server.stdin.fileno(), waiting[sent : sent + (1 << 16)])
        assert resident(server.pid) - before < 96 << 20
