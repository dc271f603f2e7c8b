"""The fixture `mcp_cassette` records once, replays afterwards, and says what has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SERVER = """
import typedmcp

server = typedmcp.Server("weather")

@server.tool
async def look_up(city: str, email: str = "") -> str:
    return f"sunny in {city} {open('state').read()}{email}"

if __name__ == "__main__":
    server.run()
"""

TESTS = """
import asyncio

import pytest
import typedmcp

from server import server

@pytest.fixture(scope="session")
def mcp_cassette_mask():
    return ["email"]

@pytest.mark.parametrize("city", ["oslo", "sao paulo/x"])
def test_async(mcp_cassette, city):
    async def main():
        async with mcp_cassette.connect(server, timeout=20) as client:
            return typedmcp.text_of(await client.call_tool("look_up", {"city": city, "email": "ada@example.org"}))
    assert asyncio.run(main()).startswith(f"sunny in {city} first")

def test_sync(mcp_cassette):
    for _ in range(2):
        with mcp_cassette.connect_sync(server) as client:
            assert "Rome first" in typedmcp.text_of(client.call_tool("look_up", {"city": "Rome"}))
"""


SIMILAR = """
import pytest, typedmcp

NAMES = ["a b", "a-b", "a+b", "A-B", "\u00e4", "\u00f6", ".", "..", "", "x" * 160, "x" * 161, "a-b-1", "../x"]

def check(cassette, text):
    server = typedmcp.Server("s")

    @server.tool
    def say() -> str:
        return text

    with cassette.connect_sync(server) as client:
        assert typedmcp.text_of(client.call_tool("say")) == text

@pytest.mark.parametrize("text", NAMES)
def test_say(mcp_cassette, text):
    check(mcp_cassette, text)

class TestA:
    def test_say(self, mcp_cassette):
        check(mcp_cassette, "of A")

class TestB:
    def test_say(self, mcp_cassette):
        check(mcp_cassette, "of B")
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "state").write_text("first ")

    def run_pytest(
        tests: str, *options: str, ci: str = "", by_entry_point: bool = False
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_weather.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        environment = {"PATH": os.environ["PATH"], "CI": ci}
        if not by_entry_point:  # loads the plugins of others, which takes a while
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            command += ["-p", "typedmcp_cli.pytest_plugin"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run_pytest


@pytest.mark.long
def test_a_test_is_recorded_once_and_then_runs_without_the_server(run: Run, tmp_path: Path) -> None:
    first = run(TESTS, by_entry_point=True)
    assert first.returncode == 0, first.stdout
    folder = tmp_path / "cassettes" / "test_weather"
    assert sorted(path.name for path in folder.iterdir()) == [
        "test_async-oslo.jsonl", "test_async-sao-paulo-x-1d4710082365.jsonl", "test_sync.jsonl",
    ]  # fmt: skip
    assert "ada@example.org" not in (folder / "test_async-oslo.jsonl").read_text()
    (tmp_path / "state").unlink()  # without which the server fails
    again = run(TESTS, ci="true")
    assert again.returncode == 0, again.stdout


@pytest.mark.long
def test_tests_with_similar_names_have_files_of_their_own(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        made = run(SIMILAR)
        assert made.returncode == 0, made.stdout
    files = [file.name for file in (tmp_path / "cassettes" / "test_weather").iterdir()]
    assert len({name.lower() for name in files}) == 15
    assert {"test_say-a-b.jsonl", "TestA.test_say.jsonl", "TestB.test_say.jsonl"} < {*files}
    assert all(name.isascii() and len(name) < 150 for name in files)


def test_a_request_that_was_not_recorded_fails_the_test_even_if_it_handles_the_error(run: Run) -> None:
    assert run(TESTS).returncode == 0
    changed = TESTS.replace("assert ", "return ").replace('"Rome"', '"Paris"')
    done = run(changed, "-k", "test_sync")
    assert done.returncode == 1
    assert 'test_sync.jsonl has no tools/call with {"name":"look_up","arguments":{"city":"Paris"}}' in done.stdout
    recorded = run(TESTS.replace("Rome", "Paris"), "-k", "test_sync", "--mcp-record=all")
    assert recorded.returncode == 0, recorded.stdout


@pytest.mark.long
def test_a_missing_recording_is_an_error_where_nothing_is_recorded(run: Run, tmp_path: Path) -> None:
    for options, ci in ((("--mcp-record=none",), ""), ((), "true")):
        done = run(TESTS, *options, "-k", "test_sync", ci=ci)
        assert done.returncode == 1
        assert "test_sync.jsonl does not exist: run the test once with --mcp-record=once" in done.stdout
    assert not (tmp_path / "cassettes").exists()


@pytest.mark.long
def test_the_recording_of_a_failed_test_is_not_kept(run: Run, tmp_path: Path) -> None:
    done = run(TESTS.replace("Rome first", "Rome last"), "-k", "test_sync")
    assert done.returncode == 1
    assert [*(tmp_path / "cassettes").rglob("*.jsonl*")] == []


@pytest.mark.long
def test_a_server_is_compared_with_its_recording(run: Run, tmp_path: Path) -> None:
    assert run(TESTS, "-k", "test_sync").returncode == 0
    compare = """
import asyncio
from server import server
def test_sync(mcp_cassette):
    asyncio.run(mcp_cassette.compare(server, ignore=[]))
"""
    (tmp_path / "state").write_text("second ")
    done = run(compare)
    assert done.returncode == 1
    assert "the server responds otherwise than recorded:" in done.stdout
    assert 'result.content[0].text: "sunny in Rome first " => "sunny in Rome second "' in done.stdout
    assert run(compare.replace("ignore=[]", 'ignore=["text", "structuredContent"]')).returncode == 0


@pytest.mark.long
def test_a_client_of_another_library_gets_a_command(run: Run) -> None:
    tests = """
import json, subprocess, sys
def test_lines(mcp_cassette):
    command = mcp_cassette.command([sys.executable, "server.py"])
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "look_up", "arguments": {"city": "Rome"}, "_meta": meta}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    done = subprocess.run(command, input=line + "\\n", capture_output=True, text=True, check=True)
    assert "Rome first" in done.stdout
"""
    recorded, replayed = run(tests), run(tests, ci="true")
    assert recorded.returncode == 0, recorded.stdout
    assert replayed.returncode == 0, replayed.stdout


def test_the_plugin_loads_only_the_means_to_import_names_late_until_it_is_used() -> None:
    code = "import sys, typedmcp_cli.pytest_plugin; print(*[name for name in sys.modules if name.startswith(NAMES)])"
    names = "('typedmcp', 'mcpspec', 'msgspec')"
    command = [sys.executable, "-c", code.replace("NAMES", names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    late = ["typedmcp", "typedmcp.building", "typedmcp_schemas", "typedmcp_schemas.lazy"]
    assert {*done.stdout.split()} == {*late, "typedmcp_cli", "typedmcp_cli.pytest_plugin"}
