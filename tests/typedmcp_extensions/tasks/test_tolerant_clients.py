"""Clients with tasks of servers that write results as the examples of the specification do, or do not listen."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import COMPLETE, MODERN, Request, Script, Wire, connected
from tests.server.scripted import run
from typedmcp import DiagnosticKind, text_of
from typedmcp_extensions.tasks import ClientTasks, TaskCalls

TIMES = {"taskId": "t1", "createdAt": "2026-11-28T00:00:00Z", "lastUpdatedAt": "2026-11-28T00:00:00Z", "ttlMs": None}
QUESTION = {
    "method": "elicitation/create",
    "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}}},
}
GOOD = {"content": [{"type": "text", "text": "good"}]}


class Jobs(Script):
    """A server whose calls become one task, with the states that a test gives."""

    def __init__(self, *states: dict[str, Any], poll_ms: int = 20) -> None:
        super().__init__(MODERN)
        self.states = list(states)
        self.poll_ms = poll_ms

    def _server_discover(self, request: Request, wire: Wire) -> None:
        capabilities: dict[str, Any] = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        wire.result(request, {**COMPLETE, "supportedVersions": [MODERN], "capabilities": capabilities})

    def _tools_call(self, request: Request, wire: Wire) -> None:
        wire.result(request, {"resultType": "task", "status": "working", **TIMES})

    def _tasks_get(self, request: Request, wire: Wire) -> None:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if "code" in state:
            wire.error(request, **state)
        else:
            wire.result(request, {"resultType": "complete", **TIMES, "pollIntervalMs": self.poll_ms, **state})

    def _tasks_update(self, request: Request, wire: Wire) -> None:
        self.updated = asyncio.get_running_loop().time()
        wire.result(request, {"resultType": "complete"})


def completed(result: Any) -> dict[str, Any]:
    return {"status": "completed", "result": result}


RESULTS: dict[str, tuple[Any, str, DiagnosticKind | None]] = {
    "as in the examples": (GOOD, "good", None),
    "with resultType": ({**GOOD, "resultType": "complete"}, "good", None),
    "without content": ({"structuredContent": {"a": 1}}, "", DiagnosticKind.TOLERATED),
    "with an unknown block": (
        {"content": [*GOOD["content"], {"type": "hologram"}]},
        "good",
        DiagnosticKind.INVALID_DATA,
    ),
}


@each("name", RESULTS)
def test_the_result_of_a_task_is_read_as_that_of_a_call(name: str) -> None:
    result, text, kind = RESULTS[name]
    reports: list[typedmcp.Diagnostic] = []

    async def main() -> None:
        script = Jobs(completed(result))
        async with connected(script, extensions=[ClientTasks()], on_diagnostic=reports.append) as client:
            assert text_of(await client.call_tool("x")) == text
        assert [report.kind for report in reports] == ([] if kind is None else [kind])

    run(main)


@each("code, status", [(-32601, 404), (-32603, 200), (-32000, 400)])
def test_a_server_that_does_not_listen_is_asked(code: int, status: int) -> None:
    reports: list[typedmcp.Diagnostic] = []

    async def main() -> None:
        script = Jobs({"status": "working"}, completed(GOOD))
        script.handlers["subscriptions/listen"] = lambda request, wire: wire.error(request, code, status=status)
        tasks = ClientTasks(listen=True)
        async with connected(script, extensions=[tasks], on_diagnostic=reports.append) as client:
            assert text_of(await client.call_tool("x")) == "good"
            assert client.extension(TaskCalls).list() == []
        assert script.of("tasks/cancel") == []
        assert [report.kind for report in reports] == [DiagnosticKind.NOT_GRANTED]

    run(main)


def test_an_internal_error_does_not_end_a_task_and_others_do() -> None:
    async def main() -> None:
        script = Jobs({"code": -32603}, completed(GOOD))
        async with connected(script, extensions=[ClientTasks()]) as client:
            assert text_of(await client.call_tool("x")) == "good"
        script = Jobs({"code": -32602})
        async with connected(script, extensions=[ClientTasks()]) as client:
            with pytest.raises(typedmcp.InvalidParamsError):
                await client.call_tool("x")
        assert len(script.of("tasks/get")) == 1

    run(main)


def test_a_task_that_has_an_answer_is_asked_after_its_interval() -> None:
    asked: list[float] = []

    def answer(_: Any) -> dict[str, Any]:
        return {"value": "Ada"}

    async def main() -> None:
        script = Jobs({"status": "input_required", "inputRequests": {"q": QUESTION}}, completed(GOOD), poll_ms=300)

        def get(request: Request, wire: Wire) -> None:
            asked.append(asyncio.get_running_loop().time())
            script._tasks_get(request, wire)  # pyright: ignore[reportPrivateUsage]

        script.handlers["tasks/get"] = get
        async with connected(script, extensions=[ClientTasks()], elicit=answer) as client:
            assert text_of(await client.call_tool("x")) == "good"
        assert len(asked) == 2
        assert asked[1] - script.updated >= 0.25

    run(main)
