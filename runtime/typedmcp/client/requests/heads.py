"""The headers of requests over HTTP: the revision, the session, and parameters that proxies need without the body.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from mcpspec.features import NAME_PARAMS
from typedmcp import dialect
from typedmcp.client.requests.encoder import is_mapping
from typedmcp.errors import UsageError
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.headers import (
    METHOD,
    NAME,
    SESSION,
    VERSION,
    HeaderParam,
    encode_value,
    header_params,
    mirror_arguments,
)
from typedmcp.revisions.features import FEATURES

__all__ = ["POST", "RequestHeads", "encode_headers"]

D = dialect.structs

POST: Final = b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"

_MAX_HEADS: Final = 256
"""Encoded headers of modern requests that are kept, by method and name."""
_MAX_HEAD_NAME: Final = 128
"""Characters of a name whose headers are kept."""
_MAX_TOOLS: Final = 10_000
"""The number of tools whose headers are kept."""


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encode headers as lines. Raises `UsageError` for a header with a line break."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise UsageError(f"headers must not have line breaks; one of these has: {', '.join(map(repr, headers))}")
    return text.encode("latin-1", "replace")


class RequestHeads:
    """Encodes the headers of the requests of one session, which depend on the revision.

    Tools declare with `x-mcp-header` which of their arguments headers repeat. `name_params` are the parameters that the
    header `Mcp-Name` repeats, by method.
    """

    def __init__(self, name_params: Mapping[str, str] = NAME_PARAMS) -> None:
        self.revision: str | None = None
        """The negotiated revision."""
        self.proposed: str | None = None
        """The revision of `server/discover` while none is negotiated."""
        self.legacy: bytes = POST
        """The headers of requests in legacy revisions."""
        self._known: dict[tuple[str | None, str, str], bytes] = {}
        """The headers of modern requests by revision, method and name."""
        self._name_params = name_params
        self._params: dict[str, tuple[HeaderParam, ...]] = {}
        """The arguments that headers repeat, by tool."""

    def begin_legacy_session(self, revision: str, id: str | None) -> None:
        """Send the revision, and the id of a session if there is one, with each request from now on."""
        self.legacy = POST + encode_headers({VERSION: revision, **({} if id is None else {SESSION: id})})

    def of(self, method: str, params: Any) -> bytes:
        """Return the headers of a request. Raises `UsageError` for an argument that cannot be a header."""
        name = self._name_of(method, params)
        if name is not None and (head := self._known.get((self.revision, method, name))) is not None:
            return head
        if (revision := self.modern_revision(method)) is None:
            return POST if method == "initialize" else self.legacy
        head = POST + encode_headers(self._headers_for(revision, method, params))
        if name is not None and len(name) <= _MAX_HEAD_NAME:  # calls that differ in no other parameter
            if len(self._known) >= _MAX_HEADS:
                self._known.clear()
            self._known[revision, method, name] = head
        return head

    def modern_revision(self, method: str) -> str | None:
        """Return the revision of a request without a session, or None for a legacy request."""
        if self.revision is None:
            return self.proposed if method == "server/discover" else None
        return self.revision if FEATURES[self.revision].is_modern else None

    # Parameters

    def register_tools(self, tools: list[D.Tool], report: Callable[[Diagnostic], None]) -> list[D.Tool]:
        """Record which arguments of the listed tools have headers. Return the tools whose declarations are valid."""
        return [tool for tool in tools if self._register(tool, report)]

    def _register(self, tool: D.Tool, report: Callable[[Diagnostic], None]) -> bool:
        self._params.pop(tool.name, None)
        try:
            params = header_params(tool.input_schema)
        except ValueError as error:
            text = f"the tool {tool.name!r} is left out: {error}"
            report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list", params=tool.name, error=error))
            return False
        if params:
            if len(self._params) >= _MAX_TOOLS:
                self._params.clear()  # a call without its headers gets an error, and the tools are listed again
            self._params[tool.name] = params
        return True

    def _name_of(self, method: str, params: Any) -> str | None:
        """Return the parameter that decides all headers of a request; None if there is none, or others count, too."""
        member = self._name_params.get(method)
        name = None if member is None else _member(params, member)
        return name if isinstance(name, str) and not (self._params and name in self._params) else None

    def _headers_for(self, revision: str, method: str, params: Any) -> dict[str, str]:
        """Return the headers of a request. Raises `UsageError` for an argument that cannot be encoded as a header."""
        headers = {VERSION: revision, METHOD: method}
        if (member := self._name_params.get(method)) is None:
            return headers
        name = _member(params, member)
        try:
            if isinstance(name, str):
                headers[NAME] = encode_value(name)
            if self._params and method == "tools/call" and name in self._params:
                arguments = _member(params, "arguments")
                if isinstance(arguments, Raw):
                    arguments = msgspec.json.decode(arguments)
                headers.update(mirror_arguments(self._params[name], arguments if is_mapping(arguments) else {}))
        except ValueError as error:
            raise UsageError(f"{method}: {error}") from None
        return headers


def _member(params: Any, name: str) -> Any:
    """Return a parameter from a mapping or a struct, or None."""
    return getattr(params, name, None) if isinstance(params, Struct) or not is_mapping(params) else params.get(name)
