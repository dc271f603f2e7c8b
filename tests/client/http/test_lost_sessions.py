"""The client over HTTP when a server no longer knows its session, or speaks another revision than before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import MODERN, OLDER, Request, Script, Wire, connected
from tests.server.scripted import run
from typedmcp.client import ChangeEvent

REFUSALS: dict[str, tuple[int, int | None]] = {
    "404": (404, None),
    "400": (400, None),
    "400 and -32000": (400, -32000),
    "400 and -32602": (400, -32602),
    "401": (401, None),
    "409": (409, None),
    "410": (410, -32001),
    "500": (500, None),
    "503": (503, None),
    "502 and -32603": (502, -32603),
    "200 and -32000": (200, -32000),
    "200 and -32001": (200, -32001),
    "200 and -32600": (200, -32600),
}
"""The status and the code of the answer to a request in an unknown session."""


class Forgetful(Script):
    """A server of a legacy revision that knows only its newest session, until it is told to forget that, too."""

    def __init__(self, refusal: str, revision: str = OLDER) -> None:
        super().__init__(revision)
        self.status, self.code = REFUSALS[refusal]
        self.known = ""
        self.calls = 0

    async def answer(self, request: Request, wire: Wire) -> None:
        is_legacy = self.revision != MODERN
        if is_legacy and request.what not in ("initialize", "server/discover") and not self.is_known(request):
            self.requests.append(request)
            self.refuse(request, wire)
        elif not is_legacy and "mcp-session-id" in request.headers:
            self.requests.append(request)
            wire.error(request, -32022, "no", {"supported": [MODERN], "requested": OLDER}, status=400)
        else:
            await super().answer(request, wire)

    def is_known(self, request: Request) -> bool:
        return request.headers.get("mcp-session-id") == self.known

    def refuse(self, request: Request, wire: Wire) -> None:
        if self.code is None or request.method != "POST" or "id" not in request.json:
            wire.reply(400 if self.status == 200 else self.status, b"no such session", content_type="text/plain")
        else:
            wire.error(request, self.code, "no such session", status=self.status)

    def _initialize(self, request: Request, wire: Wire) -> None:
        super()._initialize(request, wire)
        self.known = f"session-{self.sessions}"

    def _tools_call(self, request: Request, wire: Wire) -> None:
        self.calls += 1
        super()._tools_call(request, wire)

    def _ping(self, request: Request, wire: Wire) -> None:
        wire.result(request, {})


@each("refusal", REFUSALS)
def test_a_session_that_is_refused_is_replaced_and_nothing_with_effects_is_repeated(refusal: str) -> None:
    script = Forgetful(refusal)

    async def main() -> None:
        async with connected(script) as client:
            script.known = ""
            await client.list_tools()
            assert script.sessions == 2
            script.known, script.requests = "", []
            if 400 <= script.status < 500:  # the `ping` got the same answer, so the call had no effect
                await client.call_tool("x")
            else:
                with pytest.raises(typedmcp.Error, match="no such session"):
                    await client.call_tool("x")
                assert script.calls == 0
                assert len(script.of("tools/call")) == 1
                await client.call_tool("x")
            assert script.calls == 1
            assert len(script.of("ping")) == (script.status != 404)
            assert script.sessions == 3

    run(main)


def test_calls_in_flight_are_refused_together_and_get_one_new_session() -> None:
    script = Forgetful("400")

    async def main() -> None:
        async with connected(script) as client:
            script.known = ""
            await asyncio.gather(*(client.call_tool("x") for _ in range(5)))
        assert script.calls == 5
        assert script.sessions == 2

    run(main)


def test_an_error_of_a_known_session_is_the_error_of_its_call_alone() -> None:
    async def main() -> None:
        for refusal, (status, code) in REFUSALS.items():
            if status == 404:
                continue
            script = Forgetful(refusal)
            script.handlers["tools/call"] = script.refuse
            async with connected(script) as client:
                error = typedmcp.RemoteError if code is not None else typedmcp.HttpStatusError
                with pytest.raises(error, match="no such session"):
                    await client.call_tool("x")
                await client.list_tools()
            asked = [
                request.what for request in script.requests if request.what in ("tools/call", "ping", "tools/list")
            ]
            assert asked == ["tools/call", "ping", "tools/list"], refusal
            assert script.sessions == 1, refusal

    run(main)


def test_a_busy_server_is_not_asked_whether_it_knows_the_session() -> None:
    script = Forgetful("503")
    script.handlers["tools/call"] = lambda _, wire: wire.reply(503, retry_after=7)

    async def main() -> None:
        async with connected(script) as client:
            with pytest.raises(typedmcp.ServerBusyError, match="in 7 s"):
                await client.call_tool("x")
        assert script.of("ping") == []

    run(main)


def test_silence_says_nothing_of_the_session() -> None:
    script = Forgetful("500")
    script.handlers["tools/call"] = lambda _, wire: wire.reply(500)
    script.handlers["ping"] = lambda _, wire: wire.closed()

    async def main() -> None:
        async with connected(script) as client:
            with pytest.raises(typedmcp.RequestTimeoutError, match="tools/call"):
                await client.call_tool("x", timeout=0.2)
            await client.list_tools()
        assert script.sessions == 1

    run(main)


def test_a_method_that_a_server_does_not_have_says_nothing_of_the_session() -> None:
    script = Forgetful("200 and -32000")
    script.handlers["tools/call"] = lambda request, wire: wire.error(request, -32000, "it failed")
    script.handlers["ping"] = lambda request, wire: wire.error(request, -32601)

    async def main() -> None:
        async with connected(script) as client:
            with pytest.raises(typedmcp.RemoteError, match="it failed"):
                await client.call_tool("x")
            await client.list_tools()
        assert script.sessions == 1

    run(main)


@each("refusal", ["400", "404", "401"])
def test_a_subscription_begins_again_in_a_new_session(refusal: str) -> None:
    script = Forgetful(refusal)
    streams: list[Wire] = []

    async def get(_: Request, wire: Wire) -> None:
        streams.append(wire)
        wire.events()
        await wire.closed()

    async def main() -> None:
        script.handlers["GET"] = get
        async with connected(script) as client, client.listen(tools=True) as changes:
            script.known = ""
            streams[0].close()
            assert await anext(changes) == ChangeEvent("tools")  # some may have been missed
            await script.until("initialize", 2)
            await script.until("GET", 3)  # the second was refused

    run(main)


def test_credentials_are_not_asked_for_once_more_by_the_check() -> None:
    asked: list[Any] = []

    def auth(error: typedmcp.AuthorizationRequiredError | None) -> str:
        asked.append(error)
        return f"token-{len(asked)}"

    async def main() -> None:
        script = Forgetful("401")
        async with connected(script, auth=auth) as client:
            script.known = ""
            with pytest.raises(typedmcp.AuthorizationRequiredError):
                await client.call_tool("x")
            assert len(asked) == 2
            await client.call_tool("x")
            assert (len(asked), script.calls, script.sessions) == (2, 1, 2)
            assert script.of("ping") == []

    run(main)


@each("before, after", [(OLDER, MODERN), (MODERN, OLDER)])
@each("refusal", ["400", "400 and -32000", "200 and -32600"])
def test_a_server_of_another_revision_is_negotiated_with(before: str, after: str, refusal: str) -> None:
    script = Forgetful(refusal, before)

    async def main() -> None:
        async with connected(script) as client:
            await client.call_tool("x")
            script.revision = after
            await client.list_tools()
            assert client.revision == after
            await client.call_tool("x")
        assert script.calls == 2

    run(main)


@each("status", [400, 403, 404, 406])
def test_a_server_without_a_stream_of_messages_keeps_its_session(status: int) -> None:
    """Many servers answer 404 in place of 405, since they have no route for GET."""
    script = Forgetful("400")
    script.handlers["GET"] = lambda _request, wire: wire.reply(status)
    reports: list[typedmcp.Diagnostic] = []

    async def main() -> None:
        async with connected(script, on_diagnostic=reports.append) as client:
            for _ in range(2):
                await client.call_tool("x")
            await client.list_tools()
        assert len(script.of("GET")) == 1
        assert script.sessions == 1

    run(main)
    [report] = reports
    assert str(status) in report.text
