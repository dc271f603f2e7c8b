"""The options of calls: names, types, meanings and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeAlias, TypedDict

import msgspec

from typedmcp import dialect
from typedmcp.protocol.notifications import LogLevel
from typedmcp.protocol.option_checks import check_names, check_seconds

__all__ = ["Arguments", "CallOptions", "OnProgress", "check_call_options", "check_times"]

D = dialect.structs

OnProgress: TypeAlias = "Callable[[D.ProgressNotificationParams], object]"


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class _Model(Protocol):
    """A Pydantic model, for type checkers without Pydantic."""

    def model_dump(self) -> dict[str, Any]: ...


Arguments: TypeAlias = Mapping[str, Any] | msgspec.Struct | _Dataclass | _Model
"""The arguments of a tool call."""


class CallOptions(TypedDict, total=False):
    """The options of every call, in addition to its parameters."""

    timeout: float | None
    """Seconds that the call may take without a response or progress. None: no limit."""
    max_time: float | None
    """Seconds that the call may take in all, with all rounds of input. None: no limit."""
    on_progress: OnProgress | None
    """Callback for progress notifications, in order; plain or async. The call returns after the last one has ended."""
    meta: Mapping[str, Any] | None
    """Members of `_meta`, such as the trace context."""
    capabilities: Mapping[str, Any] | None
    """The capabilities to declare for this call to a modern server, as plain JSON, for those who call for others. By
    default those of the client, which a legacy server always gets."""
    log_level: LogLevel | None
    """The lowest level of log messages that a modern server sends during this call. By default that of the client,
    which a legacy server always gets."""
    fresh: bool
    """Send the request even if a cached result is still valid."""
    rounds: int | None
    """Rounds of input requests. Default: `limits.input_rounds`. 0: return an `InputRequiredResult` as it is."""


def check_call_options(options: CallOptions) -> None:
    """Raise `TypeError` for unknown options, such as those of other libraries, and `UsageError` for invalid times."""
    if options:
        check_names("a call", options, CallOptions, "; the arguments of a tool are one mapping, {…}")
        check_times(options, "timeout", "max_time")


def check_times(options: Mapping[str, Any], *names: str) -> None:
    """Raise `UsageError` for a named option that is neither None nor a number of seconds."""
    for name in names:
        if options.get(name) is not None:
            check_seconds(name, options[name])
