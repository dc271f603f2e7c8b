"""A bump to a plausible next revision is green, or refused with the place and the reason."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.futures.future import make_future
from tests.futures.run import try_futures

pytestmark = pytest.mark.long

SEED, COUNT = 1, 40


def test_futures_are_green_or_refused_with_a_reason() -> None:
    outcomes = [*try_futures([make_future(SEED, number) for number in range(COUNT)], jobs=1)]
    faults = [f"{outcome.future}\n  {outcome.text}" for outcome in outcomes if outcome.kind == "fault"]
    assert not faults, "\n".join(faults)
    assert Counter(outcome.kind for outcome in outcomes)["green"] > 0.8 * COUNT


def test_the_same_number_is_the_same_future() -> None:
    assert make_future(SEED, 7) == make_future(SEED, 7)
    assert make_future(SEED, 7) != make_future(SEED + 1, 7)
