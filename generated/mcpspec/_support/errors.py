"""The errors that generated code raises."""

from __future__ import annotations

from typing import Final

__all__ = ["DecodeError", "MethodNotFoundError"]


class DecodeError(ValueError):
    """Data that is not what its type says.

    The text is one line that names the place and the cause, such as
    `result.content[0].type: expected "text", got "txet"`.
    """

    path: str
    """Where the fault is, such as `result.content[0].type`; empty for the whole value."""
    reason: str
    """What is wrong there."""
    is_json: bool
    """Whether the data was JSON at all: JSON-RPC has a code for what is not (-32700), and one for what is (-32602)."""

    def __init__(self, path: str, reason: str, *, is_json: bool = True) -> None:
        self.path = path
        self.reason = reason
        self.is_json = is_json
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class MethodNotFoundError(NotImplementedError):
    """A handler does not implement the method. `code` is JSON-RPC's code for it."""

    code: Final = -32601

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(method)

    def __str__(self) -> str:
        return f"method not found: {self.method}"
