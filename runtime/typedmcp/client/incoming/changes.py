"""Changes at a server: the subscriptions that they belong to, and the cached results that they make stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpspec.support.error_text import format_value
from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.client.results.cache import ResponseCache
from typedmcp.client.session.session import ClientSession
from typedmcp.client.session.subscriptions import ChangeEvent, Subscription
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.meta import SUBSCRIPTION
from typedmcp.protocol.notifications import CHANGES

__all__ = ["ChangeRouter"]

D = dialect.structs


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
