"""`typedmcp record` passes messages on unchanged and records them; `--record` does so for other commands."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cases import each
from tests.typedmcp_cli.command import ENVIRONMENT, InProcess, typedmcp

COMMAND = [sys.executable, "-m", "typedmcp"]


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "record", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    )


@each("revision", ["2026-07-28", "2025-06-18"])
def test_a_host_uses_a_server_through_record(revision: str, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    relay = shlex.join([*COMMAND, "record", str(folder / "server.py"), "--out", str(file), "--mask", "city"])
    done = typedmcp("call", "forecast", "city=Bergen-by-the-sea", "--revision", revision, "--command", relay)
    assert (done.status, done.out) == (0, "'Bergen-by-the-sea', 3 days, C, []\n")
    assert "Bergen" not in file.read_text()
    assert typedmcp("validate", file, "--revision", revision).status == 0


def test_a_pipeline_gets_its_responses_after_the_end_of_its_input(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    script = 'import sys\nfor line in sys.stdin: print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', flush=True)'
    process = start("--out", file, "--", sys.executable, "-c", script)
    out, _ = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', timeout=20)
    assert out == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert process.returncode == 0
    assert [entry["sender"] for entry in read(file)] == ["client", "server"]


def test_the_exit_status_is_that_of_the_server(tmp_path: Path) -> None:
    for script, status in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL)):
        process = start("--out", tmp_path / "a.jsonl", "--", sys.executable, "-c", script)
        process.communicate(timeout=20)
        assert process.returncode == status


def test_bytes_that_are_no_messages_pass_unchanged(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(b'\\xff no\\r\\nhalf'); sys.stdout.flush(); sys.stdin.read()"
    process = start("--out", tmp_path / "a.jsonl", "--", sys.executable, "-c", script)
    assert process.stdout is not None
    assert process.stdout.read(10) == b"\xff no\r\nhalf"
    process.communicate(timeout=20)


def test_calls_and_servers_are_recorded_with_an_option(folder: Path, tmp_path: Path) -> None:
    near, far = tmp_path / "near.jsonl", tmp_path / "far.jsonl"
    serving = shlex.join([*COMMAND, "run", str(folder / "server.py"), "--record", str(far)])
    done = typedmcp("call", "total", "numbers:=[1, 2]", "--record", near, "--command", serving)
    assert (done.status, done.out) == (0, "3.0\n")
    assert [entry["message"] for entry in read(near)] == [entry["message"] for entry in read(far)]


def test_wrong_uses_are_explained(folder: Path, tmp_path: Path, in_process: InProcess) -> None:
    done = in_process("record", "https://example.com/mcp")
    assert (done.status, "record starts a server for a host" in done.err) == (2, True)
    done = in_process("record", folder / "server.py", "--out", tmp_path / "no" / "a.jsonl")
    assert (done.status, "cannot be written: No such file" in done.err) == (2, True)
    done = in_process("run", folder / "server.py", "--reload", "--record", tmp_path / "a.jsonl")
    assert (done.status, "--record and --reload cannot be used together" in done.err) == (2, True)
