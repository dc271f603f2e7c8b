"""Messages that a server initiates: progress, logs, changes, and the requests of legacy servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.client.cache import ResponseCache
from typedmcp.client.callbacks import Callbacks, to_remote_error
from typedmcp.client.session import ClientSession, PendingCall
from typedmcp.client.subscriptions import ChangeEvent, Subscription
from typedmcp.errors import INTERNAL_ERROR
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.meta import SUBSCRIPTION
from typedmcp.protocol.notifications import CHANGES
from typedmcp.protocol.nulls import nulls_diagnostic, remove_nulls
from typedmcp.protocol.pending import Call
from typedmcp.revisions.features import FEATURES, methods_of
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["IncomingMessageHandler"]

D = dialect.structs

_log = logging.getLogger("typedmcp")


class IncomingMessageHandler:
    """Passes messages to callbacks and subscriptions, and invalidates cached results. The listener of the session."""

    def __init__(
        self,
        callbacks: Callbacks,
        cache: ResponseCache,
        on_log: Callable[[D.LoggingMessageNotificationParams], object] | None,
        on_diagnostic: Callable[[Diagnostic], object] | None,
        limits: Limits,
        first_revision: str,
    ) -> None:
        self.session: ClientSession | None = None
        """The current session."""
        self.revision: str | None = None
        """The negotiated revision, if any."""
        self.subscriptions: set[Subscription] = set()
        self._first_revision = first_revision
        """The revision of requests that arrive before one is negotiated."""
        self._callbacks = callbacks
        self._cache = cache
        self._on_log = on_log
        self._on_diagnostic = on_diagnostic
        self._limits = limits
        self._answering: dict[RequestId, asyncio.Task[None]] = {}
        self._waiting: asyncio.Queue[Awaitable[object]] = asyncio.Queue(limits.waiting_notifications)
        """Async callbacks that have been called, in order."""
        self._awaiting: asyncio.Task[None] | None = None

    async def close(self, caller: asyncio.Task[Any] | None) -> None:
        """Cancel the running callbacks, except `caller`: a callback may close its own client."""
        tasks = {*self._answering.values(), *([self._awaiting] if self._awaiting else [])} - {caller}
        self._awaiting = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # Notifications

    def on_notification(self, method: str, params: bytes, call: Call | None) -> None:
        """Handle a notification. One with invalid parameters is reported."""
        try:
            known = dialect.exact_methods.SERVER_NOTIFICATIONS.get(method)
            if known is not None:
                params = self._without_nulls(params, known.params, method, None)
            self._handle_notification(method, params, call)
        except ValueError as error:  # such as `DecodeError`
            self.report(Diagnostic(DiagnosticKind.REJECTED_NOTIFICATION, str(error), method, error=error))

    def _handle_notification(self, method: str, params: bytes, call: Call | None) -> None:
        if method == "notifications/progress":
            self._on_progress(params, call)
        elif method == "notifications/message":
            if self._on_log is not None:
                self._call_back(self._on_log, D.decode(params, D.LoggingMessageNotificationParams))
        elif method in CHANGES:
            self._on_change(method, params)
        elif method == "notifications/cancelled":
            self._on_cancelled(D.decode(params, D.CancelledNotificationParams))
        elif method == "notifications/subscriptions/acknowledged":
            self._on_acknowledged(D.decode(params, D.SubscriptionsAcknowledgedNotificationParams))
        else:
            is_known = self.revision is not None and method in methods_of(self.revision).SERVER_NOTIFICATIONS
            kind = DiagnosticKind.LEGACY_NOTIFICATION if is_known else DiagnosticKind.UNEXPECTED_MESSAGE
            text = f"the server sent {method}, which the client does not handle"
            self.report(Diagnostic(kind, text, method, params=msgspec.json.decode(params)))

    def _without_nulls(self, params: bytes, kind: Any, method: str, id: RequestId | None) -> bytes:
        """Return parameters without members that are null instead of absent, and report those."""
        if b"null" not in params:
            return params
        plain: Any = msgspec.json.decode(params)
        nulls = remove_nulls(plain, kind)
        if not nulls:
            return params
        self.report(nulls_diagnostic(nulls, method, id))
        return msgspec.json.encode(plain)

    def _on_progress(self, params: bytes, call: Call | None) -> None:
        progress = D.decode(params, D.ProgressNotificationParams)
        session = self.session
        if call is None or session is None:
            is_late = session is not None and session.requests.was_cancelled(progress.progress_token)
            kind = DiagnosticKind.LATE_MESSAGE if is_late else DiagnosticKind.UNEXPECTED_MESSAGE
            self.report(Diagnostic(kind, "progress of a call that is not open", "notifications/progress"))
            return
        session.record_progress(call)
        pending: PendingCall = call.owner
        if pending.on_progress is not None:
            self._call_back(pending.on_progress, progress)

    def _on_change(self, method: str, params: bytes) -> None:
        kind = CHANGES[method]
        plain = D.decode(params, dict[str, Any])
        uri = D.decode(params, D.ResourceUpdatedNotificationParams).uri if kind == "resource" else None
        if uri is None:
            self._cache.invalidate(method)
        else:
            self._cache.invalidate_resource(uri)
        meta: Any = plain.get("_meta", {})
        subscription_id = meta.get(SUBSCRIPTION) if is_object(meta) else None
        for subscription in list(self.subscriptions):
            if subscription_id is None or str(subscription.id) == str(subscription_id):
                subscription.add(ChangeEvent(kind, uri))

    def _on_acknowledged(self, params: D.SubscriptionsAcknowledgedNotificationParams) -> None:
        id = None if params.meta is None else params.meta.get(SUBSCRIPTION)
        for subscription in self.subscriptions:
            if str(subscription.id) == str(id):
                subscription.establish(params.notifications)

    def _on_cancelled(self, params: D.CancelledNotificationParams) -> None:
        """Cancel the callback for a request that the server has cancelled.

        A server also sends this notification to end a subscription. The result of the subscription then follows.
        """
        task = self._answering.get(params.request_id)
        if task is not None:
            task.cancel()

    # Requests

    def on_request(self, id: RequestId, method: str, params: bytes) -> None:
        """Answer a request of a legacy server in a task."""
        if self.revision is not None and FEATURES[self.revision].has_input_requests:
            text = f"{method}: a server must not send requests in {self.revision}"
            self.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, method, id))
            return
        if id in self._answering:
            text = "a request with the id of one that is still open"
            self.report(Diagnostic(DiagnosticKind.DUPLICATE_ID, text, method, id))
            return
        session = self.session
        if session is None or session.is_congested:
            text = f"{method} gets no response: the server does not read"
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id))
            return
        if len(self._answering) >= self._limits.server_requests_in_flight:
            text = f"more than {self._limits.server_requests_in_flight} requests at a time"
            session.respond_with_error(id, INTERNAL_ERROR, text)
            return
        task = asyncio.get_running_loop().create_task(self._answer(session, id, method, params))
        self._answering[id] = task
        task.add_done_callback(lambda _: self._answering.pop(id, None))

    async def _answer(self, session: ClientSession, id: RequestId, method: str, params: bytes) -> None:
        revision = self.revision or self._first_revision
        try:
            known = methods_of(revision).SERVER_REQUESTS.get(method)
            if known is not None:
                params = self._without_nulls(params, known.params, method, id)
            session.respond(id, await self._callbacks.answer_legacy(method, params, revision))
        except Exception as error:
            response = to_remote_error(error, method)
            if response is not error:
                text = f"{response.message}: {error!r}"
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id, error=error))
            session.respond_with_error(id, response.code, response.message, response.data)

    # Callbacks

    def _call_back(self, callback: Callable[[Any], object], params: Any) -> None:
        """Call a callback. Async ones are awaited in order, in a task of their own."""
        try:
            returned = callback(params)
            if is_awaitable(returned):
                self._waiting.put_nowait(returned)
                if self._awaiting is None:
                    self._awaiting = asyncio.get_running_loop().create_task(self._await_callbacks())
        except asyncio.QueueFull:
            text = f"more than {self._limits.waiting_notifications} notifications wait for callbacks: one is dropped"
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text))
        except Exception as error:
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"a callback failed: {error!r}", error=error))

    async def _await_callbacks(self) -> None:
        while True:
            waiting = await self._waiting.get()
            try:
                await waiting
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, "a callback was cancelled", error=error))
            except Exception as error:
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"a callback failed: {error!r}", error=error))

    def on_disconnect(self) -> None:
        """Cancel the callbacks for requests, whose responses can no longer be sent."""
        for task in list(self._answering.values()):
            task.cancel()

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`, or log it."""
        if self._on_diagnostic is None:
            _log.warning("%s: %s", diagnostic.kind, diagnostic.text)
            return
        try:
            self._on_diagnostic(diagnostic)
        except Exception:
            _log.exception("on_diagnostic failed")
