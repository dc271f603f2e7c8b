"""Trials: whether the tests of a checkout notice a fault."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from tests.mutants.checkout import Checkout, CheckoutError
from tests.mutants.faults import Fault
from tests.mutants.rooms import list_stages

_ALL_TESTS = ("-n", "2", "--ignore=tests/mutants", "tests")
_ALL_TESTS_FACTOR = 4
"""The time for all tests, in multiples of that for those of a room."""

Outcome: TypeAlias = Literal["caught", "not caught", "does not apply", "cannot be generated"]


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome for one fault."""

    fault: str
    room: str
    outcome: Outcome
    seconds: float
    by: str = ""
    """The test that has noticed the fault, or the reason of the outcome."""
    is_beyond_rooms: bool = False
    """True if the tests of the rooms have passed, and all tests were run."""
    rows: int = 0
    """Rows of the specification whose feature was taken out."""

    def __str__(self) -> str:
        words = "NOT CAUGHT" if self.outcome == "not caught" else self.outcome
        where = " (not by its rooms)" if self.is_beyond_rooms else ""
        end = f" by {self.by}" if self.outcome == "caught" else f": {self.by}" if self.by else ""
        return f"{self.fault}: {words} after {self.seconds:.0f} s{where}{end}"


class Trial:
    """Tries faults in one checkout. `timeout` is in seconds, for the tests of one stage."""

    def __init__(self, checkout: Checkout, *, timeout: float, rooms_only: bool) -> None:
        self.checkout = checkout
        self._timeout = timeout
        self._rooms_only = rooms_only
        self._sound: set[str] = set()
        """Tests that have failed with a fault, and pass without one."""
        self._broken: set[str] = set()
        """Tests that fail without a fault, and are left out."""

    def try_fault(self, fault: Fault) -> Result:
        """Return whether the tests notice a fault."""
        began = time.monotonic()
        outcome, by, is_beyond = self._find_outcome(fault)
        return Result(fault.name, fault.room, outcome, round(time.monotonic() - began, 1), by, is_beyond)

    def _find_outcome(self, fault: Fault) -> tuple[Outcome, str, bool]:
        if (problem := fault.find_problem(self.checkout.root)) is not None:
            return "does not apply", problem, False
        while True:
            try:
                with self.checkout.seeded(fault):
                    failed, is_beyond = self._find_failure(fault)
            except CheckoutError as error:
                return "cannot be generated", str(error), False
            if failed is None:
                return "not caught", "", is_beyond
            if self._is_sound(failed):
                return "caught", failed, is_beyond

    def _find_failure(self, fault: Fault) -> tuple[str | None, bool]:
        """Return the test that fails with a fault, and whether all tests were run to find one."""
        for tests in list_stages(self.checkout.root, fault.file):
            if (failed := self._first_failure(tests, self._timeout)) is not None:
                return failed, False
        if self._rooms_only:
            return None, False
        return self._first_failure(_ALL_TESTS, self._timeout * _ALL_TESTS_FACTOR), True

    def _first_failure(self, tests: Sequence[str], timeout: float) -> str | None:
        """Return the first test that also fails if it is run alone: another may have been late on a loaded machine."""
        left_out = sorted(self._broken)
        while not (run := self.checkout.run_tests(tests, timeout, left_out)).is_passed:
            if not _is_test(run.failed) or not self.checkout.run_tests([run.failed], timeout).is_passed:
                return run.failed
            left_out.append(run.failed)
        return None

    def _is_sound(self, failed: str) -> bool:
        """Return whether a test passes without a fault. One that does not is left out from now on."""
        if not _is_test(failed) or failed in self._sound:
            return True
        if self.checkout.run_tests([failed], self._timeout).is_passed:
            self._sound.add(failed)
            return True
        print(f"{failed} fails without a fault, and is left out", flush=True)
        self._broken.add(failed)
        return False


def _is_test(failed: str) -> bool:
    """Return whether a failure is that of a test, which can be run alone."""
    return failed.startswith("tests/")
