"""The work that a schema may cause. Its references, and the products of `allOf`, repeat a part any number of times.

A step is a reference that is followed, or a comparison. A schema counts as 20, in a file as where `allOf` or an alias
repeats it, since all later work grows with it, above all that of datamodel-code-generator.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mcpspec_codegen.errors import Pointer, SchemaError, pointer_text

__all__ = ["MAX_STEPS", "SCHEMA_STEPS", "follow", "limit_steps", "spend"]

MAX_STEPS = 200_000
"""The steps that schemas of one's own may take. MCP's newest schema takes a tenth of them."""
SCHEMA_STEPS = 20
"""The steps that one schema counts."""


class _Budget:
    def __init__(self, most: int) -> None:
        self.most = most
        self.left = most


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)
"""The budget of the schemas that are being compiled; None for MCP's own."""


@contextmanager
def limit_steps(most: int) -> Generator[None]:
    """Limit the steps of everything that is called within."""
    token = _budget.set(_Budget(most))
    try:
        yield
    finally:
        _budget.reset(token)


def spend(steps: int, at: Pointer, file: str = "") -> None:
    """Count steps for the schema at a place. Raises `SchemaError` if there are too many."""
    budget = _budget.get()
    if budget is None:
        return
    budget.left -= steps
    if budget.left < 0:
        text = f"takes more than {budget.most} steps to compile: it is too large, or its references repeat too much"
        raise SchemaError(file, pointer_text(at), f"{text}; make it smaller, or raise --max-steps")


def follow(name: str, defs: dict[str, Any]) -> Any:
    """Return the definition that a reference names. It counts as a step."""
    spend(1, ("$defs", name))
    return defs[name]
