"""What the types of a module make of values: read, written, and constructed. It runs in any environment with Pydantic.

    python probe.py MODULE

reads a line of JSON, `[[name, value], …]`, and prints one: for each value what `probe` returns.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

DUMP = {"by_alias": True, "mode": "json", "exclude_none": True}


def probe(module: Any, name: str, value: Any) -> dict[str, Any] | None:
    """Return what a class makes of a value: its JSON, its attributes, and the JSON of an object with these.

    None if there is no such class, or if it rejects the value.
    """
    validate = getattr(getattr(module, name, None), "model_validate", None)
    if validate is None:
        return None
    try:
        found = validate(value)
    except ValueError as error:
        return {"rejected": str(error)}
    made = getattr(found, "root", found)  # root models wrap the members of unions
    kind: Any = made.__class__
    members = {field: getattr(made, field) for field in kind.model_fields if field in made.model_fields_set}
    aliases = {field: kind.model_fields[field].alias or field for field in members}
    return {
        "dumped": made.model_dump(**DUMP),
        "attributes": {field: plain(member) for field, member in members.items()},
        "defaults": {field: plain(getattr(made, field)) for field in kind.model_fields if field not in members},
        "constructed": kind(**{aliases[field]: member for field, member in members.items()}).model_dump(**DUMP),
    }


def plain(value: Any) -> Any:
    """Return a value as parsed JSON, with strings in place of URLs and times."""
    if hasattr(value, "model_dump"):
        return value.model_dump(**DUMP)
    items: Any = value
    if isinstance(value, list):
        return [plain(item) for item in items]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in items.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def main() -> None:
    module = import_module(sys.argv[1])
    print(json.dumps([probe(module, name, value) for name, value in json.loads(sys.stdin.read())]))


if __name__ == "__main__":
    main()
