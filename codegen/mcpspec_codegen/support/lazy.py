"""Import modules, and the exact types of everyday ones, on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

__all__ = [
    "UnknownNameError", "check_version", "exact_type", "lazy_modules", "lazy_names", "load_revision", "unknown_names",
]  # fmt: skip


def lazy_modules(
    package: str, names: dict[str, object], modules: Sequence[str]
) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Return a `__getattr__` that imports the modules of a package on first use, and a `__dir__` that lists them.

    `names` are the globals of the package.
    """

    def __getattr__(name: str) -> ModuleType:
        if name in modules:
            return _import(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}{_find_types(package, name, modules)}")

    def __dir__() -> list[str]:
        return sorted({*names, *modules})

    return __getattr__, __dir__


def _find_types(package: str, name: str, modules: Sequence[str]) -> str:
    """Return where the types are, for an error about a name that may be one of theirs."""
    newest = max((module for module in modules if module.startswith("v2")), default=None)
    if not (name[:1].isupper() or name in ("latest", "types")) or not (newest or "structs" in modules):
        return ""
    place = f"{package}.{newest}" if newest else package
    return f"; the types are in {place}.structs (msgspec) and {place}.models (Pydantic)"


def lazy_names(package: str, modules: Sequence[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a `__getattr__` that takes the names of a package from its module `types`, and a `__dir__`.

    The modules are attributes, too. All are imported on first use. The module `names` knows why a name is missing.
    """

    def __getattr__(name: str) -> Any:
        if name in modules:
            return _import(f"{package}.{name}")
        text = f"module {package!r} has no attribute {name!r}"
        if name.startswith("__") and name != "__all__":  # asked for by the import system
            raise AttributeError(text)
        try:
            return getattr(_import(f"{package}.types"), name)
        except AttributeError as error:
            reason = _import(f"{package}.names").MISSING.get(name)
            raise AttributeError(text if reason is None else f"{text}: {reason}") from error

    def __dir__() -> list[str]:
        return sorted({*modules, *_import(f"{package}.types").__all__})

    return __getattr__, __dir__


class UnknownNameError(AttributeError):
    """A module of a revision lacks a name.

    The text says which revisions have it. It is made when it is shown, since that imports all revisions: `getattr` with
    a default, and `hasattr`, do not.
    """

    def __init__(self, module: str, wanted: str) -> None:
        super().__init__(module, wanted)

    def __str__(self) -> str:
        module, wanted = self.args
        text = f"module {module!r} has no attribute {wanted!r}"
        found = [] if wanted.startswith("_") else [*_find_versions(module, wanted)]
        return f"{text}; revisions that have it: {', '.join(found)}" if found else text


def unknown_names(module: str) -> Callable[[str], Any]:
    """Return a `__getattr__` that raises an error about every name, for a module that has all its names."""

    def __getattr__(name: str) -> Any:
        raise UnknownNameError(module, name)

    return __getattr__


def _find_versions(module: str, wanted: str) -> Iterator[str]:
    """Yield the revisions whose module of the same kind has a name."""
    root, package, *face = module.split(".")
    versions = import_module("mcpspec").VERSIONS
    packages = {version: f"v{version.replace('-', '_')}" for version in versions}
    if root == "mcpspec" and package in (*packages.values(), "draft"):
        for version, name in packages.items():
            if wanted in import_module(".".join([root, name, *face])).__all__:
                yield version


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != "pydantic":
            raise
        text = f"{name} needs Pydantic: pip install 'mcpspec[pydantic]', in a checkout './generated[pydantic]'"
        raise ModuleNotFoundError(text, name=error.name) from error


def exact_type(kind: Any) -> Any:
    """Return the exact type that has the name of an everyday type, or is made of the exact types of its parts."""
    package, _, module = getattr(kind, "__module__", "").rpartition(".")
    if module in ("structs", "models") and hasattr(kind, "__name__"):
        try:
            exact = import_module(f"{package}.exact.{module}")
        except ModuleNotFoundError:  # a package that was written by hand
            return kind
        return getattr(exact, kind.__name__)
    parts: Any = tuple(map(exact_type, get_args(kind)))
    match get_origin(kind):
        case None:
            return kind
        case origin if origin is Annotated:
            return Annotated[(parts[0], *kind.__metadata__)]
        case origin if origin in (Union, UnionType):
            return Union[parts]  # noqa: UP007  # of a tuple
        case origin:
            return origin[parts]


def check_version(version: str, versions: Sequence[str]) -> None:
    """Raise `LookupError` for an unknown revision."""
    if version not in versions:
        raise LookupError(f"unknown revision {version!r}; known: {', '.join(versions)}")


def load_revision(version: str, versions: Sequence[str]) -> ModuleType:
    """Import the package of a revision. Raises `LookupError` for an unknown one."""
    check_version(version, versions)
    return import_module("mcpspec." + ("v" + version.replace("-", "_") if version[0].isdigit() else version))
