"""`typedmcp run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from typedmcp.cli.references import served_by
from typedmcp.cli.status import Stop

__all__ = ["run"]


def run(
    file: Annotated[
        str,
        Parameter(
            name="FILE",
            help="server.py, server.py:object or package.module:object. Without an object it is the typedmcp.Server or "
            "handler called server, mcp, app or handler, or the only Server there is. A file without any is run as a "
            "script, if it is one.",
        ),
    ],
    /,
    *,
    transport: Annotated[Literal["stdio", "http"], Parameter(help="What it is served over.")] = "stdio",
    host: Annotated[str | None, Parameter(help="Where HTTP is served; 127.0.0.1 unless told.")] = None,
    port: Annotated[
        int | None,
        Parameter(validator=Number(gte=0, lte=65535), help="On which port; 8000 unless told. 0 is any that is free."),
    ] = None,
    path: Annotated[str | None, Parameter(help="At which path; /mcp unless told.")] = None,
    reload: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Start again where a *.py below the file's folder changes."),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Parameter(help="Show what the server logs from this level up, on standard error."),
    ] = "warning",
) -> int:
    """Serve it until it is told to end."""
    given = {"host": host, "port": port, "path": path}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if options and transport != "http":
        raise Stop(f"--{next(iter(options))} is for HTTP: --transport http")
    if path is not None and not path.startswith("/"):
        raise Stop(f"--path {path!r} is no path: /{path}")
    options["log_level"] = log_level
    if reload:
        from typedmcp.cli.reloading import reload as serve_and_reload

        return serve_and_reload(file, _folder(file), transport, options)
    from typedmcp.cli.serving import serve_file

    return serve_file(file, transport, **options)


def _folder(text: str) -> Path:
    reference = served_by(text)
    return Path(reference.source).resolve().parent if reference.is_file else Path.cwd()
