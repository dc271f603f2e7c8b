"""A server over stdio with what event loops on Windows have: no signal handlers, and pipes that cannot be polled."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import typedmcp
from typedmcp.server import run
from typedmcp.transports import stdio


def _fail(*_: Any) -> None:
    raise NotImplementedError


LimitedLoop = type(
    "LimitedLoop",
    (asyncio.SelectorEventLoop,),
    dict.fromkeys(("add_signal_handler", "add_reader", "add_writer"), _fail),
)

server = typedmcp.Server("portable")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
def stop() -> None:
    """Interrupt the server, as Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    stdio.__dict__["_can_poll"] = lambda _descriptor: False  # pyright: ignore[reportUnknownLambdaType]
    run.__dict__["new_event_loop"] = LimitedLoop
    typedmcp.serve(server)
