"""Ports for servers that cannot choose one and say which it is."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["reserved_port"]


@contextmanager
def reserved_port() -> Generator[int]:
    """Yield a port that nobody else is given until the end.

    A socket stays bound to it without listening, so that the system gives it to no other socket. A server that sets
    SO_REUSEADDR or SO_REUSEPORT, as asyncio, Node.js, Redis, nginx and granian do, can bind it all the same.
    """
    with socket.socket() as held:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            held.setsockopt(socket.SOL_SOCKET, option, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
