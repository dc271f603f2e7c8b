"""`validate`: valid and invalid recorded traffic."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import typedmcp as library
import typedmcp_cli
from mcpspec import VERSIONS
from tests.cases import each
from tests.typedmcp_cli.command import typedmcp
from typedmcp.revisions.features import SUPPORTED
from typedmcp_cli.commands.validate import check_lines
from typedmcp_cli.recorded_traffic import RecordingChecker
from typedmcp_cli.traffic import MalformedLineError, TrafficChecker, decode_line

OLD, NEW = "2025-11-25", "2026-07-28"
DISCOVERABLE = [version for version in VERSIONS if version >= NEW]


def request(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})}


def result(id: Any = 1, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": members}


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def by(side: str, message: Any) -> dict[str, Any]:
    return {"sender": side, "message": message, "at": 1.5}


CALL = request("tools/call", name="greet")
TEXT = {"content": [{"type": "text", "text": "hello"}]}
META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
}

VALID: dict[str, tuple[str, list[Any]]] = {
    "a call and its result": (OLD, [CALL, result(**TEXT)]),
    "an error in its place": (OLD, [CALL, {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}]),
    "an error without an id": (OLD, [{"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}]),
    "notifications": (OLD, [notice("notifications/initialized"), notice("notifications/tools/list_changed")]),
    "a request of the server": (OLD, [by("server", request("roots/list")), by("client", result(roots=[]))]),
    "both sides with the same id": (
        OLD,
        [
            by("client", CALL),
            by("server", request("roots/list")),
            by("server", result(**TEXT)),
            by("client", result(roots=[])),
        ],
    ),
    "the same without senders": (OLD, [CALL, request("roots/list"), result(roots=[]), result(**TEXT)]),
    "a ping, which either may send": (OLD, [request("ping"), result()]),
    "ids that are used again": (OLD, [CALL, result(**TEXT), request("tools/list"), result(tools=[])]),
    "ids that look alike": (OLD, [CALL, request("tools/list", "1"), result("1", tools=[]), result(**TEXT)]),
    "a batch": ("2025-03-26", [[CALL, request("ping", 2)], [result(2), result(**TEXT)]]),
    "a wrapper without a sender": (OLD, [{"message": CALL}, {"message": result(**TEXT)}]),
    "a result that asks for input": (
        NEW,
        [
            request("tools/call", name="a", _meta=META),
            result(resultType="input_required", requestState="x", inputRequests={"a": {"method": "roots/list"}}),
        ],
    ),
    "a task of the extension": (
        NEW,
        [
            request("tools/call", name="a", _meta=META),
            result(
                resultType="task", taskId="t", status="working", createdAt="2026-01-01T00:00:00Z",
                lastUpdatedAt="2026-01-01T00:00:00Z", ttlMs=None,
            ),
            request("tasks/get", 2, taskId="t", _meta=META),
        ],
    ),
}  # fmt: skip

INVALID: dict[str, tuple[str, list[Any], str]] = {
    "a parameter that is missing": (
        OLD, [request("tools/call", nam="a")], "tools/call: params.name: required, but missing"
    ),
    "an invalid result": (
        OLD,
        [request("tools/list"), result(tools=[{"name": 3, "inputSchema": {"type": "object"}}])],
        "tools/list: result.tools[0].name: expected string, got 3",
    ),
    "a result of another method": (OLD, [CALL, result(tools=[])], "tools/call: result.content: required, but missing"),
    "a result that is not an object": (
        OLD, [CALL, {"jsonrpc": "2.0", "id": 1, "result": 3}], "tools/call: result: expected object, got 3"
    ),
    "a response without a request": (OLD, [result(7)], "id: no earlier request has the id 7"),
    "a response to one's own request": (
        OLD, [by("client", CALL), by("client", result(**TEXT))], "id: no earlier request has the id 1"
    ),
    "a second response": (OLD, [CALL, result(**TEXT), result(**TEXT)], "id: no earlier request has the id 1"),
    "an error without a code": (
        OLD,
        [CALL, {"jsonrpc": "2.0", "id": 1, "error": {"message": "no"}}],
        "tools/call: error.code: required, but missing",
    ),
    "a message that is not JSON-RPC": (OLD, [{"id": 1, "method": "ping"}], 'ping: jsonrpc: required, but missing'),
    "an unknown method": (OLD, [request("tools/cal")], "tools/cal: method: unknown in 2025-11-25"),
    "a method of another revision": (
        NEW,
        [request("ping", _meta=META)],
        "ping: method: unknown in 2026-07-28; known in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25",
    ),
    "a method of the other side": (
        OLD,
        [by("client", request("roots/list"))],
        "roots/list: method: sent by the client, but only the server may send it"
    ),
    "an input request as a message": (
        NEW, [request("roots/list")], "roots/list: method: not a message in 2026-07-28; it is part of a result"
    ),
    "a request without an id": (OLD, [notice("tools/list")], "tools/list: method: a request must have an id"),
    "a notification with an id": (
        OLD,
        [request("notifications/initialized")],
        "notifications/initialized: method: a notification must not have an id",
    ),
    "a method that is not a string": (OLD, [{"jsonrpc": "2.0", "method": 3}], "method: expected string, got 3"),
    "an invalid id": (OLD, [request("ping", 1.5)], "ping: id: expected string or integer, got 1.5"),
    "an empty message": (OLD, [{"jsonrpc": "2.0"}], "not a message: it has no method, result or error"),
    "a number": (OLD, [3], "not a message: it has no method, result or error"),
    "a batch in a revision without batches": (OLD, [[CALL]], "batches do not exist in 2025-11-25"),
    "an invalid message in a batch": (
        "2025-03-26", [[CALL, request("tools/call", 2)]], "tools/call: [1].params: required, but missing"
    ),
    "an invalid sender": (
        OLD, [{"sender": "up", "message": notice("notifications/initialized")}],
        'sender: expected "client" or "server", got "up"',
    ),
}  # fmt: skip


@each("version, messages", VALID.values(), ids=VALID)
def test_valid_traffic_has_no_faults(version: str, messages: list[Any]) -> None:
    checker = TrafficChecker(version)
    assert [str(fault) for message in messages for fault in checker.check(message)] == []


@each("version, messages, expected", INVALID.values(), ids=INVALID)
def test_invalid_traffic_has_a_fault(version: str, messages: list[Any], expected: str) -> None:
    checker = TrafficChecker(version)
    assert [str(fault) for message in messages for fault in checker.check(message)] == [expected]


@each("version", VERSIONS)
def test_every_revision_can_be_checked(version: str) -> None:
    checker = TrafficChecker(version)
    assert [*checker.check({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}})] == []
    assert [str(fault) for fault in checker.check(result(1))] == ["id: no earlier request has the id 1"]


def test_requests_with_a_response_are_not_kept() -> None:
    checker = TrafficChecker(OLD)
    for id in range(100):
        assert [*checker.check(by("client", request("ping", id))), *checker.check(by("server", result(id)))] == []
    assert checker.open_requests == 0


@each(
    "line, expected",
    [
        (b"{", "not JSON: Input data was truncated"),
        (b'{"a": \xff}', "not JSON: JSON is malformed: invalid character (byte 6)"),
        (b'"\xff"', "not UTF-8"),
        (b"[" * 100_000, "not JSON: nested too deeply: more than 200 levels of arrays and objects"),
    ],
)
def test_a_line_that_is_not_json_is_malformed(line: bytes, expected: str) -> None:
    with pytest.raises(MalformedLineError) as caught:
        decode_line(line)
    assert str(caught.value) == expected


def test_faults_have_line_numbers_and_set_the_status(tmp_path: Path) -> None:
    lines = [
        b"\xef\xbb\xbf" + json.dumps(CALL).encode(),
        b"",
        b"  \r",
        json.dumps(by("server", result(content=[{"type": "txt"}]))).encode() + b"\r",
        b"{broken",
        json.dumps(request("ping", 2)).encode(),
    ]
    (tmp_path / "traffic.jsonl").write_bytes(b"\n".join(lines))
    done = typedmcp("validate", "traffic.jsonl", "--version", OLD, cwd=tmp_path)
    expected = 'expected "text", "image", "audio", "resource_link" or "resource", got "txt"'
    assert done.out.splitlines() == [
        f"traffic.jsonl:4: tools/call: result.content[0].type: {expected}",
        "traffic.jsonl:5: not JSON: JSON is malformed: object keys must be strings (byte 1)",
        "4 messages, 2 faults",
    ]
    assert (done.status, done.err) == (1, "")
    done = typedmcp("validate", "traffic.jsonl", "--revision", OLD, "--json", cwd=tmp_path)
    assert done.status == 1
    assert {name: done.json[name] for name in ("file", "revision", "messages")} == {
        "file": "traffic.jsonl",
        "revision": OLD,
        "messages": 4,
    }
    assert done.json["faults"][0] == {
        "line": 4, "method": "tools/call", "path": "result.content[0].type", "reason": expected
    }  # fmt: skip


async def use(path: Path, client: list[str], server: list[str]) -> None:
    """Record two connections of a client and a server that speak these revisions."""
    made = library.Server("recorded")

    @made.tool
    async def add(ctx: library.Context, amount: int, password: str) -> int:
        await ctx.report_progress(0.5, message=password)
        return amount

    recorder = typedmcp_cli.Recorder(path)
    for _ in range(2):
        config = library.ServerConfig(made, revisions=server)
        async with library.connect(config, revisions=client, record=recorder, on_diagnostic=lambda _: None) as session:
            await session.call_tool("add", {"amount": 1, "password": "hunter22"}, on_progress=lambda _: None)
            assert (await session.call_tool("add", {"amount": "no"})).is_error
            assert [tool.name async for tool in session.tools()] == ["add"]
    recorder.close()


@each("version", SUPPORTED)
@each("is_chosen_by", ["client", "server"])
def test_recordings_of_every_negotiation_are_valid_without_an_option(
    version: str, is_chosen_by: str, tmp_path: Path
) -> None:
    file, every = tmp_path / "session.jsonl", [*SUPPORTED]
    client, server = ([version], every) if is_chosen_by == "client" else (every, [version])
    asyncio.run(use(file, client, server))
    lines = file.read_bytes().splitlines()
    checker = RecordingChecker(None)
    assert [*check_lines(lines, checker)] == []
    assert checker.messages == len(lines) > 10
    plain = [json.dumps(json.loads(line)["message"]).encode() for line in lines[: len(lines) // 2]]
    assert [*check_lines(plain, RecordingChecker(None))] == []


@each(
    "line, expected",
    [
        (CALL, "its revision is not known from this line or those before; use --revision"),
        ({**by("client", CALL), "revision": "2025"}, f'revision: expected one of {", ".join(VERSIONS)}, got "2025"'),
        ({**by("server", None), "revision": OLD, "invalid_bytes": 7}, "a frame of 7 bytes that is not JSON"),
        (
            {**by("client", request("server/discover")), "revision": OLD},
            f"server/discover: method: unknown in {OLD}; known in {', '.join(DISCOVERABLE)}",
        ),
        (by("up", notice("notifications/initialized")), 'sender: expected "client" or "server", got "up"'),
    ],
)
def test_a_line_of_a_recording_has_a_fault(line: Any, expected: str) -> None:
    assert str(next(RecordingChecker(None).check(line))) == expected


def test_ids_of_different_connections_are_kept_apart() -> None:
    checker = RecordingChecker(OLD)
    lines = [
        {**by(side, message), "connection": number}
        for side, messages in (("client", [request("ping"), CALL]), ("server", [result(), result(**TEXT)]))
        for number, message in enumerate(messages)
    ]
    assert [str(fault) for line in lines for fault in checker.check(line)] == []


def test_faults_cannot_control_a_terminal(tmp_path: Path) -> None:
    controls = "\x1b]0;pwn\x07\x9b2J\u202e\x7f\nforged"
    (tmp_path / "traffic.jsonl").write_text(json.dumps(request(controls)), encoding="utf-8")
    for options in ((), ("--json",)):
        done = typedmcp("validate", "traffic.jsonl", "--revision", OLD, *options, cwd=tmp_path)
        assert all(line.isprintable() for line in done.out.splitlines()), done.out
        assert "\nforged" not in done.out
    assert done.json["faults"][0]["method"] == controls


def test_traffic_can_come_from_standard_input() -> None:
    done = typedmcp("validate", "-", "--version", OLD, stdin=json.dumps(request("ping")))
    assert (done.status, done.out) == (0, "1 message, valid\n")
    done = typedmcp("validate", "-", "--version", OLD, "--json")
    assert done.json == {"file": "-", "revision": OLD, "faults": [], "messages": 0}


@each(
    "arguments, expected",
    [
        (["nowhere.jsonl", "--version", OLD], "nowhere.jsonl: No such file or directory"),
        ([".", "--version", OLD], ".: Is a directory"),
        (["nowhere.jsonl", "--version", "2025"], 'Invalid value "2025" for --version. Choose from: "2024-11-05"'),
    ],
    ids=" ".join,
)
def test_a_file_that_cannot_be_checked_is_rejected(arguments: list[str], expected: str, tmp_path: Path) -> None:
    done = typedmcp("validate", *arguments, cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {expected}")


def test_traffic_is_not_held_in_memory() -> None:
    def lines() -> Iterator[bytes]:
        for id in range(1_500):
            yield json.dumps(request("ping", f"{id:01000}")).encode() + b"\n"
            yield json.dumps(result(f"{id:01000}", content="no")).encode() + b"\n"

    tracemalloc.start()
    try:
        assert sum(1 for _ in check_lines(lines(), RecordingChecker(OLD))) == 0
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
