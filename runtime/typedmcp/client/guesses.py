"""Attributes that clients had before satellites had them. Errors about them say what to use."""

from __future__ import annotations

from typing import Final

from typedmcp.errors import moved
from typedmcp.protocol.guesses import GuessedAttribute

__all__ = ["ATTRIBUTES", "BLOCKING_ATTRIBUTES"]

_HOSTS: Final = {"tools_for": "api", "call_for": "api, part"}
"""Functions of `typedmcp_hosts`, with their parameters beside the client."""

_TASKS: Final = "typedmcp_extensions.tasks.TaskCalls"

ATTRIBUTES: Final = {
    name: GuessedAttribute(moved("it", "hosts", f"typedmcp_hosts.{name}(client, {parameters})"))
    for name, parameters in _HOSTS.items()
} | {"tasks": GuessedAttribute(moved("it", "extensions", f"client.extension({_TASKS})"))}
"""Attributes of clients."""

BLOCKING_ATTRIBUTES: Final = {
    name: GuessedAttribute(moved("it", "hosts", f"client.run(typedmcp_hosts.{name}, {parameters})"))
    for name, parameters in _HOSTS.items()
} | {"tasks": GuessedAttribute(moved("it", "extensions", "typedmcp_extensions.tasks.SyncTaskCalls(client)"))}
"""Attributes of blocking clients."""
