"""Server processes that die, hang, flood or leave children: every call ends, and no process stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import DISCOVERED, INITIALIZED
from tests.interop.peers import COMMAND
from tests.paths import ROOT
from tests.server.scripted import run
from typedmcp.client import ChangeEvent, connect
from typedmcp.client.connection.targets import resolve_target
from typedmcp.dialect import structs
from typedmcp.transports import process
from typedmcp.transports.process_parameters import StdioServerParameters

SERVERS = ROOT / "tests" / "servers"
TALKATIVE = [sys.executable, str(SERVERS / "talkative.py")]
STUBBORN = [sys.executable, str(SERVERS / "stubborn.py")]


def text(result: structs.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, structs.TextContent)
    return content.text


def session_of(client: Any) -> Any:
    return client._connection.session


def pid_of(client: Any) -> int:
    pid: int = session_of(client).transport.pid
    return pid


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ignore(_report: typedmcp.Diagnostic) -> None:
    """Ignore the diagnostics of a dying server."""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_server_process_ends_with_its_client() -> None:
    async def main() -> None:
        before = descriptors()
        for _ in range(3):
            async with connect(COMMAND) as client:
                assert text(await client.call_tool("test_x_mcp_header", {"region": "north"})) == "Region: north"
                pid = pid_of(client)
            assert not is_alive(pid)
        assert descriptors() <= before + 1  # of the event loop

    run(main)


@each("calls", [1, 64])
def test_killing_the_server_fails_its_calls_at_once_with_the_signal(calls: int) -> None:
    async def main() -> None:
        async with connect(COMMAND, restart=False) as client:
            started = asyncio.Event()
            tasks = [
                asyncio.create_task(client.call_tool("test_wait", on_progress=lambda _: started.set()))
                for _ in range(calls)
            ]
            await started.wait()
            start = time.monotonic()
            os.kill(pid_of(client), signal.SIGKILL)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert time.monotonic() - start < 20  # a call may take 60
            assert all(isinstance(result, typedmcp.ConnectionLostError) for result in results)
            assert all("SIGKILL" in str(result) for result in results)
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.ping()

    run(main)


def test_a_server_that_exits_at_once_is_named_with_its_output() -> None:
    code = "import sys; print('no such configuration', file=sys.stderr); sys.exit(3)"
    target = StdioServerParameters(sys.executable, ["-c", code], stderr="capture")

    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match=r"exit status 3.*no such configuration"):
            await connect(target)

    run(main)


def test_an_unknown_command_is_named() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match="no-such-command"):
            await connect(["no-such-command"])

    run(main)


@pytest.mark.long
def test_a_server_that_ignores_the_end_is_killed() -> None:
    parameters = StdioServerParameters(
        STUBBORN[0], STUBBORN[1:], close_timeout=0.1, terminate_timeout=0.1, stderr="drop"
    )

    async def main() -> None:
        async with connect(parameters) as client:
            started = asyncio.Event()
            call = asyncio.create_task(client.call_tool("x", on_progress=lambda _: started.set()))
            await started.wait()
            pid = pid_of(client)
        assert not is_alive(pid)
        with pytest.raises(typedmcp.ConnectionLostError):
            await call

    run(main)


def test_a_server_is_restarted_with_the_option_restart() -> None:
    async def main() -> None:
        async with connect(COMMAND, restart=True) as client, client.listen(tools=True) as changes:
            first = pid_of(client)
            call = asyncio.create_task(client.call_tool("test_wait"))
            await client.ping()
            os.kill(first, signal.SIGKILL)
            with pytest.raises(typedmcp.ConnectionLostError):
                await call
            assert text(await client.call_tool("test_simple_text")).startswith("This is")
            assert pid_of(client) != first
            assert await anext(changes) == ChangeEvent("tools")  # changes may have been missed
            await client.call_tool("test_trigger_tool_change")
            assert await anext(changes) == ChangeEvent("tools")

    run(main)


@each("revision", ["2026-07-28", "2025-11-25"])
def test_a_dead_server_process_is_restarted_without_the_option_if_it_has_no_session(revision: str) -> None:
    reports: list[typedmcp.Diagnostic] = []

    async def main() -> None:
        async with connect(COMMAND, revisions=[revision], on_diagnostic=reports.append) as client:
            os.kill(pid_of(client), signal.SIGKILL)
            await session_of(client).end_event.wait()
            if revision == "2025-11-25":
                with pytest.raises(typedmcp.ConnectionLostError, match="SIGKILL"):
                    await client.ping()
            else:
                await client.ping()
                assert reports[-1].kind is typedmcp.DiagnosticKind.CONNECTION_ERROR
                assert "SIGKILL; connecting again" in reports[-1].text

    run(main)


def test_the_revision_of_a_server_process_is_remembered() -> None:
    async def main() -> None:
        for _ in range(2):
            async with connect(COMMAND, revisions=["2025-06-18"]) as client:
                assert client.revision == "2025-06-18"
        async with connect(COMMAND) as client:
            assert client.revision == "2026-07-28" or client.revision in client.server.supported

    run(main)


@pytest.mark.skipif(not hasattr(asyncio, "start_unix_server"), reason="there are no unix sockets here")
def test_a_server_can_be_reached_over_a_socket(tmp_path: Path) -> None:
    from typedmcp.transports.streams import StreamTransport

    path = str(tmp_path / "s")

    class Handler:
        def call_tool(self, params: Any, ctx: Any) -> structs.CallToolResult:
            return structs.CallToolResult(content=[structs.TextContent(text="socket")], result_type="complete")

    async def main() -> None:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            descriptor = writer.get_extra_info("socket").fileno()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await typedmcp.serve_async(Handler(), StreamTransport(descriptor, descriptor))
            writer.close()

        listening = await asyncio.start_unix_server(serve, path)
        async with connect(f"unix:{path}") as client:
            assert text(await client.call_tool("x")) == "socket"
        listening.close()
        await listening.wait_closed()
        await asyncio.sleep(0.05)

    run(main)


def test_a_refused_connection_is_reported() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match="refused"):
            await connect("tcp://127.0.0.1:1")

    run(main)


def test_the_conformance_client_runs_over_stdio() -> None:
    script = Path(__file__).parents[1] / "conformance" / "client.py"
    environment = {**os.environ, "MCP_CONFORMANCE_SCENARIO": "initialize"}
    subprocess.run([sys.executable, str(script), "--", *COMMAND], check=True, timeout=30, env=environment)


def test_every_subscription_gets_all_changes_after_a_restart_of_a_legacy_server() -> None:
    async def main() -> None:
        options: dict[str, Any] = {"restart": True, "revisions": ["2025-06-18"], "on_diagnostic": ignore}
        uri = "test://watched-resource"
        async with (
            connect(COMMAND, **options) as client,
            client.listen(uris=[uri]) as first,
            client.listen(uris=[uri]) as second,
        ):
            os.kill(pid_of(client), signal.SIGKILL)
            for changes in (first, second):
                assert await anext(changes) == ChangeEvent("resource", uri)  # changes may have been missed
            await client.ping()
            await asyncio.sleep(0.1)
            await client.call_tool("test_trigger_resource_change")
            for changes in (first, second):
                assert await anext(changes) == ChangeEvent("resource", uri)

    run(main)


def frail(notes: Path, behaviour: str) -> list[str]:
    return [sys.executable, str(SERVERS / "frail.py"), str(notes), behaviour]


@each("strict", [False, True])
def test_a_server_that_dies_from_discovery_is_initialized_without_it(tmp_path: Path, strict: bool) -> None:
    async def main() -> None:
        notes, reports = tmp_path / "notes", list[typedmcp.Diagnostic]()
        client = connect(frail(notes, "die"), on_diagnostic=reports.append, strict=strict)
        if strict:
            with pytest.raises(typedmcp.ConnectionLostError, match="exit status 1"):
                await client.open()
            assert notes.read_text().count("started") == 1
            assert reports == []
            return
        async with client:
            await client.ping()
            assert client.revision == "2024-11-05"
        (report,) = reports
        assert report.kind is typedmcp.DiagnosticKind.TOLERATED
        async with connect(frail(notes, "die"), on_diagnostic=reports.append) as again:  # it is remembered
            assert again.revision == "2024-11-05"
        assert notes.read_text().count("started") == 3
        assert len(reports) == 1

    run(main)


@each("behaviour, options", [("plan", {}), ("die", {"revisions": ["2026-07-28"]})])
def test_a_server_that_ends_on_purpose_or_has_no_other_revision_is_not_started_again(
    tmp_path: Path, behaviour: str, options: Any
) -> None:
    async def main() -> None:
        notes = tmp_path / "notes"
        with pytest.raises(typedmcp.ConnectionLostError, match=r"exit status \d+"):
            async with connect(frail(notes, behaviour), on_diagnostic=ignore, **options):
                pass
        assert notes.read_text().count("started") == 1

    run(main)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has not read")
def test_a_server_that_fails_before_it_reads_is_started_once(tmp_path: Path) -> None:
    async def main() -> None:
        notes, reports, printed = tmp_path / "notes", list[typedmcp.Diagnostic](), list[str]()
        code = f"open({str(notes)!r}, 'a').write('started\\n'); import no_such_module"
        server = typedmcp.StdioServerParameters(sys.executable, ["-c", code], stderr=printed.append)
        with pytest.raises(typedmcp.ConnectionLostError, match="No module named 'no_such_module'"):
            async with connect(server, on_diagnostic=reports.append):
                pass
        assert notes.read_text() == "started\n"
        assert sum("ModuleNotFoundError" in line for line in printed) == 1
        assert reports == []

    run(main)


def test_starts_that_fail_are_delayed(tmp_path: Path) -> None:
    async def main() -> None:
        notes = tmp_path / "notes"
        client = connect(frail(notes, "start"), restart=True, on_diagnostic=ignore, revisions=["2024-11-05"])
        slept: list[float] = []
        real_sleep = asyncio.sleep

        async def sleep(seconds: float) -> None:
            slept.extend([seconds] if seconds else [])
            await real_sleep(0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "sleep", sleep)
            for _ in range(8):
                with pytest.raises(typedmcp.ConnectionLostError, match="exit status 1"):
                    await client.ping()
        assert notes.read_text().count("started") == 8
        assert slept == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
        await client.close()

    run(main)


def test_repeated_restarts_of_a_server_are_delayed() -> None:
    async def main() -> None:
        starts = 0
        async with connect(COMMAND, restart=True, on_diagnostic=lambda _: None) as client:
            start = time.monotonic()
            while time.monotonic() - start < 2:
                os.kill(pid_of(client), signal.SIGKILL)
                await asyncio.sleep(0.01)
                try:
                    await client.ping()
                except typedmcp.ConnectionLostError:
                    continue
                starts += 1
        assert starts <= 5

    run(main)


PORTABLE = [sys.executable, str(SERVERS / "portable_server.py")]


@pytest.fixture
def _without_process_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HAS_PROCESS_GROUPS", False)


@pytest.mark.usefixtures("_without_process_groups")
def test_client_and_server_work_without_process_groups_signal_handlers_and_polling() -> None:
    async def main() -> None:
        async with connect(PORTABLE) as client:
            results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(50)))
            assert [text(result) for result in results] == [str(n + 1) for n in range(50)]
            pid = pid_of(client)
        assert not is_alive(pid)

    run(main)


@pytest.mark.usefixtures("_without_process_groups")
def test_an_interrupted_server_without_signal_handlers_ends() -> None:
    async def main() -> None:
        async with connect(PORTABLE, on_diagnostic=ignore) as client:
            pid = pid_of(client)
            with suppress(typedmcp.Error):  # the response may still arrive
                await client.call_tool("stop")
            with pytest.raises(typedmcp.Error):
                await client.call_tool("add", {"a": 1, "b": 1})
            assert not is_alive(pid)

    run(main)


SCRIPT = """
import typedmcp
server = typedmcp.Server("scripted")
@server.tool
def where() -> str: return __name__
if __name__ == "__main__":
    server.run()
"""


@each("make", [str, Path])
def test_a_python_file_is_run_with_this_python(make: Any, tmp_path: Path) -> None:
    file = tmp_path / "my server.py"
    file.write_text(SCRIPT)

    async def main() -> None:
        async with typedmcp.connect(make(file)) as client:
            assert await client.call_tool("where", result_type=str) == "__main__"

    run(main)


def test_a_javascript_file_is_run_with_node() -> None:
    for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts"):
        with pytest.raises(typedmcp.UsageError, match="no such file"):
            resolve_target(f"/nowhere/server.{suffix}")


def test_the_command_of_a_javascript_file_is_node(tmp_path: Path) -> None:
    file = tmp_path / "server.mjs"
    file.touch()
    assert resolve_target(str(file)) == StdioServerParameters("node", (str(file),))


WRONG_TARGETS = {
    "python server.py": r"; a command is a list, such as \['python', 'server.py'\]$",
    "npx -y some-server key": r"; a command is a list, such as \['npx', '-y', '…'\]$",
    "nowhere.py": "no such file: nowhere.py$",
    "nowhere.js": "no such file: nowhere.js$",
    "htp://x": r"or tcp://host:port; did you mean http://…\?$",
    "ws://host/mcp": r"or tcp://host:port$",
    "localhost:8000/mcp": r"; did you mean http://localhost:8000/mcp\?$",
    "{folder}": "is a directory; expected a file in it, such as .*server.py$",
    "{folder}/notes.txt": r"is not a file that connect can run \(.*\.py.*\); pass its command as a list: ",
}


@each("target, fault", WRONG_TARGETS.items(), ids=str)
def test_a_target_that_is_not_a_server_is_named_with_a_remedy(target: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()

    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match=fault):
            await typedmcp.connect(target.format(folder=tmp_path))

    run(main)


def test_the_error_of_a_program_that_is_not_a_server_shows_what_it_printed() -> None:
    async def main() -> None:
        code = r"print('usage: \x1b[1mfoo ' + 'x' * 10_000); print('more')"
        with pytest.raises(typedmcp.ConnectionLostError) as caught:
            await typedmcp.connect([sys.executable, "-c", code])
        text = str(caught.value)
        assert r"it printed 'usage: \x1b[1mfoo xxx" in text
        assert "which is not a message of MCP" in text
        assert "more" not in text
        assert len(text) < 600

    run(main)


def test_lines_of_a_server_that_are_not_messages_are_reported_and_named_when_no_answer_comes() -> None:
    async def main() -> None:
        code = r"print('Listening \x1b[1m' + 'x' * 10_000, flush=True); import sys; sys.stdin.read()"
        reports = list[typedmcp.Diagnostic]()
        with pytest.raises(
            typedmcp.RequestTimeoutError, match=r"it printed 'Listening \\x1b\[1mxx.*not a message of MCP"
        ):
            await typedmcp.connect([sys.executable, "-S", "-c", code], timeout=2, on_diagnostic=reports.append)
        assert reports[0].kind is typedmcp.DiagnosticKind.MALFORMED
        assert reports[0].text.startswith(r"the server printed 'Listening \x1b[1mxx")
        assert reports[0].text.endswith("which is not a message of MCP; a server prints to standard error")
        assert len(reports[0].text) < 400

    run(main)


HANDSHAKES: dict[str, tuple[str, str | None]] = {
    "the id is always 1": ("if method == 'initialize': answer(id=1)", "server/discover"),
    "every answer has the id 1": (
        'print(\'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\', flush=True)'
        " if method == 'server/discover' else answer(id=1)",
        "the id 1",
    ),
    "the id is always 7": ("if method == 'initialize': answer(id=7)", "the id 7"),
    "the id is null": ("if method == 'initialize': answer(id=None)", "id: expected string or integer, got null"),
    "there is no id": ("if method == 'initialize': answer()", "id: required, but missing"),
    "text for unknown methods": (
        "answer(id=message['id']) if method == 'initialize' else print('unknown', method, flush=True)",
        None,
    ),
    "a banner, then silence": ("if method == 'initialize': answer(id=message['id'])", None),
}
"""What a server does with a message, and the end of the error; None if a client can use it."""

HANDWRITTEN = """
import json, sys
print("Listening" if BANNER else "", flush=True)
def answer(**id):
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", **id, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    STEP
"""


@each("name", HANDSHAKES)
def test_a_handwritten_server_is_understood_or_named_at_once(name: str) -> None:
    async def main() -> None:
        step, fault = HANDSHAKES[name]
        code = HANDWRITTEN.replace("STEP", step).replace("BANNER", str("banner" in name))
        probe = 60 if fault is None else 0.2  # only what it prints ends the long one
        client = connect([sys.executable, "-S", "-c", code], probe=probe, timeout=50, on_diagnostic=ignore)
        async with asyncio.timeout(30):
            if fault is None:
                async with client:
                    assert client.revision == "2025-06-18"
                return
            with pytest.raises(typedmcp.ProtocolError, match=rf"^initialize \(id 2\): the server answered .*{fault}$"):
                await client.open()

    run(main)


COMPLAINING = """
import json, sys
print("Starting", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    lines = [f"no {number}:\\n  is not {method}\\n    see more\\n" for number in range(30)]
    sys.stderr.write("".join(lines) + "end\\n")  # a pipe takes it as a whole
    sys.stderr.flush()
    if "id" not in message:
        continue
    if message["method"] == "KNOWN":
        answer = {"result": json.loads(sys.argv[1])}
    else:
        answer = {"error": {"code": -32602, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@each("known", ["initialize", "server/discover", "nothing"])
def test_what_a_legacy_server_says_about_the_probe_is_summed_up(known: str, capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        code = COMPLAINING.replace("KNOWN", known)
        result = INITIALIZED if known == "initialize" else DISCOVERED
        command = [sys.executable, "-S", "-c", code, json.dumps(result)]
        if known == "nothing":
            with pytest.raises(typedmcp.RemoteError):
                await connect(command).open()
        else:
            async with connect(command):
                pass
            async with connect(command):  # the handshake comes first now
                pass

    run(main)
    text = capfd.readouterr().err
    about = "".join(f"no {number}:\n  is not METHOD\n    see more\n" for number in range(30))
    first = "Starting\nno 0:\n"
    if known == "initialize":
        summary = "[typedmcp: 89 lines of the server about server/discover, which it does not know; "
        assert text.startswith(first + summary + "revisions=['2025-06-18'] does not ask it]\nend\n" + about[:10])
        assert text.count("is not initialize") == 60
    else:
        assert text.startswith("Starting\n" + about.replace("METHOD", "server/discover") + "end\n")
        assert "[typedmcp" not in text
