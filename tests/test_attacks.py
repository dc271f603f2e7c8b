"""All attacks at once: memory stays below its bound, and the other clients are served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import attacks
from tests.attacks import MIB, Figures
from tests.cases import each


@each(
    "addresses, figures, faults",
    [
        (1, Figures(500 * MIB, [5.0, 6.0, 900.0], 0), []),
        (1, Figures(2000 * MIB, [5.0], 0), ["peak memory"]),
        (8, Figures(2000 * MIB, [5.0], 7), []),
        (1, Figures(500 * MIB, [5.0], 1), ["refused calls"]),
        (1, Figures(500 * MIB, [900.0, 900.0], 0), ["median time"]),
        (8, Figures(500 * MIB, [5.0, 5.0, 60_000.0], 0), ["worst time"]),
    ],
)
def test_figures_above_their_bounds_are_named(addresses: int, figures: Figures, faults: list[str]) -> None:
    assert attacks.judge(addresses, figures) == faults


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory as Linux tells it")
@pytest.mark.parametrize("addresses", attacks.MAX_PEAK_BYTES)
def test_a_server_with_the_default_limits_survives_all_attacks_at_once(addresses: int) -> None:
    assert attacks.judge(addresses, attacks.attacked(10, addresses)) == []
