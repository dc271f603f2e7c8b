"""The messages that codecs are measured with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from time import sleep
from typing import Any

import msgspec
import pytest

from bench import corpus
from bench.contenders.codecs import CodecContender
from bench.contenders.codecs.worker import contains, measure, prepare, time_statement
from bench.suites.codecs import COLUMNS, CONTENDERS
from tests.cases import each

SMALL = [name for name in corpus.MESSAGES if name not in ("blob-10m", "tools-list-1000")]
HERE = {codec.module for codec in CONTENDERS.values() if codec.module != "orjson_untyped"}
"""Contenders whose libraries are installed for the tests."""


@each("name", corpus.MESSAGES)
@each("module", sorted(HERE))
def test_each_codec_keeps_the_data_and_rejects_wrong_messages(module: str, name: str) -> None:
    found = prepare(module, name)
    assert (found is None) == (module.startswith("official") and name == corpus.BATCH)


def test_the_corpus_is_the_same_in_each_process() -> None:
    code = (
        "from zlib import crc32; from bench.corpus import MESSAGES, make_message;"
        "print([crc32(make_message(n).data) for n in MESSAGES])"
    )
    once, twice = (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in "12"
    )
    assert once == twice


@each(
    "name, least, most",
    [
        ("tools-call", 350, 500),
        ("text-100k", 100_000, 100_200),
        ("blob-10m", 10 << 20, (10 << 20) + 300),
        ("progress", 50, 200),
        ("error", 50, 200),
    ],
)
def test_messages_have_the_size_of_their_names(name: str, least: int, most: int) -> None:
    assert least <= len(corpus.make_message(name).data) <= most


@each("count", [1, 10, 50])
def test_lists_have_the_number_of_tools_of_their_names(count: int) -> None:
    assert corpus.make_message(f"tools-list-{count}").data.count(b'"inputSchema"') == count


@each("name", SMALL)
def test_the_wrong_message_differs_in_one_value(name: str) -> None:
    given = corpus.make_message(name)
    assert len(list(find_differences(json.loads(given.data), json.loads(given.wrong)))) == 1


def find_differences(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the values that differ between two messages with the same members."""
    if type(one) is type(other) is dict and one.keys() == other.keys():
        for name in one:
            yield from find_differences(one[name], other[name])
    elif type(one) is type(other) is list and len(one) == len(other):
        for pair in zip(one, other, strict=True):
            yield from find_differences(*pair)
    elif one != other:
        yield one, other


@each(
    "found, given, does",
    [
        ({"a": 1, "added": 2}, {"a": 1}, True),
        ({}, {"a": 1}, False),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}, True),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, False),
        ({"a": {"b": [2, 1]}}, {"a": {"b": [1, 2]}}, False),
        ([], {}, False),
        ("1", 1, False),
    ],
)
def test_lost_data_is_noticed(found: object, given: object, does: bool) -> None:
    assert contains(found, given) is does


@each("value, does", [(True, True), (False, False), (None, False)])
def test_only_the_default_of_a_member_may_be_omitted(value: object, does: bool) -> None:
    assert contains([{}], [{"openWorldHint": value}], {"openWorldHint": True}) is does


@each("module, columns", [("typedmcp_structs", COLUMNS), ("msgspec_untyped", COLUMNS[:-1])])
def test_the_measured_operations_are_the_columns_of_the_table(module: str, columns: list[str]) -> None:
    found = measure(module, "error", 0.001)
    assert found is not None
    assert list(found) == columns
    assert all(value > 0 for value in found.values())


def test_a_codec_that_loses_data_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_value: object) -> bytes:
        return b"{}"

    replace_codec(monkeypatch, CodecContender(json.loads, nothing))
    with pytest.raises(RuntimeError, match="msgspec_untyped changes error"):
        prepare("msgspec_untyped", "error")


def test_a_codec_that_does_not_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_codec(monkeypatch, CodecContender(json.loads, msgspec.json.encode))
    with pytest.raises(RuntimeError, match="msgspec_untyped accepts a wrong error"):
        prepare("msgspec_untyped", "error")


def replace_codec(monkeypatch: pytest.MonkeyPatch, codec: CodecContender) -> None:
    """Replace the codec of a contender."""

    def make_codec(_message: corpus.Message) -> CodecContender:
        return codec

    monkeypatch.setattr(import_module("bench.contenders.codecs.msgspec_untyped"), "make_codec", make_codec)
    prepare.cache_clear()


def test_a_slow_first_call_does_not_count() -> None:
    calls: list[None] = []
    time_statement("calls or sleep(0.1); calls.append(None)", {"calls": calls, "sleep": sleep}, 0.05)
    assert len(calls) > 100
