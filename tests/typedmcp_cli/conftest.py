from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.typedmcp_cli.command import SERVER, CommandResult, InProcess, over_http
from typedmcp_cli.command_line import run_command_line


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `server.py`. Tests must not change it."""
    made = tmp_path_factory.mktemp("served")
    (made / "server.py").write_text(SERVER, encoding="utf-8")
    return made


@pytest.fixture(scope="session")
def url(folder: Path) -> Iterator[str]:
    """The URL of the same server over HTTP."""
    with over_http(folder / "server.py") as origin:
        yield f"{origin}/mcp"


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str]) -> InProcess:
    """A function that runs a command line in this process."""

    def run(*arguments: object) -> CommandResult:
        status = run_command_line([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return CommandResult(status, captured.out, captured.err)

    return run
