"""Find the places that ask for the class of an object, which an object of the official SDK answers with its own.

`isinstance` recognises objects of the SDK. What looks at the class itself does not, and passes over them in silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["ClassTest", "find_class_tests"]

_MODULES = ("mcp.types", "mcp_types", "mcpspec.compat")


class ClassTest(NamedTuple):
    """A place that asks for the class of an object."""

    line: int
    name: str
    """The type of the protocol that it asks for."""


def find_class_tests(text: str) -> list[ClassTest]:
    """Find the places in a file, before or after its migration, in their order. A file with an error has none."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    names = _Names(module)
    found = {
        ClassTest(line, name)
        for node in ast.walk(module)
        for line, asked in _asked_classes(node)
        if (name := names.find_type(asked))
    }
    return sorted(found)


class _Names:
    """The variables of a file that are types of the protocol, or modules of them."""

    def __init__(self, module: ast.Module) -> None:
        self._types: dict[str, str] = {}
        self._modules = {*_MODULES}
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                self._modules |= {alias.asname for alias in node.names if alias.name in _MODULES and alias.asname}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._add_names(node.module, node.names)

    def _add_names(self, module: str, names: list[ast.alias]) -> None:
        for alias in names:
            if f"{module}.{alias.name}" in _MODULES:
                self._modules.add(alias.asname or alias.name)
            elif (module == "mcp" or module.startswith(_MODULES)) and not alias.name.isupper():
                self._types[alias.asname or alias.name] = alias.name

    def find_type(self, node: ast.expr) -> str:
        """Return the name of the type that an expression is, or an empty text."""
        if isinstance(node, ast.Name):
            return self._types.get(node.id, "")
        is_member = isinstance(node, ast.Attribute) and ast.unparse(node.value) in self._modules
        return node.attr if is_member and isinstance(node, ast.Attribute) else ""


def _asked_classes(node: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Yield the expressions that a node compares with the class of an object, each with its line."""
    asked: list[ast.expr] = []
    match node:
        case ast.Compare(left=left, comparators=others) if any(map(_is_class_of, [left, *others])):
            asked = [part for each in (left, *others) for part in _parts(each)]
        case ast.Call(func=ast.Name("issubclass"), args=[first, second]) if _is_class_of(first):
            asked = _parts(second)
        case ast.Call(func=ast.Attribute(attr="register"), args=[first, *_]):  # of `functools.singledispatch`
            asked = [first]
        case ast.Dict(keys=keys):
            asked = [key for key in keys if key is not None]
        case _:
            pass
    for each in asked:
        yield each.lineno, each


def _is_class_of(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name("type"), args=[_]) | ast.Attribute(attr="__class__"):
            return True
        case _:
            return False


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
