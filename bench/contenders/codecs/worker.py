"""Runs one codec: `python -m bench.contenders.codecs.worker MODULE`, told over standard input what to measure.

A line `{"message": NAME, "seconds": N}` is answered by one with the microseconds that each operation takes, or `null`
where the contender takes no part.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from bench.contenders.codecs import Codec
from bench.corpus import Message, message
from mcpspec._support.objects import is_array, is_object


@cache
def prepared(module: str, name: str) -> tuple[Message, Codec] | None:
    """A contender's codec. Raises `RuntimeError` unless it gives back what it was given, and finds what is wrong."""
    given = message(name)
    codec: Codec | None = import_module(f"bench.contenders.codecs.{module}").codec(given)
    if codec is None:
        return None
    if not holds(json.loads(codec.encode(codec.decode(given.data))), json.loads(given.data)):
        raise RuntimeError(f"{module} does not give {name} back as it was")
    if codec.checks and rejects(codec, given.wrong) is None:
        raise RuntimeError(f"{module} takes a wrong {name}")
    return given, codec


def holds(found: Any, given: Any) -> bool:
    """Whether nothing was lost; defaults may have been added."""
    if is_object(given) and is_object(found):
        return all(name in found and holds(found[name], value) for name, value in given.items())
    if is_array(given) and is_array(found):
        return len(found) == len(given) and all(map(holds, found, given))
    return bool(found == given)


def rejects(codec: Codec, wrong: bytes) -> Exception | None:
    """What a codec raises for a wrong message."""
    try:
        codec.decode(wrong)
    except Exception as error:
        return error
    return None


def microseconds(operation: Callable[[], Any], seconds: float) -> float:
    """How long an operation takes, on average over about that time; once, if it takes longer."""
    count, took, begun = 0, 0.0, time.perf_counter()
    while took < seconds / 10:
        operation()
        count += 1
        took = time.perf_counter() - begun
    if took < seconds:
        count *= 9
        begun = time.perf_counter()
        for _ in range(count):
            operation()
        took = time.perf_counter() - begun
    return took / count * 1e6


def measured(module: str, name: str, seconds: float) -> dict[str, float] | None:
    """All operations on one message."""
    found = prepared(module, name)
    if found is None:
        return None
    given, codec = found
    decode, encode, data = codec.decode, codec.encode, given.data
    value = decode(data)
    operations: dict[str, Callable[[], Any]] = {
        "decode + encode": lambda: encode(decode(data)),
        "decode": lambda: decode(data),
        "encode": lambda: encode(value),
    }
    if codec.checks:
        operations["reject"] = lambda: rejects(codec, given.wrong)
    return {operation: microseconds(run, seconds) for operation, run in operations.items()}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(measured(sys.argv[1], asked["message"], asked["seconds"])), flush=True)


if __name__ == "__main__":
    main()
