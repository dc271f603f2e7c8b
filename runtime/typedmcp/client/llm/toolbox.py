"""The tools of a client under the names of an API, and calls of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.client.llm.formats import LlmApi, ToolCall, format_of
from typedmcp.errors import RemoteError, ToolError, UsageError
from typedmcp.jsonschema.hosts import MAX_NAME, replace_forbidden
from typedmcp.jsonschema.schema_cost import SchemaRejectedError
from typedmcp.limits import Limits
from typedmcp.nesting import decode_json
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind

__all__ = ["Toolbox", "api_name"]

D = dialect.structs

_HASH_DIGITS: Final = 8


class Toolbox:
    """The tools of a client, or of a group, for one API.

    `tools` lists all tools, `call_tool` calls one by its name and arguments. `report` is told of the tools that are not
    declared.
    """

    def __init__(
        self,
        api: LlmApi,
        tools: Callable[[], AsyncIterator[D.Tool]],
        call_tool: Callable[[str, dict[str, Any]], Awaitable[Any]],
        limits: Limits,
        report: Callable[[Diagnostic], None],
    ) -> None:
        self._format = format_of(api)
        self._api = api
        self._list_tools = tools
        self._call_tool = call_tool
        self._max_bytes = limits.llm_schema_bytes
        self._report = report
        self._names: dict[str, str] = {}
        """The names of the tools by their names in the API."""

    async def declare(self) -> list[dict[str, Any]]:
        """List the tools, and return their declarations for the API. A tool without one is reported."""
        names: dict[str, str] = {}
        made: list[dict[str, Any]] = []
        async for tool in self._list_tools():
            name = api_name(tool.name, names)
            try:
                declared = self._format.declare(
                    name, tool.description or tool.title or "", tool.input_schema, self._max_bytes
                )
            except SchemaRejectedError as error:
                text = f"the tool {tool.name!r} is not declared to {self._api}: its inputSchema {error}"
                self._report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list", params=tool.name, error=error))
            else:
                names[name] = tool.name
                made.append(declared)
            await asyncio.sleep(0)  # a list of many large schemas must not hold up other tasks
        self._names = names
        return made

    async def call(self, part: object) -> dict[str, Any]:
        """Call the tool that a part of the model's answer asks for, and return the part with the result.

        Errors that the model can act on become results. Raises `UsageError` for a part that asks for no tool.
        """
        call = self._parse(part)
        if not self._names:
            await self.declare()
        return self._format.write_result(call, await self._run(call))

    def _parse(self, part: object) -> ToolCall:
        dump = getattr(part, "model_dump", None)  # an object of the API's SDK
        plain: object = part if dump is None else dump()
        try:
            if is_object(plain):
                return self._format.parse_call(plain)
        except (KeyError, TypeError, AttributeError):
            pass
        raise UsageError(f"{self._api}: this part of the answer asks for no tool: {type(part).__name__}")

    async def _run(self, call: ToolCall) -> dict[str, Any]:
        """Return the result of a call as the protocol's JSON."""
        name = self._names.get(call.name)
        if name is None:
            return _failure(f"unknown tool {call.name!r}; known: {', '.join(self._names)}")
        try:
            arguments = _read_arguments(call.arguments)
            result: Any = D.to_builtins(await self._call_tool(name, arguments))
        except (ToolError, RemoteError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            return _failure(str(error))
        return dict(result)


def _read_arguments(given: object) -> dict[str, Any]:
    """Return arguments as an object. Raises `ValueError` for others: models write JSON that is not valid."""
    parsed: object = decode_json(given or "{}") if isinstance(given, str) else given
    if not isinstance(parsed, Mapping):
        raise ValueError(f"arguments: expected an object, got {type(parsed).__name__}")
    return {**parsed}


def _failure(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def api_name(name: str, taken: Mapping[str, str]) -> str:
    """Return the name of a tool in the APIs: 1 to 64 letters, digits, `_` and `-`, after a letter or `_`.

    A name that has to change gets a digest of the original if it would be too long or is `taken`.
    """
    made = replace_forbidden(name)
    if len(made) > MAX_NAME or made in taken:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
        made = f"{made[: MAX_NAME - _HASH_DIGITS - 1]}_{digest}"
    return made
