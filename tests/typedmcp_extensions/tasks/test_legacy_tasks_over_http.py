"""Tasks of 2025-11-25 over HTTP: sessions, principals and streams."""

from __future__ import annotations

import asyncio
from typing import Any

import typedmcp
from tests.server.http.asgi_driver import OpenRequest, SessionClient, in_loop, messages, serving, verify
from typedmcp import Auth, Context
from typedmcp_extensions.tasks import ServerTasks

REVISION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"


def make_server() -> typedmcp.Server:
    server = typedmcp.Server("jobs", extensions=[ServerTasks()])

    @server.tool(task="optional")
    async def greet(ctx: Context) -> str:
        """Greet a person whose name is asked for."""
        answer = await ctx.elicit("Your name?", str, key="name")
        return f"Hello, {answer.data}!"

    return server


async def result(session: SessionClient, method: str, params: dict[str, Any] | None = None) -> Any:
    """Send a request, and return its result or error."""
    reply = await session.ask(method, params).reply()
    response = messages(reply.events)[-1] if reply.is_stream else reply.json
    return response.get("result") or response["error"]


async def next_message(stream: OpenRequest) -> Any:
    """Return the next message on a stream of events."""
    while not (found := messages([await stream.event()])):
        pass
    return found[0]


async def begun(session: SessionClient) -> str:
    """Begin a task, and wait for its question."""
    made = await result(session, "tools/call", {"name": "greet", "arguments": {}, "task": {}})
    id: str = made["task"]["taskId"]
    while (await result(session, "tasks/get", {"taskId": id}))["status"] == "working":
        await asyncio.sleep(0)
    return id


@in_loop
async def test_a_state_comes_without_a_stream() -> None:
    async with serving(make_server()) as served:
        session = await served.session(REVISION, {"elicitation": {}})
        id = await begun(session)
        reply = await session.ask("tasks/get", {"taskId": id}).reply()
        assert not reply.is_stream
        assert reply.json["result"]["status"] == "input_required"


@in_loop
async def test_questions_come_on_the_stream_of_the_result() -> None:
    async with serving(make_server()) as served:
        session = await served.session(REVISION, {"elicitation": {}})
        id = await begun(session)
        waiting = session.ask("tasks/result", {"taskId": id}, id=7)
        asked = await next_message(waiting)
        assert (asked["method"], asked["params"]["_meta"]) == ("elicitation/create", {RELATED: {"taskId": id}})
        await session.answer(asked["id"], result={"action": "accept", "content": {"value": "Ada"}})
        (last,) = messages(await waiting.rest())
        assert last["result"]["content"][0]["text"] == "Hello, Ada!"
        assert last["result"]["_meta"] == {RELATED: {"taskId": id}}


@in_loop
async def test_a_lost_request_for_the_result_can_be_repeated() -> None:
    async with serving(make_server()) as served:
        session = await served.session(REVISION, {"elicitation": {}})
        id = await begun(session)
        lost = session.ask("tasks/result", {"taskId": id}, id=7)
        await lost.event()
        lost.disconnect()
        waiting = session.ask("tasks/result", {"taskId": id}, id=8)
        asked = await next_message(waiting)
        await session.answer(asked["id"], result={"action": "accept", "content": {"value": "Bo"}})
        (last,) = messages(await waiting.rest())
        assert last["result"]["content"][0]["text"] == "Hello, Bo!"


@in_loop
async def test_the_status_comes_on_the_standalone_stream() -> None:
    async with serving(make_server()) as served:
        session = await served.session(REVISION, {"elicitation": {}})
        stream = await session.listening()
        id = await begun(session)
        told = await next_message(stream)
        assert (told["method"], told["params"]["taskId"]) == ("notifications/tasks/status", id)
        assert told["params"]["status"] == "input_required"
        await session.ask("tasks/cancel", {"taskId": id}).reply()


@in_loop
async def test_a_task_belongs_to_its_principal() -> None:
    auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(make_server(), auth=auth) as served:
        served.bearer = "ann"
        mine = await served.session(REVISION, {"elicitation": {}})
        again = await served.session(REVISION, {"elicitation": {}})
        served.bearer = "bob"
        other = await served.session(REVISION, {"elicitation": {}})
        id = await begun(mine)
        assert [task["taskId"] for task in (await result(again, "tasks/list"))["tasks"]] == [id]
        assert (await result(again, "tasks/get", {"taskId": id}))["taskId"] == id
        assert (await result(other, "tasks/list"))["tasks"] == []
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await result(other, method, {"taskId": id}))["code"] == -32602
        assert (await result(again, "tasks/cancel", {"taskId": id}))["status"] == "cancelled"


@in_loop
async def test_a_task_belongs_to_its_session_without_authorization() -> None:
    async with serving(make_server()) as served:
        mine = await served.session(REVISION, {"elicitation": {}})
        other = await served.session(REVISION, {"elicitation": {}})
        id = await begun(mine)
        assert [task["taskId"] for task in (await result(mine, "tasks/list"))["tasks"]] == [id]
        assert (await result(other, "tasks/list"))["tasks"] == []
        assert (await result(other, "tasks/get", {"taskId": id}))["code"] == -32602
        assert (await result(mine, "tasks/cancel", {"taskId": id}))["status"] == "cancelled"
