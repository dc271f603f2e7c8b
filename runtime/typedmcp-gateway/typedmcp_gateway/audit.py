"""The audit log of a gateway: one record for each call."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from typedmcp import Context
from typedmcp.building import is_object, log_failure
from typedmcp.errors import RemoteError
from typedmcp_gateway.callers import GatewayCaller

__all__ = ["NO_AUDIT", "Audit", "AuditRecord", "OnCall", "RecordedCall", "outcome_of", "outcome_of_error"]


class AuditRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call through a gateway: who called what, how it ended, and how long it took."""

    time: float
    """The start, in seconds since 1970."""
    method: str
    """The method in the protocol, such as `tools/call`."""
    outcome: str
    """"ok", "tool error", "input required", "cancelled", or "error" with its code."""
    seconds: float
    """The duration in seconds."""
    revision: str
    """The revision of the client."""
    server: str | None = None
    """The name of the server that the call went to. None for calls that went to none, or to all."""
    name: str | None = None
    """The tool, prompt or resource, under the name that the client used."""
    principal: str | None = None
    """The key of the principal. None without authorization."""
    client: str | None = None
    """The name that the client claims."""
    arguments: Mapping[str, Any] | None = None
    """The arguments, only with `audit_arguments=True`."""


OnCall: TypeAlias = Callable[[AuditRecord], object]


class Audit:
    """The audit of one call. This one makes no record of it."""

    server: str | None = None
    """The name of the server that the call went to."""

    def end(self, params: Any, outcome: str) -> None:
        """Note the end of the call."""


NO_AUDIT: Final = Audit()


class RecordedCall(Audit):
    """Makes the record of one call, and passes it to the callback at the end."""

    def __init__(self, on_call: OnCall, ctx: Context, caller: GatewayCaller, *, has_arguments: bool) -> None:
        self._on_call = on_call
        self._ctx = ctx
        self._caller = caller
        self._has_arguments = has_arguments
        self._begun, self._start = time.time(), time.perf_counter()

    def end(self, params: Any, outcome: str) -> None:
        """Pass the record on. Errors of the callback are logged."""
        info, principal = self._ctx.client_info, self._caller.principal
        record = AuditRecord(
            time=self._begun,
            method=self._ctx.method,
            outcome=outcome,
            seconds=time.perf_counter() - self._start,
            revision=self._ctx.revision,
            server=self.server,
            name=_name_of(params),
            principal=None if principal is None else principal.key,
            client=None if info is None else info.name,
            arguments=getattr(params, "arguments", None) if self._has_arguments else None,
        )
        try:
            self._on_call(record)
        except Exception as error:
            log_failure(logging.ERROR, "on_call of a gateway failed", error)


def _name_of(params: Any) -> str | None:
    ref = getattr(params, "ref", params)
    name: str | None = getattr(ref, "name", None) or getattr(ref, "uri", None)
    return name


class _EncodedOutcome(msgspec.Struct):
    is_error: Any = msgspec.field(name="isError", default=None)


_decode_outcome = msgspec.json.Decoder(_EncodedOutcome).decode


def outcome_of(result: Any) -> str:
    """Return the outcome of a call with a result, which is typed, plain JSON, or encoded."""
    if isinstance(result, msgspec.Raw):
        return "tool error" if _decode_outcome(result).is_error else "ok"
    if is_object(result):
        return "tool error" if result.get("isError") else "ok"
    if getattr(result, "result_type", None) == "input_required":
        return "input required"
    return "tool error" if getattr(result, "is_error", False) else "ok"


def outcome_of_error(error: BaseException, revision: str) -> str:
    """Return the outcome of a call that raised."""
    if isinstance(error, RemoteError):
        return f"error {error.wire_code(revision)}"
    return "error" if isinstance(error, Exception) else "cancelled"
