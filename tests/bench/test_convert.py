"""The converters that are measured."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mcpspec
from bench.contenders.conversion import DIRECTIONS, VALUES, make_case
from bench.contenders.conversion.worker import measure, prepare
from bench.suites.convert import CONTENDERS, WORKER


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("module", [way.module for way in CONTENDERS.values()])
def test_a_converter_keeps_what_both_revisions_have(module: str, name: str, direction: str) -> None:
    found = prepare(module, direction, name)
    assert module != "typedmcp_convert" or (found is None) == (make_case(direction, name) is None)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", VALUES)
def test_something_is_lost_only_where_the_name_says_so(name: str, direction: str) -> None:
    case = make_case(direction, name)
    if case is not None and name != "request":
        assert bool(mcpspec.convert(case.value, case.to, meta=case.meta).lost) == name.endswith("with loss")


def test_a_case_that_a_contender_does_not_support_has_no_figure() -> None:
    assert measure("text_again", "oldest-to-newest", "result", 0.001) is None


def test_the_worker_answers_each_line() -> None:
    line = b'{"direction": "newest-to-oldest", "value": "result", "seconds": 0.001}\n'
    run = subprocess.run(
        [sys.executable, "-m", WORKER, "typedmcp_convert"], input=line, capture_output=True, check=True
    )
    ready, took = run.stdout.splitlines()
    assert (ready, float(took) > 0) == (b"ready", True)
