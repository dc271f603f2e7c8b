"""The headers of MCP over HTTP: their names, how values are written, and which arguments of tools are mirrored in them.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata

Without I/O, for both ends. Names are in lower case, as HTTP/2 has them and ASGI hands them over; they mean the same in
any.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mcpspec._support.objects import is_array, is_object
from typedmcp.codec import NAMED

__all__ = [
    "EVENT_ID", "METHOD", "NAME", "NAMED", "PARAM", "SESSION", "VERSION", "HeaderParam", "Scalar",
    "decode_value", "encode_value", "header_params", "is_plain", "same", "text_of", "value_at", "values",
]  # fmt: skip

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM: Final = "mcp-param-"
"""What the names of headers begin with that mirror an argument."""
SESSION: Final = "mcp-session-id"
"""Up to 2025-11-25: the session that a request belongs to."""
EVENT_ID: Final = "last-event-id"
"""Up to 2025-11-25: after which event a stream goes on."""

Scalar: TypeAlias = str | int | bool
"""What a header can mirror."""

_LARGEST: Final = (1 << 53) - 1
"""The largest integer that every JSON reader keeps exactly."""

_PLAIN = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
_CODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_FIELD = re.compile(r"[\t\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_INTEGER = re.compile(r"[+-]?\d{1,16}(?:\.0*)?")


def encode_value(value: Scalar) -> str:
    """A value as a header has it: as it is where that is safe, else in Base64.

    Raises `ValueError` for an integer that not every reader keeps exactly, and for a lone surrogate.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) > _LARGEST:
            raise ValueError(f"{value} is beyond the integers that a header may have (±{_LARGEST})")
        return str(int(value))
    if _PLAIN.fullmatch(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return str.__str__(value)
    return f"=?base64?{b64encode(value.encode()).decode()}?="


def decode_value(value: str) -> str:
    """The text that a header stands for. Raises `ValueError` for what cannot be one."""
    found = _CODED.fullmatch(value)
    if found is None:
        if not _FIELD.fullmatch(value):
            raise ValueError(f"{value!r} has characters that a header must not have")
        return value
    try:
        decoded = binascii.a2b_base64(found[1].encode("ascii"), strict_mode=True)
        if b64encode(decoded).decode() != found[1]:
            raise ValueError("it has bits that mean nothing")
        return decoded.decode()
    except ValueError as error:  # of which kind those of binascii and of codecs are
        raise ValueError(f"{value!r} is not the Base64 of a text: {error}") from None


def is_plain(header: bytes, value: str) -> bool:
    """Whether a header says a value as it is, and could not be meant as Base64."""
    return header == value.encode() and header.isascii() and not header.startswith(b"=?")


def text_of(header: bytes) -> str:
    """What a header says: white space around it means nothing."""
    return header.decode("latin-1").strip(" \t")


class HeaderParam(NamedTuple):
    """An argument of a tool that a header mirrors."""

    header: str
    """The name of the header, in lower case."""
    path: tuple[str, ...]
    """Where the argument stands: the names of the members on the way to it."""
    type: Literal["string", "integer", "boolean"]


def header_params(input_schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """The arguments that the `inputSchema` of a tool wants to be mirrored.

    Raises `ValueError` where one of its annotations breaks the rules: then the tool must not be offered.
    """
    found: dict[str, HeaderParam] = {}
    for schema, path in _schemas(input_schema):
        if "x-mcp-header" in schema:
            param = _annotated(schema, path)
            if param.header in found:
                other = ".".join(found[param.header].path)
                raise ValueError(f"{_place(param.path)}: {other} has the same header ({schema['x-mcp-header']})")
            found[param.header] = param
    return tuple(found.values())


def _annotated(schema: Mapping[str, Any], path: tuple[str, ...] | None) -> HeaderParam:
    name, kind = schema["x-mcp-header"], schema.get("type")
    if not path:
        raise ValueError("x-mcp-header stands where no chain of properties leads to")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{_place(path)}: {_short(name)} is no name of a header")
    if kind not in ("string", "integer", "boolean"):
        raise ValueError(f"{_place(path)}: only strings, integers and booleans have headers, not {_short(kind)}")
    return HeaderParam(PARAM + name.lower(), path, kind)


def _place(path: Iterable[str]) -> str:
    return f"x-mcp-header of {'.'.join(path)}"


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str | None) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}…"


_ONE = (
    "items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties",
    "propertyNames", "contentSchema", "not", "if", "then", "else",
)  # fmt: skip
_LIST = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_NAMED = ("patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")


def _schemas(root: Any) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...] | None]]:
    """Every schema in a schema; with the path to it where it is one property after another."""
    waiting: list[tuple[Any, tuple[str, ...] | None]] = [(root, ())]
    while waiting:
        schema, path = waiting.pop()
        if not is_object(schema):
            continue
        yield schema, path
        waiting += [(inner, None) for inner in _elsewhere(schema)]
        properties = schema.get("properties")
        if is_object(properties):
            inside = [(inner, None if path is None else (*path, name)) for name, inner in properties.items()]
            waiting += reversed(inside)


def _elsewhere(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas in a schema that are not plain properties."""
    for keyword in _ONE:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _LIST:
        inner = schema.get(keyword)
        yield from inner if is_array(inner) else ()
    for keyword in _NAMED:
        inner = schema.get(keyword)
        yield from inner.values() if is_object(inner) else ()


def value_at(arguments: Any, path: Iterable[str]) -> Any:
    """What stands at a path in the arguments of a call; None where nothing does."""
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return arguments  # pyright: ignore[reportUnknownVariableType]


def values(params: Iterable[HeaderParam], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers that mirror the arguments of a call: none for what is absent or null.

    An argument that is no scalar, whatever its schema says, has none either: the server says what is wrong with it.
    Raises `ValueError` for what `encode_value` refuses.
    """
    made: dict[str, str] = {}
    for param in params:
        value = value_at(arguments, param.path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str | int):
            made[param.header] = encode_value(value)
    return made


def same(header: str, value: Any) -> bool:
    """Whether a header says what stands in the body: integers by what they are worth, all else to the letter.

    Raises `ValueError` for a header that is none.
    """
    text = decode_value(header)
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        return _INTEGER.fullmatch(text) is not None and int(text.partition(".")[0]) == value
    return isinstance(value, str) and text == value
