"""Checks that the headers of a request agree with its body.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mcpspec.support.objects import is_object
from typedmcp.errors import INTERNAL_ERROR, HeaderMismatchError, RemoteError, UnsupportedVersionError
from typedmcp.protocol import headers as mcp_headers
from typedmcp.protocol.framing import Frame
from typedmcp.protocol.headers import HeaderParam
from typedmcp.protocol.meta import VERSION
from typedmcp.server.config import ServerConfig
from typedmcp.server.http.messages import Headers

__all__ = ["UNKNOWN_PARAMS", "HeaderParams", "MirroredNames", "check_mirrored", "check_no_version", "copy_error"]

_CACHED_NAMES: Final = 256
_CACHED_NAME_BYTES: Final = 128
"""A longer name is not cached."""

HeaderParams: TypeAlias = "tuple[HeaderParam, ...] | RemoteError"
"""The parameters of the called tool that headers repeat, or the error for the call if they cannot be known."""

UNKNOWN_PARAMS: Final = RemoteError(INTERNAL_ERROR, "the headers cannot be checked: the tool has not been looked up")
"""Rejects calls whose tools nobody has looked up."""


def copy_error(error: RemoteError) -> RemoteError:
    """Return an error without its traceback, which would refer to the request that refers to the error."""
    return RemoteError(error.code, error.message, error.data)


def _check_version(headers: Headers, frame: Frame, modern: Sequence[str], revisions: Sequence[str]) -> None:
    """Raise unless the header names a modern revision that is served, and the body the same one or none.

    Raises `HeaderMismatchError` or `UnsupportedVersionError`.
    """
    header = headers.get(b"mcp-protocol-version")
    if header is None and frame.method == "initialize":  # a legacy client, which needs the supported revisions
        requested = frame.value.get("params", {}).get("protocolVersion")
        raise UnsupportedVersionError(str(requested), list(revisions))
    if header is None:
        raise HeaderMismatchError("MCP-Protocol-Version: required, but missing")
    version = mcp_headers.to_text(header)
    body_version = _meta_of(frame).get(VERSION, version)
    if body_version != version:
        raise HeaderMismatchError(f"MCP-Protocol-Version is {version!r}, but the body says {body_version!r}")
    if version not in modern:
        raise UnsupportedVersionError(version, list(revisions))


def check_no_version(frame: Frame) -> None:
    """Raise `HeaderMismatchError` if the body names a modern revision but the headers do not."""
    meta = _meta_of(frame)
    if VERSION in meta:
        raise HeaderMismatchError(f"the body says {VERSION}: {meta[VERSION]!r}, but the headers name a legacy revision")


def _meta_of(frame: Frame) -> Mapping[str, Any]:
    meta: Any = frame.value.get("params", {}).get("_meta", {})
    return meta if is_object(meta) else {}


def _check_method(headers: Headers, frame: Frame, name_params: Mapping[str, str]) -> None:
    """Raise `HeaderMismatchError` unless the headers repeat the method, and the name of the tool or the like.

    `name_params` are the parameters that the header `Mcp-Name` repeats, by method.
    """
    method, params = str(frame.method), frame.value.get("params", {})
    _check("Mcp-Method", headers.get(b"mcp-method"), method, may_be_encoded=False)
    member = name_params.get(method)
    if member is not None and isinstance(params.get(member), str):
        _check("Mcp-Name", headers.get(b"mcp-name"), params[member], may_be_encoded=True)


def _check(name: str, header: bytes | None, value: str, *, may_be_encoded: bool) -> None:
    if header is None:
        raise HeaderMismatchError(f"{name}: required, but missing")
    text = mcp_headers.to_text(header)
    if may_be_encoded:
        try:
            text = mcp_headers.decode_header(text)
        except ValueError as error:
            raise HeaderMismatchError(f"{name}: {error}") from error
    if text != value:
        raise HeaderMismatchError(f"{name} is {text!r}, but the body says {value!r}")


def _check_arguments(headers: Headers, frame: Frame, repeated: HeaderParams) -> None:
    """Raise `HeaderMismatchError` unless the headers repeat the arguments that the tool marks with `x-mcp-header`.

    Raises `RemoteError` if it is not known which these are.
    """
    params: Any = frame.value.get("params", {})
    if frame.method != "tools/call" or not isinstance(params.get("name"), str):
        return
    if isinstance(repeated, RemoteError):
        raise copy_error(repeated)
    for param in repeated:
        _check_argument(param, headers.get(param.header.encode("latin-1")), params.get("arguments", {}))


def _check_argument(param: mcp_headers.HeaderParam, header: bytes | None, arguments: Any) -> None:
    value = mcp_headers.find_value(arguments, param.path) if is_object(arguments) else None
    if value is None and header is None:
        return
    name = param.header.title()
    if header is None:
        raise HeaderMismatchError(f"{name}: required, but missing")
    text = mcp_headers.to_text(header)
    try:
        is_same = value is not None and mcp_headers.header_equals(text, value)
    except ValueError as error:
        raise HeaderMismatchError(f"{name}: {error}") from error
    if not is_same:
        place = ".".join(param.path)
        raise HeaderMismatchError(f"{name} is {text!r}, but the body has another value at arguments.{place}")


class MirroredNames:
    """The headers that repeat values of bodies, as the fast path compares them, on one revision."""

    __slots__ = ("known", "version")

    def __init__(self, version: bytes) -> None:
        self.version: bytes = version
        """The value of `MCP-Protocol-Version` in requests that can take the fast path."""
        self.known: dict[bytes | None, str] = {}
        """The values of `Mcp-Name` that have passed `check`, which spares 2 % of a request's instructions."""

    def check(self, header: bytes | None, value: str) -> None:
        """Raise `ValueError` unless the header `Mcp-Name` has exactly this value, and remember it."""
        if header is None or not mcp_headers.is_plain(header, value):  # a header that is absent is not an empty one
            raise ValueError
        if len(header) <= _CACHED_NAME_BYTES:
            if len(self.known) >= _CACHED_NAMES:
                self.known.clear()
            self.known[header] = value


def check_mirrored(headers: Headers, frame: Frame, config: ServerConfig, repeated: HeaderParams) -> None:
    """Raise `HeaderMismatchError` or `UnsupportedVersionError` if the headers contradict the body of a modern request.

    `repeated` are the parameters of the called tool that headers repeat.
    """
    _check_version(headers, frame, config.modern_revisions, config.revisions)
    if frame.id is not None:
        _check_method(headers, frame, config.name_params)
        _check_arguments(headers, frame, repeated)
