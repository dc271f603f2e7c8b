"""Converters between the dialect and a revision, and what needs no rule.

The rules are in `mcpspec.support.rules`, which also has those for any two revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from mcpspec.support.converters import ConverterCompiler, DroppedFields
from mcpspec.support.objects import spread_union
from mcpspec.support.rules import RENAMED, RESULT_DEFAULTS, downgrade_rules, upgrade_rules
from typedmcp import dialect
from typedmcp.revisions.features import structs_of

__all__ = ["DECIDED", "IGNORED_FIELDS", "downgrade", "downgrader", "upgrader"]

IGNORED_FIELDS: Final = frozenset(
    f"{kind.__name__}.{name}"
    for method in dialect.methods.CLIENT_REQUESTS.values()
    for kind in spread_union(method.result)
    for name in RESULT_DEFAULTS
)
"""Members that only modern revisions need. It is not reported if an older revision lacks them."""

_NO_TASKS = "tasks of 2025-11-25 are not offered; newer revisions have the extension io.modelcontextprotocol/tasks"
_TASKS = "the extension io.modelcontextprotocol/tasks has its own form of it, which tasks/legacy.py converts"
_NO_CLIENT_TASKS = "clients run no tasks"
_HANDSHAKE = "the runtime handles the handshake"
_SESSION = "the runtime handles it in legacy sessions"
_INPUT = "revisions/input_requests.py converts it"

DECIDED: Final[Mapping[str, str]] = {
    "initialize": _HANDSHAKE,
    "notifications/initialized": _HANDSHAKE,
    "ping": _SESSION,
    "logging/setLevel": _SESSION,
    "resources/subscribe": _SESSION,
    "resources/unsubscribe": _SESSION,
    "notifications/roots/list_changed": "roots are listed again for each request",
    "notifications/elicitation/complete": "the client reports it as a diagnostic",
    "tasks/cancel": _NO_TASKS,
    "tasks/get": _NO_TASKS,
    "tasks/list": _NO_TASKS,
    "tasks/result": _NO_TASKS,
    "notifications/tasks/status": _TASKS,
    "CreateTaskResult": _TASKS,
    "CallToolRequestParams.task": _TASKS,
    "CreateMessageRequestParams.task": _NO_CLIENT_TASKS,
    "ElicitRequestFormParams.task": _NO_CLIENT_TASKS,
    "ElicitRequestURLParams.task": _NO_CLIENT_TASKS,
    "ServerCapabilities.tasks": _TASKS,
    "ClientCapabilities.tasks": _NO_CLIENT_TASKS,
    "Tool.execution": _TASKS,
    "elicitation/create": "a client that lacks it cannot declare the capability, which is checked first",
    "CancelledNotificationParams.request_id": "a cancellation without it is about a task",
    "ElicitRequestURLParams.elicitation_id": _INPUT,
    "ElicitRequestFormParams": _INPUT,
    "ElicitRequestURLParams": _INPUT,
    "ElicitRequestParams": _INPUT,
}
"""Methods, members and types of older revisions that need no rule, or types of the dialect, with the reason."""


@cache
def downgrader(revision: str, *, absent: object = None) -> ConverterCompiler:
    """Return the compiler of converters from types of the dialect to exact types of a revision.

    `absent` is what the types of the dialect have for an absent member: None, or UNSET if they are exact.
    """
    older_names = {f"{name.partition('.')[0]}.{older}": name.partition(".")[2] for name, older in RENAMED.items()}
    return ConverterCompiler(downgrade_rules(structs_of(revision), absent), IGNORED_FIELDS, renamed=older_names)


@cache
def upgrader() -> ConverterCompiler:
    """Return the compiler of converters from exact types of any revision to types of the dialect."""
    return ConverterCompiler(upgrade_rules(dialect.structs), renamed=RENAMED, reuse=False, absent=None)


def downgrade(value: Any, target: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert a value of the dialect to a type of a revision."""
    convert = downgrader(revision).between(type(value), target)
    return value if convert is None else convert(value, dropped)
