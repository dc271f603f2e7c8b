"""One trace across processes: over stdio, and over HTTP without and with a session."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.listening import listening
from tests.paths import ROOT
from tests.spoken import MODERN_REVISION
from tests.typedmcp_otel.exported import Exported, attributes, span_id, trace_id

pytestmark = pytest.mark.long

SCRIPT = str(ROOT / "tests" / "servers" / "traced.py")


@contextmanager
def running(transport: str, file: Path) -> Generator[Any]:
    """Yield the target of a server that writes its spans to a file."""
    command = [sys.executable, SCRIPT, str(file)]
    if transport == "stdio":
        yield command
        return
    with listening([*command, "http"]) as server:
        yield f"{server.address}/mcp"


def spans_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def answer(_: object) -> dict[str, str]:
    return {"value": "Ada"}


def ignore(_: object) -> None:
    pass


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN_REVISION])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_trace_goes_through_both_processes(transport: str, revision: str, tmp_path: Path) -> None:
    file, exported = tmp_path / "spans", Exported()

    async def main(target: Any) -> None:
        options: Any = {"telemetry": exported.telemetry, "revisions": [revision], "elicit": answer}
        async with typedmcp.connect(target, **options) as client:
            with exported.provider.get_tracer("app").start_as_current_span("app"):
                await client.call_tool("work", on_progress=ignore)
                await client.call_tool("ask")

    with running(transport, file) as target:
        asyncio.run(main(target))
    (app,) = exported.spans("app")
    received = [span for span in spans_in(file) if span["attributes"].get("gen_ai.tool.name")]
    own = {f"0x{span_id(span):016x}": span for span in exported.spans()}
    assert {span["context"]["trace_id"] for span in received} == {f"0x{trace_id(app):032x}"}
    for span in received:
        sent = own[span["parent_id"]]
        assert (sent.name, sent.kind.name, span["kind"]) == (span["name"], "CLIENT", "SpanKind.SERVER")
        at_client = {name: value for name, value in attributes(sent).items() if not name.startswith("server.")}
        assert span["attributes"] == at_client
    assert received[0]["attributes"]["network.transport"] == ("pipe" if transport == "stdio" else "tcp")
    has_session = transport == "http" and revision != MODERN_REVISION
    assert ("mcp.session.id" in received[0]["attributes"]) is has_session


def test_a_trace_goes_over_http_with_sse(tmp_path: Path) -> None:
    file, exported = tmp_path / "spans", Exported()

    async def main(url: str) -> None:
        async with typedmcp.connect(url, telemetry=exported.telemetry, revisions=["2024-11-05"], sse=True) as client:
            await client.call_tool("work", on_progress=ignore)

    with listening([sys.executable, SCRIPT, str(file), "http"]) as served:
        asyncio.run(main(f"{served.address}/sse"))
    (sent,) = exported.spans("tools/call work")
    (received,) = [span for span in spans_in(file) if span["name"] == "tools/call work"]
    assert received["parent_id"] == f"0x{span_id(sent):016x}"
    assert attributes(sent)["server.address"] == "127.0.0.1"
    for recorded in (attributes(sent), received["attributes"]):
        assert (recorded["network.transport"], recorded["network.protocol.name"]) == ("tcp", "http")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_what_a_server_sends_is_continued_in_the_client(transport: str, tmp_path: Path) -> None:
    file, exported = tmp_path / "spans", Exported()

    async def main(target: Any) -> None:
        options: Any = {"telemetry": exported.telemetry, "revisions": ["2025-11-25"], "elicit": answer}
        async with typedmcp.connect(target, **options) as client:
            await client.call_tool("work", on_progress=ignore)
            await client.call_tool("ask")

    with running(transport, file) as target:
        asyncio.run(main(target))
    theirs = {span["context"]["span_id"]: span for span in spans_in(file)}
    for name in ("notifications/progress", "elicitation/create"):
        (span,) = exported.spans(name)
        assert span.parent is not None
        sent = theirs[f"0x{span.parent.span_id:016x}"]
        assert (sent["name"], sent["kind"], span.kind.name) == (name, "SpanKind.CLIENT", "SERVER")
        assert theirs[sent["parent_id"]]["name"].startswith("tools/call")
        assert span.parent.trace_id == trace_id(span)
