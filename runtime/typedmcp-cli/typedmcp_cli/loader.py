"""Finds the server object in a Python file or module."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import typedmcp.dialect.methods as methods
from typedmcp import Server, ServerConfig
from typedmcp.building import escape_controls
from typedmcp.dialect.handlers import ServerStub
from typedmcp.errors import UsageError
from typedmcp_cli.references import ServerReference, require_reference
from typedmcp_cli.status import FAILED, CommandExit, suggest_names

__all__ = ["find_server", "get_app_config", "has_main"]

_HANDLERS = {method.handler for method in methods.METHODS.values() if method.sender != "server"} | {"fallback"}
"""The names of the methods that a handler may implement."""
_USUAL_NAMES = ("server", "mcp", "app", "handler")
_OTHER_PACKAGES = ("mcp", "fastmcp")
"""Packages whose servers look like handlers but are not."""


def find_server(text: str) -> tuple[ServerReference, object | None]:
    """Import the file or module in `text`, and find its server: a `Server`, a handler or a `ServerConfig`.

    The server is None if the file has none; it may then be a script. Raises `CommandExit` if the import fails, if
    there are several servers, or if the named object is not a server.
    """
    reference = require_reference(text)
    names = vars(_load(reference))
    made = {id(value): _to_config(value) for value in names.values()}  # one for an object with several names
    names = {name: made[id(value)] for name, value in names.items()}
    if reference.name is not None:
        return reference, _named_server(reference, names)
    found = {name: value for name in _USUAL_NAMES if _is_server(value := names.get(name))}
    found = found or {name: value for name, value in names.items() if isinstance(value, Server | ServerConfig)}
    if len({id(_handler_of(value)) for value in found.values()}) > 1:
        choices = " or ".join(f"{text}:{name}" for name in found)
        raise CommandExit(f"{text} has several servers; choose {choices}")
    # of a server, its configuration and its application, the last one has the most options
    return reference, max(found.values(), key=_count_layers, default=None)


def _to_config(value: object) -> object:
    """Return the configuration of a server of another kind, such as those of `typedmcp_mcp1`; other objects unchanged.

    Such a class has a method `__typedmcp_config__`. Raises `CommandExit` if the server cannot be served from outside.
    """
    make: Callable[[object], object] | None = getattr(type(value), "__typedmcp_config__", None)
    try:
        return value if make is None else make(value)
    except UsageError as error:
        raise CommandExit(str(error)) from None


def _handler_of(value: object) -> object:
    """Return the handler that a server, a configuration or an application serves."""
    config = get_app_config(value) or value
    return config.handler if isinstance(config, ServerConfig) else config


def _count_layers(value: object) -> int:
    return (get_app_config(value) is not None) * 2 + isinstance(value, ServerConfig)


def _named_server(reference: ServerReference, names: Mapping[str, object]) -> object:
    name = reference.name or ""
    if name not in names:
        servers = [other for other, value in names.items() if _is_server(value)]
        raise CommandExit(f"{reference.source} has no {name!r}{suggest_names(name, servers)}")
    found = names[name]
    if _is_server(found):
        return found
    if (package := _package(found)) in _OTHER_PACKAGES:
        raise CommandExit(f"{name} is a server of the package {package}; give the command that starts it after --")
    if isinstance(found, type):
        raise CommandExit(f"{name} is a class, not a server; create an object: server = {name}()")
    raise CommandExit(f"{name} is not a server; it is of type {type(found).__name__}")


def _is_server(value: object) -> bool:
    if isinstance(value, Server | ServerConfig) or get_app_config(value) is not None:
        return True
    if isinstance(value, type | ModuleType) or _package(value) in _OTHER_PACKAGES:
        return False
    return any(_has_method(value, name) for name in _HANDLERS)


def _has_method(value: object, name: str) -> bool:
    """Return whether an object implements a method of handlers, which a `ServerStub` does not."""
    stub = getattr(ServerStub, name, None)
    return callable(getattr(value, name, None)) and (stub is None or getattr(type(value), name, None) is not stub)


def get_app_config(value: object) -> ServerConfig | None:
    """Return the configuration that an ASGI application of `typedmcp.asgi` serves; None for other objects."""
    if "typedmcp.server.http.asgi" not in sys.modules:  # so the file made no application; loading it takes time
        return None
    from typedmcp.server.http.asgi import AsgiApp

    return value.config if isinstance(value, AsgiApp) else None


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _load(reference: ServerReference) -> ModuleType:
    """Import the module; its prints go to standard error. Raises `CommandExit` if that fails."""
    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the protocol
            return _import_file(Path(reference.source)) if reference.is_file else _import_module(reference.source)
    except Exception as error:
        sys.stderr.write(_format_traceback(error))
        raise CommandExit(f"{reference.source} cannot be imported", FAILED) from None


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def _import_file(file: Path) -> ModuleType:
    """Import a file under the name that other modules of its package use, including its packages."""
    folder, name = file.resolve().parent, file.stem
    while (folder / "__init__.py").exists():
        folder, name = folder.parent, f"{folder.name}.{name}"
    sys.path.insert(0, str(folder))
    if name in sys.modules:  # the file is called like a module of the standard library
        name = f"{name}_"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _format_traceback(error: BaseException) -> str:
    """Format a traceback that begins in the user's file."""
    frames = error.__traceback__
    while frames is not None and _is_import_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return escape_controls("".join(traceback.format_exception(type(error), error, frames)), keep_lines=True)


def _is_import_machinery(filename: str) -> bool:
    files = (importlib.__file__, importlib.util.__file__, __file__)
    return filename in files or filename.startswith("<frozen importlib")


def has_main(file: str) -> bool:
    """Return whether a file tests `__name__` at its top level, so that it runs as a script."""
    with open(file, "rb") as source:
        tree = ast.parse(source.read())
    return any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)
