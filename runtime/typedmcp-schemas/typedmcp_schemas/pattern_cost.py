"""The time that the patterns of an untrusted schema take on a value, measured in steps before the value is checked.

jsonschema-rs holds the interpreter's lock while it checks, so that no deadline can end a check. A limit of bytes would
not do either: measured with the engine of linear time, patterns that fit `_MAX_PATTERN_BYTES` take from 2 ns to 0.4 ms
for a byte, and the cost of a pattern cannot be seen. So the patterns are tried first, on pieces so small that no step
takes long, until they are done or the budget is spent. Patterns with lookaround or backreferences need an engine whose
time is not linear: they are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from time import thread_time
from typing import Any, Final

from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.schema_cost import SchemaRejectedError

__all__ = ["PatternMeter", "find_patterns", "pattern_options"]

_MAX_PATTERN_BYTES: Final = 512 << 10
"""Bytes of a compiled pattern. `^.{1,255}$` takes most of them, since a character has several bytes."""
_BUDGET: Final = 0.5
"""Seconds of processor time that all patterns may take on one value, each as often as it may apply to it."""
_LIGHT_PATTERN_BYTES: Final = 16 << 10
"""Bytes of a compiled pattern up to which it takes at most 5 µs for a byte, on the same machine."""
_MAX_SCHEMA_PATTERN_BYTES: Final = 16 << 20
"""Bytes that all patterns of a schema may take, each rounded up to one of the two sizes: 32 of the largest, compiled in
60 ms."""
_STEP_CHARACTERS: Final = 512
"""Characters by which the text of one step is longer than the last."""
_LIGHT_STEP_CHARACTERS: Final = 16 << 10
"""The same if all patterns are light."""
_STEP_STRINGS: Final = 64


def pattern_options() -> Any:
    """Return the options of the validator for the patterns of an untrusted schema."""
    return import_module("jsonschema_rs").RegexOptions(size_limit=_MAX_PATTERN_BYTES)


def find_patterns(schema: object) -> set[str]:
    """Return the patterns in a schema, and what looks like one."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if is_object(part):
            waiting += part.values()
            if isinstance(pattern := part.get("pattern"), str):
                found.add(pattern)
            if is_object(patterns := part.get("patternProperties")):
                found.update(patterns)
        elif is_array(part):
            waiting += part
    return found


@dataclass(frozen=True, slots=True)
class PatternMeter:
    """Measures the patterns of one schema."""

    validators: list[Any]
    """A validator for each pattern, of a list of strings."""
    budget: float
    """Seconds of processor time."""
    step: int
    """Characters of a step."""
    size: int
    """Bytes that the compiled patterns take at most."""

    @staticmethod
    def make(patterns: Iterable[str], uses: int) -> PatternMeter:
        """Return the meter for patterns of which a value may meet `uses`, some of them repeatedly.

        Raises `SchemaRejectedError` if they are too many for their size.
        """
        validators: list[Any] = []
        step = _LIGHT_STEP_CHARACTERS
        size = 0
        for pattern in patterns:
            size += _LIGHT_PATTERN_BYTES
            validator = _compile(pattern, _LIGHT_PATTERN_BYTES)
            if validator is None:
                size += _MAX_PATTERN_BYTES - _LIGHT_PATTERN_BYTES
                validator, step = _compile(pattern, _MAX_PATTERN_BYTES), _STEP_CHARACTERS
            if size > _MAX_SCHEMA_PATTERN_BYTES:
                raise SchemaRejectedError((), f"its patterns take more than {_MAX_SCHEMA_PATTERN_BYTES} bytes compiled")
            if validator is not None:  # otherwise it is a value, such as a default, and no pattern
                validators.append(validator)
        return PatternMeter(validators, _BUDGET / max(1, uses), step, size)

    def is_too_slow(self, value: object) -> bool:
        """Return whether the patterns would take longer than the budget on a value."""
        end = thread_time() + self.budget
        for strings in _steps(value, self.step):
            for validator in self.validators:
                validator.is_valid(strings)
                if thread_time() > end:
                    return True
        return False


def _compile(pattern: str, size: int) -> Any:
    """Return a validator of lists of strings, which tries the pattern on each, or None if it takes more bytes."""
    library = import_module("jsonschema_rs")
    schema = {"items": {"anyOf": [{"pattern": pattern}, True]}}
    try:
        return library.validator_for(schema, offline=True, pattern_options=library.RegexOptions(size_limit=size))
    except ValueError:
        return None


def _steps(value: object, step: int) -> Iterator[list[str]]:
    """Yield the strings in a value: several short ones at once, and long ones in pieces that grow from the front.

    A pattern may be fast on one part of a string and slow on the next, so each piece contains the one before.
    """
    batch: list[str] = []
    room = step
    for text in _strings(value):
        for end in range(step, len(text), step):
            yield [text[:end]]
        if len(text) >= step:
            yield [text]
            continue
        if len(text) > room or len(batch) == _STEP_STRINGS:
            yield batch
            batch, room = [], step
        batch.append(text)
        room -= len(text)
    yield batch


def _strings(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif is_object(part):
            yield from part
            waiting += part.values()
        elif is_array(part):
            waiting += part
