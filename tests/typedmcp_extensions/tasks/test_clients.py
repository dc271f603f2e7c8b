"""Clients with tasks: calls that wait for them, questions that are answered once, and processes that resume them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from mcpspec.ext.tasks import methods, structs
from tests.cases import each
from tests.server.scripted import LEGACY, run
from typedmcp import Context, text_of
from typedmcp.dialect import structs as dialect_structs
from typedmcp.revisions.features import FEATURES
from typedmcp_extensions.tasks import ClientTasks, ServerTasks, SyncTaskCalls, TaskCalls, TaskLimits


class Jobs:
    """A server that stays open while its clients come and go."""

    def __init__(self) -> None:
        self.server = typedmcp.Server("jobs", extensions=[ServerTasks(poll_interval=0.01)])
        self.go = asyncio.Event()
        self.ends: list[str] = []
        for function in (self.greet, self.wait, self.refuse, self.add):
            self.server.add_tool(function, task="optional")

    async def greet(self, ctx: Context) -> str:
        """Ask for a name."""
        await ctx.progress(1, 2, "asking")
        answer = await ctx.elicit("Your name?", str)
        return f"Hello, {answer.data}!"

    async def wait(self) -> str:
        """Wait until the test lets it go."""
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")
        return "gone"

    async def refuse(self) -> str:
        """Fail as a method does."""
        raise typedmcp.RemoteError(-32000, "not today", {"until": "tomorrow"})

    async def add(self, a: int, b: int) -> int:
        """Add numbers."""
        return a + b

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[typedmcp.ServerConfig]:
        """Keep the tasks running, whether or not there is a client."""
        config = typedmcp.ServerConfig(self.server)
        async with config.lifespans.use():
            yield config


class Person:
    """Answers the questions of servers, and counts them."""

    def __init__(self, name: str = "Ada") -> None:
        self.name = name
        self.asked = 0

    async def __call__(self, params: Any) -> Any:
        self.asked += 1
        return {"value": self.name}


async def until_waiting(tasks: TaskCalls, id: str) -> structs.GetTaskResultInputRequired:
    """Wait until a task asks a question."""
    async with asyncio.timeout(5):
        while True:
            task = await tasks.get(id)
            if isinstance(task, structs.GetTaskResultInputRequired):
                return task
            await asyncio.sleep(0.005)


@each("listen", [False, True])
def test_a_call_waits_for_its_task_and_answers_its_questions(listen: bool) -> None:
    async def main() -> None:
        person, states = Person(), list[tuple[str, str | None]]()
        tasks = ClientTasks(listen=listen, on_status=lambda task: states.append((task.status, task.status_message)))
        async with typedmcp.connect(Jobs().server, extensions=[tasks], elicit=person) as client:
            assert text_of(await client.call_tool("greet")) == "Hello, Ada!"
            assert await client.call_tool("add", {"a": 1, "b": 2}, result_type=int) == 3
            assert person.asked == 1
            assert ("input_required", "1 of 2: asking") in states
            assert states[-1][0] == "completed"
            assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_server_that_sends_changes_is_seldom_asked() -> None:
    async def main() -> None:
        frames: list[str] = []
        jobs = Jobs()
        async with typedmcp.connect(
            jobs.server,
            extensions=[ClientTasks(listen=True)],
            on_frame=lambda sender, frame: frames.append(frame.decode()),
        ) as client:
            calling = asyncio.create_task(client.call_tool("wait"))
            await asyncio.sleep(0.2)  # twenty times the poll interval
            jobs.go.set()
            assert text_of(await calling) == "gone"
        assert 1 <= sum('"tasks/get"' in frame and '"id"' in frame for frame in frames) <= 4

    run(main)


def test_a_failed_task_raises_its_error() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().server, extensions=[ClientTasks()]) as client:
            with pytest.raises(typedmcp.RemoteError, match="not today") as caught:
                await client.call_tool("refuse")
            assert (caught.value.code, caught.value.data) == (-32000, {"until": "tomorrow"})
            assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_question_without_a_callback_fails_the_call() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().server, extensions=[ClientTasks()]) as client:
            with pytest.raises(typedmcp.MissingCapabilityError, match="elicitation"):
                await client.call_tool("greet")

    run(main)


@each("revision", [each for each in LEGACY if not FEATURES[each].has_tasks])
def test_a_server_of_an_older_revision_runs_the_tool_within_the_request(revision: str) -> None:
    async def main() -> None:
        async with typedmcp.connect(
            Jobs().server, extensions=[ClientTasks()], revisions=[revision], elicit=Person()
        ) as client:
            assert await client.call_tool("add", {"a": 1, "b": 2}, result_type=int) == 3
            assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_cancelled_call_cancels_its_task() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with typedmcp.connect(jobs.server, extensions=[ClientTasks()]) as client:
            calling = asyncio.create_task(client.call_tool("wait"))
            while not client.extension(TaskCalls).list():
                await asyncio.sleep(0.001)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            assert jobs.ends == ["cancelled"]
            assert client.extension(TaskCalls).list() == []

    run(main)


def test_a_call_that_takes_too_long_cancels_its_task() -> None:
    async def main() -> None:
        jobs = Jobs()
        async with typedmcp.connect(jobs.server, extensions=[ClientTasks()]) as client:
            with pytest.raises(typedmcp.RequestTimeoutError):
                await client.call_tool("wait", max_time=0.05)
            assert jobs.ends == ["cancelled"]

    run(main)


def test_a_task_can_be_begun_listed_cancelled_and_looked_at() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().server, extensions=[ClientTasks()]) as client:
            task = await client.extension(TaskCalls).begin("wait")
            assert isinstance(task, structs.CreateTaskResult)
            assert [(each.id, each.tool) for each in client.extension(TaskCalls).list()] == [(task.task_id, "wait")]
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "working"
            await client.extension(TaskCalls).cancel(task.task_id)
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "cancelled"
            assert client.extension(TaskCalls).list() == []
            with pytest.raises(typedmcp.TaskCancelledError, match="the task was cancelled"):
                await client.extension(TaskCalls).resume(task.task_id)

    run(main)


def test_a_tool_that_is_no_task_can_be_begun_as_well() -> None:
    async def main() -> None:
        jobs = Jobs()
        jobs.server.add_tool(jobs.add, name="plain")
        async with typedmcp.connect(jobs.server, extensions=[ClientTasks()]) as client:
            result = await client.extension(TaskCalls).begin("plain", {"a": 1, "b": 2})
            assert isinstance(result, dialect_structs.CallToolResult)

    run(main)


def test_a_later_process_resumes_a_task_by_its_id(tmp_path: Path) -> None:
    async def main() -> None:
        jobs, journal = Jobs(), tmp_path / "tasks.json"
        async with jobs.open() as config:
            async with typedmcp.connect(config, extensions=[ClientTasks(journal)]) as client:
                await client.extension(TaskCalls).begin("wait")
            assert os.stat(journal).st_mode & 0o777 == 0o600
            jobs.go.set()
            async with typedmcp.connect(config, extensions=[ClientTasks(journal)]) as client:
                (known,) = client.extension(TaskCalls).list()
                assert known.tool == "wait"
                assert text_of(await client.extension(TaskCalls).resume(known.id)) == "gone"
                assert client.extension(TaskCalls).list() == []
            assert journal.read_text() == "[]"

    run(main)


def test_a_later_process_does_not_ask_again_what_was_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process has the answer of the user, and dies before the server has it."""

    async def main() -> None:
        jobs, journal, person, other = Jobs(), tmp_path / "tasks.json", Person(), Person("Bob")
        async with jobs.open() as config:
            async with typedmcp.connect(config, extensions=[ClientTasks(journal)], elicit=person) as client:
                task = await client.extension(TaskCalls).begin("greet")
                await until_waiting(client.extension(TaskCalls), task.task_id)
                sends = client.extension(TaskCalls)._client.send  # pyright: ignore[reportPrivateUsage]

                async def die(method: Any, *args: Any, **options: Any) -> Any:
                    if method is methods.TASKS_UPDATE:
                        raise asyncio.CancelledError
                    return await sends(method, *args, **options)

                monkeypatch.setattr(client.extension(TaskCalls)._client, "send", die)  # pyright: ignore[reportPrivateUsage]
                with pytest.raises(asyncio.CancelledError):
                    await client.extension(TaskCalls).resume(task.task_id)
            async with typedmcp.connect(config, extensions=[ClientTasks(journal)], elicit=other) as client:
                assert text_of(await client.extension(TaskCalls).resume(task.task_id)) == "Hello, Ada!"
            assert (person.asked, other.asked) == (1, 0)

    run(main)


def test_a_resumed_task_goes_on_if_its_call_is_cancelled() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().server, extensions=[ClientTasks()]) as client:
            task = await client.extension(TaskCalls).begin("wait")
            resuming = asyncio.create_task(client.extension(TaskCalls).resume(task.task_id))
            await asyncio.sleep(0.02)
            resuming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await resuming
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "working"
            assert len(client.extension(TaskCalls).list()) == 1

    run(main)


def test_a_task_that_the_server_does_not_know_is_an_error() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().server, extensions=[ClientTasks()]) as client:
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown task"):
                await client.extension(TaskCalls).resume("no")

    run(main)


def test_a_client_without_the_extension_has_no_tasks() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().server) as client:
            with pytest.raises(typedmcp.UsageError, match="the client has no extension TaskCalls; it has none"):
                _ = client.extension(TaskCalls)

    run(main)


def test_a_file_that_is_no_journal_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text("{}")
    with pytest.raises(typedmcp.UsageError, match="is no journal of tasks"):
        typedmcp.connect(Jobs().server, extensions=[ClientTasks(tmp_path / "tasks.json")])


def test_a_blocking_client_has_tasks() -> None:
    tasks = ServerTasks(poll_interval=0.01, limits=TaskLimits(ttl=60))
    server = typedmcp.Server("jobs", extensions=[tasks])

    @server.tool(task="optional")
    async def greet(ctx: Context) -> str:
        """Ask for a name."""
        return f"Hello, {(await ctx.elicit('Your name?', str)).data}!"

    def answer(params: Any) -> Any:
        return {"value": "Ada"}

    with typedmcp.sync.connect(server, extensions=[ClientTasks()], elicit=answer) as client:
        assert text_of(client.call_tool("greet")) == "Hello, Ada!"
        calls = SyncTaskCalls(client)
        task = calls.begin("greet")
        assert [each.id for each in calls.list()] == [task.task_id]
        assert calls.get(task.task_id).status in ("working", "input_required")
        assert text_of(calls.resume(task.task_id)) == "Hello, Ada!"
        other = calls.begin("greet")
        calls.cancel(other.task_id)
        assert calls.list() == []
