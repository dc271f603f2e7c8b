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
from typedmcp_schemas import SchemaRejectedError, SchemaValidator, compile_schema
from typedmcp_schemas.validate import ENCODING_ERRORS, ExternalReferenceError, UnsupportedDialectError

__all__ = ["ListedTools"]

D = dialect.structs

_MAX_COMPILED: Final = 512
"""Compiled schemas that are kept."""
_MAX_PATTERN_BYTES: Final = 64 << 20
"""Bytes that the patterns of these schemas may take, compiled."""

_ENTRY_BYTES: Final = 1024
"""Bytes that count for each tool in addition to its name and its schema."""

_CONTENT: Final = "structuredContent"
_SCHEMA: Final = "outputSchema"
_DEFAULT_REASON: Final = "does not fit the tool's outputSchema"


class RefusedSchemaProblem(ResultProblem):
    """A schema that refers to another document, or names a dialect that is not supported.

    The specification demands an error, so calls of its tool are refused. The results of other schemas that cannot be
    used are not validated.
    """


def _compile(schema: bytes) -> SchemaValidator | ResultProblem:
    try:
        return compile_schema(schema)
    except SchemaRejectedError as error:
        is_refused = isinstance(error, ExternalReferenceError | UnsupportedDialectError)
        return (RefusedSchemaProblem if is_refused else ResultProblem)(error.place(_SCHEMA), error.reason)


@dataclass(slots=True)
class _ListedTool:
    schema: bytes
    size: int
    validator: SchemaValidator | RefusedSchemaProblem | None = None
    """The compiled schema; None before the first call, and once others have pushed it out."""

    @property
    def pattern_bytes(self) -> int:
        """The bytes that the patterns of the compiled schema take."""
        meter = None if self.validator is None else getattr(self.validator, "meter", None)
        return 0 if meter is None else meter.size


class ListedTools:
    """Validates the results of listed tools. Forgets the schemas used least recently, up to a number of bytes.

    A schema is compiled before the first call of its tool: a list may have more schemas than time allows. The
    `max_compiled` schemas used most recently stay compiled.
    """

    def __init__(self, limits: Limits, report: Callable[[Diagnostic], None], max_compiled: int = _MAX_COMPILED) -> None:
        self._max_bytes = limits.output_schema_bytes
        self._max_compiled = max_compiled
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
            former = self._remove(tool.name)
            if tool.output_schema is not None:
                self._add(tool.name, tool.output_schema, former)

    def prepare(self, name: str) -> None:
        """Compile the output schema of a tool, if it has one.

        Raises `ProtocolError` for a tool whose results cannot be validated, so that it is not called.
        """
        validator = self._validator(name)
        if isinstance(validator, RefusedSchemaProblem):
            text = f"the tool {name!r} is refused: {validator}; `check_output=False` calls it all the same"
            raise ProtocolError(text).attach_call("tools/call", "none")

    def find_fault(self, name: str, result: D.CallToolResult) -> str | None:
        """Return the fault of a result, such as `structuredContent.degrees: "warm" is not of type "number"`.

        None for a valid result, for an error, and for a tool whose results are not validated.
        """
        if result.is_error is True:
            return None
        validator = self._validator(name)
        if validator is None or isinstance(validator, RefusedSchemaProblem):
            return None if validator is None else str(validator)
        if result.structured_content is None:
            return f"{_CONTENT}: required by the tool's outputSchema, but missing"
        return validator.find_error(from_null(result.structured_content), _CONTENT, _DEFAULT_REASON)

    def _add(self, name: str, plain: Any, former: _ListedTool | None) -> None:
        try:
            schema = msgspec.json.encode(plain)  # bytes take a tenth of the memory of the objects
        except ENCODING_ERRORS as error:
            self._report_problem(name, ResultProblem(_SCHEMA, f"cannot be encoded as JSON: {error}"))
            return
        if former is None or former.schema != schema:
            former = _ListedTool(schema, len(schema) + len(name) + _ENTRY_BYTES)
        self._tools[name] = former
        self._bytes += former.size
        while self._bytes > self._max_bytes:
            self._forget(next(iter(self._tools)))

    def _forget(self, name: str) -> None:
        self._remove(name)
        if not self._has_forgotten:
            self._has_forgotten = True
            limit = f"the listed ones have more than {self._max_bytes} bytes (output_schema_bytes)"
            text = f"the output schema of {name} is forgotten, and its results are not validated: {limit}"
            self._report(Diagnostic(DiagnosticKind.DROPPED, text, "tools/list"))

    def _remove(self, name: str) -> _ListedTool | None:
        if (listed := self._tools.pop(name, None)) is not None:
            self._bytes -= listed.size
        return listed

    def _validator(self, name: str) -> SchemaValidator | RefusedSchemaProblem | None:
        """Return what the results of a tool are validated with; None if they are not."""
        listed = self._tools.get(name)
        if listed is None:
            return None
        self._tools.move_to_end(name)
        if listed.validator is None:
            compiled = _compile(listed.schema)
            if isinstance(compiled, ResultProblem):
                self._report_problem(name, compiled)
                if not isinstance(compiled, RefusedSchemaProblem):
                    self._remove(name)
                    return None
            listed.validator = compiled
            self._drop_compiled()
        return listed.validator

    def _drop_compiled(self) -> None:
        """Drop the compiled schemas used least recently that are too many or too large. The newest always stays."""
        compiled = [each for each in self._tools.values() if each.validator is not None]
        count, size = len(compiled), sum(each.pattern_bytes for each in compiled)
        for each in compiled[:-1]:
            if count <= self._max_compiled and size <= _MAX_PATTERN_BYTES:
                return
            count, size = count - 1, size - each.pattern_bytes
            each.validator = None

    def _report_problem(self, name: str, problem: ResultProblem) -> None:
        text = f"the results of {name} cannot be validated: {problem}"
        if isinstance(problem, RefusedSchemaProblem):
            text = f"calls of {name} are refused: {problem}"
        self._report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list", params=problem.value))
