"""A server as a child process, spoken to over its standard input and output, and ended with all that it started.

The child leads a session and process group of its own, so signals reach what it has started too, and Ctrl-C in a
terminal does not: whoever started it ends it. Processes that leave the group (by `setsid`) are out of reach.

When the client is killed and cannot end anything, a watchdog does: one small shell for each child, which waits for the
end of a pipe that nobody but the client holds open.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from typedmcp.errors import ConnectionLost, UsageError
from typedmcp.transports.streams import StreamTransport

__all__ = ["SAFE_ENVIRONMENT", "ProcessTransport", "StdioServerParameters"]

_log = logging.getLogger("typedmcp")

_POSIX = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_WINDOWS = (
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
SAFE_ENVIRONMENT: tuple[str, ...] = _WINDOWS if sys.platform == "win32" else _POSIX
"""The variables that a child inherits: none in which a secret is likely to stand."""

_CHUNK = 1 << 16
"""How many bytes are read at once: as many as a pipe holds."""

_CATCH_UP = 16
"""How many chunks of standard error are read while closing; somebody may go on writing for ever."""

_LINE = 1 << 16
"""How many characters of standard error are held until a newline comes."""

_TAIL_LINES = 20
_TAIL = 4 << 10
"""How many lines and bytes of standard error are kept."""

_LAST_WORDS = 0.5
"""For how many seconds the end of the output waits for that of the process, which is to be told with it."""

_LAST_RESORT = 0.5
"""For how many seconds the loop is held up for a killed process, where there is no other way to await its end."""

_PAUSE = 0.02
"""Seconds between two looks at whether a process group is empty, of which no system gives notice."""


@dataclass(frozen=True, slots=True)
class StdioServerParameters:
    """How a server is started, and what happens to what it writes to standard error.

    `env` is added to what is inherited (`SAFE_ENVIRONMENT`). With `stderr="capture"` the last lines are kept for error
    messages; a callable gets each line as well, without its newline and in pieces of 64 Ki characters. `encoding` is
    that of standard error. The timeouts are the seconds of each step of shutting down: for what is queued and then for
    the child to exit by itself, after SIGTERM, and after SIGKILL. Raises `UsageError` for values that make no sense.
    """

    command: str
    args: Sequence[str] = ()
    _: KW_ONLY
    env: Mapping[str, str] | None = None
    cwd: str | os.PathLike[str] | None = None
    encoding: str = "utf-8"
    stderr: Literal["inherit", "capture", "drop"] | Callable[[str], object] = "inherit"
    close_timeout: float = 2.0
    terminate_timeout: float = 2.0
    kill_timeout: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.args, str):
            raise UsageError(f"args is a list of strings, such as [{self.args!r}]")
        if not callable(self.stderr) and self.stderr not in ("inherit", "capture", "drop"):
            raise UsageError(f"stderr is 'inherit', 'capture', 'drop' or a callable, not {self.stderr!r}")
        try:
            codecs.getincrementaldecoder(self.encoding)
        except LookupError as error:
            raise UsageError(str(error)) from error


class ProcessTransport:
    """The connection to a child process; made by `start`.

    It has to be closed. Where the event loop ends before (`asyncio.run` does so properly) it closes itself.
    """

    def __init__(self, parameters: StdioServerParameters, resources: AsyncExitStack) -> None:
        self._parameters = parameters
        with ExitStack() as ends:
            stdin_read, stdin_write = _pipe(ends)
            stdout_read, stdout_write = _pipe(ends)
            # One for each direction, since the child's input ends before its output.
            self._stdin = StreamTransport(stdin_write, stdin_write)
            resources.push_async_callback(self._stdin.close)
            self._stdout = _Output(stdout_read, stdout_read)
            resources.push_async_callback(self._stdout.close)
            self._stderr, error_sink = _open_stderr(parameters, ends)
            resources.callback(self._stderr.close)
            lifeline = _Lifeline()
            resources.callback(lifeline.end)
            lifeline.watch(stdin_read)
            process = _launch(parameters, stdin_read, stdout_write, error_sink)
            self._child = _Child(process)
            resources.callback(self._child.end)
            lifeline.guard(process.pid)
            self._child.watch()
        self._resources = resources.pop_all()
        self._closing = asyncio.Event()
        self._life = asyncio.get_running_loop().create_task(self._live())
        _lives.add(self._life)
        self._life.add_done_callback(_lives.discard)

    @classmethod
    async def start(cls, parameters: StdioServerParameters) -> ProcessTransport:
        """Start a child.

        Raises `ConnectionLost` where the command does not exist or cannot be executed, and `UsageError` where the
        working directory does not exist or a parameter is none that a process can be given.
        """
        if sys.platform == "win32":
            raise UsageError("child processes are not supported on Windows")
        if parameters.cwd is not None and not os.path.isdir(parameters.cwd):
            raise UsageError(f"cannot start {parameters.command!r}: there is no directory {os.fspath(parameters.cwd)}")
        async with AsyncExitStack() as resources:
            try:
                transport = cls(parameters, resources)
            except OSError as error:
                raise ConnectionLost(f"cannot start {parameters.command!r}: {error}") from error
            except (TypeError, ValueError) as error:
                raise UsageError(f"cannot start {parameters.command!r}: {error}") from error
        try:
            await asyncio.sleep(0)  # `_live` runs from here on, and ends the child whatever happens
        except asyncio.CancelledError:
            transport._closing.set()
            raise
        return transport

    async def read(self) -> bytes:
        """The next bytes; empty at the end, and as soon as somebody closes.

        At the end `exit_status` and `stderr_tail` are there already, unless the child only closed its output.
        """
        data = await self._stdout.read()
        if not data and not self._closing.is_set():
            await _within(_LAST_WORDS, self._child.exited.wait())
        return data

    def write(self, data: bytes) -> None:
        """Send bytes to the child, or queue what it does not take now."""
        self._stdin.write(data)

    @property
    def congested(self) -> bool:
        """Whether too much waits to be sent."""
        return self._stdin.congested

    async def drain(self) -> None:
        """Wait until the child keeps up."""
        await self._stdin.drain()

    async def close(self) -> None:
        """Send what is queued, close the child's standard input, and see that it ends with all that it started.

        Who does not end in time is terminated, then killed. Cancelled, the shutdown goes on by itself; it takes no
        longer than its timeouts.
        """
        self._closing.set()
        await asyncio.wait([self._life])

    @property
    def pid(self) -> int:
        """The number of the process, and of the group that it leads. Others may have it once this is closed."""
        return self._child.pid

    @property
    def exit_status(self) -> int | None:
        """What the child exited with; None while it runs, the signal's number below zero where one has killed it."""
        return self._child.status

    @property
    def stderr_tail(self) -> str:
        """The last lines of standard error, at most 20 and 4 KiB; empty where it is inherited or dropped."""
        return self._stderr.tail

    def describe_end(self) -> str:
        """How the child ended and what it said last, for error messages."""
        status = self.exit_status
        if status is None:
            how = "still running"
        elif status < 0:
            how = f"killed by {_signal_name(-status)}"
        else:
            how = f"exit status {status}"
        return f"{how}; last lines on standard error: {self.stderr_tail}" if self.stderr_tail else how

    async def _live(self) -> None:
        """End the child when somebody closes, or when the loop's end cancels this; cancelled once more, kill it."""
        try:
            await self._closing.wait()
        except asyncio.CancelledError:
            self._closing.set()
        try:
            await self._shut_down()
        finally:
            await self._resources.aclose()

    async def _shut_down(self) -> None:
        parameters, child = self._parameters, self._child
        self._stdout.discard()
        await _within(parameters.close_timeout, self._stdin.close())
        await _within(parameters.close_timeout, child.exited.wait())
        for number, seconds in (
            (signal.SIGTERM, parameters.terminate_timeout),
            (signal.SIGKILL, parameters.kill_timeout),
        ):
            if not child.is_gone():
                child.signal(number)
                await _within(seconds, child.gone())


_lives: set[asyncio.Task[None]] = set()
"""What an event loop holds weakly only."""


def _pipe(ends: ExitStack) -> tuple[int, int]:
    """A pipe whose ends are closed with the stack. Like all that Python opens, no other child inherits them."""
    pair = os.pipe()
    for end in pair:
        ends.callback(os.close, end)
    return pair


def _open_stderr(parameters: StdioServerParameters, ends: ExitStack) -> tuple[_ErrorOutput, int | None]:
    """What reads standard error, and what the child gets as such."""
    if parameters.stderr == "inherit":
        return _ErrorOutput(None, parameters), None
    if parameters.stderr == "drop":
        return _ErrorOutput(None, parameters), subprocess.DEVNULL
    source, sink = _pipe(ends)
    return _ErrorOutput(source, parameters), sink


def _launch(parameters: StdioServerParameters, stdin: int, stdout: int, stderr: int | None) -> subprocess.Popen[bytes]:
    inherited = {name: os.environ[name] for name in SAFE_ENVIRONMENT if name in os.environ}
    # A value that begins so is a function which a shell has exported.
    inherited = {name: value for name, value in inherited.items() if not value.startswith("()")}
    return subprocess.Popen(  # noqa: S603  # to run what it is told is what it is for
        [parameters.command, *parameters.args],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=parameters.cwd,
        env={**inherited, **(parameters.env or {})},
        start_new_session=True,
    )


async def _within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Do what can be done in this time; the rest is cancelled."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


class _Output(StreamTransport):
    """Standard output, which is read to the end even when nobody wants it any more: the child must not block."""

    def discard(self) -> None:
        """End it for the reader, also for one that waits, and throw away what comes from now on."""
        self._chunks.clear()
        self._at_end = True
        self._wake()
        self._loop.add_reader(self._source, self._throw_away)

    def _throw_away(self) -> None:
        try:
            data = os.read(self._source, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._source)


class _ErrorOutput:
    """Standard error: read as it comes, handed on line by line, its last lines kept."""

    def __init__(self, source: int | None, parameters: StdioServerParameters) -> None:
        self._loop = asyncio.get_running_loop()
        self._decoder = codecs.getincrementaldecoder(parameters.encoding)(errors="replace")
        self._on_line = parameters.stderr if callable(parameters.stderr) else None
        self._line = ""
        self._tail = ""
        self._source = None if source is None else os.dup(source)
        if self._source is not None:
            os.set_blocking(self._source, False)
            self._loop.add_reader(self._source, self._readable)

    @property
    def tail(self) -> str:
        """The last lines, without the last newline."""
        text = "\n".join(self._tail.splitlines()[-_TAIL_LINES:])
        return text.encode(errors="replace")[-_TAIL:].decode(errors="ignore")

    def close(self) -> None:
        """Take what is there, without waiting for those who may still write, and end."""
        for _ in range(_CATCH_UP):
            if not self._readable():
                break
        self._end()

    def _readable(self) -> bool:
        """Take a chunk. Whether there may be more."""
        if self._source is None:
            return False
        try:
            data = os.read(self._source, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._take(self._decoder.decode(data))
        else:
            self._end()
        return bool(data)

    def _end(self) -> None:
        if self._source is None:
            return
        self._loop.remove_reader(self._source)
        os.close(self._source)
        self._source = None
        self._take(self._decoder.decode(b"", final=True))
        if self._line:
            self._hand_on(self._line)

    def _take(self, text: str) -> None:
        self._tail = (self._tail + text)[-_TAIL:]
        if self._on_line is None:
            return
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._hand_on(line.removesuffix("\r"))
        while len(self._line) > _LINE:
            self._hand_on(self._line[:_LINE])
            self._line = self._line[_LINE:]

    def _hand_on(self, line: str) -> None:
        assert self._on_line is not None
        for start in range(0, len(line) or 1, _LINE):
            try:
                self._on_line(line[start : start + _LINE])
            except Exception:
                _log.exception("what was given as `stderr` failed")


class _Child:
    """A process and the group that it leads, until both are gone.

    Its number is safe to signal: no other process gets it while this one has not been reaped, which is left until the
    connection is closed (on Linux), or while the group has members.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.status: int | None = None
        self.exited = asyncio.Event()
        self.pid = process.pid
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._watched: int | None = None

    def watch(self) -> None:
        """Begin to notice the exit: by the loop where it can wait for processes, which is on Linux, or by a thread."""
        if sys.platform == "linux":
            with suppress(AttributeError, OSError):  # missing in this Python, or not allowed here
                self._watched = os.pidfd_open(self.pid)
        if self._watched is None:
            threading.Thread(target=self._wait, daemon=True).start()
        else:
            self._loop.add_reader(self._watched, self._ended)

    def _wait(self) -> None:
        status = self._wait_for_status()
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            self._loop.call_soon_threadsafe(self._settle, status)

    def _ended(self) -> None:
        self._unwatch()
        self._settle(self._wait_for_status())

    def _wait_for_status(self) -> int:
        """What the process exits with. On Linux it is not reaped yet, to keep its number."""
        if sys.platform == "linux":
            with suppress(ChildProcessError):  # somebody else has reaped it
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
                assert ended is not None
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return self._process.wait()

    def _settle(self, status: int) -> None:
        if self.status is None:
            self.status = status
            self.exited.set()

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
            os.close(self._watched)
            self._watched = None

    def signal(self, number: int) -> None:
        """Send a signal to the group, as far as it may be signalled."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def is_gone(self) -> bool:
        """Whether the process has exited and its group is empty. Reaps it."""
        if not self.exited.is_set():
            return False
        self._process.wait()
        try:
            # Orphans are this process's to reap where it adopts them, as the first process in a container does.
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # what may not be signalled cannot be helped
            return True
        return not _has_living(self.pid)

    async def gone(self) -> None:
        """Wait until that is so."""
        await self.exited.wait()
        while not self.is_gone():
            await asyncio.sleep(_PAUSE)

    def end(self) -> None:
        """Kill whoever is left, reap the process, and let go of it."""
        self._unwatch()
        if not self.is_gone():
            self.signal(signal.SIGKILL)
        try:
            self._settle(self._process.wait(_LAST_RESORT))
        except subprocess.TimeoutExpired:
            _log.warning("process %d cannot be killed", self.pid)


def _has_living(group: int) -> bool:
    """Whether one of a group is not dead: the first process in a container may reap orphans late, or never.

    Where there is no /proc all are taken for living.
    """
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        names = []
    for name in names:
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            state, _, of, *_ = stat.read().rpartition(b")")[2].split()
            if int(of) == group and state not in (b"Z", b"X"):
                return True
    return not names


_WATCHDOG = """
trap '' HUP INT TERM
if read -r group; then
    read -r _
else
    for link in /proc/[0-9]*/fd/0; do
        if [ "$(readlink "$link")" = "pipe:[$1]" ]; then
            leader=${link#/proc/}
            leader=${leader%%/*}
            kill -s 0 -- "-$leader" && group=$leader
        fi
    done
fi
[ "$group" ] || exit
sleep 1
kill -s TERM -- "-$group" || exit
sleep 1
kill -s KILL -- "-$group"
"""
"""Waits for the end of the client, which is the end of its input. The child has seen the end of its own input then, and
gets a second to act on it, another one after SIGTERM.

Where the client was killed between starting the child and telling its number, the child is found by its standard input
(on Linux). It has that already: the watchdog's input does not end before the child has let go of what it inherited.
"""

_lifelines: set[int] = set()


def _let_go() -> None:
    """A fork of this process does not keep the children alive."""
    for lifeline in _lifelines:
        os.close(lifeline)
    _lifelines.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)


class _Lifeline:
    """What ends a child whose client was killed: a watchdog, which is ended as soon as there is nothing left to guard.

    It is no thread's business, unlike Linux's "parent death signal", which comes when the thread that started the child
    ends. It is a shell, since there may be no interpreter to start (in a frozen application), and costs 1 ms. Where
    there is no shell either, the child is not guarded.
    """

    def __init__(self) -> None:
        self._source, self._sink = os.pipe()
        _lifelines.add(self._sink)
        self._watchdog: subprocess.Popen[bytes] | None = None

    def watch(self, stdin: int) -> None:
        """Start the watchdog, which knows the child by its standard input as long as it has no number."""
        try:
            self._watchdog = subprocess.Popen(  # noqa: S603  # constant but for a number
                ["/bin/sh", "-c", _WATCHDOG, "watchdog", str(os.fstat(stdin).st_ino)],
                stdin=self._source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            _log.warning("a child will outlive this process if that is killed: %s", error)

    def guard(self, pid: int) -> None:
        """Tell which group is to be killed."""
        os.write(self._sink, b"%d\n" % pid)

    def end(self) -> None:
        """Nothing is left to guard. The watchdog is killed, lest it takes the end of the lifeline for that of us."""
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.wait()
        _lifelines.discard(self._sink)
        os.close(self._sink)
        os.close(self._source)
