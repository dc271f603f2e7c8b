"""Make the Structs of a module on first use, since a process uses few of them, and msgspec takes long to make one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from threading import RLock
from types import new_class
from typing import Any

from mcpspec.support.lazy import UnknownNameError
from mcpspec.support.structs import OpenObject, Struct, untagged

__all__ = ["find_postponed", "postpone"]


def postpone(names: dict[str, Any]) -> None:
    """Postpone the definitions below the call: classes, and aliases that are texts.

    Readers and type checkers see ordinary definitions. `names` are the globals of the module.
    """
    for name, value in names.items():
        if isinstance(value, type) and issubclass(value, (Struct, OpenObject)):
            names[name] = _Class.of(value)


def find_postponed(
    names: dict[str, Any], *unions: str, **checks: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a `__getattr__` and a `__dir__` for a module whose definitions stand above the call.

    The first use of a definition makes it, and all that it refers to. `unions` name the aliases of unions without a
    tag, which msgspec decodes through `dec_hook`. `checks` name those of types with a check.
    """
    aliases = names.get("__annotations__", {})
    later: dict[str, _Class | _Alias] = {}
    for name, value in [*names.items()]:
        if isinstance(value, _Class) and value.made is not None:
            names[name] = value.made
        elif isinstance(value, _Class):
            later[name] = names.pop(name)
        elif isinstance(value, str) and aliases.get(name) == "TypeAlias":
            later[name] = _Alias(names.pop(name), name if name in unions or name in checks else "", checks.get(name))
    definitions = _Definitions(names, later)
    return definitions.get, definitions.list_names


class _Class:
    """A class statement that has made no class yet. A class that derives from it is postponed, too."""

    def __init__(self, name: str, bases: tuple[_Class, ...], body: dict[str, Any], **options: Any) -> None:
        self.made: type | None = None
        self._name = name
        self._bases = bases
        self._body = body
        self._options = options

    @classmethod
    def of(cls, made: type) -> _Class:
        """Return what stands for a class that exists."""
        standing = cls(made.__name__, (), {})
        standing.made = made
        return standing

    @property
    def text(self) -> str:
        """The code that refers to other definitions, whose names are words in it."""
        return " ".join([*self._body.get("__annotations__", {}).values(), *(base._name for base in self._bases)])

    def make(self, names: dict[str, Any]) -> type:
        """Return the class. The one that it derives from has been made before."""
        if self.made is None:
            bases = tuple(base.make(names) for base in self._bases)
            self.made = new_class(self._name, bases, self._options, lambda body: body.update(self._body))
        return self.made


class _Alias:
    """The text of an alias, or of an untagged union or a type with a check if it has a name."""

    def __init__(self, text: str, name: str = "", check: dict[str, Any] | None = None) -> None:
        self.text = text
        self._name = name
        self._check = check

    def make(self, names: dict[str, Any]) -> Any:
        if self._name:  # it may refer to itself
            return untagged(self._name, names["__name__"], cache(partial(eval, self.text, names)), self._check)
        return eval(self.text, names)  # noqa: S307  # the module's own code


class _Definitions:
    """The postponed definitions of a module, in its order: each is behind those that it needs when it is made."""

    def __init__(self, names: dict[str, Any], later: dict[str, _Class | _Alias]) -> None:
        self._names = names
        self._later = later
        self._made: dict[str, Any] = {}
        self._lock = RLock()

    def get(self, name: str) -> Any:
        """Return a definition, and make it if it is missing. Raises `AttributeError` for other names."""
        if name not in self._later:
            raise UnknownNameError(self._names["__name__"], name)
        with self._lock:
            if name not in self._made:
                self._make(name)
        return self._made[name]

    def list_names(self) -> list[str]:
        """List all names of the module."""
        return sorted({*self._names, *self._later})

    def _make(self, name: str) -> None:
        needed = {*self._find_missing(name)}
        # In a copy of the globals, so that no thread sees a definition before those that it refers to.
        names = self._names | self._made
        for each, definition in self._later.items():
            if each in needed:
                names[each] = self._made[each] = definition.make(names)
        # What was assigned to the module from outside stays, such as a replacement for a test.
        self._names |= {each: names[each] for each in needed if each not in self._names}

    def _find_missing(self, name: str) -> Iterator[str]:
        """Yield the definitions to make for one: itself, and those that it refers to."""
        pending, seen = [name], set[str]()
        while pending:
            name = pending.pop()
            if name in self._later and name not in self._made and name not in seen:
                seen.add(name)
                pending += _WORD.findall(self._later[name].text)
                yield name


_WORD = re.compile(r"[^\W\d]\w*")
