"""Names of distributions that stand on this one: `typedmcp.Gateway` is the class of `typedmcp_gateway`.

They work where the distribution is installed, and say how to install it where it is not. Nothing here is imported until
somebody uses such a name; type checkers know only the modules of the distributions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from typedmcp.errors import moved

__all__ = [
    "alias_satellite", "find_elsewhere", "find_in_satellite", "load_satellite", "other_names", "satellite_names",
]  # fmt: skip


def load_satellite(name: str, module: str, use: str = "") -> Any:
    """Import a module of a satellite, such as `extensions.tasks` of `typedmcp_extensions`, for a name of `typedmcp`.

    Raises `ImportError` with what installs the satellite and the code to `use`, if it is not installed.
    """
    extra = module.partition(".")[0]
    distribution = f"typedmcp_{extra}"
    try:
        import_module(distribution)
    except ModuleNotFoundError as error:
        if error.name != distribution:
            raise
        # An `AttributeError` would lose its text in `from typedmcp import …`.
        raise ImportError(moved(name, extra, use or f"import typedmcp_{module}")) from None
    return import_module(f"typedmcp_{module}")


def alias_satellite(name: str, module: str) -> None:
    """Make a module of `typedmcp` another name of a module of a satellite. Raises `ImportError` as above."""
    sys.modules[name] = load_satellite(name, module)


def find_in_satellite(owner: str, name: str, module: str) -> Any:
    """Return what a name of a module of `typedmcp` stands for in a satellite. Raises `ImportError` as above."""
    return getattr(load_satellite(f"{owner}.{name}", module, f"from typedmcp_{module} import {name}"), name)


def satellite_names(owner: str, names: Collection[str], module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module of `typedmcp`, which finds these names in a module of a satellite."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        return find_in_satellite(owner, name, module)

    return find


def other_names(kind: str) -> Any:
    """Return a part of `other_names.json`: names that are elsewhere, or that other libraries have, and what to use."""
    return msgspec.json.decode(Path(__file__).with_name("other_names.json").read_bytes())[kind]


def find_elsewhere(name: str) -> Any:
    """Return what a name of `typedmcp` stands for in a satellite, by the table of `other_names.json`.

    Raises `ImportError` for a name of a satellite that is not installed, for a type of the protocol, and for a name of
    mcp 1.x, mcp 2.x or fastmcp, with what to use: `from typedmcp import …` replaces the text of an `AttributeError`,
    which other names raise.
    """
    if (module := other_names("satellites").get(name)) is not None:
        return find_in_satellite("typedmcp", name, module)
    hint, *places = other_names("others").get(name, [""])
    if not hint and name[:1].isupper() and hasattr(import_module("typedmcp.types"), name):
        hint = f"it is a type of the protocol: from typedmcp.types import {name}"
    text = f"module 'typedmcp' has no attribute {name!r}"
    others = (moved(name, "mcp1", f"from typedmcp_mcp1.{place} import {name}") for place in places)
    raise ImportError("; as in mcp 1.x, ".join([f"{text}; {hint}", *others])) if hint else AttributeError(text)
