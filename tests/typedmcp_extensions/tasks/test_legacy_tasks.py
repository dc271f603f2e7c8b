"""Tasks of a server for clients of 2025-11-25, whose protocol has tasks of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import MODERN_REVISION, Client, Json, run, served
from tests.typedmcp_extensions.tasks.test_tasks import DECLARED, Jobs
from typedmcp import Context
from typedmcp.dialect import structs
from typedmcp_extensions.tasks import ServerTasks, TaskLimits

REVISION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
FINAL = ("completed", "failed", "cancelled")


@asynccontextmanager
async def opened(jobs: Any, **capabilities: Any) -> AsyncGenerator[Client]:
    async with served(jobs.server, name=None, version=None) as client:
        await client.open(REVISION, **{"elicitation": {}, **capabilities})
        yield client


async def begun(client: Client, name: str, **arguments: Any) -> str:
    """Call a tool as a task, and return the id of the task."""
    result = await client.result("tools/call", {"name": name, "arguments": arguments, "task": {"ttl": 60_000}})
    task: Json = result["task"]
    assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 3_900_000, 1000)
    assert result["_meta"] == {RELATED: {"taskId": task["taskId"]}}
    assert task["createdAt"].endswith("Z")
    id: str = task["taskId"]
    return id


async def state(client: Client, id: str) -> Json:
    return await client.result("tasks/get", {"taskId": id})


async def until(client: Client, id: str, *statuses: str) -> Json:
    """Wait until a task has one of some states."""
    async with asyncio.timeout(60):
        while (task := await state(client, id))["status"] not in statuses:
            await asyncio.sleep(0.005)
    return task


async def question(client: Client, method: str = "elicitation/create") -> Json:
    """Return the next request of the server; notifications of status may come before it."""
    while (message := await client.receive()).get("method") != method:
        assert message["method"] == "notifications/tasks/status"
    request: Json = message
    return request


def text(result: Json) -> str:
    made: str = result["content"][0]["text"]
    return made


# Offers


def test_the_server_declares_tasks_and_which_tools_run_so() -> None:
    async def main() -> None:
        jobs = Jobs()
        jobs.server.add_tool(jobs.add, name="quick")
        async with opened(jobs) as client:
            declared: Json = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
            assert client.opened["capabilities"]["tasks"] == declared
            tools = (await client.result("tools/list"))["tools"]
            support = {tool["name"]: tool["execution"] for tool in tools}
            assert support["add"] == {"taskSupport": "optional"}
            assert support["only"] == {"taskSupport": "required"}
            assert support["quick"] == {"taskSupport": "forbidden"}

    run(main)


@each("revision", ["2025-06-18", MODERN_REVISION])
def test_other_revisions_know_nothing_of_it(revision: str) -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(revision)
            assert "tasks" not in client.opened.get("capabilities", {})
            assert all("execution" not in tool for tool in (await client.result("tools/list"))["tools"])
            assert text(await client.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})) == "3"
            assert (await client.error("tasks/list"))["code"] == -32601

    run(main)


def test_tools_of_a_mounted_server_keep_their_support() -> None:
    async def main() -> None:
        jobs, outer = Jobs(), typedmcp.Server("outer", extensions=[ServerTasks()])
        outer.mount(jobs.server, "in")
        async with served(outer, name=None, version=None) as client:
            await client.open(REVISION)
            tools = (await client.result("tools/list"))["tools"]
            support = {tool["name"]: tool["execution"]["taskSupport"] for tool in tools}
            assert (support["in_add"], support["in_only"]) == ("optional", "required")
            id = await begun(client, "in_only", a=1, b=2)
            assert text(await client.result("tasks/result", {"taskId": id})) == "3"

    run(main)


def test_calls_that_do_not_fit_the_tool_are_rejected() -> None:
    async def main() -> None:
        jobs = Jobs()
        jobs.server.add_tool(jobs.add, name="quick")
        async with opened(jobs) as client:
            params: Json = {"arguments": {"a": 1, "b": 2}}
            error = await client.error("tools/call", {**params, "name": "quick", "task": {}})
            assert error["code"] == -32601
            assert error["message"] == "tools/call: 'quick' cannot run as a task; call it without the member `task`"
            error = await client.error("tools/call", {**params, "name": "only"})
            assert error["code"] == -32601
            assert error["message"] == "tools/call: this call runs as a task only; call it with the member `task`"
            assert text(await client.result("tools/call", {**params, "name": "add"})) == "3"
            wrong = await client.error("tools/call", {**params, "name": "add", "task": 1})
            assert wrong["code"] == -32602

    run(main)


# Results


def test_the_result_of_a_task_is_that_of_the_call() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            usual = await client.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
            id = await begun(client, "add", a=1, b=2)
            result = await client.result("tasks/result", {"taskId": id})
            assert result.pop("_meta") == {RELATED: {"taskId": id}}
            assert result == usual
            assert (await state(client, id))["status"] == "completed"
            assert await client.result("tasks/result", {"taskId": id})

    run(main)


def test_the_result_waits_for_the_end_of_the_task() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            id = await begun(client, "wait", steps=2)
            waiting = client.start("tasks/result", {"taskId": id})
            task = await until(client, id, "working")
            while task.get("statusMessage") is None:
                task = await state(client, id)
            assert task["statusMessage"].endswith("waiting")
            jobs.go.set()
            assert text((await client.answer_to(waiting))["result"]) == "gone"

    run(main)


def test_a_tool_that_fails_makes_a_failed_task_with_its_result() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "fail")
            result = await client.result("tasks/result", {"taskId": id})
            assert (result["isError"], text(result)) == (True, "no such luck")
            assert (await state(client, id))["status"] == "failed"

    run(main)


def test_an_error_of_the_call_is_the_error_of_the_result() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "refuse")
            error = await client.error("tasks/result", {"taskId": id})
            assert error == {"code": -32000, "message": "not today", "data": {"until": "tomorrow"}}
            task = await state(client, id)
            assert (task["status"], task["statusMessage"]) == ("failed", "not today")

    run(main)


def test_unknown_tasks_are_errors() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            for method in ("tasks/get", "tasks/result", "tasks/cancel"):
                error = await client.error(method, {"taskId": "no"})
                assert (error["code"], error["data"]) == (-32602, {"path": "params.taskId"})

    run(main)


def test_a_task_that_meta_names_is_ignored() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id, other = await begun(client, "add", a=1, b=2), await begun(client, "wait")
            await until(client, id, "completed")
            meta = {RELATED: {"taskId": other}}
            task = await client.result("tasks/get", {"taskId": id}, meta=meta)
            assert (task["taskId"], task["status"]) == (id, "completed")
            assert "_meta" not in task
            cancelled = await client.result("tasks/cancel", {"taskId": other}, meta={RELATED: {"taskId": id}})
            assert cancelled["taskId"] == other
            assert "_meta" not in cancelled

    run(main)


def test_a_task_that_takes_too_long_fails() -> None:
    async def main() -> None:
        async with opened(Jobs(limits=TaskLimits(ttl=0.05))) as client:
            result = await client.result("tools/call", {"name": "wait", "arguments": {}, "task": {}})
            error = await client.error("tasks/result", {"taskId": result["task"]["taskId"]})
            assert error["message"] == "the task took longer than 0.05 s (ttl)"

    run(main)


# Cancellation


def test_a_cancelled_task_stays_cancelled() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            id = await begun(client, "wait")
            waiting = client.start("tasks/result", {"taskId": id})
            cancelled = await client.result("tasks/cancel", {"taskId": id})
            assert (cancelled["taskId"], cancelled["status"]) == (id, "cancelled")
            error = (await client.answer_to(waiting))["error"]
            assert error["message"] == "the task was cancelled, and has no result"
            error = await client.error("tasks/cancel", {"taskId": id})
            assert (error["code"], error["message"]) == (-32602, "the task has ended already: cancelled")
            assert (await state(client, id))["status"] == "cancelled"
        assert jobs.ended == ["cancelled"]

    run(main)


def test_a_cancelled_request_for_the_result_leaves_the_task() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            id = await begun(client, "wait")
            waiting = client.start("tasks/result", {"taskId": id})
            await client.settled()
            client.send({"method": "notifications/cancelled", "params": {"requestId": waiting}})
            assert (await state(client, id))["status"] == "working"
            jobs.go.set()
            assert text(await client.result("tasks/result", {"taskId": id})) == "gone"

    run(main)


# Questions


def test_a_question_is_a_request_that_names_the_task() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "greet")
            assert (await until(client, id, "input_required"))["status"] == "input_required"
            assert all(message["method"] == "notifications/tasks/status" for message in client.unread())
            waiting = client.start("tasks/result", {"taskId": id})
            asked = await question(client)
            assert asked["params"]["message"] == "Your name?"
            assert asked["params"]["_meta"] == {RELATED: {"taskId": id}}
            content = {"value": "Ada"}
            client.send({"id": asked["id"], "result": {"action": "accept", "content": content, "_meta": {}}})
            assert text((await client.answer_to(waiting))["result"]) == "Hello, Ada!"

    run(main)


def test_several_questions_are_asked_at_once_and_each_once() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "introduce")
            waiting = client.start("tasks/result", {"taskId": id})
            first = [await question(client), await question(client)]
            assert {each["params"]["message"] for each in first} == {"one?", "two?"}
            for each in reversed(first):
                name = each["params"]["message"].upper()
                client.send({"id": each["id"], "result": {"action": "accept", "content": {"name": name}}})
            last = await question(client)
            assert last["params"]["message"] == "really?"
            client.send({"id": last["id"], "result": {"action": "accept", "content": {"name": "yes"}}})
            result = (await client.answer_to(waiting))["result"]
            assert result["structuredContent"]["result"] == ["ONE?", "TWO?", "ONE?", "yes"]

    run(main)


def test_a_question_that_the_client_rejects_is_an_error_of_the_tool() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "greet")
            waiting = client.start("tasks/result", {"taskId": id})
            asked = await question(client)
            client.send({"id": asked["id"], "error": {"code": -1, "message": "the user said no", "data": 1}})
            error = (await client.answer_to(waiting))["error"]
            assert error == {"code": -1, "message": "the user said no", "data": 1}

    run(main)


def test_the_newest_request_for_a_result_asks() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "greet")
            lost = client.start("tasks/result", {"taskId": id})
            first = await question(client)
            waiting = client.start("tasks/result", {"taskId": id})
            withdrawn = await question(client, "notifications/cancelled")
            assert withdrawn["params"]["requestId"] == first["id"]
            second = await question(client)
            client.send({"id": second["id"], "result": {"action": "accept", "content": {"value": "Ada"}}})
            for request in (lost, waiting):
                assert text((await client.answer_to(request))["result"]) == "Hello, Ada!"

    run(main)


def test_an_older_request_asks_again_once_the_newer_one_is_cancelled() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "greet")
            waiting = client.start("tasks/result", {"taskId": id})
            await question(client)
            newer = client.start("tasks/result", {"taskId": id})
            await question(client, "notifications/cancelled")
            await question(client)
            client.send({"method": "notifications/cancelled", "params": {"requestId": newer}})
            await question(client, "notifications/cancelled")
            again = await question(client)
            client.send({"id": again["id"], "result": {"action": "accept", "content": {"value": "Bo"}}})
            assert text((await client.answer_to(waiting))["result"]) == "Hello, Bo!"

    run(main)


def test_a_client_that_cannot_be_asked_gets_the_error_of_the_call() -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(REVISION)
            usual = await client.error("tools/call", {"name": "greet", "arguments": {}})
            id = await begun(client, "greet")
            assert await client.error("tasks/result", {"taskId": id}) == usual

    run(main)


# Lists, owners and notifications


def test_a_list_has_the_tasks_of_the_session_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr("typedmcp_extensions.tasks.legacy._PAGE", 2)
        async with opened(Jobs()) as client:
            assert await client.result("tasks/list") == {"tasks": []}
            ids = [await begun(client, "add", a=number, b=1) for number in range(5)]
            listed: list[str] = []
            params: Json = {}
            while True:
                page = await client.result("tasks/list", params)
                listed += [task["taskId"] for task in page["tasks"]]
                if "nextCursor" not in page:
                    break
                params = {"cursor": page["nextCursor"]}
            assert listed == ids
            failed = await begun(client, "fail")
            await until(client, failed, "failed")
            page = await client.result("tasks/list", {"cursor": ids[-1]})
            assert [(task["taskId"], task["status"]) for task in page["tasks"]] == [(failed, "failed")]
            assert (await client.error("tasks/list", {"cursor": "no"}))["code"] == -32602

    run(main)


def test_a_task_belongs_to_its_session() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as one, served(jobs.server, name=None, version=None) as other:
            id = await begun(one, "wait")
            await other.open(REVISION)
            assert (await other.result("tasks/list"))["tasks"] == []
            for method in ("tasks/get", "tasks/result", "tasks/cancel"):
                assert (await other.error(method, {"taskId": id}))["code"] == -32602
            jobs.go.set()
            assert text(await one.result("tasks/result", {"taskId": id})) == "gone"
        async with served(jobs.server, name=None, version=None) as modern:
            await modern.open(MODERN_REVISION, **DECLARED)
            assert (await modern.error("tasks/get", {"taskId": id}))["code"] == -32602

    run(main)


def test_progress_is_told_by_the_status_and_never_after_the_end() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            params = {"name": "wait", "arguments": {"steps": 3}, "task": {}}
            begun = await client.result("tools/call", params, meta={"progressToken": "mine"})
            id = begun["task"]["taskId"]
            async with asyncio.timeout(60):
                while (await state(client, id)).get("statusMessage") != "3 of 3: waiting":
                    await asyncio.sleep(0.005)
            jobs.go.set()
            assert (await until(client, id, *FINAL))["status"] == "completed"
            await jobs.contexts[0].progress(4, 4, "late")
            await client.settled()
            assert "statusMessage" not in await state(client, id)
            assert {message["method"] for message in client.unread()} <= {"notifications/tasks/status"}

    run(main)


def test_the_session_is_notified_of_the_status() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await begun(client, "greet")
            statuses: list[str] = []
            waiting = 0
            while "completed" not in statuses:
                message = await client.receive()
                if message.get("method") == "notifications/tasks/status":
                    assert message["params"]["taskId"] == id
                    assert "_meta" not in message["params"]
                    statuses.append(message["params"]["status"])
                    if statuses == ["input_required"]:
                        waiting = client.start("tasks/result", {"taskId": id})
                elif message.get("method") == "elicitation/create":
                    answer = {"action": "accept", "content": {"value": "Ada"}}
                    client.send({"id": message["id"], "result": answer})
                else:
                    assert message["id"] == waiting
            assert statuses[0] == "input_required"
            assert set(statuses) <= {"input_required", "working", "completed"}

    run(main)


# Middleware and handlers by hand


def test_middleware_runs_around_the_methods_of_tasks() -> None:
    async def main() -> None:
        jobs, seen = Jobs(), list[str]()

        async def note(ctx: Context, params: Any, call_next: typedmcp.CallNext) -> Any:
            seen.append(ctx.method)
            return await call_next()

        jobs.server.middleware(note)
        async with opened(jobs) as client:
            id = await begun(client, "add", a=1, b=2)
            await client.result("tasks/result", {"taskId": id})
            await client.result("tasks/get", {"taskId": id})
            await client.result("tasks/list")
            await client.error("tasks/cancel", {"taskId": id})
            tools = (await client.result("tools/list"))["tools"]
            assert tools[0]["execution"] == {"taskSupport": "optional"}
        assert seen == ["tools/call", "tasks/result", "tasks/get", "tasks/list", "tasks/cancel", "tools/list"]

    run(main)


class Archive:
    """A handler by hand whose only tool runs as a task."""

    def __init__(self) -> None:
        self.tasks = ServerTasks(tools={"pack": "required"})

    def list_tools(self, _params: Any, _ctx: Context) -> structs.ListToolsResult:
        tools = [structs.Tool(name=name, input_schema={"type": "object"}) for name in ("pack", "look")]
        return structs.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        def work(_ctx: Context) -> structs.CallToolResult:
            return structs.CallToolResult(content=[structs.TextContent(text=f"did {params.name}")])

        return work(ctx) if params.name == "look" else await self.tasks.run(ctx, work, required=True)


def test_a_handler_by_hand_says_which_tools_are_tasks() -> None:
    async def main() -> None:
        archive = Archive()
        async with served(archive, extensions=[archive.tasks]) as client:
            await client.open(REVISION)
            tools = (await client.result("tools/list"))["tools"]
            support = {tool["name"]: tool["execution"]["taskSupport"] for tool in tools}
            assert support == {"pack": "required", "look": "forbidden"}
            id = await begun(client, "pack")
            assert text(await client.result("tasks/result", {"taskId": id})) == "did pack"
            assert (await client.error("tools/call", {"name": "look", "task": {}}))["code"] == -32601
            assert text(await client.call("look")) == "did look"

    run(main)


def test_a_wrong_support_is_a_mistake() -> None:
    with pytest.raises(typedmcp.UsageError, match="tools: pack: expected 'forbidden', 'optional' or 'required'"):
        ServerTasks(tools={"pack": "maybe"})  # type: ignore[dict-item]
