"""Errors that generated code raises."""

from __future__ import annotations

from typing import Final

__all__ = ["ConversionError", "DecodeError", "UnimplementedMethodError"]


class DecodeError(ValueError):
    """Data does not fit its type.

    The text is one line with the place and the cause, such as
    `result.content[0].type: expected "text", got "txet"`.
    """

    path: str
    """Place of the fault, such as `result.content[0].type`; empty for the whole value."""
    reason: str
    """Cause of the fault, such as `expected "text", got "txet"`."""
    is_json: bool
    """False if the data is not JSON, for which JSON-RPC has a code of its own (-32700)."""
    id: str | int | None = None
    """The id of a message that `parse_frame` rejects, for the response to it; None if it has none that can be read."""

    def __init__(self, path: str, reason: str, *, is_json: bool = True) -> None:
        self.path = path
        self.reason = reason
        self.is_json = is_json
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


_META_REMEDY: Final = "; pass the revision and the capabilities of the client as `meta=`"


class ConversionError(ValueError):
    """A value cannot be expressed in another revision."""

    path: str
    """Place in the converted value, such as `params._meta`; empty for the whole value."""
    reason: str
    """Cause, such as `required, but missing`."""

    def __init__(self, path: str, reason: str, source: str, target: str) -> None:
        self.path = path
        self.reason = reason
        self.source = source
        self.target = target
        super().__init__(path, reason, source, target)

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        text = f"{place}{self.reason} (from {self.source} to {self.target})"
        return text + (_META_REMEDY if self._lacks_meta else "")

    @property
    def _lacks_meta(self) -> bool:
        """True if the request lacks what `mcpspec.convert` takes as `meta`."""
        is_meta = self.path == "params" or self.path.removeprefix("params.").startswith("_meta")
        return is_meta and self.reason == "required, but missing"


class UnimplementedMethodError(NotImplementedError):
    """A handler does not implement the method. `code` is the code of the JSON-RPC error."""

    code: Final = -32601

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(method)

    def __str__(self) -> str:
        return f"method not found: {self.method}"
