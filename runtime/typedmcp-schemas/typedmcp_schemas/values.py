"""Python values to and from JSON: what msgspec cannot do by itself goes through its hooks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import UNSET

from typedmcp_schemas.nesting import decode_json

__all__ = [
    "REJECTED",
    "LibraryError",
    "UnsupportedTypeError",
    "ValueConversionError",
    "convert",
    "dec_hook",
    "enc_hook",
    "encode_default",
    "from_json",
    "is_pydantic",
    "to_builtins",
]  # fmt: skip

REJECTED: Final = "the value was rejected"
"""The reason given for exceptions whose text is not meant for callers."""


class UnsupportedTypeError(TypeError):
    """A type that has no JSON form here. `kind` is the class without one, if that is known."""

    def __init__(self, text: str, kind: object = None) -> None:
        super().__init__(text)
        self.kind: Any = kind

    @property
    def is_certain(self) -> bool:
        """Return whether no value can have a JSON form: the class is none of Python's, and has no subclasses."""
        if type(self.kind) is not type or self.kind.__subclasses__() or hasattr(self.kind, "__iter__"):
            return False
        return self.kind.__module__.partition(".")[0] not in sys.stdlib_module_names | {"builtins"}


class LibraryError(NamedTuple):
    """A fault that a library has found in a value."""

    place: tuple[int | str, ...]
    """Keys and indexes, between which there may be names of alternatives."""
    kind: str
    """The library's name for faults of this kind."""
    reason: str


class ValueConversionError(ValueError):
    """A value does not fit its type: for `reason()` at `path`, or because of the exception that is its cause.

    With a cause, `value` and `hint` are what was converted: `explain` finds the place with them. `others` are the
    errors of a library that names all faults of a value.
    """

    others: Sequence[LibraryError] = ()

    def __init__(self, reason: str = "", path: str = "", *, value: object = UNSET, hint: object = UNSET) -> None:
        super().__init__(reason)
        self.path: str = path
        self.value: Any = value
        self.hint: Any = hint

    def reason(self) -> str:
        """Return why the value does not fit.

        msgspec puts `str(error)` before the place, so costly texts are made here and not by `__str__`.
        """
        return str(self)


def dec_hook(kind: Any, value: object) -> Any:
    """Decode a value as a custom type, for msgspec."""
    try:
        return kind.decode(value)
    except (ValueConversionError, RecursionError):
        raise
    except (ValueError, TypeError) as error:
        raise ValueConversionError(
            str(error)
        ) from error  # since msgspec adds the place only to errors that are not its own
    except Exception as error:
        raise ValueConversionError(REJECTED) from error


def convert(value: object, hint: object) -> Any:
    """Convert parsed JSON to an adapted type. Raises `ValueConversionError`, which `explain` puts into words."""
    try:
        return msgspec.convert(value, hint, dec_hook=dec_hook, str_keys=True)
    except RecursionError:
        raise
    except Exception as error:
        raise ValueConversionError(value=value, hint=hint) from error


def from_json(text: str | bytes, hint: object) -> Any:
    """Decode JSON text as an adapted type. Raises `ValueError`."""
    return decode_json(text, hint, dec_hook=dec_hook)


_NATIVE_EXCEPT_KEYS: Final = (NoneType, bool, int, float, str, bytes, list, tuple, set, frozenset, dict)
"""Classes that msgspec encodes by itself, unless they are keys: only then does it ask the hook."""


def to_builtins(value: object) -> Any:
    """Return a value as plain JSON: dicts, lists, strings, numbers, booleans, None. Raises `TypeError`."""
    return msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True)


def enc_hook(value: Any) -> Any:
    """Encode a value that msgspec does not know. Raises `TypeError` for one that has no JSON form."""
    if type(value) in _NATIVE_EXCEPT_KEYS:
        name = "None" if value is None else type(value).__name__
        raise TypeError(f"a key of type {name} has no JSON form")
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    from pathlib import PurePath  # few values are paths

    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, re.Pattern):
        return cast(Any, value).pattern
    if isinstance(value, Mapping):
        return {**cast("Mapping[str, Any]", value)}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [*value]
    if is_pydantic(cast(object, type(value))) or "pydantic" in sys.modules:
        return _encode_with_pydantic(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _encode_with_pydantic(value: object) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise TypeError(f"{type(value).__name__} has no JSON form") from error


def encode_default(value: object) -> Any:
    """Return a default as plain JSON, or `UNSET` if it has no exact JSON form: NaN would become null."""
    if value is None or value.__class__ in (str, int, bool):
        return value
    import json  # few defaults are of other types

    try:
        return json.loads(json.dumps(to_builtins(value), allow_nan=False))
    except (TypeError, ValueError):
        return UNSET


def is_pydantic(kind: object) -> bool:
    """Return whether Pydantic has to validate values of a class. Our types let it, and do not need it."""
    if hasattr(kind, "__struct_config__") or hasattr(kind, "__decoder__"):
        return False
    return hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")
