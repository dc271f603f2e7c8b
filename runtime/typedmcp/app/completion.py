"""Completions: suggestions for arguments of prompts and variables of resource templates."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from typedmcp import dialect
from typedmcp.app.calls import is_async
from typedmcp.app.functions import read_hints
from typedmcp.errors import UsageError
from typedmcp.protocol.repairs import MAX_COMPLETIONS
from typedmcp.server.context import Context
from typedmcp.transports.concurrency import is_awaitable
from typedmcp_schemas.signatures import is_context_parameter

__all__ = ["Completions", "to_complete_result"]

D = dialect.structs

_MISSING: Final[Any] = object()

Suggest: TypeAlias = Callable[[list[Any], Context], Awaitable[Any]]
"""Calls a function with as many of the values as it takes, and with the context."""


class Completions:
    """The functions that suggest values, keyed by the name of a prompt or template and by the argument."""

    def __init__(self) -> None:
        self._fallback: Suggest | None = None
        """Called for arguments without a function of their own."""
        self._functions: dict[tuple[str, str], Suggest] = {}

    def add(self, name: str, argument: str, function: Callable[..., Any]) -> None:
        """Register a function for an argument of the prompt or the template with this name. Raises `UsageError`."""
        self._functions[name, argument] = _compile(function, f"completion of {argument!r}", ())

    def set_fallback(self, function: Callable[..., Any]) -> None:
        """Register the function for arguments without a function of their own. Raises `UsageError`."""
        self._fallback = _compile(function, "completion", ("context",))

    @property
    def targets(self) -> Iterable[tuple[str, str]]:
        """The names and arguments that functions are registered for."""
        return self._functions

    def has_function_for(self, name: str) -> bool:
        """Return whether a function is registered for a name, even if no prompt or template has the name yet."""
        return self._fallback is not None or any(known == name for known, _ in self._functions)

    async def suggest(
        self, name: str, params: D.CompleteRequestParams, ctx: Context, choices: Mapping[str, list[str]]
    ) -> Any:
        """Call the function of an argument. Without a function, return the values that the argument's type allows."""
        argument = params.argument
        if (suggest := self._functions.get((name, argument.name))) is not None:
            known = (params.context.arguments if params.context is not None else None) or {}
            return await suggest([argument.value, known], ctx)
        if argument.name in choices:
            return choices[argument.name]
        if self._fallback is None:
            return []
        return await self._fallback([params.ref, argument, params.context], ctx)


def _compile(function: Callable[..., Any], what: str, value_names: tuple[str, ...]) -> Suggest:
    """Wrap a function as a coroutine function `(values, ctx)`, which passes as many values as the function takes.

    A parameter for the context gets that, unless its name is one of `value_names`.
    """
    if not callable(function):
        raise UsageError(f"{what}: {function!r} is not a function")
    hints = read_hints(function, what)
    parameters = [*inspect.signature(function).parameters.values()]
    takes_context = [is_context_parameter(each, hints, Context) and each.name not in value_names for each in parameters]

    async def suggest(values: list[Any], ctx: Context) -> Any:
        remaining = iter(values)
        arguments = [ctx if is_context else next(remaining, _MISSING) for is_context in takes_context]
        given = [argument for argument in arguments if argument is not _MISSING]
        if is_async(function):
            return await function(*given)
        value = await ctx.in_thread(function, *given)
        return await value if is_awaitable(value) else value

    return suggest


def to_complete_result(value: object, typed: str) -> D.CompleteResult:
    """Return suggestions as a result. From a list, keep those that begin with the typed text, ignoring case."""
    if isinstance(value, D.CompleteResult):
        return value
    if isinstance(value, D.CompleteResultCompletion):
        return D.CompleteResult(completion=value)
    if isinstance(value, str) or not isinstance(value, Iterable | None):
        raise UsageError(f"a completion function returns a list of strings, not {value!r}")
    prefix, suggestions = typed.casefold(), cast("Iterable[object] | None", value) or ()
    matching = [text for text in map(str, suggestions) if text.casefold().startswith(prefix)]
    completion = D.CompleteResultCompletion(
        values=matching[:MAX_COMPLETIONS], total=len(matching), has_more=len(matching) > MAX_COMPLETIONS
    )
    return D.CompleteResult(completion=completion)
