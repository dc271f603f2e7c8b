"""The output schemas of the tools that a server has listed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from typedmcp import dialect
from typedmcp.client.results.decoder import ResultProblem
from typedmcp.client.results.output_validation import ExternalReferenceProblem, OutputValidator
from typedmcp.errors import ProtocolError
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp_schemas.validate import ENCODING_ERRORS

__all__ = ["ListedTools"]

D = dialect.structs

_ENTRY_BYTES: Final = 1024
"""Bytes that count for each tool in addition to its name and its schema."""


@dataclass(slots=True)
class _ListedTool:
    tool: D.Tool
    size: int
    is_compiled: bool = False
    refusal: ResultProblem | None = None
    """Why the tool is not called."""


class ListedTools:
    """Checks the results of listed tools. Forgets the schemas that were used least recently, up to a number of bytes.

    A schema is compiled before the first call of its tool: a list may have more schemas than time allows.
    """

    def __init__(self, validator: OutputValidator, limits: Limits, report: Callable[[Diagnostic], None]) -> None:
        self._validator = validator
        self._max_bytes = limits.output_schema_bytes
        self._report = report
        self._tools: OrderedDict[str, _ListedTool] = OrderedDict()
        self._bytes = 0
        self._has_forgotten = False
        """True once a forgotten schema was reported."""

    def clear(self) -> None:
        """Forget all tools."""
        self._tools.clear()
        self._bytes = 0
        self._has_forgotten = False

    def add(self, tools: Iterable[D.Tool]) -> None:
        """Note the output schemas of tools, in place of older ones of the same names."""
        for tool in tools:
            self._remove(tool.name)
            if tool.output_schema is not None:
                self._add(tool)

    def prepare(self, name: str) -> None:
        """Compile the output schema of a tool, if it has one.

        Raises `ProtocolError` for a tool whose results could not be validated without another document.
        """
        listed = self._tools.get(name)
        if listed is None:
            return
        self._tools.move_to_end(name)
        if not listed.is_compiled:
            self._compile(listed)
        if listed.refusal is not None:
            text = f"the tool {name!r} is refused: {listed.refusal}; `check_output=False` calls it all the same"
            raise ProtocolError(text).attach_call("tools/call", "none")

    def find_fault(self, name: str, result: D.CallToolResult) -> str | None:
        """Return the fault of a tool's result, or None if it is valid or is not checked."""
        listed = self._tools.get(name)
        if listed is not None and not listed.is_compiled:  # listed again during the call
            self._compile(listed)
            listed = self._tools.get(name)
        return None if listed is None else self._validator.find_fault(listed.tool, result)

    def _add(self, tool: D.Tool) -> None:
        try:
            # as bytes, which take a tenth of the memory of the objects, and are what the validator looks up
            schema: Any = msgspec.Raw(msgspec.json.encode(tool.output_schema))
        except ENCODING_ERRORS:
            self._report_problem(tool.name, self._validator.find_problem(tool))
            return
        size = len(schema) + len(tool.name) + _ENTRY_BYTES
        self._tools[tool.name] = _ListedTool(D.Tool(name=tool.name, input_schema={}, output_schema=schema), size)
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._forget(next(iter(self._tools)))

    def _forget(self, name: str) -> None:
        self._remove(name)
        if not self._has_forgotten:
            self._has_forgotten = True
            limit = f"the listed ones have more than {self._max_bytes} bytes (output_schema_bytes)"
            text = f"the output schema of {name} is forgotten, and its results are not validated: {limit}"
            self._report(Diagnostic(DiagnosticKind.DROPPED, text, "tools/list"))

    def _remove(self, name: str) -> None:
        if (listed := self._tools.pop(name, None)) is not None:
            self._bytes -= listed.size

    def _compile(self, listed: _ListedTool) -> None:
        listed.is_compiled = True
        problem = self._validator.find_problem(listed.tool)
        if problem is None:
            return
        if isinstance(problem, ExternalReferenceProblem):
            listed.refusal = problem
        else:
            self._remove(listed.tool.name)
        self._report_problem(listed.tool.name, problem)

    def _report_problem(self, name: str, problem: ResultProblem | None) -> None:
        text = f"the results of {name} cannot be validated: {problem}"
        if isinstance(problem, ExternalReferenceProblem):
            text = f"calls of {name} are refused: {problem}"
        params = None if problem is None else problem.value
        self._report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list", params=params))
