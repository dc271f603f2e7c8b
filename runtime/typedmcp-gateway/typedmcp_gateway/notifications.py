"""Extensions on a connection to a server: which of them pass, and where the notifications of the server go.

The gateway has no schema of them. A notification names its subscription, or it belongs to the call that is open.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import msgspec

from mcpspec.ext.apps import methods as apps
from mcpspec.features import NAME_PARAMS
from typedmcp import ClientExtension, Diagnostic, DiagnosticKind, Extension, Subscription
from typedmcp.building import format_value, is_object
from typedmcp.revisions.features import SUPPORTED, methods_of
from typedmcp_gateway.protocol import SUBSCRIPTION, TASK_NAMES, TASK_REVISIONS, TASKS
from typedmcp_gateway.questions import ServerQuestions

__all__ = ["QUIET_EXTENSIONS", "OnPassed", "PassedExtensions", "passed_extensions"]

QUIET_EXTENSIONS: Final = frozenset((TASKS, apps.EXTENSION_ID))
"""Extensions that have no notifications within calls, so that clients with them can share a connection."""
_OF_CONNECTIONS: Final = frozenset(
    ("io.modelcontextprotocol/oauth-client-credentials", "io.modelcontextprotocol/enterprise-managed-authorization")
)
"""Extensions about the way in which one side of the gateway signs in, which say nothing about the other side."""
_LEGACY: Final = frozenset(name for revision in SUPPORTED for name in methods_of(revision).SERVER_NOTIFICATIONS)
"""The notifications of servers that some revision has."""

OnPassed: TypeAlias = Callable[[str, "dict[str, Any]"], object]
"""Takes the method and the parameters of a notification."""


def passed_extensions(declared: Mapping[str, Any] | None, revision: str) -> dict[str, Any]:
    """Return the extensions that a peer of a revision has declared, as far as they pass a gateway."""
    if not declared:
        return {}
    return {
        name: settings
        for name, settings in declared.items()
        if name not in _OF_CONNECTIONS and (name != TASKS or revision in TASK_REVISIONS)
    }


class PassedExtensions(ClientExtension):
    """Passes the notifications that the gateway does not know from one connection to clients.

    `questions` has the open calls of the connection.
    """

    def __init__(self, questions: ServerQuestions, report: Callable[[Diagnostic], None]) -> None:
        super().__init__(Extension("com.typedmcp/gateway", revisions=()))  # never declared
        self.known_names: dict[str, str] = {**NAME_PARAMS, **TASK_NAMES}
        """The parameters that the header `Mcp-Name` repeats, by method, as far as they are known."""
        self.names: Mapping[str, str] | None = self.known_names
        self.on_other: Callable[[str, bytes], object] | None = self._pass
        self._questions = questions
        self._report = report
        self._subscriptions: dict[Subscription, OnPassed] = {}

    @contextmanager
    def following(self, subscription: Subscription, on_passed: OnPassed) -> Generator[None]:
        """Pass the notifications of a subscription to a function."""
        self._subscriptions[subscription] = on_passed
        try:
            yield
        finally:
            del self._subscriptions[subscription]

    def _pass(self, method: str, params: bytes) -> object:
        """Pass a notification to its subscription, or to the client of the newest call."""
        plain: Any = msgspec.json.decode(params)
        meta: Any = plain.get("_meta") if is_object(plain) else None
        id: Any = meta.get(SUBSCRIPTION) if is_object(meta) else None
        if id is not None:
            found = [on for each, on in self._subscriptions.items() if each.id is not None and str(each.id) == str(id)]
            for on_passed in found:
                on_passed(method, plain)
            return None if found else self._drop(method, "names no open subscription")
        call = self._questions.newest_call
        if call is None:
            return self._drop(method, "came outside of a call")
        ctx = call.ctx
        if method in _LEGACY and method not in methods_of(ctx.revision).SERVER_NOTIFICATIONS:
            return self._drop(method, f"is not part of {ctx.revision}")
        if method not in _LEGACY and not ctx.client_capabilities.extensions:
            return self._drop(method, "came for a client that has declared no extension")
        return ctx.notify(method, plain)

    def _drop(self, method: str, reason: str) -> object:
        """Report a notification that reaches no client."""
        text = f"the notification {format_value(method)} of a server {reason}"
        self._report(Diagnostic(DiagnosticKind.DROPPED, text))
        return None
