"""Suggestions for arguments of prompts and variables of resource templates."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

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

_NOTHING: Any = object()
_MOST = 100
"""How many suggestions an answer may have."""


Suggest: TypeAlias = Callable[[list[Any], "Context"], Awaitable[Any]]
"""Calls a function with what it takes of some values, and the context."""


class Completions:
    """The functions that suggest something, by what for."""

    def __init__(self) -> None:
        self._fallback: Suggest | None = None
        """Asked where no other is to be asked."""
        self._functions: dict[tuple[str, str], Suggest] = {}

    def add(self, name: str, argument: str, function: Callable[..., Any]) -> None:
        """Ask a function for an argument of the prompt, or the template, of that name. Raises `UsageError`."""
        self._functions[name, argument] = _compiled(function, f"completion of {argument!r}", ())

    def fall_back(self, function: Callable[..., Any]) -> None:
        """Ask a function where no other is to be asked. Raises `UsageError`."""
        self._fallback = _compiled(function, "completion", ("context",))

    def knows(self, name: str) -> bool:
        """Whether there is a function to ask for something of that name, prompt or not."""
        return self._fallback is not None or any(known == name for known, _ in self._functions)

    async def suggest(
        self, name: str, params: D.CompleteRequestParams, ctx: Context, choices: Mapping[str, list[str]]
    ) -> Any:
        """What a function returns; or the values that there are, if there is none."""
        argument = params.argument
        suggest = self._functions.get((name, argument.name))
        known: dict[str, str] = {}
        if params.context is not UNSET and params.context.arguments is not UNSET:
            known = params.context.arguments
        if suggest is not None:
            return await suggest([argument.value, known], ctx)
        if argument.name in choices:
            return choices[argument.name]
        if self._fallback is None:
            return []
        context = None if params.context is UNSET else params.context
        return await self._fallback([params.ref, argument, context], ctx)


def _compiled(function: Callable[..., Any], what: str, values: tuple[str, ...]) -> Suggest:
    """What calls a function; `values` are names that are no context's here. Raises `UsageError` for what is none."""
    if not callable(function):
        raise UsageError(f"{what}: {function!r} is no function")
    hints = hints_of(function, what)
    parameters = [*inspect.signature(function).parameters.values()]
    takes = [takes_context(parameter, hints) and parameter.name not in values for parameter in parameters]

    async def suggest(given: list[Any], ctx: Context) -> Any:
        left = iter(given)
        arguments = [ctx if is_context else next(left, _NOTHING) for is_context in takes]
        taken = [argument for argument in arguments if argument is not _NOTHING]
        if is_async(function):
            return await function(*taken)
        value = await ctx.in_thread(function, *taken)
        return await value if is_awaitable(value) else value

    return suggest


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
