"""The attributes of spans and metrics. Values that peers choose are bounded in length and in number.

https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
"""

from __future__ import annotations

from typing import Any, Final

from typedmcp.building import encode_json, redact_url, visible
from typedmcp.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

__all__ = [
    "ERROR_TYPE", "JSONRPC_ID", "METHOD", "OPERATION", "OTHER", "PROMPT_NAME", "PROTOCOL_VERSION",
    "RESOURCE_URI", "SERVER_ADDRESS", "SERVER_PORT", "SESSION_ID", "STATUS_CODE", "TARGETS", "TOOL_ARGUMENTS",
    "TOOL_NAME", "TOOL_RESULT", "KnownNames", "bounded", "bounded_code", "bounded_json", "bounded_uri",
]  # fmt: skip

METHOD: Final = "mcp.method.name"
PROTOCOL_VERSION: Final = "mcp.protocol.version"
SESSION_ID: Final = "mcp.session.id"
RESOURCE_URI: Final = "mcp.resource.uri"
JSONRPC_ID: Final = "jsonrpc.request.id"
ERROR_TYPE: Final = "error.type"
STATUS_CODE: Final = "rpc.response.status_code"
OPERATION: Final = "gen_ai.operation.name"
TOOL_NAME: Final = "gen_ai.tool.name"
PROMPT_NAME: Final = "gen_ai.prompt.name"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

OTHER: Final = "_OTHER"
"""Stands for a method that the protocol does not have."""

TARGETS: Final = {"tools/call": TOOL_NAME, "prompts/get": PROMPT_NAME}
"""The attribute with the name of what is called, by method."""

_CODES: Final = (PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR)
_SERVER_CODES: Final = range(-32099, -31999)
"""The codes that JSON-RPC leaves to servers. MCP has its own codes among them."""
_MAX_TEXT: Final = 256
_MAX_CONTENT: Final = 8192
_MAX_NAMES: Final = 1000


def bounded(value: object) -> str:
    """Return a value of a peer as text of one line and at most 256 characters."""
    if type(value) is int and value.bit_length() <= 64:  # Python refuses to write very long numbers
        return str(value)
    return visible(str(value), _MAX_TEXT)


def bounded_code(code: int) -> str:
    """Return the code of an error for a measurement: a peer that makes up codes must not add series without end."""
    return str(code) if code in _CODES or code in _SERVER_CODES else OTHER


def bounded_uri(uri: str) -> str:
    """Return a URI without user, password, query and fragment, of at most 256 characters."""
    return bounded(redact_url(uri[: 4 * _MAX_TEXT]))


def bounded_json(value: Any) -> str:
    """Return a value as JSON of at most 8,192 characters."""
    return visible(encode_json(value).decode(errors="replace"), _MAX_CONTENT)


class KnownNames:
    """Names of tools and prompts that exist: at most 1,000, so that no peer can add more."""

    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()

    def has(self, method: str, name: str) -> bool:
        """Return whether a name is known for a method."""
        return (method, name) in self._names

    def add(self, method: str, name: str) -> None:
        """Add a name, unless there are too many, or it is too long."""
        if len(name) <= _MAX_TEXT and len(self._names) < _MAX_NAMES:
            self._names.add((method, name))
