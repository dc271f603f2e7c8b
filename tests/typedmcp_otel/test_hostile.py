"""Peers send any `_meta`, names and errors: what is recorded stays small, and requests are served all the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import typedmcp
from tests.cases import each
from tests.growth import growth
from tests.helpers import CLIENT, META
from tests.spoken import MODERN_REVISION
from tests.typedmcp_otel.exported import Exported, attributes, span_id, trace_id
from typedmcp_otel.carrier import TraceReader

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"

server = typedmcp.Server("hostile")


@server.tool
async def echo() -> dict[str, str]:
    return {name: str(value) for name, value in baggage.get_all().items()}


async def call(exported: Exported, meta: dict[str, Any], *, revision: str = MODERN_REVISION, **params: Any) -> Any:
    """Send one call of a tool with these members of `_meta`, and return the response."""
    near, far = typedmcp.memory_pair()
    config = typedmcp.ServerConfig(server, telemetry=exported.telemetry, on_diagnostic=lambda _: None)
    serving = asyncio.ensure_future(typedmcp.serve_async(config, far))
    messages: list[dict[str, Any]] = []
    if revision != MODERN_REVISION:
        opening = {**CLIENT, "protocolVersion": revision}
        messages = [
            {"id": 0, "method": "initialize", "params": opening},
            {"method": "notifications/initialized"},
        ]
    own = META if revision == MODERN_REVISION else {}
    messages.append({"id": 1, "method": "tools/call", "params": {"name": "echo", **params, "_meta": {**own, **meta}}})
    near.write(b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in messages))
    data = b""
    while data.count(b"\n") < sum("id" in each for each in messages):
        data += await near.read()
    await near.close()
    await serving
    return json.loads(data.splitlines()[-1])


@each("revision", ["2025-06-18", "2025-11-25", MODERN_REVISION])
def test_a_trace_of_any_client_is_continued(revision: str) -> None:
    exported = Exported()
    answer = asyncio.run(call(exported, {"traceparent": TRACEPARENT, "tracestate": "a=b"}, revision=revision))
    assert "result" in answer
    (span,) = exported.spans("tools/call echo")
    assert (f"{trace_id(span):x}", span.parent and f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.parent is not None
    assert span.parent.trace_state.get("a") == "b"


@each(
    "traceparent",
    [
        "", "00", "x" * 100_000, f"{TRACEPARENT}-{'a' * 500}", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}x-{PARENT}-01", "00-\x00\x1b[31m-01", 7, None, True,
        ["00"], {"00": TRACEPARENT},
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_a_malformed_traceparent_is_ignored(traceparent: Any) -> None:
    exported = Exported()
    assert "result" in asyncio.run(call(exported, {"traceparent": traceparent}))
    (span,) = exported.spans("tools/call echo")
    assert span.parent is None


@each("state", ["x" * 1_000_000, ",".join(f"k{n}=v" for n in range(2000)), "=", "\x00", 3, ["a"]])
def test_a_malformed_tracestate_does_not_hurt_the_trace(state: Any) -> None:
    exported = Exported()
    assert "result" in asyncio.run(call(exported, {"traceparent": TRACEPARENT, "tracestate": state}))
    (span,) = exported.spans("tools/call echo")
    assert span.parent is not None
    assert f"{trace_id(span):x}" == TRACE
    assert len(span.parent.trace_state) <= 32


@each("text", ["a=1,b=%F0%9F", "x" * 1_000_000, "a=" + "y" * 8191, ",,,;;==", "\x00\n", 5, {"a": 1}])
def test_baggage_is_bounded(text: Any) -> None:
    exported = Exported()
    answer = asyncio.run(call(exported, {"traceparent": TRACEPARENT, "baggage": text}))
    carried = answer["result"]["structuredContent"]
    assert sum(len(name) + len(value) for name, value in carried.items()) <= 8192
    if text == "a=1,b=%F0%9F":
        assert carried["a"] == "1"
    if not isinstance(text, str) or len(text) > 8192:
        assert carried == {}


@each(
    "text, carried",
    [
        ("a=1,b=2", {"a": "1", "b": "2"}),
        (" \ta = 1 ,\t, b=%20x%20 ", {"a": "1", "b": "x"}),
        ("a=1;p;q = 2; r=3,b=", {"a": "1;p;q=2;r=3", "b": ""}),
        ("a=x=y", {"a": "x=y"}),
        ("bad,a=1,b c=2,d=e f,=3,g=\x01,h=\u00e9,i=2", {"a": "1", "i": "2"}),
        (f"{'k' * 5000}=1,a=1", {"a": "1"}),
        (",".join(f"{n}=" for n in range(500)), {str(n): "" for n in range(180)}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_valid_entries_of_baggage_are_read_and_others_left_out(text: str, carried: dict[str, str]) -> None:
    answer = asyncio.run(call(Exported(), {"traceparent": TRACEPARENT, "baggage": text}))
    assert answer["result"]["structuredContent"] == carried


@each("part", [" ", ",", "a=1;", "a=1,", "=", "a=1; ", ";a", "x"])
@each("end", ["", "\x01", ",a=1"])
def test_baggage_is_read_in_linear_time(part: str, end: str) -> None:
    propagator, reader = W3CBaggagePropagator(), TraceReader()

    def read(text: str) -> None:
        reader.extract({"baggage": f"a=1;{text}{end}"}, propagator, context.Context())

    assert growth(read, part, characters=400, times=20) < 5


@each(
    "meta",
    [{"baggage": "x\nCRITICAL root: \x1b]0;pwn\x07"}, {"tracestate": "x\nCRITICAL root"}, {"baggage": "x," * 4000}],
)
def test_malformed_trace_context_is_logged_once_and_without_its_text(
    meta: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    exported = Exported()
    for _ in range(3):
        assert "result" in asyncio.run(call(exported, {"traceparent": TRACEPARENT, **meta}))
    (record,) = caplog.records
    assert f"_meta.{next(iter(meta))} of a peer" in record.getMessage()
    assert "pwn" not in caplog.text
    assert "CRITICAL" not in caplog.text


def test_a_propagator_without_baggage_reads_and_sends_none() -> None:
    exported = Exported(propagator=TraceContextTextMapPropagator())
    answer = asyncio.run(call(exported, {"traceparent": TRACEPARENT, "baggage": "a=1"}))
    assert answer["result"]["structuredContent"] == {}


def test_a_server_can_begin_traces_of_its_own() -> None:
    exported = Exported(propagator=CompositePropagator([]))
    assert "result" in asyncio.run(call(exported, {"traceparent": TRACEPARENT}))
    (span,) = exported.spans("tools/call echo")
    assert span.parent is None
    assert f"{trace_id(span):032x}" != TRACE


def test_baggage_of_the_caller_reaches_the_handler() -> None:
    both = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
    exported = Exported(propagator=both)

    async def main() -> Any:
        telemetry = exported.telemetry
        async with typedmcp.connect(typedmcp.ServerConfig(server, telemetry=telemetry), telemetry=telemetry) as client:
            token = context.attach(baggage.set_baggage("user", "ada"))
            try:
                return (await client.call_tool("echo")).structured_content
            finally:
                context.detach(token)

    assert asyncio.run(main()) == {"user": "ada"}


def test_ids_and_messages_of_peers_are_cut_and_escaped() -> None:
    exported = Exported()
    asyncio.run(call(exported, {}, name="\x1b[31m" + "n" * 100_000))
    (span,) = exported.spans("tools/call")
    assert len(span.status.description or "") <= 256
    assert (span.status.description or "").isprintable()
    assert all(len(str(value)) <= 256 for value in attributes(span).values())


def test_a_trace_that_is_not_sampled_is_not_recorded_and_goes_on() -> None:
    exported = Exported(ParentBased(ALWAYS_OFF))
    seen: list[Any] = []
    watched = typedmcp.Server("watched")

    @watched.tool
    async def look(ctx: typedmcp.Context) -> str:
        seen.append(ctx.meta["traceparent"])
        return ""

    async def main() -> None:
        telemetry = exported.telemetry
        async with typedmcp.connect(typedmcp.ServerConfig(watched, telemetry=telemetry), telemetry=telemetry) as client:
            await client.call_tool("look")

    asyncio.run(main())
    assert exported.spans() == []
    assert seen[0].endswith("-00") or seen[0].endswith("-02"), "the flag says that it is not sampled"
    points = exported.points("mcp.server.operation.duration")
    assert "tools/call" in {kind["mcp.method.name"] for kind, _ in points}, "metrics do not depend on sampling"


def test_a_client_that_names_the_parent_cannot_forge_spans_of_others() -> None:
    """The span gets an id of its own, whatever a peer sends."""
    exported = Exported()
    for _ in range(2):
        asyncio.run(call(exported, {"traceparent": TRACEPARENT}))
    spans = exported.spans("tools/call echo")
    assert len({span_id(span) for span in spans} | {int(PARENT, 16)}) == 3


def test_an_id_of_any_length_is_served() -> None:
    exported = Exported()
    for id in ("9" * 5000, f'"{"x" * 5000}"', "-5"):
        line = f'{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{json.dumps(META)}}}}}\n'

        async def main(line: str = line) -> bytes:
            near, far = typedmcp.memory_pair()
            config = typedmcp.ServerConfig(server, telemetry=exported.telemetry, on_diagnostic=lambda _: None)
            serving = asyncio.ensure_future(typedmcp.serve_async(config, far))
            near.write(line.encode())
            data = await near.read()
            await near.close()
            await serving
            return data

        assert b'"jsonrpc":"2.0"' in asyncio.run(main())
    for span in exported.spans():
        assert len(str(attributes(span).get("jsonrpc.request.id", ""))) <= 256
