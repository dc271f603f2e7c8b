"""Use every name of generated modules, which are made only when they are used.

Run as `python -m mcpspec_codegen.use_names MODULE …`, in a process that can import them. It prints the first name that
cannot be used, as JSON.
"""

from __future__ import annotations

import json
import sys
import typing
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["find_unusable"]


def find_unusable(modules: Iterable[str], *, is_decoding: bool = True) -> tuple[str, str, str] | None:
    """Return the module, the name and the error of the first name that cannot be used; None if all can be.

    To make the decoders of all types takes most of the time.
    """
    for path in modules:
        name = ""
        try:
            module = import_module(path)
            for name in getattr(module, "__all__", ()):
                _resolve(module, value := getattr(module, name))
                if is_decoding:
                    _decode(module, name, value)
        except Exception as error:  # whatever it is, nobody can use the module
            return path, name, f"{type(error).__name__}: {error}"
    return None


def _resolve(module: ModuleType, value: Any) -> None:
    """Resolve what a class refers to."""
    if isinstance(value, type) and value.__module__ == module.__name__:
        typing.get_type_hints(value, include_extras=True)


def _decode(module: ModuleType, name: str, value: Any) -> None:
    """Make the decoder of a type of values."""
    decode, rejected = getattr(module, "decode", None), getattr(module, "DecodeError", None)
    if decode is None or rejected is None or name in _OTHERS or not name[:1].isupper() or name.isupper():
        return
    with suppress(rejected):
        decode(b"0", value)


_OTHERS = frozenset({"DecodeError", "UnsetType"})
"""Classes in `__all__` that are no types of values."""

if __name__ == "__main__":
    sys.stdout.write(json.dumps(find_unusable(sys.argv[1:])))
