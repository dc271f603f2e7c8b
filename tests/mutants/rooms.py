"""The tests most likely to notice a fault in a file: its own, those of its room, and those of related rooms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

_FOLDERS = {
    "codegen/mcpspec_codegen/compat": "generated/compat",
    "codegen/mcpspec_codegen/support": "generated",
    "codegen/mcpspec_codegen": "codegen",
    "runtime/typedmcp-auth/typedmcp_auth": "typedmcp_auth",
    "runtime/typedmcp-cli/typedmcp_cli": "typedmcp_cli",
    "runtime/typedmcp-extensions/typedmcp_extensions": "typedmcp_extensions",
    "runtime/typedmcp-gateway/typedmcp_gateway": "typedmcp_gateway",
    "runtime/typedmcp-hosts/typedmcp_hosts": "typedmcp_hosts",
    "runtime/typedmcp-mcp1/typedmcp_mcp1": "typedmcp_mcp1",
    "runtime/typedmcp-otel/typedmcp_otel": "typedmcp_otel",
    "runtime/typedmcp-redis/typedmcp_redis": "typedmcp_redis",
    "runtime/typedmcp-schemas/typedmcp_schemas": "typedmcp_schemas",
    "runtime/typedmcp": "",
}
"""The folders of tests by those of code, the inner ones first. All folders below have the same name in both."""

_RELATED = {
    "app": ("server", "ported", "examples"),
    "client": ("client/http", "typedmcp_gateway", "test_sync.py", "typedmcp_hosts"),
    "client/http": ("client", "typedmcp_auth", "typedmcp_gateway"),
    "codegen": ("generated",),
    "generated": ("codegen",),
    "protocol": ("server", "client", "typedmcp_cli/recording"),
    "revisions": ("server", "client", "app"),
    "server": ("app", "client"),
    "server/http": ("server", "app", "client/http"),
    "server/store": ("server/http", "typedmcp_redis"),
    "transports": ("client", "server", "typedmcp_auth"),
    "typedmcp_auth": ("client/http", "server/http"),
    "typedmcp_cli": ("typedmcp_cli/dev", "typedmcp_cli/typed_clients", "typedmcp_cli/replay"),
    "typedmcp_extensions/apps": ("app",),
    "typedmcp_extensions/tasks": ("client", "typedmcp_gateway", "typedmcp_redis"),
    "typedmcp_gateway": ("client", "typedmcp_otel"),
    "typedmcp_hosts": ("client",),
    "typedmcp_otel": ("typedmcp_gateway",),
    "typedmcp_redis": ("server/http", "typedmcp_gateway"),
    "typedmcp_schemas": ("app", "client", "server"),
    "": ("server", "client", "app"),
}
"""The folders and files to try next, by the folder of tests. Those below a folder are related to it as well."""


def list_stages(root: Path, file: str) -> list[list[str]]:
    """List the tests of a checkout that may notice a fault in a file, in the order to try them. No file comes twice."""
    tests = root / "tests"
    room, stem = _find_room(tests, file), PurePosixPath(file).stem
    folder = tests / room
    others = [*(each for each in sorted(folder.iterdir()) if each.is_dir() and room)]
    others += [tests / name for name in _RELATED.get(room, _RELATED.get(room.partition("/")[0], ()))]
    found = [
        [path for path in (folder / f"test_{stem}.py", folder.parent / f"test_{stem}.py") if path.is_file()],
        sorted(folder.glob("test_*.py")),
        [path for each in others for path in _tests_in(each)],
    ]
    return [*_without_repetition(root, found)]


def _find_room(tests: Path, file: str) -> str:
    """Return the folder of tests that mirrors the folder of a file, or the next one above it."""
    known = next(folder for folder in _FOLDERS if file.startswith(f"{folder}/"))
    below = PurePosixPath(_FOLDERS[known], PurePosixPath(file).parent.relative_to(known))
    room = next(each for each in (below, *below.parents) if (tests / each).is_dir())
    return "" if room == PurePosixPath(".") else str(room)


def _tests_in(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * path.is_file()


def _without_repetition(root: Path, stages: Iterable[list[Path]]) -> Iterator[list[str]]:
    seen = set((root / "tests" / "mutants").glob("*.py"))
    for stage in stages:
        if new := [path for path in dict.fromkeys(stage) if path not in seen]:
            seen.update(new)
            yield [path.relative_to(root).as_posix() for path in new]
