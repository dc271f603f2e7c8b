"""Validation of tool results against the `outputSchema` of their tools.

Needs the extra `jsonschema`; without it nothing is validated. See `typedmcp_schemas.validate`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from typedmcp import dialect
from typedmcp.client.results.decoder import ResultProblem
from typedmcp.protocol.nulls import from_null
from typedmcp_schemas import ExternalReferenceError, SchemaRejectedError, SchemaValidator, can_validate, compile_schema
from typedmcp_schemas.validate import ENCODING_ERRORS

__all__ = ["ExternalReferenceProblem", "OutputValidator"]

D = dialect.structs

_MAX_SCHEMAS: Final = 512
"""Compiled schemas that are kept."""
_MAX_PATTERN_BYTES: Final = 64 << 20
"""Bytes that the patterns of these schemas may take, compiled."""

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
