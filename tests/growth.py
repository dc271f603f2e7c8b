"""Growth of the time that a function takes with the length of a text, whatever the speed of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["growth"]


def growth(run: Callable[[str], object], part: str, *, characters: int = 500, times: int = 40) -> float:
    """Return how much longer a function takes for one long text than for as many characters in short ones.

    The texts repeat a part. The result is about 1 if the time is linear, and `times` if it is quadratic.
    """
    text = part * (characters // len(part))

    def seconds(text: str, calls: int) -> float:
        start = time.process_time()
        for _ in range(calls):
            run(text)
        return time.process_time() - start

    return min(seconds(text * times, 1) for _ in range(3)) / min(seconds(text, times) for _ in range(3))
