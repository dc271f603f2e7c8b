"""A page on the official SDK for Apps, with our bridge as its host."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import Any

import pytest

import typedmcp
from tests.interop import install
from tests.interop.peers import HERE, node
from tests.paths import SCHEMA
from tests.server.scripted import run
from tests.typedmcp_extensions.apps.test_bridge import URI, weather
from typedmcp.dialect import structs
from typedmcp_extensions.apps import AppsClient, ContainerDimensions, HostContext, PageAction, PageBridge, load_page

pytestmark = pytest.mark.long

MODULES = install.INTEROP / "apps" / "node_modules"
SIZE = "ui/notifications/size-changed"


def test_the_pinned_schema_is_the_one_in_the_package() -> None:
    pin = json.loads((SCHEMA / "PINNED.json").read_bytes())["ext/apps"]
    package, _, version = pin["commit"].rpartition("@")
    if not (MODULES / package).is_dir():
        pytest.skip("`make interop` installs the package")
    assert json.loads((MODULES / package / "package.json").read_bytes())["version"] == version
    assert sha256((MODULES / package / pin["path"]).read_bytes()).hexdigest() == pin["upstream_sha256"]


class Host:
    """Keeps what the page asks for."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.actions: list[str] = []

    def consent(self, action: PageAction) -> bool:
        self.actions.append(action.method)
        return True

    def keep(self, name: str) -> Any:
        def keep(value: Any) -> Any:
            self.said[name] = value
            return value

        return keep

    async def show(self, client: typedmcp.Client) -> dict[str, Any]:
        """Show the page, and return what it saw."""
        process = await asyncio.create_subprocess_exec(
            node(), HERE / "app_page.mjs", MODULES, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        write = process.stdin.write
        tool = next(tool for tool in [tool async for tool in client.tools()] if tool.name == "rain")
        bridge = PageBridge(
            client,
            await load_page(client, URI),
            lambda message: write(message + b"\n"),
            consent=self.consent,
            tool=tool,
            context=HostContext(
                theme="dark",
                container_dimensions=ContainerDimensions(width=400, max_height=600),
                display_mode="inline",
                available_display_modes=["inline", "fullscreen", "pip"],
            ),
            open_link=self.keep("link"),
            add_message=self.keep("message"),
            set_model_context=self.keep("context"),
            set_display_mode=self.keep("mode"),
            on_size=self.keep("size"),
            on_log=self.keep("log"),
            on_initialized=self.keep("page"),
            name="ours",
            version="1.0",
        )
        await bridge.send_tool_input_partial({"city": "Ber"})
        await bridge.send_tool_input({"city": "Bergen"})
        await bridge.update_context(HostContext(locale="nb-NO"))
        closing: asyncio.Task[None] | None = None
        saw: dict[str, Any] = {}
        try:
            async for line in process.stdout:
                if line.startswith(b"saw "):
                    saw = json.loads(line[4:])
                    continue
                await bridge.receive(line)
                if b"ui/notifications/initialized" in line:
                    await bridge.send_tool_result(await client.call_tool("rain", {"city": "Bergen"}))
                    await bridge.update_context(HostContext(theme="light"))
                elif SIZE.encode() in line:
                    closing = asyncio.create_task(bridge.close("enough", seconds=20))
                    closing.add_done_callback(lambda _: process.kill())
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
        assert closing is not None
        await closing
        return saw


def test_the_official_page_and_our_host_understand_each_other() -> None:
    async def main() -> None:
        host = Host()
        async with asyncio.timeout(60), typedmcp.connect(weather(), extensions=[AppsClient()]) as client:
            saw = await host.show(client)
        assert (saw["partial"], saw["input"], saw["result"]) == ({"city": "Ber"}, {"city": "Bergen"}, {"Bergen": 3})
        assert saw["host"] == {"name": "ours", "version": "1.0"}
        assert saw["capabilities"].keys() >= {"openLinks", "serverTools", "serverResources", "logging", "sandbox"}
        assert (saw["context"]["theme"], saw["context"]["locale"]) == ("dark", "nb-NO")
        assert saw["context"]["toolInfo"]["tool"]["name"] == "rain"
        assert {"theme": "light"} in saw["contexts"]
        assert (saw["called"], saw["read"], saw["saved"]) == ({"Oslo": 3}, "3 gauges", {"Voss": 3})
        assert saw["refused"]["code"] == -32000
        assert (saw["link"], saw["message"], saw["model"]) == ({}, {}, {})
        assert saw["badLink"]["code"] == -32000
        assert saw["mode"] == {"mode": "fullscreen"}
        assert saw["teardown"] == {}, "the SDK drops the reason, which the specification has"
        assert host.said["page"].name == "official"
        assert host.said["link"] == "https://example.com"
        assert host.said["message"] == [structs.TextContent(text="hello")]
        assert host.said["context"].structured_content == {"city": "Oslo"}
        assert (host.said["log"].level, host.said["log"].data) == ("info", "a log")
        assert (host.said["size"].width, host.said["size"].height) == (10, 600)
        assert "ui/open-link" in host.actions

    run(main)
