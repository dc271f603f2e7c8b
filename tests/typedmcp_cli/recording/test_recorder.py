"""Servers and clients record their messages, over every transport, in the format that `validate` reads."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
import typedmcp_cli
from tests.cases import each
from tests.server.scripted import SUPPORTED, run
from typedmcp.errors import UsageError
from typedmcp_cli.command_line import run_command_line
from typedmcp_http import UvicornServer

KEY = "key-of-the-test-0123456789"


def make_server() -> typedmcp.Server:
    server = typedmcp.Server("recorded")

    @server.tool
    async def climb(ctx: typedmcp.Context, password: str = "") -> str:
        await ctx.progress(1, total=2)
        return f"the password was {password}"

    return server


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


async def call(target: Any, **options: Any) -> None:
    async with typedmcp.connect(target, **options) as client:
        await client.call_tool("climb", {"password": "hunter2hunter2"}, on_progress=lambda _: None)


@asynccontextmanager
async def over_http(**options: Any) -> AsyncGenerator[str]:
    auth = typedmcp.StaticTokens({KEY: typedmcp.Principal("test")})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        app = typedmcp.asgi(make_server(), sse_path="/sse", auth=auth, **options)
        uvicorn = UvicornServer(app, "127.0.0.1", port)
        serving = asyncio.create_task(uvicorn.serve([listener]))
        while not uvicorn.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            uvicorn.should_exit = True
            await serving


def check(file: Path, revision: str, capfd: pytest.CaptureFixture[str]) -> None:
    entries = read(file)
    methods = [entry["message"].get("method") for entry in entries]
    assert "tools/call" in methods
    assert "notifications/progress" in methods
    assert {entry["sender"] for entry in entries} == {"client", "server"}
    assert {entry["revision"] for entry in entries if entry["message"].get("method") == "tools/call"} == {revision}
    assert all(entry["time"].startswith("20") and entry["time"].endswith("Z") for entry in entries)
    text = file.read_text(encoding="utf-8")
    assert "hunter2hunter2" not in text
    assert "the password was [masked]" in text
    assert KEY not in text
    assert "uthorization" not in text
    capfd.readouterr()
    assert run_command_line(["validate", str(file), "--revision", revision]) == 0, capfd.readouterr().out


@each("revision", SUPPORTED)
def test_both_sides_of_a_stream_record_the_same_messages(
    revision: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    near, far = tmp_path / "client.jsonl", tmp_path / "server.jsonl"

    async def main() -> None:
        config = typedmcp.ServerConfig(make_server(), record=typedmcp_cli.Recorder(far))
        await call(config, record=typedmcp_cli.Recorder(near), revisions=[revision])

    run(main)
    check(near, revision, capfd)
    check(far, revision, capfd)
    assert [entry["message"] for entry in read(near)] == [entry["message"] for entry in read(far)]


@each("revision", SUPPORTED[:4])
def test_http_is_recorded_on_both_sides_without_headers(
    revision: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    near, far = tmp_path / "client.jsonl", tmp_path / "server.jsonl"

    async def main() -> None:
        async with over_http(record=typedmcp_cli.Recorder(far)) as url:
            await call(f"{url}/mcp", record=typedmcp_cli.Recorder(near), revisions=[revision], auth=KEY)

    run(main)
    check(near, revision, capfd)
    check(far, revision, capfd)
    assert {json.dumps(entry["message"]) for entry in read(near)} == {
        json.dumps(entry["message"]) for entry in read(far)
    }
    if revision != SUPPORTED[0]:
        assert {entry["connection"] for entry in read(far)} == {1}, "a session is one connection"


def test_http_with_sse_is_recorded_on_both_sides(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    near, far = tmp_path / "client.jsonl", tmp_path / "server.jsonl"

    async def main() -> None:
        async with over_http(record=typedmcp_cli.Recorder(far)) as url:
            await call(f"{url}/sse", sse=True, record=typedmcp_cli.Recorder(near), revisions=["2024-11-05"], auth=KEY)

    run(main)
    check(near, "2024-11-05", capfd)
    check(far, "2024-11-05", capfd)


def test_several_connections_share_a_recorder_and_have_numbers(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"

    async def main() -> None:
        recorder = typedmcp_cli.Recorder(file, mask=["protocolVersion"])
        for _ in range(2):
            await call(make_server(), record=recorder)
        recorder.close()
        await call(make_server(), record=recorder)

    run(main)
    assert {entry["connection"] for entry in read(file)} == {1, 2}


def test_record_and_on_frame_work_together(tmp_path: Path) -> None:
    file, seen = tmp_path / "a.jsonl", list[str]()

    def on_frame(sender: str, data: bytes) -> None:
        seen.append(sender)

    run(lambda: call(make_server(), record=typedmcp_cli.Recorder(file), on_frame=on_frame))
    assert [entry["sender"] for entry in read(file)] == seen


def test_a_recording_replaces_the_file_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    typedmcp_cli.Recorder(file).open()("client", b"{}")
    typedmcp_cli.Recorder(file).open()("client", b"{}")
    assert len(read(file)) == 1
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_a_file_that_others_may_read_becomes_private(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("old")
    file.chmod(0o644)
    typedmcp_cli.Recorder(file).close()
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("", 0o600)


def test_a_recording_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(typedmcp.UsageError, match=r"a\.jsonl cannot be written: it is a link, which is not followed"):
        typedmcp_cli.Recorder(tmp_path / "a.jsonl")
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_device_keeps_its_mode() -> None:
    before = os.stat(os.devnull).st_mode
    typedmcp_cli.Recorder(os.devnull).close()
    assert os.stat(os.devnull).st_mode == before


@each("data", [b'{"password": "hunter2"', b"\xff\xfe", b"[" * 5000, b'"\\ud800"'])
def test_a_frame_that_is_not_json_is_recorded_by_its_size_alone(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    typedmcp_cli.Recorder(file).open()("server", data)
    (entry,) = read(file)
    assert (entry["message"], entry["invalid_bytes"]) == (None, len(data))
    assert run_command_line(["validate", str(file), "--revision", "2025-11-25"]) == 1


def test_a_recording_ends_at_the_limit_and_the_connection_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.jsonl"
    with caplog.at_level(logging.WARNING, "typedmcp"):
        run(
            lambda: call(make_server(), record=typedmcp_cli.Recorder(file, limits=typedmcp.Limits(recording_bytes=600)))
        )
    assert 0 < os.stat(file).st_size <= 600
    assert "the recording ends here: the limit recording_bytes is reached" in caplog.text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_the_recording_and_not_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "typedmcp"):
        run(lambda: call(make_server(), record=typedmcp_cli.Recorder("/dev/full")))
    assert "/dev/full: the recording ends here: No space left on device" in caplog.text


def test_a_file_that_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing/a.jsonl cannot be written: No such file or directory"):
        typedmcp_cli.Recorder(tmp_path / "missing" / "a.jsonl")
    with pytest.raises(UsageError, match=r"mask must be a list of names, such as \['email'\]"):
        typedmcp_cli.Recorder(tmp_path / "a.jsonl", mask="email")
