"""Ctrl-C before a command starts, and while it talks to a server."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from tests.cases import each
from tests.typedmcp_cli.command import ENVIRONMENT
from typedmcp_cli.interrupts import run_async

INTERRUPT_DURING_IMPORT = """
import signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            Interrupt()

class Interrupt:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["typedmcp", "list", "nowhere.py"]
from typedmcp_cli.start import main
main()
"""
"""A program with Ctrl-C in a destructor, where an exception would get lost."""


@each("name", ["typedmcp_cli.command_line", "cyclopts", "typedmcp_cli.commands.list", "typedmcp.client.client"])
def test_ctrl_c_is_not_lost_while_modules_are_imported(name: str) -> None:
    code = INTERRUPT_DURING_IMPORT.format(name=name)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


def test_ctrl_c_is_reported_even_if_the_task_is_also_cancelled() -> None:
    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        signal.raise_signal(signal.SIGINT)
        task.cancel()
        await asyncio.sleep(30)

    with pytest.raises(KeyboardInterrupt):
        run_async(work())


def test_cleanup_runs_before_ctrl_c_ends_the_command() -> None:
    closed: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            closed.append("all")

    with pytest.raises(KeyboardInterrupt):
        run_async(work())
    assert closed == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
