"""`typedmcp proxy`: offer a server, or several, to clients of every revision."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from typedmcp import Diagnostic, DiagnosticKind, ServerConfig, serve
from typedmcp.building import visible
from typedmcp.errors import missing_extra
from typedmcp_cli.commands.run import AddressOptions
from typedmcp_cli.options import ConnectionOptions, Target
from typedmcp_cli.private_files import open_private_file
from typedmcp_cli.serve import LOOPBACK, to_serve_options
from typedmcp_cli.status import FAILED, OK, CommandExit
from typedmcp_cli.targets import find_entry, make_connect_options
from typedmcp_gateway import AuditRecord, Gateway

if TYPE_CHECKING:
    from typedmcp.server.http.asgi import AsgiOptions

__all__ = ["ProxyOptions", "proxy"]

_FAILURES = (DiagnosticKind.INTERNAL_ERROR, DiagnosticKind.CONNECTION_ERROR, DiagnosticKind.INVALID_DATA)
"""The diagnostics that are always shown."""
_PORT = Number(gte=0, lte=65535)


@Parameter(name="*")
@dataclass(frozen=True)
class ProxyOptions:
    """Options of `typedmcp proxy` that say how it serves, and what it tells."""

    http: Annotated[
        int | None,
        Parameter(
            validator=_PORT,
            help="Serve over HTTP at this port, at /mcp and, for 2024-11-05, at /sse, with /health and /ready; "
            "0 chooses a free one. Without it the proxy serves over standard input and output.",
        ),
    ] = None
    audit: Annotated[
        str | None, Parameter(help="Append one line of JSON for each call to this file: who, what, outcome, duration.")
    ] = None
    audit_arguments: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Put the arguments of calls into the audit file, too.")
    ] = False
    report: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Report on standard error what a revision could not say."),
    ] = False
    reload: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Load --config FILE again when it changes.")
    ] = False


def proxy(
    target: Target = "",
    /,
    *,
    serving: ProxyOptions = ProxyOptions(),  # it is frozen
    address: AddressOptions = AddressOptions(),  # noqa: B008
    options: ConnectionOptions = ConnectionOptions(),  # noqa: B008
) -> int:
    """Offer a server until a signal or the client ends it."""
    if serving.http is None and (option := address.first_given()) is not None:
        raise CommandExit(f"{option} requires --http PORT")
    if serving.reload and options.config is None:
        raise CommandExit("--reload requires --config FILE")
    if not target and options.config is None:
        raise CommandExit("no server; expected TARGET, --config FILE, or a command after --")
    with ExitStack() as stack:
        gateway = _make_gateway(target, serving, options, _open_audit(serving, stack))
        try:
            _serve(gateway, serving, address)
        except SystemExit as exit:  # uvicorn exits if it cannot listen
            return FAILED if exit.code else OK
    return OK


def _make_gateway(
    target: str, serving: ProxyOptions, options: ConnectionOptions, on_call: Callable[[AuditRecord], object] | None
) -> Gateway:
    connect = make_connect_options(options)
    connect.pop("log_level", None)  # clients say which they want
    chosen: dict[str, Any] = {"connect": connect, "on_call": on_call, "audit_arguments": serving.audit_arguments}
    # A client at standard input has started the server, in a way. Others are told nothing of its processes.
    chosen.update(tell_causes=serving.http is None, on_stderr=_show_line)
    if target or options.config is None:
        entry = find_entry(target, options)
        if options.config is None:
            entry = replace(entry, name="server")  # clients get it in errors, and a command may hold secrets
        return Gateway(entry, **chosen)
    if serving.reload:
        chosen["reload_seconds"] = 1.0
    return Gateway(servers=options.config, **chosen)


def _show_line(_server: str, line: str) -> None:
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


def _open_audit(serving: ProxyOptions, stack: ExitStack) -> Callable[[AuditRecord], object] | None:
    """Return the function that appends to the audit file. Raises `CommandExit` if it cannot be opened."""
    if serving.audit is None:
        return None
    try:
        file = open(open_private_file(serving.audit, is_replaced=False), "ab", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise CommandExit(f"--audit {serving.audit}: {error.strerror}") from None
    stack.callback(file.close)
    return lambda record: file.write(msgspec.json.encode(record) + b"\n")


def _serve(gateway: Gateway, serving: ProxyOptions, address: AddressOptions) -> None:
    def show(diagnostic: Diagnostic) -> None:
        if diagnostic.kind in _FAILURES or (serving.report and diagnostic.kind is DiagnosticKind.DROPPED):
            sys.stderr.write(f"typedmcp proxy: {diagnostic.kind}: {visible(diagnostic.text)}\n")

    if serving.http is None:
        serve(ServerConfig(gateway, on_diagnostic=show))
        return
    if address.port is not None:
        raise CommandExit("--port is for typedmcp run; use --http PORT")
    given: dict[str, Any] = {**to_serve_options(replace(address, port=serving.http).to_address())}
    host, port = given.pop("host", "127.0.0.1"), given.pop("port")
    if host not in LOOPBACK:
        given.setdefault("hosts", [*LOOPBACK, f"[{host}]" if ":" in host else host])
    try:
        from typedmcp_http import UvicornServer
    except ImportError:
        raise CommandExit(missing_extra("typedmcp proxy --http", "cli,http")) from None
    app_options: AsgiOptions = {"sse_path": "/sse", "on_diagnostic": show, **given}  # type: ignore[typeddict-item]
    UvicornServer(gateway.asgi(**app_options), host, port).run()
