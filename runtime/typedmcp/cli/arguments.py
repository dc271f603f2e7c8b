"""`key=value` as arguments of a tool or a prompt: the schema says what a value is.

`key=value` is a text where the schema takes one, and JSON where it does not. `key:=json` is JSON whatever the schema
says. `key=@file` and `key:=@file` take the value from a file. A key that comes again adds to an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mcpspec._support.objects import is_array, is_object
from typedmcp.cli.input import standard_input
from typedmcp.cli.schemas import alternatives, required_of, type_text
from typedmcp.cli.status import Stop, near

__all__ = ["arguments_of", "utf8"]

_NOTHING: Any = object()
_DEPTH = 20
"""In how many arrays within arrays a text is wrapped: a schema may be the array of itself."""


def arguments_of(pairs: Iterable[str], schema: Mapping[str, Any], text: str | None, what: str) -> dict[str, Any]:
    """The arguments that were given, by the schema of all; `text` is the JSON to which they are added.

    Raises `Stop` for what cannot be read, has no place in the schema, or is missing in it. With `text` nothing is
    missing: whoever writes JSON may want to see what the server says.
    """
    properties = schema.get("properties")
    known: dict[str, Any] = properties if is_object(properties) else {}
    made = {} if text is None else _object(text)
    given: dict[str, Any] = {}
    for pair in pairs:
        key, value = _read(pair, schema, known, what)
        given[key] = value if key not in given else _joined(key, given[key], value)
    made.update(given)
    missing = [name for name in required_of(schema) if name not in made]
    if missing and text is None:
        wanted = ", ".join(f"{name} ({type_text(known.get(name), schema)})" for name in missing)
        raise Stop(f"{what} needs {wanted}: {missing[0]}=…")
    return made


def utf8(text: str) -> str:
    """What was typed, if it is text. Raises `Stop`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Stop(f"{text!r} is not UTF-8") from None
    return text


def _object(text: str) -> dict[str, Any]:
    """Arguments that are written as JSON, or stand on standard input."""
    value = _json(standard_input().read() if text == "-" else text, "--json-args")
    if not is_object(value):
        raise Stop("--json-args is not a JSON object")
    return value


def _read(pair: str, schema: Mapping[str, Any], known: Mapping[str, Any], what: str) -> tuple[str, Any]:
    key, equals, value = utf8(pair).partition("=")
    if not equals or key in ("", ":"):
        raise Stop(f"{pair!r} is no argument: key=value, key:=json or key=@file")
    is_json = key.endswith(":") and key not in known
    key = key[:-1] if is_json else key
    if key not in known and schema.get("additionalProperties") is False:
        raise Stop(f"{what} takes no {key!r}{near(key, known)}")
    if value.startswith("@"):
        value = _file(value[1:], key)
    if is_json:
        return key, _json(value, key)
    return key, _value(value, known.get(key, {}), schema, key)


def _value(text: str, schema: Any, root: Mapping[str, Any], key: str, depth: int = 0) -> Any:
    options = [*alternatives(schema, root)]
    for option in options:
        if (found := _choice(text, option)) is not _NOTHING:
            return found
    types = {option.get("type") for option in options}
    if "string" in types:
        return text
    if not types - {None}:  # anything goes, or choices that it is none of
        return _json_or_text(text)
    if "array" in types and not text.lstrip().startswith("[") and depth < _DEPTH:
        items: list[Any] = [option.get("items") for option in options if option.get("type") == "array"]
        return [_value(text, items[0], root, key, depth + 1)]
    value = _json(text, key) if types & {"array", "object"} else _json_or_text(text)
    if not any(_is(value, kind) for kind in types):
        raise Stop(f"{key}: expected {type_text(schema, root)}, got {text!r}")
    return value


def _choice(text: str, option: Mapping[str, Any]) -> Any:
    """The choice that is written so, where there are some."""
    choices: Any = option.get("enum", [option["const"]] if "const" in option else [])
    for choice in choices if is_array(choices) else []:
        if text in (choice, msgspec.json.encode(choice).decode()):
            return choice
    return _NOTHING


def _is(value: Any, kind: Any) -> bool:
    kinds: dict[Any, Any] = {
        "string": str, "boolean": bool, "null": type(None), "array": list, "object": dict, "integer": int,
        "number": (int, float),
    }  # fmt: skip
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return kind is None or isinstance(value, kinds.get(kind, object))


def _joined(key: str, before: Any, value: Any) -> Any:
    if not is_array(before) or not is_array(value):
        raise Stop(f"{key} is given twice, and is no array")
    return [*before, *value]


def _file(name: str, key: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Stop(f"{key}: cannot read {name!r}: {reason}") from None


def _json(text: str | bytes, key: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Stop(f"{key}: not JSON: {error}") from None


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
