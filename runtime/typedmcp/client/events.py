"""What a server says on its own: progress, log messages, changes, and the questions of older ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_object
from typedmcp import dialect
from typedmcp.client.cache import ResponseCache
from typedmcp.client.callbacks import Callbacks, refusal
from typedmcp.client.listening import KINDS, Changed, Subscription
from typedmcp.client.session import Pending, Session
from typedmcp.dispatch import is_awaitable
from typedmcp.edge.revisions import is_modern, methods
from typedmcp.errors import INTERNAL_ERROR
from typedmcp.meta import SUBSCRIPTION
from typedmcp.peer import Call, Kind, Report
from typedmcp.wire import RequestId

__all__ = ["Events"]

D = dialect.structs

_log = logging.getLogger("typedmcp")

_WAITING_NOTICES = 10_000
"""How many notifications may wait for callbacks that are slower than the server."""


_QUESTIONS = 256
"""How many questions of an older server are answered at a time."""


class Events:
    """Hands on what comes without having been asked for. The `Listener` of a client's sessions."""

    def __init__(
        self,
        callbacks: Callbacks,
        cache: ResponseCache,
        on_log: Callable[[D.LoggingMessageNotificationParams], object] | None,
        on_report: Callable[[Report], object] | None,
    ) -> None:
        self.session: Session | None = None
        """The session that is listened to."""
        self.revision: str | None = None
        """The revision that was agreed on, if any."""
        self.first_revision: str = ""
        """The one that questions are read as until then."""
        self.subscriptions: set[Subscription] = set()
        self._callbacks = callbacks
        self._cache = cache
        self._on_log = on_log
        self._on_report = on_report
        self._answering: dict[RequestId, asyncio.Task[None]] = {}
        self._notices: asyncio.Queue[Awaitable[object]] = asyncio.Queue(_WAITING_NOTICES)
        self._telling: asyncio.Task[None] | None = None

    async def close(self, caller: asyncio.Task[Any] | None) -> None:
        """Stop answering and telling. `caller` may be a callback: it is left to end by itself."""
        tasks = {*self._answering.values(), *([self._telling] if self._telling else [])} - {caller}
        self._telling = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def heard(self, method: str, params: bytes, call: Call | None) -> None:
        """A notification came."""
        try:
            self._hear(method, params, call)
        except ValueError as error:  # of which kind decoding errors are
            self.report(Report(Kind.REFUSED, str(error), method, error=error))

    def _hear(self, method: str, params: bytes, call: Call | None) -> None:
        if method == "notifications/progress":
            self._progress(params, call)
        elif method == "notifications/message":
            if self._on_log is not None:
                self._tell(self._on_log, D.decode(params, D.LoggingMessageNotificationParams))
        elif method in KINDS:
            self._changed(method, params)
        elif method == "notifications/cancelled":
            self._cancelled(D.decode(params, D.CancelledNotificationParams))
        elif method == "notifications/subscriptions/acknowledged":
            self._acknowledged(D.decode(params, D.SubscriptionsAcknowledgedNotificationParams))
        else:
            known = self.revision is not None and method in methods(self.revision).SERVER_NOTIFICATIONS
            kind = Kind.EVENT if known else Kind.UNKNOWN
            self.report(Report(kind, f"{method} came", method, params=msgspec.json.decode(params)))

    def _progress(self, params: bytes, call: Call | None) -> None:
        progress = D.decode(params, D.ProgressNotificationParams)
        session = self.session
        if call is None or session is None:
            late = session is not None and session.peer.gave_up(progress.progress_token)
            kind = Kind.LATE if late else Kind.UNKNOWN
            self.report(Report(kind, "progress of a call that is not open", "notifications/progress"))
            return
        session.progressed(call)
        pending: Pending = call.owner
        if pending.on_progress is not None:
            self._tell(pending.on_progress, progress)

    def _changed(self, method: str, params: bytes) -> None:
        kind = KINDS[method]
        plain = D.decode(params, dict[str, Any])
        uri = D.decode(params, D.ResourceUpdatedNotificationParams).uri if kind == "resource" else None
        if uri is None:
            self._cache.forget(method)
        else:
            self._cache.forget_resource(uri)
        meta: Any = plain.get("_meta", {})
        subscription = meta.get(SUBSCRIPTION) if is_object(meta) else None
        for listener in list(self.subscriptions):
            if subscription is None or str(listener.id) == str(subscription):
                listener.heard(Changed(kind, uri))

    def _acknowledged(self, params: D.SubscriptionsAcknowledgedNotificationParams) -> None:
        id = None if params.meta is UNSET else params.meta.get(SUBSCRIPTION)
        for listener in self.subscriptions:
            if str(listener.id) == str(id):
                listener.established(params.notifications)

    def _cancelled(self, params: D.CancelledNotificationParams) -> None:
        """The server gives up a question of its own, or ends a subscription; the answer to that follows."""
        task = self._answering.get(params.request_id)
        if task is not None:
            task.cancel()

    def asked(self, id: RequestId, method: str, params: bytes) -> None:
        """An older server asks something."""
        if self.revision is not None and is_modern(self.revision):
            self.report(Report(Kind.UNKNOWN, f"a modern server must not send requests: {method}", method, id))
            return
        if id in self._answering:
            self.report(Report(Kind.DUPLICATE, "a request with this id is in flight", method, id))
            return
        session = self.session
        if session is None or session.congested:
            self.report(Report(Kind.FAILED, f"{method} is not answered: the server does not read", method, id))
            return
        if len(self._answering) >= _QUESTIONS:
            session.refuse(id, INTERNAL_ERROR, f"more than {_QUESTIONS} questions at a time")
            return
        task = asyncio.get_running_loop().create_task(self._answer(id, method, params))
        self._answering[id] = task
        task.add_done_callback(lambda _: self._answering.pop(id, None))

    async def _answer(self, id: RequestId, method: str, params: bytes) -> None:
        session = self.session
        assert session is not None
        revision = self.revision or self.first_revision
        try:
            result = await self._callbacks.answer_older(method, params, revision)
            session.answer(id, result)
        except Exception as error:
            told = refusal(error, method)
            if told is not error:
                self.report(Report(Kind.FAILED, f"{told.message}: {error!r}", method, id, error=error))
            session.refuse(id, told.code, told.message, told.data)

    def _tell(self, callback: Callable[[Any], object], params: Any) -> None:
        """Call a callback; what it has to wait for is waited for in order, and apart from the reading."""
        try:
            waits = callback(params)
            if is_awaitable(waits):
                self._notices.put_nowait(waits)
                if self._telling is None:
                    self._telling = asyncio.get_running_loop().create_task(self._tell_on())
        except asyncio.QueueFull:
            self.report(Report(Kind.FAILED, f"callbacks are {_WAITING_NOTICES} notifications behind: one is dropped"))
        except Exception as error:
            self.report(Report(Kind.FAILED, f"a callback failed: {error!r}", error=error))

    async def _tell_on(self) -> None:
        while True:
            waits = await self._notices.get()
            try:
                await waits
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self.report(Report(Kind.FAILED, "a callback was cancelled", error=error))
            except Exception as error:
                self.report(Report(Kind.FAILED, f"a callback failed: {error!r}", error=error))

    def lost(self) -> None:
        """The connection ended: what the server asked needs no answer any more."""
        for task in list(self._answering.values()):
            task.cancel()

    def report(self, report: Report) -> None:
        """Tell whoever takes the reports; what that raises is its own affair."""
        if self._on_report is None:
            _log.warning("%s: %s", report.kind, report.text)
            return
        try:
            self._on_report(report)
        except Exception:
            _log.exception("on_report failed")
