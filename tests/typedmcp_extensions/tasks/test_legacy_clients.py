"""Clients with tasks on the revision that has tasks in the protocol itself: the same calls, and other messages."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from mcpspec.ext.tasks import structs
from tests.cases import each
from tests.client.test_extension_clients import over_http
from tests.client.test_misbehaviour import Script
from tests.listening import listening
from tests.server.http.asgi_driver import verify
from tests.server.scripted import Json, run
from tests.typedmcp_extensions.tasks.test_clients import Jobs, Person, until_waiting
from typedmcp import Auth, Context, text_of
from typedmcp.client import Client, connect
from typedmcp.revisions.features import FEATURES
from typedmcp_extensions.tasks import ClientTasks, TaskCalls

(REVISION,) = (revision for revision, features in FEATURES.items() if features.has_tasks)
RELATED = "io.modelcontextprotocol/related-task"
RESULT: Json = {"content": [{"type": "text", "text": "good"}]}
OFFER: Json = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
SERVER = [sys.executable, str(Path(__file__).parents[2] / "interop" / "servers" / "with_tasks.py")]


def connected(jobs: Any, tasks: ClientTasks | None = None, **options: Any) -> Client:
    """Return a client of a server in this process."""
    return connect(jobs, revisions=[REVISION], extensions=[tasks or ClientTasks()], **options)


class Frames:
    """The messages between client and server."""

    def __init__(self) -> None:
        self.sent: list[Json] = []

    def __call__(self, sender: str, frame: bytes) -> None:
        if sender == "client":
            self.sent.append(json.loads(frame))

    def of(self, method: str) -> list[Json]:
        return [frame["params"] for frame in self.sent if frame.get("method") == method]


# Our own server


def test_a_call_waits_for_its_task_and_answers_its_questions() -> None:
    async def main() -> None:
        person, frames, states = Person(), Frames(), list[str]()
        tasks = ClientTasks(on_status=lambda task: states.append(task.status), ttl=60)
        async with connected(Jobs().server, tasks, elicit=person, on_frame=frames) as client:
            assert text_of(await client.call_tool("greet")) == "Hello, Ada!"
            assert await client.call_tool("add", {"a": 1, "b": 2}, result_type=int) == 3
            assert client.extension(TaskCalls).list() == []
        assert person.asked == 1
        assert "input_required" in states
        assert states[-1] == "completed"
        assert [params["task"] for params in frames.of("tools/call")] == [{"ttl": 60_000}] * 2
        assert len(frames.of("tools/list")) == 1
        assert all("_meta" not in params for params in frames.of("tasks/get") + frames.of("tasks/result"))

    run(main)


def test_the_answer_names_the_task_of_its_question() -> None:
    async def main() -> None:
        frames = Frames()
        async with connected(Jobs().server, elicit=Person(), on_frame=frames) as client:
            task = await client.extension(TaskCalls).begin("greet")
            await client.extension(TaskCalls).resume(task.task_id)
        (answer,) = [frame["result"] for frame in frames.sent if "method" not in frame]
        assert answer["_meta"] == {RELATED: {"taskId": task.task_id}}

    run(main)


def test_a_tool_that_only_runs_as_a_task_can_be_called() -> None:
    async def main() -> None:
        jobs = Jobs()
        jobs.server.add_tool(jobs.add, name="only", task="required")
        jobs.server.add_tool(jobs.add, name="never")
        frames = Frames()
        async with connected(jobs.server, on_frame=frames) as client:
            for name in ("only", "never"):
                assert await client.call_tool(name, {"a": 1, "b": 2}, result_type=int) == 3
        assert ["task" in params for params in frames.of("tools/call")] == [True, False]

    run(main)


def test_a_failed_task_raises_its_error_and_a_failed_tool_returns_its_result() -> None:
    async def main() -> None:
        jobs = Jobs()

        async def fail() -> str:
            """Fail."""
            raise typedmcp.ToolError("out of paper")

        jobs.server.add_tool(fail, task="optional")
        async with connected(jobs.server) as client:
            with pytest.raises(typedmcp.RemoteError, match="not today") as caught:
                await client.call_tool("refuse")
            assert (caught.value.code, caught.value.data) == (-32000, {"until": "tomorrow"})
            failed = await client.call_tool("fail")
            assert (failed.is_error, text_of(failed)) == (True, "out of paper")
            assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_question_without_a_callback_fails_the_call() -> None:
    async def main() -> None:
        async with connected(Jobs().server) as client:
            with pytest.raises(typedmcp.RemoteError, match="elicitation"):
                await client.call_tool("greet")

    run(main)


@each("options", [{}, {"max_time": 0.5}], ids=["by its caller", "by its time"])
def test_a_cancelled_call_cancels_its_task(options: Any) -> None:
    async def main() -> None:
        jobs = Jobs()
        async with connected(jobs.server) as client:
            calling = asyncio.create_task(client.call_tool("wait", **options))
            while not client.extension(TaskCalls).list():
                await asyncio.sleep(0.001)
            if not options:
                calling.cancel()
            with pytest.raises(typedmcp.RequestTimeoutError if options else asyncio.CancelledError):
                await calling
            assert jobs.ends == ["cancelled"]
            assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_task_can_be_begun_listed_cancelled_and_looked_at() -> None:
    async def main() -> None:
        async with connected(Jobs().server) as client:
            task = await client.extension(TaskCalls).begin("wait")
            assert isinstance(task, structs.CreateTaskResult)
            assert (task.status, task.poll_interval_ms) == ("working", 10)
            assert [(each.id, each.tool) for each in client.extension(TaskCalls).list()] == [(task.task_id, "wait")]
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "working"
            for _ in range(2):  # the second time it has ended already
                await client.extension(TaskCalls).cancel(task.task_id)
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "cancelled"
            assert client.extension(TaskCalls).list() == []
            with pytest.raises(typedmcp.TaskCancelledError, match="the task was cancelled"):
                await client.extension(TaskCalls).resume(task.task_id)

    run(main)


def test_a_task_that_the_server_does_not_know_is_an_error() -> None:
    async def main() -> None:
        async with connected(Jobs().server) as client:
            for use in (
                client.extension(TaskCalls).get,
                client.extension(TaskCalls).cancel,
                client.extension(TaskCalls).resume,
            ):
                with pytest.raises(typedmcp.InvalidParamsError, match="unknown task"):
                    await use("no")

    run(main)


def test_a_resumed_task_goes_on_if_its_call_is_cancelled() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with connected(jobs.server) as client:
            task = await client.extension(TaskCalls).begin("wait")
            resuming = asyncio.create_task(client.extension(TaskCalls).resume(task.task_id))
            await asyncio.sleep(0.02)
            resuming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await resuming
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "working"
            jobs.go.set()
            assert text_of(await client.extension(TaskCalls).resume(task.task_id)) == "gone"

    run(main)


def test_sampling_and_roots_are_questions_as_well() -> None:
    async def main() -> None:
        jobs = Jobs()

        async def think(ctx: Context) -> str:
            """Ask the model, and for the roots."""
            answer = await ctx.sample("What?")
            roots = await ctx.list_roots()
            return f"{text_of(answer)} in {roots[0].uri}"

        jobs.server.add_tool(think, task="required")

        def sample(_params: object) -> str:
            return "that"

        async with connected(jobs.server, sample=sample, roots=["file:///home"]) as client:
            assert text_of(await client.call_tool("think")) == "that in file:///home"

    run(main)


def test_a_later_process_resumes_a_task_by_its_id(tmp_path: Path) -> None:
    """Over HTTP with a token: the task belongs to its principal, in whichever session."""

    async def main() -> None:
        jobs, journal = Jobs(), tmp_path / "tasks.json"
        auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
        async with over_http(jobs.server, auth=auth) as url:
            options: Any = {"headers": {"Authorization": "Bearer ann"}}
            async with connected(url, ClientTasks(journal), elicit=Person("Bob"), **options) as client:
                begun = await client.extension(TaskCalls).begin("greet")
                await until_waiting(client.extension(TaskCalls), begun.task_id)
            async with connected(url, ClientTasks(journal), elicit=Person(), **options) as client:
                (known,) = client.extension(TaskCalls).list()
                assert (known.id, known.tool) == (begun.task_id, "greet")
                assert text_of(await client.extension(TaskCalls).resume(known.id)) == "Hello, Ada!"
                assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_client_without_tasks_calls_tools_as_usual() -> None:
    async def main() -> None:
        frames = Frames()
        async with connect(Jobs().server, revisions=[REVISION], on_frame=frames) as client:
            assert await client.call_tool("add", {"a": 1, "b": 2}, result_type=int) == 3
        (params,) = frames.of("tools/call")
        assert "task" not in params

    run(main)


@each("ttl", ["1", [1]])
def test_a_time_that_is_no_number_is_rejected(ttl: Any) -> None:
    with pytest.raises(typedmcp.UsageError, match="ttl must be a number of seconds"):
        ClientTasks(ttl=ttl)


# Processes


@pytest.mark.long
@each("transport", ["stdio", "http"])
def test_tasks_of_another_process(transport: str) -> None:
    async def observe(target: Any) -> None:
        person = Person()
        async with connected(target, elicit=person) as client:
            assert text_of(await client.call_tool("greet")) == "Hello, Ada!"
            assert text_of(await client.call_tool("only")) == "done"
            assert text_of(await client.call_tool("quick")) == "at once"
            with pytest.raises(typedmcp.RequestTimeoutError):
                await client.call_tool("wait", max_time=0.5)
            assert client.extension(TaskCalls).list() == []
        assert person.asked == 1

    if transport == "stdio":
        run(lambda: observe(SERVER))
    else:
        with listening([*SERVER, "http"]) as server:
            run(lambda: observe(server.address))


# A server that the test plays


@asynccontextmanager
async def opened(
    tasks: ClientTasks | None = None, offer: Json = OFFER, **options: Any
) -> AsyncGenerator[tuple[Client, Script]]:
    near, far = typedmcp.memory_pair()
    reports: list[typedmcp.Diagnostic] = []
    script = Script(far, reports)
    client = connected(near, tasks, on_diagnostic=reports.append, **options)
    opening = asyncio.create_task(client.open())
    info = {"name": "script", "version": "1"}
    result = {"protocolVersion": REVISION, "capabilities": offer, "serverInfo": info}
    script.send(id=(await script.receive())["id"], result=result)
    await script.receive()
    await opening
    try:
        yield client, script
    finally:
        await client.close()


def task(status: str = "working", **members: Any) -> Json:
    return {
        "taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": None, "pollInterval": 1, **members,
    }  # fmt: skip


async def answer(script: Script, method: str, result: Json | None = None, error: Json | None = None) -> Json:
    """Answer the next request, which is one of a method, and return its parameters."""
    request = await script.receive()
    assert request["method"] == method
    script.send(id=request["id"], **({"result": result} if error is None else {"error": error}))
    params: Json = request["params"]
    return params


def tool(name: str, support: str | None) -> Json:
    execution = {} if support is None else {"execution": {"taskSupport": support}}
    return {"name": name, "inputSchema": {"type": "object"}, **execution}


async def begin(script: Script, support: str | None = "required", **members: Any) -> None:
    """List the tool that the client calls, and answer the call with a task."""
    await answer(script, "tools/list", {"tools": [tool("x", support)]})
    await answer(script, "tools/call", {"task": task(**members)})


def calling(client: Client) -> asyncio.Task[Any]:
    return asyncio.create_task(client.call_tool("x"))


@each("support", [None, "forbidden", "sometimes"])
def test_a_tool_without_support_is_called_as_usual(support: str | None) -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await answer(script, "tools/list", {"tools": [tool("x", support)]})
            assert "task" not in await answer(script, "tools/call", RESULT)
            assert text_of(await call) == "good"

    run(main)


@each("tasks", [None, {}, {"cancel": {}}, {"requests": {"tools": {}}}])
def test_no_tool_becomes_a_task_of_a_server_without_the_capability(tasks: Json | None) -> None:
    async def main() -> None:
        async with opened(offer={"tools": {}} if tasks is None else {"tools": {}, "tasks": tasks}) as (client, script):
            call = calling(client)
            assert "task" not in await answer(script, "tools/call", RESULT)
            assert text_of(await call) == "good"

    run(main)


def test_tools_are_listed_again_after_they_have_changed() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            for support in ("forbidden", "required"):
                call = calling(client)
                await answer(script, "tools/list", {"tools": [tool("other", None)], "nextCursor": "two"})
                params = await answer(script, "tools/list", {"tools": [tool("x", support)]})
                assert params["cursor"] == "two"
                assert ("task" in await answer(script, "tools/call", RESULT)) == (support == "required")
                assert text_of(await call) == "good"
                script.send(method="notifications/tools/list_changed")

    run(main)


def test_a_server_may_run_the_tool_within_the_request_all_the_same() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await answer(script, "tools/list", {"tools": [tool("x", "optional")]})
            assert await answer(script, "tools/call", RESULT) == {"name": "x", "task": {"ttl": 86_400_000}}
            assert text_of(await call) == "good"

    run(main)


def test_a_change_of_the_status_wakes_the_client() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            await answer(script, "tasks/get", task(pollInterval=3_600_000))
            script.send(method="notifications/tasks/status", params=task("completed", taskId="another"))
            assert await script.settled() == []
            script.send(method="notifications/tasks/status", params=task("completed"))
            await answer(script, "tasks/get", task("completed"))
            assert await answer(script, "tasks/result", RESULT) == {"taskId": "t"}
            assert text_of(await call) == "good"

    run(main)


def test_a_question_is_answered_while_the_result_is_requested() -> None:
    """The result then comes by itself, and is not requested again."""

    async def main() -> None:
        async with opened(elicit=Person()) as (client, script):
            call = calling(client)
            await begin(script)
            await answer(script, "tasks/get", task("input_required", pollInterval=3_600_000))
            waiting = await script.receive()
            assert (waiting["method"], waiting["params"]) == ("tasks/result", {"taskId": "t"})
            form = {"type": "object", "properties": {"value": {"type": "string"}}}
            params = {"message": "?", "requestedSchema": form, "_meta": {RELATED: {"taskId": "t"}}}
            script.send(id="q", method="elicitation/create", params=params)
            reply = await script.receive()
            assert reply["result"] == {
                "action": "accept", "content": {"value": "Ada"}, "_meta": {RELATED: {"taskId": "t"}},
            }  # fmt: skip
            script.send(id=waiting["id"], result=RESULT)
            await answer(script, "tasks/get", task("completed"))
            assert text_of(await call) == "good"

    run(main)


@each("related", [None, 1, [], {}, {"taskId": 1}, {"taskId": None}])
def test_an_answer_names_no_task_that_is_none(related: Any) -> None:
    async def main() -> None:
        async with opened(roots=["file:///a"]) as (_, script):
            script.send(id=1, method="roots/list", params={"_meta": {RELATED: related}})
            assert "_meta" not in (await script.receive())["result"]

    run(main)


def test_a_lost_request_for_the_result_is_repeated_at_the_pace_of_polls() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            for _ in range(3):
                await answer(script, "tasks/get", task("input_required"))
                await answer(script, "tasks/result", error={"code": -32603, "message": "not now"})
            await answer(script, "tasks/get", task("failed"))
            await answer(script, "tasks/result", error={"code": -32000, "message": "broken"})
            with pytest.raises(typedmcp.RemoteError, match="broken"):
                await call

    run(main)


@each("interval", [0, -5, 2**60])
def test_intervals_that_make_no_sense_are_bounded(interval: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp_extensions.tasks.client._MAX_POLL", 0.05)

    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            started = asyncio.get_running_loop().time()
            for _ in range(5):
                await answer(script, "tasks/get", task(pollInterval=interval if interval < 2**53 else 2**53 - 1))
            assert asyncio.get_running_loop().time() - started >= 4 * 0.02
            await answer(script, "tasks/get", task("cancelled", statusMessage="enough"))
            with pytest.raises(typedmcp.TaskCancelledError, match="enough"):
                await call

    run(main)


@each(
    "state, fault",
    [
        (task("resting"), r"tasks/get: result\.status: "),
        (task(taskId=7), r"tasks/get: result\.taskId: "),
        (task(pollInterval=2**60), r"tasks/get: result\.pollIntervalMs: "),
        ({}, r"tasks/get: result\.\w+: required, but missing"),
    ],
)
def test_a_state_that_is_not_valid_ends_the_call_and_cancels_the_task(state: Json, fault: str) -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            await answer(script, "tasks/get", state)
            await answer(script, "tasks/cancel", task("cancelled"))
            with pytest.raises(typedmcp.ProtocolError, match=fault):
                await call

    run(main)


def test_a_task_that_never_ends_ends_with_the_time_of_its_call() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = asyncio.create_task(client.call_tool("x", max_time=1))
            await begin(script)
            while (request := await script.receive())["method"] == "tasks/get":
                script.send(id=request["id"], result=task())
            assert (request["method"], request["params"]) == ("tasks/cancel", {"taskId": "t"})
            script.send(id=request["id"], result=task("cancelled"))
            with pytest.raises(typedmcp.RequestTimeoutError):
                await call

    run(main)


def test_a_completed_task_without_a_result_is_an_error() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            await answer(script, "tasks/get", task("completed"))
            await answer(script, "tasks/result", error={"code": -32602, "message": "unknown task"})
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown task"):
                await call

    run(main)


@each("text", [None, "out of paper"])
def test_a_failed_task_without_an_error_raises_one(text: str | None) -> None:
    """The official Python server has an empty result for such a task."""

    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            await answer(script, "tasks/get", task("failed", **({} if text is None else {"statusMessage": text})))
            await answer(script, "tasks/result", {})
            with pytest.raises(typedmcp.RemoteError, match=text or "does not say why"):
                await call

    run(main)


def test_a_result_that_is_not_valid_is_an_error() -> None:
    async def main() -> None:
        async with opened() as (client, script):
            call = calling(client)
            await begin(script)
            await answer(script, "tasks/get", task("completed"))
            await answer(script, "tasks/result", {"content": 1})
            await answer(script, "tasks/cancel", error={"code": -32602, "message": "has ended"})
            await answer(script, "tasks/get", task("completed"))
            with pytest.raises(typedmcp.ProtocolError, match="content"):
                await call

    run(main)


def test_a_server_that_cannot_cancel_is_not_asked_to() -> None:
    async def main() -> None:
        offer: Any = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
        async with opened(offer=offer) as (client, script):
            call = calling(client)
            await begin(script)
            await script.receive()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            with pytest.raises(typedmcp.UsageError, match="has not declared that it can cancel tasks"):
                await client.extension(TaskCalls).cancel("t")
            assert all(frame["method"] == "notifications/cancelled" for frame in await script.settled())

    run(main)


@each("strict", [False, True])
def test_a_task_without_a_lifetime_is_tolerated(strict: bool) -> None:
    """The official Python server leaves out members that are null."""

    async def main() -> None:
        async with opened(strict=strict) as (client, script):
            beginning = asyncio.create_task(client.extension(TaskCalls).begin("x"))
            state = task()
            del state["ttl"]
            await answer(script, "tools/list", {"tools": [tool("x", "required")]})
            await answer(script, "tools/call", {"task": state})
            if strict:
                with pytest.raises(typedmcp.ProtocolError, match=r"result\.task\.ttl: required"):
                    await beginning
            else:
                assert (await beginning).ttl_ms is None
                assert [report.text for report in script.reports] == [
                    "result: a task without ttl, which was read as null"
                ]

    run(main)
