"""Runs one codec: `python -m bench.contenders.codecs.worker MODULE`, told over standard input what to measure.

It writes a line when it is ready. A line `{"message": NAME, "seconds": N}` is then answered by one with the
microseconds that each operation takes, or `null` where the contender takes no part.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from statistics import median
from timeit import Timer
from typing import Any

from bench.contenders.codecs import Codec
from bench.corpus import Message, message
from mcpspec._support.objects import is_array, is_object

RUNS, LEAST = 10, 3
"""In how many runs the time of an operation is taken, or if it is slow, in how many at least."""


@cache
def prepared(module: str, name: str) -> tuple[Message, Codec] | None:
    """A contender's codec. Raises `RuntimeError` unless it gives back what it was given, and finds what is wrong."""
    given = message(name)
    codec: Codec | None = import_module(f"bench.contenders.codecs.{module}").codec(given)
    if codec is None:
        return None
    if not holds(json.loads(codec.encode(codec.read(given.data))), json.loads(given.data)):
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
        codec.read(wrong)
    except Exception as error:
        return error
    return None


def microseconds(statement: str, names: Mapping[str, Any], seconds: float) -> float:
    """How long a statement takes, while the garbage collector works: the median of runs, of about so long together.

    The median, since what else the machine does meets some of the runs.
    """
    timer = Timer(statement, "import gc; gc.enable()", globals=dict(names))
    count, took = 1, min(timer.repeat(3, 1))  # the first may have something to load, or meet with a stall
    while took < seconds / RUNS / 2:
        count *= 2
        took = timer.timeit(count)
    runs = min(max(round(seconds / took), LEAST), RUNS)
    return median(timer.repeat(runs, count)) / count * 1e6


def measured(module: str, name: str, seconds: float) -> dict[str, float] | None:
    """All operations on one message."""
    found = prepared(module, name)
    if found is None:
        return None
    given, codec = found
    names = {
        "codec": codec,
        "rejects": rejects,
        "wrong": given.wrong,
        "data": given.data,
        "value": codec.read(given.data),
    }
    names |= {"decode": codec.decode, "encode": codec.encode, "kind": codec.kind}
    decode = "decode(data)" if codec.kind is None else "decode(data, kind)"
    statements = {"decode + encode": f"encode({decode})", "decode": decode, "encode": "encode(value)"}
    if codec.checks:
        statements["reject"] = "rejects(codec, wrong)"
    return {operation: microseconds(statement, names, seconds) for operation, statement in statements.items()}


def main() -> None:
    import_module(f"bench.contenders.codecs.{sys.argv[1]}")
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(measured(sys.argv[1], asked["message"], asked["seconds"])), flush=True)


if __name__ == "__main__":
    main()
