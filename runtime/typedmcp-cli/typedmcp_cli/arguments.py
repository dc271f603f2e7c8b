"""Arguments of a tool or a prompt from `key=value`; the schema decides how a value is read.

`key=value` is text if the schema accepts a string, and JSON otherwise. `key:=json` is always JSON. `key=@file` and
`key:=@file` read the value from a file. A repeated key adds to an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from typedmcp.building import decode_json, is_array, is_object
from typedmcp_cli.input import open_standard_input
from typedmcp_cli.schemas import describe_type, find_alternatives, list_required
from typedmcp_cli.status import CommandExit, suggest_names

__all__ = ["parse_arguments", "require_utf8"]

_NO_CHOICE = object()
_MAX_DEPTH = 20
"""The maximum number of arrays that a text is wrapped in, since a schema may be an array of itself."""
_PYTHON_TYPES: dict[object, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
    "integer": int,
    "number": (int, float),
}


def parse_arguments(
    pairs: Iterable[str], schema: Mapping[str, Any], json_text: str | None, owner: str
) -> dict[str, Any]:
    """Parse `pairs` by the object schema of the tool or prompt called `owner`.

    The pairs are added to `json_text`, a JSON object, or `-` for standard input. With it, missing arguments are left
    to the server. Raises `CommandExit` for unreadable, unknown or missing arguments.
    """
    properties = schema.get("properties")
    known: dict[str, Any] = properties if is_object(properties) else {}
    arguments = {} if json_text is None else _read_object(json_text)
    given: dict[str, Any] = {}
    for pair in pairs:
        key, value = _parse_pair(pair, schema, known, owner)
        given[key] = value if key not in given else _join_arrays(key, given[key], value)
    arguments.update(given)
    missing = [name for name in list_required(schema) if name not in arguments]
    if missing and json_text is None:
        described = ", ".join(f"{name} ({describe_type(known.get(name), schema)})" for name in missing)
        raise CommandExit(f"{owner} requires {described}; add {missing[0]}=…")
    return arguments


def require_utf8(text: str) -> str:
    """Return an argument of the command line. Raises `CommandExit` if it is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandExit(f"{text!r} is not UTF-8") from None
    return text


def _read_object(text: str) -> dict[str, Any]:
    value = _decode_json(open_standard_input().read() if text == "-" else text, "--json-args")
    if not is_object(value):
        raise CommandExit("--json-args: expected a JSON object")
    return value


def _parse_pair(pair: str, schema: Mapping[str, Any], known: Mapping[str, Any], owner: str) -> tuple[str, Any]:
    key, equals, value = require_utf8(pair).partition("=")
    if not equals or key in ("", ":"):
        raise CommandExit(f"{pair!r} is not an argument; expected key=value, key:=json or key=@file")
    is_json = key.endswith(":") and key not in known
    key = key[:-1] if is_json else key
    if key not in known and schema.get("additionalProperties") is False:
        raise CommandExit(f"{owner} has no argument {key!r}{suggest_names(key, known)}")
    if value.startswith("@"):
        value = _read_file(value[1:], key)
    if is_json:
        return key, _decode_json(value, key)
    return key, _parse_value(value, known.get(key, {}), schema, key)


def _parse_value(text: str, schema: object, root: Mapping[str, Any], key: str, depth: int = 0) -> Any:
    options = [*find_alternatives(schema, root)]
    for option in options:
        if (choice := _find_choice(text, option)) is not _NO_CHOICE:
            return choice
    types: set[object] = {option.get("type") for option in options}
    if "string" in types:
        return text
    if not types - {None}:  # the schema accepts anything, or only choices that the text does not match
        return _decode_json_or_text(text)
    if "array" in types and not text.lstrip().startswith("[") and depth < _MAX_DEPTH:
        items: list[Any] = [option.get("items") for option in options if option.get("type") == "array"]
        return [_parse_value(text, items[0], root, key, depth + 1)]
    value = _decode_json(text, key) if types & {"array", "object"} else _decode_json_or_text(text)
    if not any(_has_type(value, name) for name in types):
        raise CommandExit(f"{key}: expected {describe_type(schema, root)}, got {text!r}")
    return value


def _find_choice(text: str, option: Mapping[str, Any]) -> object:
    """Find the value of an `enum` or `const` that is written as `text`."""
    choices: object = option.get("enum", [option["const"]] if "const" in option else [])
    for choice in choices if is_array(choices) else []:
        if text in (choice, msgspec.json.encode(choice).decode()):
            return choice
    return _NO_CHOICE


def _has_type(value: object, name: object) -> bool:
    if name in ("integer", "number") and isinstance(value, bool):
        return False
    return name is None or isinstance(value, _PYTHON_TYPES.get(name, object))


def _join_arrays(key: str, first: object, second: object) -> list[Any]:
    if not is_array(first) or not is_array(second):
        raise CommandExit(f"{key} is given twice but is not an array")
    return [*first, *second]


def _read_file(name: str, key: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise CommandExit(f"{key}: cannot read {name!r}: {reason}") from None


def _decode_json(text: str | bytes, key: str) -> Any:
    try:
        return decode_json(text)
    except ValueError as error:
        raise CommandExit(f"{key}: not JSON: {error}") from None


def _decode_json_or_text(text: str) -> Any:
    try:
        return decode_json(text)
    except ValueError:
        return text
