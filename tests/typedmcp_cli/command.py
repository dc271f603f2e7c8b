"""Helpers for tests of the command: running it in a process, and the source of a server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from tests.forks import run_forked

__all__ = ["COMMAND", "ENVIRONMENT", "SERVER", "CommandResult", "InProcess", "case_id", "over_http", "typedmcp"]

COMMAND = [sys.executable, "-m", "typedmcp"]
SWITCHES = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONUNBUFFERED")
"""Variables that would change what the command prints."""
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name not in SWITCHES},
    "PYTHONWARNINGS": "error",
    "TERM": "xterm-256color",
}

SERVER = '''
"""A server with one of everything."""

import asyncio
import os
import sys
from base64 import b64encode
from typing import Annotated, Literal

from msgspec import Meta
from typedmcp import Context, Image, Server, ToolError
from typedmcp.dialect import structs
from typedmcp.errors import ResourceNotFoundError

server = Server("weather", version="1.0", instructions="Check for alerts first.")


@server.tool
def forecast(
    city: str, days: Annotated[int, Meta(ge=1, le=7)] = 3, unit: Literal["C", "F"] = "C", tags: list[str] = []
) -> str:
    """Forecast the weather.

    Args:
        city: The name of the city.
        days: How many days, starting today.
    """
    print("asked about", city)
    return f"{city!r}, {days!r} days, {unit}, {tags!r}"


@server.tool
def total(numbers: list[float]) -> float:
    """Add numbers."""
    return sum(numbers)


@server.tool
async def slow(steps: int, ctx: Context) -> str:
    """Take a while."""
    for step in range(steps):
        await ctx.progress(step + 1, total=steps, message=f"step {step + 1}")
        await ctx.log("debug", {"finished": step})
        await ctx.log("warning", f"finished {step}", "stairs")
        await asyncio.sleep(0.02)
    return "done"


@server.tool
async def forever() -> str:
    print("started", flush=True)
    await asyncio.sleep(1000)
    return ""


@server.tool
def fail() -> str:
    """Fail."""
    raise ToolError("it rained")


@server.tool
def quit() -> str:
    os._exit(7)


@server.tool
def chart(count: int = 1) -> list[Image | str]:
    """Draw."""
    return ["a chart", *(Image(data=b"picture %d" % number, format="png") for number in range(count))]


@server.tool
def reverse() -> dict[str, str]:
    return {"text": "\x9b2J\x7f\u202egnp.exe"}


@server.tool
def escape() -> str:
    return "\\x1b[2Jcleared"


@server.tool
async def ask(ctx: Context) -> str:
    """Ask for a name."""
    fields = {
        "name": {"type": "string", "minLength": 2, "description": "Your name."},
        "age": {"type": "integer", "minimum": 3},
        "member": {"type": "boolean", "default": True},
        "size": {"type": "string", "enum": ["S", "M"]},
    }
    answer = await ctx.elicit("Who are you?", {"type": "object", "properties": fields, "required": ["name", "size"]})
    return f"{answer.action} {sorted((answer.content or {}).items())}"


@server.tool
def stations() -> list[dict[str, str | int]]:
    return [{"name": "Bergen", "height": 12345678901234567890}, {"height": 4, "name": "\\x1b[2JOslo"}]


@server.tool
def tree() -> dict[str, object]:
    return {"name": "root", "children": [{"name": "leaf", "size": 12345678901234567890}]}


@server.tool
def environment(name: str) -> str:
    return os.environ.get(name, "not set")


@server.resource("cities://all")
def cities() -> list[str]:
    """All cities."""
    return ["Bergen", "Cairo"]


@server.resource("weather://{city}/now")
def now(city: str) -> str:
    """Get the current weather."""
    if city == "Atlantis":
        raise ResourceNotFoundError("weather://Atlantis/now")
    return f"{city}: rain"


@server.resource("images://logo", mime_type="image/png")
def logo() -> bytes:
    return b"logo"


@server.prompt
def packing(city: str, days: int = 3) -> str:
    """Ask for a packing list."""
    return f"I am going to {city} for {days} days."
'''


def case_id(value: object) -> str:
    """Return the name of a test case: its command line."""
    return " ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else ""


class CommandResult(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class InProcess(Protocol):
    """Runs the command in this process, which saves half a second a case."""

    def __call__(self, *arguments: object) -> CommandResult: ...


def typedmcp(
    *arguments: str | Path, cwd: Path | None = None, stdin: str | bytes = b"", env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run the command in a process of its own, a fork of one that has imported the runtime."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    done = run_forked(["-m", "typedmcp", *arguments], cwd=cwd, stdin=given, env={**ENVIRONMENT, **(env or {})})
    assert "Traceback (most recent call last)" not in done.stderr or "cannot be imported" in done.stderr, done.stderr
    return CommandResult(done.returncode, done.stdout, done.stderr)


@contextmanager
def over_http(file: Path, *options: str) -> Generator[str]:
    """Run the command as an HTTP server on a free port, and return its address."""
    command = [*COMMAND, "run", str(file), "--transport", "http", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as server:
        assert server.stderr is not None
        try:
            found = next(found for line in server.stderr if (found := re.search(r"running on (http://[^/\s]+)", line)))
            yield found[1]
        finally:
            server.terminate()
            server.communicate(timeout=30)
