"""Measures one converter: `python -m bench.contenders.conversion.worker MODULE`.

The worker prints a line when it is ready. It then reads lines of `{"direction": NAME, "value": NAME, "seconds": N}`
from standard input, and prints the microseconds of a conversion, or `null` if the contender does not support it.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module

import msgspec

from bench.contenders.codecs.worker import contains, time_statement
from bench.contenders.conversion import ConversionCase, Converter, make_case

__all__ = ["main", "measure", "prepare"]


@cache
def prepare(module: str, direction: str, name: str) -> tuple[ConversionCase, Converter] | None:
    """Make a converter for a case; None if there is no such case, or the contender does not support it.

    Raises `RuntimeError` if the result is of another type, or lacks what both revisions have.
    """
    case = make_case(direction, name)
    convert: Converter | None = (
        None if case is None else import_module(f"bench.contenders.conversion.{module}").make_converter(case)
    )
    if case is None or convert is None:
        return None
    made = convert(case.value)
    if type(made) is not case.target or not contains(msgspec.to_builtins(made), case.kept):
        raise RuntimeError(f"{module} changes {name}, {direction}")
    return case, convert


def measure(module: str, direction: str, name: str, seconds: float) -> float | None:
    """Return the microseconds of a conversion, or None if it is not supported."""
    found = prepare(module, direction, name)
    if found is None:
        return None
    case, convert = found
    return time_statement("convert(value)", {"convert": convert, "value": case.value}, seconds)


def main() -> None:
    import_module(f"bench.contenders.conversion.{sys.argv[1]}")
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        found = measure(sys.argv[1], request["direction"], request["value"], request["seconds"])
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
