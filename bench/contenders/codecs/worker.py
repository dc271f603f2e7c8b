"""Measures one codec: `python -m bench.contenders.codecs.worker MODULE`.

The worker prints a line when it is ready. It then reads lines of `{"message": NAME, "seconds": N}` from standard input,
and prints the microseconds of each operation, or `null` if the codec does not support the message.
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

from bench.contenders.codecs import CodecContender
from bench.corpus import Message, make_message
from mcpspec.support.objects import is_array, is_object

RUNS, MIN_RUNS = 10, 3
"""Timings of an operation. Slow operations are timed less often, but at least `MIN_RUNS` times."""


@cache
def prepare(module: str, name: str) -> tuple[Message, CodecContender] | None:
    """Make a codec for a message; None if it does not support it.

    Raises `RuntimeError` if the codec loses data, or accepts a wrong message that it should reject.
    """
    given = make_message(name)
    codec: CodecContender | None = import_module(f"bench.contenders.codecs.{module}").make_codec(given)
    if codec is None:
        return None
    if not contains(json.loads(codec.encode(codec.read(given.data))), json.loads(given.data), codec.omits):
        raise RuntimeError(f"{module} changes {name}")
    if codec.checks and try_decode(codec, given.wrong) is None:
        raise RuntimeError(f"{module} accepts a wrong {name}")
    return given, codec


def contains(found: Any, given: Any, omitted: Mapping[str, Any] = {}) -> bool:
    """Return whether `found` has all the data of `given`, except defaults that it may omit. It may have more."""
    if is_object(given) and is_object(found):
        kept = {name: value for name, value in given.items() if name in found or omitted.get(name) != value}
        return all(name in found and contains(found[name], value, omitted) for name, value in kept.items())
    if is_array(given) and is_array(found):
        return len(found) == len(given) and all(contains(*each, omitted) for each in zip(found, given, strict=True))
    return bool(found == given)


def try_decode(codec: CodecContender, wrong: bytes) -> Exception | None:
    """Decode a wrong message, and return the error."""
    try:
        codec.read(wrong)
    except Exception as error:
        return error
    return None


def time_statement(statement: str, names: Mapping[str, Any], seconds: float) -> float:
    """Return the microseconds that a statement takes, with garbage collection: the median of several runs.

    All runs take about `seconds` together. Other load on the machine slows down some of them, but not the median.
    """
    timer = Timer(statement, "import gc; gc.enable()", globals=dict(names))
    count, took = 1, min(timer.repeat(3, 1))  # the first run may load something
    while took < seconds / RUNS / 2:
        count *= 2
        took = timer.timeit(count)
    runs = min(max(round(seconds / took), MIN_RUNS), RUNS)
    return median(timer.repeat(runs, count)) / count * 1e6


def measure(module: str, name: str, seconds: float) -> dict[str, float] | None:
    """Measure all operations on one message; return microseconds by operation, or None if it is not supported."""
    found = prepare(module, name)
    if found is None:
        return None
    given, codec = found
    names = {
        "codec": codec,
        "try_decode": try_decode,
        "wrong": given.wrong,
        "data": given.data,
        "value": codec.read(given.data),
    }
    names |= {"decode": codec.decode, "encode": codec.encode, "kind": codec.kind}
    decode = "decode(data)" if codec.kind is None else "decode(data, kind)"
    statements = {"decode + encode": f"encode({decode})", "decode": decode, "encode": "encode(value)"}
    if codec.checks:
        statements["reject"] = "try_decode(codec, wrong)"
    return {operation: time_statement(statement, names, seconds) for operation, statement in statements.items()}


def main() -> None:
    import_module(f"bench.contenders.codecs.{sys.argv[1]}")
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(measure(sys.argv[1], request["message"], request["seconds"])), flush=True)


if __name__ == "__main__":
    main()
