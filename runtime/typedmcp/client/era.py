"""Finding out which revision a server speaks, and who it is.

Modern servers answer `server/discover`. Whatever else comes back, or nothing for a while, is an older one, which
wants `initialize`.
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from mcpspec._support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.client.callbacks import Callbacks
from typedmcp.client.session import Session
from typedmcp.edge.revisions import DIALECT, is_modern, methods, types
from typedmcp.edge.rules import capabilities
from typedmcp.errors import (
    METHOD_NOT_FOUND,
    AuthorizationRequired,
    DecodeError,
    Error,
    HttpStatusError,
    ProtocolError,
    RemoteError,
    RequestTimeout,
    ServerBusy,
    UnsupportedVersion,
)
from typedmcp.meta import CAPABILITIES, CLIENT_INFO, LOG_LEVEL, SERVER_INFO, VERSION

__all__ = ["Identity", "Server", "is_modern_refusal", "meet", "supported_by"]

D = dialect.structs

_MODERN_CODES = (-32020, -32021, -32022)
"""Errors that only a modern server knows: header mismatch, missing capability, unsupported version."""


@dataclass(frozen=True)
class Identity:
    """Who the client is, and what it speaks."""

    info: D.Implementation
    revisions: Sequence[str]
    """The revisions that may be spoken, newest first."""
    callbacks: Callbacks

    @property
    def modern(self) -> list[str]:
        """The revisions without a handshake."""
        return [revision for revision in self.revisions if is_modern(revision)]

    @property
    def legacy(self) -> list[str]:
        """The revisions with one."""
        return [revision for revision in self.revisions if not is_modern(revision)]

    def meta(self, log_level: str | None) -> dict[str, Any]:
        """What every request on a modern wire says of the client."""
        said: dict[str, Any] = {
            VERSION: DIALECT,
            CLIENT_INFO: to_builtins(self.info),
            CAPABILITIES: to_builtins(self.callbacks.capabilities(DIALECT)),
        }
        return said if log_level is None else {**said, LOG_LEVEL: log_level}


@dataclass(frozen=True)
class Server:
    """What is known of a server, in the dialect."""

    revision: str
    """The protocol revision that is spoken with it."""
    capabilities: D.ServerCapabilities
    info: D.Implementation | None
    """Its name and version. Modern servers need not say."""
    instructions: str | None
    supported: Sequence[str] = ()
    """All revisions that it says it speaks."""


async def meet(session: Session, identity: Identity, known: str | None, timeout: float, probe: float) -> Server:
    """Agree with a server on a revision. `known` is the one that it spoke last time.

    `timeout` is the time in seconds that an answer may take, `probe` that after which a server that does not answer
    `server/discover` may be an older one. Raises `UnsupportedVersion` where there is no revision in common, and what
    calls raise.
    """
    server = await _agree(session, identity, known, timeout, probe)
    await session.settle(server.revision, handshake=not is_modern(server.revision))
    return server


async def _agree(session: Session, identity: Identity, known: str | None, timeout: float, probe: float) -> Server:
    if not identity.modern:
        return await _initialize(session, identity, timeout)
    if not identity.legacy:
        found = await _discover(session, identity, timeout)
        if found is None:
            raise UnsupportedVersion(DIALECT, [])
        return found
    if known is not None and not is_modern(known):
        try:
            return await _initialize(session, identity, timeout)
        except (RemoteError, RequestTimeout, HttpStatusError) as error:  # another server than last time
            if _is_final(error):
                raise
    return await _find_out(session, identity, timeout, probe)


def _is_final(error: Error) -> bool:
    """Whether asking otherwise is of no use: it is not the question that the server does not like."""
    return isinstance(error, AuthorizationRequired | ServerBusy)


async def _find_out(session: Session, identity: Identity, timeout: float, probe: float) -> Server:
    """Ask the modern way, then the older one. Once `initialize` was sent, its answer counts.

    A modern server that is slow to start refuses `initialize`; then its late answer to the first question is taken.
    """
    discovering = asyncio.create_task(_discover(session, identity, timeout))
    try:
        await asyncio.wait([discovering], timeout=probe)
        if discovering.done() and (found := discovering.result()) is not None:
            return found
        try:
            return await _initialize(session, identity, timeout)
        except (RemoteError, RequestTimeout, HttpStatusError):
            if (found := await discovering) is not None:
                return found
            raise
    finally:
        discovering.cancel()
        await asyncio.wait([discovering])
        if not discovering.cancelled():
            discovering.exception()  # it may be that nobody asked


async def _discover(session: Session, identity: Identity, timeout: float) -> Server | None:
    """What a modern server says of itself; None from an older one."""
    try:
        result = await _discovered(session, identity, timeout)
    except RemoteError as error:
        if error.code == UnsupportedVersion.CODE and identity.legacy:
            if set(identity.legacy) & set(supported_by(error)):
                return None  # it knows of versions, but not of this one
            raise
        if error.code in _MODERN_CODES:
            raise
        return None
    except HttpStatusError as error:
        if _is_final(error) or not identity.legacy:
            raise
        return None
    except (RequestTimeout, ValueError, ProtocolError):
        return None
    if DIALECT not in result.supported_versions:
        if set(identity.legacy) & set(result.supported_versions):
            return None
        raise UnsupportedVersion(DIALECT, result.supported_versions)
    info = UNSET if result.meta is UNSET else result.meta.get(SERVER_INFO, UNSET)
    return Server(
        revision=DIALECT,
        capabilities=result.capabilities,
        info=None if info is UNSET else _implementation(info),
        instructions=None if result.instructions is UNSET else result.instructions,
        supported=result.supported_versions,
    )


async def _discovered(session: Session, identity: Identity, timeout: float) -> D.DiscoverResult:
    """Ask what the server is; once more where it refuses the version, and says that it speaks it."""
    for is_last in (False, True):
        call = session.begin("server/discover", timeout=timeout, latest=timeout)
        try:
            raw = await session.exchange(call, {"_meta": identity.meta(None)})
            return D.decode(bytes(raw), D.DiscoverResult)
        except RemoteError as error:
            if is_last or error.code != UnsupportedVersion.CODE or DIALECT not in supported_by(error):
                raise
    raise AssertionError("one of two attempts is the last")


def is_modern_refusal(error: RemoteError) -> bool:
    """Whether only a modern server refuses a request so."""
    return error.code in (*_MODERN_CODES, METHOD_NOT_FOUND)


def supported_by(error: RemoteError) -> list[str]:
    """The revisions that a server names which refuses another one."""
    named: Any = error.data.get("supported") if is_object(error.data) else None
    return [name for name in named if isinstance(name, str)] if is_array(named) else []


async def _initialize(session: Session, identity: Identity, timeout: float) -> Server:
    """Shake hands with an older server."""
    wanted = identity.legacy[0]
    older = types(wanted)
    params = methods(wanted).INITIALIZE.params(
        protocol_version=wanted,
        capabilities=identity.callbacks.capabilities(wanted),
        client_info=from_builtins(to_builtins(identity.info), older.Implementation),
    )
    call = session.begin("initialize", timeout=timeout, latest=timeout)
    raw = await session.exchange(call, params)
    try:
        plain: Any = msgspec.json.decode(raw)
    except ValueError as error:
        raise ProtocolError(f"result: {error}").of_call("initialize", call.id) from error
    revision: Any = plain.get("protocolVersion") if is_object(plain) else None
    if revision not in identity.legacy:
        raise UnsupportedVersion(wanted, [str(revision)])
    try:
        result = from_builtins(plain, types(revision).InitializeResult)
    except DecodeError as error:
        raise ProtocolError(f"result.{error.path}: {error.reason}").of_call("initialize", call.id) from error
    return Server(
        revision=revision,
        capabilities=capabilities(to_builtins(result.capabilities), D.ServerCapabilities),
        info=_implementation(to_builtins(result.server_info)),
        instructions=None if result.instructions is UNSET else result.instructions,
        supported=[revision],
    )


def _implementation(plain: Any) -> D.Implementation | None:
    """A name and a version; what else is said of a server must not cost the connection."""
    plain = to_builtins(plain)
    for kept in (plain, {key: plain.get(key) for key in ("name", "version")}):
        try:
            return from_builtins(kept, D.Implementation)
        except DecodeError:
            continue
    return None
