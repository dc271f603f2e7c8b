"""The options of `connect` and of calls: names, types, meanings and defaults."""

from __future__ import annotations

import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict
from urllib.parse import unquote, urlsplit

from typedmcp import dialect
from typedmcp.client.requests.call_options import CallOptions, check_call_options, check_times
from typedmcp.errors import Error, UsageError
from typedmcp.frames import FrameSink, OnFrame, check_frames
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.observers import Instrumentation, check_telemetry
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.notifications import LEVELS, LogLevel
from typedmcp.protocol.option_checks import check_flag, check_grace, check_limits, check_list, check_names
from typedmcp.revisions.features import SUPPORTED

if TYPE_CHECKING:
    from typedmcp.client.extensions import ClientExtension
    from typedmcp.client.http.endpoint import Credentials
    from typedmcp.protocol.extensions import Extension

__all__ = [
    "URL_OPTIONS", "CallOptions", "ConnectOptions", "check_call_options", "check_connect_options", "check_level",
    "to_root",
]  # fmt: skip

D = dialect.structs

Sample: TypeAlias = Callable[
    ["D.CreateMessageRequestParams"], "D.CreateMessageResult | str | Awaitable[D.CreateMessageResult | str]"
]
"""Asks the model for a message. A string is the text of the answer of a model that is not named."""

Elicit: TypeAlias = Callable[
    ["D.ElicitRequestFormParams"],
    "D.ElicitResult | Mapping[str, Any] | Awaitable[D.ElicitResult | Mapping[str, Any] | None] | None",
]
"""Asks the user to fill in a form.

A mapping accepts, with this content and the form's defaults for other fields. None declines.
"""

ElicitUrl: TypeAlias = Callable[
    ["D.ElicitRequestURLParams"], "D.ElicitResult | bool | Awaitable[D.ElicitResult | bool | None] | None"
]
"""Shows a URL to the user, and asks for consent before it is opened. True is consent; False and None decline."""

Roots: TypeAlias = "Sequence[str | D.Root] | Callable[[], Sequence[str | D.Root] | Awaitable[Sequence[str | D.Root]]]"
"""The roots, as URIs or `Root` objects, or a function that returns them."""

OnLog: TypeAlias = "Callable[[D.LoggingMessageNotificationParams], object]"
OnDiagnostic: TypeAlias = Callable[[Diagnostic], object]


class ConnectOptions(TypedDict, total=False):
    """The options of `connect` and `typedmcp.sync.connect`."""

    name: str
    """The name of the client, for servers. Default: "typedmcp"."""
    version: str
    """The version of the client, for servers. Default: "0"."""
    revisions: Sequence[str]
    """The protocol revisions that may be negotiated. Default: all."""
    sample: Sample | None
    """Callback for `sampling/createMessage`: asks the model. Declares the capability."""
    elicit: Elicit | None
    """Callback for `elicitation/create` with a form: asks the user. Declares the mode."""
    elicit_url: ElicitUrl | None
    """Callback for `elicitation/create` with a URL: asks for consent before it is opened. Declares the mode."""
    roots: Roots | None
    """The roots, as `file://` URIs, or a callback that returns them. Declares the capability."""
    capabilities: Mapping[str, Any] | None
    """Capabilities to declare in addition to those of the callbacks, such as `{"sampling": {"tools": {}}}`."""
    extensions: Sequence[Extension | ClientExtension]
    """The extensions of the protocol to declare and support. Default: none."""
    log_level: LogLevel | None
    """The lowest level of log messages that the server sends. Default: "debug" with `on_log`, else none."""
    on_log: OnLog | None
    """Callback for log messages, plain or async."""
    on_diagnostic: OnDiagnostic | None
    """Callback for observations that are not the error of a call. Default: they are logged as warnings."""
    on_frame: OnFrame | None
    """Callback for each message as it is on the wire: the sender, "client" or "server", and the bytes.

    It is called before the message is sent or read, and must not block. It also gets messages that are not valid.
    """
    record: FrameSink | str | PathLike[str] | None
    """Gets all messages, as `on_frame` does: a sink, or a file that `typedmcp_cli` writes. Default: none."""
    change_error: Callable[[Error], Error] | None
    """Returns the error that a call, or an attempt to connect, raises in place of its own. Default: none is replaced.

    It may get an error again that it has returned. `typedmcp_hosts` hides the values of variables with it.
    """
    telemetry: Instrumentation | None
    """The telemetry of requests, such as `typedmcp_otel.Telemetry()`. None for none.

    Default: that of `typedmcp_otel.instrument()`, if it was called.
    """
    timeout: float | None
    """Seconds that a call may take without a response or progress. Default: 60. None: no limit."""
    max_time: float | None
    """Seconds that a call may take in all. Default: 600. None: no limit."""
    probe: float
    """Seconds for the response to `server/discover`, after which the client tries a handshake. Default: 5."""
    grace: float
    """Seconds that a call waits for its callbacks, and that they may take to end once the client is closed. Default: 5.

    A client that is closed cancels its callbacks. It then closes without those that go on, and reports their names.
    """
    limits: Limits
    """Limits on what the server can make the client keep or do. Default: `Limits()`."""
    check_output: bool
    """Validate results of listed tools against their `outputSchema`, with the extra `jsonschema`. Default: True.

    Calls of tools whose schema refers to another document, or names an unknown dialect, raise `ProtocolError`.
    """
    check_capabilities: bool
    """Raise `UsageError` for calls that need a capability which the server has not declared. Default: True."""
    strict: bool
    """Reject messages that break the specification harmlessly. Default: False, they are understood and reported."""
    restart: bool | None
    """Restart a server that has died with the next call. Open calls still fail.

    Default: True for a process that speaks a modern revision, which has no session that could be lost, else False.
    """
    headers: Mapping[str, str] | None
    """URLs only: headers of every request."""
    auth: Credentials | None
    """URLs only: a bearer token, a way to sign in such as `typedmcp_auth.OAuth()`, or a callback, plain or async, that
    returns a token or headers.

    The callback is called with None at first. It is called with the `AuthorizationRequiredError` of a rejected
    request, which is then sent once more.
    """
    proxy: str | None
    """URLs only: the URL of a proxy. "" for none. Default: from the environment (`HTTPS_PROXY`, …)."""
    tls: ssl.SSLContext | None
    """URLs only: trusted certificates, and the certificate of the client."""
    reconnects: int | None
    """URLs only: attempts in a row to resume a stream that broke. Default: 5."""
    sse: bool | None
    """URLs only: try HTTP with SSE (2024-11-05) first, whose event stream is at the URL. Default: False."""


_URI: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
"""The characters of a `file://` URI after its scheme: one without a query and a fragment."""

URL_OPTIONS = ("headers", "auth", "proxy", "tls", "reconnects", "sse")
"""The options that apply to URLs only."""


def check_connect_options(options: ConnectOptions) -> None:
    """Raise `TypeError` for unknown options, and `UsageError` for values that are not valid."""
    check_names("connect", options, ConnectOptions)
    check_list("revisions", options.get("revisions"))
    check_list("roots", options.get("roots"))
    _check_roots(options.get("roots"))
    for revision in options.get("revisions", ()):
        if revision not in SUPPORTED:
            raise UsageError(f"revisions: unknown revision {revision!r}; known: {', '.join(SUPPORTED)}")
    if not options.get("revisions", SUPPORTED):
        raise UsageError(f"revisions is empty: name at least one of {', '.join(SUPPORTED)}")
    if (level := options.get("log_level")) is not None:
        check_level(level)
    check_limits(options.get("limits", DEFAULT_LIMITS))
    check_times(options, "timeout", "max_time", "probe")
    check_grace(options.get("grace", 0))
    check_flag("strict", options.get("strict", False))
    check_telemetry(options.get("telemetry"))
    check_frames(options.get("record"), options.get("on_frame"))
    for name in ("sample", "elicit", "elicit_url", "on_log", "on_diagnostic", "change_error"):
        callback = options.get(name)
        if callback is not None and not callable(callback):
            raise UsageError(f"{name} must be a function, not {callback!r}")


def _check_roots(roots: Roots | None) -> None:
    if roots is not None and not callable(roots):
        for root in roots:
            to_root(root)


def check_level(level: str) -> None:
    """Raise `UsageError` for an unknown log level."""
    if level not in LEVELS:
        raise UsageError(f"unknown log level {level!r}; known: {', '.join(LEVELS)}")


# Roots: https://modelcontextprotocol.io/specification/2026-07-28/client/roots


def to_root(value: Any) -> D.Root:
    """Return a root from a URI or a `Root`. Raises `UsageError` unless its URI is an absolute `file://` URI."""
    root: Any = D.Root(uri=value) if isinstance(value, str) else value
    fault = _find_root_fault(getattr(root, "uri", None))
    if fault is not None:
        raise UsageError(f"roots: {value!r} {fault}; expected a URI such as Path.cwd().as_uri()")
    return root  # type: ignore[no-any-return]


def _find_root_fault(uri: object) -> str | None:
    if not isinstance(uri, str):
        return "is neither a URI nor a Root"
    scheme, _, rest = uri.partition("://")
    if scheme.lower() != "file":
        return "is not a file:// URI"
    if not _URI.fullmatch(rest):
        return "has characters that must be percent-encoded"
    path = unquote(urlsplit(uri).path)
    if not path.startswith("/"):
        return "has no absolute path"
    if any(part in (".", "..") for part in re.split(r"[/\\]", path)) or "\0" in path:
        return "has segments that lead out of a folder"
    return None
