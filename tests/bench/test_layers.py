"""The processor time of a call by layer: the layer of a sample, and the picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.chart import render_layers
from bench.results import Figures, Row, Table
from bench.suites import layers

LOOP = "run (uvicorn/server.py:86);run_forever (loop.c:33192);uv__io_poll (linux.c:1546)"
RECEIVED = f"{LOOP};HttpProtocol.data_received (typedmcp_http/protocol.py:102)"
STACKS = {
    LOOP: "event loop",
    f"{LOOP};epoll_pwait (libc.so.6)": "system calls",
    RECEIVED: "HTTP",
    f"{RECEIVED};AsgiApp.serve_known (typedmcp/server/http/asgi.py:364)": "MCP over HTTP",
    f"{RECEIVED};write (loop.c:110189);UVStream__try_write (loop.c:1);write (libc.so.6)": "system calls",
    f"{RECEIVED};Engine.decode (typedmcp/server/engine.py:9);json_decode (msgspec/_core)": "decoding, checks, encoding",
    f"{RECEIVED};_EverydayMeta.__call__ (mcpspec/support/everyday_structs.py:8)": "decoding, checks, encoding",
    f"{RECEIVED};HttpEchoHandler.call_tool (echo_handler.py:22)": "handler",
    f"{LOOP};HttpToolsProtocol.data_received (uvicorn/protocols/http/httptools_impl.py:1)": "HTTP",
    f"{LOOP};RequestResponseCycle.send (uvicorn/protocols/http/httptools_impl.py:1)": "ASGI",
    f"{LOOP};ProxyHeadersMiddleware.__call__ (uvicorn/middleware/proxy_headers.py:30)": "ASGI",
}


def test_a_sample_belongs_to_the_innermost_layer_of_its_stack() -> None:
    found = {stack: layers.find_layer(stack) for stack in STACKS}
    assert found == STACKS


def test_shares_are_those_of_the_samples() -> None:
    found = layers.count_layers([f"{LOOP} 30", f"{RECEIVED} 10"])
    assert found == {**dict.fromkeys(layers.LAYERS, 0), "event loop": 0.75, "HTTP": 0.25}
    with pytest.raises(ValueError, match="no samples"):
        layers.count_layers([])


def test_the_bars_of_the_picture_are_as_long_as_their_microseconds() -> None:
    costs = {name: float(number) for number, name in enumerate(layers.COLUMNS[:-1], 1)}
    rows = [
        Row(name, {**{key: Figures([factor * cost]) for key, cost in costs.items()}, "in all": Figures([factor * 28])})
        for name, factor in (("slow & old", 2), ("fast", 1))
    ]
    table = Table("layers/http", "Where <it> goes", "", "µs", "lower", "fast", layers.COLUMNS, [*rows, Row("none", {})])
    picture = ElementTree.fromstring(render_layers(table))  # noqa: S314
    bars = [
        float(one.attrib["width"]) for one in picture if one.tag.endswith("rect") and one.attrib.get("height") == "34"
    ]
    slow, fast = bars[:7], bars[7:]
    assert [round(width / fast[0], 1) for width in fast] == pytest.approx([1, 2, 3, 4, 5, 6, 7], abs=0.1)
    assert slow == pytest.approx([2 * width for width in fast], abs=0.2)
    texts = [one.text for one in picture if one.tag.endswith("text")]
    assert "slow & old" in texts
    assert "56.0 µs" in texts
