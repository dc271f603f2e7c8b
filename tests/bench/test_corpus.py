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
from bench.contenders.codecs import Codec
from bench.contenders.codecs.worker import holds, measured, microseconds, prepared
from bench.suites.codecs import COLUMNS, CONTENDERS

SMALL = [name for name in corpus.MESSAGES if name not in ("blob-10m", "tools-list-1000")]
HERE = {module for module in CONTENDERS.values() if module != "with_orjson"}
"""Those whose libraries the tests have."""


@pytest.mark.parametrize("name", corpus.MESSAGES)
@pytest.mark.parametrize("module", sorted(HERE))
def test_each_contender_gives_back_what_it_was_given_and_refuses_what_is_wrong(module: str, name: str) -> None:
    found = prepared(module, name)
    assert (found is None) == (module == "official" and name == corpus.BATCH)


def test_the_corpus_is_the_same_in_each_process() -> None:
    code = (
        "from zlib import crc32; from bench.corpus import MESSAGES, message;"
        "print([crc32(message(n).data) for n in MESSAGES])"
    )
    once, twice = (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in "12"
    )
    assert once == twice


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("tools-call", 350, 500),
        ("text-100k", 100_000, 100_200),
        ("blob-10m", 10 << 20, (10 << 20) + 300),
        ("progress", 50, 200),
        ("error", 50, 200),
    ],
)
def test_messages_are_as_large_as_they_are_said_to_be(name: str, least: int, most: int) -> None:
    assert least <= len(corpus.message(name).data) <= most


@pytest.mark.parametrize("count", [1, 10, 50])
def test_lists_have_as_many_tools_as_they_are_named_for(count: int) -> None:
    assert corpus.message(f"tools-list-{count}").data.count(b'"inputSchema"') == count


@pytest.mark.parametrize("name", SMALL)
def test_the_wrong_message_differs_in_one_value_alone(name: str) -> None:
    given = corpus.message(name)
    assert len(list(differences(json.loads(given.data), json.loads(given.wrong)))) == 1


def differences(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The values that differ between two parsed messages with the same members."""
    if type(one) is type(other) is dict and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name])
    elif type(one) is type(other) is list and len(one) == len(other):
        for pair in zip(one, other, strict=True):
            yield from differences(*pair)
    elif one != other:
        yield one, other


@pytest.mark.parametrize(
    ("found", "given", "does"),
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
def test_what_was_lost_is_noticed(found: object, given: object, does: bool) -> None:
    assert holds(found, given) is does


@pytest.mark.parametrize(("module", "columns"), [("structs", COLUMNS), ("untyped", COLUMNS[:-1])])
def test_what_is_measured_is_what_the_table_shows(module: str, columns: list[str]) -> None:
    found = measured(module, "error", 0.001)
    assert found is not None
    assert list(found) == columns
    assert all(value > 0 for value in found.values())


def test_a_contender_that_loses_something_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_value: object) -> bytes:
        return b"{}"

    offered(monkeypatch, Codec(json.loads, nothing))
    with pytest.raises(RuntimeError, match="untyped does not give error back"):
        prepared("untyped", "error")


def test_a_contender_that_checks_nothing_is_not_taken_for_one_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, Codec(json.loads, msgspec.json.encode))
    with pytest.raises(RuntimeError, match="untyped takes a wrong error"):
        prepared("untyped", "error")


def offered(monkeypatch: pytest.MonkeyPatch, codec: Codec) -> None:
    """Have a contender be another codec."""

    def given(_message: corpus.Message) -> Codec:
        return codec

    monkeypatch.setattr(import_module("bench.contenders.codecs.untyped"), "codec", given)
    prepared.cache_clear()


def test_an_operation_whose_first_call_met_with_a_stall_is_not_taken_for_a_slow_one() -> None:
    calls: list[None] = []
    microseconds("calls or sleep(1); calls.append(None)", {"calls": calls, "sleep": sleep}, 0.5)
    assert len(calls) > 100
