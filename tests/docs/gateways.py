"""The tables of docs/gateway.md: clients and servers of all revisions. `python -m tests.docs.gateways` makes them.

Everything is real: processes of servers, the command `typedmcp proxy` over standard input and output, and a gateway
over HTTP. A revision without Streamable HTTP uses HTTP with SSE, on either side.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import typedmcp
from tests.docs.markdown import replace_block
from tests.paths import ROOT
from tests.serving import serving_http
from tests.spoken import SUPPORTED
from tests.typedmcp_gateway.cases import CASES, connect_options, run_case, unsaid
from tests.typedmcp_gateway.everyday_server import starting
from typedmcp.revisions.features import FEATURES
from typedmcp_gateway import Gateway

__all__ = ["PAGE", "TRANSPORTS", "cell", "expected_cell", "run_pair", "tables"]

PAGE: Final = ROOT / "docs" / "gateway.md"
TRANSPORTS: Final = {"stdio": "over standard input and output", "http": "over HTTP"}
PROXY: Final = (sys.executable, "-m", "typedmcp", "proxy", "--")


def cell(failed: list[str]) -> str:
    """Return the text of a cell, for the cases that could not be said."""
    short = [name.removeprefix("elicitation (").removesuffix(")") for name in failed]
    return f"all but {' and '.join(short)}" if short else "all"


def expected_cell(client: str, server: str) -> str:
    """Return the cell that two revisions should have."""
    return cell([name for name in CASES if unsaid(name, client, server) is not None])


async def run_pair(transport: str, client: str, server: str) -> dict[str, str | None]:
    """Run all cases with a client and a server of two revisions. Return the error of each that could not be said."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            target: Any = [*PROXY, *starting(server, "stdio")]
            options = connect_options(client)
        else:
            upstream = await stack.enter_async_context(_listening(server))
            is_sse = not FEATURES[server].has_streamable_http
            gateway = Gateway(upstream + ("/sse" if is_sse else "/mcp"), connect={"sse": is_sse})
            url = await stack.enter_async_context(serving_http(gateway.asgi(sse_path="/sse")))
            is_sse = not FEATURES[client].has_streamable_http
            target = url + ("/sse" if is_sse else "/mcp")
            options = connect_options(client)
            options["sse"] = is_sse
        caller = await stack.enter_async_context(typedmcp.connect(target, **options))
        assert caller.revision == client
        return {name: await run_case(case, caller) for name, case in CASES.items()}


@asynccontextmanager
async def _listening(revision: str) -> AsyncGenerator[str]:
    """Start the everyday server over HTTP, and yield its address."""
    process = await asyncio.create_subprocess_exec(*starting(revision, "http"), stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.terminate()
        await process.wait()


async def tables(run: Callable[[str, str, str], Awaitable[dict[str, str | None]]] = run_pair) -> str:
    """Render the tables, from a run of every pair."""
    made = f"\nThe cases: {', '.join(CASES)}.\n"
    found = {words: await _table(transport, run) for transport, words in TRANSPORTS.items()}
    for table in dict.fromkeys(found.values()):
        words = ", and ".join(words for words, each in found.items() if each == table)
        made += f"\nClients (rows) and servers (columns) {words}:\n\n{table}"
    return made


async def _table(transport: str, run: Callable[[str, str, str], Awaitable[dict[str, str | None]]]) -> str:
    made = f"| |{''.join(f' {server} |' for server in SUPPORTED)}\n|---|{'---|' * len(SUPPORTED)}\n"
    for client in SUPPORTED:
        made += f"| {client} |"
        for server in SUPPORTED:
            results = await run(transport, client, server)
            made += f" {cell([name for name, error in results.items() if error is not None])} |"
            print(transport, client, server, {name: error for name, error in results.items() if error})
        made += "\n"
    return made


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(text, "gateways", asyncio.run(tables())), encoding="utf-8")
