"""Try futures, each in a process of its own, which begins with the types compiled that no future changes."""

from __future__ import annotations

import multiprocessing
import re
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, Literal

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import definitions_key
from mcpspec_codegen.pipeline import compile_all
from tests.codegen.helpers import Schema
from tests.futures.bumped import bump, corrected_schema, find_gaps, use_types, write_types
from tests.futures.checks import check_conversions, check_names, check_values
from tests.futures.future import LATER, Future
from tests.futures.moved import check_served, decide_gaps, is_movable, write_runtime
from tests.futures.values import Values
from tests.paths import SCHEMA

__all__ = ["Outcome", "try_futures"]


@dataclass(frozen=True)
class Outcome:
    """The result of a bump to a future, and of the checks after it."""

    future: Future
    kind: Literal["green", "refused", "fault"]
    text: str
    """Why it was refused, or what is wrong."""
    seconds: dict[str, float]
    """Time of each step."""

    @property
    def reason(self) -> str:
        """The text without what it names, by which outcomes are counted."""
        return re.sub(r"'[^']*'|`[A-Z_][^`]*`|/\S+|\d+", "…", self.text.partition("\n")[0])[:150]


def try_futures(futures: Sequence[Future], *, jobs: int, is_whole: bool = False) -> Iterator[Outcome]:
    """Try futures, as many at a time as there are jobs, and yield what became of each.

    A whole trial checks all definitions, another one those that the future changes, and some others.
    """
    compile_all(SCHEMA, is_formatted=False)  # so that the compiler remembers what no future changes
    context = multiprocessing.get_context("fork")
    waiting, running = [*reversed(futures)], dict[Connection, tuple[Any, Future]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            future = waiting.pop()
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_try, args=(future, theirs, is_whole))
            process.start()
            theirs.close()
            running[mine] = (process, future)
        for mine in [each for each in wait([*running]) if isinstance(each, Connection)]:
            process, future = running.pop(mine)
            try:
                yield mine.recv()
            except EOFError:
                yield Outcome(future, "fault", "the process ended", {})
            mine.close()
            process.join()


def _try(future: Future, connection: Connection, is_whole: bool) -> None:
    seconds: dict[str, float] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            _examine(future, Path(folder), seconds, is_whole=is_whole)
        outcome = Outcome(future, "green", "", seconds)
    except SchemaError as error:
        outcome = Outcome(future, "refused", f"{error.reason.splitlines()[0]} at {error.pointer}", seconds)
    except BaseException as error:  # whatever it is, it is a fault of the compiler or of what it wrote
        frames = "".join(traceback.format_exception(error)[-6:])
        outcome = Outcome(future, "fault", f"{type(error).__name__}: {str(error)[:600]}\n{frames[-3000:]}", seconds)
    connection.send(outcome)
    connection.close()


def _examine(future: Future, folder: Path, seconds: dict[str, float], *, is_whole: bool) -> None:
    started = time.monotonic()

    def note(step: str) -> None:
        nonlocal started
        seconds[step] = time.monotonic() - started
        started = time.monotonic()

    random = Random(f"values {future.seed}-{future.number}")
    files, schema = bump(future, folder)
    note("bump")
    modules = write_types(files, folder / "generated")
    use_types(folder / "generated")
    check_names(modules, is_whole=is_whole)
    note("names")
    values = Values(corrected_schema(schema, LATER), random)
    names = [*values.defs] if is_whole else _touched(future, schema, values, random)
    check_values(values, names, 5 if is_whole else 3)
    note("values")
    older = {version: corrected_schema(schema, version) for version in _older(schema)}
    gaps = find_gaps(schema)
    check_conversions(values, older, names, partial(Values, random=random), gaps)
    note("conversions")
    is_moved = future.base == max(older) and (is_whole or future.number % _MOVED == 0)
    is_moved = is_moved and not any("codec.py" in gap for gap in gaps)  # nobody can decide that nothing is to be done
    if is_moved and (future.is_additive or is_movable(schema, future.base)):
        write_types(files | decide_gaps(schema), folder / "moved")
        use_types(write_runtime(folder / "runtime"), folder / "moved")
        check_served()
        note("moved")


_MOVED = 4
"""The runtime moves to one of so many futures of the newest revision, if they leave what it names."""


def _older(schema: Path) -> list[str]:
    return sorted(path.stem for path in schema.glob("2*.json") if path.stem != LATER)


def _touched(future: Future, schema: Path, values: Values, random: Random) -> list[str]:
    """Choose some definitions: those that differ from the revision that the future was made from, and a few others."""
    base: Schema = corrected_schema(schema, future.base)
    known = base[definitions_key(base)]
    changed = [name for name, node in values.defs.items() if node != known.get(name)]
    users = [
        name
        for name, node in values.defs.items()
        if any(f'/{each}"' in str(node).replace("'", '"') for each in changed)
    ]
    some = random.sample([*values.defs], 5)
    return [
        *dict.fromkeys(
            [*random.sample(changed, min(8, len(changed))), *random.sample(users, min(8, len(users))), *some]
        )
    ]
