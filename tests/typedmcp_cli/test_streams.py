"""Standard streams that are closed or full."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cases import each
from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT, CommandResult

FULL = "error: No space left on device\n"
CLOSED = "error: standard output is closed\n"


def _run_in_shell(command: str, redirection: str, cwd: Path) -> CommandResult:
    words = [*COMMAND, *command.split()]
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(words)} {redirection}"],
        cwd=cwd, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@each("command", ["--version", "--help", "list URL", "list URL prompts --json"])
def test_a_write_error_is_reported_in_one_line(command: str, url: str, tmp_path: Path) -> None:
    assert _run_in_shell(command.replace("URL", url), "> /dev/full", tmp_path) == CommandResult(1, "", FULL)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_error_is_reported_even_if_nothing_can_be_written(tmp_path: Path) -> None:
    assert _run_in_shell("list nowhere.py", "> /dev/full", tmp_path) == CommandResult(
        2, "", "error: no such file: nowhere.py\n"
    )
    assert _run_in_shell("list nowhere.py", "2> /dev/full", tmp_path) == CommandResult(2, "", "")


@each("command", ["--version", "list server.py"])
def test_a_closed_standard_output_is_a_usage_error(command: str, tmp_path: Path) -> None:
    assert _run_in_shell(command, ">&-", tmp_path) == CommandResult(2, "", CLOSED)


@each("command", ["--version", "list URL prompts", "list server.py prompts"])
def test_a_closed_standard_error_does_not_change_the_output(command: str, url: str, folder: Path) -> None:
    done = _run_in_shell(command.replace("URL", url), "2>&-", folder)
    assert done.status == 0
    assert done.out


@each("command", ["validate - --revision 2025-11-25", "call server.py fail --json-args -"])
def test_a_closed_standard_input_is_a_usage_error(command: str, folder: Path) -> None:
    assert _run_in_shell(command, "<&-", folder) == CommandResult(2, "", "error: standard input is closed\n")


def test_a_server_needs_standard_input_and_output(folder: Path) -> None:
    for name, redirection in (("input", "<&-"), ("output", ">&-")):
        done = _run_in_shell("run server.py", redirection, folder)
        assert done == CommandResult(2, "", f"error: standard {name} is closed: serving over stdio needs it\n")


@each("command", ["--help", "diff 2024-11-05 2026-07-28"])
def test_a_closed_pipe_ends_the_output_quietly(command: str) -> None:
    with subprocess.Popen(
        [*COMMAND, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(30) == 0
