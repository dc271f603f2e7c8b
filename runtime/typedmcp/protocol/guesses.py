"""Attributes that people expect by guessing, or from an earlier version: the error says what to use."""

from __future__ import annotations

from typing import Any, Final

from typedmcp.errors import moved

__all__ = ["BLOCKING_CLIENT", "CLIENT", "GuessedAttribute"]


class GuessedAttribute:
    """Raise an error about an attribute that a class does not have, and say what to use.

    A method `__getattr__` would slow down every attribute of the class.
    """

    def __init__(self, meant: str) -> None:
        self._meant = meant
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type) -> Any:
        text = f"{owner.__name__!r} object has no attribute {self._name!r}; {self._meant}"
        raise AttributeError(text, name=self._name, obj=value)


def _of_satellites(**uses: tuple[str, str]) -> dict[str, GuessedAttribute]:
    return {name: GuessedAttribute(moved("it", extra, use)) for name, (extra, use) in uses.items()}


CLIENT: Final = _of_satellites(
    tools_for=("hosts", "typedmcp_hosts.tools_for(client, api)"),
    call_for=("hosts", "typedmcp_hosts.call_for(client, api, part)"),
    tasks=("extensions", "client.extension(typedmcp_extensions.tasks.TaskCalls)"),
)
"""Attributes of clients."""

BLOCKING_CLIENT: Final = _of_satellites(
    tools_for=("hosts", "client.run(typedmcp_hosts.tools_for, api)"),
    call_for=("hosts", "client.run(typedmcp_hosts.call_for, api, part)"),
    tasks=("extensions", "typedmcp_extensions.tasks.SyncTaskCalls(client)"),
)
"""Attributes of blocking clients."""
