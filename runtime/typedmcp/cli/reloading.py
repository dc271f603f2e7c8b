"""`typedmcp run --reload`: a parent that starts the server anew where a file has changed.

Over HTTP that is all. Over standard input and output the parent keeps the client's pipes, and hands on whole lines: the
old server answers what it was sent before it ends, lines that come meanwhile wait for the new one. A client of an older
revision has shaken hands once, so the new server is sent its handshake again; nothing else is. Requests that a server
leaves unanswered are answered with an error.

A parent that is killed ends nothing. So the server watches a pipe that the parent holds open.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from typedmcp.cli.status import GRACE, INTERRUPTED, OK, complain
from typedmcp.errors import INTERNAL_ERROR
from typedmcp.transports import Transport
from typedmcp.transports.stdio import stdio
from typedmcp.wire import Framer

__all__ = ["reload", "snapshot"]

_PAUSE = 0.3
"""Seconds between two looks at the files."""
_SKIPPED = ("__pycache__", "node_modules", "site-packages")
_LIST_CHANGED = ("tools", "resources", "prompts")


def reload(text: str, folder: Path, transport: str, options: dict[str, Any]) -> int:
    """Serve a file until a signal, or the client, ends it. `folder` is where changes count."""
    with _lifeline() as lifeline:
        given = json.dumps({**options, "transport": transport, "lifeline": lifeline})
        command = [sys.executable, "-P", "-m", "typedmcp.cli.serving", text, given]
        serve = _over_stdio if transport == "stdio" else _over_http
        return asyncio.run(serve(command, lifeline, folder))


@contextmanager
def _lifeline() -> Generator[int]:
    """A pipe that a server inherits: its other end is closed when this process ends, whatever ends it."""
    source, sink = os.pipe()
    try:
        yield source
    finally:
        os.close(sink)
        os.close(source)


async def _over_http(command: Sequence[str], lifeline: int, folder: Path) -> int:
    return await _supervise(_Child(command, lifeline), folder, asyncio.Event())


async def _over_stdio(command: Sequence[str], lifeline: int, folder: Path) -> int:
    async with stdio() as client:
        child, ended = _Relayed(command, lifeline, client), asyncio.Event()
        reading = asyncio.create_task(child.hand_on(ended))
        try:
            return await _supervise(child, folder, ended)
        finally:
            reading.cancel()


async def _supervise(child: _Child, folder: Path, ended: asyncio.Event) -> int:
    """Start the server anew with every change, until all is to end. The status that this makes."""
    signals = _heard(ended)
    seen = snapshot(folder)
    await child.start()
    while not await _within(_PAUSE, ended.wait()):
        now = await asyncio.to_thread(snapshot, folder)
        if now == seen:
            continue
        changed = sorted({path for path, _ in seen.items() ^ now.items()})
        seen = now
        complain(f"{', '.join(os.path.relpath(path, folder) for path in changed)} changed", "reload")
        await child.stop()
        await child.start()
    await child.stop()
    return INTERRUPTED if signal.SIGINT in signals else OK


def _heard(ended: asyncio.Event) -> Collection[int]:
    """The signals that have come; the first of them ends all."""
    heard: set[int] = set()
    loop = asyncio.get_running_loop()

    def hear(number: int) -> None:
        heard.add(number)
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
            loop.add_signal_handler(number, hear, number)
    return heard


def snapshot(folder: Path) -> dict[str, int]:
    """When each file of Python's below a folder was changed last. Environments and hidden folders are left out."""
    return dict(_files(folder))


def _files(folder: str | Path) -> Iterator[tuple[str, int]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # it has gone meanwhile
                if entry.is_dir(follow_symlinks=False):
                    if not (entry.name.startswith(".") or entry.name in _SKIPPED or _is_environment(entry.path)):
                        yield from _files(entry.path)
                elif entry.name.endswith(".py"):
                    yield entry.path, entry.stat().st_mtime_ns


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


async def _within(seconds: float, work: Any) -> bool:
    """Whether something happens in this time."""
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        return False
    return True


class _Child:
    """The server that runs now."""

    def __init__(self, command: Sequence[str], lifeline: int) -> None:
        self._command, self._lifeline = command, lifeline
        self._process: Process | None = None
        self._ending = False
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it. It may end at once: what is wrong with the file it says itself."""
        self._ending = False
        self._process = await self._spawn(None)
        self._watch = asyncio.create_task(self._watched(self._process))

    async def _spawn(self, pipe: int | None) -> Process:
        # Bytecode is told from newer sources by the second: two changes may lie in one.
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, env=env, pass_fds=[self._lifeline]
        )

    async def _watched(self, process: Process) -> None:
        status = await process.wait()
        if not self._ending:
            complain(f"the server has ended (status {status}); a change starts it again", "reload")

    async def stop(self) -> None:
        """End it, gently at first."""
        self._ending = True
        process, watch = self._process, self._watch
        if process is None or watch is None:
            return
        for end in (self._ask_to_end, process.terminate, process.kill):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    end()
                await _within(GRACE, asyncio.shield(watch))

    def _ask_to_end(self) -> None:
        assert self._process is not None
        self._process.terminate()


class _Message(msgspec.Struct):
    """What has to be known of a message that is handed on."""

    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()


_message = msgspec.json.Decoder(_Message)


class _Relayed(_Child):
    """A server that hears the client through this process."""

    def __init__(self, command: Sequence[str], lifeline: int, client: Transport) -> None:
        super().__init__(command, lifeline)
        self._client = client
        self._ready = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._handshake: dict[str, bytes] = {}
        """The lines by which an older client has begun, by their methods."""
        self._open: dict[int | str, None] = {}
        """Requests of the client's that are not answered."""
        self._greeting: int | str | None = None
        """The request whose answer the client has had already, from the server before."""

    async def start(self) -> None:
        """Start it, and shake hands where the client has done that before."""
        self._ending = False
        self._process = await self._spawn(PIPE)
        self._watch = asyncio.create_task(self._watched(self._process))
        self._pump = asyncio.create_task(self._answers(self._process))
        if "notifications/initialized" in self._handshake:
            self._greeting = _message.decode(self._handshake["initialize"]).id
            await self._write(b"".join(self._handshake.values()))
        self._ready.set()

    async def stop(self) -> None:
        """End it as its client would: by the end of its input, so that it answers what it has got."""
        self._ready.clear()
        await super().stop()
        if self._pump is not None:
            await self._pump

    def _ask_to_end(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def hand_on(self, ended: asyncio.Event) -> None:
        """Give the server what the client says, line by line, until the client ends."""
        await self._lines(self._client.read, self._from_client)
        ended.set()

    async def _lines(self, read: Callable[[], Any], take: Callable[[bytes], Any]) -> None:
        framer = Framer()
        while data := await read():
            for line in framer.feed(data):
                if isinstance(line, bytes):
                    await take(line + b"\n")

    async def _from_client(self, line: bytes) -> None:
        message = _parsed(line)
        await self._ready.wait()
        if message.method in ("initialize", "notifications/initialized"):
            self._handshake[message.method] = line
        if message.method is not None and message.id is not None:
            self._open[message.id] = None
        await self._write(line)

    async def _write(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended by itself; requests are answered below
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def _answers(self, process: Process) -> None:
        """Give the client what the server says, until the server ends."""
        assert process.stdout is not None
        stdout = process.stdout
        await self._lines(lambda: stdout.read(1 << 16), self._from_server)
        self._ready.clear()  # what comes from now on is for the next one
        for id in [*self._open]:
            error = {"code": INTERNAL_ERROR, "message": "the server has ended before it answered"}
            await self._tell({"jsonrpc": "2.0", "id": id, "error": error})
        self._open.clear()

    async def _from_server(self, line: bytes) -> None:
        message = _parsed(line)
        if message.method is None and message.id is not None:
            if message.id == self._greeting:
                self._greeting = None
                await self._tell_of_changes(message)
                return
            self._open.pop(message.id, None)
        await self._send(line)

    async def _tell_of_changes(self, answer: _Message) -> None:
        """The client has lists of the server before: it is told that they have changed, where it can be."""
        said: dict[str, Any] = msgspec.json.decode(answer.result) if answer.result else {}
        capabilities: dict[str, Any] = said.get("capabilities", {})
        for feature in _LIST_CHANGED:
            if capabilities.get(feature, {}).get("listChanged"):
                await self._tell({"jsonrpc": "2.0", "method": f"notifications/{feature}/list_changed"})

    async def _tell(self, message: dict[str, Any]) -> None:
        await self._send(msgspec.json.encode(message) + b"\n")

    async def _send(self, line: bytes) -> None:
        self._client.write(line)
        await self._client.drain()


def _parsed(line: bytes) -> _Message:
    """What is known of a line; nothing of one that is no single message."""
    try:
        return _message.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        return _Message()
