"""Suggestions for arguments of prompts and variables of resource templates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from typedmcp import dialect
from typedmcp.dispatch import is_awaitable
from typedmcp.errors import UsageError
from typedmcp.server.signatures import hints_of, takes_context
from typedmcp.server.tools import is_async

if TYPE_CHECKING:
    from typedmcp.context import Context

__all__ = ["Completions", "completed"]

D = dialect.structs

_MOST = 100
"""How many suggestions an answer may have."""


class Completions:
    """The functions that suggest something, by what for."""

    def __init__(self) -> None:
        self.fallback: Callable[..., Any] | None = None
        """Asked where no other is to be asked."""
        self._functions: dict[tuple[str, str], Callable[..., Any]] = {}

    def add(self, name: str, argument: str, function: Callable[..., Any]) -> None:
        """Ask a function for an argument of the prompt, or the template, of that name."""
        self._functions[name, argument] = function

    def knows(self, name: str) -> bool:
        """Whether there is a function to ask for something of that name, prompt or not."""
        return self.fallback is not None or any(known == name for known, _ in self._functions)

    async def suggest(
        self, name: str, params: D.CompleteRequestParams, ctx: Context, choices: Mapping[str, list[str]]
    ) -> Any:
        """What a function returns; or the values that there are, if there is none."""
        argument = params.argument
        function = self._functions.get((name, argument.name))
        known: dict[str, str] = {}
        if params.context is not UNSET and params.context.arguments is not UNSET:
            known = params.context.arguments
        if function is not None:
            return await _called(function, [argument.value, known], ctx, f"completion of {argument.name!r}")
        if argument.name in choices:
            return choices[argument.name]
        if self.fallback is None:
            return []
        context = None if params.context is UNSET else params.context
        return await _called(self.fallback, [params.ref, argument, context], ctx, "completion")


async def _called(function: Callable[..., Any], values: list[Any], ctx: Context, what: str) -> Any:
    """Call a function with as many of the values as it takes, and the context if it takes that."""
    hints = hints_of(function, what)
    parameters = [*inspect.signature(function).parameters.values()]
    given: list[Any] = []
    left = iter(values)
    for parameter in parameters:
        if takes_context(parameter, hints) and not (len(values) == 3 and parameter.name == "context"):
            given.append(ctx)
        elif (value := next(left, inspect.Parameter.empty)) is not inspect.Parameter.empty:
            given.append(value)
    if is_async(function):
        return await function(*given)
    value = await ctx.in_thread(function, *given)
    return await value if is_awaitable(value) else value


def completed(value: Any, typed: str) -> D.CompleteResult:
    """What a function suggested, as a result: of a list, what begins as was typed."""
    if isinstance(value, D.CompleteResult):
        return value
    if isinstance(value, D.CompleteResultCompletion):
        return D.CompleteResult(completion=value, result_type="complete")
    if isinstance(value, str) or not isinstance(value, Iterable | None):
        raise UsageError(f"a completion is a list of texts, not {value!r}")
    begun, suggested = typed.casefold(), cast("Iterable[object] | None", value) or ()
    found = [text for text in map(str, suggested) if text.casefold().startswith(begun)]
    made = D.CompleteResultCompletion(values=found[:_MOST], total=len(found), has_more=len(found) > _MOST)
    return D.CompleteResult(completion=made, result_type="complete")
