"""The tools of a client under the names of an API, and calls of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final, Unpack
from weakref import WeakKeyDictionary

from typedmcp import CallOptions, Client, Diagnostic, DiagnosticKind
from typedmcp.building import decode_json, format_value, is_object
from typedmcp.errors import RemoteError, ToolError, UsageError
from typedmcp.types import to_builtins
from typedmcp_hosts.formats import ApiFormat, LlmApi, ToolCall, format_of
from typedmcp_hosts.group import ClientGroup
from typedmcp_hosts.schemas import MAX_SCHEMA_BYTES, DeclarationError
from typedmcp_schemas import replace_forbidden
from typedmcp_schemas.hosts import MAX_NAME

__all__ = ["api_name", "call_for", "tools_for"]

_HASH_DIGITS: Final = 8
_SHOWN_CHARACTERS: Final = 60
"""Characters at the end of arguments that are not complete which their error shows."""

_names: WeakKeyDictionary[Client | ClientGroup, dict[LlmApi, dict[str, str]]] = WeakKeyDictionary()
"""The names of the tools by their names in an API, of each client whose tools were declared to it."""


async def tools_for(
    client: Client | ClientGroup, api: LlmApi, *, max_schema_bytes: int = MAX_SCHEMA_BYTES
) -> list[dict[str, Any]]:
    """Return declarations of all tools of a client, or of a group, for the API of a language model.

    Names that the API does not allow are changed; `call_for` knows them. A tool whose input schema has more than
    `max_schema_bytes` in the format of the API is left out and reported to `on_diagnostic`.
    """
    format, names = _format_for(client, api), dict[str, str]()
    made: list[dict[str, Any]] = []
    async for tool in client.tools():
        name = api_name(tool.name, names)
        try:
            declared = format.declare(name, tool.description or tool.title or "", tool.input_schema, max_schema_bytes)
        except DeclarationError as error:
            text = f"the tool {tool.name!r} is not declared to {api}: its inputSchema {error}"
            client.report(Diagnostic(DiagnosticKind.INVALID_DATA, text, "tools/list", params=tool.name, error=error))
        else:
            names[name] = tool.name
            made.append(declared)
        await asyncio.sleep(0)  # a list of many large schemas must not hold up other tasks
    _names.setdefault(client, {})[api] = names
    return made


async def call_for(
    client: Client | ClientGroup, api: LlmApi, part: object, **options: Unpack[CallOptions]
) -> dict[str, Any]:
    """Call the tool that a part of a model's answer asks for, and return the part with the result for the model.

    `part` is a dict, or an object of the API's SDK. Failed calls and unknown tools are results, which the API's way
    marks as errors. `options` are those of calls, such as `timeout`. Raises `UsageError` for a part that asks for no
    tool, and for `rounds=0`: a model cannot answer what a server asks.
    """
    if options.get("rounds") == 0:
        raise UsageError("call_for: rounds must not be 0, since the result for a model must be one of the tool")
    format = _format_for(client, api)
    call = _parse(format, api, part)
    if not _names.get(client, {}).get(api):
        await tools_for(client, api)
    return format.write_result(call, await _run(client, call, _names[client][api], options))


def _format_for(client: object, api: str) -> ApiFormat:
    if hasattr(client, "async_client"):  # type checkers report it, but not everybody has one
        raise UsageError("this is a blocking client: use client.run(tools_for, api) or client.run(call_for, api, part)")
    return format_of(api)


def _parse(format: ApiFormat, api: str, part: object) -> ToolCall:
    dump = getattr(part, "model_dump", None)  # an object of the API's SDK
    plain: object = part if dump is None else dump()
    try:
        if is_object(plain):
            return format.parse_call(plain)
    except (KeyError, TypeError, AttributeError):
        pass
    raise UsageError(f"{api}: this part of the answer asks for no tool: {type(part).__name__}")


async def _run(
    client: Client | ClientGroup, call: ToolCall, names: Mapping[str, str], options: CallOptions
) -> dict[str, Any]:
    """Return the result of a call as the protocol's JSON."""
    name = names.get(call.name)
    if name is None:
        return _failure(f"unknown tool {call.name!r}; known: {', '.join(names)}")
    try:
        arguments = _read_arguments(call)
        result: Any = to_builtins(await client.call_tool(name, arguments, **options))
    except (ToolError, RemoteError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        return _failure(str(error))
    return dict(result)


def _read_arguments(call: ToolCall) -> dict[str, Any]:
    """Return arguments as an object. Raises `ValueError` for others: models write JSON that is not valid."""
    given, parsed = call.arguments, call.arguments
    if isinstance(given, str):
        try:
            parsed = decode_json(given or "{}")
        except ValueError as error:
            end = f"they end too early, with {format_value(given[-_SHOWN_CHARACTERS:])}"
            reason = end if "truncated" in str(error) else str(error)
            raise ValueError(f"the arguments of {call.name} are not valid JSON: {reason}; expected an object") from None
    if not isinstance(parsed, Mapping):
        raise ValueError(f"the arguments of {call.name}: expected an object, got {type(parsed).__name__}")
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
