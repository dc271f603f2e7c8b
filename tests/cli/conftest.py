from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import SERVER, Done, Inside, over_http
from typedmcp.cli.app import run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `server.py`, for tests that change nothing in it."""
    made = tmp_path_factory.mktemp("served")
    (made / "server.py").write_text(SERVER, encoding="utf-8")
    return made


@pytest.fixture(scope="session")
def url(folder: Path) -> Iterator[str]:
    """The same server over HTTP."""
    with over_http(folder / "server.py") as origin:
        yield f"{origin}/mcp"


@pytest.fixture
def inside(capfd: pytest.CaptureFixture[str]) -> Inside:
    """Runs a command line in this process."""

    def command(*arguments: object) -> Done:
        status = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Done(status, captured.out, captured.err)

    return command
