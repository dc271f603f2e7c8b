"""Our client uses servers of others over HTTP: the same as over stdio, and features of HTTP."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests.interop import install, test_servers
from tests.interop.servers.started import OLDER, Server, connected_over_http, plain, run, served
from tests.interop.test_servers import (
    EVERYTHING,
    GO,
    HTTP,
    JAVA,
    OFFER,
    PYTHON_1,
    PYTHON_2,
    RUST,
    SDKS,
    SSE,
    STDIO,
    TYPESCRIPT,
    Sdk,
    text,
)
from tests.ports import reserved_port
from typedmcp import sync
from typedmcp.client import Client, connect

pytestmark = pytest.mark.long


class HttpSdk(Sdk):
    """A connection over HTTP to a server on an official SDK."""

    def __init__(self, server: Server, revision: str, transport: str) -> None:
        self.transport = transport
        super().__init__(server, revision)

    def connected(self, server: Server, *arguments: str, **options: Any) -> AbstractAsyncContextManager[Client]:
        return connected_over_http(server, self.transport, *arguments, **options)


@pytest.fixture(scope="module", params=[line for line in SDKS if line[2] != STDIO], ids=str)
def opened_sdk(request: pytest.FixtureRequest) -> Generator[HttpSdk]:
    line = HttpSdk(*request.param)
    yield line
    line.close()


@pytest.fixture
def sdk(opened_sdk: HttpSdk) -> HttpSdk:
    opened_sdk.begin_case()
    return opened_sdk


for _name, _test in vars(test_servers).items():  # what holds over stdio holds here
    if _name.startswith("test_") and "sdk" in inspect.signature(_test).parameters:
        globals()[_name] = _test


EVERY = [
    (TYPESCRIPT, HTTP), (PYTHON_1, HTTP), (PYTHON_1, SSE), (PYTHON_2, HTTP), (PYTHON_2, SSE), (GO, HTTP), (JAVA, HTTP),
    (RUST, HTTP),
]  # fmt: skip
every_server = pytest.mark.parametrize(("server", "transport"), EVERY, ids=str)


@every_server
def test_the_client_finds_the_server_s_revision(server: Server, transport: str) -> None:
    async def main() -> None:
        async with connected_over_http(server, transport) as client:
            assert client.revision == (server.newest if transport == HTTP else OLDER)
            assert plain(await client.call_tool("text")) == OFFER["results"]["text"]

    run(main)


@every_server
def test_the_server_s_revision_is_remembered(server: Server, transport: str) -> None:
    async def main() -> None:
        async with served(server, transport) as url:
            for _ in range(2):
                async with connect(url, timeout=60.0) as client:
                    assert client.revision == (server.newest if transport == HTTP else OLDER)
                    assert plain(await client.call_tool("text")) == OFFER["results"]["text"]

    run(main)


@every_server
def test_the_blocking_client_calls_over_http_too(server: Server, transport: str) -> None:
    async def main() -> None:
        async with served(server, transport) as url:
            assert await asyncio.to_thread(texts, url) == [text_of(OFFER)] * 2

    def texts(url: str) -> list[str]:
        with sync.connect(url, timeout=60.0) as client:
            return [text(client.call_tool("text")) for _ in range(2)]

    run(main)


def text_of(offer: dict[str, Any]) -> str:
    said: str = offer["results"]["text"]["content"][0]["text"]
    return said


@every_server
def test_a_call_to_a_server_that_dies_ends(server: Server, transport: str) -> None:
    async def main() -> None:
        async with served(server, transport) as url, connect(url, timeout=60.0, on_diagnostic=print) as client:
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.call_tool("crash")
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.ping()

    run(main)


@pytest.mark.parametrize("server", [GO, JAVA, RUST], ids=str)
def test_a_server_of_a_compiled_language_is_used_on_each_of_its_revisions(server: Server) -> None:
    async def main() -> None:
        async with served(server, HTTP) as url:
            for revision in install.PROGRAMS[server.name].revisions[1:]:  # the first one has SSE in its place
                async with connect(url, revisions=[revision], timeout=60.0) as client:
                    await test_servers.use_on(revision, client)

    run(main)


def test_a_java_server_without_sessions_is_used_with_concurrent_calls() -> None:
    async def main() -> None:
        async with connected_over_http(JAVA, "stateless") as client:
            assert client.revision == OLDER
            for tool in OFFER["results"]:
                assert plain(await client.call_tool(tool)) == OFFER["results"][tool]
            results = await asyncio.gather(*(client.call_tool("echo", {"value": n}) for n in range(50)))
            assert [plain(result)["structuredContent"]["value"] for result in results] == list(range(50))
            for uri, contents in OFFER["contents"].items():
                assert plain(await client.read_resource(uri)) == {"contents": contents}
            with pytest.raises(typedmcp.InvalidParamsError):
                await client.call_tool("none")

    run(main)


def test_a_java_server_is_used_over_sse_on_the_revision_that_has_it() -> None:
    async def main() -> None:
        async with connected_over_http(JAVA, SSE) as client:
            assert client.revision == install.PROGRAMS["java"].revisions[0]
            assert plain(await client.call_tool("text")) == OFFER["results"]["text"]
            values = await asyncio.gather(*(client.call_tool("echo", {"value": n}) for n in range(50)))
            assert [value.content for value in values] == [[]] * 50
            steps: list[float] = []
            await client.call_tool("progress", on_progress=lambda step: steps.append(step.progress))
            assert steps == [1, 2, 3, 4, 5]

    run(main)


def test_many_listeners_do_not_block_calls() -> None:
    async def main() -> None:
        async with connected_over_http(PYTHON_2, HTTP) as client:
            listeners = [client.listen(tools=True) for _ in range(50)]
            await asyncio.gather(*(listener.__aenter__() for listener in listeners))
            await asyncio.gather(*(client.call_tool("change", {"what": "tools"}) for _ in range(20)))
            changes = await asyncio.gather(*(anext(listener) for listener in listeners))
            assert {change.kind for change in changes} == {"tools"}
            await asyncio.gather(*(listener.close() for listener in listeners))

    run(main)


# npm's server-everything


@asynccontextmanager
async def everything(mode: str) -> AsyncGenerator[str]:
    """Start the server in a mode, and yield its URL. It prints no URL, and does not end by itself."""
    started = EVERYTHING.parameters(mode)
    from asyncio import subprocess

    with reserved_port() as port:
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "env": {"PORT": str(port)}}
        process = await asyncio.create_subprocess_exec(started.command, *started.args, **pipes)
        assert process.stderr is not None
        try:
            while b"port" not in (line := await asyncio.wait_for(process.stderr.readline(), 120)).lower():
                assert line, "the server ended"
            yield f"http://127.0.0.1:{port}/{'sse' if mode == 'sse' else 'mcp'}"
        finally:
            process.kill()
            await process.communicate()


@pytest.mark.parametrize("mode", ["sse", "streamableHttp"])
def test_everything_works_over_http(mode: str) -> None:
    async def main() -> None:
        answer, steps = test_servers.answer, list[Any]()
        async with everything(mode) as url, connect(url, timeout=60.0, sample=answer, on_diagnostic=print) as client:
            assert client.revision == OLDER
            assert text(await client.call_tool("echo", {"message": "Grüße"})) == "Echo: Grüße"
            arguments = {"duration": 0.2, "steps": 2}
            await client.call_tool("trigger-long-running-operation", arguments, on_progress=steps.append)
            assert [step.progress for step in steps] == [1, 2]
            asked = await client.call_tool("trigger-sampling-request", {"prompt": "Which?", "maxTokens": 10})
            assert "Paris, of course." in text(asked)

    run(main)
