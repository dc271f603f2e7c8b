"""Lists of several pages: cursors are opaque, and a rejected one makes all cached pages stale."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import Script, played
from tests.server.scripted import Json, run
from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import DiagnosticKind


def page(*names: str, cursor: str | None = None, ttl: int = 0) -> Json:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    more = {} if cursor is None else {"nextCursor": cursor}
    return {"resultType": "complete", "tools": tools, "ttlMs": ttl, "cacheScope": "private", **more}


REJECTED: Json = {"code": -32602, "message": "unknown cursor"}


async def listed(client: Any) -> list[str]:
    return [tool.name async for tool in client.tools()]


async def answer(script: Script, *answers: Json) -> list[Any]:
    """Answer requests in order: with a result, or an error. Return their cursors."""
    cursors: list[Any] = []
    for given in answers:
        request = await script.receive()
        cursors.append(request["params"].get("cursor"))
        script.send(id=request["id"], **({"error": given} if "code" in given else {"result": given}))
    return cursors


@each("cursor", ["again", ""])
def test_a_cursor_may_repeat(cursor: str) -> None:
    async def main() -> None:
        async with played() as (client, script):
            listing = asyncio.create_task(listed(client))
            pages = [page("a", cursor=cursor), page("b", cursor=cursor), page("c", cursor=cursor), page("d")]
            assert await answer(script, *pages) == [None, cursor, cursor, cursor]
            assert await listing == ["a", "b", "c", "d"]

    run(main)


ENDLESS: dict[str, list[Json]] = {
    "the same page": [page("a", cursor="1")] * 2,
    "no page": [page(cursor="1")] * 2,
    "two pages in turn": [page("a", cursor="1"), page("b", cursor="2"), page("a", cursor="1")],
    "parts of pages": [page("a", "b", cursor="1"), page("c", cursor="2"), page("b", "c", cursor="2")],
    "from the cache": [page("a", cursor="1", ttl=60_000)] * 2,
}
"""Pages after which a list has ended: they bring nothing new, under a cursor that repeats."""


@each("strict", [False, True])
@each("pages", ENDLESS.values(), ids=ENDLESS)
def test_a_list_that_goes_on_without_anything_new_ends_with_what_was_found(pages: list[Json], strict: bool) -> None:
    names = dict.fromkeys(tool["name"] for each in pages for tool in each["tools"])

    async def main() -> None:
        async with played(strict=strict) as (client, script):
            listing = asyncio.create_task(listed(client))
            await answer(script, *pages)
            if strict:
                with pytest.raises(typedmcp.ProtocolError, match="nextCursor: it repeats"):
                    await listing
                return
            assert await listing == [*names]
            assert [(report.kind, report.method) for report in script.reports] == [
                (DiagnosticKind.TOLERATED, "tools/list")
            ]
            assert await script.settled() == []

    run(main)


def test_a_list_without_an_end_ends_at_the_limit_of_pages() -> None:
    async def main() -> None:
        async with played(limits=Limits(list_pages=5)) as (client, script):
            listing = asyncio.create_task(listed(client))
            pages = [page(*"a" * (number % 2), cursor=str(number)) for number in range(5)]
            await answer(script, *pages)
            with pytest.raises(typedmcp.ProtocolError, match="more than 5 pages of tools"):
                await listing

    run(main)


def test_other_tasks_run_while_a_long_list_is_read_from_the_cache() -> None:
    async def main() -> None:
        async with played() as (client, script):
            listing = asyncio.create_task(listed(client))
            await answer(script, *[page(cursor=str(number), ttl=60_000) for number in range(50)], page(ttl=60_000))
            await listing
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0)
                    turns += 1

            counting = asyncio.create_task(count())
            assert await listed(client) == []
            assert turns >= 49
            counting.cancel()
            await asyncio.wait([counting])
            assert await script.settled() == []

    run(main)


def test_a_rejected_cursor_drops_all_pages_and_the_list_begins_again() -> None:
    async def main() -> None:
        async with played() as (client, script):
            first = asyncio.create_task(client.list_tools())
            await answer(script, page("a", "b", cursor="old", ttl=60_000))
            await first
            listing = asyncio.create_task(listed(client))
            assert await answer(script, REJECTED, page("b", "c", cursor="new"), page("d")) == ["old", None, "new"]
            assert await listing == ["a", "b", "c", "d"]  # "b" once

    run(main)


def test_a_list_begins_again_only_once() -> None:
    async def main() -> None:
        async with played() as (client, script):
            listing = asyncio.create_task(listed(client))
            await answer(script, page("a", cursor="1"), REJECTED, page("a", cursor="2"), REJECTED)
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown cursor"):
                await listing

    run(main)


def test_a_single_page_with_a_rejected_cursor_drops_the_others() -> None:
    async def main() -> None:
        async with played() as (client, script):
            for cursor, reply in ((None, page("a", cursor="1", ttl=60_000)), ("1", page("b", ttl=60_000))):
                listing = asyncio.create_task(client.list_tools(cursor))
                await answer(script, reply)
                await listing
            failing = asyncio.create_task(client.list_tools("2"))
            await answer(script, REJECTED)
            with pytest.raises(typedmcp.InvalidParamsError):
                await failing
            again = asyncio.create_task(client.list_tools())
            assert await answer(script, page("c")) == [None]
            assert [tool.name for tool in (await again).tools] == ["c"]

    run(main)
