"""Validation of tool results against the `outputSchema` of their tools.

Needs the extra `jsonschema`; without it nothing is validated. See `typedmcp_schemas.validate`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from typedmcp import dialect
from typedmcp.client.results.decoder import ResultProblem
from typedmcp.errors import ProtocolError
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.nulls import from_null
from typedmcp_schemas import ExternalReferenceError, SchemaRejectedError, SchemaValidator, can_validate, compile_schema
from typedmcp_schemas.validate import ENCODING_ERRORS

__all__ = ["ListedTools", "OutputValidator"]

D = dialect.structs

_MAX_SCHEMAS: Final = 512
"""Compiled schemas that are kept."""
_MAX_PATTERN_BYTES: Final = 64 << 20
"""Bytes that the patterns of these schemas may take, compiled."""

_ENTRY_BYTES: Final = 1024
"""Bytes that count for each tool in addition to its name and its schema."""

_CONTENT: Final = "structuredContent"
_SCHEMA: Final = "outputSchema"
_DEFAULT_REASON: Final = "does not fit the tool's outputSchema"


class ExternalReferenceProblem(ResultProblem):
    """A schema that refers to another document. The specification demands that it is rejected, and not ignored."""


class OutputValidator:
    """Validates results of tools. Compiles each schema once, and keeps the most recently used ones."""

    def __init__(self, max_schemas: int = _MAX_SCHEMAS) -> None:
        self._max_schemas = max_schemas
        self._validators: OrderedDict[bytes, SchemaValidator | ResultProblem] = OrderedDict()

    def find_problem(self, tool: D.Tool) -> ResultProblem | None:
        """Return why a tool's results cannot be validated, or None if they can, or need not be."""
        validator = self._validator(tool)
        return validator if isinstance(validator, ResultProblem) else None

    def find_fault(self, tool: D.Tool, result: D.CallToolResult) -> str | None:
        """Return the fault of a result, such as `structuredContent.degrees: "warm" is not of type "number"`.

        None for a valid result, for an error, and for a tool without a schema. If the schema itself is not valid the
        text begins with `outputSchema`: the specification demands that such a schema is rejected.
        """
        if result.is_error is True:
            return None
        validator = self._validator(tool)
        if validator is None:
            return None
        if isinstance(validator, ResultProblem):
            return str(validator)
        if result.structured_content is None:
            return f"{_CONTENT}: required by the tool's outputSchema, but missing"
        return validator.find_error(from_null(result.structured_content), _CONTENT, _DEFAULT_REASON)

    def _validator(self, tool: D.Tool) -> SchemaValidator | ResultProblem | None:
        if tool.output_schema is None or not can_validate():
            return None
        try:
            key = msgspec.json.encode(tool.output_schema)
        except ENCODING_ERRORS as error:
            return ResultProblem(_SCHEMA, f"cannot be encoded as JSON: {error}")
        validator = self._validators.get(key)
        if validator is None:
            validator = self._validators[key] = _compile(key)
            self._forget()
        self._validators.move_to_end(key)
        return validator

    def _forget(self) -> None:
        """Drop the least recently used schemas that are too many or too large. The newest always stays."""
        size = sum(map(_pattern_bytes, self._validators.values()))
        while len(self._validators) > self._max_schemas or (size > _MAX_PATTERN_BYTES and len(self._validators) > 1):
            _, dropped = self._validators.popitem(last=False)
            size -= _pattern_bytes(dropped)


def _pattern_bytes(validator: SchemaValidator | ResultProblem) -> int:
    return 0 if isinstance(validator, ResultProblem) or validator.meter is None else validator.meter.size


def _compile(key: bytes) -> SchemaValidator | ResultProblem:
    try:
        return compile_schema(key)
    except ExternalReferenceError as error:
        return ExternalReferenceProblem(error.place(_SCHEMA), error.reason)
    except SchemaRejectedError as error:
        return ResultProblem(error.place(_SCHEMA), error.reason)


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
