"""The list of seeded faults, which checks itself against the code."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

ROOT = Path(__file__).resolve().parents[2]
_LIST = Path(__file__).with_name("faults.toml")
_RUNTIME = "runtime/typedmcp/"
_SATELLITES = "runtime/typedmcp-"
CODEGEN = "codegen/"
_COPIED = ("codegen/mcpspec_codegen/support/", "codegen/mcpspec_codegen/compat/")
"""The folders whose modules the compiler copies as they are."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small mistake: one text of one file is replaced by another."""

    name: str
    file: str
    breaks: str
    """What goes wrong."""
    old: str
    new: str
    survives: str = ""
    """The reason why no test is expected to notice it, if that is so."""

    @property
    def room(self) -> str:
        """The folder of the code, such as `server/http` or `codegen`; the module itself at the root of the runtime.

        For a satellite it is the name of its package.
        """
        if self.file.startswith(CODEGEN):
            return "codegen"
        if not self.file.startswith(_RUNTIME):
            return PurePosixPath(self.file).parts[2 if self.file.startswith(_SATELLITES) else 0]
        inner = PurePosixPath(self.file.removeprefix(_RUNTIME))
        return str(inner.parent) if inner.parent.parts else inner.stem

    @property
    def files(self) -> list[str]:
        """The files to change: of a module that the compiler copies, the copy as well."""
        is_copied = self.file.startswith(_COPIED)
        return [self.file, *([self.file.replace("codegen/mcpspec_codegen/", "generated/mcpspec/")] * is_copied)]

    @property
    def needs_compiler(self) -> bool:
        """True if the fault has an effect only once the types are generated again."""
        return self.file.startswith(CODEGEN) and len(self.files) == 1

    @property
    def module(self) -> str:
        """The name of the module that has the fault."""
        is_satellite = self.file.startswith(_SATELLITES)
        return self.file.split("/", 2 if is_satellite else 1)[-1].removesuffix(".py").replace("/", ".")

    def change(self, text: str) -> str:
        """Return the text of the file with the fault."""
        return text.replace(self.old, self.new, 1)

    def find_problem(self, root: Path) -> str | None:
        """Return why the fault does not fit the code of a checkout; None if it does."""
        for path in (root / file for file in self.files):
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            if (count := text.count(self.old)) != 1:
                return f"{self.name}: `old` occurs {count} times in {path}, expected once"
            if path.suffix == ".py" and (error := _find_syntax_error(self.change(text))) is not None:
                return f"{self.name}: with `new`, {path} is not Python: {error}"
        return None if self.old != self.new else f"{self.name}: `new` equals `old`"


F = TypeVar("F", bound=Fault)


def _find_syntax_error(text: str) -> SyntaxError | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    return None


def load_faults() -> list[Fault]:
    """Read the list. Raises `msgspec.ValidationError` for an entry that lacks a member or has an unknown one."""
    entries = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    return [msgspec.convert({"name": name, **entry}, Fault) for name, entry in entries.items()]


def select(faults: Sequence[F], wanted: list[str]) -> list[F]:
    """Return the faults with these names or in these rooms; all, if none is named. Raises `SystemExit` for others."""
    known = {fault.name for fault in faults} | {fault.room for fault in faults}
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"no fault and no room has the name {unknown[0]!r}; see tests/mutants")
    return [fault for fault in faults if not wanted or fault.name in wanted or fault.room in wanted]
