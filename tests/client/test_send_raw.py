"""Calls whose result is passed on as it came."""

from __future__ import annotations

from typing import Any

import msgspec

import typedmcp
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run


class Vendor:
    """Returns what it got."""

    def fallback(self, method: str, params: dict[str, Any], ctx: typedmcp.Context) -> dict[str, Any]:
        return {"resultType": "complete", "method": method, "got": params, "vendor": {"deep": None}}


@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_encoded_parameters_and_results_pass_as_they_are(revision: str) -> None:
    async def main() -> None:
        async with typedmcp.connect(typedmcp.ServerConfig(Vendor(), revisions=[revision])) as client:
            given = {"name": "t", "arguments": msgspec.Raw(b'{"a": [1, null]}')}
            raw = await client.send_raw("vendor/method", given, meta={"vendor": 1})
            assert isinstance(raw, msgspec.Raw)
            result = msgspec.json.decode(raw)
            assert result["got"]["arguments"] == {"a": [1, None]}
            assert result["got"]["_meta"]["vendor"] == 1
            assert result["vendor"] == {"deep": None}
            assert "_meta" not in given

    run(main())


def test_progress_of_such_a_call_reaches_its_callback() -> None:
    server = typedmcp.Server("s")
    seen: list[float] = []

    @server.tool
    async def work(ctx: typedmcp.Context) -> str:
        await ctx.progress(1.0)
        return "done"

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            await client.send_raw("tools/call", {"name": "work"}, on_progress=lambda p: seen.append(p.progress))

    run(main())
    assert seen == [1.0]
