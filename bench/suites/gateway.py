"""Gateways over HTTP: calls to one server through each of them, beside direct calls of the server.

On Linux the gateways have one core. The server and the load generator share the other one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from bench.plan import Plan
from bench.results import Table
from bench.suites.http import FOLDER, OURS, Load, make_uvicorn_command, measure_contenders, start_listening
from bench.suites.processes import CONTENDERS, MODERN, Contender

__all__ = ["measure_tables"]

DIRECT = "without a gateway"


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield the table of gateways."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise RuntimeError("wrk, the load generator, is not installed: `apt install wrk` or `brew install wrk`")
    server = Contender("the server behind the gateways", make_uvicorn_command(FOLDER, "typedmcp_handler:app"))
    with start_listening(server, core=1) as (_, port):
        os.environ["BENCH_UPSTREAM"] = f"http://127.0.0.1:{port}/mcp"
        yield measure_contenders(
            plan,
            Load(wrk, MODERN, "echo"),
            (1, 32),
            [*list_gateways(plan)],
            name=f"gateway/http-{MODERN}",
            title=f"Gateways over HTTP, {MODERN}",
            about="Calls of a tool that echoes 20 bytes, with JSON responses, through a gateway to a typedmcp handler "
            "in another process. Without a gateway the handler has the core that the gateways have otherwise.",
            reference=DIRECT,
        )


def list_gateways(plan: Plan) -> Iterator[Contender]:
    """List the gateways. Their commands need a port in addition."""
    folder = CONTENDERS / "gateway"
    yield Contender(DIRECT, make_uvicorn_command(FOLDER, "typedmcp_handler:app"))
    yield Contender(OURS, make_uvicorn_command(folder, "typedmcp_gateway:app"))
    if not plan.quick:
        yield Contender("fastmcp, create_proxy", make_uvicorn_command(folder, "fastmcp_proxy:app"), timeout=60)
