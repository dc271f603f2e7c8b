"""The kept corpus, and random changes to it, break no promise. `make fuzz` looks further."""

from __future__ import annotations

import random

import pytest

from tests.cases import each
from tests.fuzz.names import NAMES
from tests.fuzz.targets import TARGETS
from tests.paths import ROOT
from tests.server.test_fuzz import mutate

CORPUS = ROOT / "tests" / "fuzz" / "corpus"


def inputs(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def test_the_targets_are_those_that_the_command_knows() -> None:
    assert tuple(TARGETS) == NAMES


@each("target", NAMES)
def test_the_kept_inputs_break_no_promise(target: str) -> None:
    kept = inputs(target)
    assert kept
    for data in kept:
        TARGETS[target](data)


@pytest.mark.long
@pytest.mark.parametrize("target", NAMES)
def test_changed_inputs_break_no_promise(target: str) -> None:
    rng = random.Random(target)
    kept = inputs(target)
    for _ in range(300):
        lines = rng.choice(kept).split(b"\n")
        TARGETS[target](b"\n".join(mutate(rng, line) if rng.random() < 0.5 else line for line in lines))
