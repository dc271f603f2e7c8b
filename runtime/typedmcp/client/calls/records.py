"""Calls by a method record, and by a name that the protocol does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from mcpspec.support.methods import Method
from typedmcp import dialect
from typedmcp.client.calls.runner import CallRunner
from typedmcp.client.connection.manager import ConnectionManager
from typedmcp.client.options import CallOptions
from typedmcp.client.requests.encoder import is_of_mcpspec, is_plain_struct, revision_of, to_dialect_params, types_of
from typedmcp.client.results.decoder import to_protocol_error
from typedmcp.client.results.icons import drop_unsafe_icons
from typedmcp.client.session.session import ClientSession
from typedmcp.errors import DecodeError, ProtocolError, UsageError
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.revisions.features import DIALECT

if TYPE_CHECKING:
    from typedmcp.client.extensions import ClientExtension

__all__ = ["RecordCalls"]

D = dialect.structs


class RecordCalls:
    """Makes calls for which the client has no method of its own. `extensions` are those that the client supports."""

    def __init__(
        self,
        connection: ConnectionManager,
        calls: CallRunner,
        extensions: Sequence[ClientExtension],
        report: Callable[[Diagnostic], None],
    ) -> None:
        self._connection = connection
        self._calls = calls
        self._extensions = extensions
        self._report = report

    async def call_record(self, record: Method[Any, Any], params: Any, options: CallOptions) -> Any:
        """Call a method by its record, with its parameters and result in the record's revision."""
        if record.sender == "server" or record.kind == "notification":
            raise UsageError(f"{record.name} is not a request of clients")
        session = await self._connection.connect()
        if not is_of_mcpspec(record):
            return await self._call_own(session, record, params, options)
        revision, negotiated = revision_of(record), self._connection.server.revision
        if revision == DIALECT:
            result = await self._calls.call(record.name, to_dialect_params(record, params or {}), options)
            if is_plain_struct(record) or type(result).__module__ != D.CallToolResult.__module__:  # of an extension
                return result
            return types_of(record).from_builtins(D.to_builtins(result), record.result)
        if revision != negotiated:
            raise UsageError(f"{record.name} is a method of {revision}; the server speaks {negotiated}")
        exact = self._connection.encoder.exact_params(record, params, options)
        raw, id = await self._calls.exchange(session, record.name, exact, options)
        result = self._decode_exact(record, raw, id)
        drop_unsafe_icons(record.name, result, self._report)
        return result

    async def _call_own(
        self, session: ClientSession, record: Method[Any, Any], params: Any, options: CallOptions
    ) -> Any:
        """Call a method of a package that extends the protocol, with the types of that package.

        Raises `UsageError` for a method that the server has not, as far as its revision and its capabilities tell.
        """
        self._check_own(record)
        plain = self._connection.encoder.own_params(record, params, options)
        raw, id = await self._calls.exchange(session, record.name, plain, options)
        return self._decode_exact(record, raw, id)

    def _check_own(self, record: Method[Any, Any]) -> None:
        revision = self._connection.server.revision
        if record.name in dialect.methods.METHODS and revision != DIALECT:
            text = f"{record.name} of {record.message.__module__.split('.')[0]} extends {DIALECT}"
            raise UsageError(f"{text}; the server speaks {revision}, so use the record of typedmcp.dialect")
        for each in self._extensions:
            if record.name in each.extension.methods:
                self._connection.check_extension(each.extension, record.name)

    @staticmethod
    def _decode_exact(record: Method[Any, Any], raw: Raw, id: int) -> Any:
        try:
            return types_of(record).decode(bytes(raw), record.result)
        except DecodeError as error:
            raise to_protocol_error(error).attach_call(record.name, id) from error

    async def notify(self, record: Method[Any, Any] | str, params: Any, options: CallOptions) -> None:
        """Send a notification of a package that extends the protocol, or one with plain JSON."""
        if isinstance(record, str):
            if record in dialect.methods.METHODS:
                raise UsageError(f"{record} is not a notification of a package that extends the protocol")
            session = await self._connection.connect()
            session.notify(record, self._connection.encoder.plain_params(params, options))
            return
        if record.kind != "notification" or record.sender == "server" or is_of_mcpspec(record):
            raise UsageError(f"{record.name} is not a notification of a package that extends the protocol")
        session = await self._connection.connect()
        self._check_own(record)
        session.notify(record.name, self._connection.encoder.own_params(record, params, options))

    async def call_plain(self, method: str, params: Mapping[str, Any] | None, options: CallOptions) -> Any:
        """Call a method that the protocol does not have, with plain JSON as parameters and result."""
        session = await self._connection.connect()
        plain = self._connection.encoder.plain_params(params, options)
        raw, id = await self._calls.exchange(session, method, plain, options)
        try:
            return msgspec.json.decode(raw)
        except ValueError as error:
            raise ProtocolError(f"result: {error}").attach_call(method, id) from error
