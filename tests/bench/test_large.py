"""The suite of large messages: checks of the responses, and peaks of memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bench.plan import QUICK, ContenderError
from bench.suites import large, memory
from bench.suites.large import list_columns, measure_peaks, measure_speeds, open_stdio_server
from bench.suites.processes import LEGACY, MODERN, Contender, make_python_command

PLAN = replace(QUICK, rounds=1, seconds=0.01)

_SERVER = """
import json, sys

copies, cut = int(sys.argv[1]), int(sys.argv[2])
for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call:
        continue
    if call["method"] == "initialize":
        result = {"protocolVersion": call["params"]["protocolVersion"]}
    else:
        arguments = call["params"]["arguments"]
        text = "x" * (arguments["size"] - cut) if "size" in arguments else str(len(arguments["text"]))
        held = [bytes(len(text) + len(line)).replace(b"\\0", b"x") for _ in range(copies)]
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
    held = None
"""


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SETTLE_SECONDS", 0.01)


def make_server(tmp_path: Path, *, copies: int = 0, cut: int = 0) -> Contender:
    script = tmp_path / "server.py"
    script.write_text(_SERVER, encoding="utf-8")
    return Contender("a server", [sys.executable, str(script), str(copies), str(cut)])


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
def test_each_kind_of_message_has_a_speed(revision: str) -> None:
    server = Contender("typedmcp", make_python_command(large.FOLDER / "typedmcp_server.py"))
    with measure_speeds(partial(open_stdio_server, server, revision), PLAN) as measures:
        found = [measure() for measure in measures]
    assert [[*each] for each in found] == [[column] for column in list_columns(PLAN)]
    assert all(rate > 0 for each in found for rate in each.values())


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads memory in /proc")
def test_a_peak_counts_the_copies_of_the_message(tmp_path: Path) -> None:
    few, many = (
        measure_peaks(partial(open_stdio_server, make_server(tmp_path, copies=copies), MODERN), PLAN)
        for copies in (0, 8)
    )
    for column in list_columns(PLAN):
        assert many[column] - few[column] == pytest.approx(8, abs=1.5)


def test_a_server_whose_result_is_cut_fails(tmp_path: Path) -> None:
    with (
        pytest.raises(ContenderError, match="the response to a call with 100000 bytes is wrong"),
        open_stdio_server(make_server(tmp_path, cut=1), MODERN),
    ):
        pass


def test_quick_runs_have_messages_of_one_size() -> None:
    assert {size for _, size in list_columns(PLAN).values()} == {1 << 20}
    assert {size for _, size in list_columns(replace(PLAN, quick=False)).values()} == {1 << 20, 16 << 20}
