"""Child processes: their environment, their streams, their end, and the end of their client."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tests.cases import each
from tests.paths import ROOT
from typedmcp import ConnectionLostError, UsageError
from typedmcp.transports import process
from typedmcp.transports.process import ProcessTransport
from typedmcp.transports.process_parameters import SAFE_ENVIRONMENT, StdioServerParameters

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="the tests read /proc")

T = TypeVar("T")

SERVERS = ROOT / "tests" / "servers"
ACTOR = str(SERVERS / "child_actor.py")
CLIENT = str(SERVERS / "child_client.py")
TIMEOUT = 60
MEGABYTE = 1 << 20
IMPATIENT: dict[str, Any] = {"close_timeout": 0.1, "terminate_timeout": 0.1}


class Run(Protocol):
    def __call__(self, main: Coroutine[Any, Any, T]) -> T: ...


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
with suppress(ImportError):
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop


def on(loop: str, has_process_groups: bool = True) -> Run:
    """Return a function that runs a coroutine on one kind of event loop, with a timeout."""

    def run(main: Coroutine[Any, Any, T]) -> T:
        async def timed() -> T:
            return await asyncio.wait_for(main, TIMEOUT)

        with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            patch.setattr(process, "HAS_PROCESS_GROUPS", has_process_groups)
            return runner.run(timed())

    return run


RUNS = {loop: on(loop) for loop in LOOPS}
PORTABLE = {"without process groups": on("asyncio", has_process_groups=False)}
"""The way of systems without process groups, which do not have uvloop either."""
on_each_loop = each("run", RUNS.values(), ids=RUNS)
either_way = each("run", [*RUNS.values(), *PORTABLE.values()], ids=[*RUNS, *PORTABLE])


@pytest.fixture(autouse=True, scope="module")
def run_each_loop_once() -> None:
    """Run each kind of event loop once before the tests count descriptors: the first one keeps a pipe open."""
    for factory in LOOPS.values():
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.sleep(0))


@pytest.fixture(autouse=True)
def check_for_leaks() -> Generator[None]:
    """Fail a test that leaves a descriptor, a process or a zombie. What others have left may go meanwhile."""
    before: dict[Any, str] = {**descriptors(), **children(os.getpid())}
    yield
    latest = time.monotonic() + 30.0  # a thread that starts a process ends it even if nobody waits for the start
    while (left := _left_since(before)) and time.monotonic() < latest:
        time.sleep(0.01)
        gc.collect()
    assert left == {}


def _left_since(before: dict[Any, str]) -> dict[Any, str]:
    now: dict[Any, str] = {**descriptors(), **children(os.getpid())}
    return {key: value for key, value in now.items() if before.get(key) != value}


def descriptors() -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of this listing
            found[entry.name] = os.readlink(entry)
    return found


def children(parent: int) -> dict[int, str]:
    """Return the names of the children of a process by their numbers, zombies included."""
    fields = {int(entry.name): stat_of(int(entry.name)) for entry in Path("/proc").glob("[0-9]*")}
    return {pid: stat[0] for pid, stat in fields.items() if stat and stat[2] == str(parent)}


def stat_of(pid: int) -> list[str]:
    """Return name, state, parent, group and so on of a process, or an empty list if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    name, rest = text.split("(", 1)[1].rsplit(")", 1)
    return [name, *rest.split()]


def has_ended(pid: int) -> bool:
    return (stat_of(pid) or ["", "Z"])[1] in "ZX"


def assert_ended(*pids: int, within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not all(map(has_ended, pids)):
        assert time.monotonic() < deadline, [stat_of(pid)[:2] for pid in pids]
        time.sleep(0.01)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def actor(*arguments: str, **options: Any) -> StdioServerParameters:
    return StdioServerParameters(sys.executable, ["-S", ACTOR, *arguments], **options)


@asynccontextmanager
async def child(*arguments: str, **options: Any) -> AsyncGenerator[ProcessTransport]:
    transport = await ProcessTransport.start(actor(*arguments, **options))
    try:
        yield transport
    finally:
        await transport.close()


async def read_line(transport: ProcessTransport) -> str:
    data = b""
    while not data.endswith(b"\n"):
        chunk = await transport.read()
        assert chunk, transport.describe_end()
        data += chunk
    return data.decode().rstrip()


async def read_all(transport: ProcessTransport) -> bytes:
    chunks: list[bytes] = []
    while chunk := await transport.read():
        chunks.append(chunk)
    return b"".join(chunks)


async def read_exactly(transport: ProcessTransport, size: int) -> bytes:
    chunks: list[bytes] = []
    while size > 0:
        chunks.append(await transport.read())
        assert chunks[-1], transport.describe_end()
        size -= len(chunks[-1])
    return b"".join(chunks)


# The start


@either_way
def test_a_child_gets_the_safe_variables_and_the_added_ones(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("SHELL", "() { :; }")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("USER", "another")

    async def main() -> None:
        transport = await ProcessTransport.start(StdioServerParameters("env", ["-0"], env={"MORE": "é", "USER": "me"}))
        names = dict(entry.split("=", 1) for entry in (await read_all(transport)).decode().split("\0") if entry)
        await transport.close()
        safe = {name: os.environ[name] for name in SAFE_ENVIRONMENT if name in os.environ}
        del safe["SHELL"]
        assert names == {**safe, "MORE": "é", "USER": "me"}

    run(main())


@either_way
def test_a_child_starts_in_the_given_directory(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with child("print_directory", cwd=tmp_path) as transport:
            assert await read_line(transport) == str(tmp_path)

    run(main())


@either_way
@each(
    "parameters, error, text",
    [
        ({"command": "no-such-command"}, ConnectionLostError, "'no-such-command': no such program"),
        ({"command": __file__}, ConnectionLostError, "Permission denied"),
        ({"command": "/"}, ConnectionLostError, "Permission denied"),
        ({"command": "env", "cwd": "/no/such/place"}, UsageError, "no directory /no/such/place"),
        ({"command": "env", "args": ["a\0b"]}, UsageError, "null byte"),
        ({"command": "env", "env": {"A": 1}}, UsageError, "int"),
    ],
)
def test_an_error_says_why_a_command_cannot_be_started(
    run: Run, parameters: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        run(ProcessTransport.start(StdioServerParameters(**parameters, stderr="capture")))


@each("wrong", [{"args": "-v"}, {"stderr": "pipe"}, {"encoding": "utf-9"}])
def test_invalid_parameters_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        StdioServerParameters("env", **wrong)


@on_each_loop
def test_running_out_of_descriptors_at_any_point_of_the_start_leaks_nothing(run: Run) -> None:
    async def main() -> int:
        for count in itertools.count():
            with limit_descriptors(count), suppress(ConnectionLostError):
                transport = await ProcessTransport.start(actor("echo", stderr="capture"))
                await transport.close()
                assert transport.exit_status == 0
                return count
        raise AssertionError

    assert 4 <= run(main()) < 30


@contextmanager
def limit_descriptors(count: int) -> Generator[None]:
    """Leave only so many descriptors that can be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, descriptors())) + 50, limits[1]))
    filling: list[int] = []
    try:
        with suppress(OSError):
            while True:
                filling.append(os.dup(0))
        for _ in range(count):
            os.close(filling.pop())
        yield
    finally:
        for descriptor in filling:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_children_of_two_threads_share_no_descriptors() -> None:
    found: list[str] = []
    barrier = threading.Barrier(2, timeout=TIMEOUT)

    async def main() -> None:
        for _ in range(3):
            barrier.wait()
            async with child("print_descriptors", stderr="capture") as first, child("print_descriptors") as second:
                found.extend([await read_line(first), await read_line(second)])

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert found == ["0,1,2"] * 12


# The stream


@either_way
def test_bytes_arrive_unchanged_in_any_chunking(run: Run) -> None:
    chance = random.Random(0)
    data = chance.randbytes(300_000)

    async def main() -> None:
        async with child("echo") as transport:
            rest = data
            while rest:
                size = chance.choice([1, 7, 1000, 70_000])
                transport.write(rest[:size])
                rest = rest[size:]
                if chance.random() < 0.3:
                    await asyncio.sleep(0)
            assert await read_exactly(transport, len(data)) == data
        assert transport.exit_status == 0

    run(main())


@either_way
def test_large_amounts_pass_in_both_directions(run: Run) -> None:
    data = random.Random(0).randbytes(5 * MEGABYTE)

    async def main() -> None:
        async with child("echo") as transport:

            async def send() -> None:
                for start in range(0, len(data), 100_000):
                    transport.write(data[start : start + 100_000])
                    if transport.is_congested:
                        await transport.drain()

            sending = asyncio.create_task(send())
            assert await read_exactly(transport, len(data)) == data
            await sending

    run(main())


@either_way
def test_a_child_that_does_not_read_congests_the_transport(run: Run) -> None:
    async def main() -> None:
        async with child("ignore_end", **IMPATIENT) as transport:
            await read_line(transport)
            transport.write(bytes(8 * MEGABYTE))
            assert transport.is_congested
            os.kill(transport.pid, signal.SIGKILL)
            await transport.drain()
            transport.write(b"dropped")

    run(main())


@either_way
def test_a_killed_child_ends_the_stream(run: Run) -> None:
    async def main() -> None:
        async with child("echo", stderr="capture") as transport:
            transport.write(b"x")
            assert await transport.read() == b"x"
            assert transport.describe_end() == "still running"
            os.kill(transport.pid, signal.SIGKILL)
            assert await transport.read() == b""
            assert (transport.exit_status, transport.describe_end()) == (-signal.SIGKILL, "killed by SIGKILL")
            assert await transport.read() == b""
        assert transport.exit_status == -signal.SIGKILL

    run(main())


@either_way
def test_a_real_time_signal_has_a_number(run: Run) -> None:
    async def main() -> None:
        async with child("echo") as transport:
            os.kill(transport.pid, signal.SIGRTMIN + 1)
            assert await transport.read() == b""
            assert transport.describe_end() == f"killed by signal {signal.SIGRTMIN + 1}"

    run(main())


# Closing


@either_way
def test_close_sends_the_queued_bytes_and_lets_the_child_exit_by_itself(run: Run, tmp_path: Path) -> None:
    data = random.Random(0).randbytes(8 * MEGABYTE)

    async def main() -> None:
        async with child("save", str(tmp_path / "received"), close_timeout=TIMEOUT) as transport:
            transport.write(data)
        transport.write(b"too late")
        assert transport.exit_status == 0

    run(main())
    assert (tmp_path / "received").read_bytes() == data


@either_way
def test_a_child_can_exit_while_its_output_is_not_read(run: Run) -> None:
    async def main() -> None:
        async with child("write_first", close_timeout=TIMEOUT) as transport:
            transport.write(bytes(MEGABYTE))
        assert transport.exit_status == 0

    run(main())


@either_way
def test_the_queued_bytes_and_the_exit_of_the_child_share_the_time_to_close(run: Run) -> None:
    async def seconds(queued: int) -> float:
        sleeper = StdioServerParameters(sys.executable, ["-c", "import time; time.sleep(60)"], close_timeout=1)
        transport = await ProcessTransport.start(sleeper)
        transport.write(bytes(queued))
        start = time.monotonic()
        await transport.close()
        return time.monotonic() - start

    async def main() -> None:
        with_bytes, without = await asyncio.gather(seconds(8 * MEGABYTE), seconds(0))
        assert 1 <= with_bytes < 1.6 * without

    run(main())


@either_way
def test_close_ends_a_waiting_read(run: Run) -> None:
    async def main() -> None:
        async with child("echo") as transport:
            reading = asyncio.create_task(transport.read())
            await asyncio.sleep(0)
        assert await reading == b""
        assert await transport.read() == b""

    run(main())


@either_way
@each("ignores, number", [([], signal.SIGTERM), (["terminate"], signal.SIGKILL)], ids=["SIGTERM", "SIGKILL"])
def test_a_child_that_ignores_the_end_of_its_input_gets_a_signal(run: Run, ignores: list[str], number: int) -> None:
    async def main() -> None:
        async with child("ignore_end", *ignores, **IMPATIENT) as transport:
            await read_line(transport)
        assert transport.exit_status == -number

    run(main())


@on_each_loop
@each("leader, status", [("stays", -signal.SIGKILL), ("reads", 0), ("exits", 0)])
def test_the_processes_that_a_child_started_end_with_it(run: Run, leader: str, status: int) -> None:
    """They end even if the child itself exited long before."""

    async def main() -> int:
        async with child("start_group", leader, **IMPATIENT) as transport:
            grandchild = int(await read_line(transport))
            if leader == "exits":
                await until(lambda: transport.exit_status is not None)
            assert not has_ended(grandchild)
        assert has_ended(grandchild)
        assert transport.exit_status == status
        return grandchild

    run(main())


@on_each_loop
def test_the_processes_that_a_failed_child_has_started_do_not_keep_its_output_open(run: Run) -> None:
    async def main() -> None:
        async with child("leave_child", "3") as transport:
            assert await transport.read() == b""
            assert transport.describe_end() == "exit status 3"

    run(main())


@either_way
def test_concurrent_and_repeated_closes_all_wait_for_the_end(run: Run) -> None:
    async def main() -> None:
        transport = await ProcessTransport.start(actor("ignore_end", "terminate", **IMPATIENT))
        await read_line(transport)

        async def close() -> None:
            await transport.close()
            assert has_ended(transport.pid)

        await asyncio.gather(close(), close(), close())
        await transport.close()

    run(main())


@on_each_loop
def test_a_cancelled_close_continues_in_the_background(run: Run) -> None:
    async def main() -> None:
        transport = await ProcessTransport.start(actor("start_group", "stays", **IMPATIENT))
        grandchild = int(await read_line(transport))
        closing = asyncio.create_task(transport.close())
        await asyncio.sleep(0.01)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not has_ended(transport.pid)
        await until(lambda: has_ended(transport.pid) and has_ended(grandchild))
        await transport.close()

    run(main())


@on_each_loop
def test_the_end_of_the_event_loop_during_a_shutdown_kills_the_child(run: Run) -> None:
    async def main() -> list[int]:
        transport = await ProcessTransport.start(actor("start_group", "stays", close_timeout=1000))
        grandchild = int(await read_line(transport))
        task = asyncio.create_task(transport.close())
        await asyncio.sleep(0.01)
        assert not task.done()
        return [transport.pid, grandchild]

    start = time.monotonic()
    assert_ended(*run(main()))
    assert time.monotonic() - start < 100


@either_way
def test_a_transport_that_is_never_closed_ends_with_the_event_loop(run: Run, tmp_path: Path) -> None:
    async def main() -> int:
        transport = await ProcessTransport.start(actor("save", str(tmp_path / "received")))
        transport.write(b"all of it")
        return transport.pid

    assert_ended(run(main()))
    assert (tmp_path / "received").read_bytes() == b"all of it"


@either_way
def test_a_cancelled_start_leaves_no_child(run: Run) -> None:
    async def main() -> None:
        starting = asyncio.create_task(ProcessTransport.start(actor("echo")))
        await asyncio.sleep(0)
        assert not starting.done()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    run(main())


@on_each_loop
def test_an_exit_is_noticed_if_the_system_cannot_wait_without_reaping(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "waitid")

    async def main() -> None:
        async with child("fail", "3") as transport:
            assert await transport.read() == b""
            assert transport.exit_status == 3
        async with child("ignore_end", "terminate", **IMPATIENT) as transport:
            await read_line(transport)
        assert transport.exit_status == -signal.SIGKILL

    run(main())


@on_each_loop
def test_other_code_may_reap_the_child(run: Run) -> None:
    async def main() -> None:
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            async with child("fail", "3") as transport:
                assert await transport.read() == b""
            assert transport.exit_status == 0, "the real status is lost"
        finally:
            signal.signal(signal.SIGCHLD, before)

    run(main())


# Standard error


@on_each_loop
def test_the_description_of_the_end_has_the_last_lines(run: Run) -> None:
    async def main() -> None:
        async with child("fail", "3", *(f"line {number}" for number in range(30)), stderr="capture") as transport:
            assert await transport.read() == b""
            tail = "\n".join(f"line {number}" for number in range(10, 30))
            assert transport.stderr_tail == tail
            assert transport.describe_end() == f"exit status 3; last lines on standard error: {tail}"

    run(main())


@on_each_loop
@each("stderr, inherited", [("inherit", "a word\n"), ("drop", ""), ("capture", "")])
def test_standard_error_goes_where_the_parameter_says(
    run: Run, stderr: str, inherited: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with child("fail", "3", "a word", stderr=stderr) as transport:
            assert await transport.read() == b""
        assert transport.stderr_tail == ("a word" if stderr == "capture" else "")

    run(main())
    assert capfd.readouterr().err == inherited


@on_each_loop
@each(
    "encoding, data, lines",
    [
        ("utf-8", "a\n\r\né\r\nlast".encode(), ["a", "", "é", "last"]),
        ("utf-8", b"\xff\n", ["\N{REPLACEMENT CHARACTER}"]),
        ("latin-1", b"\xe9\n", ["é"]),
        ("utf-16-le", "a\nĊ\n".encode("utf-16-le"), ["a", "Ċ"]),
        ("utf-8", b"x" * 1000 + b"\n", ["x" * 1000]),
    ],
)
def test_each_line_is_passed_to_the_function(run: Run, encoding: str, data: bytes, lines: list[str]) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with child("write_error", data.hex(), stderr=seen.append, encoding=encoding) as transport:
            pass
        assert transport.stderr_tail == "\n".join(lines)

    run(main())
    assert seen == lines


@on_each_loop
def test_a_function_that_fails_on_a_line_is_called_with_the_next_line(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def fail(line: str) -> None:
        seen.append(line)
        raise RuntimeError(line)

    async def main() -> None:
        async with child("fail", "0", "first", "second", stderr=fail) as transport:
            assert await transport.read() == b""

    with caplog.at_level(logging.ERROR, "typedmcp"):
        run(main())
    assert seen == ["first", "second"]
    assert len(caplog.records) == 2


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize()


@pytest.mark.long
@pytest.mark.parametrize("line", [0, 128], ids=["no newlines", "lines"])
@pytest.mark.parametrize("is_passed_on", [False, True], ids=["captured", "passed on"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_flood_on_standard_error_neither_blocks_the_child_nor_fills_memory(
    run: Run, line: int, is_passed_on: bool
) -> None:
    sizes: list[int] = [0, 0]

    def measure(text: str) -> None:
        sizes[0] = max(sizes[0], len(text))
        sizes[1] += len(text)

    async def main() -> None:
        before = resident()
        async with child("flood", "200", str(line), stderr=measure if is_passed_on else "capture") as transport:
            assert await read_line(transport) == "done"
            assert resident() - before < 16 * MEGABYTE
        assert 0 < len(transport.stderr_tail) <= 4096

    run(main())
    if is_passed_on:
        newlines = 200 * MEGABYTE // line if line else 0
        assert sizes == [line - 1 if line else 1 << 16, 200 * MEGABYTE - newlines]


# The end of the client


@contextmanager
def client(when: str, *arguments: str) -> Generator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Start a client process, and yield it with the processes that it started. All are killed afterwards."""
    with subprocess.Popen([sys.executable, CLIENT, when, *arguments], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        pids = [int(word) for word in killed.stdout.readline().split()]
        try:
            yield killed, pids
        finally:
            for pid in [killed.pid, *pids]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("when", ["main", "thread", "forked", "orphan"])
def test_a_killed_client_leaves_no_processes(when: str) -> None:
    with client(when) as (killed, pids):
        watchdogs = [pid for pid in children(killed.pid) if pid not in pids]
        assert len(watchdogs) == len(pids) // 2
        assert not any(map(has_ended, pids[1:]))
        killed.kill()
        ends, stays = (pids[:-1], pids[-1:]) if when == "forked" else (pids, [])
        assert_ended(*ends, *watchdogs)
        assert not any(map(has_ended, stays))


@each("when", ["early", "quits"])
def test_a_client_that_ends_during_the_start_leaves_no_processes(when: str) -> None:
    with client(when) as (_, pids):
        assert pids
        assert_ended(*pids)


def test_a_child_of_a_killed_client_has_time_to_clean_up(tmp_path: Path) -> None:
    with client("saving", str(tmp_path / "received")) as (killed, pids):
        killed.kill()
        assert_ended(*pids)
    assert (tmp_path / "received").read_bytes() == b"kept"


def test_a_client_that_adopts_orphans_reaps_them() -> None:
    with client("adopts") as (ended, pids):
        assert ended.stdout is not None
        assert ended.stdout.read() == b"none left\n"
        assert_ended(*pids, within=0)


@on_each_loop
def test_a_system_without_a_shell_gives_a_warning(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    popen = subprocess.Popen

    def without_shell(command: list[str], **options: Any) -> Any:
        return popen(["/no/such/shell" if command[0] == "/bin/sh" else command[0], *command[1:]], **options)

    monkeypatch.setattr(subprocess, "Popen", without_shell)

    async def main() -> None:
        async with child("echo"):
            pass

    with caplog.at_level(logging.WARNING, "typedmcp"):
        run(main())
    assert "will outlive" in caplog.text
