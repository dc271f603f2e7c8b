"""Messages that a server initiates: progress, logs, changes, and the requests of legacy servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpspec.support.error_text import format_value
from mcpspec.support.methods import Method
from mcpspec.support.objects import is_object
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.client.incoming.callbacks import Callbacks
from typedmcp.client.requests.encoder import types_of
from typedmcp.client.results.cache import ResponseCache
from typedmcp.client.session.session import ClientSession, PendingCall
from typedmcp.client.session.subscriptions import ChangeEvent, Subscription
from typedmcp.errors import INTERNAL_ERROR, to_remote_error
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind, cancellation_diagnostic, deliver_diagnostic
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.meta import RELATED_TASK, SUBSCRIPTION
from typedmcp.protocol.notifications import CHANGES
from typedmcp.protocol.nulls import nulls_diagnostic, remove_nulls
from typedmcp.protocol.pending import Call
from typedmcp.revisions.features import FEATURES, methods_of
from typedmcp.transports.concurrency import is_awaitable, name_function

if TYPE_CHECKING:
    from typedmcp.client.extensions import ClientExtension, LegacyCallForm
    from typedmcp.protocol.extensions import Extension

__all__ = ["IncomingMessageHandler"]

D = dialect.structs

_FAULT_SECONDS: Final = 10.0
"""Seconds in which the faults of a server are counted."""

_FAULTS: Final = frozenset(
    {
        DiagnosticKind.MALFORMED,
        DiagnosticKind.UNEXPECTED_RESPONSE,
        DiagnosticKind.UNEXPECTED_MESSAGE,
        DiagnosticKind.REJECTED_NOTIFICATION,
        DiagnosticKind.DUPLICATE_ID,
    }
)
"""The diagnostics that a server can cause with any number of messages."""


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
        *,
        strict: bool,
        grace: float,
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
        self.is_strict: bool = strict
        """True if messages that break the specification harmlessly are rejected."""
        self._grace = grace
        """Seconds that callbacks may take to end at the end of the client."""
        self.extensions: Sequence[ClientExtension] = ()
        """The extensions that the client supports."""
        self.is_declared: Callable[[Extension], bool] = lambda _extension: False
        """Returns whether the server has declared an extension."""
        self._faults = 0
        """Faults of the server since `_faults_began`."""
        self._faults_began = 0.0
        self._answering: dict[RequestId, asyncio.Task[None]] = {}
        self._waiting: asyncio.Queue[tuple[Awaitable[object], int]] = asyncio.Queue(limits.waiting_notifications)
        """Async callbacks that have been called, in order, and the bytes of their notifications."""
        self._waiting_bytes = 0
        """Bytes of the notifications and requests whose callbacks wait or run."""
        self._awaiting: asyncio.Task[None] | None = None

    async def close(self, caller: asyncio.Task[Any] | None) -> None:
        """Cancel the running callbacks, except `caller`: a callback may close its own client.

        Those that do not end in time are reported, and the client closes without them.
        """
        tasks = {*self._answering.values(), *([self._awaiting] if self._awaiting else [])} - {caller}
        self._awaiting = None
        for task in tasks:
            task.cancel()
        if tasks:
            _, unended = await asyncio.wait(tasks, timeout=self._grace)
            for task in unended:
                text = f"the callback {name_function(task)} did not end within {self._grace:g} s of its cancellation"
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"{text} (grace): the client closes without it"))
        while not self._waiting.empty():
            callback, size = self._waiting.get_nowait()
            self._waiting_bytes -= size
            _discard(callback)

    # Notifications

    def on_notification(self, method: str, params: bytes, call: Call | None) -> None:
        """Handle a notification. One with invalid parameters is reported."""
        try:
            known = dialect.methods.SERVER_NOTIFICATIONS.get(method)
            if known is not None:
                params = self._without_nulls(params, known, method, None)
            self._handle_notification(method, params, call)
        except ValueError as error:  # such as `DecodeError`
            self.report(Diagnostic(DiagnosticKind.REJECTED_NOTIFICATION, str(error), method, error=error))

    def _handle_notification(self, method: str, params: bytes, call: Call | None) -> None:
        if method == "notifications/progress":
            self._on_progress(params, call)
        elif method == "notifications/message":
            if self._on_log is not None:
                self._call_back(self._on_log, D.decode(params, D.LoggingMessageNotificationParams), len(params))
        elif method in CHANGES:
            self._on_change(method, params)
            if self.extensions:
                self._call_extension(method, params)
        elif method == "notifications/cancelled":
            self._on_cancelled(D.decode(params, D.CancelledNotificationParams))
        elif method == "notifications/subscriptions/acknowledged":
            self._on_acknowledged(D.decode(params, D.SubscriptionsAcknowledgedNotificationParams), params)
        elif not self.extensions or not (self._call_extension(method, params) or self._call_other(method, params)):
            is_known = self.revision is not None and method in methods_of(self.revision).SERVER_NOTIFICATIONS
            kind = DiagnosticKind.LEGACY_NOTIFICATION if is_known else DiagnosticKind.UNEXPECTED_MESSAGE
            text = f"the server sent {method}, which the client does not handle"
            self.report(Diagnostic(kind, text, method, params=msgspec.json.decode(params)))

    def _call_extension(self, method: str, params: bytes) -> bool:
        """Call the callback of an extension for a notification. Return False if there is none."""
        for each in self.extensions:
            if each.legacy is not None and self._call_legacy_form(each.legacy, method, params):
                return True
            callback = each.callbacks.get(method)
            if callback is None:
                continue
            if not self.is_declared(each.extension):
                text = f"the server sent {method}, but has not declared {each.extension.identifier}"
                self.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, method))
                return True
            record = each.extension.methods[method]
            self._call_back(callback, types_of(record).decode(params, record.params), len(params))
            return True
        return False

    def _call_other(self, method: str, params: bytes) -> bool:
        """Pass a notification that has no callback to an extension that takes all. Return False if there is none."""
        for each in self.extensions:
            if each.on_other is not None:
                self._call_back(partial(each.on_other, method), params, len(params))
                return True
        return False

    def _call_legacy_form(self, form: LegacyCallForm, method: str, params: bytes) -> bool:
        """Call the callback of an extension's form on the server's revision. Return False if there is none."""
        callback = form.callbacks.get(method)
        if callback is None or self.revision is None or self.revision not in form.revisions:
            return False
        record = methods_of(self.revision).SERVER_NOTIFICATIONS[method].exact
        self._call_back(callback, types_of(record).decode(params, record.params), len(params))
        return True

    def _without_nulls(self, params: bytes, record: Method[Any, Any], method: str, id: RequestId | None) -> bytes:
        """Return parameters without members that are null instead of absent, and report those."""
        if self.is_strict or b"null" not in params:
            return params
        plain: Any = msgspec.json.decode(params)
        nulls = remove_nulls(plain, record.exact.params)
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
            self._call_back(pending.on_progress, progress, len(params))

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
        has_listen = self.revision is not None and FEATURES[self.revision].has_listen
        found = self._find_subscriptions(subscription_id) if has_listen else list(self.subscriptions)
        for subscription in found:
            subscription.add(ChangeEvent(kind, uri))
        if has_listen and not found:
            self._report_uncorrelated(method, plain, subscription_id)

    def _report_uncorrelated(self, method: str, params: Any, subscription_id: Any) -> None:
        """Report a change that names no open subscription, as late if it names one that was closed here."""
        is_id = isinstance(subscription_id, int | str)
        is_late = is_id and self.session is not None and self.session.requests.was_cancelled(subscription_id)
        kind = DiagnosticKind.LATE_MESSAGE if is_late else DiagnosticKind.UNEXPECTED_MESSAGE
        text = f"the change names no open subscription: {format_value(subscription_id)}"
        self.report(Diagnostic(kind, text, method, params=params))

    def _on_acknowledged(self, params: D.SubscriptionsAcknowledgedNotificationParams, raw: bytes) -> None:
        id = None if params.meta is None else params.meta.get(SUBSCRIPTION)
        for subscription in self._find_subscriptions(id):
            if subscription.members:
                subscription.granted_members = D.decode(raw, dict[str, Any]).get("notifications", {})
            subscription.establish(params.notifications)
            if missing := subscription.not_granted:
                text = f"the server does not report changes of {', '.join(map(format_value, missing))}"
                self.report(
                    Diagnostic(DiagnosticKind.NOT_GRANTED, text, "subscriptions/listen", subscription.id, missing)
                )

    def _find_subscriptions(self, id: Any) -> list[Subscription]:
        """Return the subscriptions with an id, which some servers send as a string."""
        name = str(id) if isinstance(id, int | str) else None
        return [each for each in self.subscriptions if each.id is not None and str(each.id) == name]

    def _on_cancelled(self, params: D.CancelledNotificationParams) -> None:
        """Cancel the callback for a request that the server has cancelled.

        A server also sends this notification to end a subscription. The result of the subscription then follows.
        """
        if params.reason:
            self.report(cancellation_diagnostic("server", params.request_id, params.reason))
        task = self._answering.get(params.request_id)
        if task is not None:
            task.cancel()

    # Requests

    def on_request(self, id: RequestId, method: str, params: bytes) -> None:
        """Answer a request of a legacy server in a task."""
        revision = self.revision or self._first_revision
        if FEATURES[revision].has_input_requests:
            text = f"{method}: a server must not send requests in {revision}"
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
        if self._has_no_room(len(params)):
            text = f"requests with more than {self._limits.waiting_message_bytes} bytes (waiting_message_bytes)"
            session.respond_with_error(id, INTERNAL_ERROR, text)
            return
        task = asyncio.get_running_loop().create_task(self._answer(session, id, method, params))
        self._answering[id] = task
        self._waiting_bytes += (size := len(params))
        task.add_done_callback(lambda _: self._end_answer(id, size))

    def _end_answer(self, id: RequestId, size: int) -> None:
        self._answering.pop(id, None)
        self._waiting_bytes -= size

    def _has_no_room(self, size: int) -> bool:
        """Return whether a message has too many bytes to wait with the others. The first one always has room."""
        return self._waiting_bytes > 0 and self._waiting_bytes + size > self._limits.waiting_message_bytes

    async def _answer(self, session: ClientSession, id: RequestId, method: str, params: bytes) -> None:
        revision = self.revision or self._first_revision
        try:
            known = methods_of(revision).SERVER_REQUESTS.get(method)
            if known is not None:
                params = self._without_nulls(params, known, method, id)
            result = await self._callbacks.answer_legacy(method, params, revision)
            session.respond(id, _with_task(result, params) if FEATURES[revision].has_tasks else result)
        except Exception as error:
            response = to_remote_error(error, method)
            if response is not error:
                text = f"{response.message}: {error!r}"
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id, error=error))
            session.respond_with_error(id, response.code, response.message, response.data)

    # Callbacks

    def _call_back(self, callback: Callable[[Any], object], params: Any, size: int) -> None:
        """Call a callback for a notification of `size` bytes.

        Async callbacks are awaited in order, in a task of their own.
        """
        try:
            returned = callback(params)
        except Exception as error:
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"a callback failed: {error!r}", error=error))
            return
        if not is_awaitable(returned):
            return
        if self._waiting.full() or self._has_no_room(size):
            _discard(returned)
            limit = f"{self._limits.waiting_notifications} notifications"
            if not self._waiting.full():
                limit = f"{self._limits.waiting_message_bytes} bytes (waiting_message_bytes)"
            text = f"more than {limit} wait for callbacks: one is dropped"
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text))
            return
        self._waiting.put_nowait((returned, size))
        self._waiting_bytes += size
        if self._awaiting is None:
            self._awaiting = asyncio.get_running_loop().create_task(self._await_callbacks())

    async def _await_callbacks(self) -> None:
        while True:
            waiting, size = await self._waiting.get()
            try:
                await waiting
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, "a callback was cancelled", error=error))
            except Exception as error:
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"a callback failed: {error!r}", error=error))
            finally:
                self._waiting_bytes -= size
            del waiting  # with the notification, which would live until the next one

    def on_disconnect(self) -> None:
        """Cancel the callbacks for requests, whose responses can no longer be sent."""
        for task in list(self._answering.values()):
            task.cancel()

    # Diagnostics

    def tolerate(self, text: str, method: str | None = None) -> bool:
        """Report that a message breaks the specification harmlessly. Return False if it must be rejected instead."""
        if not self.is_strict:
            self.report(Diagnostic(DiagnosticKind.TOLERATED, text, method))
        return not self.is_strict

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`, or log it. Too many faults of the server end the session."""
        if diagnostic.kind in _FAULTS and self._has_too_many_faults():
            return
        deliver_diagnostic(diagnostic, self._on_diagnostic)

    def _has_too_many_faults(self) -> bool:
        """Count a fault. Once there are too many within a short time, end the session."""
        now = asyncio.get_running_loop().time()
        if now - self._faults_began > _FAULT_SECONDS:
            self._faults, self._faults_began = 0, now
        self._faults += 1
        if self._faults <= self._limits.invalid_messages:
            return False
        if self.session is not None and self.session.abort_reason is None:
            limit = f"more than {self._limits.invalid_messages} within {_FAULT_SECONDS:g} s (invalid_messages)"
            reason = f"the server sends too many invalid messages: {limit}"
            self.session.abort(reason)
            self.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, reason))
        return True


def _with_task(result: Any, params: bytes) -> Any:
    """Return a result that names the task which its request names. The specification demands it."""
    if RELATED_TASK.encode() not in params:
        return result
    plain: Any = msgspec.json.decode(params)
    meta: Any = plain.get("_meta") if is_object(plain) else None
    related: Any = meta.get(RELATED_TASK) if is_object(meta) else None
    id: Any = related.get("taskId") if is_object(related) else None
    if not isinstance(id, str):
        return result
    made: Any = to_builtins(result)
    return {**made, "_meta": {**made.get("_meta", {}), RELATED_TASK: {"taskId": id}}}


def _discard(awaitable: Awaitable[object]) -> None:
    """End what an async callback has returned, and will not be awaited."""
    if isinstance(awaitable, Coroutine):
        awaitable.close()
    elif isinstance(awaitable, asyncio.Future):
        awaitable.cancel()
