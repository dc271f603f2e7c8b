"""Gateways over HTTP: calls to one server through each of them, beside direct calls of the server.

On Linux the gateways have one core. The server and the load generator share the other one.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from bench.plan import Plan
from bench.results import Table
from bench.suites.http import FOLDER, OURS, OWN, Load, make_uvicorn_command, measure_contenders, start_listening
from bench.suites.processes import CONTENDERS, LEGACY, MODERN, Contender, make_python_command
from tests.interop import install

__all__ = ["DIRECT", "list_gateways", "measure_tables", "serve_upstream"]

DIRECT = "without a gateway"
GATEWAYS = CONTENDERS / "gateway"


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield the tables of gateways: to a server over HTTP, and to one over standard input and output."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise RuntimeError("wrk, the load generator, is not installed: `apt install wrk` or `brew install wrk`")
    with serve_upstream():
        for revision in (MODERN,) if plan.quick else (MODERN, LEGACY):
            yield measure_contenders(
                plan,
                Load(wrk, revision, "echo", may_stream=True),
                (1, 32),
                [*list_gateways(plan, revision)],
                name=f"gateway/http-{revision}",
                title=f"Gateways over HTTP, {revision}",
                about="Calls of a tool that echoes 20 bytes, through a gateway to a typedmcp handler over HTTP in "
                "another process. Without a gateway the handler has the core that the gateways have otherwise.",
                reference=DIRECT,
            )
    if not plan.quick:
        yield measure_contenders(
            plan,
            Load(wrk, LEGACY, "echo", may_stream=True),
            (1, 32),
            [*list_bridges()],
            name=f"gateway/stdio-{LEGACY}",
            title=f"Gateways between HTTP and standard input and output, {LEGACY}",
            about="Calls of a tool that echoes 20 bytes over HTTP, to a typedmcp handler over standard input and "
            "output. It has the core of its gateway, since that starts it. Without a gateway the handler serves HTTP.",
            reference=DIRECT,
        )


@contextmanager
def serve_upstream() -> Generator[None]:
    """Run the server behind the gateways, which find its address in the environment."""
    server = Contender("the server behind the gateways", make_uvicorn_command(FOLDER, "typedmcp_handler:app", OWN))
    with start_listening(server, core=1) as (_, port):
        os.environ["BENCH_UPSTREAM"] = f"http://127.0.0.1:{port}/mcp"
        yield


def list_gateways(plan: Plan, revision: str) -> Iterator[Contender]:
    """List the gateways. Their commands need a port in addition."""
    yield Contender(DIRECT, make_uvicorn_command(FOLDER, "typedmcp_handler:app", OWN))
    yield Contender(OURS, make_uvicorn_command(GATEWAYS, "one_target:app", OWN))
    if not plan.quick:
        note = "" if revision == MODERN else "one session at the server for each client"
        yield Contender("fastmcp, create_proxy", make_uvicorn_command(GATEWAYS, "fastmcp_proxy:app"), note, timeout=60)


def list_bridges() -> Iterator[Contender]:
    """List the programs that serve a server over standard input and output over HTTP."""
    server = make_python_command(CONTENDERS / "stdio" / "typedmcp_handler.py")
    yield Contender(DIRECT, make_uvicorn_command(FOLDER, "typedmcp_handler:app", OWN))
    yield Contender(OURS, [*make_python_command(GATEWAYS / "command.py"), *server, "--port"])
    proxy = install.python("mcp-proxy").with_name("mcp-proxy")
    if proxy.exists():
        note = "one process of the server for all clients"
        run = f'exec {shlex.join([str(proxy), "--log-level", "ERROR"])} --port "$0" -- {shlex.join(server)}'
        yield Contender("mcp-proxy", ["sh", "-c", run], note, timeout=60)
    bridge = install.INTEROP / "bridge" / "node_modules" / "supergateway" / "dist" / "index.js"
    if bridge.exists():
        output = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--stdio"]
        command = [str(install.node() / "bin" / "node"), str(bridge), *output, " ".join(server), "--streamableHttpPath"]
        yield Contender(
            "supergateway", [*command, "/mcp", "--port"], "a process of the server for each session", timeout=60
        )
