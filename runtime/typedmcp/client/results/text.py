"""The text in results, messages and content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpspec.support.objects import is_array
from typedmcp.errors import UsageError

__all__ = ["TEXT_MEMBERS", "text_of"]

TEXT_MEMBERS: Final[Mapping[str, str | None]] = {
    "TextContent": "text",
    "TextResourceContents": "text",
    "EmbeddedResource": "resource",
    "ToolResultContent": "content",
    "CallToolResult": "content",
    "CreateMessageResult": "content",
    "SamplingMessage": "content",
    "PromptMessage": "content",
    "GetPromptResult": "messages",
    "ReadResourceResult": "contents",
    "ImageContent": None,
    "AudioContent": None,
    "ResourceLink": None,
    "BlobResourceContents": None,
    "ToolUseContent": None,
}
"""The member that holds the text of a type, in every revision and both libraries. None for types without text."""


def text_of(value: Any) -> str:
    """Return the text in a result, a message, a content block, or a list of them, without any other content.

    Takes results of tools, prompts, resources and sampling, in the types of any revision. Joins texts with newlines.
    Raises `UsageError` for other values.
    """
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_array(value):
        for item in value:
            yield from _texts(item)
    elif (name := type(value).__name__) in TEXT_MEMBERS:
        member = TEXT_MEMBERS[name]
        if member is not None:
            yield from _texts(getattr(value, member))
    else:
        raise UsageError(f"expected a result, a message or content, got {name}")
