"""Functions of the author as handlers: their signatures, which may have a parameter for the context."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from typedmcp.errors import UsageError
from typedmcp.server.context import Context
from typedmcp_schemas.signatures import Signature, SignatureError, UnboundMethodError, hints_of

__all__ = ["read_hints", "read_return_hint", "read_signature"]


@contextmanager
def _usage_errors() -> Generator[None]:
    """Raise errors of signatures as `UsageError`, with the same text and cause."""
    try:
        yield
    except SignatureError as error:
        hint = ", as in server.add_tool(object.method)" if isinstance(error, UnboundMethodError) else ""
        raise UsageError(f"{error}{hint}") from error.__cause__


def read_signature(function: Callable[..., Any], what: str) -> Signature:
    """Return the signature of a function. Raises `UsageError` for one that cannot be called with JSON.

    `what` identifies the tool, resource or prompt in errors: `tool 'add'`.
    """
    with _usage_errors():
        return Signature(function, what, Context)


def read_return_hint(signature: Signature) -> Any:
    """Return the return type of a function. Raises `UsageError` for an unknown name in it."""
    with _usage_errors():
        return signature.return_hint


def read_hints(function: Callable[..., Any], what: str) -> dict[str, Any]:
    """Return the types of a function's parameters. Raises `UsageError` for an unknown name in one of them."""
    with _usage_errors():
        return hints_of(function, what)
