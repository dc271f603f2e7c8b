"""The options of `connect` and of calls: names, types, meanings and defaults."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from typedmcp import dialect
from typedmcp.client.callbacks import Elicit, Roots, Sample
from typedmcp.errors import UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.notifications import LEVELS, LogLevel
from typedmcp.protocol.option_checks import check_limits, check_list, check_seconds
from typedmcp.revisions.features import SUPPORTED

if TYPE_CHECKING:
    from typedmcp.client.http.endpoint import Credentials

__all__ = ["URL_OPTIONS", "CallOptions", "ConnectOptions", "check_call_options", "check_connect_options", "check_level"]

D = dialect.structs

OnLog: TypeAlias = "Callable[[D.LoggingMessageNotificationParams], object]"
OnDiagnostic: TypeAlias = Callable[[Diagnostic], object]
OnProgress: TypeAlias = "Callable[[D.ProgressNotificationParams], object]"


class ConnectOptions(TypedDict, total=False):
    """The options of `connect`, `connect_all` and `typedmcp.sync.connect`."""

    name: str
    """The name of the client, for servers. Default: "typedmcp"."""
    version: str
    """The version of the client, for servers. Default: "0"."""
    revisions: Sequence[str]
    """The protocol revisions that may be negotiated. Default: all."""
    sample: Sample | None
    """Callback for `sampling/createMessage`: asks the model. Declares the capability."""
    elicit: Elicit | None
    """Callback for `elicitation/create`: asks the user. Declares the capability."""
    roots: Roots | None
    """The roots, or a callback that returns them. Declares the capability."""
    capabilities: Mapping[str, Any] | None
    """Capabilities to declare in addition to those of the callbacks, such as `{"sampling": {"tools": {}}}`."""
    log_level: LogLevel | None
    """The lowest level of log messages that the server sends. Default: "debug" with `on_log`, else none."""
    on_log: OnLog | None
    """Callback for log messages, plain or async."""
    on_diagnostic: OnDiagnostic | None
    """Callback for observations that are not the error of a call. Default: they are logged as warnings."""
    timeout: float | None
    """Seconds that a call may take without a response or progress. Default: 60. None: no limit."""
    max_time: float | None
    """Seconds that a call may take in all. Default: 600. None: no limit."""
    probe: float
    """Seconds for the response to `server/discover`, after which the client tries a handshake. Default: 5."""
    limits: Limits
    """Limits on what the server can make the client keep or do. Default: `Limits()`."""
    check_output: bool
    """Validate results of listed tools against their `outputSchema`, with the extra `jsonschema`. Default: True."""
    restart: bool
    """Restart a server that has died with the next call. Open calls still fail. Default: False."""
    headers: Mapping[str, str] | None
    """URLs only: headers of every request."""
    auth: Credentials | None
    """URLs only: a bearer token, or a callback, plain or async, that returns a token or headers.

    The callback is called with None at first. It is called with the `AuthorizationRequiredError` of a rejected
    request, which is then sent once more.
    """
    proxy: str | None
    """URLs only: the URL of a proxy. "" for none. Default: from the environment (`HTTPS_PROXY`, …)."""
    tls: ssl.SSLContext | None
    """URLs only: trusted certificates, and the certificate of the client."""
    reconnects: int | None
    """URLs only: attempts in a row to resume a stream that broke. Default: 5."""


URL_OPTIONS = ("headers", "auth", "proxy", "tls", "reconnects")
"""The options that apply to URLs only."""


class CallOptions(TypedDict, total=False):
    """The options of every call, in addition to its parameters."""

    timeout: float | None
    """Seconds that the call may take without a response or progress. None: no limit."""
    max_time: float | None
    """Seconds that the call may take in all, with all rounds of input. None: no limit."""
    on_progress: OnProgress | None
    """Callback for progress notifications, in order; plain or async."""
    meta: Mapping[str, Any] | None
    """Members of `_meta`, such as the trace context."""
    fresh: bool
    """Send the request even if a cached result is still valid."""
    rounds: int | None
    """Rounds of input requests. Default: `limits.input_rounds`. 0: return an `InputRequiredResult` as it is."""


def check_connect_options(options: ConnectOptions) -> None:
    """Raise `TypeError` for unknown options, and `UsageError` for values that are not valid."""
    _check_names("connect", options, ConnectOptions)
    check_list("revisions", options.get("revisions"))
    check_list("roots", options.get("roots"))
    for revision in options.get("revisions", ()):
        if revision not in SUPPORTED:
            raise UsageError(f"revisions: unknown revision {revision!r}; known: {', '.join(SUPPORTED)}")
    if not options.get("revisions", SUPPORTED):
        raise UsageError(f"revisions is empty: name at least one of {', '.join(SUPPORTED)}")
    if (level := options.get("log_level")) is not None:
        check_level(level)
    check_limits(options.get("limits", DEFAULT_LIMITS))
    _check_seconds(options, "timeout", "max_time", "probe")
    for name in ("sample", "elicit", "on_log", "on_diagnostic"):
        callback = options.get(name)
        if callback is not None and not callable(callback):
            raise UsageError(f"{name} must be a function, not {callback!r}")


def check_call_options(options: CallOptions) -> None:
    """Raise `TypeError` for unknown options, such as those of other libraries, and `UsageError` for invalid times."""
    if options:
        _check_names("a call", options, CallOptions)
        _check_seconds(options, "timeout", "max_time")


def _check_names(subject: str, options: Mapping[str, Any], known: type) -> None:
    names = known.__annotations__
    if not names.keys() >= options.keys():
        unknown = min(options.keys() - names.keys())
        raise TypeError(f"unknown option {unknown!r} of {subject}; known: {', '.join(sorted(names))}")


def _check_seconds(options: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if options.get(name) is not None:
            check_seconds(name, options[name])


def check_level(level: str) -> None:
    """Raise `UsageError` for an unknown log level."""
    if level not in LEVELS:
        raise UsageError(f"unknown log level {level!r}; known: {', '.join(LEVELS)}")
