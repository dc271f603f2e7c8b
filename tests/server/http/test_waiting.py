"""Requests whose handlers wait for a moment."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.helpers import run
from typedmcp.server.http.state import WaitingRequests


async def _receive() -> dict[str, Any]:
    raise AssertionError("not called")


def test_a_request_that_waits_is_watched_and_one_that_has_ended_is_not() -> None:
    watched: list[str] = []

    async def main() -> None:
        waiting = WaitingRequests(asyncio.get_running_loop())
        for name in ("short", "long"):
            waiting.add(name, lambda name, _receive: watched.append(name), _receive)
        waiting.remove("short")
        while not watched:
            await asyncio.sleep(0.001)
        waiting.add("later", lambda name, _receive: watched.append(name), _receive)
        while len(watched) < 2:
            await asyncio.sleep(0.001)
        waiting.remove("later")

    run(main())
    assert watched == ["long", "later"]
