"""What tools return, checked against their `outputSchema`.

Needs the extra `jsonschema`; without it nothing is checked. See `typedmcp.validation`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec
from msgspec import UNSET

from typedmcp import dialect
from typedmcp.client.replies import Problem
from typedmcp.validation import UNWRITABLE, Check, Refused, available, compiled

__all__ = ["OutputChecker"]

D = dialect.structs

KEPT: Final = 512
"""How many compiled schemas are kept."""

_CONTENT: Final = "structuredContent"
_SCHEMA: Final = "outputSchema"
_OTHERWISE: Final = "does not fit the tool's outputSchema"


class OutputChecker:
    """Checks results of tools. Compiles each schema once, and keeps the last ones used."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._checks: OrderedDict[bytes, Check | Problem] = OrderedDict()

    def problem(self, tool: D.Tool) -> Problem | None:
        """Why a tool's results cannot be checked; None if they can, or need not be."""
        check = self._check(tool)
        return check if isinstance(check, Problem) else None

    def check(self, tool: D.Tool, result: D.CallToolResult) -> str | None:
        """What is wrong with a result, such as `structuredContent.degrees: "warm" is not of type "number"`.

        None for what fits, for errors, and for tools without a schema. Where the schema itself cannot be used the text
        begins with `outputSchema`: the specification has such a schema be rejected, not be taken for one that allows
        everything.
        """
        if result.is_error is True:
            return None
        check = self._check(tool)
        if check is None:
            return None
        if isinstance(check, Problem):
            return str(check)
        if result.structured_content is UNSET:
            return f"{_CONTENT}: required by the tool's outputSchema, but missing"
        return check.fault(result.structured_content, _CONTENT, _OTHERWISE)

    def _check(self, tool: D.Tool) -> Check | Problem | None:
        if tool.output_schema is UNSET or not available():
            return None
        try:
            key = msgspec.json.encode(tool.output_schema)
        except UNWRITABLE as error:
            return Problem(_SCHEMA, f"is no JSON: {error}")
        check = self._checks.get(key)
        if check is None:
            check = self._checks[key] = _compiled(key)
            if len(self._checks) > self._kept:
                self._checks.popitem(last=False)
        self._checks.move_to_end(key)
        return check


def _compiled(key: bytes) -> Check | Problem:
    try:
        return compiled(key)
    except Refused as refused:
        return Problem(refused.place(_SCHEMA), refused.reason)
