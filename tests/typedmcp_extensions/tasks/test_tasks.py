"""Tasks of a server: tools that outlive their requests, seen by a client that sends plain JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import LEGACY, MODERN_REVISION, SUPPORTED, Client, Json, run, served
from typedmcp import Context, DiagnosticKind, Principal
from typedmcp.dialect import models, structs
from typedmcp.server.connection import ServerConnection
from typedmcp_extensions.tasks import MemoryTaskStore, ServerTasks, TaskLimits

TASKS = "io.modelcontextprotocol/tasks"
DECLARED: Json = {"extensions": {TASKS: {}}}
FINAL = ("completed", "failed", "cancelled")


class Jobs:
    """A server with tools that run as tasks, and what they have done."""

    def __init__(self, **options: Any) -> None:
        self.tasks = ServerTasks(**options)
        self.server = typedmcp.Server("jobs", extensions=[self.tasks])
        self.go = asyncio.Event()
        self.ended: list[str] = []
        self.contexts: list[Context] = []
        for function in (self.add, self.wait, self.fail, self.refuse, self.greet, self.introduce, self.large):
            self.server.add_tool(function, task="optional")
        self.server.add_tool(self.add, name="only", task="required")

    async def add(self, a: int, b: int) -> int:
        """Add numbers."""
        return a + b

    async def wait(self, ctx: Context, steps: int = 0) -> str:
        """Wait until the test lets it go."""
        self.contexts.append(ctx)
        for step in range(1, steps + 1):
            ctx.progress(step, steps, "waiting")
        try:
            await self.go.wait()
        finally:
            self.ended.append("cancelled" if ctx.cancelled else "done")
        return "gone"

    async def fail(self) -> str:
        """Fail as a tool does."""
        raise typedmcp.ToolError("no such luck")

    async def refuse(self) -> str:
        """Fail as a method does."""
        raise typedmcp.RemoteError(-32000, "not today", {"until": "tomorrow"})

    async def greet(self, ctx: Context) -> str:
        """Greet a person whose name is asked for."""
        answer = await ctx.elicit("Your name?", str, key="name")
        return f"Hello, {answer.data}!"

    async def introduce(self, ctx: Context) -> list[str]:
        """Ask two questions at once, and one of them again."""
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        questions = {key: _question(f"{key}?", form) for key in ("one", "two")}
        answers = await ctx.ask(questions)
        again = await ctx.ask({"one": _question("one?", form)})
        other = await ctx.ask({"one": _question("really?", form)})
        return [each.content["name"] for each in (*answers.values(), *again.values(), *other.values())]

    async def large(self, size: int) -> str:
        """Return a text of many characters."""
        return "x" * size


def _question(message: str, form: Json) -> structs.ElicitRequest:
    return structs.ElicitRequest(params=structs.ElicitRequestFormParams(message=message, requested_schema=form))


@asynccontextmanager
async def opened(jobs: Jobs, **capabilities: Any) -> AsyncGenerator[Client]:
    async with served(jobs.server, name=None, version=None) as client:
        await client.open(MODERN_REVISION, **{**DECLARED, "elicitation": {}, **capabilities})
        yield client


async def started(client: Client, name: str, **arguments: Any) -> str:
    """Call a tool that must become a task, and return the task's id."""
    result = await client.call(name, **arguments)
    assert result["resultType"] == "task"
    id: str = result["taskId"]
    return id


async def state(client: Client, id: str) -> Json:
    return await client.result("tasks/get", {"taskId": id})


async def until(client: Client, id: str, *statuses: str) -> Json:
    """Wait until a task has one of some states."""
    async with asyncio.timeout(60):
        while (task := await state(client, id))["status"] not in statuses:
            await asyncio.sleep(0.005)
    return task


async def answer(client: Client, id: str, **names: str) -> Json:
    """Answer questions whose keys begin with these names."""
    waiting = (await state(client, id))["inputRequests"]
    responses = {
        key: {"action": "accept", "content": {"name": value, "value": value}}
        for key in waiting
        for name, value in names.items()
        if key.startswith(name)
    }
    return await client.result("tasks/update", {"taskId": id, "inputResponses": responses})


def test_a_tool_becomes_a_task_and_its_result_is_that_of_the_call() -> None:
    async def main() -> None:
        jobs = Jobs(poll_interval=2.5)
        async with opened(jobs) as client:
            created = await client.call("add", a=1, b=2)
            assert created["resultType"] == "task"
            assert created["status"] == "working"
            assert created["pollIntervalMs"] == 2500
            assert created["ttlMs"] == 3_900_000
            assert created["createdAt"].endswith("Z")
            assert "result" not in created
            task = await until(client, created["taskId"], *FINAL)
            assert task["resultType"] == "complete"
            assert task["status"] == "completed"
            assert task["result"]["structuredContent"] == {"result": 3}
            assert task["result"]["resultType"] == "complete"

    run(main)


def test_ids_of_tasks_cannot_be_guessed() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            ids = {await started(client, "add", a=1, b=2) for _ in range(50)}
            assert len(ids) == 50
            assert all(len(id) == 32 for id in ids)  # 24 bytes in Base64

    run(main)


def test_an_error_of_the_tool_completes_the_task() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            task = await until(client, await started(client, "fail"), *FINAL)
            assert task["status"] == "completed"
            assert task["result"]["isError"] is True
            assert task["result"]["content"][0]["text"] == "no such luck"

    run(main)


def test_an_error_of_the_method_fails_the_task() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            task = await until(client, await started(client, "refuse"), *FINAL)
            assert task["status"] == "failed"
            assert task["error"] == {"code": -32000, "message": "not today", "data": {"until": "tomorrow"}}
            assert task["statusMessage"] == "not today"
            assert "result" not in task

    run(main)


def test_a_tool_without_the_option_is_never_a_task() -> None:
    async def main() -> None:
        jobs = Jobs()
        jobs.server.add_tool(jobs.add, name="plain")
        async with opened(jobs) as client:
            assert (await client.call("plain", a=1, b=2))["resultType"] == "complete"

    run(main)


@each("revision", SUPPORTED)
def test_a_client_without_tasks_gets_the_result_at_once(revision: str) -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(revision)
            result = await client.call("add", a=1, b=2)
            assert result["content"][0]["text"] == "3"

    run(main)


@each("revision", SUPPORTED)
def test_a_tool_that_is_a_task_only_rejects_a_client_without_tasks(revision: str) -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(revision)
            error = await client.error("tools/call", {"name": "only", "arguments": {"a": 1, "b": 2}})
            if client.is_modern:
                assert error["code"] == -32021
                assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            else:
                assert error["code"] == -32601
                assert "this call runs as a task only" in error["message"]

    run(main)


@each("revision", LEGACY)
def test_a_legacy_client_that_declares_tasks_gets_the_result_at_once(revision: str) -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(revision, **DECLARED)
            assert (await client.call("add", a=1, b=2))["content"][0]["text"] == "3"

    run(main)


@each("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_an_unknown_task_is_an_error(method: str) -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            error = await client.error(method, {"taskId": "no", "inputResponses": {}})
            assert error["code"] == -32602
            assert error["message"] == "unknown task: it never was, or it was deleted"
            assert error["data"] == {"path": "params.taskId"}

    run(main)


@each("method", ["tasks/list", "tasks/result"])
def test_methods_that_the_extension_does_not_have_are_unknown(method: str) -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            assert (await client.error(method, {"taskId": "no"}))["code"] == -32601

    run(main)


# Input


def test_a_question_waits_in_the_task_until_it_is_answered() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "greet")
            task = await until(client, id, "input_required")
            ((key, question),) = task["inputRequests"].items()
            assert key.startswith("name:")
            assert question["method"] == "elicitation/create"
            assert question["params"]["message"] == "Your name?"
            assert set(await answer(client, id, name="Ada")) == {"resultType", "_meta"}
            task = await until(client, id, *FINAL)
            assert task["result"]["content"][0]["text"] == "Hello, Ada!"

    run(main)


def test_each_question_is_answered_once_and_has_a_key_of_its_own() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "introduce")
            first = await until(client, id, "input_required")
            await answer(client, id, two="Bo")
            partly = await state(client, id)
            assert partly["status"] == "input_required"
            assert [key.partition(":")[0] for key in partly["inputRequests"]] == ["one"]
            await answer(client, id, one="Al")
            async with asyncio.timeout(60):
                while not (later := (await state(client, id)).get("inputRequests")):
                    await asyncio.sleep(0.005)
            assert [question["params"]["message"] for question in later.values()] == ["really?"]
            assert not later.keys() & first["inputRequests"].keys()
            await answer(client, id, one="Cy")
            task = await until(client, id, *FINAL)
            assert task["result"]["structuredContent"] == {"result": ["Al", "Bo", "Al", "Cy"]}

    run(main)


def test_answers_to_no_question_are_ignored_and_reported() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "greet")
            ((key, _),) = (await until(client, id, "input_required"))["inputRequests"].items()
            good = {"action": "accept", "content": {"value": "Ada"}}
            await client.result("tasks/update", {"taskId": id, "inputResponses": {"else": good, "odd": {"x": 1}}})
            assert (await state(client, id))["status"] == "input_required"
            await client.result("tasks/update", {"taskId": id, "inputResponses": {key: good}})
            await until(client, id, *FINAL)
            await client.result("tasks/update", {"taskId": id, "inputResponses": {key: good}})
            texts = [report.text for report in client.of_kind(DiagnosticKind.UNEXPECTED_RESPONSE)]
            assert f'inputResponses: no question of the task waits for "{key}": ignored' in texts
            assert 'inputResponses: no question of the task waits for "else": ignored' in texts

    run(main)


def test_an_answer_that_does_not_fit_its_form_is_an_error_and_can_be_given_again() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "greet")
            ((key, _),) = (await until(client, id, "input_required"))["inputRequests"].items()
            wrong = {key: {"action": "accept", "content": {"value": 7}}}
            error = await client.error("tasks/update", {"taskId": id, "inputResponses": wrong})
            assert error["code"] == -32602
            assert "expected string, got 7" in error["message"]
            await answer(client, id, name="Ada")
            assert (await until(client, id, *FINAL))["status"] == "completed"

    run(main)


def test_a_question_that_the_client_cannot_answer_fails_the_task() -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            task = await until(client, await started(client, "greet"), *FINAL)
            assert task["status"] == "failed"
            assert task["error"]["code"] == -32021
            assert task["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}

    run(main)


# Progress, cancellation, end


def test_progress_is_the_text_of_the_task() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            id = await started(client, "wait", steps=3)
            async with asyncio.timeout(60):
                while (await state(client, id)).get("statusMessage") != "3 of 3: waiting":
                    await asyncio.sleep(0.005)
            jobs.go.set()
            assert "statusMessage" not in await until(client, id, *FINAL)

    run(main)


def test_a_log_message_of_a_task_is_reported_and_not_sent() -> None:
    async def main() -> None:
        jobs = Jobs()

        async def log(ctx: Context) -> str:
            await ctx.info("working")
            return "done"

        jobs.server.add_tool(log, task="optional")
        async with opened(jobs) as client:
            result = await client.result(
                "tools/call", {"name": "log", "arguments": {}}, meta={"io.modelcontextprotocol/logLevel": "debug"}
            )
            await until(client, result["taskId"], *FINAL)
            assert client.unread() == []
            (report,) = client.of_kind(DiagnosticKind.DROPPED)
            assert report.text == "notifications/message is not sent: the call has outlived its request"

    run(main)


def test_a_cancelled_task_stops_and_stays_cancelled() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            id = await started(client, "wait")
            while not jobs.contexts:
                await asyncio.sleep(0)
            for _ in range(2):
                assert set(await client.result("tasks/cancel", {"taskId": id})) == {"resultType", "_meta"}
                assert (await state(client, id))["status"] == "cancelled"
            assert jobs.ended == ["cancelled"]
            jobs.go.set()
            assert (await state(client, id))["status"] == "cancelled"

    run(main)


def test_a_task_that_has_ended_cannot_be_cancelled() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "add", a=1, b=2)
            await until(client, id, *FINAL)
            await client.result("tasks/cancel", {"taskId": id})
            assert (await state(client, id))["status"] == "completed"

    run(main)


def test_a_cancelled_task_that_waits_for_input_ends() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "greet")
            await until(client, id, "input_required")
            await client.result("tasks/cancel", {"taskId": id})
            task = await state(client, id)
            assert task["status"] == "cancelled"
            assert "inputRequests" not in task

    run(main)


def test_a_function_in_a_thread_learns_that_its_task_was_cancelled() -> None:
    async def main() -> None:
        jobs, states = Jobs(), list[str]()

        def block(ctx: Context) -> str:
            states.append("began")
            ctx.progress(1, message="in a thread")
            while not ctx.cancelled:
                time.sleep(0.001)
            states.append("ended")
            return ""

        jobs.server.add_tool(block, task="optional")
        async with opened(jobs) as client:
            id = await started(client, "block")
            while (await state(client, id)).get("statusMessage") != "1: in a thread":
                await asyncio.sleep(0.001)
            await client.result("tasks/cancel", {"taskId": id})
            async with asyncio.timeout(60):
                while states != ["began", "ended"]:
                    await asyncio.sleep(0.001)

    run(main)


def test_an_exception_fails_the_task_without_its_text_and_is_reported() -> None:
    async def main() -> None:
        tasks = ServerTasks()

        class Broken:
            async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
                async def work(ctx: Context) -> Any:
                    raise RuntimeError("secret")

                return await tasks.run(ctx, work)

        async with served(Broken(), extensions=[tasks]) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            task = await until(client, await started(client, "any"), *FINAL)
            assert task["error"] == {"code": -32603, "message": "internal error in tools/call"}
            (report,) = client.of_kind(DiagnosticKind.INTERNAL_ERROR)
            assert isinstance(report.error, RuntimeError)

    run(main)


def test_tasks_fail_when_the_server_ends() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with opened(jobs) as client:
            id = await started(client, "wait")
        assert jobs.ended in ([], ["cancelled"])
        record = await jobs.tasks.store.load(id)
        assert record is not None
        assert record.status == "failed"
        assert record.content == {
            "code": -32603, "message": "the server was stopped before the task was complete",
        }  # fmt: skip

    run(main)


# Limits


def test_a_task_that_takes_too_long_fails() -> None:
    async def main() -> None:
        jobs = Jobs(limits=TaskLimits(ttl=0.02))
        async with opened(jobs) as client:
            task = await until(client, await started(client, "wait"), *FINAL)
            assert task["status"] == "failed"
            assert task["error"]["message"] == "the task took longer than 0.02 s (ttl)"
            assert jobs.ended == ["cancelled"]

    run(main)


def test_a_task_is_deleted_after_its_time() -> None:
    async def main() -> None:
        async with opened(Jobs(limits=TaskLimits(ttl=0.01, keep=0.02))) as client:
            id = await started(client, "add", a=1, b=2)
            async with asyncio.timeout(60):
                while "error" not in await client.request("tasks/get", {"taskId": id}):
                    await asyncio.sleep(0.005)

    run(main)


def test_a_call_that_needs_one_task_too_many_is_an_error() -> None:
    async def main() -> None:
        jobs = Jobs(limits=TaskLimits(tasks=2, client_share_percent=100))
        async with opened(jobs) as client:
            for _ in range(2):
                await started(client, "wait")
            error = await client.error("tools/call", {"name": "wait"})
            assert error["code"] == -32603
            assert error["message"] == (
                "no further task: all clients together have as many tasks as the limit allows (tasks); try again later"
            )

    run(main)


def test_a_result_that_is_too_large_fails_the_task() -> None:
    async def main() -> None:
        async with opened(Jobs(limits=TaskLimits(result_bytes=1000))) as client:
            task = await until(client, await started(client, "large", size=2000), *FINAL)
            assert task["status"] == "failed"
            assert "bytes; the limit is 1000 (result_bytes)" in task["error"]["message"]

    run(main)


def test_a_result_that_does_not_fit_into_the_store_fails_the_task() -> None:
    async def main() -> None:
        async with opened(Jobs(limits=TaskLimits(task_bytes=5000, client_share_percent=100))) as client:
            task = await until(client, await started(client, "large", size=5000), *FINAL)
            assert task["status"] == "failed"
            assert task["error"]["message"].startswith("the result does not fit: all clients together")

    run(main)


@each("limit", [{"tasks": 0}, {"ttl": -1.0}, {"keep": float("inf")}, {"client_share_percent": 101}])
def test_limits_that_make_no_sense_are_rejected(limit: dict[str, Any]) -> None:
    with pytest.raises(typedmcp.UsageError, match=f"tasks: {next(iter(limit))} must be"):
        TaskLimits(**limit)


# Principals


@asynccontextmanager
async def connected(server: typedmcp.Server, *principals: Principal) -> AsyncGenerator[list[Client]]:
    """Connect a client for each principal to one server."""
    config = typedmcp.ServerConfig(server)
    async with asyncio.TaskGroup() as group:
        clients: list[Client] = []
        for principal in principals:
            mine, theirs = typedmcp.memory_pair()
            connection = ServerConnection(config, theirs, principal=principal)
            group.create_task(connection.run())
            clients.append(Client(mine, connection, []))
            await clients[-1].open(MODERN_REVISION, **DECLARED)
        yield clients
        for client in clients:
            await client._transport.close()  # pyright: ignore[reportPrivateUsage]


def test_a_task_belongs_to_its_principal() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with connected(jobs.server, Principal("ada"), Principal("bob"), Principal("ada")) as (ada, bob, again):
            id = await started(ada, "wait")
            for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                error = await bob.error(method, {"taskId": id, "inputResponses": {}})
                assert error["message"] == "unknown task: it never was, or it was deleted"
            bob.start("subscriptions/listen", {"notifications": {"taskIds": [id]}})
            assert (await bob.receive())["params"]["notifications"] == {"taskIds": []}
            assert (await state(again, id))["status"] == "working"
            assert jobs.contexts[0].principal == Principal("ada")

    run(main)


# Notifications


def test_a_listener_is_notified_of_the_states_of_its_tasks() -> None:
    async def main() -> None:
        async with opened(Jobs()) as client:
            id = await started(client, "greet")
            await until(client, id, "input_required")
            listening = client.start("subscriptions/listen", {"notifications": {"taskIds": [id, "unknown", id]}})
            acknowledged = await client.receive()
            assert acknowledged["params"]["notifications"] == {"taskIds": [id]}
            states: list[Json] = []
            first = (await client.receive())["params"]
            assert first["status"] == "input_required"
            assert next(iter(first["inputRequests"])).startswith("name:")
            states.append(first)
            await answer(client, id, name="Ada")
            while states[-1]["status"] not in FINAL:
                message = await client.receive()
                assert message["method"] == "notifications/tasks"
                states.append(message["params"])
            assert states[-1]["taskId"] == id
            assert states[-1]["result"]["content"][0]["text"] == "Hello, Ada!"
            assert states[-1]["_meta"] == {"io.modelcontextprotocol/subscriptionId": listening}

    run(main)


def test_a_client_without_tasks_cannot_listen_to_them() -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(MODERN_REVISION)
            error = await client.error("subscriptions/listen", {"notifications": {"taskIds": ["a"]}})
            assert error["code"] == -32021

    run(main)


@each("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_methods_of_tasks_are_for_clients_with_tasks(method: str) -> None:
    async def main() -> None:
        async with served(Jobs().server, name=None, version=None) as client:
            await client.open(MODERN_REVISION)
            error = await client.error(method, {"taskId": "a", "inputResponses": {}})
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}

    run(main)


# Tools and handlers


@each(
    "options, problem",
    [
        ({"task": "optional"}, r"tool 'add': task needs an extension of the server: Server\(…, extensions="),
        ({"task": "sometimes"}, "tool 'add': task must be 'optional' or 'required', not 'sometimes'"),
        ({"retry": True}, "tool 'add': retry is for tasks: set task to 'optional' or 'required'"),
    ],
)
def test_options_that_make_no_sense_are_rejected(options: Any, problem: str) -> None:
    server = typedmcp.Server("plain")
    with pytest.raises(typedmcp.UsageError, match=problem):
        server.add_tool(Jobs().add, name="add", **options)


def test_the_options_of_the_extension_are_checked() -> None:
    with pytest.raises(typedmcp.UsageError, match="poll_interval must be between"):
        ServerTasks(poll_interval=0)
    with pytest.raises(typedmcp.UsageError, match="limits: a store has its own"):
        ServerTasks(MemoryTaskStore(), limits=TaskLimits())


@each("has_tasks", [True, False])
def test_a_tool_of_a_mounted_server_is_a_task_of_the_outer_one(has_tasks: bool) -> None:
    async def main() -> None:
        outer = typedmcp.Server("outer", extensions=[ServerTasks()] if has_tasks else [])
        outer.mount(Jobs().server, "jobs")
        async with served(outer, name=None, version=None) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            result = await client.call("jobs_add", a=1, b=2)
            if has_tasks:
                result = (await until(client, result["taskId"], *FINAL))["result"]
            assert result["content"][0]["text"] == "3"
            if not has_tasks:
                error = await client.error("tools/call", {"name": "jobs_only", "arguments": {"a": 1, "b": 2}})
                assert error["code"] == -32603
                (report,) = client.of_kind(DiagnosticKind.INTERNAL_ERROR)
                assert "task needs an extension of the server that is served" in str(report.error)

    run(main)


def test_middleware_runs_around_the_methods_of_tasks() -> None:
    async def main() -> None:
        jobs, seen = Jobs(), list[str]()

        @jobs.server.middleware
        async def note(ctx: Context, params: Any, call_next: typedmcp.CallNext) -> Any:
            seen.append(ctx.method)
            return await call_next()

        async with opened(jobs) as client:
            id = await started(client, "add", a=1, b=2)
            await state(client, id)
            await client.result("tasks/cancel", {"taskId": id})
            assert seen == ["tools/call", "tasks/get", "tasks/cancel"]

    run(main)


class ByHand:
    """A handler that asks a question within the request, and another one within the task."""

    def __init__(self, tasks: ServerTasks, make: Callable[[str], Any]) -> None:
        self.tasks = tasks
        self.make = make

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        first = await ctx.elicit("First name?", str)

        async def work(ctx: Context) -> Any:
            last = await ctx.elicit("Last name?", str)
            return self.make(f"{first.data} {last.data}")

        return await self.tasks.run(ctx, work)


def _struct(text: str) -> structs.CallToolResult:
    return structs.CallToolResult(content=[structs.TextContent(text=text)])


def _model(text: str) -> models.CallToolResult:
    return models.CallToolResult(content=[models.TextContent(text=text)])


@each("codec, make", [("msgspec", _struct), ("pydantic", _model)])
def test_a_handler_asks_before_the_task_and_within_it(codec: str, make: Callable[[str], Any]) -> None:
    async def main() -> None:
        tasks = ServerTasks()
        async with served(ByHand(tasks, make), extensions=[tasks], codec=codec) as client:
            await client.open(MODERN_REVISION, **DECLARED, elicitation={})
            asked = await client.call("name")
            assert asked["resultType"] == "input_required"
            (key,) = asked["inputRequests"]
            responses = {key: {"action": "accept", "content": {"value": "Ada"}}}
            again = {
                "name": "name",
                "arguments": {},
                "inputResponses": responses,
                "requestState": asked["requestState"],
            }
            created = await client.result("tools/call", again)
            assert created["resultType"] == "task"
            assert "requestState" not in created
            id = created["taskId"]
            await until(client, id, "input_required")
            await answer(client, id, **{"elicitation/create#2": "Lovelace"})
            task = await until(client, id, *FINAL)
            assert task["result"]["content"][0]["text"] == "Ada Lovelace"

    run(main)


def test_a_task_cannot_return_a_request_for_input() -> None:
    async def main() -> None:
        tasks = ServerTasks()

        class Asking:
            async def call_tool(self, params: Any, ctx: Context) -> Any:
                return await tasks.run(ctx, lambda ctx: structs.InputRequiredResult(request_state="x"))

        async with served(Asking(), extensions=[tasks]) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            task = await until(client, await started(client, "any"), *FINAL)
            assert task["status"] == "failed"
            (report,) = client.of_kind(DiagnosticKind.INTERNAL_ERROR)
            assert "a call that goes on after its request cannot return InputRequiredResult" in str(report.error)

    run(main)
