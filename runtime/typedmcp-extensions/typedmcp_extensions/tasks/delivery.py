"""Questions and changes of tasks on their way to clients of legacy revisions."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from typedmcp import Context, types
from typedmcp.building import to_builtins
from typedmcp.dialect import methods as protocol
from typedmcp.errors import (
    INTERNAL_ERROR,
    InputUnavailableError,
    MissingCapabilityError,
    RemoteError,
    RequestTimeoutError,
)
from typedmcp.extensions import SessionHandle
from typedmcp_extensions.tasks.engine import TaskEngine
from typedmcp_extensions.tasks.revisions import RELATED_TASK, structs_of
from typedmcp_extensions.tasks.store import TaskRecord, is_unfinished
from typedmcp_extensions.tasks.wire import legacy_members, rejected_answer

__all__ = ["QuestionDelivery", "StatusReports"]


class QuestionDelivery:
    """Asks the client of one `tasks/result` request the questions of its task, until the task has ended.

    Of several requests for one task the newest asks: the client may have lost the others.
    """

    def __init__(self, engine: TaskEngine, record: TaskRecord, ctx: Context) -> None:
        self._engine, self._ctx, self._id = engine, ctx, record.id
        self._record: TaskRecord | None = record
        self._changed = asyncio.Event()
        self._asking: dict[str, asyncio.Task[None]] = {}
        """The questions that this request asks, by key."""

    async def run(self) -> TaskRecord | None:
        """Return the task once it has ended; None if it was deleted before. Raises the errors of the store."""
        self._ctx.request_meta = {RELATED_TASK: {"taskId": self._id}}
        previous, self._engine.deliveries[self._id] = self._engine.deliveries.get(self._id), self
        if previous is not None:
            await previous.stop_asking()
        self._engine.listen(self._id, self)
        try:
            while (record := self._record) is not None and is_unfinished(record.status):
                self._changed.clear()
                self._ask_new(record)
                await self._changed.wait()
                self._check_failures()
            return self._record
        finally:
            self._engine.end_listening(self._id, self)
            if self._engine.deliveries.get(self._id) is self:
                del self._engine.deliveries[self._id]
                self._engine.publish(self._id)  # an older request may ask again
            await self.stop_asking()

    def on_task(self, record: TaskRecord | None) -> None:
        """Take notice of the state of the task."""
        self._record = record
        self._changed.set()

    def _ask_new(self, record: TaskRecord) -> None:
        """Ask the questions that wait, and stop to ask those that were answered elsewhere."""
        for key, task in self._asking.items():
            if key not in record.questions:
                task.cancel()
        current = self._engine.deliveries.setdefault(self._id, self)
        for key, request in record.questions.items() if current is self else ():
            if key not in self._asking:
                task = self._asking[key] = asyncio.get_running_loop().create_task(self._ask(key, request))
                task.add_done_callback(lambda _task: self._changed.set())

    def _check_failures(self) -> None:
        """Raise the error of a question that could not be asked, or whose answer could not be stored."""
        for key, task in [*self._asking.items()]:
            if not task.done():
                continue
            if not task.cancelled():
                task.result()
            if self._record is None or key not in self._record.questions:
                del self._asking[key]

    async def stop_asking(self) -> None:
        """Withdraw the questions that are open."""
        asking = [*self._asking.values()]
        self._asking.clear()
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    async def _ask(self, key: str, request: Any) -> None:
        """Ask one question, and store the answer. An error of the client is an answer as well."""
        method: str = request["method"]
        asked: Any = types.from_builtins(request, protocol.INPUT_REQUESTS[method].message)
        try:
            answer: Any = to_builtins((await self._ctx.ask({key: asked}))[key])
        except (MissingCapabilityError, InputUnavailableError):  # another request of the client may be able to ask
            return
        except RequestTimeoutError as error:
            answer = rejected_answer(RemoteError(INTERNAL_ERROR, str(error)))
        except RemoteError as error:
            answer = rejected_answer(error)
        await self._engine.store.answer(self._id, {key: answer}, len(msgspec.json.encode(answer)))


class StatusReports:
    """Notifies the session that uses a task of its status, where the session can be reached."""

    def __init__(self, engine: TaskEngine, record: TaskRecord, ctx: Context) -> None:
        self._engine, self._id, self._status = engine, record.id, record.status
        self._session = SessionHandle(ctx)

    @staticmethod
    def follow(engine: TaskEngine, record: TaskRecord, ctx: Context) -> None:
        """Report the changes of a task to the session that has begun it."""
        reports = engine.reports[record.id] = StatusReports(engine, record, ctx)
        engine.listen(record.id, reports)

    def rebind(self, ctx: Context) -> None:
        """Report to the session of this request from now on."""
        self._session = SessionHandle(ctx)

    def on_task(self, record: TaskRecord | None) -> None:
        """Report a new status. A session that does not read gets none: clients must not rely on it."""
        session = self._session
        if record is not None and record.status != self._status and session.is_open:
            self._status = record.status
            members = legacy_members(record, self._engine.poll_ms)
            params = structs_of(session.revision).TaskStatusNotificationParams(**members)
            session.notify("notifications/tasks/status", params)
        if record is None or not is_unfinished(record.status):
            self._engine.end_listening(self._id, self)
            self._engine.reports.pop(self._id, None)
