"""Imports of the official SDK's types become imports of `mcpspec.compat`."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspec_codegen.migrate.migration import Note, migrate_source
from tests.cases import each
from tests.codegen.migrate.cases import CASES, MISSING, NAMES, Case

each_case = each("case", CASES.values(), ids=CASES.keys())


def shown(note: Note) -> str:
    """Return a note as the command prints it, without what a parser says about a file."""
    text = ": ".join(filter(None, (str(note.line), note.name, note.reason)))
    return re.sub(r"not parsed: .*", "not parsed", text, flags=re.DOTALL)


@each_case
def test_a_file_is_migrated_as_far_as_its_names_exist(case: Case) -> None:
    migration = migrate_source(case.before, NAMES)
    assert migration.text == case.after
    assert tuple(map(shown, migration.notes)) == case.notes


@each_case
def test_migrating_a_file_again_changes_nothing_and_leaves_the_same_to_do(case: Case) -> None:
    once = migrate_source(case.before, NAMES)
    twice = migrate_source(once.text, NAMES)
    assert twice.text == once.text
    assert [note[1:] for note in twice.notes] == [note[1:] for note in once.notes]


def test_a_file_without_the_word_mcp_is_not_parsed() -> None:
    assert migrate_source("from mcpx import (", NAMES) == ("from mcpx import (", [])


# Random files

IMPORTS = (
    "from mcp import types", "from mcp import types as t", "from mcp import Client, types as u", "import mcp",
    "import mcp.types", "import mcp.types as v", "import mcp.client", "import mcp_types", "import mcp_types.version",
    "import mcp_types as w, os", "from mcp.types import Tool", "from mcp_types import Role as R, AnyFunction",
    "from mcp.types import (\n    Tool,  # tool\n    # any\n    AnyFunction,\n    ErrorData\n)",
    "from mcp_types import ( # a\n  Tool # b\n  , AnyFunction, Role as R # c\n  ,\n  # d\n  MethodT # e\n)  # f",
    "from mcp_types.version import LATEST_PROTOCOL_VERSION as L", "import mcp as package",
    "from mcp import Tool as X, Client as C, SamplingRole",
)  # fmt: skip
USED = (
    "types.Tool", "t.Role", "u.Tool", "v.Tool", "w.Tool", "mcp.types.Tool", "mcp.types.AnyFunction", "mcp.Tool",
    "mcp.Client", "mcp_types.Tool", "mcp_types.version.LATEST_PROTOCOL_VERSION", "types.AnyFunction", "package.Tool",
    "mcp.SamplingRole", "mcp_types.AnyFunction", "Tool", "R", "AnyFunction", "L", "X", "C", "SamplingRole",
    "package.Client",
)  # fmt: skip
FRAMES = (
    "show(lambda:  {})  # why", "def f(x: '{}') -> int: ...", "def g( x ):\n    show(lambda: [{},x] [0])\ng(1)",
    "if 1: show( lambda : ({}) );",
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file that imports types in several ways and uses them."""
    imports = draw(st.lists(st.sampled_from(IMPORTS), min_size=1, max_size=5))
    frames = st.tuples(st.sampled_from(FRAMES), st.sampled_from(USED))
    uses = [frame.replace("{}", name) for frame, name in draw(st.lists(frames, max_size=8))]
    return "\n".join([*imports, *uses]) + draw(st.sampled_from(["", "\n"]))


def fake_modules() -> dict[str, ModuleType]:
    """Make the official packages and `mcpspec.compat`, whose names have themselves as values."""
    known = {name: name for name in NAMES.known}
    official = {**known, **{name: name for name in MISSING}}
    content = {
        "mcp": {**official, "Client": "Client", "SamplingRole": "Role"}, "mcp.client": {}, "mcp.types": official,
        "mcp_types": official, "mcp_types.version": official, "mcpspec": {}, "mcpspec.compat": known,
    }  # fmt: skip
    modules = {name: ModuleType(name) for name in content}
    for name, module in modules.items():
        vars(module).update(content[name])
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
    return modules


def values(text: str) -> list[str]:
    """Run a file with fake packages, and return what it shows."""
    shown: list[str] = []

    def show(get: Callable[[], str]) -> None:
        try:
            shown.append(get())
        except NameError as error:
            shown.append(type(error).__name__)

    with pytest.MonkeyPatch.context() as patch:
        for name, module in fake_modules().items():
            patch.setitem(sys.modules, name, module)
        exec(compile(text, "file.py", "exec", dont_inherit=True), {"show": show})  # noqa: S102
    return shown


def without_imports(text: str) -> list[str]:
    """Return the lines that are not part of an import, with the last parts of the names of types."""
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {line for node in statements for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    others = [line for number, line in enumerate(text.split("\n"), 1) if number not in imported]
    module = r"\b(mcpspec\.compat|mcp_types\.version|mcp_types|mcp\.types|package|mcp)\."
    return [re.sub(module, "", line).replace("SamplingRole", "Role") for line in others]


def official_imports(text: str) -> list[str]:
    """Return the imports of official types that are left in a file, apart from names that are no types."""
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = [ast.unparse(node) for node in statements]
    return [
        line for line in lines if re.search(r"\bmcp_types\b(?<! as mcp_types)|\bmcp\.types\b|mcp import types", line)
    ]


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def check_migration(text: str) -> None:
    """Check that a migrated file does the same, is otherwise the same text, and that nothing is left without a note."""
    once = migrate_source(text, NAMES)
    assert values(once.text) == values(text)
    assert without_imports(once.text) == without_imports(text)
    assert comments(text) <= comments(once.text)
    assert once.notes or not official_imports(once.text)
    twice = migrate_source(once.text, NAMES)
    assert twice.text == once.text
    assert Counter(note[1:] for note in twice.notes) == Counter(note[1:] for note in once.notes)


@pytest.mark.long
@settings(max_examples=200)
@given(files())
def test_a_migrated_file_does_the_same(text: str) -> None:
    check_migration(text)
