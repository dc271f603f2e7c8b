"""Read the docstrings below the attributes of classes, which Python does not keep.

Exact classes have none: the everyday classes of the same names have them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise

__all__ = ["attribute_docs"]


@cache
def attribute_docs(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's attributes, also of inherited ones. None are known without the source code."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found |= _module_docs(base.__module__).get(base.__qualname__, {})
        package, exact, module = base.__module__.rpartition(".exact.")
        if exact:
            found |= _module_docs(f"{package}.{module}").get(base.__qualname__, {})
    return found


@cache
def _module_docs(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings in a module: class → attribute → text. It is read once, since that takes milliseconds."""
    try:
        source = inspect.getsource(import_module(module))
    except (ImportError, OSError, TypeError):
        return {}
    return {node.name: dict(_docs_in(node)) for node in _classes_in(ast.parse(source).body)}


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
