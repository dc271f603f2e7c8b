"""Negotiation: choosing the revision to speak with a server, and reading the description of the server.

Modern servers answer `server/discover`. If a server rejects it, or does not answer in time, the client tries the
handshake of legacy revisions.
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from mcpspec.support.objects import is_array, is_object
from mcpspec.support.structs import decode, from_builtins, to_builtins
from mcpspec.support.tolerance import find_newer_members
from mcpspec.support.walk import format_path
from typedmcp import dialect
from typedmcp.client.incoming.callbacks import Callbacks
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.session import ClientSession
from typedmcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    AuthorizationRequiredError,
    DecodeError,
    Error,
    HttpStatusError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    ServerBusyError,
    UnsupportedVersionError,
)
from typedmcp.protocol.meta import CAPABILITIES, CLIENT_INFO, LOG_LEVEL, SERVER_INFO, VERSION
from typedmcp.protocol.nulls import remove_nulls
from typedmcp.revisions.capabilities import extensions_of, upgrade_capabilities
from typedmcp.revisions.conversions import upgrader
from typedmcp.revisions.features import DIALECT, FEATURES, MODERN_ERROR_CODES, methods_of, structs_of

__all__ = ["ClientIdentity", "is_modern_error", "negotiate"]

D = dialect.structs


@dataclass(frozen=True)
class ClientIdentity:
    """The description of the client: name, version, revisions and capabilities."""

    info: D.Implementation
    revisions: Sequence[str]
    """The revisions that may be negotiated, newest first."""
    callbacks: Callbacks

    @property
    def modern(self) -> list[str]:
        """The revisions without a handshake, newest first."""
        return [revision for revision in self.revisions if FEATURES[revision].is_modern]

    @property
    def legacy(self) -> list[str]:
        """The revisions with a handshake, newest first."""
        return [revision for revision in self.revisions if not FEATURES[revision].is_modern]

    def meta(self, revision: str, log_level: str | None) -> dict[str, Any]:
        """Return the `_meta` of every request in a modern revision."""
        meta: dict[str, Any] = {
            VERSION: revision,
            CLIENT_INFO: to_builtins(self.info),
            CAPABILITIES: to_builtins(self.callbacks.capabilities(revision)),
        }
        return meta if log_level is None else {**meta, LOG_LEVEL: log_level}


async def negotiate(
    session: ClientSession, identity: ClientIdentity, last_revision: str | None, timeout: float, probe: float
) -> ServerDescription:
    """Agree with a server on the newest revision that both support.

    `last_revision` is the revision that was negotiated with the server before. `timeout` is the time in seconds for
    each response, `probe` the time for the response to `server/discover` before the handshake is tried. Raises
    `UnsupportedVersionError` if there is no common revision, and the errors of calls.
    """
    server = await _Negotiation(session, identity, timeout).run(last_revision, probe)
    await session.apply_revision(server.revision, handshake=FEATURES[server.revision].has_handshake)
    return server


def is_modern_error(error: RemoteError) -> bool:
    """Return whether only a modern server rejects a request with this error."""
    return error.code == METHOD_NOT_FOUND or error.code in MODERN_ERROR_CODES


def _newest(revisions: Iterable[str], supported: Iterable[str]) -> str | None:
    """Return the first revision that is also in `supported`."""
    names = set(supported)
    return next((revision for revision in revisions if revision in names), None)


_FINAL: Final = (AuthorizationRequiredError, ServerBusyError)
"""The errors that every other request would get, too."""

_LEGACY_REFUSALS: Final = frozenset((METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS))
"""The codes with which legacy servers refuse `server/discover`."""

_AFTER_STRAY: Final = 1.0
"""Seconds that a server has for the response to `server/discover` once it has printed a line that is not JSON."""


@dataclass(frozen=True)
class _Negotiation:
    session: ClientSession
    identity: ClientIdentity
    timeout: float

    async def run(self, last_revision: str | None, probe: float) -> ServerDescription:
        if not self.identity.modern:
            return await self._initialize()
        if not self.identity.legacy:
            server = await self._discover()
            if server is None:
                raise UnsupportedVersionError(self.identity.modern[0], [])
            return server
        if last_revision is not None and FEATURES[last_revision].has_handshake:
            try:
                return await self._initialize()
            except (RemoteError, RequestTimeoutError, HttpStatusError) as error:  # the server has changed
                if isinstance(error, _FINAL):
                    raise
        return await self._probe(probe)

    async def _probe(self, probe: float) -> ServerDescription:
        """Try `server/discover` first and the handshake second. Once `initialize` is sent, its result decides.

        A modern server that is slow to start rejects `initialize`. Then its late response to `server/discover` counts.
        A line that is not JSON may be the answer to the probe, or come before a server starts.
        """
        discovery = asyncio.create_task(self._discover())
        answers: list[asyncio.Future[Any]] = [discovery, self.session.stray_line]
        try:
            await asyncio.wait(answers, timeout=probe, return_when=asyncio.FIRST_COMPLETED)
            if self.session.stray_line.done():
                await asyncio.wait([discovery], timeout=min(probe, _AFTER_STRAY))
            while self.session.is_signing_in and not discovery.done():
                await asyncio.wait([discovery], timeout=probe)
            if discovery.done() and (server := discovery.result()) is not None:
                return server
            try:
                return await self._initialize()
            except (RemoteError, RequestTimeoutError, HttpStatusError):
                if (server := await discovery) is not None:
                    return server
                raise
        finally:
            discovery.cancel()
            await asyncio.wait([discovery])
            if not discovery.cancelled():
                discovery.exception()  # marks it as retrieved

    # Modern servers

    async def _discover(self) -> ServerDescription | None:
        """Return the description of a modern server, or None if the server seems to be a legacy one."""
        identity = self.identity
        try:
            raw = await self._request_discovery()
            result = msgspec.json.decode(raw, type=dict[str, Any])
            found: Any = result.get("supportedVersions")
            names = [each for each in found if isinstance(each, str)] if is_array(found) else []
            if "protocolVersion" in result:
                self.session.reader.reject_handshake("the server answered with the id of server/discover")
        except (RemoteError, HttpStatusError, RequestTimeoutError, ProtocolError) as error:
            if not self._may_be_legacy(error):
                raise
            return None
        except (msgspec.MsgspecError, ValueError) as error:
            if not identity.legacy:
                raise ProtocolError(f"server/discover: result: {error}") from error
            return None
        revision = _newest(identity.modern, names)
        server = _describe_modern(raw, revision or identity.modern[0])
        if server is None or revision is not None:
            return server
        if _newest(identity.legacy, names) is not None:
            return None
        raise UnsupportedVersionError(identity.modern[0], names)

    def _may_be_legacy(self, error: Error) -> bool:
        """Return whether a legacy server may have failed in this way.

        A client without legacy revisions needs to be sure: a legacy server does not know the method, or expects
        `initialize` first.
        """
        legacy = self.identity.legacy
        if not legacy:
            return isinstance(error, RemoteError) and error.code in _LEGACY_REFUSALS
        if isinstance(error, _FINAL):
            return False
        if isinstance(error, UnsupportedVersionError):
            return _newest(legacy, error.supported) is not None
        if isinstance(error, RemoteError):
            return error.code not in MODERN_ERROR_CODES
        # Only 4xx means an older server: others, such as 502, are about the server's state.
        return not isinstance(error, HttpStatusError) or 400 <= error.status < 500

    async def _request_discovery(self) -> Raw:
        """Send `server/discover` in the newest revision. If the server rejects that, use the newest one it names."""
        try:
            return await self._send_discovery(self.identity.modern[0])
        except UnsupportedVersionError as error:
            if (revision := _newest(self.identity.modern, error.supported)) is None:
                raise
        return await self._send_discovery(revision)

    async def _send_discovery(self, revision: str) -> Raw:
        params = {"_meta": self.identity.meta(revision, None)}
        self.session.propose_revision(revision, params)
        call = self.session.start_call("server/discover", timeout=self.timeout, latest=self.timeout)
        return await self.session.exchange(call, params)

    # Legacy servers

    async def _initialize(self) -> ServerDescription:
        requested = self.identity.legacy[0]
        structs = structs_of(requested)
        capabilities: Any = self.identity.callbacks.capabilities(requested)
        if extensions := self.identity.callbacks.declared(requested).get("extensions"):  # unknown to the schema
            capabilities = {**to_builtins(capabilities), "extensions": extensions}
        params = methods_of(requested).INITIALIZE.exact.params(
            protocol_version=requested,
            capabilities=capabilities,
            client_info=from_builtins(to_builtins(self.identity.info), structs.Implementation),
        )
        call = self.session.start_call("initialize", timeout=self.timeout, latest=self.timeout)
        raw = await self.session.exchange(call, params)
        try:
            plain: Any = msgspec.json.decode(raw)
        except ValueError as error:
            raise ProtocolError(f"result: {error}").attach_call("initialize", call.id) from error
        revision: Any = plain.get("protocolVersion") if is_object(plain) else None
        if revision not in self.identity.legacy:
            raise UnsupportedVersionError(requested, [str(revision)])
        try:
            result = self._decode_initialize_result(plain, structs_of(revision).InitializeResult)
        except DecodeError as error:
            raise ProtocolError(f"result.{error.path}: {error.reason}").attach_call("initialize", call.id) from error
        own = structs_of(revision).Implementation
        for path, _ in find_newer_members(plain["serverInfo"], own, dialect.exact.Implementation):
            text = f"result.serverInfo.{format_path(path)}: not a member in {revision}; kept, since {DIALECT} has it"
            self.session.reader.listener.tolerate(text, "initialize")
        declared = to_builtins(result.capabilities)
        if extensions := extensions_of(plain):
            declared["extensions"] = extensions
        return ServerDescription(
            revision=revision,
            capabilities=upgrade_capabilities(declared, D.ServerCapabilities),
            info=_implementation(plain["serverInfo"]),  # with members of newer revisions
            instructions=None if result.instructions is UNSET else result.instructions,
            supported=[revision],
            tasks=declared.get("tasks"),
        )

    def _decode_initialize_result(self, plain: Any, kind: Any) -> Any:
        """Decode a result without members that are null instead of absent. Raises `DecodeError`."""
        try:
            return from_builtins(plain, kind)
        except DecodeError:
            nulls = remove_nulls(plain, kind, "result")
            text = f"{', '.join(nulls)}: null was read as absent"
            if not nulls or not self.session.reader.listener.tolerate(text, "initialize"):
                raise
        return from_builtins(plain, kind)


def _describe_modern(raw: Raw, revision: str) -> ServerDescription | None:
    """Return the description in a `DiscoverResult` of a revision, or None for an invalid one."""
    kind = structs_of(revision).DiscoverResult
    try:
        result: Any = decode(bytes(raw), kind)
        described: D.DiscoverResult = upgrader(revision).of_class[kind](result, lost=[])
    except ValueError:
        return None
    info = (described.meta or {}).get(SERVER_INFO)
    return ServerDescription(
        revision=revision,
        capabilities=described.capabilities,
        info=None if info is None else _implementation(info),
        instructions=described.instructions,
        supported=described.supported_versions,
    )


def _implementation(plain: Any) -> D.Implementation | None:
    """Decode a name and a version. Drop other members if they are invalid: they must not prevent the connection."""
    plain = to_builtins(plain)
    for members in (plain, {key: plain.get(key) for key in ("name", "version")}):
        try:
            return from_builtins(members, D.Implementation)
        except DecodeError:
            continue
    return None
