"""The text in what servers and models say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpspec._support.objects import is_array
from typedmcp.errors import UsageError

__all__ = ["text_of"]

_HOLDERS: Final[Mapping[str, str | None]] = {
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
"""Where types of the protocol have their text, in every revision and both libraries; None for those without any."""


def text_of(value: Any) -> str:
    """The text in a result, a message, a block of content, or a list of them: what is no text is passed over.

    Results are those of tools, prompts, resources and models, in the types of any revision. Several texts are joined
    by newlines. Raises `UsageError` for anything else.
    """
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_array(value):
        for item in value:
            yield from _texts(item)
    elif (name := type(value).__name__) in _HOLDERS:
        member = _HOLDERS[name]
        if member is not None:
            yield from _texts(getattr(value, member))
    else:
        raise UsageError(f"{name} is neither a result, nor a message, nor content")
