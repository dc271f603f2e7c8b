"""The tables of docs/deploying.md for operators: how servers start, reload and stop. `python -m tests.docs.operators`.

Each row is a run: a server in processes of its own, started by a command, by code or by a configuration, with clients
that call, listen, are asked something, and have died. The application has two seconds of grace, and the servers have
their defaults.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.docs.markdown import replace_block
from tests.paths import ROOT
from tests.ports import reserved_port
from tests.server.http.streaming import StreamingConnection, begin_session, calling, connections

__all__ = [
    "ENDS", "EXPECTED", "PAGE", "REFUSED", "WAYS", "Outcome", "Way", "fits", "render", "run_alone", "run_refused",
    "run_shared",
]  # fmt: skip

PAGE: Final = ROOT / "docs" / "deploying.md"
PATIENCE: Final = 60.0
GRACE: Final = 2
IN_TIME: Final = 8.0
"""Seconds within which a server has ended that only waits for the application's grace, on a machine with other work."""

APP: Final = f"""
import asyncio
import os

import typedmcp

server = typedmcp.Server("operated")


@server.tool
async def wait() -> str:
    await asyncio.sleep(600)
    return "waited"


@server.tool
async def echo() -> str:
    return "echo"


@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    return (await ctx.elicit("Go on?", bool)).action


options = {{}}
if "MCP_REDIS" in os.environ:
    import typedmcp_redis

    options["store"] = typedmcp_redis.RedisStore(os.environ["MCP_REDIS"])
    options["state_signer"] = typedmcp.StateSigner(b"a key of all workers")
app = typedmcp.asgi(server, grace={GRACE}, **options)
"""


@dataclass(frozen=True)
class Way:
    """A way to start a server. `{port}` and `{workers}` in the command and in the files are replaced."""

    server: str
    how: str
    command: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    has_workers: bool = True
    """False if it always has one worker."""

    @property
    def name(self) -> str:
        """The name in tables and tests."""
        return f"{self.server}, {self.how}"

    @property
    def package(self) -> str:
        """The package that has to be installed."""
        return {"server.run": "uvicorn", "typedmcp run": "uvicorn"}.get(self.server, self.server)


_PYTHON: Final = sys.executable
_RUN: Final = """
from served import options, server

if __name__ == "__main__":
    server.run("http", port={port}, grace=2, **options)
"""
_UVICORN: Final = """
import uvicorn

if __name__ == "__main__":
    uvicorn.run("served:app", port={port}, workers={workers}, reload={reload})
"""
_GUNICORN: Final = """
from gunicorn.app.wsgiapp import WSGIApplication


class Application(WSGIApplication):
    def init(self, parser, opts, args):
        self.app_uri = "served:app"
        return {"worker_class": "asgi", "workers": {workers}, "bind": "127.0.0.1:{port}"}


if __name__ == "__main__":
    Application().run()
"""
_HYPERCORN: Final = """
from hypercorn.config import Config
from hypercorn.run import run

if __name__ == "__main__":
    config = Config()
    config.application_path, config.bind, config.workers = "served:app", ["127.0.0.1:{port}"], {workers}
    raise SystemExit(run(config))
"""
_HYPERCORN_LOOP: Final = """
import asyncio

from hypercorn.asyncio import serve
from hypercorn.config import Config
from served import app

config = Config()
config.bind = ["127.0.0.1:{port}"]
asyncio.run(serve(app, config))
"""
_GRANIAN: Final = """
from granian import Granian

if __name__ == "__main__":
    Granian("served:app", interface="asgi", port={port}, workers={workers}).serve()
"""
_GUNICORN_FILE: Final = """
worker_class = "asgi"
workers = {workers}
bind = "127.0.0.1:{port}"
"""
_HYPERCORN_FILE: Final = """
bind = "127.0.0.1:{port}"
workers = {workers}
"""


def _module(*arguments: str) -> tuple[str, ...]:
    return (_PYTHON, "-m", *arguments)


def _environment(*variables: str, module: str) -> tuple[str, ...]:
    return ("env", *variables, *_module(module, "served:app"))


_RUN_COMMAND: Final = _module("typedmcp", "run", "served.py", "--transport", "http", "--port", "{port}")
_UVICORN_COMMAND: Final = _module("uvicorn", "served:app", "--port", "{port}", "--workers", "{workers}")
_GUNICORN_COMMAND: Final = _module("gunicorn", "-k", "asgi", "-w", "{workers}", "-b", "127.0.0.1:{port}", "served:app")
_HYPERCORN_COMMAND: Final = _module("hypercorn", "-w", "{workers}", "-b", "127.0.0.1:{port}", "served:app")
_GRANIAN_OPTIONS: Final = ("--interface", "asgi", "--port", "{port}", "--workers", "{workers}")
_GRANIAN_COMMAND: Final = _module("granian", *_GRANIAN_OPTIONS, "served:app")
_BY_CODE: Final = (_PYTHON, "main.py")

WAYS: Final = (
    Way("server.run", "code", _BY_CODE, {"main.py": _RUN}, has_workers=False),
    Way("typedmcp run", "command", _RUN_COMMAND, has_workers=False),
    Way("uvicorn", "command", _UVICORN_COMMAND),
    Way("uvicorn", "HttpProtocol", (*_UVICORN_COMMAND, "--http", "typedmcp_http:HttpProtocol")),
    Way("uvicorn", "code", _BY_CODE, {"main.py": _UVICORN}),
    Way("uvicorn", "environment", _environment("UVICORN_PORT={port}", "UVICORN_WORKERS={workers}", module="uvicorn")),
    Way("gunicorn", "command", _GUNICORN_COMMAND),
    Way("gunicorn", "code", _BY_CODE, {"main.py": _GUNICORN}),
    Way("gunicorn", "file", _module("gunicorn", "served:app"), {"gunicorn.conf.py": _GUNICORN_FILE}),
    Way("gunicorn", "preload", (*_GUNICORN_COMMAND, "--preload")),
    Way("hypercorn", "command", _HYPERCORN_COMMAND),
    Way("hypercorn", "code", _BY_CODE, {"main.py": _HYPERCORN}),
    Way("hypercorn", "file", _module("hypercorn", "-c", "own.toml", "served:app"), {"own.toml": _HYPERCORN_FILE}),
    Way("hypercorn", "loop", _BY_CODE, {"main.py": _HYPERCORN_LOOP}, has_workers=False),
    Way("granian", "command", _GRANIAN_COMMAND),
    Way("granian", "code", _BY_CODE, {"main.py": _GRANIAN}),
    Way(
        "granian",
        "environment",
        _environment(
            "GRANIAN_INTERFACE=asgi", "GRANIAN_PORT={port}", "GRANIAN_WORKERS={workers}", module="granian"
        ),
    ),
)  # fmt: skip
ENDS: Final = ("Ctrl-C", "SIGTERM", "reload")


class Outcome(NamedTuple):
    """What a run has shown."""

    status: str
    """The exit status; after a reload, whether calls are served again."""
    when: str
    calls: str
    """What the clients of calls were told, in a session and without one."""
    streams: str
    """What the clients with streams of changes were told."""
    question: str
    """What the client of a question was told."""
    log: str


_ENDED: Final = "ended"
_CUT: Final = "cut"
_LOST: Final = "-31503"
_QUIET: Final = "quiet"
_GRACEFUL: Final = Outcome("0", "in time", _LOST, _ENDED, _LOST, _QUIET)
_RAISED: Final = _GRACEFUL._replace(status="-15")
"""uvicorn raises SIGTERM again at its end."""
_QUICK: Final = _GRACEFUL._replace(calls=f"{_LOST}, or {_CUT}")
"""gunicorn's workers end at once."""
_UNTOLD: Final = Outcome("0", "in time", _LOST, f"{_ENDED}, or {_CUT}", _LOST, "tracebacks of the server")
"""hypercorn's workers get no signal: calls go on until the server cancels them."""


def _expected() -> dict[tuple[str, str], Outcome]:
    made: dict[tuple[str, str], Outcome] = {}
    for way in WAYS:
        is_told = way.server != "hypercorn" or way.how == "loop"
        for end in ENDS:
            usual = _GRACEFUL if is_told else _UNTOLD
            if end == "reload":
                if way.has_workers:
                    made[way.name, end] = usual._replace(status="served again")
            elif (way.server, end) == ("uvicorn", "SIGTERM"):
                made[way.name, end] = _RAISED
            elif (way.server, end) == ("gunicorn", "Ctrl-C"):
                made[way.name, end] = _QUICK
            else:
                made[way.name, end] = usual
    return made


EXPECTED: Final = _expected()
"""What each run with one worker shows, by the name of the way and the end."""
REFUSED: Final = {"uvicorn": "0", "gunicorn": "3, or 1", "hypercorn": "0", "granian": "1"}
"""The exit status of each server whose three workers share neither a key nor a store."""


def fits(found: Outcome, expected: Outcome) -> bool:
    """Return whether a run shows nothing but what is expected. A cell may have alternatives."""
    return all(
        set(cell.split(", or ")) <= set(wanted.split(", or ")) for cell, wanted in zip(found, expected, strict=True)
    )


class _Running:
    """A server in a folder of its own, with its log in a file."""

    def __init__(self, way: Way, workers: int, stack: ExitStack, *, reload: bool = False, **variables: str) -> None:
        self._way, self._workers, self._reload = way, workers, reload
        self.port = stack.enter_context(reserved_port())
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        (self.folder / "served.py").write_text(APP, encoding="utf-8")
        for name, text in way.files.items():
            (self.folder / name).write_text(self._fill(text), encoding="utf-8")
        command = [self._fill(each) for each in way.command]
        if reload and way.server == "uvicorn" and way.how != "code":
            command = [each for each in command if each not in ("--workers", "1")] + ["--reload"]
        kept = {name: value for name, value in os.environ.items() if name not in ("WEB_CONCURRENCY", "MCP_REDIS")}
        self._log = self.folder / "log"
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**kept, "PYTHONPATH": str(self.folder), **variables},
            )
        stack.callback(self._kill)

    def _fill(self, text: str) -> str:
        values = {"port": self.port, "workers": self._workers, "reload": self._reload}
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def log(self) -> str:
        """The output so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def serves(self) -> bool:
        """Wait until a call is served. Return False if the server has ended before."""
        limit = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < limit:
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                async with asyncio.timeout(5), connections(self.port, 1) as (connection,):
                    await connection.call("echo")
                    if await connection.text() == "echo":
                        return True
            await asyncio.sleep(0.05)
        return False

    async def end(self, how: str) -> None:
        """End the server, or make it reload its application."""
        if how == "Ctrl-C":  # as a terminal: all processes of the group get it
            os.killpg(self.process.pid, signal.SIGINT)
        elif how == "SIGTERM":  # as Docker: the first process gets it
            self.process.send_signal(signal.SIGTERM)
        elif self._way.server == "uvicorn":
            (self.folder / "served.py").write_text(f"{APP}\n", encoding="utf-8")
        else:
            self.process.send_signal(signal.SIGHUP)

    async def ended(self) -> int | None:
        """Wait until the server has ended, and return its exit status."""
        limit = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < limit:
            await asyncio.sleep(0.02)
        return self.process.poll()


async def _told(opening: Awaitable[object], connection: StreamingConnection) -> str:
    """Read a response to its end, and return what its client was told."""
    try:
        async with asyncio.timeout(PATIENCE):
            await opening
            body = (await connection.body()).decode(errors="replace")
    except (asyncio.IncompleteReadError, ConnectionError):
        return _CUT
    except TimeoutError:
        return "nothing"
    lines = (line.removeprefix("data: ") for line in body.splitlines())
    messages: list[Any] = [json.loads(line) for line in lines if line.startswith("{")]
    last: Any = messages[-1] if messages else {}
    return str(last["error"]["code"]) if "error" in last else _ENDED


async def _nothing() -> None: ...


async def _ask(connection: StreamingConnection) -> None:
    """Call a tool that asks its client, and wait for the question."""
    headers = await begin_session(connection, {"elicitation": {}})
    await connection.send("POST", headers, calling("ask"))
    message = await connection.next_message()
    assert message["method"] == "elicitation/create", message


async def _call_in_session(connection: StreamingConnection) -> None:
    headers = await begin_session(connection)
    await connection.send("POST", headers, calling("wait"))
    await connection.event()


async def _listen_in_session(connection: StreamingConnection) -> None:
    headers = await begin_session(connection)
    await connection.send("GET", {**headers, "accept": "text/event-stream"})
    await connection.event()


def _one(told: Iterable[str]) -> str:
    return ", or ".join(dict.fromkeys(told))


async def run_alone(way: Way, end: str) -> Outcome:
    """Start a server with one worker, let clients do all that can be open, and end it."""
    with ExitStack() as stack:
        server = _Running(way, 1, stack, reload=end == "reload")
        assert await server.serves(), server.log
        async with connections(server.port, 7) as (call, session, listener, get, asked, died, died_too):
            await _call_in_session(session)
            await listener.listen()
            await listener.next_message()
            await _listen_in_session(get)
            for each in (asked, died):
                await _ask(each)
            await _call_in_session(died_too)
            died.close()
            died_too.close()
            opening: dict[str, tuple[Awaitable[object], StreamingConnection]] = {
                "call": (call.call("wait"), call),
                **{name: (_nothing(), each) for name, each in (
                    ("session", session), ("listener", listener), ("get", get), ("asked", asked),
                )},
            }  # fmt: skip
            reading = {name: asyncio.create_task(_told(*each)) for name, each in opening.items()}
            await asyncio.sleep(0.5)  # until the server knows that its clients have died
            before, began = len(server.log), time.monotonic()
            await server.end(end)
            told = {name: await task for name, task in reading.items()}
            if end == "reload":
                status = "served again" if await server.serves() else "not served again"
            else:
                status = str(await server.ended())
            when = "in time" if time.monotonic() - began < IN_TIME else "late"
        log = "tracebacks of the server" if "Traceback" in server.log[before:] else _QUIET
        calls, streams = (_one(told[name] for name in names) for names in (("call", "session"), ("listener", "get")))
        return Outcome(status, when, calls, streams, told["asked"], log)


async def run_refused(way: Way) -> tuple[int | None, str]:
    """Start three workers that share nothing. Return the exit status, None if they serve, and the log."""
    with ExitStack() as stack:
        server = _Running(way, 3, stack)
        if await server.serves():
            return None, server.log
        return await server.ended(), server.log


async def run_shared(way: Way, redis: str) -> tuple[dict[int, int], int | None, str]:
    """Start three workers that share a key and a store. Return the statuses of calls in sessions, and the exit."""
    statuses: dict[int, int] = {}
    with ExitStack() as stack:
        server = _Running(way, 3, stack, MCP_REDIS=redis)
        assert await server.serves(), server.log
        for _ in range(10):
            async with connections(server.port, 1) as (connection,):
                headers = await begin_session(connection)
            for _ in range(3):
                async with connections(server.port, 1) as (connection,):
                    await connection.send("POST", headers, calling("echo"))
                    statuses[connection.status] = statuses.get(connection.status, 0) + 1
        before = len(server.log)
        await server.end("SIGTERM")
        return statuses, await server.ended(), server.log[before:]


def render() -> str:
    """Render the tables. Ways with the same outcome share a row."""
    rows: dict[tuple[str, str, Outcome], list[str]] = {}
    for (name, end), outcome in EXPECTED.items():
        server, _, how = name.partition(", ")
        rows.setdefault((server, end, outcome), []).append(how)
    made = "\n| server, started by | ended by | exit status | when | calls | streams of changes | question | log |\n"
    made += "|---|---|---|---|---|---|---|---|\n"
    for (server, end, outcome), hows in rows.items():
        made += f"| {server}: {', '.join(hows)} | {end} | {' | '.join(outcome)} |\n"
    made += "\n| three workers that share nothing | exit status |\n|---|---|\n"
    for server, status in REFUSED.items():
        ways = ", ".join(way.how for way in WAYS if way.server == server and way.has_workers)
        made += f"| {server}: {ways} | {status} |\n"
    return made


async def _check_all() -> bool:
    """Make all runs, and return whether each has shown what is expected."""
    is_right = True
    for way in WAYS:
        for end in ENDS:
            if (expected := EXPECTED.get((way.name, end))) is not None:
                found = await run_alone(way, end)
                is_right &= fits(found, expected)
                print(way.name, end, found, "" if fits(found, expected) else f"EXPECTED {expected}", flush=True)
        if way.has_workers:
            status, _ = await run_refused(way)
            is_right &= str(status) in REFUSED[way.server].split(", or ")
            print(way.name, "three workers", status, flush=True)
    return is_right


if __name__ == "__main__":
    if not asyncio.run(_check_all()):
        raise SystemExit("some runs differ from what this module expects: change that, or what differs")
    PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "operators", render()), encoding="utf-8")
