"""The official Python SDK has the tasks of 2025-11-25: its client uses our tasks, and our client those of a server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.interop import install
from tests.interop.peers import printed
from tests.listening import listening
from typedmcp import text_of
from typedmcp_extensions.tasks import ClientTasks, TaskCalls

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
REVISION = "2025-11-25"
PYTHON = install.INTEROP / "py1" / "bin" / "python"
CLIENT = [str(PYTHON), str(HERE / "python_tasks.py")]
SERVER = [sys.executable, str(HERE / "servers" / "with_tasks.py")]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_official_client_uses_tasks(transport: str) -> None:
    if transport == "stdio":
        seen = json.loads(printed([*CLIENT, "stdio", *SERVER]))
    else:
        with listening([*SERVER, "http"]) as server:
            seen = json.loads(printed([*CLIENT, "http", server.address]))
    assert seen["capability"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert seen["tools"] == {"greet": "optional", "wait": "optional", "only": "required", "quick": "forbidden"}
    assert {*seen["statuses"]} >= {"input_required", "completed"}
    assert (seen["text"], seen["related"]) == ("Hello, Ada!", True)
    assert seen["cancelled"] == "cancelled"
    assert seen["listed"] == ["completed", "cancelled"]
    assert seen["refused"] == -32601


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_our_client_uses_the_tasks_of_an_official_server(transport: str) -> None:
    command = [str(PYTHON), str(HERE / "servers" / "official_tasks.py")]
    if not PYTHON.exists():
        pytest.skip("the servers are not installed: run tests/interop/install.py")

    async def observe(target: Any) -> None:
        states: list[tuple[str, str | None]] = []
        tasks = ClientTasks(on_status=lambda task: states.append((task.status, task.status_message)))
        async with typedmcp.connect(
            target, revisions=[REVISION], extensions=[tasks], elicit=lambda _params: {"name": "Ada"}
        ) as client:
            assert text_of(await client.call_tool("greet")) == "Hello, Ada!"
            assert {status for status, _ in states} >= {"input_required", "completed"}
            assert text_of(await client.call_tool("quick")) == "quick within the request"
            with pytest.raises(typedmcp.RemoteError, match="out of paper"):
                await client.call_tool("fail")
            calls = client.extension(TaskCalls)
            waiting = await calls.begin("wait")
            assert [(known.id, known.tool) for known in calls.list()] == [(waiting.task_id, "wait")]
            await client.extension(TaskCalls).cancel(waiting.task_id)
            with pytest.raises(typedmcp.TaskCancelledError):
                await client.extension(TaskCalls).resume(waiting.task_id)
            with pytest.raises(typedmcp.InvalidParamsError):
                await client.extension(TaskCalls).resume("unknown")

    if transport == "stdio":
        asyncio.run(observe(command))
    else:
        with listening([*command, "http"]) as server:
            asyncio.run(observe(server.address))
