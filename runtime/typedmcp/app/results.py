"""Results of tools: content, structured content if the return annotation describes it, and errors."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NewType, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from typedmcp import dialect
from typedmcp.app.content import (
    BLOCK_NAMES,
    BYTES_TYPES,
    SEQUENCE_TYPES,
    Audio,
    File,
    Image,
    MediaFile,
    contains_blocks,
    encode_text,
    is_plain_text,
    is_protocol_type,
    to_blocks,
    to_content,
    to_everyday,
)
from typedmcp.errors import UsageError
from typedmcp.protocol.backends import check_struct
from typedmcp.protocol.nulls import from_null, to_null
from typedmcp_schemas import (
    JsonSchema,
    UnsupportedTypeError,
    ValueConversionError,
    convert,
    explain,
    portable_schema_of,
    pydantic_output,
    resolve_root,
    to_builtins,
    to_msgspec,
)

__all__ = ["ReturnTypeError", "ToolOutput", "ToolResult", "describe_exception", "error_result", "error_result_of"]

D = dialect.structs

ToolResult: TypeAlias = "D.CallToolResult | D.InputRequiredResult"

_STREAM_TYPES: Final = (Generator, AsyncGenerator, Iterator, AsyncIterator, Iterable, AsyncIterable)
_NAMES: Final = BLOCK_NAMES | {"CallToolResult", "InputRequiredResult"}
"""The protocol's types that are content or results of tools."""
_CONTENT_TYPES: Final[tuple[Any, ...]] = (*BYTES_TYPES, Image, Audio, File)
_CONTENT_NAMES: Final = _NAMES | {"ContentBlock"}
_FLAGS: Final = (bool, NoneType)
_WRAPPER: Final = "result"
"""The member that wraps structured content that is not an object, which only the newest revision allows unwrapped."""


class ReturnTypeError(ValueError):
    """A function returned a value that does not fit its annotation or its output schema."""


class ToolOutput:
    """Converts the return values of a tool's function according to its return annotation.

    `schema` is the tool's `outputSchema`, or None. `structured` overrides the default for the annotation, `references`
    keeps all definitions of the schema. Raises `UsageError` if structured content is asked for and the annotation has
    no JSON form.
    """

    def __init__(self, hint: Any, structured: bool | None, what: str, *, references: bool = False) -> None:
        self.schema: JsonSchema | None = None
        self.is_wrapped: bool = False
        """True if structured content is wrapped in an object."""
        self.is_nothing: bool = structured is None and hint in (None, NoneType)
        """True if the result is always empty."""
        self.embeds_resources: bool = _embeds_resources(hint)
        """True if the annotation means results with embedded resources."""
        self._depends_on_value = structured is None and hint in (inspect.Parameter.empty, Any, object)
        self._hint: Any = UNSET
        self._pydantic: Any = None
        """The type that encodes results with Pydantic, if the annotation contains one of its types."""
        content_hint = _structured_hint(hint)
        self._is_complete: bool = content_hint is not None
        """True for `Annotated[CallToolResult, Model]`: functions return whole results, with this structured content."""
        if content_hint is not None:
            hint, structured = content_hint, structured is not False
        if structured is False or (structured is None and (hint is inspect.Parameter.empty or _is_content(hint))):
            return
        hint = Any if hint is inspect.Parameter.empty else hint
        try:
            self._pydantic = pydantic_output(hint)
            adapted = to_msgspec(hint) if self._pydantic is None else self._pydantic
            schema = portable_schema_of(adapted, references=references, of_results=True)
        except (UnsupportedTypeError, NameError) as error:
            if structured or getattr(error, "is_certain", False):
                raise UsageError(f"{what}: return type: {error}") from error
            self._depends_on_value = structured is None
            return
        self._hint = adapted
        self.is_wrapped = resolve_root(schema).get("type") != "object"
        if self.is_wrapped and self._is_complete:
            raise UsageError(f"{what}: Annotated[CallToolResult, {hint}]: its structured content must be an object")
        self.embeds_resources = False
        self.schema = _wrap_schema(schema) if self.is_wrapped else {"type": "object", **schema}

    def to_result(self, value: object, name: str) -> ToolResult:
        """Return the result of a call. `name` is the file name of bytes.

        Raises `ReturnTypeError` for values that do not fit, and `TypeError` for values that have no JSON form.
        """
        if type(value) is str and self._hint is UNSET and not self.is_nothing:
            return D.CallToolResult(content=[D.TextContent(text=value)])
        value = to_everyday(value, _NAMES)
        if isinstance(value, D.InputRequiredResult):
            return value
        if isinstance(value, D.CallToolResult):
            is_usual = value.content.__class__ is list and value.is_error.__class__ in _FLAGS and value.meta is None
            if not is_usual or not all(map(is_plain_text, value.content)):
                check_struct(replace(value, structured_content=None))
            return self._check_complete(value)
        if self._is_complete:
            raise ReturnTypeError(f"expected CallToolResult, got {type(value).__name__}")
        if self._pydantic is not None and not contains_blocks(value):
            return self._pydantic_result(value)
        content, has_blocks = to_content(None if self.is_nothing else value, name)
        made = D.CallToolResult(content=content)
        if self._hint is not UNSET:
            made.structured_content = to_null(self._structured_content(content if has_blocks else value))
        elif self._depends_on_value and _is_json_object(value):
            made.structured_content = to_builtins(value)
        return made

    def _check_complete(self, result: D.CallToolResult) -> D.CallToolResult:
        """Check the structured content of a result that a function returns itself, if its annotation has a type."""
        if self._hint is UNSET or not self._is_complete or result.is_error:
            return result
        if result.structured_content is None:
            raise ReturnTypeError("structuredContent: required by the return annotation, but missing")
        content = from_null(result.structured_content)
        if self._pydantic is None:
            result.structured_content = self._structured_content(content)
            return result
        try:
            result.structured_content = self._pydantic.decode(content)
        except (ValueConversionError, RecursionError) as error:
            raise ReturnTypeError(explain(error)) from error
        return result

    def _structured_content(self, value: object) -> Any:
        built = to_builtins(value)
        try:
            convert(built, self._hint)
        except (ValueError, RecursionError) as error:
            raise ReturnTypeError(explain(error)) from error
        return self._wrap(built)

    def _pydantic_result(self, value: object) -> D.CallToolResult:
        """Encode a value with Pydantic. The text repeats the structured content: serializers may change the value."""
        try:
            built = self._pydantic.decode(value)
        except (ValueConversionError, RecursionError) as error:
            raise ReturnTypeError(explain(error)) from error
        texts = [] if value is None else [value if isinstance(value, str) else encode_text(built)]
        content: list[Any] = [D.TextContent(text=text) for text in texts]
        return D.CallToolResult(content=content, structured_content=to_null(self._wrap(built)))

    def _wrap(self, built: object) -> Any:
        return {_WRAPPER: built} if self.is_wrapped else built


def _structured_hint(hint: Any) -> Any:
    """Return the type of the structured content in `Annotated[CallToolResult, Model]`, or None for other hints."""
    if get_origin(hint) is not Annotated or getattr(get_args(hint)[0], "__name__", None) != "CallToolResult":
        return None
    return next((each for each in get_args(hint)[1:] if isinstance(each, type) or get_origin(each) is not None), None)


def _is_content(hint: Any) -> bool:
    """Return whether a return annotation means content or nothing, so that there is no structured data."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_content(get_args(hint)[0])
    if origin in (Union, UnionType):
        return all(_is_content(option) for option in get_args(hint))
    if origin in _STREAM_TYPES:
        return True
    if (origin is not None and origin in SEQUENCE_TYPES) or str(origin).endswith("abc.Sequence'>"):
        return any(_is_content_type(argument) for argument in get_args(hint))
    if isinstance(hint, NewType):
        return _is_content(hint.__supertype__)
    return hint in (str, None, NoneType, Any, object) or hint in _STREAM_TYPES or _is_content_type(hint)


def _is_content_type(hint: object) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_content_type(option) for option in get_args(hint))
    return hint in _CONTENT_TYPES or is_protocol_type(hint, _CONTENT_NAMES)


def _embeds_resources(hint: Any) -> bool:
    """Return whether bytes, a file or an embedded resource is part of a return annotation."""
    is_resource = hint in (*BYTES_TYPES, File) or is_protocol_type(hint, frozenset({"EmbeddedResource"}))
    return is_resource or any(map(_embeds_resources, get_args(hint)))


def _wrap_schema(schema: JsonSchema) -> JsonSchema:
    inner = {**schema}
    definitions = inner.pop("$defs", None)
    made: JsonSchema = {"type": "object", "properties": {_WRAPPER: inner}, "required": [_WRAPPER]}
    return made if definitions is None else {**made, "$defs": definitions}


def _is_json_object(value: object) -> bool:
    """Return whether a value is an object in JSON, and not content."""
    if isinstance(value, (D.ContentBlock, MediaFile)):
        return False
    return (
        isinstance(value, Mapping | msgspec.Struct)
        or hasattr(value, "__dataclass_fields__")
        or hasattr(value, "model_dump")
        or hasattr(value, "__attrs_attrs__")
    )


def describe_exception(error: BaseException) -> str:
    """Return an exception's class and text, or its class alone if its `__str__` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def error_result(text: str) -> D.CallToolResult:
    """Return the result of a failed call with this text."""
    return _error_result([D.TextContent(text=text)])


def error_result_of(error: Exception) -> D.CallToolResult:
    """Return the result of a call that failed with an exception whose text the client may see."""
    content: object = getattr(error, "content", None)
    try:
        text = str(error).encode(errors="backslashreplace").decode() or f"{type(error).__name__} without a text"
        return error_result(text) if content is None else _error_result(content)
    except Exception as broken:
        return error_result(f"{type(error).__name__}; its content cannot be encoded: {describe_exception(broken)}")


def _error_result(content: object) -> D.CallToolResult:
    return D.CallToolResult(content=to_blocks(content, "error"), is_error=True)
