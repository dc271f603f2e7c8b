"""Servers over HTTP, as the pairs of streams that stand for them."""

from __future__ import annotations

from typing import Any

from typedmcp.errors import UsageError

__all__ = ["HttpTarget"]


class HttpTarget:
    """A URL with the options of `typedmcp.connect`. It stands for both streams of messages of a `ClientSession`."""

    def __init__(self, url: str, **options: Any) -> None:
        self.url: str = url
        self.options: dict[str, Any] = {name: value for name, value in options.items() if value is not None}

    async def receive(self) -> Any:
        """Raise `UsageError`: a `ClientSession` reads the messages."""
        raise UsageError("the streams of a URL are for ClientSession; for messages one by one use client.send_raw")

    async def send(self, _message: Any) -> None:
        """Raise `UsageError`: a `ClientSession` sends the messages."""
        await self.receive()

    async def aclose(self) -> None:
        """Do nothing: the session closes its connection."""
