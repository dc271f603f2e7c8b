"""What tools, resources and prompts return, as the protocol has it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, NewType, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from mcpspec._support.structs import may_have_lost, refuse_non_finite
from typedmcp import dialect
from typedmcp.backends import as_struct
from typedmcp.errors import UsageError
from typedmcp.inputs import is_input_required
from typedmcp.jsonfaults import Unfit
from typedmcp.jsontypes import Unsupported, adapted, convert, enc_hook, fault, plain, schema_of, written
from typedmcp.server.content import Audio, File, Image, blob, contents_of

__all__ = ["AssistantMessage", "Misfit", "Output", "UserMessage", "blocks", "contents", "messages"]

D = dialect.structs

_BLOCKS = (D.TextContent, D.ImageContent, D.AudioContent, D.ResourceLink, D.EmbeddedResource)
_MEDIA = (Image, Audio, File)
_BYTES: tuple[Any, ...] = (bytes, bytearray, memoryview)
_WHOLE = (D.CallToolResult, D.InputRequiredResult)
_SEQUENCES = (list, tuple, set, frozenset)
_STREAMS = (Generator, AsyncGenerator, Iterator, AsyncIterator, Iterable, AsyncIterable)
_WRAPPED = "result"
"""The member that holds a structured result which is no object: all revisions but the newest want one."""

_encoder = msgspec.json.Encoder(enc_hook=enc_hook)


class Misfit(ValueError):  # noqa: N818
    """A result that is not what its schema says."""


class Output:
    """What a tool returns, by its annotation: content, and structured content where that says what it is.

    `schema` is the tool's `outputSchema`, or None. `structured` decides where the annotation would not. Raises
    `UsageError` where structured content is asked for that cannot be had.
    """

    def __init__(self, hint: Any, structured: bool | None, what: str) -> None:
        self.schema: dict[str, Any] | None = None
        self.is_wrapped: bool = False
        self.is_nothing: bool = structured is None and hint in (None, NoneType)
        """Whether there is no result, whatever the function returns."""
        self._by_value = structured is None and hint in (inspect.Parameter.empty, Any, object)
        self._hint: Any = UNSET
        self._written: Any = None
        """The same as Pydantic writes it, where it takes part."""
        if structured is False or (structured is None and (hint is inspect.Parameter.empty or _is_content(hint))):
            return
        hint = Any if hint is inspect.Parameter.empty else hint
        try:
            self._written = written(hint)
            made = adapted(hint) if self._written is None else self._written
            schema = schema_of(made)
        except (Unsupported, NameError) as error:
            if structured:
                raise UsageError(f"{what}: what it returns: {error}") from error
            self._by_value = structured is None
            return
        self._hint = made
        self.is_wrapped = not _is_object_schema(schema)
        self.schema = _wrapped(schema) if self.is_wrapped else {"type": "object", **schema}

    def result(self, value: Any, name: str) -> Any:
        """The result of a call. Raises `Misfit`, and `TypeError` for what has no JSON form."""
        if type(value) is str and self._hint is UNSET and not self.is_nothing:
            return D.CallToolResult(content=[D.TextContent(text=value)], result_type="complete")
        if isinstance(value, _WHOLE) or is_input_required(value):
            return value
        if type(value).__name__ == "CallToolResult":  # Pydantic's
            return as_struct(value)
        if self._written is not None and not _has_blocks(value):
            return self._by_pydantic(value)
        content, has_blocks = _content_of(None if self.is_nothing else value, name)
        made = D.CallToolResult(content=content, result_type="complete")
        if self._hint is not UNSET:
            made.structured_content = self._fitting(content if has_blocks else value)
        elif self._by_value and _is_record(value):
            made.structured_content = plain(value)
        return made

    def _fitting(self, value: Any) -> Any:
        built = plain(value)
        try:
            convert(built, self._hint)
        except (ValueError, RecursionError) as error:
            raise Misfit(fault(error)) from error
        return self._whole(built)

    def _by_pydantic(self, value: Any) -> D.CallToolResult:
        """What Pydantic makes of a value, as text, too: serializers may have made something else of it."""
        try:
            built = self._written.decode(value)
        except (Unfit, RecursionError) as error:
            raise Misfit(fault(error)) from error
        texts = [] if value is None else [value if isinstance(value, str) else json_text(built)]
        content: list[Any] = [D.TextContent(text=text) for text in texts]
        return D.CallToolResult(content=content, structured_content=self._whole(built), result_type="complete")

    def _whole(self, built: Any) -> Any:
        return {_WRAPPED: built} if self.is_wrapped else built


def _is_content(hint: Any) -> bool:
    """Whether a type says that a result is content, or nothing at all, rather than data."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_content(get_args(hint)[0])
    if origin in (Union, UnionType):
        return all(_is_content(option) for option in get_args(hint))
    if origin in _STREAMS:
        return True
    if (origin is not None and origin in _SEQUENCES) or str(origin).endswith("abc.Sequence'>"):
        return any(_is_block(argument) for argument in get_args(hint))
    if isinstance(hint, NewType):
        return _is_content(hint.__supertype__)
    return hint in (str, *_BYTES, None, NoneType, Any, object) or hint in _STREAMS or _is_block(hint)


def _is_block(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_block(option) for option in get_args(hint))
    return hint in _BLOCKS or hint in _MEDIA or hint in _WHOLE or hint is D.ContentBlock or hint in _BYTES


def _is_object_schema(schema: Mapping[str, Any]) -> bool:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _is_object_schema(schema["$defs"][reference.removeprefix("#/$defs/")])
    return schema.get("type") == "object"


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {**schema}
    definitions = inner.pop("$defs", None)
    made: dict[str, Any] = {"type": "object", "properties": {_WRAPPED: inner}, "required": [_WRAPPED]}
    return made if definitions is None else {**made, "$defs": definitions}


def _is_record(value: Any) -> bool:
    """Whether a value is an object on the wire, and not content."""
    if isinstance(value, (*_BLOCKS, *_MEDIA)):
        return False
    return (
        isinstance(value, Mapping | msgspec.Struct)
        or hasattr(value, "__dataclass_fields__")
        or hasattr(value, "model_dump")
        or hasattr(value, "__attrs_attrs__")
    )


# Content


def blocks(value: Any, name: str) -> list[Any]:
    """A value as blocks of content: texts, pictures and the like as they are, all else as JSON."""
    return _content_of(value, name)[0]


def _content_of(value: Any, name: str) -> tuple[list[Any], bool]:
    """A value as blocks, and whether it is a list with some in it."""
    if value is None:
        return [], False
    if isinstance(value, _SEQUENCES) and _has_blocks(value):
        return [_block(item, name) for item in cast("Iterable[Any]", value)], True
    return [_block(value, name)], False


def _has_blocks(value: Any) -> bool:
    """Whether a value is content, or a list with some in it."""
    items = cast("Iterable[Any]", value) if isinstance(value, _SEQUENCES) else [value]
    return any(_is_own_block(item) for item in items)


def _is_own_block(value: Any) -> bool:
    return isinstance(value, (*_BLOCKS, *_MEDIA, *_BYTES)) or _is_model(value)


def _is_model(value: Any) -> bool:
    """Whether a value is one of the protocol's types, of Pydantic's kind."""
    return type(value).__module__.startswith("mcpspec.") and hasattr(value, "model_dump")


def _block(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return D.TextContent(text=value)
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, _MEDIA):
        return value.content()
    if isinstance(value, _BYTES):
        return blob(bytes(value), name)
    return as_struct(value) if _is_model(value) else D.TextContent(text=json_text(value))


def json_text(value: Any) -> str:
    """A value as JSON text. Raises `TypeError` or `ValueError` for what has none."""
    text = _encoder.encode(value)
    if may_have_lost(text, value):
        refuse_non_finite(plain(value))
    return text.decode()


# Resources


def contents(value: Any, uri: str, mime_type: str | None) -> list[Any]:
    """What a resource returns, as its contents: a text, bytes, data that becomes JSON, or a list of contents."""
    if isinstance(value, D.ReadResourceResult):
        return value.contents
    if is_array(value) and value and all(map(_is_contents, value)):
        return value
    return [value if _is_contents(value) else _one_contents(value, uri, mime_type)]


def _is_contents(value: Any) -> bool:
    return isinstance(value, D.TextResourceContents | D.BlobResourceContents)


def _one_contents(value: Any, uri: str, mime_type: str | None) -> Any:
    if isinstance(value, _MEDIA):
        data = value.read()
        return contents_of(uri, data, mime_type or value.mime_type(data))
    if isinstance(value, _BYTES):
        blob_contents = D.BlobResourceContents(uri=uri, blob=msgspec.to_builtins(bytes(value)))
        blob_contents.mime_type = mime_type or "application/octet-stream"
        return blob_contents
    is_text = isinstance(value, str)
    text = D.TextResourceContents(uri=uri, text=value if is_text else "" if value is None else json_text(value))
    text.mime_type = mime_type or ("text/plain" if is_text else "application/json")
    return text


# Prompts


def UserMessage(content: Any) -> D.PromptMessage:  # noqa: N802  # reads as the type that it makes
    """A message of the user's: text, a block of content, or what a tool may return."""
    return _message(content, "user")


def AssistantMessage(content: Any) -> D.PromptMessage:  # noqa: N802
    """A message of the model's."""
    return _message(content, "assistant")


def _message(content: Any, role: Any) -> D.PromptMessage:
    return D.PromptMessage(role=role, content=_block(content, "message"))


def messages(value: Any) -> Any:
    """What a prompt returns, as its messages: a text, a message, or several of either."""
    if isinstance(value, D.GetPromptResult) or is_input_required(value):
        return value
    items: list[Any] = [*cast("Iterable[Any]", value)] if isinstance(value, _SEQUENCES) else [value]
    return D.GetPromptResult(messages=[_as_message(item) for item in items], result_type="complete")


def _as_message(value: Any) -> D.PromptMessage:
    if isinstance(value, D.PromptMessage):
        return value
    if is_object(value) and "role" in value and "content" in value:
        content = value["content"]
        given = {"type": "text", "text": content} if isinstance(content, str) else content
        return D.from_builtins({"role": value["role"], "content": plain(given)}, D.PromptMessage)
    return UserMessage(value)
