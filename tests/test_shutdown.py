"""Functions that swallow their cancellation delay the end of clients and servers by the grace period, and are named.

`tests/server/test_stdio.py` has the same for a server's process.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.serving import serving_http
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp_extensions.tasks import ClientTasks, ServerTasks
from typedmcp_gateway import Gateway

GRACE = 0.1


class Swallower:
    """Functions that wait until `go` is set, whether they are cancelled or not."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.go = asyncio.Event()

    async def keep_on(self) -> str:
        """Wait, like a loop that takes every exception for a failed attempt."""
        self.entered.set()
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
        return "done"

    async def answer_roots(self) -> list[str]:
        """Return the roots, as the callback of a client."""
        await self.keep_on()
        return []

    async def take_log(self, _params: Any) -> None:
        """Take a log message, as the callback of a client."""
        await self.keep_on()


def assert_named(reports: list[Diagnostic], name: str, ends: str) -> None:
    """Check that one function was reported, and nothing else."""
    [report] = [each for each in reports if "did not end" in each.text]
    assert report.kind == DiagnosticKind.INTERNAL_ERROR
    assert f"{name} did not end within" in report.text
    assert report.text.endswith(f"(grace): the {ends} without it")


def stubborn_server(swallower: Swallower, **options: Any) -> typedmcp.Server:
    """Return a server with a tool that cannot be cancelled."""
    server = typedmcp.Server("stubborn", **options)

    @server.tool
    async def stubborn() -> str:
        return await swallower.keep_on()

    return server


@each("callback", ["a request", "a notification"])
def test_a_client_closes_without_a_callback_that_swallows_its_cancellation(callback: str) -> None:
    reports: list[Diagnostic] = []

    async def main() -> None:
        swallower = Swallower()
        server = typedmcp.Server("asks")

        @server.tool
        async def ask(ctx: typedmcp.Context) -> None:
            if callback == "a request":
                await ctx.list_roots()
            else:
                await ctx.log("info", "hello")
                await swallower.go.wait()

        client = typedmcp.connect(
            typedmcp.ServerConfig(server, grace=0),
            revisions=[LEGACY[0]],
            roots=swallower.answer_roots,
            on_log=swallower.take_log,
            on_diagnostic=reports.append,
            grace=GRACE,
        )
        await client.open()
        calling = asyncio.create_task(client.call_tool("ask"))
        await swallower.entered.wait()
        await client.close()
        assert swallower.cancelled.is_set()
        with pytest.raises(typedmcp.ConnectionLostError):
            await calling
        swallower.go.set()

    run(main())
    name = "Swallower.answer_roots" if callback == "a request" else "Swallower.take_log"
    assert_named(reports, f"the callback {name}", "client closes")


@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_a_server_over_http_ends_without_a_handler_that_swallows_its_cancellation(revision: str) -> None:
    reports: list[Diagnostic] = []

    async def main() -> None:
        swallower = Swallower()
        app = typedmcp.asgi(stubborn_server(swallower), grace=GRACE, on_diagnostic=reports.append)
        async with serving_http(app) as url:
            client = await typedmcp.connect(f"{url}/mcp", revisions=[revision])
            calling = asyncio.create_task(client.call_tool("stubborn"))
            await swallower.entered.wait()
        assert swallower.cancelled.is_set()
        calling.cancel()
        await client.close()
        swallower.go.set()
        await asyncio.wait([calling])

    run(main())
    assert_named(reports, "stubborn", "server ends")


def test_a_server_over_http_gives_a_cancelled_handler_time_to_clean_up() -> None:
    cleaned: list[str] = []
    entered = asyncio.Event()

    async def main() -> None:
        server = typedmcp.Server("tidy")

        @server.tool
        async def tidy() -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned.append("tidy")

        async with serving_http(typedmcp.asgi(server, grace=1)) as url:
            client = await typedmcp.connect(f"{url}/mcp")
            calling = asyncio.create_task(client.call_tool("tidy"))
            await entered.wait()
        assert cleaned == ["tidy"]
        calling.cancel()
        await client.close()

    run(main())


def test_a_gateway_ends_without_the_handler_of_its_server() -> None:
    reports: list[Diagnostic] = []

    async def main() -> None:
        swallower = Swallower()
        behind = typedmcp.ServerConfig(stubborn_server(swallower), grace=GRACE, on_diagnostic=reports.append)
        front = typedmcp.ServerConfig(Gateway(behind), grace=GRACE)
        client = await typedmcp.connect(front)
        calling = asyncio.create_task(client.call_tool("stubborn"))
        await swallower.entered.wait()
        await client.close()
        assert swallower.cancelled.is_set()
        swallower.go.set()
        await asyncio.wait([calling])

    run(main())
    assert_named(reports, "stubborn", "server ends")


def test_a_server_ends_without_a_task_that_swallows_its_cancellation() -> None:
    reports: list[Diagnostic] = []

    async def main() -> None:
        swallower = Swallower()
        server = typedmcp.Server("tasks", extensions=[ServerTasks()])

        @server.tool(task="required")
        async def stubborn() -> str:
            return await swallower.keep_on()

        config = typedmcp.ServerConfig(server, grace=GRACE, on_diagnostic=reports.append)
        async with typedmcp.connect(config, extensions=[ClientTasks()]) as client:
            calling = asyncio.create_task(client.call_tool("stubborn"))
            await swallower.entered.wait()
        await asyncio.wait([calling])
        assert swallower.cancelled.is_set()
        swallower.go.set()

    run(main())
    assert_named(reports, "stubborn", "server ends")


@each("grace", [-1, "5"])
def test_a_grace_that_is_not_valid_is_rejected(grace: Any) -> None:
    with pytest.raises(typedmcp.UsageError, match=r"^grace must be"):
        typedmcp.connect(typedmcp.Server("x"), grace=grace)
