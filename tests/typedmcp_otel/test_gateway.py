"""One trace goes from a client through the gateway to the server, whatever revisions they speak."""

from __future__ import annotations

import asyncio
from typing import Any

import typedmcp
from tests.cases import each
from tests.spoken import MODERN_REVISION
from tests.typedmcp_otel.exported import Exported, span_id, trace_id, tree
from typedmcp_gateway import Gateway

LEGACY_REVISION = "2025-11-25"

server = typedmcp.Server("behind")


@server.tool
async def work(ctx: typedmcp.Context) -> str:
    await ctx.progress(1, 2)
    return "done"


@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    return str((await ctx.elicit("Name?", str)).data)


def answer(_: object) -> dict[str, str]:
    return {"value": "Ada"}


def ignore(_: object) -> None:
    pass


def connect(exported: Exported, client: str, behind: str, *, at_gateway: bool = True) -> typedmcp.Client:
    """Return a client on one revision of a gateway to a server on another."""
    telemetry = exported.telemetry
    own: Any = {"telemetry": telemetry if at_gateway else None}
    target = typedmcp.ServerConfig(server, telemetry=telemetry, revisions=[behind])
    gateway = Gateway(target, connect=own)
    config = typedmcp.ServerConfig(gateway, **own)
    return typedmcp.connect(config, telemetry=telemetry, revisions=[client], elicit=answer)


@each("behind", [LEGACY_REVISION, MODERN_REVISION])
@each("client", [LEGACY_REVISION, MODERN_REVISION])
def test_a_call_is_one_trace_through_the_gateway(client: str, behind: str) -> None:
    exported = Exported()

    async def main() -> None:
        async with connect(exported, client, behind) as connected:
            await connected.call_tool("work", on_progress=ignore)

    asyncio.run(main())
    spans = exported.spans("tools/call work", "notifications/progress")
    assert tree(spans) == [
        "tools/call work client",
        "  tools/call work server",
        "    tools/call work client",
        "      tools/call work server",
        "        notifications/progress client",
        "          notifications/progress server",
        "            notifications/progress client",
        "              notifications/progress server",
    ]
    assert len({trace_id(span) for span in spans}) == 1


@each("behind", [LEGACY_REVISION, MODERN_REVISION])
@each("client", [LEGACY_REVISION, MODERN_REVISION])
def test_the_questions_of_a_server_are_in_the_trace_of_the_call(client: str, behind: str) -> None:
    exported = Exported()

    async def main() -> str:
        async with connect(exported, client, behind) as connected:
            with exported.provider.get_tracer("app").start_as_current_span("app"):
                return typedmcp.text_of(await connected.call_tool("ask"))

    assert asyncio.run(main()) == "Ada"
    spans = exported.spans("app", "tools/call ask", "elicitation/create")
    assert len({trace_id(span) for span in spans}) == 1
    assert "elicitation/create" in {span.name for span in spans}


@each("behind", [LEGACY_REVISION, MODERN_REVISION])
def test_a_gateway_without_telemetry_passes_trace_context_on(behind: str) -> None:
    exported = Exported()

    async def main() -> None:
        async with connect(exported, MODERN_REVISION, behind, at_gateway=False) as connected:
            await connected.call_tool("work")

    asyncio.run(main())
    sent, received = exported.spans("tools/call work")
    assert received.parent is not None
    assert (received.parent.span_id, trace_id(received)) == (span_id(sent), trace_id(sent))
