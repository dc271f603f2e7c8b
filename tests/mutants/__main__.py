"""Apply the seeded faults one at a time, and report which of them the tests notice.

A fault is tried against the tests of its room first, and against all fast tests only if those pass. Each fault has a
line in the results, so that `--resume` goes on where a run was interrupted. The exit status is 1 if a fault is not
caught that should be, or if the list does not fit the code.

With `--features` it takes out features in place of faults, and runs the tests that rows of the specification name for
them: each row must have one that fails.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tests.mutants.checkout import Checkout, CheckoutError, StoppedError
from tests.mutants.faults import ROOT, Fault, load_faults, select
from tests.mutants.feature_trials import FeatureTrial
from tests.mutants.features import find_row_problems, load_features
from tests.mutants.trials import Result, Trial

_CLONES = ROOT / ".mutants"
_INTERRUPTED = 130
_ROOM_SECONDS, _FEATURE_SECONDS = 1200.0, 60.0


class Results:
    """The file of results: a line of JSON for each fault."""

    def __init__(self, file: Path, *, is_resumed: bool) -> None:
        self._file = file
        self._lock = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        if not is_resumed:
            file.unlink(missing_ok=True)
        file.touch()
        lines = msgspec.json.Decoder(Result).decode_lines(file.read_bytes())
        self.known: dict[str, Result] = {result.fault: result for result in lines}

    def has(self, fault: Fault, *, rooms_only: bool) -> bool:
        """Return whether the outcome for a fault is known. Without `rooms_only`, all tests have to have been run."""
        known = self.known.get(fault.name)
        return known is not None and (rooms_only or known.is_beyond_rooms or known.outcome != "not caught")

    def add(self, result: Result) -> None:
        """Write the outcome for a fault to the file and to the terminal."""
        with self._lock, self._file.open("ab") as file:
            self.known[result.fault] = result
            file.write(msgspec.json.encode(result) + b"\n")
            print(result, flush=True)


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C, so that no fault stays applied
    faults = select(load_features() if options.features else load_faults(), options.names)
    try:
        return _check(faults, options) if options.check else _try_all(faults, options)
    except CheckoutError as error:
        print(error, file=sys.stderr)
        return 2
    except (KeyboardInterrupt, StoppedError) as error:
        print(f"interrupted; --resume goes on from here {error}".rstrip(), file=sys.stderr)
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="a fault, or a room such as server/http; all by default")
    add("--jobs", type=int, default=1, metavar="N", help="faults at a time, each in a clone of its own")
    add("--features", action="store_true", help="take out features, and run the tests that rows name for them")
    add("--rooms-only", action="store_true", help="do not run all tests for what those of the rooms do not catch")
    add("--resume", action="store_true", help="leave out the faults that the file of results has")
    add("--check", action="store_true", help="only check that the code with each fault can be made and imported")
    add("--checkout", type=Path, metavar="DIR", help="a checkout with a ready .venv, in place of clones of HEAD")
    add("--results", type=Path, metavar="FILE", help="the file of results; by default in .mutants")
    add("--timeout", type=float, metavar="SECONDS", help="time for the tests of one room (1200) or feature (60)")
    return parser


def _open_checkouts(options: argparse.Namespace) -> list[Checkout]:
    if options.checkout is not None:
        return [Checkout.existing(options.checkout.resolve())]
    return [Checkout.clone(_CLONES / str(number + 1)) for number in range(options.jobs)]


def _check(faults: Sequence[Fault], options: argparse.Namespace) -> int:
    """Check that each fault fits its file, and that the code with it can be made and imported."""
    problems = [problem for fault in faults if (problem := fault.find_problem(ROOT)) is not None]
    problems += find_row_problems(load_features()) if options.features else []
    problems = problems or [*_find_problems(faults, _open_checkouts(options)[0])]
    print("\n".join([*problems, f"{len(faults)} faults, {len(problems)} problems"]))
    return 1 if problems else 0


def _find_problems(faults: Sequence[Fault], checkout: Checkout) -> Iterator[str]:
    for fault in faults:
        try:
            checkout.check_import(fault)
        except CheckoutError as error:
            yield f"{fault.name}: {error}"


def _try_all(faults: Sequence[Fault], options: argparse.Namespace) -> int:
    file = options.results or _CLONES / ("features.jsonl" if options.features else "results.jsonl")
    results = Results(file, is_resumed=options.resume)
    waiting = deque(fault for fault in faults if not results.has(fault, rooms_only=options.rooms_only))
    checkouts = _open_checkouts(options) if waiting else []

    def work(checkout: Checkout) -> None:
        checkout.check_tests()
        trial = _make_trial(checkout, options)
        while waiting:
            results.add(trial.try_fault(waiting.popleft()))

    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(work, checkout) for checkout in checkouts]
        try:
            for each in running:
                each.result()
        except BaseException:
            waiting.clear()
            for checkout in checkouts:
                checkout.stop()
            raise
    return _summarize(faults, results)


def _make_trial(checkout: Checkout, options: argparse.Namespace) -> Trial | FeatureTrial:
    if options.features:
        checkout.use_interop()
        return FeatureTrial(checkout, timeout=options.timeout or _FEATURE_SECONDS)
    return Trial(checkout, timeout=options.timeout or _ROOM_SECONDS, rooms_only=options.rooms_only)


def _summarize(faults: Sequence[Fault], results: Results) -> int:
    """Print what was caught, and what is wrong. Return the exit status."""
    tried = [results.known[fault.name] for fault in faults]
    caught, seconds = sum(each.outcome == "caught" for each in tried), sum(each.seconds for each in tried)
    wrong = [*_find_wrong(faults, tried)]
    rows = sum(each.rows for each in tried)
    kind = f"features, of {rows} rows," if rows else "faults"
    print("\n".join([f"{caught} of {len(tried)} {kind} caught, in {seconds:.0f} s", *wrong]))
    return 1 if wrong else 0


def _find_wrong(faults: Sequence[Fault], tried: Sequence[Result]) -> Iterator[str]:
    """Yield a line for each outcome that is not as the list says."""
    for fault, result in zip(faults, tried, strict=True):
        if result.outcome == "caught" and fault.survives:
            yield f"{fault.name}: caught by {result.by}; remove `survives`"
        elif result.outcome == "not caught" and not fault.survives:
            yield f"{fault.name}: not caught: {fault.breaks} ({fault.file})"
        elif result.outcome not in ("caught", "not caught"):
            yield f"{fault.name}: {result.outcome}"


if __name__ == "__main__":
    sys.exit(main())
