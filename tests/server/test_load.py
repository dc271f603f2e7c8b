"""Thousands of requests at once, of which many are cancelled or fail: ten thousand before a release."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.pairs import examples
from tests.server.scripted import CARRIERS, MODERN_REVISION, Json, run, served
from typedmcp.dialect import structs

REQUESTS = examples(10_000)


class Busy:
    """Calls that end at once, end later, fail, or never end."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.gate = asyncio.Event()

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if params.name == "fails at once":
                raise RuntimeError("at once")
            if params.name != "ends at once":
                await self.gate.wait()
                await asyncio.sleep(0)
            if params.name == "fails later":
                raise RuntimeError("later")
            if params.name == "never ends":
                await asyncio.Event().wait()
        finally:
            self.running -= 1
        return structs.CallToolResult(content=[structs.TextContent(text="x" * 500)], result_type="complete")


KINDS = ["ends at once", "ends later", "fails at once", "fails later", "is cancelled", "never ends"]


def message(revision: str, meta: Json, id: int, name: str) -> bytes:
    params: Json = {"name": name, **({"_meta": meta} if revision == MODERN_REVISION else {})}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


def cancellation(id: int) -> bytes:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    return json.dumps(message).encode() + b"\n"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0


@pytest.mark.long
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN_REVISION])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_each_of_thousands_of_requests_ends_in_the_expected_way(revision: str, carrier: str) -> None:
    """The client reads nothing while they run; a sixth is cancelled, two sixths fail, a sixth never ends by itself."""
    chance = random.Random(carrier)
    kinds = {id: chance.choice(KINDS) for id in range(1_000, 1_000 + REQUESTS)}
    answers: Counter[int] = Counter()
    outcomes: dict[int, str] = {}

    def take(found: Any) -> None:
        answers[found["id"]] += 1
        outcomes[found["id"]] = "error" if "error" in found else "result"

    async def main() -> None:
        handler = Busy()
        async with served(handler, over=carrier) as client:
            await client.open(revision)
            gc.collect()
            tracemalloc.start()
            data = b"".join(message(revision, client.meta(), id, kind) for id, kind in kinds.items())
            client.send_bytes(data)
            while handler.running < sum(kind not in ("ends at once", "fails at once") for kind in kinds.values()):
                await asyncio.sleep(0)
            assert len(client.session.in_flight) == handler.running
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 25_000 * REQUESTS
            given_up = [id for id, kind in kinds.items() if kind in ("is cancelled", "never ends")]
            chance.shuffle(given_up)
            half = len(given_up) // 2
            client.send_bytes(b"".join(map(cancellation, given_up[:half])))
            await client.settled()
            handler.gate.set()
            client.send_bytes(b"".join(map(cancellation, given_up[half:])))
            await client.settled()
            while client.session.in_flight:
                await asyncio.sleep(0)
            await client.settled()
            for found in client.unread():
                take(found)
            assert handler.running == 0
            assert "result" in await client.request("tools/call", {"name": "ends at once"})

    files = open_files()
    run(main)
    assert open_files() == files
    assert max(answers.values()) == 1
    ends = {"ends at once": "result", "ends later": "result", "fails at once": "error", "fails later": "error"}
    for id, kind in kinds.items():
        assert outcomes.get(id) == ends.get(kind) or (kind == "is cancelled" and outcomes.get(id) == "result")


@each("carrier", CARRIERS)
@each("revision", ["2025-11-25", MODERN_REVISION])
def test_the_end_of_a_connection_ends_all_its_open_requests(carrier: str, revision: str) -> None:
    async def main() -> None:
        handler = Busy()
        async with served(handler, over=carrier, grace=0.05) as client:
            await client.open(revision)
            client.send_bytes(
                b"".join(message(revision, client.meta(), id, "never ends") for id in range(1_000, 1_500))
            )
            while handler.running < 500:
                await asyncio.sleep(0)
        assert handler.running == 0

    run(main)
