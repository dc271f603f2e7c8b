"""The bridge of a host: what a page may do, with consent and within bounds, and the order of messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import run
from typedmcp.dialect import structs
from typedmcp_extensions.apps import (
    AppPage,
    AppsClient,
    AppsServer,
    ContainerDimensions,
    HostContext,
    ModelContextParams,
    PageAction,
    PageBridge,
    SizeParams,
    load_page,
)

Json = dict[str, Any]
URI = "ui://weather/rain"
INITIALIZE: Json = {
    "appInfo": {"name": "rain", "version": "1"}, "appCapabilities": {}, "protocolVersion": "2026-01-26",
}  # fmt: skip


def weather() -> typedmcp.Server:
    server = typedmcp.Server("weather", extensions=[AppsServer()])
    page = AppPage(
        URI,
        "<p>",
        connect=["https://api.example.com", "https://other.example.com"],
        permissions=["camera", "microphone"],
    )

    @page.tool(server)
    def rain(city: str) -> dict[str, int]:
        return {city: 3}

    @page.tool(server, visible_to=["model"])
    def launch() -> str:
        raise AssertionError("pages do not call it")

    @page.tool(server, visible_to=["app"])
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @page.tool(server, visible_to=["app"])
    def fail() -> str:
        raise typedmcp.ToolError("no rain gauge")

    @server.resource("data://gauges")
    def gauges() -> str:
        return "3 gauges"

    return server


class Page:
    """A page as the host sees it: messages go to the bridge, and come from it."""

    def __init__(self) -> None:
        self.bridge: PageBridge | None = None
        self.consents: list[PageAction] = []
        self.diagnostics: list[str] = []
        self.agrees: Any = True
        self._inbox: asyncio.Queue[Json] = asyncio.Queue()
        self._last = 0

    def take(self, message: bytes) -> None:
        self._inbox.put_nowait(json.loads(message))

    def report(self, diagnostic: typedmcp.Diagnostic) -> None:
        self.diagnostics.append(diagnostic.text)

    def consent(self, action: PageAction) -> Any:
        self.consents.append(action)
        return self.agrees

    async def send(self, **message: Any) -> None:
        assert self.bridge is not None
        await self.bridge.receive(json.dumps({"jsonrpc": "2.0", **message}))

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self.send(method=method, params=params or {})

    async def start(self, method: str, params: Json | None = None) -> int:
        self._last += 1
        await self.send(id=self._last, method=method, params=params or {})
        return self._last

    async def receive(self) -> Json:
        async with asyncio.timeout(10):
            message = await self._inbox.get()
        assert message.pop("jsonrpc") == "2.0"
        return message

    async def request(self, method: str, params: Json | None = None) -> Any:
        """Send a request, and return its result, or the code and the text of its error."""
        id = await self.start(method, params)
        response = await self.receive()
        assert response["id"] == id
        if "error" in response:
            return response["error"]["code"], response["error"]["message"]
        return response["result"]

    async def initialize(self) -> Json:
        result: Json = await self.request("ui/initialize", INITIALIZE)
        await self.notify("ui/notifications/initialized")
        return result

    @property
    def is_empty(self) -> bool:
        return self._inbox.empty()


@asynccontextmanager
async def shown(*, initialize: bool = True, origins: Any = None, **options: Any) -> AsyncGenerator[Page]:
    """Yield a page of the weather server behind a bridge."""
    page = Page()
    async with typedmcp.connect(weather(), extensions=[AppsClient()]) as client:
        loaded = await load_page(client, URI, permissions=["camera"], origins=origins)
        options = {"on_diagnostic": page.report, **options}
        bridge = PageBridge(client, loaded, page.take, consent=page.consent, **options)
        page.bridge = bridge
        if initialize:
            await page.initialize()
        try:
            yield page
        finally:
            await bridge.close(seconds=0)


def test_a_page_can_make_few_diagnostics() -> None:
    async def main() -> None:
        reports: list[typedmcp.Diagnostic] = []
        limits = typedmcp.Limits(page_diagnostics=20)
        async with shown(limits=limits, on_diagnostic=reports.append) as page:
            for number in range(100):
                await page.notify(f"notifications/unknown{number}")
            await page.request("ping")
            assert len(reports) == 20
            assert reports[-1].kind is typedmcp.DiagnosticKind.LIMIT_REACHED
            assert reports[-1].text.endswith("further diagnostics are dropped for ten seconds (page_diagnostics)")

    run(main)


def test_the_page_learns_what_the_host_can_do_and_has_approved() -> None:
    async def main() -> None:
        context = HostContext(theme="dark", container_dimensions=ContainerDimensions(width=400, max_height=600))
        tool = structs.Tool(name="rain", input_schema={"type": "object"})
        options: Json = {"context": context, "tool": tool, "name": "acme", "version": "2"}
        async with shown(initialize=False, origins={"https://api.example.com"}, **options) as page:
            assert await page.initialize() == {
                "protocolVersion": "2026-01-26",
                "hostInfo": {"name": "acme", "version": "2"},
                "hostCapabilities": {
                    "serverTools": {"listChanged": True},
                    "serverResources": {},
                    "sandbox": {
                        "csp": {"connectDomains": ["https://api.example.com"]},
                        "permissions": {"camera": {}},
                    },
                },
                "hostContext": {
                    "toolInfo": {"tool": {"name": "rain", "inputSchema": {"type": "object"}}},
                    "theme": "dark",
                    "containerDimensions": {"width": 400, "maxHeight": 600},
                },
            }
            assert context.tool_info is None, "the host's own object stays as it is"

    run(main)


def test_callbacks_of_the_host_are_capabilities() -> None:
    def nothing(*_: object) -> None:
        pass

    async def main() -> None:
        options: Json = dict.fromkeys(("open_link", "add_message", "set_model_context", "on_log"), nothing)
        async with shown(initialize=False, **options) as page:
            capabilities = (await page.initialize())["hostCapabilities"]
            assert capabilities.keys() >= {"openLinks", "message", "updateModelContext", "logging"}
            assert capabilities["updateModelContext"].keys() - capabilities["message"].keys() == {"structuredContent"}

    run(main)


# Tools and resources


def test_a_page_calls_tools_of_its_server_with_consent() -> None:
    async def main() -> None:
        async with shown() as page:
            result = await page.request("tools/call", {"name": "rain", "arguments": {"city": "Bergen"}})
            assert result["structuredContent"] == {"Bergen": 3}
            [action] = page.consents
            assert (action.page.uri, action.method, action.params["arguments"]) == (
                URI,
                "tools/call",
                {"city": "Bergen"},
            )
            assert action.tool is not None
            assert action.tool.name == "rain"
            failed = await page.request("tools/call", {"name": "fail"})
            assert (failed["isError"], failed["content"][0]["text"]) == (True, "no rain gauge")

    run(main)


def test_a_page_reads_resources_of_its_server_with_consent() -> None:
    async def main() -> None:
        async with shown() as page:
            result = await page.request("resources/read", {"uri": "data://gauges"})
            assert result["contents"][0]["text"] == "3 gauges"
            assert [action.method for action in page.consents] == ["resources/read"]
            assert (await page.request("resources/read", {"uri": "data://none"}))[0] in (-32602, -32002)

    run(main)


@each("name", ["launch", "unknown"])
def test_a_tool_that_pages_may_not_call_is_refused_before_anyone_is_asked(name: str) -> None:
    async def main() -> None:
        async with shown() as page:
            assert await page.request("tools/call", {"name": name}) == (
                -32000, f"pages of this server have no tool '{name}'",
            )  # fmt: skip
            assert page.consents == []

    run(main)


@each("answer", [False, None, "yes", 1])
def test_only_true_is_consent(answer: object) -> None:
    async def main() -> None:
        async with shown() as page:
            page.agrees = answer
            assert await page.request("tools/call", {"name": "rain"}) == (-32000, "tools/call was denied")
            assert await page.request("resources/read", {"uri": "data://gauges"}) == (
                -32000,
                "resources/read was denied",
            )

    run(main)


def test_consent_may_wait_for_the_user_while_the_page_goes_on() -> None:
    async def main() -> None:
        async with shown() as page:
            page.agrees = asyncio.get_running_loop().create_future()
            asked = await page.start("tools/call", {"name": "rain", "arguments": {"city": "Bergen"}})
            assert await page.request("ping") == {}
            page.agrees.set_result(True)
            assert (await page.receive())["id"] == asked

    run(main)


def test_a_page_cancels_its_call() -> None:
    async def main() -> None:
        async with shown() as page:
            id = await page.start("tools/call", {"name": "wait", "arguments": {"seconds": 3600}})
            await page.notify("notifications/cancelled", {"requestId": id})
            await page.notify("notifications/cancelled", {"requestId": []})
            assert await page.request("ping") == {}
            assert page.is_empty

    run(main)


# Links, messages, context, looks


def test_links_messages_and_context_reach_the_host() -> None:
    async def main() -> None:
        links: list[str] = []
        messages: list[Any] = []
        contexts: list[ModelContextParams] = []

        async def open_link(url: str) -> None:
            links.append(url)

        async with shown(open_link=open_link, add_message=messages.extend, set_model_context=contexts.append) as page:
            assert await page.request("ui/open-link", {"url": "https://example.com/a?b=c"}) == {}
            text = {"type": "text", "text": "hello"}
            assert await page.request("ui/message", {"role": "user", "content": [text]}) == {}
            assert await page.request("ui/message", {"role": "user", "content": text}) == {}
            assert await page.request("ui/update-model-context", {"structuredContent": {"city": "Bergen"}}) == {}
            assert links == ["https://example.com/a?b=c"]
            assert messages == [structs.TextContent(text="hello")] * 2
            assert contexts[0].structured_content == {"city": "Bergen"}
            methods = ["ui/open-link", "ui/message", "ui/message", "ui/update-model-context"]
            assert [action.method for action in page.consents] == methods
            page.agrees = False
            assert await page.request("ui/open-link", {"url": "https://a.example"}) == (
                -32000,
                "ui/open-link was denied",
            )
            assert len(links) == 1

    run(main)


@each("method", ["ui/open-link", "ui/message", "ui/update-model-context"])
def test_what_the_host_does_not_offer_is_unknown(method: str) -> None:
    params: Json = {"url": "https://a.example", "role": "user", "content": []}

    async def main() -> None:
        async with shown() as page:
            assert await page.request(method, params) == (-32601, f"method not found: {method}")
            assert page.consents == []

    run(main)


LINKS = [
    "javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "https://", "https:///x", "//example.com",
    "https://user@example.com", "https://example.com/\n", "https://exa mple.com", "https:\\\\example.com",
    "https://[", "https://example.com/\u202egnp", "https://example.com/" + "x" * 2048, "ui://weather/rain",
]  # fmt: skip


@each("url", LINKS)
def test_only_links_of_the_web_are_opened(url: str) -> None:
    async def main() -> None:
        opened: list[str] = []
        async with shown(open_link=opened.append) as page:
            code, text = await page.request("ui/open-link", {"url": url})
            assert (code, text[:12], opened, page.consents) == (-32000, "invalid URL:", [], [])

    run(main)


def test_a_page_is_shown_in_ways_that_it_and_the_host_know() -> None:
    async def main() -> None:
        modes: list[str] = []

        def set_mode(mode: Any) -> Any:
            modes.append(mode)
            return mode

        context = HostContext(display_mode="inline", available_display_modes=["inline", "fullscreen", "pip"])
        async with shown(initialize=False, context=context, set_display_mode=set_mode) as page:
            capabilities = {"availableDisplayModes": ["inline", "fullscreen"]}
            await page.request("ui/initialize", {**INITIALIZE, "appCapabilities": capabilities})
            assert await page.request("ui/request-display-mode", {"mode": "pip"}) == {"mode": "inline"}
            assert await page.request("ui/request-display-mode", {"mode": "fullscreen"}) == {"mode": "fullscreen"}
            assert modes == ["fullscreen"]
        async with shown() as page:
            assert await page.request("ui/request-display-mode", {"mode": "fullscreen"}) == {"mode": "inline"}

    run(main)


def test_the_size_of_a_page_is_bounded_by_its_container() -> None:
    async def main() -> None:
        sizes: list[SizeParams] = []
        context = HostContext(container_dimensions=ContainerDimensions(width=400, max_height=600))
        async with shown(context=context, on_size=sizes.append) as page:
            right: list[Json] = [{"width": 9000, "height": 9000}, {"height": 20.5}, {}]
            for each in right:
                await page.notify("ui/notifications/size-changed", each)
            wrong: list[Json] = [{"width": -1}, {"height": 1e300}, {"height": "1"}]
            for each in wrong:
                await page.notify("ui/notifications/size-changed", each)
            assert [(size.width, size.height) for size in sizes] == [(400, 600), (None, 20.5), (None, None)]
            assert len(page.diagnostics) == 3

    run(main)


def test_log_messages_reach_the_host() -> None:
    async def main() -> None:
        logged: list[structs.LoggingMessageNotificationParams] = []
        async with shown(on_log=logged.append) as page:
            await page.notify("notifications/message", {"level": "info", "data": {"a": 1}, "logger": "rain"})
            await page.notify("notifications/message", {"level": "loud", "data": 1})
            assert [(log.level, log.data, log.logger) for log in logged] == [("info", {"a": 1}, "rain")]
            assert "level" in page.diagnostics[0]

    run(main)


# The order of messages


def test_the_page_gets_nothing_before_it_is_initialized_and_then_everything_in_order() -> None:
    async def main() -> None:
        infos: list[structs.Implementation] = []
        async with shown(initialize=False, on_initialized=infos.append) as page:
            bridge = page.bridge
            assert bridge is not None
            await bridge.send_tool_input_partial({"city": "Ber"})
            await bridge.send_tool_input({"city": "Bergen"})
            await bridge.send_tool_result(structs.CallToolResult(content=[], structured_content={"amount": 3}))
            await bridge.update_context(HostContext(theme="dark"))
            assert page.is_empty
            assert (await page.request("ui/initialize", INITIALIZE))["hostContext"] == {"theme": "dark"}
            assert page.is_empty
            await page.notify("ui/notifications/initialized")
            received = [await page.receive() for _ in range(3)]
            assert [message["method"].rpartition("/")[2] for message in received] == [
                "tool-input-partial", "tool-input", "tool-result",
            ]  # fmt: skip
            assert received[1]["params"] == {"arguments": {"city": "Bergen"}}
            assert received[2]["params"]["structuredContent"] == {"amount": 3}
            assert [info.name for info in infos] == ["rain"]
            await bridge.update_context(HostContext(theme="light"))
            assert await page.receive() == {
                "method": "ui/notifications/host-context-changed", "params": {"theme": "light"},
            }  # fmt: skip
            assert bridge.context.theme == "light"

    run(main)


def test_arguments_and_outcome_are_sent_once_and_in_order() -> None:
    async def main() -> None:
        async with shown() as page:
            bridge = page.bridge
            assert bridge is not None
            with pytest.raises(typedmcp.UsageError, match="first send the arguments"):
                await bridge.send_tool_cancelled()
            await bridge.send_tool_input({})
            for send in (bridge.send_tool_input, bridge.send_tool_input_partial):
                with pytest.raises(typedmcp.UsageError, match="the page has got the"):
                    await send({})
            await bridge.send_tool_cancelled("the user left")
            with pytest.raises(typedmcp.UsageError, match="the call has an outcome already"):
                await bridge.send_tool_result(structs.CallToolResult(content=[]))
            assert (await page.receive())["params"] == {"arguments": {}}
            assert (await page.receive())["params"] == {"reason": "the user left"}

    run(main)


def test_requests_wait_for_the_handshake_which_happens_once() -> None:
    async def main() -> None:
        async with shown(initialize=False) as page:
            assert await page.request("ping") == {}
            assert await page.request("tools/call", {"name": "rain"}) == (-32600, "ui/initialize comes first, and once")
            await page.notify("ui/notifications/initialized")
            assert len(page.diagnostics) == 1
            await page.initialize()
            assert await page.request("ui/initialize", INITIALIZE) == (-32600, "ui/initialize comes first, and once")

    run(main)


def test_a_page_need_not_wait_between_the_messages_of_the_handshake() -> None:
    async def main() -> None:
        infos: list[structs.Implementation] = []
        async with shown(initialize=False, on_initialized=infos.append) as page:
            await page.start("ui/initialize", INITIALIZE)
            await page.notify("ui/notifications/initialized")
            assert len(infos) == 1
            assert page.diagnostics == []

    run(main)


def test_a_page_may_save_its_data_before_it_is_removed() -> None:
    async def main() -> None:
        async with shown() as page:
            assert page.bridge is not None
            closing = asyncio.create_task(page.bridge.close("the window is closed", seconds=10))
            teardown = await page.receive()
            assert (teardown["method"], teardown["params"]["reason"]) == (
                "ui/resource-teardown",
                "the window is closed",
            )
            saved = await page.request("tools/call", {"name": "rain", "arguments": {"city": "Bergen"}})
            assert saved["structuredContent"] == {"Bergen": 3}
            await page.send(id=teardown["id"], result={})
            await closing
            await page.start("ping")
            assert page.is_empty
            with pytest.raises(typedmcp.UsageError, match="the bridge is closed"):
                await page.bridge.tools_changed()

    run(main)


def test_a_page_that_does_not_answer_is_removed_all_the_same_and_its_calls_end() -> None:
    async def main() -> None:
        async with shown() as page:
            assert page.bridge is not None
            await page.start("tools/call", {"name": "wait", "arguments": {"seconds": 3600}})
            await page.bridge.close(seconds=0.01)
            assert "no response within 0.01 s" in page.diagnostics[-1]

    run(main)


def test_the_list_of_tools_is_fetched_again_after_a_change() -> None:
    async def main() -> None:
        server, page = weather(), Page()
        async with typedmcp.connect(server, extensions=[AppsClient()]) as client:
            loaded = await load_page(client, URI)
            async with PageBridge(client, loaded, page.take, consent=page.consent) as page.bridge:
                await page.initialize()
                assert (await page.request("tools/call", {"name": "late"}))[0] == -32000
                server.add_tool(lambda: "here", name="late")
                assert (await page.request("tools/call", {"name": "late"}))[0] == -32000
                await page.bridge.tools_changed()
                assert (await page.receive())["method"] == "notifications/tools/list_changed"
                assert (await page.request("tools/call", {"name": "late"}))["content"][0]["text"] == "here"
                await page.bridge.close(seconds=0)

    run(main)


# Hostile pages


INVALID: dict[str, tuple[str, int | None]] = {
    "no JSON": ("{", None),
    "no object": ("1", None),
    "a batch": ("[]", None),
    "another version": ('{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600),
    "parameters in a list": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}', -32600),
    "a large message": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "x": "' + "x" * 5000 + '"}', -32600),
    "a lone surrogate": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "x": "\ud800"}', -32700),
    "deep nesting": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "x": ' + "[" * 200 + "]" * 200 + "}", -32700),
    "a response to nothing": ('{"jsonrpc": "2.0", "id": 7, "result": {}}', None),
    "an unknown notification": ('{"jsonrpc": "2.0", "method": "ui/x\\u001b[2J"}', None),
}


@each("name", INVALID)
def test_invalid_messages_are_reported_and_the_page_goes_on(name: str) -> None:
    text, code = INVALID[name]

    async def main() -> None:
        async with shown(limits=typedmcp.Limits(page_message_bytes=4096)) as page:
            assert page.bridge is not None
            await page.bridge.receive(text)
            if code is not None:
                response = await page.receive()
                assert (response["id"], response["error"]["code"]) == (7, code)
            [said] = page.diagnostics
            assert said.startswith(f"the page {URI}: ")
            assert said.isprintable()
            assert await page.request("ping") == {}

    run(main)


WRONG: dict[str, tuple[str, Json, int]] = {
    "no name": ("tools/call", {}, -32602),
    "arguments in a list": ("tools/call", {"name": "rain", "arguments": []}, -32602),
    "a number as URI": ("resources/read", {"uri": 1}, -32602),
    "an unknown mode": ("ui/request-display-mode", {"mode": "huge"}, -32602),
    "an unknown method": ("tools/list", {}, -32601),
    "a method of the host": ("ui/resource-teardown", {}, -32601),
}


@each("name", WRONG)
def test_wrong_requests_are_errors(name: str) -> None:
    method, params, code = WRONG[name]

    async def main() -> None:
        async with shown() as page:
            assert (await page.request(method, params))[0] == code
            assert page.consents == []

    run(main)


def test_a_page_has_few_requests_at_a_time() -> None:
    async def main() -> None:
        async with shown(limits=typedmcp.Limits(page_requests_in_flight=2)) as page:
            page.agrees = asyncio.get_running_loop().create_future()
            for _ in range(2):
                await page.start("tools/call", {"name": "rain", "arguments": {"city": "Bergen"}})
            code, text = await page.request("ping")
            assert (code, "page_requests_in_flight" in text) == (-32000, True)
            page.agrees.set_result(True)
            assert {(await page.receive())["id"] for _ in range(2)} == {2, 3}
            assert await page.request("ping") == {}

    run(main)


def test_an_id_in_use_gets_no_second_answer() -> None:
    async def main() -> None:
        async with shown() as page:
            page.agrees = asyncio.get_running_loop().create_future()
            id = await page.start("tools/call", {"name": "rain", "arguments": {"city": "Bergen"}})
            await page.send(id=id, method="ping")
            assert page.is_empty
            assert f"the id {id} is that of an open request" in page.diagnostics[0]

    run(main)


def fail(*_: object) -> Any:
    raise RuntimeError("secret")


FAILING: dict[str, tuple[Json, Callable[[Page], Any], object]] = {
    "a link": (
        {"open_link": fail},
        lambda page: page.request("ui/open-link", {"url": "https://a.example"}),
        (-32603, "internal error"),
    ),
    "a size": ({"on_size": fail}, lambda page: page.notify("ui/notifications/size-changed", {"width": 1}), None),
}


@each("name", FAILING)
def test_a_callback_that_fails_is_reported_and_its_text_stays_here(name: str) -> None:
    options, act, expected = FAILING[name]

    async def main() -> None:
        async with shown(**options) as page:
            assert await act(page) == expected
            assert "secret" in page.diagnostics[0]
            assert await page.request("ping") == {}

    run(main)


def test_a_lost_server_is_an_error_for_the_page() -> None:
    async def main() -> None:
        page = Page()
        async with typedmcp.connect(weather(), extensions=[AppsClient()]) as client:
            loaded = await load_page(client, URI)
        page.bridge = PageBridge(client, loaded, page.take, consent=page.consent)
        await page.initialize()
        assert await page.request("tools/call", {"name": "rain"}) == (-32000, "tools/call failed")
        await page.bridge.close(seconds=0)

    run(main)
