"""The beginning of an older session: `initialize`, `notifications/initialized`, and what may come before.

https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpspec._support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.edge.convert import Lost
from typedmcp.edge.revisions import methods, types
from typedmcp.edge.rules import capabilities, down
from typedmcp.errors import INVALID_REQUEST, RemoteError, UnsupportedVersion
from typedmcp.facts import Facts
from typedmcp.wire import Frame

if TYPE_CHECKING:
    from typedmcp.service import Service

__all__ = ["Handshake"]

D = dialect.structs

_FIRST_LEVEL = "info"
"""What an older session logs from, until it says otherwise."""


class Handshake:
    """Where a connection stands between `initialize` and `notifications/initialized`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.agreed: Facts | None = None
        """What `initialize` led to."""
        self.done: bool = False
        """Whether the session is open."""

    def takes(self, frame: Frame) -> bool:
        """Whether a message without modern `_meta` is the handshake's affair."""
        if self.done:
            return False
        return self.agreed is not None or frame.method in ("initialize", "ping", "notifications/initialized")

    def answer(self, frame: Frame, lost: Lost) -> Any:
        """The result of a request that comes before the session is open.

        Raises `RemoteError` or `DecodeError` for one that must not, or is wrong.
        """
        if frame.method == "ping":
            return {}
        if frame.method == "initialize" and self.agreed is None:
            return self._initialize(frame.value.get("params", {}), lost)
        if frame.method == "initialize":
            raise RemoteError(INVALID_REQUEST, "initialize: there was one before")
        raise RemoteError(INVALID_REQUEST, f"{frame.method} came before notifications/initialized")

    def notice(self, frame: Frame) -> Facts | None:
        """A notification that comes before the session is open: what was agreed, if this opens it."""
        if frame.method != "notifications/initialized" or self.agreed is None:
            return None
        self.done = True
        return self.agreed

    def _initialize(self, params: dict[str, Any], lost: Lost) -> Any:
        requested = params.get("protocolVersion")
        if not self._service.legacy:
            raise UnsupportedVersion(str(requested), self._service.revisions)
        revision = requested if requested in self._service.legacy else self._service.legacy[0]
        exact = from_builtins(params, methods(revision).INITIALIZE.params)
        self.agreed = _facts(revision, exact)
        return self._result(revision, lost)

    def _result(self, revision: str, lost: Lost) -> Any:
        older, service = types(revision), self._service
        result = older.InitializeResult(
            protocol_version=revision,
            capabilities=_convert(service.capabilities, older.ServerCapabilities, revision, lost),
            server_info=_convert(service.info, older.Implementation, revision, lost),
        )
        if service.instructions is not None:
            result.instructions = service.instructions
        return result


def _convert(value: Any, target: Any, revision: str, lost: Lost) -> Any:
    convert = down(revision).between(type(value), target)
    return value if convert is None else convert(value, lost)


def _facts(revision: str, params: Any) -> Facts:
    meta = D.RequestMetaObject(
        protocol_version=revision,
        client_capabilities=capabilities(to_builtins(params.capabilities), D.ClientCapabilities),
        client_info=D.from_builtins(to_builtins(params.client_info), D.Implementation),
    )
    facts = Facts(revision, meta)
    facts.log_level = _FIRST_LEVEL
    return facts
