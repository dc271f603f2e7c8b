"""Rewrite the imports of the official SDK's types in the text of one Python file.

Each import is judged by itself, and a name without an equal stays where it is imported from:

- `from mcp.types import Tool, AnyFunction` becomes two statements;
- `mcp.types.Tool` becomes `mcpspec.compat.Tool`, and `mcp.types.AnyFunction` stays, with its import;
- a module under a variable, such as `types`, is replaced if `mcpspec.compat` has every name that the file takes from
  it. If it lacks one, the variable stays what it is, so that it is never two modules in one file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import accumulate
from typing import NamedTuple, TypeAlias, TypeVar, cast

import libcst as cst

from mcpspec_codegen.migrate.class_tests import find_class_tests
from mcpspec_codegen.migrate.import_statements import (
    COMPAT,
    ImportStatement,
    aliases_of,
    import_from,
    import_modules,
    imported_module,
    join,
    rename,
    select,
    split_line,
)
from mcpspec_codegen.migrate.sdk_paths import Target, find_target, split_path
from mcpspec_codegen.migrate.survey import Group, ImportedName, Survey, Use, find_imports

__all__ = ["Migration", "Note", "TypeNames", "migrate_source"]

_RENAMED = {"SamplingRole": "Role"}
"""Types that the package `mcp` exports under a name of its own."""


@dataclass(frozen=True)
class TypeNames:
    """The names of `mcpspec.compat`, and the public names of the official packages that it lacks."""

    known: frozenset[str]
    missing: Mapping[str, str]
    """Why a name is missing, and what to use in its place."""

    def find_equal(self, target: Target) -> str:
        """Return the name in `mcpspec.compat` of a name of the SDK, or an empty text."""
        name = _RENAMED.get(target.name, target.name) if target.is_of_package else target.name
        return name if name in self.known else ""

    def is_type(self, target: Target) -> bool:
        """Return whether a name is one of the official types, and not of another part of the SDK."""
        return not target.is_of_package or bool(self.find_equal(target)) or target.name in self.missing

    def reason(self, target: Target) -> str:
        """Return why a name has no equal."""
        default = _PRIVATE if target.name.startswith("_") else _UNKNOWN
        return self.missing.get(target.name, default)


_PRIVATE = "a private name, which has no equal"
_UNKNOWN = "mcpspec.compat has no such name; import it from the module that defines it"


class Note(NamedTuple):
    """A place that a person has to change or to look at."""

    line: int
    name: str
    reason: str


class Migration(NamedTuple):
    """The new text of a file, and what is left to do by hand. Lines are those of the old text."""

    text: str
    notes: list[Note]


def migrate_source(text: str, names: TypeNames) -> Migration:
    """Rewrite the imports of one file, and list what is left to do by hand."""
    if not re.search(r"\bmcp\b|\bmcp_types\b|\bmcpspec\b", text):
        return Migration(text, [])
    if _measure_depth(text) > _MAX_DEPTH:  # the parser of LibCST would overflow its stack
        return Migration(text, [Note(1, "", _TOO_DEEP)])
    try:
        migrated, notes = _migrate(text, names)
        notes += [Note(*found, _CLASS_TEST) for found in find_class_tests(text) if found.name in names.known]
        return Migration(migrated, sorted({*notes}))
    except cst.ParserSyntaxError as error:
        return Migration(text, [Note(error.raw_line, "", f"not parsed: {error.message}")])
    except RecursionError:
        return Migration(text, [Note(1, "", _TOO_DEEP)])


_CLASS_TEST = "an object of the SDK is an instance of it, but is of another class; use isinstance, or sdk.install()"
_TOO_DEEP = "nested too deeply for LibCST; edit this file by hand"
_MAX_DEPTH = 500


def _measure_depth(text: str) -> int:
    """Return the depth of brackets in a text, those in strings and comments included."""
    steps = (1 if bracket in "([{" else -1 for bracket in re.findall(r"[()\[\]{}]", text))
    return max(accumulate(steps), default=0)


def _migrate(text: str, names: TypeNames) -> Migration:
    module = cst.parse_module(text)
    findings = find_imports(module)
    if findings.is_empty:
        return Migration(text, [])
    if module.code != text:
        return Migration(text, [Note(1, "", "LibCST does not keep every byte of this file; edit it by hand")])
    plan = _plan(Survey(module, findings), names)
    migrated = module.visit(_Replacer(plan.edits)) if plan.edits else module
    assert isinstance(migrated, cst.Module)
    return Migration(migrated.code, plan.notes)


_Edit: TypeAlias = cst.CSTNode | cst.FlattenSentinel[cst.SimpleStatementLine] | cst.FlattenSentinel[ImportStatement]


class _Fate(Enum):
    """The fate of one name of an import statement."""

    STAYS = auto()
    TO_COMPAT = auto()
    TO_PACKAGE = auto()
    """`import mcp.types` becomes `import mcp`, which the file still needs."""
    GOES = auto()


@dataclass
class _Plan:
    """The changes of a file, and the notes about it."""

    survey: Survey
    names: TypeNames
    notes: list[Note] = field(default_factory=list[Note])
    edits: dict[cst.CSTNode, _Edit] = field(default_factory=dict[cst.CSTNode, _Edit])
    fates: dict[ImportedName, _Fate] = field(default_factory=dict[ImportedName, _Fate])
    additions: set[ImportStatement] = field(default_factory=set[ImportStatement])
    """The statements that get an `import mcpspec.compat` beside them."""

    def note(self, node: cst.CSTNode, name: str, reason: str) -> None:
        self.notes.append(Note(self.survey.line(node), name, reason))


_NodeT = TypeVar("_NodeT", bound=cst.CSTNode)


class _Replacer(cst.CSTTransformer):
    """Replaces nodes."""

    def __init__(self, edits: Mapping[cst.CSTNode, _Edit]) -> None:
        super().__init__()
        self.edits = edits

    def on_leave(self, original_node: _NodeT, updated_node: _NodeT) -> _NodeT | cst.FlattenSentinel[_NodeT]:
        return cast(_NodeT, self.edits.get(original_node, updated_node))


def _plan(survey: Survey, names: TypeNames) -> _Plan:
    plan = _Plan(survey, names)
    for star in survey.findings.stars:
        plan.note(star, f"{imported_module(star)}.*", "import the names that are used, and migrate again")
    for group in survey.groups:
        if group.path == ("mcp",):
            _plan_package(plan, group)
        else:
            _plan_variable(plan, group)
    for imported in survey.findings.names:
        _plan_name(plan, imported)
    for line, target in survey.mentions():
        plan.notes.append(Note(line, target.text, _explain_string(names, target)))
    for statement in dict.fromkeys(imported.statement for imported in plan.fates):
        _plan_statement(plan, statement)
    return plan


def _plan_name(plan: _Plan, imported: ImportedName) -> None:
    """Plan an import of a name, such as `from mcp.types import Tool`."""
    target = find_target(imported.path)
    assert target is not None
    if isinstance(imported.statement, cst.ImportFrom) and plan.names.find_equal(target):
        plan.fates[imported] = _Fate.TO_COMPAT
    elif plan.names.is_type(target):
        plan.note(imported.alias, target.text, plan.names.reason(target))


# Variables that are the module of the types


def _plan_variable(plan: _Plan, group: Group) -> None:
    """Plan the imports of the module under a variable: all of them, or none."""
    found = [(use, _explain_obstacle(plan.names, use)) for use in group.uses]
    obstacles = [(use, reason) for use, reason in found if reason]
    for use, reason in obstacles:
        plan.note(use.node, use.target.text, reason)
    if obstacles:
        names = ", ".join(sorted({use.target.text for use, _ in obstacles}))
        for imported in group.imports:
            reason = f"{imported.variable!r} stays this module because of {names}; change that, and migrate again"
            plan.note(imported.alias, ".".join(imported.path), reason)
        return
    plan.fates |= dict.fromkeys(group.imports, _Fate.TO_COMPAT)
    for use in group.uses:
        if use.target.is_of_submodule and len(group.path) < use.target.depth:
            module = use.chain[use.target.depth - len(group.path)]
            assert isinstance(module, cst.Attribute)
            plan.edits[module] = module.value


def _explain_obstacle(names: TypeNames, use: Use) -> str:
    """Return why a use of a variable does not work with `mcpspec.compat`, or an empty text."""
    if not use.target.name:
        return "" if use.is_test else _VALUE
    if not names.find_equal(use.target):
        return names.reason(use.target)
    if not use.is_read:
        return _ASSIGNED
    is_in_string = isinstance(use.node, cst.BaseString)
    return _explain_string(names, use.target) if is_in_string and use.target.is_of_submodule else ""


_VALUE = "the module is passed on, so the names that are taken from it are unknown; replace it by hand"
_ASSIGNED = "this changes the official module; decide by hand which module is meant"


def _explain_string(names: TypeNames, target: Target) -> str:
    if not target.name:
        return "a string; replace it by hand with mcpspec.compat"
    if equal := names.find_equal(target):
        return f"a string; replace it by hand with mcpspec.compat.{equal}"
    return names.reason(target)


# The variable that is the package `mcp`


def _plan_package(plan: _Plan, group: Group) -> None:
    """Plan dotted names such as `mcp.types.Tool` one by one, and then the imports that they need."""
    is_taken = plan.survey.assigns("mcpspec")
    kept: list[Target] = []
    for use in group.uses:
        reason = _explain_dotted(plan.names, use, is_taken=is_taken)
        if reason is None:
            _replace_dotted(plan, use)
            continue
        kept.append(use.target)
        if reason:
            plan.note(use.node, use.target.text, reason)
    _plan_package_imports(plan, group, kept)


def _explain_dotted(names: TypeNames, use: Use, *, is_taken: bool) -> str | None:
    """Return why a dotted name stays: an empty text if it is of another part of the SDK, None if it can be replaced."""
    if not names.is_type(use.target):
        return ""
    if not use.target.name:
        return _VALUE
    if not names.find_equal(use.target):
        return names.reason(use.target)
    if not use.is_read:
        return _ASSIGNED
    if not use.chain:
        return _explain_string(names, use.target)
    return "this file has another variable called 'mcpspec'; rename it, and migrate again" if is_taken else None


def _replace_dotted(plan: _Plan, use: Use) -> None:
    depth, equal = use.target.depth, plan.names.find_equal(use.target)
    module, whole = use.chain[depth - 1], use.chain[depth]
    plan.edits[module] = COMPAT.with_changes(lpar=module.lpar, rpar=module.rpar)
    if equal != use.target.name and isinstance(whole, cst.Attribute):
        plan.edits[whole.attr] = cst.Name(equal)


def _plan_package_imports(plan: _Plan, group: Group, kept: list[Target]) -> None:
    """Import `mcpspec.compat` where the official types were imported, and drop the imports that nothing needs."""
    is_replaced = len(kept) < len(group.uses)
    fates = {each: _choose_fate(each, kept, is_replaced=is_replaced) for each in group.imports}
    blocks = {plan.survey.block(each.statement) for each, fate in fates.items() if fate == _Fate.STAYS}
    for each, fate in fates.items():
        if fate == _Fate.TO_PACKAGE and plan.survey.block(each.statement) in blocks:
            fates[each] = _Fate.GOES  # another import assigns `mcp`
    plan.fates |= fates
    if is_replaced:
        plan.additions |= _choose_additions(plan.survey, group, fates)
    elif all(target.is_of_package for target in kept):
        for each in group.imports:
            if each.path[1:2] == ("types",):
                plan.note(each.alias, ".".join(each.path), "no type is used through it; remove it, or import mcp")


def _choose_fate(imported: ImportedName, kept: list[Target], *, is_replaced: bool) -> _Fate:
    is_of_types = imported.path[1:2] == ("types",)
    if not is_replaced or not (is_of_types or imported.path == ("mcp",)):
        return _Fate.STAYS
    if not kept:
        return _Fate.GOES
    if is_of_types:
        return _Fate.TO_PACKAGE if all(target.is_of_package for target in kept) else _Fate.STAYS
    return _Fate.STAYS


def _choose_additions(survey: Survey, group: Group, fates: Mapping[ImportedName, _Fate]) -> set[ImportStatement]:
    """Choose one statement in each block that imports the types, if possible one that loses a name."""
    able = [each for each in group.imports if each.path[1:2] in ((), ("types",))] or group.imports
    found = {each.statement for each in able if fates[each] in (_Fate.GOES, _Fate.TO_PACKAGE)}
    blocks = {survey.block(statement) for statement in found}
    if not survey.imports_module(group.scope, "mcpspec.compat"):
        for each in able:
            if (block := survey.block(each.statement)) not in blocks:
                found.add(each.statement)
                blocks.add(block)
    return found


# Statements


def _plan_statement(plan: _Plan, statement: ImportStatement) -> None:
    """Plan the statements that stand in the place of an import statement."""
    fates = {each.index: fate for each, fate in plan.fates.items() if each.statement is statement}
    if isinstance(statement, cst.Import):
        parts = _migrate_import(statement, fates, is_added=statement in plan.additions)
    else:
        parts = _migrate_import_from(statement, fates, plan.names)
    line = plan.survey.parent(statement)
    if parts == [statement]:
        return
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        plan.edits[line] = split_line(line, parts)
    else:
        plan.edits[statement] = join(statement, parts)


def _migrate_import(statement: cst.Import, fates: Mapping[int, _Fate], *, is_added: bool) -> Sequence[ImportStatement]:
    kept: list[cst.ImportAlias] = []
    added = [cst.ImportAlias(COMPAT)] if is_added else []
    for index, alias in enumerate(statement.names):
        match fates.get(index, _Fate.STAYS):
            case _Fate.STAYS:
                kept.append(alias)
            case _Fate.TO_PACKAGE:
                kept.append(alias.with_changes(name=cst.Name("mcp")))
            case _Fate.TO_COMPAT:
                added.append(rename(alias, COMPAT))
            case _Fate.GOES:
                pass
    if not added:
        return [statement]
    return [import_modules(statement, aliases) for aliases in (kept, added) if aliases]


def _migrate_import_from(
    statement: cst.ImportFrom, fates: Mapping[int, _Fate], names: TypeNames
) -> Sequence[ImportStatement]:
    kept: list[int] = []
    modules: dict[int, cst.Name] = {}
    equals: dict[int, cst.Name] = {}
    for index, alias in enumerate(aliases_of(statement)):
        target = find_target(split_path(f"{imported_module(statement)}.{alias.evaluated_name}"))
        if target is None or fates.get(index, _Fate.STAYS) is _Fate.STAYS:
            kept.append(index)
        elif target.name:
            equals[index] = cst.Name(names.find_equal(target))
        else:
            modules[index] = COMPAT.attr
    found = [import_from(statement, COMPAT.value, modules)] if modules else []
    found += [import_from(statement, COMPAT, equals)] if equals else []
    return [select(statement, kept), *found] if kept else found
