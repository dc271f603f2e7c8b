"""`typedmcp run`: serve a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from typedmcp_cli.options import Frames, Mask, RecordFile
from typedmcp_cli.references import require_reference
from typedmcp_cli.status import CommandExit

if TYPE_CHECKING:
    from typedmcp_cli.serve import ListenAddress

__all__ = ["AddressOptions", "run"]


@Parameter(name="*")
@dataclass(frozen=True)
class AddressOptions:
    """Options of `typedmcp run` that say where HTTP is served, and to whom."""

    host: Annotated[str | None, Parameter(help="Host for HTTP; the default is 127.0.0.1.")] = None
    port: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=0, lte=65535), help="Port for HTTP; the default is 8000. 0 chooses a free port."
        ),
    ] = None
    path: Annotated[str | None, Parameter(help="Path for HTTP; the default is /mcp.")] = None
    allowed_host: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            show_default=False,
            help="A host that clients may use for HTTP, beside loopback and --host; * is any. Can be repeated.",
        ),
    ] = ()
    allowed_origin: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            show_default=False,
            help="The origin of web pages that may use the server over HTTP, such as https://app.example.com. "
            "Can be repeated.",
        ),
    ] = ()
    token_env: Annotated[
        str | None,
        Parameter(help="The variable of the environment with a token, which clients must send over HTTP."),
    ] = None

    def to_address(self) -> ListenAddress:
        """Return the options that are given. Raises `CommandExit` for a path that cannot be one."""
        if self.path is not None and not self.path.startswith("/"):
            raise CommandExit(f"--path {self.path!r} must start with /")
        address: ListenAddress = {}
        if self.host is not None:
            address["host"] = self.host
        if self.port is not None:
            address["port"] = self.port
        if self.path is not None:
            address["path"] = self.path
        if self.allowed_host:
            address["allowed_hosts"] = self.allowed_host
        if self.allowed_origin:
            address["allowed_origins"] = self.allowed_origin
        if self.token_env is not None:
            address["token_env"] = self.token_env
        return address

    def first_given(self) -> str | None:
        """Return the first option that is given, as it is on the command line, or None."""
        given = (field.name for field in fields(self) if getattr(self, field.name) != field.default)
        return next((f"--{name.replace('_', '-')}" for name in given), None)


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
    http: AddressOptions = AddressOptions(),
    directory: Annotated[str | None, Parameter(help="Change to this folder first.")] = None,
    reload: Annotated[
        bool,
        Parameter(
            negative=(), show_default=False, help="Restart when a *.py file in the file's folder or below changes."
        ),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Parameter(
            help="Log to standard error from this level: rejected requests are warnings, info adds all requests."
        ),
    ] = "warning",
    frames: Frames = False,
    record: RecordFile = None,
    mask: Mask = (),
) -> int:
    """Serve a file until a signal or the client ends it."""
    if transport != "http" and (option := http.first_given()) is not None:
        raise CommandExit(f"{option} requires --transport http")
    address = http.to_address()
    if directory is not None:
        _enter(directory)
    if reload:
        if record is not None:
            raise CommandExit("--record and --reload cannot be used together: each restart would replace the file")
        from typedmcp_cli.reloader import run_reloader

        return run_reloader(file, _watched_folder(file), transport, log_level=log_level, frames=frames, address=address)
    from typedmcp_cli.serve import serve_file

    return serve_file(file, transport, log_level, record=record, mask=mask, frames=frames, **address)


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise CommandExit(f"--directory {directory!r}: {error.strerror}") from None


def _watched_folder(text: str) -> Path:
    reference = require_reference(text)
    return Path(reference.source).resolve().parent if reference.is_file else Path.cwd()
