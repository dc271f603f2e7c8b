"""Calls of methods that only extensions know, with plain JSON."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from typedmcp import Context
from typedmcp.building import decode_header
from typedmcp.errors import HeaderMismatchError, ProtocolError
from typedmcp.revisions.features import is_modern
from typedmcp_gateway.extension_results import result_type_of
from typedmcp_gateway.questions import ForwardedCall
from typedmcp_gateway.servers import ServerLease, call_options, input_capabilities

__all__ = ["named_param", "send_plain"]

_MAX_NAMES: Final = 1000
"""Methods of which the parameter for the header `Mcp-Name` is remembered."""


def named_param(params: dict[str, Raw], ctx: Context) -> str | None:
    """Return the parameter that the header `Mcp-Name` of a request repeats; None without such a header."""
    header = ctx.headers.get("mcp-name") if ctx.is_modern else None
    if header is None:
        return None
    try:
        encoded = msgspec.json.encode(decode_header(header))
    except ValueError:
        return None
    return next((member for member, value in params.items() if bytes(value) == encoded), None)


async def send_plain(lease: ServerLease, params: dict[str, Raw], call: ForwardedCall) -> Any:
    """Make a call of a method that the schema does not know, and return its result.

    The result is encoded, except that of a legacy server for a modern client, which lacks members. A server over HTTP
    may demand the header `Mcp-Name`, and only the extension says of which parameter: the client's own header tells, or
    the only text among the parameters is tried. Raises `ProtocolError` for a result that is no object.
    """
    method, names = call.ctx.method, lease.questions.passed.known_names
    if method not in names and (member := named_param(params, call.ctx)) is not None and len(names) < _MAX_NAMES:
        names[method] = member
    try:
        return await _send(lease, params, call, names.get(method))
    except HeaderMismatchError:
        tried = names.get(method)
        texts = [member for member, value in params.items() if bytes(value).startswith(b'"')]
        member = named_param(params, call.ctx) or (texts[0] if len(texts) == 1 else None)
        if member is None or member == tried or len(names) >= _MAX_NAMES:
            raise
        names[method] = member
        return await _send(lease, params, call, member)


async def _send(lease: ServerLease, params: dict[str, Raw], call: ForwardedCall, member: str | None) -> Any:
    """Make the call. `member` is the parameter that a header repeats."""
    options = call_options(lease.server, call, input_capabilities(call.ctx))
    sent: dict[str, Any] = {**params}
    if member is not None and member in sent:
        sent[member] = msgspec.json.decode(sent[member])
    method, client = call.ctx.method, lease.client
    raw = await client.send_raw(method, sent, **options)
    try:
        result_type_of(raw)
    except ValueError as error:
        raise ProtocolError(f"result of {method}: {error}") from error
    return msgspec.json.decode(raw) if call.ctx.is_modern and not is_modern(client.revision) else raw
