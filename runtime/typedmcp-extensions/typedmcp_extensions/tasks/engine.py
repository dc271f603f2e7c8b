"""The engine of a server's tasks: its runs, its listeners, and its lease in the store."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import Protocol

from typedmcp import Context, ServerConfig
from typedmcp.building import log_failure
from typedmcp.errors import INTERNAL_ERROR, RemoteError
from typedmcp.extensions import answers_given, detach, restore_call, store_call
from typedmcp_extensions.tasks.runs import RunCaller, TaskRun
from typedmcp_extensions.tasks.store import NewTask, Outcome, TakenTask, TaskRecord, TasksFullError, TaskStore

__all__ = ["TaskDelivery", "TaskEngine", "TaskListener", "TaskReports", "new_task_id"]

_RENEWALS_PER_LEASE = 3
_PAUSE = 0.1
_ID_BYTES = 24
_STOPPED = "the server was stopped before the task was complete"


class TaskListener(Protocol):
    """Takes notice of the changes of a task."""

    def on_task(self, record: TaskRecord | None) -> None:
        """Take the present state of the task; None if it was deleted."""
        ...


class TaskDelivery(Protocol):
    """A request of a legacy client that asks the questions of a task."""

    async def stop_asking(self) -> None:
        """Withdraw the questions that are open."""
        ...


class TaskReports(Protocol):
    """Reports the status of a task to a session of a legacy revision."""

    def rebind(self, ctx: Context) -> None:
        """Report to the session of this request from now on."""
        ...


def new_task_id() -> str:
    """Return an id that cannot be guessed."""
    return secrets.token_urlsafe(_ID_BYTES)


class TaskEngine:
    """The tasks of one server in this process."""

    def __init__(self, config: ServerConfig, store: TaskStore, poll_ms: int) -> None:
        self.config: ServerConfig = config
        self.store: TaskStore = store
        self.poll_ms: int = poll_ms
        self.runs: dict[str, TaskRun] = {}
        """The runs of this worker, by task."""
        self.deliveries: dict[str, TaskDelivery] = {}
        """The requests of legacy clients that ask the questions of a task, by task."""
        self.reports: dict[str, TaskReports] = {}
        """The reports of the status of tasks to sessions of legacy revisions, by task."""
        self._is_closed = False
        self._listeners: dict[str, dict[TaskListener, None]] = {}
        self._publishing: dict[str, asyncio.Task[None]] = {}
        self._changed: set[str] = set()
        """Tasks that changed again while they were published."""
        self._renewing: asyncio.Task[None] | None = None
        self._renew_now = asyncio.Event()

    async def open(self) -> None:
        """Open the store, and begin to renew the lease."""
        await self.store.open(self._on_change)
        await self._renew()
        self._renewing = asyncio.get_running_loop().create_task(self._keep_lease())

    async def close(self) -> None:
        """Stop the runs and close the store."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        runs = [*self.runs.values()]
        for run in runs:
            await self._stop(run)
        if tasks := [run.task for run in runs if run.task is not None]:
            _, unended = await asyncio.wait(tasks, timeout=self.config.grace)
            self.config.report_unended(unended, self.config.grace)
        self._is_closed = True
        for task in [*self._publishing.values()]:
            task.cancel()
        await self.store.close()

    async def _stop(self, run: TaskRun) -> None:
        if self.store.is_shared and run.may_repeat:
            run.lose()
            with suppress(ConnectionError):
                await self.store.release(run.id, run.number)
        else:
            run.stop(_STOPPED)

    # Tasks

    async def start(self, ctx: Context, call: RunCaller, owner: str | None, *, may_repeat: bool) -> TaskRecord:
        """Create a task of an owner for a request, and begin to run it.

        Raises `RemoteError` if there are too many tasks. If the request is cancelled, so is the task.
        """
        starting = asyncio.ensure_future(self._start(ctx, call, owner, may_repeat=may_repeat))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._abandon)
            raise

    def _abandon(self, starting: asyncio.Future[TaskRecord]) -> None:
        """End a task whose id the client does not get."""
        if not starting.cancelled() and starting.exception() is None:
            run = self.runs.get(starting.result().id)
            if run is not None:
                run.stop("the request was cancelled before the client knew of the task")

    async def _start(self, ctx: Context, call: RunCaller, owner: str | None, *, may_repeat: bool) -> TaskRecord:
        client, id = ctx.client_key, new_task_id()
        run = TaskRun(self, id, 1, client if isinstance(client, str) else "", may_repeat=may_repeat)
        new = NewTask(
            id=id, owner=owner, client=run.client, call=store_call(ctx) if may_repeat else None, size=len(ctx.raw),
            answers=answers_given(ctx),
        )  # fmt: skip
        self.runs[id] = run
        try:
            record = await self.store.create(new)
        except BaseException as error:
            del self.runs[id]
            if isinstance(error, TasksFullError):
                raise RemoteError(INTERNAL_ERROR, f"no further task: {error}; try again later") from None
            raise
        run.begin(detach(ctx, run), call)
        return record

    def run_ended(self, run: TaskRun) -> None:
        """Forget a run."""
        if self.runs.get(run.id) is run:
            del self.runs[run.id]

    async def cancel(self, id: str) -> None:
        """End a task as cancelled, if it has not ended. Its run stops, on whichever worker it is."""
        await self.store.end(id, None, Outcome("cancelled"), 0)

    # Changes

    def _on_change(self, id: str | None, is_over: bool) -> None:
        """Take notice of a change in the store: wake the run of the task, and notify its listeners."""
        if id is None and self._renewing is not None:
            self._renew_now.set()
        for each in [*self.runs, *self._listeners] if id is None else [id]:
            run = self.runs.get(each)
            if run is not None:
                run.wake()
                if is_over:
                    run.lose()
            if each in self._listeners:
                self.publish(each)

    def listen(self, id: str, listener: TaskListener) -> None:
        """Notify a listener of the changes of a task, and of its present state."""
        self._listeners.setdefault(id, {})[listener] = None
        self.publish(id)

    def end_listening(self, id: str, listener: TaskListener) -> None:
        """Notify a listener no longer."""
        listeners = self._listeners.get(id, {})
        listeners.pop(listener, None)
        if not listeners:
            self._listeners.pop(id, None)

    def publish(self, id: str) -> None:
        """Notify the listeners of a task of its state, soon."""
        self._changed.add(id)
        if not self._is_closed and id not in self._publishing:
            self._publishing[id] = asyncio.get_running_loop().create_task(self._publish(id))

    async def _publish(self, id: str) -> None:
        try:
            while id in self._changed:
                self._changed.discard(id)
                record = await self.store.load(id)
                for listener in [*self._listeners.get(id, ())]:
                    listener.on_task(record)
        except ConnectionError:
            pass  # once the store can be reached again, it reports that any task may have changed
        except Exception as error:
            log_failure(logging.ERROR, "task: the listeners could not be notified", error)
        finally:
            del self._publishing[id]

    # The lease

    async def _keep_lease(self) -> None:
        """Renew the lease until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.store.lease / _RENEWALS_PER_LEASE):
                    await self._renew_now.wait()
            self._renew_now.clear()
            try:
                await self._renew()
            except Exception as error:
                if not isinstance(error, ConnectionError):
                    log_failure(logging.ERROR, "task: the lease of this worker could not be renewed", error)
                await asyncio.sleep(_PAUSE)

    async def _renew(self) -> None:
        lost, taken = await self.store.renew({id: run.number for id, run in self.runs.items() if run.has_begun})
        for id in lost:
            if id in self.runs:
                self.runs[id].lose()
        for task in taken:
            self._take_over(task)

    def _take_over(self, task: TakenTask) -> None:
        """Run a task again whose worker has died."""
        previous = self.runs.get(task.id)
        if previous is not None:  # of this worker, which was taken for dead
            previous.lose()
        run = self.runs[task.id] = TaskRun(self, task.id, task.run, task.client, may_repeat=True)
        try:
            ctx = restore_call(self.config, task.call, run)
        except Exception as error:
            log_failure(logging.ERROR, "task: a call of another worker could not be restored", error)
            run.fail("another version of the server has stored the task")
            return
        call_tool = self.config.call_tool
        assert call_tool is not None
        run.begin(ctx, lambda ctx: call_tool(ctx.params, ctx))
