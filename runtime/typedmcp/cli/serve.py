"""Serves the server in a file. `python -m typedmcp.cli.serve FILE OPTIONS` does so without the command line."""

from __future__ import annotations

import json
import logging
import os
import runpy
import signal
import sys
import threading
import time
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from typedmcp.cli.loader import find_server, get_app_config, has_main
from typedmcp.cli.references import ServerReference
from typedmcp.cli.status import ALREADY_REPORTED, FAILED, GRACE_SECONDS, OK, CommandExit, run_with_status
from typedmcp.server.run import serve

__all__ = ["ListenAddress", "TransportName", "main", "serve_file"]

TransportName: TypeAlias = Literal["stdio", "http"]


class ListenAddress(TypedDict, total=False):
    """The address for HTTP, as options of `typedmcp.serve`."""

    host: str
    port: int
    path: str


def serve_file(
    text: str, transport: TransportName = "stdio", log_level: str = "warning", **address: Unpack[ListenAddress]
) -> int:
    """Serve the server in a file until it ends, and return the exit status. Run a file without a server as a script.

    Raises `CommandExit` for a file that can be neither served nor run.
    """
    logging.basicConfig(level=log_level.upper(), format="%(levelname)s: %(name)s: %(message)s")
    reference, server = find_server(text)
    if server is None:
        return _run_script(reference, transport)
    if (config := get_app_config(server)) is not None:
        if transport != "stdio":
            raise CommandExit(f"{text} is an ASGI application; run it with a server such as uvicorn")
        server = config
    if transport == "stdio" and os.isatty(0):
        sys.stderr.write(
            "serving on standard input and output, for a client that starts this command; Ctrl-D ends it\n"
        )
    try:
        serve(server, transport, **address)
    except SystemExit as exit:  # uvicorn exits if it cannot listen
        return FAILED if exit.code else OK
    return OK


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
