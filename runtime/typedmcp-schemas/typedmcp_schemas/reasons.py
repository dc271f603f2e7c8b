"""Places and reasons in the messages of failed conversions, in the words of JSON Schema.

msgspec writes the place at the end of its messages. The rest of a message may contain text that a peer sent, so only
the end is parsed, and long texts are cut.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import UNSET

from typedmcp_schemas.error_text import clip, escape_unprintable, format_path_part, format_value
from typedmcp_schemas.values import REJECTED, ValueConversionError

__all__ = ["describe_error", "describe_key", "explain_reason", "locate_error", "shorten"]

_PLACE_PREFIX: Final = " - at `"
_KEY_PREFIX: Final = "key` in `"
_MISSING_PREFIX: Final = "Object missing required field `"
_UNHASHABLE: Final = r"unhashable type: '\w+'"
_SHOWN_CHARACTERS: Final = 500
"""Characters shown of a reason, and of a place."""
_JSON_WORDS: Final = {"int": "integer", "str": "string", "float": "number", "bool": "boolean"}
"""The words of JSON Schema for those of msgspec, where they differ."""


def describe_error(error: BaseException, place: str = "") -> str:
    """Return the place and the reason of a conversion error: `forecast.days: expected integer, got string`.

    `place` is the name of the whole value. The keys of mappings are not named: msgspec writes `[...]` for them.
    """
    where, reason = locate_error(error, place)
    return f"{where}: {reason}" if where else reason


def locate_error(error: BaseException, place: str = "") -> tuple[str, str]:
    """Return the place of a conversion error, and the reason."""
    where = place
    while True:
        if isinstance(error, ValueConversionError):
            where += error.path
            if error.__cause__ is None or error.hint is UNSET:
                path, reason = "", _plain(error.reason())
                break
            error = error.__cause__
        path, reason = _read_message(error)
        if not isinstance(error.__cause__, ValueConversionError):
            break
        where, error = where + path, error.__cause__
    return shorten((where + path).removeprefix(".")), shorten(reason)


def describe_key(key: object, reason: str) -> str:
    """Return the message for a key that does not fit, with the mapping as its place."""
    return f"key {format_value(key)}: {_plain(reason)}"


def explain_reason(reason: str, value: object) -> str:
    """Return a reason in the words of JSON Schema, with the value that does not fit, if it is short."""
    text = shorten(_plain(reason))
    is_short = value is None or isinstance(value, str | int | float)
    if not is_short or not text.startswith(("expected ", "invalid ")) or ", got " in text:
        return text
    return f"{text}, got {format_value(value)}"


def shorten(text: str) -> str:
    """Return a part of a message of bounded length, without control characters."""
    return escape_unprintable(clip(text, _SHOWN_CHARACTERS), kept="\n")


def _plain(reason: str) -> str:
    """Return a reason in the words of JSON Schema, without msgspec's quotes, beginning with a lower-case letter."""
    if reason.startswith("Expected `"):
        reason = re.sub(r"(?<![\w\[])(int|str|float|bool)(?![\w\],])", lambda found: _JSON_WORDS[found[0]], reason)
    return (reason[:1].lower() + reason[1:]).replace("`", "")


def _read_message(error: BaseException) -> tuple[str, str]:
    """Return the place and the reason of an error that is not ours."""
    if isinstance(error, RecursionError):
        return "", "nested too deeply"
    if not isinstance(error, ValueError | TypeError):
        return "", REJECTED
    text, cause = str(error), error.__cause__
    if not isinstance(error, msgspec.ValidationError):
        unhashable = re.search(_UNHASHABLE, text)  # before that, Python 3.14 names a class of the server
        return "", _plain(text if unhashable is None else unhashable[0])
    reason = str(cause) if cause is not None and text.startswith(str(cause)) else text.rpartition(_PLACE_PREFIX)[0]
    place = text[len(reason) :].removeprefix(_PLACE_PREFIX)
    path = place.removeprefix(_KEY_PREFIX)
    if not (path.startswith("$") and path.endswith("`")):
        reason, place, path = text, "", ""
    where = path[1:-1].replace("[...]", "[]")
    if reason.startswith(_MISSING_PREFIX):
        return where + format_path_part(reason.removeprefix(_MISSING_PREFIX)[:-1]), "required, but missing"
    return where, "a key: " * (path != place) + _plain(reason)
