"""Says which revisions of the protocol accept the tools of a registry, and where the others do not.

`python registry_validator.py FILE_OR_FOLDER …` reads JSON files: results of `tools/list`, or server definitions with
`tools`. The status is 1 if no revision accepts a file. Run `python registry_validator.py`: it checks two examples.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcpspec
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import is_array
from mcpspec.support.unknown import unknown_members

DEFAULTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What modern revisions require of a result, and a registry has no reason to state."""

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
EXAMPLES: dict[str, Any] = {
    "weather.json": {"tools": [{"name": "forecast", "inputSchema": SCHEMA}]},
    "files.json": {
        "name": "a server definition",
        "tools": [
            {"name": "read", "inputSchema": {"type": "object", "properties": {"path": True}}, "icon": "file.png"}
        ],
    },
}


def find_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.json")) if path.is_dir() else [path]


def validate(tools: Any, version: str) -> tuple[list[str], list[str]]:
    """Return the errors, and the members that the revision would ignore."""
    types = mcpspec.revision(version).exact.structs
    text = json.dumps({**DEFAULTS, "tools": tools}).encode()
    try:
        types.decode(text, types.ListToolsResult)
    except DecodeError:
        return list(find_errors(tools, types)), []
    unknown = unknown_members(text, types.ListToolsResult)
    return [], [path for path in unknown if path not in DEFAULTS]


def find_errors(tools: Any, types: Any) -> Iterator[str]:
    """Yield an error for each tool that is wrong, with its path."""
    if not is_array(tools):
        yield "tools: expected an array"
        return
    for index, tool in enumerate(tools):
        try:
            types.from_builtins(tool, types.Tool)
        except DecodeError as error:
            yield f"tools[{index}].{error}"


def check(path: Path) -> bool:
    """Print what each revision says about a file, and return whether any accepts it."""
    print(path.name)
    try:
        tools = json.loads(path.read_bytes())["tools"]
    except (ValueError, KeyError, TypeError) as error:
        print(f"  no JSON object with tools: {error}")
        return False
    accepted = False
    for version in mcpspec.VERSIONS:
        errors, ignored = validate(tools, version)
        accepted = accepted or not errors
        print(f"  {version}: {'rejected' if errors else 'accepted'}")
        for line in [*errors, *(f"ignores {path}" for path in ignored)]:
            print(f"    {line}")
    return accepted


def main(paths: list[Path]) -> int:
    accepted = [check(path) for path in find_files(paths)]
    return 0 if all(accepted) else 1


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(main([Path(name) for name in sys.argv[1:]]))
    with tempfile.TemporaryDirectory() as folder:
        for name, example in EXAMPLES.items():
            (Path(folder) / name).write_text(json.dumps(example))
        main([Path(folder)])
