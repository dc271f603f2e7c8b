"""The headers of MCP over HTTP: their names, the encoding of values, and headers that mirror tool arguments.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata

Used by clients and servers, without I/O. Names are in lower case, as in HTTP/2 and ASGI; case has no meaning.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mcpspec.support.objects import is_array, is_object

__all__ = [
    "EVENT_ID", "METHOD", "NAME", "PARAM", "SESSION", "VERSION", "HeaderParam", "Scalar",
    "decode_header", "encode_value", "find_value", "header_equals", "header_params", "is_plain", "mirror_arguments",
    "to_text",
]  # fmt: skip

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM: Final = "mcp-param-"
"""The prefix of the names of headers that mirror an argument."""
SESSION: Final = "mcp-session-id"
"""Up to 2025-11-25: the id of the session of a request."""
EVENT_ID: Final = "last-event-id"
"""Up to 2025-11-25: the id of the event after which a stream is resumed."""

Scalar: TypeAlias = str | int | bool
"""The values that a header can mirror."""

_MAX_INTEGER: Final = (1 << 53) - 1
"""The largest integer that every JSON parser keeps exactly."""

_PLAIN = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
_BASE64 = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_FIELD = re.compile(r"[\t\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_INTEGER = re.compile(r"[+-]?\d{1,16}(?:\.0*)?")


def encode_value(value: Scalar) -> str:
    """Encode a value for a header: unchanged if that is safe, otherwise in Base64.

    Raises `ValueError` for an integer that a JSON parser may round, and for a lone surrogate.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) > _MAX_INTEGER:
            raise ValueError(f"{value} is beyond the integers allowed in a header (±{_MAX_INTEGER})")
        return str(int(value))
    if _PLAIN.fullmatch(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return str.__str__(value)
    return f"=?base64?{b64encode(value.encode()).decode()}?="


def decode_header(value: str) -> str:
    """Decode the value of a header. Raises `ValueError` for a value that is not well-formed."""
    found = _BASE64.fullmatch(value)
    if found is None:
        if not _FIELD.fullmatch(value):
            raise ValueError(f"{value!r} has characters that are not allowed in a header")
        return value
    try:
        decoded = binascii.a2b_base64(found[1].encode("ascii"), strict_mode=True)
        if b64encode(decoded).decode() != found[1]:
            raise ValueError("unused bits are set")
        return decoded.decode()
    except ValueError as error:  # the base of the errors of binascii and of codecs
        raise ValueError(f"{value!r} is not Base64 of UTF-8 text: {error}") from None


def is_plain(header: bytes, value: str) -> bool:
    """Return whether a header has exactly this value, unencoded."""
    return header == value.encode() and header.isascii() and not header.startswith(b"=?")


def to_text(header: bytes) -> str:
    """Decode the value of a header, without surrounding white space."""
    return header.decode("latin-1").strip(" \t")


class HeaderParam(NamedTuple):
    """A parameter of a tool whose argument a header mirrors."""

    header: str
    """The name of the header, in lower case."""
    path: tuple[str, ...]
    """The names of the members that lead to the argument."""
    type: Literal["string", "integer", "boolean"]


def header_params(input_schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """Return the parameters that the `inputSchema` of a tool annotates with `x-mcp-header`.

    Raises `ValueError` for an annotation that breaks the rules: such a tool must not be offered.
    """
    found: dict[str, HeaderParam] = {}
    for schema, path in _schemas(input_schema):
        if "x-mcp-header" in schema:
            param = _header_param(schema, path)
            if param.header in found:
                other = ".".join(found[param.header].path)
                raise ValueError(f"{_place(param.path)}: {other} has the same header ({schema['x-mcp-header']})")
            found[param.header] = param
    return tuple(found.values())


def _header_param(schema: Mapping[str, Any], path: tuple[str, ...] | None) -> HeaderParam:
    name, kind = schema["x-mcp-header"], schema.get("type")
    if not path:
        raise ValueError("x-mcp-header: no chain of properties leads to it")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{_place(path)}: {_short(name)} is not a valid header name")
    if kind not in ("string", "integer", "boolean"):
        raise ValueError(f"{_place(path)}: only strings, integers and booleans can have headers, not {_short(kind)}")
    return HeaderParam(PARAM + name.lower(), path, kind)


def _place(path: Iterable[str]) -> str:
    return f"x-mcp-header of {'.'.join(path)}"


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str | None) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}…"


_SCHEMA_KEYWORDS = (
    "items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties",
    "propertyNames", "contentSchema", "not", "if", "then", "else",
)  # fmt: skip
_SCHEMA_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SCHEMA_MAP_KEYWORDS = ("patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")


def _schemas(root: Any) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...] | None]]:
    """Yield a schema and all its subschemas. A chain of properties gives a path; other subschemas have None."""
    waiting: list[tuple[Any, tuple[str, ...] | None]] = [(root, ())]
    while waiting:
        schema, path = waiting.pop()
        if not is_object(schema):
            continue
        yield schema, path
        waiting += [(inner, None) for inner in _other_subschemas(schema)]
        properties = schema.get("properties")
        if is_object(properties):
            inside = [(inner, None if path is None else (*path, name)) for name, inner in properties.items()]
            waiting += reversed(inside)


def _other_subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the subschemas of a schema except its properties."""
    for keyword in _SCHEMA_KEYWORDS:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _SCHEMA_LIST_KEYWORDS:
        inner = schema.get(keyword)
        yield from inner if is_array(inner) else ()
    for keyword in _SCHEMA_MAP_KEYWORDS:
        inner = schema.get(keyword)
        yield from inner.values() if is_object(inner) else ()


def find_value(arguments: Any, path: Iterable[str]) -> Any:
    """Return the value at a path in the arguments of a call, or None."""
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return arguments  # pyright: ignore[reportUnknownVariableType]


def mirror_arguments(params: Iterable[HeaderParam], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that mirror the arguments of a call.

    Arguments that are absent or null have no header. Neither have values that are not scalars: those are invalid, and
    the server responds with an error. Raises `ValueError` for a value that `encode_value` rejects.
    """
    mirrored: dict[str, str] = {}
    for param in params:
        value = find_value(arguments, param.path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str | int):
            mirrored[param.header] = encode_value(value)
    return mirrored


def header_equals(header: str, value: Any) -> bool:
    """Return whether a header has a value of the body: integers are compared as numbers, others literally.

    Raises `ValueError` for a header that is not well-formed.
    """
    text = decode_header(header)
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        return _INTEGER.fullmatch(text) is not None and int(text.partition(".")[0]) == value
    return isinstance(value, str) and text == value
