"""A server with a tool for each type of parameter in `tests/app/type_cases.py`, which returns its argument.

    every_type.py

The tools are named `t0`, `t1`, … in the order of the types. Their parameter `a` is required, and `b` has a default.
"""

from __future__ import annotations

from typing import Any

from tests.app.type_cases import TYPES
from typedmcp import Server

__all__ = ["make_server"]


def make_server() -> Server:
    """Return the server."""
    server = Server("types")
    for number, (hint, _, value) in enumerate(TYPES.values()):
        server.add_tool(_function_of(hint, value), name=f"t{number}", description="Return the argument.")
    return server


def _function_of(hint: Any, value: Any) -> Any:
    def give(a: Any, b: Any = value) -> Any:
        """Return the argument.

        Args:
            a: The argument.
            b: Another one.
        """
        return a if a is not None else b

    give.__annotations__.update({"a": hint, "b": hint, "return": hint})
    return give


if __name__ == "__main__":
    make_server().run()
