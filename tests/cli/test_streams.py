"""Standard streams that are closed, full, or read by nobody."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, ENVIRONMENT, Done

FULL = "error: No space left on device\n"
CLOSED = "error: standard output is closed\n"


def _in_shell(command: str, redirection: str, cwd: Path) -> Done:
    words = [*COMMAND, *command.split()]
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(words)} {redirection}"],
        cwd=cwd, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@pytest.mark.parametrize("command", ["--version", "--help", "list URL", "list URL prompts --json"])
def test_output_that_cannot_be_written_is_told_in_one_line(command: str, url: str, tmp_path: Path) -> None:
    assert _in_shell(command.replace("URL", url), "> /dev/full", tmp_path) == Done(1, "", FULL)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_what_is_wrong_is_told_even_where_nothing_can_be_written(tmp_path: Path) -> None:
    assert _in_shell("list nowhere.py", "> /dev/full", tmp_path) == Done(2, "", "error: no such file: nowhere.py\n")
    assert _in_shell("list nowhere.py", "2> /dev/full", tmp_path) == Done(2, "", "")


@pytest.mark.parametrize("command", ["--version", "list server.py"])
def test_without_standard_output_there_is_a_line_and_a_status(command: str, tmp_path: Path) -> None:
    assert _in_shell(command, ">&-", tmp_path) == Done(2, "", CLOSED)


@pytest.mark.parametrize("command", ["--version", "list URL prompts", "list server.py prompts"])
def test_without_standard_error_all_else_is_as_ever(command: str, url: str, folder: Path) -> None:
    done = _in_shell(command.replace("URL", url), "2>&-", folder)
    assert done.status == 0
    assert done.out


@pytest.mark.parametrize("command", ["validate - --revision 2025-11-25", "call server.py fail --json-args -"])
def test_standard_input_that_is_asked_for_has_to_be_open(command: str, folder: Path) -> None:
    assert _in_shell(command, "<&-", folder) == Done(2, "", "error: standard input is closed\n")


def test_a_server_wants_both_and_says_so(folder: Path) -> None:
    for name, redirection in (("input", "<&-"), ("output", ">&-")):
        done = _in_shell("run server.py", redirection, folder)
        assert done == Done(2, "", f"error: standard {name} is closed: there is nothing to serve on\n")


@pytest.mark.parametrize("command", ["--help", "diff 2024-11-05 2026-07-28"])
def test_a_reader_that_has_seen_enough_ends_the_output_quietly(command: str) -> None:
    with subprocess.Popen(
        [*COMMAND, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(30) == 0
