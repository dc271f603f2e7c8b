"""The page with one connection, message by message: `python -m tests.docs.connection` makes it from real runs.

A client lists and calls the tool of a server, which reports progress and asks a question: on an older revision and on
the newest one, over standard input and output and over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import textwrap
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httptools

import typedmcp
from tests.docs.markdown import blocks, replace_block
from tests.listening import running_on
from tests.paths import ROOT
from typedmcp.building import is_array, is_object
from typedmcp.revisions.features import DIALECT

__all__ = ["PAGE", "REVISIONS", "render"]

PAGE: Final = ROOT / "docs" / "connection.md"
REVISIONS: Final = ("2025-11-25", DIALECT)
_WIDTH: Final = 112
"""Characters of JSON on one line."""
_HEADERS: Final = ("accept", "content-type", "last-event-id")
_MASKED: Final = {"requestState": "…"}

_SHORT: Final = {
    "initialize": "names the revision that it wants, itself, and what it can do: it answers forms.",
    "notifications/initialized": "opens the session. A notification has no id, and gets no response.",
    "server/discover": "asks what the server is. There is no handshake: each request says in `_meta` who calls, on "
    "which revision, with which capabilities.",
    "tools/list": "asks for the tools.",
    "tools/call": "calls a tool. The progress token says that it wants to hear of progress.",
    "notifications/progress": "reports progress, under the token of the call.",
    "notifications/message": "sends a log message.",
    "elicitation/create": "asks the user, with a request of its own, while the call is open.",
}
_RESULTS: Final = {
    "initialize": "answers with the revision that both speak from now on, its name, and its capabilities.",
    "server/discover": "answers with the revisions that it speaks, its name, and its capabilities.",
    "tools/list": "answers with one tool. Its schema comes from the signature.",
    "tools/call": "answers the call.",
    "elicitation/create": "answers with what the user has entered.",
}
_AGAIN: Final = (
    "calls once more, with the answer under the name of the question, and the state as it was. The server keeps "
    "nothing in between."
)
_INPUT: Final = "needs input: the result has the question. `requestState` is signed, and belongs to the server."


_HTTP: Final = (
    "Each message of the client is a request. The session has an id, which all further requests repeat.",
    "There is no session. Headers repeat what proxies want to know without reading the body.",
)
"""What is said first of HTTP, on a revision with a handshake and without."""


@dataclass
class Exchange:
    """A request over HTTP and its response, as they passed."""

    method: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    status: int = 0
    response_headers: dict[str, str] = field(default_factory=dict[str, str])
    response: bytes = b""


def _server_code() -> str:
    return next(block.code for block in blocks(PAGE) if block.title == "forecast.py")


async def _use(target: Any, revision: str, **options: Any) -> None:
    """Do what the page describes."""
    async with typedmcp.connect(
        target, revisions=[revision], name="host", version="1.0", elicit=lambda params: {"days": 2}, **options
    ) as client:
        await client.list_tools()
        result = await client.call_tool("forecast", {"city": "Oslo"}, on_progress=lambda progress: None)
        assert typedmcp.text_of(result) == "2 days of rain in Oslo"


async def record_lines(revision: str) -> list[tuple[str, Any]]:
    """Return the messages over standard input and output, each with its sender."""
    found: list[tuple[str, Any]] = []

    def keep(sender: str, data: bytes) -> None:
        found.append((sender, json.loads(data)))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "forecast.py")
        file.write_text(_server_code(), encoding="utf-8")
        await _use([sys.executable, str(file)], revision, on_frame=keep)
    return found


async def record_http(revision: str) -> list[Exchange]:
    """Return the requests over HTTP with their responses, in the order of the requests."""
    found: list[Exchange] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "forecast.py")
        file.write_text(_server_code(), encoding="utf-8")
        command = [sys.executable, "-m", "typedmcp", "run", str(file), "--transport", "http", "--port", "0"]
        with running_on(command) as url:
            async with _recorded(int(url.split(":")[2].partition("/")[0]), found) as port:
                await _use(f"http://127.0.0.1:{port}/mcp", revision)
    return found


@asynccontextmanager
async def _recorded(port: int, found: list[Exchange]) -> AsyncGenerator[int]:
    """Pass connections on to a port, and keep what passes."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        mine: list[Exchange] = []
        requests, responses = _Requests(mine, found), _Responses(mine)

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, parser: Any) -> None:
            with suppress(OSError):
                while data := await source.read(1 << 16):
                    parser.feed_data(data)
                    target.write(data)
            target.close()

        try:
            await asyncio.gather(
                pass_on(reader, server_writer, requests.parser), pass_on(server_reader, writer, responses.parser)
            )
        finally:
            for each in (server_writer, writer):
                each.close()
                with suppress(OSError):
                    await each.wait_closed()

    open_now: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(asyncio.create_task(accept(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.gather(*open_now)


class _Requests:
    """Collects the requests of one connection."""

    def __init__(self, mine: list[Exchange], found: list[Exchange]) -> None:
        self.mine, self.found = mine, found
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self.mine.append(Exchange())
        self.found.append(self.mine[-1])

    def on_header(self, name: bytes, value: bytes) -> None:
        self.mine[-1].headers[name.decode().lower()] = value.decode()

    def on_headers_complete(self) -> None:
        self.mine[-1].method = self.parser.get_method().decode()

    def on_body(self, body: bytes) -> None:
        self.mine[-1].body += body


class _Responses:
    """Collects the responses of one connection."""

    def __init__(self, mine: list[Exchange]) -> None:
        self.mine = mine
        self.count = -1
        self.parser = httptools.HttpResponseParser(self)

    def on_message_begin(self) -> None:
        self.count += 1

    def on_headers_complete(self) -> None:
        self.mine[self.count].status = self.parser.get_status_code()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.mine[self.count].response_headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.mine[self.count].response += body


# The page


def render() -> str:
    """Run everything, and return the made part of the page."""
    return "".join(_render_revision(revision) for revision in REVISIONS)


def _render_revision(revision: str) -> str:
    lines = asyncio.run(record_lines(revision))
    made = f"\n## {revision}, over standard input and output\n{''.join(_render_lines(lines))}"
    exchanges = asyncio.run(record_http(revision))
    return f"{made}\n## {revision}, over HTTP\n\n{_HTTP[revision == DIALECT]}\n{''.join(_render_http(exchanges))}"


def _render_lines(messages: list[tuple[str, Any]]) -> Iterator[str]:
    asked: dict[tuple[str, Any], str] = {}
    for sender, message in messages:
        yield f"\n{_explain(sender, message, asked)}\n\n```json\n{_pretty(_masked(message))}\n```\n"


def _sentence(sender: str, what: str) -> str:
    return textwrap.fill(f"The **{sender}** {what}", 120)


def _explain(sender: str, message: Any, asked: dict[tuple[str, Any], str]) -> str:
    """Say what a message is. `asked` has the methods of earlier requests, by sender and id."""
    if (method := message.get("method")) is not None:
        if "id" in message:
            asked[sender, message["id"]] = method
        is_again = "inputResponses" in message.get("params", {})
        return _sentence(sender, _AGAIN if is_again else _SHORT[method])
    other = "server" if sender == "client" else "client"
    is_input = message.get("result", {}).get("resultType") == "input_required"
    return _sentence(sender, _INPUT if is_input else _RESULTS[asked[other, message["id"]]])


def _render_http(exchanges: list[Exchange]) -> Iterator[str]:
    sessions: dict[str, str] = {}
    begin, *others = exchanges  # `initialize` or `server/discover`
    streams = [each for each in others if each.method == "GET"]  # which are opened beside the other requests
    opened = [
        each for each in others if each.body and json.loads(each.body).get("method") == "notifications/initialized"
    ]
    rest = [each for each in others if each not in streams and each not in opened]
    for each in (begin, *opened, *streams, *rest):
        shown = json.loads(each.body) if each.body else None
        what = "ends the session." if each.method == "DELETE" else "opens a stream for messages of the server."
        if shown is not None:
            again = "inputResponses" in shown.get("params", {})
            what = _AGAIN if again else _SHORT.get(shown.get("method", ""), "answers the question.")
        head = [f"{each.method} /mcp", *_head(each.headers, sessions)]
        answer = [f"{each.status}", *_head(each.response_headers, sessions)]
        parts = [*head, *([_pretty(_masked(shown))] if shown is not None else []), "", *answer, *_bodies(each.response)]
        yield f"\n{_sentence('client', what)}\n\n```text\n{chr(10).join(parts)}\n```\n"


def _head(headers: dict[str, str], sessions: dict[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if name == "mcp-session-id":
            value = sessions.setdefault(value, "a-long-random-id")
        if name.startswith("mcp-") or name in _HEADERS:
            yield f"{name}: {value}"


def _bodies(response: bytes) -> Iterator[str]:
    """Yield the lines of a response: JSON, or events, without those that only begin a stream."""
    text = response.decode()
    if text.startswith("{"):
        yield _pretty(_masked(json.loads(text)))
        return
    for event in filter(None, re.split(r"\r?\n\r?\n", text)):
        data = "".join(line[5:].strip() for line in event.splitlines() if line.startswith("data:"))
        if data:
            yield f"data: {_pretty(_masked(json.loads(data)))}"


def _masked(value: Any) -> Any:
    """Return a message without what differs from run to run."""
    if is_object(value):
        is_made = isinstance(value.get("id"), str) and "jsonrpc" in value
        masked = {**_MASKED, "id": "1"} if is_made else _MASKED
        return {name: masked.get(name, _masked(each)) for name, each in value.items()}
    return [_masked(each) for each in value] if is_array(value) else value


def _pretty(value: Any, indent: int = 0) -> str:
    """Write JSON on one line if it is short, else a line for each member."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _WIDTH or not value or not (is_object(value) or is_array(value)):
        return line
    space = " " * (indent + 2)
    if is_object(value):
        parts = [f"{space}{json.dumps(name)}: {_pretty(each, indent + 2)}" for name, each in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(space + _pretty(each, indent + 2) for each in value) + "\n" + " " * indent + "]"


if __name__ == "__main__":
    PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "connection", render()), encoding="utf-8")
