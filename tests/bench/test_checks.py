"""What each codec checks: the labels in the tables are true."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bench.contenders.codecs import CodecContender
from bench.contenders.codecs.worker import try_decode
from bench.corpus import make_message
from bench.quote import ROOT
from bench.suites.codecs import CONTENDERS

EXACT = {"typedmcp_structs", "typedmcp_models"}
PLAIN = {"typedmcp_everyday_structs", "typedmcp_everyday_models"}
UNCHECKED, SDK, ONE_PASS = "typedmcp_structs_unchecked", "official_sdk", "official_one_pass"
UNTYPED = {"msgspec_untyped", "json_untyped"}  # orjson is not installed for the tests
ALL = EXACT | PLAIN | {UNCHECKED, SDK, ONE_PASS}

TOOL = ("result", "tools", 0)
CLIENT = ("params", "_meta", "io.modelcontextprotocol/clientCapabilities")
FORM = ("result", "inputRequests", "form", "params", "requestedSchema", "properties", "text_0", "type")
REMOVED = object()


def change(name: str, path: tuple[str | int, ...], value: object) -> bytes:
    """Return a message with another value at a path, or without it."""
    changed: Any = json.loads(make_message(name).data)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    if value is REMOVED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(changed).encode()


@cache
def codec(module: str, name: str) -> CodecContender:
    made: CodecContender = import_module(f"bench.contenders.codecs.{module}").make_codec(make_message(name))
    return made


@pytest.mark.parametrize(
    ("name", "path", "value", "rejected_by"),
    [
        ("tools-list-1", (*TOOL, "description"), 7, ALL),
        ("tools-call", ("jsonrpc",), REMOVED, ALL),
        ("tools-list-1", ("result", "cacheScope"), "everyone", ALL),
        ("tools-list-1", ("result", "ttlMs"), REMOVED, ALL - {ONE_PASS}),
        ("tools-call", ("params", "_meta"), REMOVED, ALL - {ONE_PASS}),
        ("tools-list-1", ("result", "ttlMs"), "60000", ALL - {SDK, ONE_PASS}),
        ("error", ("error", "code"), "-32602", ALL - {SDK, ONE_PASS}),
        ("tools-list-1", (*TOOL, "description"), None, EXACT | {UNCHECKED}),
        ("tools-call", CLIENT, [], EXACT | {SDK}),
        ("tools-list-1", (*TOOL, "inputSchema", "type"), "array", EXACT | {SDK}),
        ("elicitation", FORM, "no type", EXACT | {UNCHECKED}),
    ],
)
def test_a_wrong_message_is_rejected_by_those_that_check_it(
    name: str, path: tuple[str | int, ...], value: object, rejected_by: set[str]
) -> None:
    wrong = change(name, path, value)
    assert {module for module in ALL | UNTYPED if try_decode(codec(module, name), wrong)} == rejected_by


@pytest.mark.parametrize("module", sorted(ALL | UNTYPED))
def test_text_that_is_not_json_is_rejected_by_all(module: str) -> None:
    assert try_decode(codec(module, "error"), b"{") is not None


def test_the_documentation_says_what_each_codec_checks() -> None:
    page = Path(ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert [label for label, codec in CONTENDERS.items() if f"| {label} | {codec.checks} |" not in page] == []
