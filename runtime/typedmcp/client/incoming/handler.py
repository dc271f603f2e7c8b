"""Messages that a server initiates: progress, logs, changes, and the requests of legacy servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpspec.support.error_text import format_value
from mcpspec.support.methods import Method
from mcpspec.support.objects import is_object
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.client.incoming.callbacks import Callbacks
from typedmcp.client.incoming.running import RunningCallbacks
from typedmcp.client.options import ConnectOptions
from typedmcp.client.requests.encoder import types_of
from typedmcp.client.results.cache import ResponseCache
from typedmcp.client.session.reader import PendingCall
from typedmcp.client.session.session import ClientSession
from typedmcp.client.session.subscriptions import ChangeEvent, Subscription
from typedmcp.errors import INTERNAL_ERROR, to_remote_error
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind, cancellation_diagnostic, deliver_diagnostic
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.meta import RELATED_TASK, SUBSCRIPTION
from typedmcp.protocol.notifications import CHANGES
from typedmcp.protocol.nulls import nulls_diagnostic, remove_nulls
from typedmcp.protocol.pending import Call
from typedmcp.revisions.features import FEATURES, methods_of

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
        self, callbacks: Callbacks, cache: ResponseCache, options: ConnectOptions, first_revision: str
    ) -> None:
        self.session: ClientSession | None = None
        """The current session."""
        self.revision: str | None = None
        """The negotiated revision, if any."""
        self._limits = options.get("limits", DEFAULT_LIMITS)
        self.changes: ChangeRouter = ChangeRouter(cache, self.report)
        self.running: RunningCallbacks = RunningCallbacks(self._limits, options.get("grace", 5.0), self.report)
        self._first_revision = first_revision
        """The revision of requests that arrive before one is negotiated."""
        self._callbacks = callbacks
        self._on_log = options.get("on_log")
        self._on_diagnostic = options.get("on_diagnostic")
        self.is_strict: bool = options.get("strict", False)
        """True if messages that break the specification harmlessly are rejected."""
        self.extensions: Sequence[ClientExtension] = ()
        """The extensions that the client supports."""
        self.is_declared: Callable[[Extension], bool] = lambda _extension: False
        """Returns whether the server has declared an extension."""
        self._faults = 0
        """Faults of the server since `_faults_began`."""
        self._faults_began = 0.0

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
                self.running.call(self._on_log, D.decode(params, D.LoggingMessageNotificationParams), len(params))
        elif method in CHANGES:
            has_listen = self.revision is not None and FEATURES[self.revision].has_listen
            self.changes.on_change(method, params, self.session, has_listen=has_listen)
            if self.extensions:
                self._call_extension(method, params)
        elif method == "notifications/cancelled":
            self._on_cancelled(D.decode(params, D.CancelledNotificationParams))
        elif method == "notifications/subscriptions/acknowledged":
            self.changes.on_acknowledged(params)
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
            if (callback := each.callbacks.get(method)) is None:
                continue
            if not self.is_declared(each.extension):
                text = f"the server sent {method}, but has not declared {each.extension.identifier}"
                self.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, method))
                return True
            record = each.extension.methods[method]
            self.running.call(callback, types_of(record).decode(params, record.params), len(params))
            return True
        return False

    def _call_other(self, method: str, params: bytes) -> bool:
        """Pass a notification that has no callback to an extension that takes all. Return False if there is none."""
        for each in self.extensions:
            if each.on_other is not None:
                self.running.call(partial(each.on_other, method), params, len(params))
                return True
        return False

    def _call_legacy_form(self, form: LegacyCallForm, method: str, params: bytes) -> bool:
        """Call the callback of an extension's form on the server's revision. Return False if there is none."""
        callback = form.callbacks.get(method)
        if callback is None or self.revision is None or self.revision not in form.revisions:
            return False
        record = methods_of(self.revision).SERVER_NOTIFICATIONS[method].exact
        self.running.call(callback, types_of(record).decode(params, record.params), len(params))
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
            self.running.call(pending.on_progress, progress, len(params))

    def _on_cancelled(self, params: D.CancelledNotificationParams) -> None:
        """Cancel the callback for a request that the server has cancelled.

        A server also sends this notification to end a subscription. The result of the subscription then follows.
        """
        if params.reason:
            self.report(cancellation_diagnostic("server", params.request_id, params.reason))
        if (task := self.running.answering.get(params.request_id)) is not None:
            task.cancel()

    # Requests

    def on_request(self, id: RequestId, method: str, params: bytes) -> None:
        """Answer a request of a legacy server in a task."""
        revision, session, limits = self.revision or self._first_revision, self.session, self._limits
        if FEATURES[revision].has_input_requests:
            text = f"{method}: a server must not send requests in {revision}"
            self.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, method, id))
        elif id in self.running.answering:
            text = "a request with the id of one that is still open"
            self.report(Diagnostic(DiagnosticKind.DUPLICATE_ID, text, method, id))
        elif session is None or session.is_congested:
            text = f"{method} gets no response: the server does not read"
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id))
        elif len(self.running.answering) >= self._limits.server_requests_in_flight:
            text = f"more than {limits.server_requests_in_flight} requests at a time"
            session.respond_with_error(id, INTERNAL_ERROR, text)
        elif not self.running.has_room(len(params)):
            text = f"requests with more than {limits.waiting_message_bytes} bytes (waiting_message_bytes)"
            session.respond_with_error(id, INTERNAL_ERROR, text)
        else:
            self.running.answer(id, self._answer(session, id, method, params), len(params))

    async def _answer(self, session: ClientSession, id: RequestId, method: str, params: bytes) -> None:
        revision = self.revision or self._first_revision
        try:
            if (known := methods_of(revision).SERVER_REQUESTS.get(method)) is not None:
                params = self._without_nulls(params, known, method, id)
            result = await self._callbacks.answer_legacy(method, params, revision)
            session.respond(id, _with_task(result, params) if FEATURES[revision].has_tasks else result)
        except Exception as error:
            response = to_remote_error(error, method)
            if response is not error:
                text = f"{response.message}: {error!r}"
                self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id, error=error))
            session.respond_with_error(id, response.code, response.message, response.data)

    # Diagnostics

    def on_disconnect(self) -> None:
        """Cancel the callbacks for requests, whose responses can no longer be sent."""
        self.running.cancel_answers()

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


class ChangeRouter:
    """Passes changes to the open `subscriptions`, and invalidates cached results."""

    def __init__(self, cache: ResponseCache, report: Callable[[Diagnostic], None]) -> None:
        self.subscriptions: set[Subscription] = set()
        self._cache = cache
        self._report = report

    def on_change(self, method: str, params: bytes, session: ClientSession | None, *, has_listen: bool) -> None:
        """Drop the results that a change makes stale, and pass it to its subscriptions."""
        kind = CHANGES[method]
        plain = D.decode(params, dict[str, Any])
        uri = D.decode(params, D.ResourceUpdatedNotificationParams).uri if kind == "resource" else None
        if uri is None:
            self._cache.invalidate(method)
        else:
            self._cache.invalidate_resource(uri)
        meta: Any = plain.get("_meta", {})
        subscription_id = meta.get(SUBSCRIPTION) if is_object(meta) else None
        found = self._find_subscriptions(subscription_id) if has_listen else list(self.subscriptions)
        for subscription in found:
            subscription.add(ChangeEvent(kind, uri))
        if has_listen and not found:
            self._report_uncorrelated(method, plain, subscription_id, session)

    def _report_uncorrelated(self, method: str, params: Any, id: Any, session: ClientSession | None) -> None:
        """Report a change that names no open subscription, as late if it names one that was closed here."""
        is_id = isinstance(id, int | str)
        is_late = is_id and session is not None and session.requests.was_cancelled(id)
        kind = DiagnosticKind.LATE_MESSAGE if is_late else DiagnosticKind.UNEXPECTED_MESSAGE
        text = f"the change names no open subscription: {format_value(id)}"
        self._report(Diagnostic(kind, text, method, params=params))

    def on_acknowledged(self, raw: bytes) -> None:
        """Establish the subscription that a server has acknowledged, and report what it did not agree to send."""
        params = D.decode(raw, D.SubscriptionsAcknowledgedNotificationParams)
        id = None if params.meta is None else params.meta.get(SUBSCRIPTION)
        for subscription in self._find_subscriptions(id):
            if subscription.members:
                subscription.granted_members = D.decode(raw, dict[str, Any]).get("notifications", {})
            subscription.establish(params.notifications)
            if missing := subscription.not_granted:
                text = f"the server does not report changes of {', '.join(map(format_value, missing))}"
                self._report(
                    Diagnostic(DiagnosticKind.NOT_GRANTED, text, "subscriptions/listen", subscription.id, missing)
                )

    def _find_subscriptions(self, id: Any) -> list[Subscription]:
        """Return the subscriptions with an id, which some servers send as a string."""
        name = str(id) if isinstance(id, int | str) else None
        return [each for each in self.subscriptions if each.id is not None and str(each.id) == name]


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
