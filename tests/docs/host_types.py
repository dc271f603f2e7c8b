"""The table of docs/hosts.md on types: whose schemas hosts take. `python -m tests.docs.host_types` writes it.

Each type of `tests/app/type_cases.py` is a parameter and a result of a tool. The rows of AJV and of the TypeScript
client need the environments `py2` and `node` of `tests/interop/install.py`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, get_args

import typedmcp
from mcpspec.support.objects import is_array, is_object
from tests.app.type_cases import TYPES
from tests.docs.markdown import replace_block
from tests.interop import install
from tests.interop.servers.every_type import make_server
from tests.paths import ROOT
from tests.typedmcp_hosts.subsets import GEMINI_KEYWORDS, SUBSETS
from typedmcp.dialect import structs
from typedmcp_hosts import LlmApi, tools_for

__all__ = ["PAGE", "Row", "is_installed", "our_rows", "render", "rows_of_node"]

PAGE: Final = ROOT / "docs" / "hosts.md"
_INTEROP: Final = ROOT / "tests" / "interop"
_MODULES: Final = install.INTEROP / "node" / "node_modules"
_PATIENCE: Final = 120
"""Seconds for all schemas or calls; they take ten."""
_REVISION: Final = "2025-11-25"


class Row(NamedTuple):
    """What one host takes."""

    host: str
    tried: int
    """The types that were tried."""
    refused: list[str]
    unnamed: list[str] | None
    """Those of them that `check` does not name; None if it is not asked."""


def our_rows() -> list[Row]:
    """Return the rows that need nothing of others: the documented subsets of the APIs."""
    return asyncio.run(_our_rows())


async def _our_rows() -> list[Row]:
    server = make_server()
    named = _named(server)
    rows: list[Row] = []
    async with typedmcp.connect(server) as client:
        schemas = [tool.input_schema async for tool in client.tools()]
        for name, api in (("OpenAI", "openai"), ("Anthropic", "anthropic"), ("Gemini", "gemini")):
            made = [_known_to_gemini(schema) for schema in schemas] if api == "gemini" else schemas
            refused = [kind for kind, schema in zip(TYPES, made, strict=True) if [*SUBSETS[api](schema)]]
            rows.append(_row(f"{name}, as they are", refused, named[api]))
        failed: set[str] = set()
        for each in get_args(LlmApi):
            for kind, tool in zip(TYPES, await tools_for(client, each), strict=True):
                inner = tool.get("function", tool)
                schema = inner.get("parameters", inner.get("input_schema", {"type": "object"}))
                failed |= {kind} if [*SUBSETS[each](schema)] else set()
        rows.append(Row("all of these, written by `tools_for`", len(TYPES), sorted(failed), None))
    return rows


def _row(host: str, refused: list[str], named: set[str]) -> Row:
    return Row(host, len(TYPES), refused, [kind for kind in refused if kind not in named])


def _named(server: typedmcp.Server) -> dict[str, set[str]]:
    """Return the types that `check` names, by host."""
    kinds = [*TYPES]
    named: dict[str, set[str]] = {host: set() for host in ("openai", "anthropic", "gemini", "typescript")}
    for finding in server.check():
        for host in finding.hosts:
            named[host].add(kinds[int(finding.item.removeprefix("tool t"))])
    return named


def _known_to_gemini(schema: Any) -> Any:
    """Return a schema without what hosts leave out because Gemini does not know it; the rest cannot be left out."""
    if is_array(schema):
        return [_known_to_gemini(each) for each in schema]
    if not is_object(schema):
        return schema
    kept = {key: value for key, value in schema.items() if key in {*GEMINI_KEYWORDS, "$ref", "const"}}
    made: dict[str, Any] = {key: _known_to_gemini(kept[key]) for key in ("items", "anyOf") if key in kept}
    if is_object(properties := kept.get("properties")):
        made["properties"] = {name: _known_to_gemini(inner) for name, inner in properties.items()}
    return {**kept, **made}


def is_installed() -> bool:
    """Return whether Node.js and its packages are installed."""
    return install.node().exists() and (install.INTEROP / "node" / ".installed").exists()


def rows_of_node() -> list[Row]:
    """Return the rows of AJV and of the official client in TypeScript, which checks results against their schemas."""
    server = make_server()
    tools = asyncio.run(_list(server))
    named = _named(server)["typescript"]
    said = _run("ajv_strict.mjs", given=[tool.input_schema for tool in tools])
    rows = [_row("AJV in strict mode, parameters", _refused(TYPES, said), named)]
    typed = {kind: tool.output_schema for kind, tool in zip(TYPES, tools, strict=True) if tool.output_schema}
    refused = _refused(typed, _run("ajv_strict.mjs", given=[*typed.values()]))
    rows.append(
        Row("AJV in strict mode, results", len(typed), refused, [kind for kind in refused if kind not in named])
    )
    command = [_REVISION, "stdio", sys.executable, "-m", "tests.interop.servers.every_type"]
    said = _run("typescript_types.mjs", *command, given=[argument for _, argument, _ in TYPES.values()])
    rows.append(Row("calls by the official TypeScript client", len(TYPES), _refused(TYPES, said), None))
    return rows


async def _list(server: typedmcp.Server) -> list[structs.Tool]:
    async with typedmcp.connect(server) as client:
        return [tool async for tool in client.tools()]


def _refused(kinds: Mapping[str, object], said: Sequence[str]) -> list[str]:
    return [kind for kind, text in zip(kinds, said, strict=True) if text]


def _run(script: str, *arguments: str, given: Sequence[object]) -> list[str]:
    """Run a script with Node.js, and return what it said of each value."""
    command = [str(install.node() / "bin" / "node"), str(_INTEROP / script), str(_MODULES), *arguments]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=True, timeout=_PATIENCE, cwd=ROOT
    )
    return cast("list[str]", json.loads(done.stdout))


def render(rows: Sequence[Row]) -> str:
    """Render rows as a table."""
    lines = ["\n| host | taken | not taken | `check()` |", "|---|---|---|---|"]
    for row in rows:
        names = ", ".join(row.refused) or "–"
        known = "–"
        if row.refused and row.unnamed is not None:
            known = f"silent about {', '.join(row.unnamed)}" if row.unnamed else "names them"
        lines.append(f"| {row.host} | {row.tried - len(row.refused)} of {row.tried} | {names} | {known} |")
    return "\n".join([*lines, ""]).replace("a | b", "a or b")


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(page, "host_types", render([*our_rows(), *rows_of_node()])), encoding="utf-8")
