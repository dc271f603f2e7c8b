"""One server behind a gateway: what passes unchanged, who is asked, and what happens when something ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import typedmcp
from mcpspec.v2026_07_28 import models
from mcpspec.v2026_07_28.exact import structs as exact
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.spoken import SUPPORTED
from tests.typedmcp_gateway.everyday_server import make_server, starting
from typedmcp.dialect import methods, structs
from typedmcp.protocol.backends import to_plain
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.revisions.features import structs_of
from typedmcp.services import JsonResult
from typedmcp_gateway import AuditRecord, Gateway

REVISION = LEGACY[0]


async def eventually(is_true: Callable[[], bool]) -> None:
    """Wait until something is true. `run` ends a test that waits too long."""
    while not is_true():
        await asyncio.sleep(0.01)


def old_server(**options: Any) -> typedmcp.ServerConfig:
    """Return the everyday server on a revision with sessions."""
    return typedmcp.ServerConfig(make_server(), revisions=[REVISION], **options)


@each("revision", SUPPORTED)
def test_the_gateway_of_one_server_has_its_name(revision: str) -> None:
    def named(name: str, icon: str = "https://acme.com/icon.png") -> typedmcp.Server:
        return typedmcp.Server(name, version="7", title="Mail", icons=[icon])

    several = {"a": named("one"), "b": named("two")}
    long = "data:image/png;base64," + 9000 * "A"
    cases: list[tuple[Any, str, str, str | None, bool]] = [
        (Gateway(named("mail")), "mail", "7", "Mail", True),
        (Gateway(servers={"only": named("mail")}), "mail", "7", "Mail", True),
        (Gateway(named("mail", long)), "mail", "7", "Mail", False),
        (Gateway(named(9000 * "m")), "typedmcp-gateway", "0", None, False),
        (Gateway(named("mail"), name="mine"), "mine", "0", None, False),
        (typedmcp.ServerConfig(Gateway(named("mail")), name="its", title="Its"), "its", "7", "Its", True),
        (Gateway(servers=several), "typedmcp-gateway", "0", None, False),
        (Gateway([sys.executable, "-c", "raise SystemExit(70)"]), "typedmcp-gateway", "0", None, False),
    ]
    new = structs_of(revision).Implementation.__struct_fields__
    wrong: list[Any] = []

    async def main() -> None:
        for number, (gateway, *expected) in enumerate(cases):
            async with typedmcp.connect(gateway, revisions=[revision], on_diagnostic=lambda _: None) as client:
                info = client.server.info
                assert info is not None
                name, version, title, has_icons = expected
                wanted = [name, version, title if "title" in new else None, has_icons and "icons" in new]
                found = [info.name, info.version, info.title, bool(info.icons)]
                if found != wanted:
                    wrong.append((number, found, wanted))

    run(main())
    assert wrong == []


def test_a_server_that_appears_later_gives_the_gateway_its_name(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("raise SystemExit(70)")

    async def main() -> None:
        gateway = Gateway(str(server))
        config = typedmcp.ServerConfig(gateway, on_diagnostic=lambda _: None)
        async with typedmcp.connect(config):
            server.write_text("import typedmcp\ntypedmcp.Server('late').run()")
            while not gateway.status[0].is_up:
                await gateway.check()
            assert config.info.name == "late"

    run(main())


def test_clients_are_told_why_a_server_cannot_be_reached_if_the_gateway_may_do_so() -> None:
    # Its child would keep the output open for a minute.
    fail = "sleep 60 & echo the reason >&2; exit 7"
    parameters = typedmcp.StdioServerParameters("sh", ["-c", fail])
    lines: list[tuple[str, str]] = []

    def on_stderr(server: str, line: str) -> None:
        lines.append((server, line))

    cases: list[tuple[Any, list[str], list[str]]] = [
        ({}, [], ["exit status", "reason"]),
        ({"tell_causes": True}, ["exit status 7"], ["reason"]),
        ({"tell_causes": True, "on_stderr": on_stderr}, ["exit status 7", "the reason"], []),
    ]
    wrong: list[Any] = []

    async def main() -> None:
        for options, has, lacks in cases:
            gateway = typedmcp.ServerConfig(Gateway(parameters, **options), on_diagnostic=lambda _: None)
            async with typedmcp.connect(gateway) as client:
                with pytest.raises(typedmcp.RemoteError, match="the server 'server' cannot be reached") as caught:
                    await client.call_tool("any")
            text = caught.value.message
            if not all(part in text for part in has) or any(part in text for part in lacks):
                wrong.append((options, text))

    run(main())
    assert wrong == []
    assert set(lines) == {("server", "the reason")}


@each("revision", SUPPORTED)
def test_members_that_the_schema_does_not_know_pass_between_equal_revisions(revision: str) -> None:
    received: list[Any] = []

    class Vendor:
        def fallback(self, method: str, params: dict[str, Any], ctx: typedmcp.Context) -> dict[str, Any]:
            received.append(params)
            common = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if ctx.is_modern else {}
            if method == "tools/list":
                tool = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"category": "x"}, "vendor": 1}
                return {**common, "tools": [tool], "vendor": [True]}
            return {**common, "content": [{"type": "text", "text": "a", "vendor": 2}], "vendor": {"deep": None}}

    tools = structs.ServerCapabilities(tools=structs.ServerCapabilitiesTools())
    server = typedmcp.ServerConfig(Vendor(), revisions=[revision], capabilities=tools)
    frames: list[Any] = []

    def on_frame(sender: str, data: bytes) -> None:
        if sender == "server":
            frames.append(msgspec.json.decode(data))

    async def main() -> None:
        gateway = Gateway(server)
        async with typedmcp.connect(gateway, revisions=[revision], on_frame=on_frame) as client:
            await client.list_tools()
            await client.send("tools/call", {"name": "t", "arguments": {"a": 1}, "vendor": 3})

    run(main())
    listed, called = (frame["result"] for frame in frames[-2:])
    assert listed["tools"][0]["vendor"] == 1
    assert listed["tools"][0]["annotations"] == {"category": "x"}
    assert listed["vendor"] == [True]
    assert called["content"][0]["vendor"] == 2
    assert called["vendor"] == {"deep": None}
    assert received[-1]["vendor"] == 3


def test_an_answer_that_does_not_fit_its_method_is_repaired_or_rejected() -> None:
    answers: dict[str, Any] = {"tools/list": {"tools": [{"name": 3}, {"name": "t", "inputSchema": {"type": "object"}}]}}

    class Broken:
        def fallback(self, method: str, _params: dict[str, Any], _ctx: typedmcp.Context) -> Any:
            return answers.get(method, {"content": "none"})

    reports: list[Diagnostic] = []
    tools = structs.ServerCapabilities(tools=structs.ServerCapabilitiesTools())
    gateway = Gateway(typedmcp.ServerConfig(Broken(), revisions=[REVISION], capabilities=tools))
    config = typedmcp.ServerConfig(gateway, on_diagnostic=reports.append)

    async def main() -> None:
        async with typedmcp.connect(config, revisions=[REVISION]) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["t"]
            with pytest.raises(typedmcp.RemoteError, match="the server 'server' sent an answer that is not valid"):
                await client.call_tool("t")

    run(main())
    assert any("tools[0]" in report.text for report in reports), [report.text for report in reports]


@each("revision", [MODERN_REVISION, REVISION])
def test_an_answer_is_checked_although_an_earlier_one_was_valid(revision: str) -> None:
    text = {"type": "text", "text": "x"}
    invalid = "the server 'server' sent an answer that is not valid"
    cases: dict[str, tuple[dict[str, Any], int | str]] = {
        "valid": ({"content": [text]}, 1),
        "no content": ({"content": "none"}, invalid),
        "an invalid item": ({"content": [text, {"type": "text"}]}, 1),
        "valid again": ({"content": [text, text]}, 2),
        "an invalid _meta": ({"content": [text], "_meta": {"io.modelcontextprotocol/serverInfo": 3}}, 1),
        "another _meta": ({"content": [text], "_meta": {"a": 1}}, 1),
        "null": ({"content": [text], "isError": None}, 1),
        "of another type": ({"content": [text], "resultType": "other"}, 1 if revision == REVISION else invalid),
    }

    class Raw:
        async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
            return JsonResult(cases[params.name][0], ctx.revision)

    async def main() -> None:
        server = typedmcp.ServerConfig(Raw(), revisions=[revision], name="raw", version="1")
        gateway = typedmcp.ServerConfig(Gateway(server), on_diagnostic=lambda _: None)
        async with typedmcp.connect(gateway, revisions=[revision]) as client:
            for name in [*cases, *cases]:
                found: Any = (await asyncio.gather(client.call_tool(name), return_exceptions=True))[0]
                got = found.message if isinstance(found, typedmcp.RemoteError) else len(found.content)
                assert got == cases[name][1], name

    run(main())


@each("revision", [MODERN_REVISION, REVISION])
def test_the_questions_of_a_server_reach_the_client_that_called_it(revision: str) -> None:
    config = typedmcp.ServerConfig(Gateway(old_server()))

    async def roots_of(name: str) -> list[str]:
        async with typedmcp.connect(config, revisions=[revision], roots=[f"file:///{name}"]) as client:
            calls = [client.call_tool("ask_roots", result_type=list[str]) for _ in range(5)]
            return [uri for uris in await asyncio.gather(*calls) for uri in uris]

    async def main() -> None:
        names = ["ada", "alan", "grace"]
        for name, uris in zip(names, await asyncio.gather(*map(roots_of, names)), strict=True):
            assert uris == [f"file:///{name}"] * 5

    run(main())


@each("revision", [MODERN_REVISION, REVISION])
def test_a_server_that_asks_outside_of_a_call_gets_its_answer_with_the_next_call(revision: str) -> None:
    answers: list[Any] = []

    @asynccontextmanager
    async def server() -> AsyncGenerator[list[str]]:
        yield [sys.executable, "-c", ASKS_FIRST]

    async def main() -> None:
        async with (
            server() as command,
            typedmcp.connect(Gateway(command), revisions=[revision], roots=["file:///first"]) as client,
        ):
            await client.list_tools()
            answers.append(typedmcp.text_of(await client.call_tool("roots")))

    run(main())
    assert answers == ["file:///first"]


ASKS_FIRST = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
roots, waiting = None, None
for line in sys.stdin:
    m = json.loads(line)
    method, id = m.get("method"), m.get("id")
    if method == "initialize":
        info = {"name": "x", "version": "1"}
        send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "notifications/initialized":
        send(id="q", method="roots/list")
    elif method == "tools/list":
        send(id=id, result={"tools": []})
    elif method == "tools/call":
        waiting = id
    elif method is None and id == "q":
        roots = m["result"]["roots"][0]["uri"] if "result" in m else "none"
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "unknown"})
    if waiting is not None and roots is not None:
        send(id=waiting, result={"content": [{"type": "text", "text": roots}]})
        waiting = None
"""


@each("revision", [MODERN_REVISION, REVISION])
def test_a_client_that_cancels_while_it_is_asked_cancels_the_call_at_the_server(revision: str) -> None:
    cancelled = asyncio.Event()
    server = typedmcp.Server("patient")

    @server.tool
    async def ask(ctx: typedmcp.Context) -> str:
        try:
            return str(await ctx.list_roots())
        except asyncio.CancelledError:
            cancelled.set()
            raise

    asked = asyncio.Event()

    async def roots() -> list[str]:
        asked.set()
        await asyncio.sleep(60)
        return []

    async def main() -> None:
        gateway = Gateway(typedmcp.ServerConfig(server, revisions=[REVISION]), answer_seconds=1.5)
        async with typedmcp.connect(gateway, revisions=[revision], roots=roots) as client:
            call = asyncio.ensure_future(client.call_tool("ask"))
            await asked.wait()
            call.cancel()
            await cancelled.wait()

    run(main())


def test_a_call_that_was_given_up_cannot_be_continued() -> None:
    async def main() -> None:
        gateway = Gateway(old_server(), answer_seconds=0.1)
        async with typedmcp.connect(gateway, roots=["file:///r"]) as client:
            asked = await client.call_tool("ask_roots", rounds=0)
            assert isinstance(asked, structs.InputRequiredResult)
            await asyncio.sleep(0.3)
            params = {"name": "ask_roots", "requestState": asked.request_state}
            with pytest.raises(typedmcp.InvalidParamsError, match="the call has ended at the server"):
                await client.send(methods.TOOLS_CALL, params)

    run(main())


def test_more_calls_than_may_wait_for_answers_are_rejected() -> None:
    async def main() -> None:
        gateway = Gateway(old_server(), max_parked=1)
        async with typedmcp.connect(gateway, roots=["file:///r"]) as client:
            await client.call_tool("ask_roots", rounds=0)
            with pytest.raises(typedmcp.RemoteError, match="max_parked"):
                await client.call_tool("ask_roots", rounds=0)

    run(main())


@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN_REVISION, REVISION])
def test_the_end_of_a_server_is_an_error_and_the_next_call_works(revision: str) -> None:
    reports: list[Diagnostic] = []
    config = typedmcp.ServerConfig(Gateway([sys.executable, "-c", DIES.format(REVISION)]), on_diagnostic=reports.append)

    async def main() -> None:
        async with typedmcp.connect(config, revisions=[revision]) as client:
            with pytest.raises(typedmcp.RemoteError, match="'server' cannot be reached, or the connection was lost"):
                await client.call_tool("die")
            assert typedmcp.text_of(await client.call_tool("live")) == "alive"

    run(main())
    assert any("server 'server'" in report.text for report in reports)


DIES = """
import os, typedmcp
server = typedmcp.Server("mortal")
@server.tool
def die() -> str:
    os._exit(1)
@server.tool
def live() -> str:
    return "alive"
server.run(revisions=["{}"])
"""


def test_a_server_that_cannot_be_started_is_an_error_of_each_call() -> None:
    async def main() -> None:
        gateway = Gateway([sys.executable, "-c", "raise SystemExit(70)"])
        async with typedmcp.connect(gateway) as client:
            with pytest.raises(typedmcp.RemoteError, match="cannot be reached"):
                await client.list_tools()

    run(main())


def test_log_messages_have_the_level_that_the_client_asked_for() -> None:
    logs: list[str] = []

    async def main() -> None:
        async with typedmcp.connect(
            Gateway(old_server()), on_log=lambda params: logs.append(params.data), log_level="info"
        ) as client:
            await client.call_tool("count")
            await client.set_log_level("error")
            await client.call_tool("count")

    run(main())
    assert logs == ["counted 1", "counted 2", "counted 3"]


@each("revision, expected", [(REVISION, 3), (MODERN_REVISION, 0)])
def test_a_legacy_client_that_asks_for_no_log_messages_gets_those_of_legacy_servers(
    revision: str, expected: int
) -> None:
    received: list[bytes] = []

    async def main() -> None:
        server = typedmcp.ServerConfig(make_server(), revisions=[revision])
        async with typedmcp.connect(
            Gateway(server), revisions=[REVISION], on_frame=lambda _, line: received.append(line)
        ) as client:
            await client.call_tool("count")

    run(main())
    assert sum(b"notifications/message" in line for line in received) == expected


HINTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}


@each("hints", [HINTS, exact.ToolAnnotations(destructive_hint=True), models.ToolAnnotations(read_only_hint=False)])
@each("revision", [revision for revision in SUPPORTED if hasattr(structs_of(revision), "ToolAnnotations")])
def test_the_hints_that_an_author_gives_arrive_also_if_they_say_what_their_absence_means(
    hints: Any, revision: str
) -> None:
    server = typedmcp.Server("hints")
    server.add_tool(lambda: 1, name="f", annotations=hints)
    config = typedmcp.ServerConfig(server, revisions=[revision])

    async def main() -> None:
        for target in (config, Gateway(config)):
            async with typedmcp.connect(target) as client:
                (tool,) = [tool async for tool in client.tools()]
                assert to_plain(tool.annotations) == (hints if hints is HINTS else to_plain(hints))

    run(main())


def test_progress_that_comes_while_the_client_answers_a_question_arrives_with_its_answer() -> None:
    server = typedmcp.Server("asks")
    seen: list[float] = []

    async def main() -> None:
        asked, reported = asyncio.Event(), asyncio.Event()

        @server.tool
        async def ask(ctx: typedmcp.Context) -> str:
            question = asyncio.ensure_future(ctx.elicit("Your name?", str))
            await asked.wait()
            await ctx.progress(1, 2)
            reported.set()
            return f"{(await question).data}"

        def see(params: structs.ProgressNotificationParams) -> None:
            seen.append(params.progress)

        async def elicit(params: Any) -> dict[str, str]:
            asked.set()
            await reported.wait()
            return {"value": "Ada"}

        gateway = Gateway(typedmcp.ServerConfig(server, revisions=[REVISION]))
        async with typedmcp.connect(gateway, elicit=elicit) as client:
            assert await client.call_tool("ask", on_progress=see, result_type=str) == "Ada"

    run(main())
    assert seen == [1]


def test_each_call_has_one_audit_record() -> None:
    records: list[AuditRecord] = []

    async def main() -> None:
        gateway = Gateway(old_server(), on_call=records.append)
        async with typedmcp.connect(gateway, name="tester", roots=["file:///r"]) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
            await client.call_tool("fail")
            await client.call_tool("ask_roots")
            with pytest.raises(typedmcp.ResourceNotFoundError):
                await client.read_resource("note://coffee")
            begun = asyncio.Event()
            call = asyncio.ensure_future(client.call_tool("hang", on_progress=lambda _: begun.set()))
            await begun.wait()
            await asyncio.sleep(0.1)
            call.cancel()
            await asyncio.wait([call])
            await eventually(lambda: len(records) == 6)

    run(main())
    assert [(record.name, record.outcome) for record in records] == [
        ("add", "ok"), ("fail", "tool error"), ("ask_roots", "input required"), ("ask_roots", "ok"),
        ("note://coffee", "error -32602"), ("hang", "cancelled"),
    ]  # fmt: skip
    assert all(record.arguments is None and record.client == "tester" for record in records)
    assert {record.server for record in records} == {"server"}
    assert records[-1].seconds >= 0.1


def test_arguments_are_in_audit_records_only_if_that_is_asked_for() -> None:
    records: list[AuditRecord] = []

    async def main() -> None:
        gateway = Gateway(old_server(), on_call=records.append, audit_arguments=True)
        async with typedmcp.connect(gateway) as client:
            await client.call_tool("add", {"a": 1, "b": 2})

    run(main())
    assert [record.arguments for record in records] == [{"a": 1, "b": 2}]


@pytest.mark.long
def test_a_process_serves_all_calls_of_a_client() -> None:
    async def main() -> None:
        async with typedmcp.connect(Gateway(starting(MODERN_REVISION, "stdio"))) as client:
            pids = await asyncio.gather(*(client.call_tool("pid", result_type=int) for _ in range(20)))
            assert len(set(pids)) == 1

    run(main())


@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN_REVISION, REVISION])
def test_everything_counts_as_changed_after_a_server_was_replaced(revision: str) -> None:
    async def main() -> None:
        gateway = Gateway(starting(revision, "stdio"))
        async with typedmcp.connect(gateway) as client:
            pid = await client.call_tool("pid", result_type=int)
            async with client.listen(tools=True, uris=["note://tea"]) as changes:
                os.kill(pid, signal.SIGKILL)
                seen = {(await anext(changes)).kind, (await anext(changes)).kind}
                assert seen == {"tools", "resource"}

    run(main())


def test_an_unknown_option_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"'separater' of Gateway; .*did you mean 'separator'"):
        Gateway("https://api.example/mcp", separater="-")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
