"""Rewrite imports of the official SDK's types, `mcp.types` and `mcp_types`, to `mcpspec.compat`.

    mcpspec-codegen migrate [--write] PATH…

Without `--write`, it prints a diff and changes nothing. Then it lists the places that it leaves to a person. Exit
status: 0 if there are none, 1 if there are some, 2 for wrong arguments and for files that cannot be read or written.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspec_codegen.migrate.source_files import SourceFile, decode_source, find_files

if TYPE_CHECKING:
    from mcpspec_codegen.migrate.migration import Migration, Note, TypeNames

__all__ = ["add_options", "migrate"]

_NEEDS_LIBCST = (
    "mcpspec-codegen migrate needs LibCST: pip install 'mcpspec-codegen[migrate]', "
    "in a checkout ./generated './codegen[migrate]'"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = "Rewrite imports of mcp.types and mcp_types to mcpspec.compat."
    parser.epilog = (
        "Exit status: 0 if nothing is left to do by hand, 1 if something is, "
        "2 for wrong arguments and for files that cannot be read or written."
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a Python file, or a folder of them")
    parser.add_argument("--write", action="store_true", help="change the files; without it, print a diff")


def migrate(paths: Sequence[Path], *, is_writing: bool, names: TypeNames | None = None) -> int:
    """Run the command, with the names of `mcpspec.compat` unless others are given. Return the exit status."""
    try:
        import_module("libcst")
    except ModuleNotFoundError:
        return _fail(_NEEDS_LIBCST)
    if unknown := [path for path in paths if not os.path.isfile(path) and not os.path.isdir(path)]:
        return _fail("\n".join(f"{_show(path)}: expected a file or a folder" for path in unknown))
    run = _Run(names or _load_names(), is_writing=is_writing)
    for path in find_files(paths, run.fail):
        run.migrate(path)
    return run.finish()


def _load_names() -> TypeNames:
    from mcpspec_codegen.migrate.migration import TypeNames

    missing = import_module("mcpspec.compat.names").MISSING
    return TypeNames(frozenset(import_module("mcpspec.compat").__all__), missing)


@dataclass
class _Run:
    """One run of the command."""

    names: TypeNames
    is_writing: bool
    changed: int = 0
    notes: list[tuple[Path, Note]] = field(default_factory=list["tuple[Path, Note]"])
    beside_sdk: list[Path] = field(default_factory=list[Path])
    """Files that use the SDK's servers or sessions together with our classes."""
    has_failed: bool = False

    def migrate(self, path: Path) -> None:
        """Migrate one file. Report it if it cannot be read or written."""
        try:
            self._migrate(path)
        except OSError as error:
            self.fail(error)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            self._note_unread(path, line, f"byte 0x{error.object[error.start]:02x} is not {error.encoding}")
        except SyntaxError as error:
            self._note_unread(path, 1, error.msg)
        except LookupError as error:  # a codec that is not for text
            self._note_unread(path, 1, str(error))

    def _migrate(self, path: Path) -> None:
        from mcpspec_codegen.migrate.migration import migrate_source

        data = path.read_bytes()
        if b"mcp" not in data:
            return
        source = decode_source(path, data)
        migration = migrate_source(source.text, self.names)
        if migration.text != source.text:
            self.changed += 1
            self._apply(source, migration)
            if self.is_writing:  # the lines of the new file are others
                migration = migrate_source(migration.text, self.names)
        self.notes += [(path, note) for note in migration.notes]
        if _COMPAT.search(migration.text) and _SDK.search(migration.text):
            self.beside_sdk.append(path)

    def _apply(self, source: SourceFile, migration: Migration) -> None:
        if self.is_writing:
            source.replace(migration.text)
            _print(f"changed {_show(source.path)}\n")
        else:
            _print("".join(_diff(source, migration.text)))

    def _note_unread(self, path: Path, line: int, reason: str) -> None:
        from mcpspec_codegen.migrate.migration import Note

        self.notes.append((path, Note(line, "", f"not parsed: {reason}")))

    def fail(self, error: OSError) -> None:
        """Report a file or folder that cannot be read or written."""
        self.has_failed = True
        _fail(f"{_show(error.filename or '')}: {error.strerror or error}")

    def finish(self) -> int:
        """Print what is left to do, and return the exit status."""
        for path, (line, name, reason) in self.notes:
            _print(f"{_show(path)}:{line}: {': '.join(filter(None, (name, reason)))}\n")
        verb = "changed" if self.is_writing else "to change"
        sys.stderr.write(f"files {verb}: {self.changed}; places left to do by hand: {len(self.notes)}\n")
        if self.beside_sdk:
            files = f"{len(self.beside_sdk)} files, such as {_show(self.beside_sdk[0])},"
            sys.stderr.write(f"{files} {_OTHER_CLASSES}\n")
        return 2 if self.has_failed else int(bool(self.notes))


_COMPAT = re.compile(r"^(?>.*?\bmcpspec\b).*\bcompat\b", re.MULTILINE)
_SDK = re.compile(r"^[ \t]*(?:from|import)[ \t]+mcp\b(?!\.types)", re.MULTILINE)
_OTHER_CLASSES = (
    "also import mcp, whose servers and sessions do not know these classes: call mcpspec.compat.sdk.install() before "
    "the first import of mcp, or convert with from_sdk and to_sdk"
)


def _diff(source: SourceFile, text: str) -> Iterator[str]:
    """Yield the lines of a unified diff, which `git apply` accepts."""
    path = _show(source.path)
    old, new = (f"{side}/{path}" if not source.path.is_absolute() else path for side in "ab")
    for line in difflib.unified_diff(_lines(source.text), _lines(text), old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Split a text after each line feed, and nowhere else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


# Output

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _print(text: str) -> None:
    """Print text; escape control characters on a terminal, and what the encoding of the output lacks anywhere."""
    stream = sys.stdout
    if stream.isatty():
        text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _show(path: Path | str) -> str:
    """Return a path in one line of printable characters."""
    return str(path) if str(path).isprintable() else repr(str(path))


def _fail(text: str) -> int:
    sys.stderr.write("".join(f"error: {line}\n" for line in text.split("\n")))
    return 2
