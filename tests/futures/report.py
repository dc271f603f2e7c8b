"""Try futures, and print what became of them: counts of green ones, refusals by reason, faults, and time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from tests.futures.future import Future
from tests.futures.run import Outcome, try_futures

__all__ = ["report"]


def report(futures: Sequence[Future], *, jobs: int, is_whole: bool = False, is_verbose: bool = False) -> int:
    """Try futures, print each fault and then a summary, and return the exit status: 1 if there is a fault."""
    started = time.monotonic()
    outcomes: list[Outcome] = []
    for outcome in try_futures(futures, jobs=jobs, is_whole=is_whole):
        outcomes.append(outcome)
        if outcome.kind == "fault" or is_verbose:
            print(f"{outcome.kind}: {outcome.future}\n  {outcome.text}", flush=True)
    _print_summary(outcomes, time.monotonic() - started)
    return 1 if any(outcome.kind == "fault" for outcome in outcomes) else 0


def _print_summary(outcomes: Sequence[Outcome], seconds: float) -> None:
    kinds = Counter(outcome.kind for outcome in outcomes)
    print(f"{len(outcomes)} futures in {seconds:.0f} s: {', '.join(f'{kinds[kind]} {kind}' for kind in sorted(kinds))}")
    for kind in ("refused", "fault"):
        reasons = Counter(outcome.reason for outcome in outcomes if outcome.kind == kind)
        for reason, count in reasons.most_common():
            print(f"  {kind} {count}: {reason}")
    steps: dict[str, float] = {}
    for outcome in outcomes:
        for step, spent in outcome.seconds.items():
            steps[step] = steps.get(step, 0) + spent
    print("  seconds: " + ", ".join(f"{step} {spent:.1f}" for step, spent in steps.items()))
