"""Make the definitions of a module on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from inspect import currentframe
from threading import RLock
from types import CodeType
from typing import Any

from mcpspec.support.lazy import UnknownNameError

__all__ = ["lazy_definitions"]

_DEFINITIONS = "__definitions__"
"""The global variable of a module that holds its `_LazyDefinitions`."""


def lazy_definitions(
    names: dict[str, Any], extends: str = ""
) -> tuple[Callable[..., bool], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `is_needed`, `__getattr__` and `__dir__` for a module that makes its definitions on first use.

    The top level of the module calls this function, and passes its globals. Other names in its `__all__` are those of
    the module that it `extends`.
    """
    definitions: _LazyDefinitions | None = names.get(_DEFINITIONS)
    if definitions is None:
        frame = currentframe()
        assert frame is not None
        assert frame.f_back is not None
        definitions = names[_DEFINITIONS] = _LazyDefinitions(names, frame.f_back.f_code, extends)
    return definitions.is_needed, definitions.get, definitions.list_names


class _LazyDefinitions:
    """The definitions of a module, each in a block `if TYPE_CHECKING or is_needed("Name", "Reference", …):`.

    Type checkers and readers see ordinary definitions. When the module is imported, none is needed: the blocks only
    list the definitions. When one is first used, the code of the module runs again, and makes it and all that it
    refers to. A block lists the references that stand outside of a class body: those of aliases, and base classes.
    The others are read from the compiled body of the class.
    """

    def __init__(self, names: dict[str, Any], code: CodeType, extends: str) -> None:
        self._names = names
        self._code = code
        self._extends = extends
        self._listed: dict[str, tuple[str, ...]] = {}
        self._references: dict[str, set[str]] = {}
        self._made: dict[str, Any] = {}
        self._needed: set[str] = set()
        self._lock = RLock()

    def is_needed(self, name: str, *references: str) -> bool:
        """Return whether to run a definition now, given the definitions that it refers to outside of a class body."""
        self._listed[name] = references
        return name in self._needed

    def get(self, name: str) -> Any:
        """Return a definition, and make it if it is missing. Raises `AttributeError` for other names."""
        if name not in self._listed:
            if not self._extends or name not in self._names.get("__all__", ()):
                raise UnknownNameError(self._names["__name__"], name)
            return self._get_inherited(name)
        with self._lock:
            if name not in self._made:
                self._make(self._find_missing(name))
        return self._made[name]

    def list_names(self) -> list[str]:
        """List all names of the module."""
        return sorted({*self._names, *self._listed, *self._names.get("__all__", ())})

    def _get_inherited(self, name: str) -> Any:
        return getattr(import_module(self._extends), name)

    def _find_missing(self, name: str) -> set[str]:
        """Return the definitions to make for one: itself, and those that it refers to."""
        found: set[str] = set()
        pending = [name]
        while pending:
            name = pending.pop()
            if name in self._listed and name not in self._made and name not in found:
                found.add(name)
                pending += self._references_of(name)
        return found

    def _references_of(self, name: str) -> set[str]:
        """Return the definitions of this module, and of the one that it extends, that a definition refers to."""
        if name not in self._references:
            body = self._bodies.get(name)
            used = {*self._listed[name], *(() if body is None else _names_in(body))}
            inherited = self._names.get("__all__", ()) if self._extends else ()
            self._references[name] = {each for each in used if each in self._listed or each in inherited}
        return self._references[name]

    @cached_property
    def _bodies(self) -> dict[str, CodeType]:
        """The compiled bodies of the classes, by name."""
        return {each.co_name: each for each in self._code.co_consts if isinstance(each, CodeType)}

    def _make(self, needed: set[str]) -> None:
        # In a copy of the globals, so that no thread sees a definition before those that it refers to.
        names = self._names | self._made
        referenced = {reference for name in needed for reference in self._references_of(name)}
        names |= {name: self._get_inherited(name) for name in referenced - self._listed.keys()}
        self._needed = needed
        try:
            exec(self._code, names)  # noqa: S102  # the module's own code
        finally:
            self._needed = set()
        self._made |= {name: names[name] for name in needed}
        # What was assigned to the module from outside stays, such as a replacement for a test.
        self._names |= {name: names[name] for name in needed if name not in self._names}


def _names_in(body: CodeType) -> Iterator[str]:
    """Yield the names that the body of a class uses. Since Python 3.14 its annotations are a function in it."""
    yield from body.co_names
    for each in body.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)
