"""A real `redis-server` for tests, on a port of its own, in a temporary folder, with persistence only on request."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.ports import reserved_port

__all__ = ["RedisServer", "redis_server", "shared_redis"]

_BINARY = shutil.which("redis-server")
_TIMEOUT = 20.0

_AGE_SCRIPT = """
for _, key in ipairs(redis.call('KEYS', ARGV[1]..'*')) do
  local left = redis.call('PTTL', key)
  if left > 0 then redis.call('PEXPIRE', key, left - ARGV[2]) end
  local name = string.sub(key, #ARGV[1] + 1)
  if name == 'sessions' or name == 'ended' or string.find(name, '^streams:') then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ARGV[2], member) end
  end
end
"""


class RedisServer:
    """A server process that runs while it is entered. `start` and `stop` may be called in between."""

    def __init__(self, binary: str, folder: Path, port: int, *, is_durable: bool = False) -> None:
        self._binary = binary
        self._is_durable = is_durable
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def __enter__(self) -> RedisServer:
        while self._process is None:
            self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server with the saved data."""
        durable = {"appendonly": "yes", "appendfsync": "always"} if self._is_durable else {"appendonly": "no"}
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "save": "", **durable}
        command = [self._binary, *(part for name, value in options.items() for part in (f"--{name}", str(value)))]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if _wait_until(_TIMEOUT, lambda: process.poll() is not None or self.answers()) and process.poll() is None:
            self._process = process

    def stop(self) -> None:
        """Kill the server, as in a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Suspend the server process."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def save(self) -> None:
        """Save the data for the next start."""
        assert self.ask(b"SAVE") == b"+OK\r\n"

    def advance(self, prefix: str, seconds: float) -> None:
        """Age the keys, sessions and streams of a store by some seconds, but not its workers."""
        with self.client() as client:
            client.eval(_AGE_SCRIPT, 0, prefix, int(seconds * 1000))

    def client(self) -> Any:
        """Return a blocking client."""
        return import_module("redis").Redis.from_url(self.url)

    def answers(self) -> bool:
        """Return whether the server answers."""
        try:
            return self.ask(b"PING") == b"+PONG\r\n"
        except OSError:
            return False

    def ask(self, command: bytes) -> bytes:
        """Send one command, whose arguments have no spaces. Return the first bytes of its answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=_TIMEOUT) as connection:
            connection.sendall(command + b"\r\n")
            return connection.recv(1 << 16)


@contextmanager
def redis_server(*, is_durable: bool = False) -> Generator[RedisServer]:
    """Run a server, which keeps every command if it is durable. Skips the test if Redis is not installed."""
    if _BINARY is None:
        pytest.skip("needs redis-server (Debian package redis-server)")
    pytest.importorskip("redis", reason="needs the extra redis")
    with (
        tempfile.TemporaryDirectory() as folder,
        reserved_port() as port,
        RedisServer(_BINARY, Path(folder), port, is_durable=is_durable) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def shared_redis() -> Generator[RedisServer]:
    """A server that tests share, each with a prefix of its own."""
    with redis_server() as server:
        yield server


def _wait_until(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
