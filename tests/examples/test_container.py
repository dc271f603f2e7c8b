"""The image of examples/deploy: its Dockerfile is carried out without Docker, with folders as roots of its stages."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import typedmcp
from tests.paths import ROOT
from tests.ports import reserved_port
from tests.redis_server import redis_server

pytestmark = pytest.mark.long
FOLDER = ROOT / "examples" / "deploy"
KEY = "0123456789abcdef"


class Image:
    """What a Dockerfile makes of a context."""

    def __init__(self, text: str, context: Path, folder: Path) -> None:
        self.users: list[str] = []
        self.command: list[str] = []
        self.check: list[str] = []
        self._context = context
        self._folder = folder
        self._stages: dict[str, Path] = {}
        self._root = folder
        self._place = "/"
        for line in re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).splitlines():
            if line:
                name, _, rest = line.partition(" ")
                getattr(self, f"_{name.lower()}")(rest)

    def path(self, path: str) -> Path:
        """Return where a path of the image is."""
        return self._root / path.removeprefix("/")

    def run(self, command: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the folder of `WORKDIR`."""
        placed = [str(self.path(part)) if part.startswith("/venv/") else part for part in command]
        return subprocess.Popen(placed, cwd=self.path(self._place), **options)

    def _from(self, rest: str) -> None:
        image, _, name = rest.partition(" AS ")
        assert re.fullmatch(r"python:3\.\d+-slim", image)
        self._root = self._stages[name] = self._folder / f"stage-{len(self._stages)}"
        self._root.mkdir()

    def _copy(self, rest: str) -> None:
        *options, source, target = rest.split()
        given = dict(option.removeprefix("--").split("=") for option in options)
        start = self._stages[given["from"]] if "from" in given else self._context
        found = start / source.removeprefix("/")
        if found.is_dir():
            shutil.copytree(found, self.path(target), symlinks=True)
        else:
            self.path(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, self.path(target))

    def _run(self, rest: str) -> None:
        for part in rest.split(" && "):
            words = [str(self.path(word)) if word.startswith("/") else word for word in shlex.split(part)]
            if words[0] == "python":
                words[0] = sys.executable
            done = subprocess.run(words, cwd=self._root, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def _workdir(self, rest: str) -> None:
        self._place = rest

    def _user(self, rest: str) -> None:
        self.users.append(rest)

    def _expose(self, rest: str) -> None:
        assert rest == "8000"

    def _healthcheck(self, rest: str) -> None:
        self.check = json.loads(rest.partition(" CMD ")[2])

    def _cmd(self, rest: str) -> None:
        self.command = json.loads(rest)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    context, folder = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("image")
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs git, and a checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
    return Image((FOLDER / "Dockerfile").read_text(), context, folder)


def with_port(command: list[str], port: int) -> list[str]:
    return [re.sub(r"0\.0\.0\.0", "127.0.0.1", part).replace("8000", str(port)) for part in command]


async def is_healthy(image: Image, port: int) -> bool:
    with image.run(with_port(image.check, port), stderr=subprocess.DEVNULL) as process:
        return await asyncio.to_thread(process.wait) == 0


async def use(image: Image, port: int, environment: Mapping[str, str]) -> int:
    """Serve, check the health, call, and stop the server while a call is in progress. Return its exit status."""
    with image.run(with_port(image.command, port), env=environment) as process:
        try:
            while not await is_healthy(image, port):
                assert process.poll() is None
            async with typedmcp.connect(f"http://127.0.0.1:{port}/mcp") as client:
                assert [tool.name async for tool in client.tools()] == ["count"]
                began = asyncio.Event()
                calling = asyncio.create_task(client.call_tool("count", on_progress=lambda _: began.set()))
                await began.wait()
                process.send_signal(signal.SIGTERM)
                result: Any = await calling  # the server lets a call of 2.5 s end
                assert result.content[0].text == f"worker {process.pid} counted to five"
            return await asyncio.to_thread(process.wait)
        finally:
            process.kill()


def test_the_image_serves_is_healthy_and_ends_its_calls_when_it_is_stopped(image: Image) -> None:
    async def main() -> int:
        async with asyncio.timeout(60):
            return await use(image, port, environment)

    with redis_server() as redis, reserved_port() as port:
        environment = {"MCP_KEY": KEY, "MCP_REDIS": redis.url, "MCP_HOSTS": "127.0.0.1"}
        assert asyncio.run(main()) in (0, -signal.SIGTERM)
    assert image.users == ["nobody"]
    assert not image.path("/src").exists()


def test_the_replicas_have_what_the_server_reads() -> None:
    services = msgspec.yaml.decode((FOLDER / "compose.yaml").read_bytes())["services"]
    read = {*re.findall(r'os\.environ\["(\w+)"\]', (FOLDER / "app.py").read_text())}
    assert {*services["clock"]["environment"]} == read
    assert services["clock"]["ports"] == ["127.0.0.1:8001-8002:8000"]
    assert "noeviction" in services["redis"]["command"]
