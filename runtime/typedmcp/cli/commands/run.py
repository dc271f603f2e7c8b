"""`typedmcp run`: serve a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from typedmcp.cli.references import require_reference
from typedmcp.cli.status import CommandExit

if TYPE_CHECKING:
    from typedmcp.cli.serve import ListenAddress

__all__ = ["run"]


def run(
    file: Annotated[
        str,
        Parameter(
            name="FILE",
            help="server.py, server.py:object or package.module:object. Without an object, the typedmcp.Server or "
            "handler called server, mcp, app or handler, or the only Server. A file without a server is run as a "
            "script.",
        ),
    ],
    /,
    *,
    transport: Annotated[Literal["stdio", "http"], Parameter(help="How to serve.")] = "stdio",
    host: Annotated[str | None, Parameter(help="Host for HTTP; the default is 127.0.0.1.")] = None,
    port: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=0, lte=65535), help="Port for HTTP; the default is 8000. 0 chooses a free port."
        ),
    ] = None,
    path: Annotated[str | None, Parameter(help="Path for HTTP; the default is /mcp.")] = None,
    reload: Annotated[
        bool,
        Parameter(
            negative=(), show_default=False, help="Restart when a *.py file in the file's folder or below changes."
        ),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Parameter(help="Log to standard error from this level."),
    ] = "warning",
) -> int:
    """Serve a file until a signal or the client ends it."""
    address = _listen_address(host, port, path)
    if address and transport != "http":
        raise CommandExit(f"--{next(iter(address))} requires --transport http")
    if reload:
        from typedmcp.cli.reloader import run_reloader

        return run_reloader(file, _watched_folder(file), transport, log_level=log_level, address=address)
    from typedmcp.cli.serve import serve_file

    return serve_file(file, transport, log_level, **address)


def _listen_address(host: str | None, port: int | None, path: str | None) -> ListenAddress:
    address: ListenAddress = {}
    if host is not None:
        address["host"] = host
    if port is not None:
        address["port"] = port
    if path is not None:
        if not path.startswith("/"):
            raise CommandExit(f"--path {path!r} must start with /")
        address["path"] = path
    return address


def _watched_folder(text: str) -> Path:
    reference = require_reference(text)
    return Path(reference.source).resolve().parent if reference.is_file else Path.cwd()
