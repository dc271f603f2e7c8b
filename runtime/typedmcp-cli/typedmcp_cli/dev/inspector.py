"""The session behind the page: connects, lists, calls, and tells the page about every step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from typedmcp import Client, ConnectOptions, Diagnostic, StdioServerParameters, types
from typedmcp.errors import DecodeError, Error, RemoteError
from typedmcp.frames import Sender
from typedmcp.revisions.features import SUPPORTED
from typedmcp_cli.dev.events import EventLog
from typedmcp_cli.dev.frames import FrameChecker
from typedmcp_cli.dev.questions import Questions
from typedmcp_cli.features import JSON_NAMES, Kind, list_features
from typedmcp_cli.status import describe_error
from typedmcp_hosts import ServerEntry

__all__ = ["Inspector", "PageLimits"]


_MIB = 1 << 20


@dataclass(frozen=True)
class PageLimits:
    """Limits on what the page keeps and shows, in bytes."""

    kept_bytes: int = 32 * _MIB
    """Bytes of messages, results and log lines. The oldest are dropped."""
    frame_bytes: int = 128 << 10
    """Bytes of one message that are shown; all of it is checked."""
    result_bytes: int = 8 * _MIB
    """Bytes of one result. Of a larger one only the size is shown."""


class Inspector:
    """A client of one server, and the log of events for the page."""

    def __init__(self, name: str, entry: ServerEntry, options: ConnectOptions, limits: PageLimits) -> None:
        self.events: EventLog = EventLog(limits.kept_bytes)
        self.questions: Questions = Questions(self.events)
        self._name = name
        self._entry = entry
        self._options = options
        self._limits = limits
        self._chosen = next(iter(options.get("revisions", ())), None)
        self._client: Client | None = None
        self._checker = FrameChecker(SUPPORTED[0])
        self._switching = asyncio.Lock()
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._connections = 0

    # The connection

    async def connect(self, revision: str | None, reason: str) -> None:
        """Connect, or connect again, and speak one revision, or any if it is None."""
        async with self._switching:
            await self._disconnect()
            self._chosen = revision
            self._connections += 1
            self.events.add("connection", {"number": self._connections, "reason": reason, "time": time.time()})
            self._set_status("connecting")
            self._checker = FrameChecker(revision or SUPPORTED[0])
            self._client = client = self._make_client()
            try:
                await client.open()
                self._set_status("connected")
                await self._list(client)
            except (Error, OSError, DecodeError) as error:
                self._set_status("failed", _describe(error))
                return
            self._watching = asyncio.create_task(self._watch_lists(client))

    async def reconnect(self, reason: str) -> None:
        """Connect again with the same revision, as after a change of the file."""
        await self.connect(self._chosen, reason)

    async def close(self) -> None:
        """End the session and all event streams."""
        self.events.close()
        async with self._switching:
            await self._disconnect()

    async def _disconnect(self) -> None:
        tasks = [*self._calls.values(), *([] if self._watching is None else [self._watching])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._client is not None:
            await self._client.close()
        self._client, self._watching = None, None

    def _make_client(self) -> Client:
        entry = self._entry
        if isinstance(entry.target, StdioServerParameters):
            entry = replace(entry, target=replace(entry.target, stderr=self._on_server_line))
        options: ConnectOptions = {
            **self._options,
            "elicit": self.questions.fill_form,
            "elicit_url": self.questions.ask_consent,
            "sample": self.questions.sample,
            "on_log": self._on_log,
            "on_diagnostic": self._on_diagnostic,
            "on_frame": self._on_frame,
            "restart": False,
            "max_time": None,
        }
        if self._chosen is None:
            options.pop("revisions", None)
        else:
            options["revisions"] = [self._chosen]
        return entry.connect(**options)

    def _set_status(self, state: str, error: str = "") -> None:
        status: dict[str, Any] = {
            "state": state, "target": self._name, "chosen": self._chosen, "revisions": SUPPORTED, "error": error,
        }  # fmt: skip
        if state == "connected" and self._client is not None:
            server = self._client.server
            status |= {
                "revision": server.revision,
                "server": None if server.info is None else types.to_builtins(server.info),
                "capabilities": types.to_builtins(server.capabilities),
                "instructions": server.instructions,
            }
        self.events.set("status", "status", status)

    # Lists

    async def _list(self, client: Client) -> None:
        found = await list_features(client)
        self.events.set(
            "lists", "lists", {JSON_NAMES[kind]: types.to_builtins([*items]) for kind, items in found.items()}
        )

    async def _watch_lists(self, client: Client) -> None:
        """List again after each change that the server announces, until the connection ends."""
        declared = client.server.capabilities
        tools, resources, prompts = (
            bool(found is not None and found.list_changed)
            for found in (declared.tools, declared.resources, declared.prompts)
        )
        try:
            if tools or resources or prompts:
                async with client.listen(tools=tools, resources=resources, prompts=prompts) as changes:
                    async for _ in changes:
                        await self._list(client)
        except (Error, OSError) as error:
            self.events.add("diagnostic", {"text": f"changes of lists: {_describe(error)}", "time": time.time()})

    # Calls

    def start_call(self, id: str, kind: Kind, name: str, arguments: Mapping[str, Any]) -> None:
        """Call a tool, read a resource or get a prompt; progress and result are events."""
        if self._client is None or id in self._calls:
            return
        task = asyncio.create_task(self._run_call(self._client, id, kind, name, arguments))
        self._calls[id] = task
        task.add_done_callback(lambda _: self._calls.pop(id, None))

    def cancel_call(self, id: str) -> None:
        """Cancel a call at the server."""
        if id in self._calls:
            self._calls[id].cancel()

    async def _run_call(self, client: Client, id: str, kind: Kind, name: str, arguments: Mapping[str, Any]) -> None:
        self.events.add("call", {"id": id, "kind": kind, "name": name, "time": time.time()})
        start = time.monotonic()

        def on_progress(params: types.ProgressNotificationParams) -> None:
            shown = {"progress": params.progress, "total": params.total, "message": params.message}
            self.events.add("progress", {"id": id, **shown})

        if kind == "tools":
            work: Awaitable[object] = client.call_tool(name, arguments, on_progress=on_progress)
        elif kind == "prompts":
            texts = {key: value if isinstance(value, str) else str(value) for key, value in arguments.items()}
            work = client.get_prompt(name, texts, on_progress=on_progress)
        else:
            work = client.read_resource(name, on_progress=on_progress, fresh=True)
        outcome: dict[str, Any] = {"error": "cancelled"}
        try:
            outcome = self._describe_result(await work)
        except RemoteError as error:
            outcome = {"error": error.message, "code": error.code, "data": _format(error.data)}
        except (Error, OSError, DecodeError) as error:
            outcome = {"error": _describe(error)}
        finally:
            self.events.add("result", {"id": id, "seconds": time.monotonic() - start, **outcome})

    def _describe_result(self, result: object) -> dict[str, Any]:
        """Describe a result for the page: structured content as text, so that no number is rounded in the browser."""
        plain: dict[str, Any] = types.to_builtins(result)
        size = len(msgspec.json.encode(plain))
        if size > self._limits.result_bytes:
            limit = f"the page shows at most {self._limits.result_bytes:,}"
            return {"error": f"the result has {size:,} bytes; {limit}. `typedmcp call` prints or saves it"}
        structured = _format(plain["structuredContent"]) if "structuredContent" in plain else None
        return {"result": {**plain, "structuredContent": structured}}

    # Events of the client

    def _on_frame(self, sender: Sender, data: bytes) -> None:
        revision, faults = self._checker.check(sender, data)
        shown = data[: self._limits.frame_bytes].decode(errors="replace")
        self.events.add(
            "frame",
            {"sender": sender, "time": time.time(), "size": len(data), "revision": revision, "faults": faults,
             "text": shown},
        )  # fmt: skip

    def _on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else _format(params.data)
        self.events.add("log", {"level": params.level, "logger": params.logger, "text": data, "time": time.time()})

    def _on_diagnostic(self, diagnostic: Diagnostic) -> None:
        self.events.add("diagnostic", {"text": diagnostic.text, "time": time.time()})

    def _on_server_line(self, line: str) -> None:
        self.events.add("stderr", {"text": line, "time": time.time()})


def _format(value: object) -> str | None:
    return None if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _describe(error: Exception) -> str:
    return describe_error(error) or type(error).__name__
