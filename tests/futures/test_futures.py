"""A bump to a plausible next revision is green, or refused with the place and the reason."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.futures.future import make_future
from tests.futures.run import try_futures

pytestmark = pytest.mark.long

SEED, COUNT = 1, 20
FOUND = ((8, 9), (8, 12), (8, 68), (8, 78), (8, 114), (8, 124), (101, 34), (102, 22), (102, 36), (102, 42))
"""Futures that were faults: open content and results, an optional `type`, a dot in a name, a new bound, a definition
called like a type of Python, a type that an older one gives its name to, and a null in an open result."""


def test_futures_are_green_or_refused_with_a_reason() -> None:
    places = [*((SEED, number) for number in range(COUNT)), *FOUND]
    outcomes = [*try_futures([make_future(*place) for place in places], jobs=1)]
    faults = [f"{outcome.future}\n  {outcome.text}" for outcome in outcomes if outcome.kind == "fault"]
    assert not faults, "\n".join(faults)
    assert Counter(outcome.kind for outcome in outcomes)["green"] > 0.8 * len(places)


def test_the_same_number_is_the_same_future() -> None:
    assert make_future(SEED, 7) == make_future(SEED, 7)
    assert make_future(SEED, 7) != make_future(SEED + 1, 7)
