"""What requests on modern wires say in headers too, so that whatever stands between need not read their bodies.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typedmcp import dialect
from typedmcp.client.requests import is_mapping
from typedmcp.edge.revisions import DIALECT
from typedmcp.errors import UsageError
from typedmcp.http.headers import METHOD, NAME, NAMED, VERSION, HeaderParam, encode_value, header_params, values
from typedmcp.peer import Kind, Report

__all__ = ["Mirror"]

D = dialect.structs

_MOST = 10_000
"""Of how many tools the headers are remembered."""


class Mirror:
    """The tools of a server whose arguments have headers."""

    def __init__(self) -> None:
        self._params: dict[str, tuple[HeaderParam, ...]] = {}

    def keep(self, tools: list[D.Tool], report: Callable[[Report], None]) -> list[D.Tool]:
        """Remember the headers of tools that were listed. Those whose schemas break the rules are left out."""
        return [tool for tool in tools if self._note(tool, report)]

    def _note(self, tool: D.Tool, report: Callable[[Report], None]) -> bool:
        self._params.pop(tool.name, None)
        try:
            params = header_params(tool.input_schema)
        except ValueError as error:
            text = f"the tool {tool.name!r} is left out: {error}"
            report(Report(Kind.PROBLEM, text, "tools/list", params=tool.name, error=error))
            return False
        if params:
            if len(self._params) >= _MOST:
                self._params.clear()  # those that are called say that they are missing
            self._params[tool.name] = params
        return True

    def headers(self, method: str, params: Any) -> dict[str, str]:
        """The headers of a request. Raises `UsageError` for an argument that cannot stand in one."""
        made = {VERSION: DIALECT, METHOD: method}
        member = NAMED.get(method)
        if member is None:
            return made
        name = _member(params, member)
        try:
            if isinstance(name, str):
                made[NAME] = encode_value(name)
            if self._params and method == "tools/call" and name in self._params:
                arguments = _member(params, "arguments")
                made.update(values(self._params[name], arguments if is_mapping(arguments) else {}))
        except ValueError as error:
            raise UsageError(f"{method}: {error}") from None
        return made


def _member(params: Any, name: str) -> Any:
    """A parameter, from a mapping or a struct."""
    return params.get(name) if is_mapping(params) else getattr(params, name, None)
