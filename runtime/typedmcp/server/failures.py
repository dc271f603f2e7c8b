"""What is said of exceptions: to operators in any case, to clients as far as they may know."""

from __future__ import annotations

from typing import Any

from typedmcp import dialect
from typedmcp.server.results import blocks

__all__ = ["described", "failure", "told"]

D = dialect.structs


def described(error: BaseException) -> str:
    """An exception in words; not all of them can say what they are."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def told(error: Exception) -> D.CallToolResult:
    """The result of a call that failed with an exception which the client may see."""
    content = getattr(error, "content", None)
    try:
        return failure(str(error)) if content is None else _failure_of(content)
    except Exception as broken:
        return failure(f"{type(error).__name__}, of which nothing can be told: {described(broken)}")


def failure(text: str) -> D.CallToolResult:
    """The result of a call that failed."""
    return _failure_of([D.TextContent(text=text)])


def _failure_of(content: Any) -> D.CallToolResult:
    return D.CallToolResult(content=blocks(content, "error"), is_error=True, result_type="complete")
