"""`typedmcp run`: serves what is in a file. `python -m typedmcp.cli.serving` does it without reading options."""

from __future__ import annotations

import json
import logging
import os
import runpy
import signal
import sys
import threading
import time
from typing import Any

from typedmcp.cli.loading import find, has_main, service_of
from typedmcp.cli.references import Reference
from typedmcp.cli.status import FAILED, GRACE, OK, TOLD, Stop, guarded
from typedmcp.serving import serve

__all__ = ["main", "serve_file"]


def serve_file(text: str, transport: Any = "stdio", log_level: str = "warning", **options: Any) -> int:
    """Serve the server in a file, with options of `typedmcp.serve`. A file that has none is run as a script."""
    logging.basicConfig(level=log_level.upper(), format="%(levelname)s: %(name)s: %(message)s")
    reference, server = find(text)
    if server is None:
        return _run_script(reference, transport)
    if (service := service_of(server)) is not None:
        if transport != "stdio":
            raise Stop(f"{text} is an ASGI application: a server such as uvicorn runs it")
        server = service
    if transport == "stdio" and os.isatty(0):
        sys.stderr.write("serving on standard input and output: a client should start this; Ctrl-D ends it\n")
    try:
        serve(server, transport, **options)
    except SystemExit as ended:  # with which uvicorn says that it cannot listen
        return FAILED if ended.code else OK
    return OK


def _run_script(reference: Reference, transport: str) -> int:
    file = reference.source
    if not reference.is_file or not has_main(file):
        raise Stop(f"{file} has no server: a typedmcp.Server, or a handler called server, mcp, app or handler")
    if transport != "stdio":
        raise Stop(f"{file} has no server, and serves by itself when it is run: python {file}")
    sys.argv[:] = [file]
    runpy.run_path(file, run_name="__main__")
    return OK


def main() -> int:
    """The status of serving the file that the first argument names, with the options in the second, as JSON.

    With `told` among these it is another one where what is wrong has been said. `lifeline` is the end of a pipe, whose
    end ends this process.
    """
    options: dict[str, Any] = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    if (lifeline := options.pop("lifeline", None)) is not None:
        _end_with(lifeline)
    told = TOLD if options.pop("told", False) else 0
    status = guarded(lambda: serve_file(sys.argv[1], **options), is_ours=False)
    return status + told if status else OK


def _end_with(lifeline: int) -> None:
    """End as soon as nobody holds the other end of a pipe any more, gently at first."""
    os.set_inheritable(lifeline, False)

    def watch() -> None:
        os.read(lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(FAILED)

    threading.Thread(target=watch, name="typedmcp lifeline", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
