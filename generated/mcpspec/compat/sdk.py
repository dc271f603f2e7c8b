"""Use these types together with the official SDK, versions 1.x and 2.x of the package `mcp`.

`install` makes the SDK use them in place of its own. `from_sdk` and `to_sdk` convert objects without that.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from operator import attrgetter
from types import CodeType, ModuleType
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, overload

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import to_jsonable_python

from mcpspec import compat
from mcpspec.support.objects import is_object

__all__ = ["from_sdk", "install", "to_sdk"]

T = TypeVar("T")

_Target: TypeAlias = type[BaseModel] | type[dict[str, Any]]
_Find: TypeAlias = Callable[[type[BaseModel]], _Target | None]
"""A function that returns the class that another one becomes."""

_FIRST: Final = ("mcp.types",)
"""The module that defines the types in 1.x. In 2.x it defines none."""
_SECOND: Final = ("mcp_types._types", "mcp_types.jsonrpc")
"""The modules that define the types in 2.x."""


def install() -> None:
    """Make the official SDK use the types of `mcpspec.compat` instead of its own.

    Call this before anything imports `mcp`: modules that are imported already keep the classes that they have. The
    SDK's modules keep everything else that they define, such as constants.
    """
    if any(isinstance(finder, _TypesFinder) for finder in sys.meta_path):
        return
    if any(name in sys.modules for name in _FIRST + _SECOND):
        raise RuntimeError("mcp is imported already: call install() before the first import of mcp")
    sys.meta_path.insert(0, _TypesFinder())


class _TypesFinder(MetaPathFinder):
    """An importer of the SDK's modules that define types."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the SDK as usual, and give it a loader of ours."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _FIRST + _SECOND else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """A loader that runs a module without its definitions of classes that we have."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        """Compile the source. There is no cache for it."""
        module = ast.parse(self.get_data(self.path))
        module.body = [node for node in module.body if not _is_replaced(node)]
        return compile(module, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with our classes."""
        definitions = ast.parse(self.get_data(self.path)).body
        classes = (node.name for node in definitions if isinstance(node, ast.ClassDef) and _is_replaced(node))
        module.__dict__.update({name: getattr(compat, name) for name in classes})
        super().exec_module(module)


def _is_replaced(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and hasattr(compat, node.name)


@overload
def from_sdk(value: object) -> Any: ...
@overload
def from_sdk(value: object, expected: type[T]) -> T: ...
def from_sdk(value: object, expected: type[T] | None = None) -> T | Any:
    """Convert an object of the official SDK, or a list or dict of them, to the types of `mcpspec.compat`.

    Members that are not set stay absent, and root models of 1.x become their content. Other values are returned as they
    are. `expected` is the class for type checkers. An object of another one is a `TypeError`.
    """
    converted = _convert(value, _find_ours)
    if expected is not None and not isinstance(converted, expected):
        raise TypeError(f"expected {expected.__name__}, got {type(converted).__name__}")
    return converted


def to_sdk(value: object) -> Any:
    """Convert an object of `mcpspec.compat`, or a list or dict of them, to the types of the official SDK.

    This imports the SDK's types. The SDK decides on members that its version does not have: 1.x keeps them, 2.x drops
    them. An object whose class the SDK does not have is a `TypeError`.
    """
    return _convert(value, _find_theirs)


def _convert(value: Any, find: _Find) -> Any:
    """Convert the models in a value, from the innermost to the outermost."""
    if isinstance(value, RootModel):
        return _convert(attrgetter("root")(value), find)
    if isinstance(value, BaseModel):
        target = find(type(value))
        return value if target is None or issubclass(type(value), target) else _rebuild(value, target, find)
    if is_object(value):
        return {key: _convert(item, find) for key, item in value.items()}
    return [_convert(item, find) for item in cast(Any, value)] if isinstance(value, (list, tuple)) else value


def _rebuild(value: BaseModel, target: _Target, find: _Find) -> Any:
    """Make an object of another class of the members that are set, and of the constants that it requires."""
    fields = type(value).model_fields
    members = {
        fields[name].alias or name: _plain(_convert(getattr(value, name), find))
        for name in fields
        if name in value.model_fields_set or name in _required_constants(target)
    }
    members |= {name: _convert(item, find) for name, item in (value.model_extra or {}).items()}
    return _validated(target, members) if issubclass(target, BaseModel) else target(members)


def _validated(target: type[BaseModel], members: Mapping[str, Any]) -> BaseModel:
    """Make an object of a class, or of the SDK's second class for results of sampling with several blocks or tools."""
    try:
        return target.model_validate(members)
    except ValidationError:
        other = getattr(sys.modules[target.__module__], f"{target.__name__}WithTools", target)
        if other is target:
            raise
        return cast("type[BaseModel]", other).model_validate(members)


def _plain(value: Any) -> Any:
    """Convert URIs and times to text, in which all versions read them."""
    return cast(Any, value) if isinstance(value, (BaseModel, dict, list)) else to_jsonable_python(value)


@cache
def _required_constants(target: _Target) -> frozenset[str]:
    """List the required members with a single value, such as `type`. Our constructors do not need them."""
    fields = target.model_fields if issubclass(target, BaseModel) else {}
    return frozenset(
        name
        for name, field in fields.items()
        if field.is_required() and get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    )


@cache
def _find_ours(theirs: type[BaseModel]) -> _Target | None:
    """Return our class for one of the SDK, or for one that inherits from it. Other classes have none."""
    bases = (base for base in theirs.__mro__ if base.__module__ in _FIRST + _SECOND)
    return _counterpart(bases, [compat])


@cache
def _find_theirs(ours: type[BaseModel]) -> _Target | None:
    """Return the SDK's class for one of ours, or for one that inherits from it. Other classes have none."""
    names = _FIRST if find_spec("mcp_types") is None else _SECOND
    return _counterpart(filter(_is_ours, ours.__mro__), [import_module(name) for name in names])


def _is_ours(model: type) -> bool:
    try:
        return model.__module__.startswith("mcpspec.") and attrgetter(model.__qualname__)(compat) is model
    except AttributeError:
        return False


def _counterpart(bases: Iterable[type], modules: Sequence[ModuleType]) -> _Target | None:
    """Find the class with the name of the nearest base. Parameters of generic classes are ignored.

    A class in a class, such as `RequestParams.Meta`, may be a plain `dict` there.
    """
    base = next((base for base in bases if "[" not in base.__name__), None)
    if base is None:
        return None
    outer, *inner = base.__qualname__.split(".")
    found: Any = next((getattr(module, outer) for module in modules if hasattr(module, outer)), None)
    if found is None:
        raise TypeError(f"{modules[0].__name__} has no class {outer}")
    for name in inner:
        found = getattr(found, name, dict)
    return cast("_Target", found)
