"""The ids of tasks, as the clients of a gateway get them.

A task belongs to a server, which the id names if there are several. With authorization it also belongs to a principal:
the id has a digest then, which only the gateway can make, so that nobody reaches the task of another principal at a
server that cannot tell them apart.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from typedmcp import Context
from typedmcp.errors import InvalidParamsError
from typedmcp_gateway.extension_results import AddedResult
from typedmcp_gateway.servers import GatewayServer

__all__ = ["TaskIds"]

_MEMBER: Final = "taskId"


class TaskIds:
    """Converts the ids of tasks. `is_single` is true for a gateway to one target, whose ids need no name."""

    def __init__(self, servers: Mapping[str, GatewayServer], *, is_single: bool) -> None:
        self._servers = servers
        self._is_single = is_single

    def expose(self, server: GatewayServer, id: str, ctx: Context) -> str:
        """Return the id for the client of a request."""
        text = id if self._is_single else f"{server.name}:{id}"
        return text if ctx.principal is None else f"{_digest(text, ctx)}:{text}"

    def resolve(self, id: object, ctx: Context) -> tuple[GatewayServer, str]:
        """Return the server of a task, and the id of the task there.

        Raises `InvalidParamsError` for the id of no server, and for one that another principal got.
        """
        text = id if isinstance(id, str) else ""
        if ctx.principal is not None:
            digest, _, text = text.partition(":")
            if not hmac.compare_digest(digest.encode(), _digest(text, ctx).encode()):
                raise _unknown()
        if self._is_single:
            return next(iter(self._servers.values())), text
        names = [name for name in self._servers if text.startswith(f"{name}:")]
        if not names:
            raise _unknown()
        name = max(names, key=len)
        return self._servers[name], text[len(name) + 1 :]

    def expose_created(self, result: AddedResult, server: GatewayServer, ctx: Context) -> Raw:
        """Return a result of an extension with the id of its task, if it is one, for the client."""
        is_task = result.result_type == "task" and ctx.method == "tools/call"
        return self.expose_in(result.content, server, ctx) if is_task else result.content

    def expose_in(self, result: Raw, server: GatewayServer, ctx: Context) -> Raw:
        """Return a result with the id for the client. Other members stay as they are."""
        if self._is_single and ctx.principal is None:
            return result
        members = _decode_members(result)
        id: Any = msgspec.json.decode(members.get(_MEMBER, b"null"))
        if not isinstance(id, str):
            return result
        exposed = Raw(msgspec.json.encode(self.expose(server, id, ctx)))
        return Raw(msgspec.json.encode({**members, _MEMBER: exposed}))


def _digest(text: str, ctx: Context) -> str:
    principal = None if ctx.principal is None else ctx.principal.key
    return ctx.config.state_signer.digest(msgspec.json.encode(["task", principal, text]).decode())


def _unknown() -> InvalidParamsError:
    return InvalidParamsError("unknown task", {"path": "params.taskId"})


_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
