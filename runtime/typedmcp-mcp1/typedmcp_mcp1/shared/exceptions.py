"""Errors of the protocol as exceptions, under the names of `mcp.shared.exceptions`."""

from __future__ import annotations

from typing import Any

from typedmcp.building import is_object
from typedmcp.errors import URL_ELICITATION_REQUIRED, ConnectionLostError, Error, RemoteError, RequestTimeoutError
from typedmcp_mcp1 import types

__all__ = ["McpError", "UrlElicitationRequiredError", "to_mcp_error", "to_remote_error"]

_CONNECTION_CLOSED = -32000
_TIMED_OUT = 408


class McpError(Exception):
    """An error response: one that arrived, or one that a handler answers with. `error` has code, message and data."""

    error: types.ErrorData

    def __init__(self, error: types.ErrorData) -> None:
        super().__init__(error.message)
        self.error = error


class UrlElicitationRequiredError(McpError):
    """An error response that asks the client to open URLs before it sends the request again."""

    def __init__(self, elicitations: list[types.ElicitRequestURLParams], message: str | None = None) -> None:
        text = message or f"URL elicitation{'s' if len(elicitations) > 1 else ''} required"
        members = [types.to_builtins(each) for each in elicitations]
        data = {"elicitations": members}
        super().__init__(types.ErrorData(code=URL_ELICITATION_REQUIRED, message=text, data=data))
        self.elicitations: list[types.ElicitRequestURLParams] = elicitations
        """The URLs, each with a message for the user."""

    @classmethod
    def from_error(cls, error: types.ErrorData) -> UrlElicitationRequiredError:
        """Make the exception of an error that arrived. Raises `ValueError` for one with another code."""
        if error.code != URL_ELICITATION_REQUIRED:
            raise ValueError(f"expected the code {URL_ELICITATION_REQUIRED}, got {error.code}")
        members: Any = error.data.get("elicitations", []) if is_object(error.data) else []
        return cls([types.ElicitRequestURLParams.model_validate(each) for each in members], error.message)


def to_mcp_error(error: Error) -> McpError:
    """Return the exception of mcp 1.x for one of typedmcp that ended a call."""
    data: Any = None
    match error:
        case RemoteError():
            code, text, data = error.code, error.message, error.data
        case RequestTimeoutError():
            code, text = _TIMED_OUT, str(error)
        case ConnectionLostError():
            code, text = _CONNECTION_CLOSED, f"Connection closed: {error}"
        case _:
            code, text = types.INVALID_REQUEST, str(error)
    return McpError(types.ErrorData(code=code, message=text, data=data))


def to_remote_error(error: McpError | types.ErrorData) -> RemoteError:
    """Return what a handler or a callback of typedmcp raises to answer with an error."""
    found = error.error if isinstance(error, McpError) else error
    return RemoteError(found.code, found.message, found.data)
