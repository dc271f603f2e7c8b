"""`typedmcp dev` as a process, and requests to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT

__all__ = ["DevPage", "dev_page"]


class PageResponse(NamedTuple):
    """A whole response."""

    status: int
    headers: Message
    body: bytes


@dataclass(frozen=True)
class DevPage:
    """A running page."""

    url: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def request(self, method: str = "GET", path: str = "", body: str | None = None, **headers: str) -> PageResponse:
        """Send a request below the token, or to an absolute path."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(connection):
            connection.request(method, path if path.startswith("/") else urlsplit(self.url).path + path, body, named)
            with connection.getresponse() as response:
                return PageResponse(response.status, response.headers, response.read())


@contextmanager
def dev_page(*arguments: str, cwd: Path, log: Path = Path(os.devnull)) -> Generator[DevPage]:
    """Run the command, and end it. Its standard error goes to `log`."""
    with log.open("w", encoding="utf-8") as errors:
        command: Sequence[str] = [*COMMAND, "dev", *arguments]
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT)
        with process:
            try:
                assert process.stdout is not None
                yield DevPage(process.stdout.readline().strip(), process)
            finally:
                process.terminate()
                process.wait(20)
