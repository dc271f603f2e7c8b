"""Find what a file imports from the official SDK's types, and every use of the modules that it imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst
from libcst.metadata import (
    Access,
    BaseAssignment,
    ExpressionContext,
    ExpressionContextProvider,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    Scope,
    ScopeProvider,
)

from mcpspec_codegen.migrate.import_statements import ImportStatement, aliases_of, bound_name, imported_module
from mcpspec_codegen.migrate.sdk_paths import Path, Target, find_mentions, find_target, split_path

__all__ = ["Findings", "Group", "ImportedName", "Mention", "Survey", "Use", "find_imports"]


@dataclass(frozen=True)
class ImportedName:
    """One name of an import statement, by its place in the statement."""

    statement: ImportStatement
    index: int
    path: Path
    """The thing that is imported, such as `("mcp", "types", "Tool")`."""

    @property
    def alias(self) -> cst.ImportAlias:
        return aliases_of(self.statement)[self.index]

    @property
    def variable(self) -> str:
        """The variable that it assigns."""
        return bound_name(self.alias)

    @property
    def value(self) -> Path:
        """The dotted name of the variable's value: `import mcp.types` assigns `mcp`."""
        is_first_part = isinstance(self.statement, cst.Import) and self.alias.asname is None
        return self.path[:1] if is_first_part else self.path


class Mention(NamedTuple):
    """A dotted name of the official types in a string."""

    string: cst.SimpleString | cst.FormattedStringText
    offset: int
    target: Target


@dataclass
class Findings:
    """The imports of the official types, and the strings that mention them."""

    names: list[ImportedName] = field(default_factory=list[ImportedName])
    modules: list[ImportedName] = field(default_factory=list[ImportedName])
    stars: list[cst.ImportFrom] = field(default_factory=list[cst.ImportFrom])
    mentions: list[Mention] = field(default_factory=list[Mention])

    @property
    def is_empty(self) -> bool:
        return not (self.names or self.modules or self.stars or self.mentions)


def find_imports(module: cst.Module) -> Findings:
    """Find the imports and mentions in a file, without their uses, which takes little time."""
    finder = _Finder()
    module.visit(finder)
    return finder.findings


class _Finder(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.findings = Findings()

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Return whether the nodes in this one matter."""
        match node:
            case cst.Import():
                for index, alias in enumerate(node.names):
                    self._add(ImportedName(node, index, split_path(alias.evaluated_name)))
            case cst.ImportFrom():
                self._add_names(node)
            case cst.SimpleString():
                if isinstance(content := node.evaluated_value, str):
                    self._add_mentions(node, content)
            case cst.FormattedStringText():
                self._add_mentions(node, node.value)
            case cst.Expr(value=cst.BaseString()):  # a docstring
                return False
            case _:
                return True
        return False

    def _add_names(self, node: cst.ImportFrom) -> None:
        module = split_path(imported_module(node))
        target = find_target(module)
        if target is None or (target.is_of_package and target.name):
            return
        if isinstance(node.names, cst.ImportStar):
            self.findings.stars.append(node)
        for index, alias in enumerate(aliases_of(node)):
            self._add(ImportedName(node, index, (*module, alias.evaluated_name)))

    def _add(self, imported: ImportedName) -> None:
        if target := find_target(imported.value):
            (self.findings.names if target.name else self.findings.modules).append(imported)

    def _add_mentions(self, node: cst.SimpleString | cst.FormattedStringText, content: str) -> None:
        self.findings.mentions += [Mention(node, *found) for found in find_mentions(node.value, content)]


@dataclass(frozen=True)
class Use:
    """One use of a module: a dotted name that begins with its variable."""

    node: cst.CSTNode
    target: Target
    chain: Sequence[cst.Name | cst.Attribute] = ()
    """The variable, and then one node for each further part. Empty in a string and in `getattr`."""
    is_read: bool = True
    """It is read, and not assigned or deleted."""
    is_test: bool = False
    """It is only tested, as in `if types is None`."""


@dataclass
class Group:
    """The imports that assign one variable in one scope, and the uses of this variable."""

    scope: Scope
    imports: list[ImportedName] = field(default_factory=list[ImportedName])
    uses: list[Use] = field(default_factory=list[Use])

    @property
    def path(self) -> Path:
        """The module that the variable is."""
        return self.imports[0].value


class Survey:
    """The uses of the modules that a file imports, and the places of everything in it."""

    def __init__(self, module: cst.Module, findings: Findings) -> None:
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.findings = findings
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._groups: dict[tuple[Scope, str], Group] = {}
        self._annotations: dict[cst.CSTNode, Scope] = {}
        """Strings that are types, with their scopes."""
        if findings.modules or findings.mentions:  # most files import names only, and scopes take most of the time
            self._contexts = wrapper.resolve(ExpressionContextProvider)
            self._scopes = {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}
            self._groups = _group(findings.modules, self._scopes)
            self._add_uses()

    @property
    def groups(self) -> list[Group]:
        """The imports of modules, by variable and scope."""
        return [*self._groups.values()]

    def line(self, node: cst.CSTNode) -> int:
        """Return the number of the line in which a node begins."""
        return self._positions[node].start.line

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the node around another."""
        return self._parents[node]

    def block(self, statement: ImportStatement) -> cst.CSTNode:
        """Return the block of lines in which a statement stands."""
        return self._parents[self._parents[statement]]

    def imports_module(self, scope: Scope, name: str) -> bool:
        """Return whether a scope has an import of a module under its dotted name."""
        return any(each.name == name and isinstance(each, ImportAssignment) for each in scope.assignments)

    def assigns(self, name: str) -> bool:
        """Return whether `name` is a variable of the file, other than the module that has this name."""
        found = (each for scope in self._scopes for each in scope.assignments if each.name == name)
        return any(not _imports_module(each, name) for each in found)

    def mentions(self) -> Iterator[tuple[int, Target]]:
        """Yield the dotted names in strings, with their lines, except in annotations that begin with a variable."""
        for string, offset, target in self.findings.mentions:
            scope = self._annotations.get(string)
            if scope is None or not scope[target.path[0]]:
                yield self.line(string) + string.value.count("\n", 0, offset), target

    def _add_uses(self) -> None:
        accesses = [access for scope in self._scopes for access in scope.accesses]
        for access in accesses:
            if isinstance(access.node, cst.Name | cst.Attribute) and (root := _find_root(access.node)):
                self._add_use(access, root)
            elif isinstance(access.node, cst.SimpleString) and access.node not in self._annotations:
                self._annotations[access.node] = access.scope
                self._add_uses_in_string(access.scope, access.node)

    def _add_use(self, access: Access, root: cst.Name) -> None:
        # LibCST takes the longest dotted name that an import assigns, even if a nearer scope assigns the variable.
        assignments = access.referents if access.node is root else access.scope[root.value]
        found = [self._groups.get((each.scope, root.value)) for each in assignments]
        for group in {id(group): group for group in found if group}.values():
            group.uses.append(self._make_use(group, root))

    def _make_use(self, group: Group, root: cst.Name) -> Use:
        chain: list[cst.Name | cst.Attribute] = [root]
        while isinstance(parent := self._parents[chain[-1]], cst.Attribute) and parent.value is chain[-1]:
            chain.append(parent)
        parts = [node.attr.value for node in chain if isinstance(node, cst.Attribute)]
        if not parts and (name := self._find_looked_up(root)):
            return Use(root, _target(group, [name]))
        context = self._contexts.get(chain[-1]) or ExpressionContext.LOAD
        is_read = context is ExpressionContext.LOAD
        return Use(root, _target(group, parts), chain, is_read, _is_test(chain[-1], self._parents[chain[-1]]))

    def _find_looked_up(self, root: cst.Name) -> str:
        """Return the name in `getattr(types, "Tool")` or `hasattr(types, "Tool")`, or an empty text."""
        match self._parents[self._parents[root]]:
            case cst.Call(
                func=cst.Name("getattr" | "hasattr"), args=[first, cst.Arg(value=cst.SimpleString() as name), *_]
            ) if first.value is root:
                return str(name.evaluated_value)
            case _:
                return ""

    def _add_uses_in_string(self, scope: Scope, string: cst.SimpleString) -> None:
        for (place, variable), group in self._groups.items():
            if any(each.scope is place for each in scope[variable]):
                for found in re.finditer(rf"(?<![\w.]){variable}\b((?:\.\w+)*)", str(string.evaluated_value)):
                    group.uses.append(Use(string, _target(group, found[1].split(".")[1:])))


def _group(imports: Iterable[ImportedName], scopes: Iterable[Scope]) -> dict[tuple[Scope, str], Group]:
    """Group imports of modules by scope and variable."""
    places = {
        (each.node, each.name.partition(".")[0]): scope
        for scope in scopes
        for each in scope.assignments
        if isinstance(each, ImportAssignment)
    }
    groups: dict[tuple[Scope, str], Group] = {}
    for each in imports:
        scope = places[each.statement, each.variable]
        groups.setdefault((scope, each.variable), Group(scope)).imports.append(each)
    return groups


def _imports_module(assignment: BaseAssignment, name: str) -> bool:
    if not isinstance(assignment, ImportAssignment) or not isinstance(assignment.node, cst.Import):
        return False
    aliases = [alias for alias in aliases_of(assignment.node) if bound_name(alias) == name]
    return all(alias.asname is None for alias in aliases)


def _find_root(node: cst.Name | cst.Attribute) -> cst.Name | None:
    """Return the variable with which a dotted name begins."""
    inner: cst.CSTNode = node
    while isinstance(inner, cst.Attribute):
        inner = inner.value
    return inner if isinstance(inner, cst.Name) else None


def _target(group: Group, parts: Sequence[str]) -> Target:
    target = find_target((*group.path, *parts))
    assert target is not None
    return target


def _is_test(node: cst.CSTNode, parent: cst.CSTNode) -> bool:
    if isinstance(parent, cst.If | cst.IfExp | cst.Assert | cst.While):
        return parent.test is node
    return isinstance(parent, cst.Comparison | cst.ComparisonTarget | cst.UnaryOperation | cst.BooleanOperation)
