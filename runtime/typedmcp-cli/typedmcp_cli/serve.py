"""Serves the server in a file. `python -m typedmcp_cli.serve FILE OPTIONS` does so without the command line."""

from __future__ import annotations

import json
import logging
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, Unpack

from typedmcp import ServerConfig, serve
from typedmcp.frames import open_sink
from typedmcp_cli.frames import show_frame
from typedmcp_cli.loader import find_server, get_app_config, has_main
from typedmcp_cli.references import ServerReference
from typedmcp_cli.status import ALREADY_REPORTED, FAILED, GRACE_SECONDS, OK, CommandExit, run_with_status

if TYPE_CHECKING:
    from typedmcp import Auth

__all__ = ["LOOPBACK", "ListenAddress", "TransportName", "main", "serve_file", "to_serve_options"]

TransportName: TypeAlias = Literal["stdio", "http"]

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that servers accept by default."""


class ListenAddress(TypedDict, total=False):
    """The address for HTTP, and the clients that may reach it."""

    host: str
    port: int
    path: str
    allowed_hosts: Sequence[str]
    """Hosts to accept in addition to those of the loopback interface and to `host`."""
    allowed_origins: Sequence[str]
    token_env: str
    """The variable of the environment that has the token of all clients."""


class _HttpOptions(TypedDict, total=False):
    """Options of `typedmcp.serve`."""

    host: str
    port: int
    path: str
    hosts: Sequence[str]
    origins: Sequence[str]
    auth: Auth


def serve_file(
    text: str,
    transport: TransportName = "stdio",
    log_level: str = "warning",
    *,
    record: str | None = None,
    mask: Sequence[str] = (),
    frames: bool = False,
    **address: Unpack[ListenAddress],
) -> int:
    """Serve the server in a file until it ends, and return the exit status. Run a file without a server as a script.

    `record` is a file for all messages, in which members called as in `mask` are masked, too. `frames`
    writes messages to standard error. Raises `CommandExit` for a file that can be neither served nor run.
    """
    logging.basicConfig(level=log_level.upper(), format="%(levelname)s: %(name)s: %(message)s")
    reference, server = find_server(text)
    if server is None:
        if record is not None:
            raise CommandExit(f"{text} is a script; record it with: typedmcp record -- python {reference.source}")
        if frames:
            raise CommandExit(f"--frames: {text} is a script; pass on_frame=… where it runs its server")
        return _run_script(reference, transport)
    if (config := get_app_config(server)) is not None:
        if given := [name for name in address if name not in ("host", "port")]:
            option = f"--{given[0].removesuffix('s').replace('_', '-')}"
            remedy = f"pass it to asgi(…), or name the server, as in {reference.source}:server"
            raise CommandExit(f"{option}: {text} has an ASGI application with options of its own; {remedy}")
        server = config if transport == "stdio" else server
    if record is not None or frames:
        server = _observed(server, record, mask, frames=frames)
    try:
        serve(server, transport, **to_serve_options(address))
    except SystemExit as exit:  # uvicorn exits if it cannot listen
        return FAILED if exit.code else OK
    return OK


def _observed(server: object, file: str | None, mask: Sequence[str], *, frames: bool) -> object:
    """Return a server, as its configuration or its application, whose messages are recorded or shown."""
    from typedmcp_cli.recording.recorder import Recorder  # loaded where it is used

    app_config = get_app_config(server)
    config = app_config or (server if isinstance(server, ServerConfig) else ServerConfig(server))
    recorder = config.record if file is None else Recorder(file, mask=mask, limits=config.limits)
    config.record = open_sink(recorder, config.limits, show_frame if frames else None)
    return config if app_config is None else server


def to_serve_options(address: ListenAddress) -> _HttpOptions:
    """Return the options of `typedmcp.serve`. Raises `CommandExit` if the environment has no token."""
    options: _HttpOptions = {}
    if "host" in address:
        options["host"] = address["host"]
    if "port" in address:
        options["port"] = address["port"]
    if "path" in address:
        options["path"] = address["path"]
    if "allowed_origins" in address:
        options["origins"] = address["allowed_origins"]
    if "allowed_hosts" in address:
        options["hosts"] = _allowed_hosts(address.get("host"), address["allowed_hosts"])
    if "token_env" in address:
        options["auth"] = _read_token(address["token_env"])
    return options


def _allowed_hosts(host: str | None, allowed: Sequence[str]) -> list[str]:
    return [*LOOPBACK, *([] if host is None else [f"[{host}]" if ":" in host else host]), *allowed]


def _read_token(variable: str) -> Auth:
    from typedmcp import Principal, StaticTokens

    token = os.environ.get(variable, "")
    if not token:
        raise CommandExit(f"--token-env: the variable {variable} is not set")
    return StaticTokens({token: Principal("token")})


def _run_script(reference: ServerReference, transport: TransportName) -> int:
    file = reference.source
    if not reference.is_file or not has_main(file):
        raise CommandExit(
            f"{file} has no server; expected a typedmcp.Server, or a handler called server, mcp, app or handler"
        )
    if transport != "stdio":
        raise CommandExit(f"{file} has no server object; it is a script: python {file}")
    sys.argv[:] = [file]
    runpy.run_path(file, run_name="__main__")
    return OK


def main() -> int:
    """Serve the file in `sys.argv[1]` with the options in `sys.argv[2]`, a JSON object; return the exit status.

    It takes two options more than `serve_file`. `adds_reported` adds `ALREADY_REPORTED` to a status other than
    0. `lifeline` is the reading end of a pipe; this process ends when the pipe is closed.
    """
    options: dict[str, Any] = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    if (lifeline := options.pop("lifeline", None)) is not None:
        _exit_with(lifeline)
    reported = ALREADY_REPORTED if options.pop("adds_reported", False) else 0
    status = run_with_status(lambda: serve_file(sys.argv[1], **options), has_user_code=True)
    return status + reported if status else OK


def _exit_with(lifeline: int) -> None:
    """End this process when the pipe is closed: with SIGTERM, and by force after the grace period."""
    os.set_inheritable(lifeline, False)

    def watch() -> None:
        os.read(lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(FAILED)

    threading.Thread(target=watch, name="typedmcp lifeline", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
