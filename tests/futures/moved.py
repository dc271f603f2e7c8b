"""The runtime with a future as its dialect, and clients of all older revisions that it serves.

A person has decided every gap in the conversions: that nothing has to be done. What the runtime itself says about a
definition that is gone is not to be expected: the type checkers name those places. So it moves to futures that add
something, and to those that break only what the runtime does not name.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mcpspec_codegen.comparison.changes import Change, find_changes
from mcpspec_codegen.conversions.gaps import find_conversion_gaps
from mcpspec_codegen.conversions.modules import conversion_modules
from mcpspec_codegen.pipeline import load_interface, load_revisions
from tests.codegen.helpers import NEWEST
from tests.futures.future import LATER
from tests.paths import ROOT

__all__ = ["check_served", "decide_gaps", "is_movable", "write_runtime"]


def is_movable(schema: Path, base: str) -> bool:
    """Return whether a future leaves everything as it is that hand-written code of the runtime names."""
    changes = find_changes(load_interface(schema, base), load_interface(schema, LATER))
    return not any(_is_named(change) for change in changes if change.hits or change.new is None)


def _is_named(change: Change) -> bool:
    """Return whether the runtime names a type or a method, or the attribute of a member of any type."""
    owner, _, member = change.name.partition(".")
    attribute = re.sub("([a-z0-9])([A-Z])", r"\1_\2", member).lower()
    return not {owner, member or owner, attribute or owner}.isdisjoint(_words_of_runtime())


@cache
def _words_of_runtime() -> frozenset[str]:
    files = (ROOT / "runtime" / "typedmcp").rglob("*.py")
    return frozenset(word for path in files for word in re.findall(r"[\w/]+", path.read_text(encoding="utf-8")))


def decide_gaps(schema: Path) -> dict[str, str]:
    """Return the modules of conversions after a person has decided that no gap needs anything."""
    revisions, facts = load_revisions(schema)
    lines = [line for each in revisions if each.is_modern for line in find_conversion_gaps(each, revisions, facts)]
    decided = dict.fromkeys((line.split(": ")[1] for line in lines), "decided in a test")
    return conversion_modules(revisions, {**facts, "decided": facts["decided"] | decided})


def write_runtime(folder: Path) -> Path:
    """Make a package `typedmcp` whose dialect is the future, with links for everything else."""
    package = folder / "typedmcp"
    package.mkdir(parents=True)
    for path in (ROOT / "runtime" / "typedmcp").iterdir():
        if path.name not in ("dialect", "__pycache__"):
            (package / path.name).symlink_to(path)
    (package / "dialect").mkdir()
    for path in (ROOT / "runtime" / "typedmcp" / "dialect").glob("*.py"):
        text = path.read_text(encoding="utf-8").replace(_package(NEWEST), _package(LATER))
        (package / "dialect" / path.name).write_text(text, encoding="utf-8")
    return folder


def _package(version: str) -> str:
    return f"v{version.replace('-', '_')}"


def check_served() -> int:
    """Serve a tool, a resource and a prompt to a client of each revision. Return the number of clients."""
    supported = import_module("typedmcp.revisions.features").SUPPORTED
    assert supported[0] == LATER
    for version in supported:
        asyncio.run(asyncio.wait_for(_use(version), 60))
    return len(supported)


async def _use(version: str) -> None:
    typedmcp: Any = import_module("typedmcp")
    server = typedmcp.Server("future")
    server.tool(_echo)
    server.resource("note://{name}")(_note)
    server.prompt(_ask)
    async with typedmcp.connect(server, revisions=[version]) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["_echo"], version
        assert typedmcp.text_of(await client.call_tool("_echo", {"text": "a"})) == "a", version
        assert "note a" in json.dumps(_plain(await client.read_resource("note://a"))), version
        assert "about a" in json.dumps(_plain(await client.get_prompt("_ask", {"subject": "a"}))), version


def _plain(value: Any) -> Any:
    structs: Any = import_module("typedmcp.dialect").structs
    return structs.to_builtins(value)


def _echo(text: str) -> str:
    return text


def _note(name: str) -> str:
    return f"note {name}"


def _ask(subject: str) -> str:
    return f"about {subject}"
