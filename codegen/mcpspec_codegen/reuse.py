"""Reuse the results of pure steps in one process.

A bump compiles the schemas and then compares them, and tests compile many folders that share most of their revisions.
Nothing is stored on disk.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["MAX_RESULTS", "reuse"]

T = TypeVar("T")

MAX_RESULTS = 64
"""The results that are kept: those that were used last."""

_results: OrderedDict[bytes, bytes] = OrderedDict()


def reuse(inputs: object, step: Callable[[], T]) -> T:
    """Return the result of a step: anew, or that of an earlier call with equal inputs.

    `inputs` are all that the result depends on, and what names the step. The result is the caller's own, who may change
    it. A step that raises an error is run again.
    """
    key = pickle.dumps(inputs)
    stored = _results.pop(key, None)
    if stored is None:
        stored = pickle.dumps(step())
    _results[key] = stored
    if len(_results) > MAX_RESULTS:
        _results.popitem(last=False)
    return cast(T, pickle.loads(stored))  # noqa: S301  # our own
