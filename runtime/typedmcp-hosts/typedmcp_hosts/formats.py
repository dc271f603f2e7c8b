"""The formats of the APIs: declarations of tools, calls by the model, and messages with results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from typedmcp.building import is_object
from typedmcp.errors import UsageError
from typedmcp_hosts.schemas import to_gemini_schema, to_json_schema

__all__ = ["FORMATS", "ApiFormat", "LlmApi", "ToolCall", "format_of"]

LlmApi: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini"]
"""An API of language models: OpenAI's Chat Completions and Responses, Anthropic's Messages, Gemini."""

_Json: TypeAlias = dict[str, Any]


class ToolCall(NamedTuple):
    """A tool call that a model asks for."""

    id: str | None
    name: str
    """The name of the tool in the API."""
    arguments: object
    """The arguments: an object, or its JSON text."""


class ApiFormat(NamedTuple):
    """The formats of an API."""

    declare: Callable[[str, str, Mapping[str, Any], int], _Json]
    """Returns the declaration of a tool from its name, description and input schema.

    Raises `DeclarationError` for a schema that has more than a number of bytes in this format.
    """
    parse_call: Callable[[Mapping[str, Any]], ToolCall]
    """Reads the part of an answer that asks for a call. Raises `KeyError` or `TypeError` for other parts."""
    write_result: Callable[[ToolCall, _Json], _Json]
    """Returns the message part for a result, which is in the protocol's JSON."""


def _function(name: str, description: str, schema: Mapping[str, Any], max_bytes: int) -> _Json:
    made: _Json = {"name": name, "parameters": to_json_schema(schema, max_bytes)}
    return {**made, "description": description} if description else made


def _declare_openai(name: str, description: str, schema: Mapping[str, Any], max_bytes: int) -> _Json:
    return {"type": "function", "function": _function(name, description, schema, max_bytes)}


def _declare_responses(name: str, description: str, schema: Mapping[str, Any], max_bytes: int) -> _Json:
    return {"type": "function", "strict": False, **_function(name, description, schema, max_bytes)}


def _declare_anthropic(name: str, description: str, schema: Mapping[str, Any], max_bytes: int) -> _Json:
    made: _Json = {"name": name, "input_schema": to_json_schema(schema, max_bytes)}
    return {**made, "description": description} if description else made


def _declare_gemini(name: str, description: str, schema: Mapping[str, Any], max_bytes: int) -> _Json:
    made: _Json = {"name": name, "description": description}
    return {**made, "parameters": to_gemini_schema(schema, max_bytes)} if schema.get("properties") else made


# Calls


def _parse_openai(part: Mapping[str, Any]) -> ToolCall:
    return ToolCall(part["id"], part["function"]["name"], part["function"]["arguments"])


def _parse_responses(part: Mapping[str, Any]) -> ToolCall:
    return ToolCall(part["call_id"], part["name"], part["arguments"])


def _parse_anthropic(part: Mapping[str, Any]) -> ToolCall:
    return ToolCall(part["id"], part["name"], part["input"])


def _parse_gemini(part: Mapping[str, Any]) -> ToolCall:
    inner = part.get("functionCall") or part.get("function_call") or part
    return ToolCall(inner.get("id"), inner["name"], inner.get("args") or {})


# Results


def _blocks(result: _Json) -> list[_Json]:
    """Return the content of a result. Structured content without other content becomes a text."""
    content: list[_Json] = result.get("content") or []
    structured = result.get("structuredContent")
    if not content and structured is not None:
        return [{"type": "text", "text": msgspec.json.encode(structured).decode()}]
    return content


def _text_of(block: _Json) -> str:
    """Return a block as text: its own, that of its resource, or a note about what cannot be shown."""
    if block["type"] == "text":
        return str(block["text"])
    resource = block.get("resource", block)
    if is_object(resource) and "text" in resource:
        return str(resource["text"])
    name = resource.get("uri") or resource.get("mimeType") or ""
    return f"[{block['type']} {name}]"


def _is_image(block: _Json) -> bool:
    return bool(block["type"] == "image")


def _write_openai(call: ToolCall, result: _Json) -> _Json:
    text = "\n".join(map(_text_of, _blocks(result)))  # a tool message has text only
    return {"role": "tool", "tool_call_id": call.id, "content": _mark_error(text, result)}


def _write_responses(call: ToolCall, result: _Json) -> _Json:
    blocks = _blocks(result)
    output: Any = _mark_error("\n".join(map(_text_of, blocks)), result)
    if any(map(_is_image, blocks)):
        output = [_responses_part(block) for block in blocks]
    return {"type": "function_call_output", "call_id": call.id, "output": output}


def _responses_part(block: _Json) -> _Json:
    if _is_image(block):
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_text", "text": _text_of(block)}


def _mark_error(text: str, result: _Json) -> str:
    """OpenAI's results have no member for errors."""
    return f"Error: {text}" if result.get("isError") else text


_ANTHROPIC_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def _write_anthropic(call: ToolCall, result: _Json) -> _Json:
    content = [part for block in _blocks(result) if (part := _anthropic_part(block)) is not None]
    made = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    return {**made, "is_error": True} if result.get("isError") else made


def _anthropic_part(block: _Json) -> _Json | None:
    """Return a block of a tool result, or None for an empty text, which the API refuses."""
    if _is_image(block) and block["mimeType"] in _ANTHROPIC_IMAGES:
        source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
        return {"type": "image", "source": source}
    text = _text_of(block)
    return {"type": "text", "text": text} if text else None


def _write_gemini(call: ToolCall, result: _Json) -> _Json:
    blocks = _blocks(result)
    text = "\n".join(_text_of(block) for block in blocks if not _is_image(block))
    if result.get("isError"):
        response: _Json = {"error": text}
    else:
        structured = result.get("structuredContent")
        response = {"output": text if structured is None else structured}
    made: _Json = {"name": call.name, "response": response}
    if call.id is not None:
        made["id"] = call.id
    images = [
        {"inlineData": {"mimeType": each["mimeType"], "data": each["data"]}} for each in blocks if _is_image(each)
    ]
    return {"functionResponse": {**made, "parts": images} if images else made}


FORMATS: Final[Mapping[str, ApiFormat]] = {
    "openai": ApiFormat(_declare_openai, _parse_openai, _write_openai),
    "openai-responses": ApiFormat(_declare_responses, _parse_responses, _write_responses),
    "anthropic": ApiFormat(_declare_anthropic, _parse_anthropic, _write_anthropic),
    "gemini": ApiFormat(_declare_gemini, _parse_gemini, _write_gemini),
}


def format_of(api: str) -> ApiFormat:
    """Return the format of an API. Raises `UsageError` for an unknown one."""
    if api not in FORMATS:
        raise UsageError(f"unknown API {api!r}; known: {', '.join(FORMATS)}")
    return FORMATS[api]
