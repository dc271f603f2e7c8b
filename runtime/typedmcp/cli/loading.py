"""Finding the server in a file: it is imported, and looked through."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from typedmcp.cli.references import Reference, served_by
from typedmcp.cli.status import FAILED, Stop, near
from typedmcp.dispatch import functions_of
from typedmcp.errors import UsageError
from typedmcp.server.server import Server
from typedmcp.service import Service

__all__ = ["find", "has_main", "service_of"]

_NAMES = ("server", "mcp", "app", "handler")
"""What servers are usually called."""
_OTHERS = ("mcp", "fastmcp")
"""Packages whose servers look like handlers, and are none."""


def find(text: str) -> tuple[Reference, object | None]:
    """Where a server is, and the server: a `Server`, a handler or a `Service`.

    None where a file has none, and may serve when it is run as a script. Raises `Stop` for anything else.
    """
    reference = served_by(text)
    names = vars(_loaded(reference))
    if reference.name is not None:
        return reference, _named(reference, names)
    found = {name: value for name in _NAMES if _is_server(value := names.get(name))}
    found = found or {name: value for name, value in names.items() if isinstance(value, Server | Service)}
    distinct = {id(value): value for value in found.values()}
    if len(distinct) > 1:
        raise Stop(f"{text} has several servers; say which: " + " or ".join(f"{text}:{name}" for name in found))
    return reference, next(iter(distinct.values()), None)


def _named(reference: Reference, names: Mapping[str, Any]) -> object:
    name = reference.name or ""
    if name not in names:
        there = [other for other, value in names.items() if _is_server(value)]
        raise Stop(f"{reference.source} has no {name!r}{near(name, there)}")
    found = names[name]
    if _is_server(found):
        return found
    if (package := _package(found)) in _OTHERS:
        raise Stop(f"{name} is a server of the package {package}: start it with its own command, behind --")
    if isinstance(found, type):
        raise Stop(f"{name} is a class: a server is an object, {name} = {name}()")
    raise Stop(f"{name} is no server, but {type(found).__name__}")


def _is_server(value: object) -> bool:
    if isinstance(value, Server | Service) or service_of(value) is not None:
        return True
    if isinstance(value, type | ModuleType) or _package(value) in _OTHERS:
        return False
    try:
        return bool(functions_of(value))
    except UsageError:
        return False


def service_of(value: object) -> Service | None:
    """What an ASGI application of ours serves; None for anything else."""
    if "typedmcp.http.asgi" not in sys.modules:  # nobody has made one, and loading it takes its time
        return None
    from typedmcp.http.asgi import App

    return value.service if isinstance(value, App) else None


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _loaded(reference: Reference) -> ModuleType:
    """The module. What it prints goes to standard error. Raises `Stop` where it cannot be imported."""
    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the protocol
            return _imported(Path(reference.source)) if reference.is_file else _imported_by_name(reference.source)
    except Exception as error:
        sys.stderr.write(_traceback(error))
        raise Stop(f"{reference.source} cannot be imported", FAILED) from None


def _imported_by_name(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def _imported(file: Path) -> ModuleType:
    """A file as the module that it is for its neighbours, packages that it is in included."""
    folder, name = file.resolve().parent, file.stem
    while (folder / "__init__.py").exists():
        folder, name = folder.parent, f"{folder.name}.{name}"
    sys.path.insert(0, str(folder))
    if name in sys.modules:  # a file that is called like a module of the standard library
        name = f"{name}_"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _traceback(error: BaseException) -> str:
    """The traceback of what a file raised, from its own first line on."""
    ours = (importlib.__file__, importlib.util.__file__, __file__)
    frames = error.__traceback__
    while frames is not None and _is_ours(frames.tb_frame.f_code.co_filename, ours):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _is_ours(filename: str, ours: tuple[str, ...]) -> bool:
    return filename in ours or filename.startswith("<frozen importlib")


def has_main(file: str) -> bool:
    """Whether a file does something of its own when it is run as a script."""
    with open(file, "rb") as source:
        tree = ast.parse(source.read())
    return any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)
