"""The handshake that opens a legacy session: `initialize`, then `notifications/initialized`.

https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpspec.support.converters import DroppedFields
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.errors import INVALID_REQUEST, RemoteError, UnsupportedVersionError
from typedmcp.protocol.framing import Frame
from typedmcp.protocol.meta import CAPABILITIES, CLIENT_INFO, VERSION
from typedmcp.revisions.capabilities import extensions_of, upgrade_capabilities
from typedmcp.revisions.conversions import downgrade
from typedmcp.revisions.features import methods_of, structs_of
from typedmcp.server.config import ServerConfig
from typedmcp.server.metadata import RequestMetadata

__all__ = ["REPEATED_INITIALIZE", "Handshake"]

D = dialect.structs

REPEATED_INITIALIZE = "initialize: this session is initialized already"
_METHODS = frozenset(("initialize", "ping", "notifications/initialized"))
"""The messages that may come before the session is open."""


class Handshake:
    """The state of one handshake.

    `on_restart` is called when a new session begins in place of the present one, by a second `initialize`; by default
    that is an error. `has_session` is false if the server keeps no session.
    """

    def __init__(
        self, config: ServerConfig, on_restart: Callable[[Frame], None] | None = None, *, has_session: bool = True
    ) -> None:
        self._config = config
        self.on_open: Callable[[RequestMetadata], None] | None = None
        """Called with the client once its session is open."""
        self._on_restart = on_restart
        self._has_session = has_session
        self.metadata: RequestMetadata | None = None
        """The client, once `initialize` has succeeded."""
        self.is_done: bool = False
        """True once the session is open."""

    def handles(self, frame: Frame) -> bool:
        """Return whether a message without modern `_meta` belongs to the handshake."""
        if self.is_done:
            return frame.method == "initialize" and frame.id is not None and self.metadata is not None
        return self.metadata is not None or frame.method in _METHODS

    def skip_initialized(self, frame: Frame) -> bool:
        """Open the session if a message shows that it is open, though nothing has said so. Return whether it does.

        Clients send `notifications/initialized` and their first request at the same time, and over HTTP the request may
        arrive first, on another worker even.
        """
        if self.metadata is None or frame.method in _METHODS or self._config.strict:
            return False
        self._open(self.metadata)
        return True

    def _open(self, metadata: RequestMetadata) -> None:
        self.is_done = True
        if self.on_open is not None:
            self.on_open(metadata)

    def handle_request(self, frame: Frame, dropped: DroppedFields) -> Any:
        """Return the result of a request that comes before the session is open.

        Raises `RemoteError` or `DecodeError` for a request that is wrong or comes too early.
        """
        if frame.method == "ping":
            return {}
        if frame.method == "initialize":
            is_repeated = self.metadata is not None
            if is_repeated and self._on_restart is None:
                raise RemoteError(INVALID_REQUEST, REPEATED_INITIALIZE)
            result = self._initialize(frame.value.get("params", {}), dropped)
            if is_repeated and self._on_restart is not None:
                self.is_done = False
                self._on_restart(frame)
            return result
        is_own = frame.method == "notifications/initialized"
        text = " is a notification and has no id" if is_own else ": send notifications/initialized first"
        raise RemoteError(INVALID_REQUEST, f"{frame.method}{text}")

    def handle_notification(self, frame: Frame) -> RequestMetadata | None:
        """Open the session if a notification says so, and return the client's metadata then."""
        if frame.method != "notifications/initialized" or self.metadata is None:
            return None
        self._open(self.metadata)
        return self.metadata

    def _initialize(self, params: dict[str, Any], dropped: DroppedFields) -> Any:
        requested, served = params.get("protocolVersion"), self._config.legacy_revisions
        if not served:
            raise UnsupportedVersionError(str(requested), self._config.revisions)
        revision = requested if requested in served else served[0]
        exact = from_builtins(params, methods_of(revision).INITIALIZE.exact.params)
        self.metadata = _metadata_from_initialize(revision, exact, extensions_of(params))
        return self._result(revision, dropped)

    def _result(self, revision: str, dropped: DroppedFields) -> Any:
        exact, config = structs_of(revision), self._config
        declared = to_builtins(downgrade(config.capabilities, revision, dropped))
        if not self._has_session:  # the members of these promise notifications of changes
            declared |= {name: {} for name in ("tools", "prompts", "resources") if name in declared}
        result = exact.InitializeResult(
            protocol_version=revision,
            capabilities={**declared, **self._added_capabilities(revision)},
            server_info=downgrade(config.info, revision, dropped),
        )
        if config.instructions is not None:
            result.instructions = config.instructions
        return result

    def _added_capabilities(self, revision: str) -> dict[str, Any]:
        """Return the capabilities that extensions add on a revision."""
        added: dict[str, Any] = {}
        for each in self._config.extensions:
            if each.legacy is not None and revision in each.legacy.revisions:
                added.update(each.legacy.capabilities(self._config, has_session=self._has_session))
            if revision in each.extension.revisions:  # whose schema lacks extensions
                added.setdefault("extensions", {})[each.extension.identifier] = dict(each.settings)
        return added


def _metadata_from_initialize(revision: str, params: Any, extensions: dict[str, Any]) -> RequestMetadata:
    declared = to_builtins(params.capabilities)
    if extensions:
        declared["extensions"] = extensions
    capabilities = upgrade_capabilities(declared, D.ClientCapabilities)
    members = {VERSION: revision, CAPABILITIES: to_builtins(capabilities), CLIENT_INFO: to_builtins(params.client_info)}
    return RequestMetadata(revision, members)
