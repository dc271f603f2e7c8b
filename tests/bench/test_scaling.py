"""The suite of scaling."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bench.suites.scaling import fit_line


@pytest.mark.parametrize(
    ("costs", "fixed", "slope"),
    [({1: 5.0, 1001: 5.0}, 5.0, 0.0), ({100: 30.0, 1_100: 130.0}, 20.0, 0.1), ({300: 4.0, 100: 2.0}, 1.0, 0.01)],
)
def test_a_line_goes_through_the_first_and_the_last_cost(
    costs: Mapping[int, float], fixed: float, slope: float
) -> None:
    assert fit_line(costs) == pytest.approx((fixed, slope))
