"""Read the docstrings of classes, and those below their attributes, which Python does not keep.

Exact classes have none: the everyday classes of the same names have them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise

__all__ = ["attribute_docs", "class_doc"]


@cache
def attribute_docs(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's attributes, also of inherited ones. None are known without the source code."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        for module in (base.__module__, _everyday(base.__module__)):
            if node := _classes_of(module).get(base.__qualname__):
                found |= _docs_in(node)
    return found


@cache
def class_doc(kind: type) -> str | None:
    """Return the docstring of a class, which for an exact class is that of the everyday class of the same name."""
    if kind.__doc__:
        return inspect.cleandoc(kind.__doc__)
    node = _classes_of(_everyday(kind.__module__)).get(kind.__qualname__)
    return None if node is None else ast.get_docstring(node)


def _everyday(module: str) -> str:
    """Return the module of the everyday types beside that of exact ones; an empty text for other modules."""
    package, exact, name = module.rpartition(".exact.")
    return f"{package}.{name}" if exact else ""


@cache
def _classes_of(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes in the source of a module. It is parsed once, since that takes milliseconds."""
    try:
        source = inspect.getsource(import_module(module)) if module else ""
    except (ImportError, OSError, TypeError):
        return {}
    return {node.name: node for node in _classes_in(ast.parse(source).body)}


def _classes_in(statements: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            yield statement
        elif isinstance(statement, ast.If):  # as around definitions that are made on first use
            yield from _classes_in(statement.body)


def _docs_in(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(node.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
            case _:
                pass
