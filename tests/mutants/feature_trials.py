"""Trials of features: whether the tests that a row names fail in a checkout without the feature."""

from __future__ import annotations

import time

from tests.mutants.checkout import Checkout, CheckoutError
from tests.mutants.faults import Fault
from tests.mutants.features import Feature, shown_rows
from tests.mutants.trials import Outcome, Result
from tests.specification.tables import Requirement

_FRAMES = "tests/vectors/frames.toml::"
_FRAME_TEST = "tests/server/test_frames.py::test_a_frame_has_the_responses_and_diagnostics_of_its_vector"


class FeatureTrial:
    """Tries features in one checkout. `timeout` is in seconds, for the tests of one feature."""

    def __init__(self, checkout: Checkout, *, timeout: float) -> None:
        self.checkout = checkout
        self._timeout = timeout
        self._rows = shown_rows()
        self._sound: dict[str, bool] = {}
        """Whether a test that has failed without a feature passes with it."""

    def try_fault(self, fault: Fault) -> Result:
        """Return `caught` if each row has a test that fails without the feature."""
        assert isinstance(fault, Feature)
        feature, began = fault, time.monotonic()
        try:
            outcome, by = self._find_outcome(feature)
        except CheckoutError as error:
            outcome, by = "cannot be generated", str(error)
        return Result(
            feature.name, feature.room, outcome, round(time.monotonic() - began, 1), by, rows=len(feature.rows)
        )

    def _find_outcome(self, feature: Feature) -> tuple[Outcome, str]:
        if (problem := feature.find_problem(self.checkout.root)) is not None:
            return "does not apply", problem
        rows = {name: self._rows[name] for name in feature.rows}
        wanted = sorted({_test_of(test) for same in rows.values() for row in same for test in row.tests})
        with self.checkout.seeded(feature):
            failed = self.checkout.run_all(wanted, self._timeout)
        failed = {test for test in failed if self._is_sound(test)}
        shown = [name for name, same in rows.items() if not all(_is_shown(row, failed) for row in same)]
        return ("not caught", "; ".join(shown)) if shown else ("caught", min(failed))

    def _is_sound(self, failed: str) -> bool:
        """Return whether a test passes with the feature."""
        test = _test_of(failed)
        if test not in self._sound:
            self._sound[test] = not self.checkout.run_all([test], self._timeout)
        return self._sound[test]


def _test_of(name: str) -> str:
    return _FRAME_TEST if name.startswith(_FRAMES) else name


def _is_shown(row: Requirement, failed: set[str]) -> bool:
    """Return whether one of the tests of a row has failed. Frames are cases of one test."""
    frames = [name.removeprefix(_FRAMES) for name in row.tests if name.startswith(_FRAMES)]
    cases = {name.removeprefix(_FRAMES) for name in failed if name.startswith(_FRAMES)}
    return bool({*row.tests} & failed) or any(case.startswith(f"{frame}-") for case in cases for frame in frames)
