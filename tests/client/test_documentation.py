"""The examples on the page about clients are run as they stand."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

import typedmcp
import typedmcp_hosts
from tests.paths import ROOT
from tests.server.scripted import run
from typedmcp.transports.process_parameters import StdioServerParameters

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(section: str, language: str = "python") -> list[str]:
    text = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [block for kind, block in _BLOCK.findall(part) if kind == language]


async def execute(code: str, **names: Any) -> Any:
    """Run code with `await`, and return its variables."""
    made: dict[str, Any] = {"typedmcp": typedmcp, "typedmcp_hosts": typedmcp_hosts, **names}
    exec(f"async def main():\n{indent(code, '    ')}\n    return locals()", made)  # noqa: S102  # the documentation's own
    return await made["main"]()


@dataclass
class Forecast:
    city: str
    days: int = 3


weather = typedmcp.Server("weather")


@weather.tool
def forecast(city: str) -> Forecast:
    if city == "Atlantis":
        raise typedmcp.ToolError(f"no such city: {city}")
    return Forecast(city)


@weather.tool
def forecasts(cities: list[str]) -> list[Forecast]:
    return [Forecast(city) for city in cities]


@weather.tool
def report(city: str, days: int) -> str:
    return f"rain in {city}, for {days} days"


def test_typed_results(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("Typed results")

    async def main() -> None:
        async with typedmcp.connect(weather) as client:
            left = await execute(code, client=client)
            assert [each.city for each in left["forecasts"]] == ["Oslo", "Rome"]
            assert left["text"] == "rain in Oslo, for 3 days"

    run(main)
    assert capsys.readouterr().out == "3\n"


def test_errors_of_tools(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("Errors of tools")

    async def main() -> None:
        async with typedmcp.connect(weather) as client:
            await execute(code, client=client)

    run(main)
    assert capsys.readouterr().out == "no such city: Atlantis\nno such city: Atlantis\n"


SERVER = """
import typedmcp
server = typedmcp.Server()

@server.tool
def search(text: str = "") -> str:
    return f"found {text}"

@server.resource("wiki://rain")
def rain() -> str:
    return "wet"

server.run()
"""


def test_many_servers(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_file, from_mapping = blocks("Many servers")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clock.py").write_text(SERVER, encoding="utf-8")
    member = {"command": sys.executable, "args": ["clock.py"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"files": member, "wiki": member}}), encoding="utf-8")

    async def main() -> None:
        left = await execute(from_file)
        assert typedmcp.text_of(left["result"]) == "found rain"
        assert typedmcp.text_of(left["page"]) == "wet"
        code = from_mapping.replace("https://wiki.example/mcp", "http://127.0.0.1:1/mcp")
        await execute(code.replace('"python"', repr(sys.executable)), weather=weather)

    run(main)
    *listed, failed, last = capsys.readouterr().out.splitlines()
    assert listed == ["files_search", "wiki_search"]
    assert failed.startswith("wiki ")
    assert last.startswith("['clock', 'weather'] {'wiki': ConnectionLostError(")


def test_the_configuration() -> None:
    (text,) = blocks("Many servers", "json")
    reports: list[Any] = []
    variables = {"HOME": "/home/ada", "WIKI_TOKEN": "secret"}
    found = typedmcp_hosts.load_config(json.loads(text), variables=variables, on_diagnostic=reports.append)
    assert reports == []
    assert [(entry.problem, entry.disabled) for entry in found.values()] == [(None, False), (None, False), (None, True)]
    target = StdioServerParameters("npx", ["-y", "files-server", "/home/ada/notes"], env={"LEVEL": "info"})
    assert found["files"].target == target
    assert found["wiki"].headers == {"Authorization": "Bearer secret"}


def test_the_blocking_module_shows_its_public_names_only() -> None:
    assert dir(typedmcp.sync) == sorted(typedmcp.sync.__all__)
