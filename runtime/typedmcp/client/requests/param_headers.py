"""The headers that repeat parameters of modern requests, so that proxies need not read bodies.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from mcpspec.features import NAME_PARAMS
from typedmcp import dialect
from typedmcp.client.requests.encoder import is_mapping
from typedmcp.errors import UsageError
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.headers import METHOD, NAME, VERSION, HeaderParam, encode_value, header_params, mirror_arguments

__all__ = ["ParamHeaders"]

D = dialect.structs

_MAX_TOOLS: Final = 10_000
"""The number of tools whose headers are kept."""


class ParamHeaders:
    """The request headers that repeat tool arguments, as the server's tools declare with `x-mcp-header`.

    `name_params` are the parameters that the header `Mcp-Name` repeats, by method.
    """

    def __init__(self, name_params: Mapping[str, str] = NAME_PARAMS) -> None:
        self._name_params = name_params
        self._params: dict[str, tuple[HeaderParam, ...]] = {}

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

    def name_of(self, method: str, params: Any) -> str | None:
        """Return the parameter that decides all headers of a request; None if there is none, or others count, too."""
        member = self._name_params.get(method)
        name = None if member is None else _member(params, member)
        return name if isinstance(name, str) and not (self._params and name in self._params) else None

    def headers_for(self, revision: str, method: str, params: Any) -> dict[str, str]:
        """Return the headers of a request. Raises `UsageError` for an argument that cannot be encoded as a header."""
        headers = {VERSION: revision, METHOD: method}
        member = self._name_params.get(method)
        if member is None:
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
    return params.get(name) if params.__class__ is dict or is_mapping(params) else getattr(params, name, None)
