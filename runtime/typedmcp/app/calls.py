"""Calls of plain functions, coroutine functions and generators alike, and middleware around requests."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from mcpspec.support.handlers import MaybeAwaitable
from typedmcp.app.failures import unsendable
from typedmcp.app.options import CallNext, Middleware
from typedmcp.errors import InvalidParamsError, UsageError
from typedmcp.server.context import Context
from typedmcp.transports.concurrency import is_awaitable
from typedmcp_schemas import ArgumentError

if TYPE_CHECKING:
    from typedmcp_schemas.signatures import Signature

__all__ = [
    "RequestHandler", "await_if_needed", "call_function", "call_with_texts", "check_middleware", "is_async",
    "is_generator", "is_pending", "resolve", "run_middleware",
]  # fmt: skip

P = TypeVar("P")
T = TypeVar("T")


async def call_function(signature: Signature, bound: object, ctx: Context, *, thread: bool) -> Any:
    """Call a function with bound arguments and return its final value. Plain functions run in a thread if `thread`."""
    if thread and not is_async(signature.function) and not inspect.isasyncgenfunction(signature.function):
        return await resolve(await ctx.in_thread(_call_in_thread, signature, bound, ctx))
    return await resolve(signature.call(bound, ctx))


async def call_with_texts(
    signature: Signature, texts: Mapping[str, str], ctx: Context, make: Callable[[Any], T], place: str, *, thread: bool
) -> T:
    """Call the function of a prompt or a resource with texts, and make the result of the value that it returns.

    Raises `InvalidParamsError` for texts that do not fit the function's types.
    """
    try:
        bound = signature.bind_texts(texts)
    except ArgumentError as error:
        raise InvalidParamsError(f"{place}: {error}") from error
    value = await call_function(signature, bound, ctx, thread=thread)
    try:
        return make(value)
    except (TypeError, ValueError) as error:
        raise unsendable(signature.function, value, error) from None


def _call_in_thread(signature: Signature, bound: object, ctx: Context) -> Any:
    value = signature.call(bound, ctx)
    return [*cast("Generator[Any]", value)] if isinstance(value, Generator) else value  # it runs in the thread, too


async def resolve(value: object) -> Any:
    """Return the final value: the result of an awaitable, or the list of the values that a generator yields."""
    if is_awaitable(value):
        value = await value
    if isinstance(value, AsyncGenerator):
        return [item async for item in cast("AsyncGenerator[Any]", value)]
    return [*cast("Generator[Any]", value)] if isinstance(value, Generator) else value


def is_pending(value: object) -> bool:
    """Return whether a value needs `resolve`. A function that is not async may return an awaitable or a generator."""
    return is_awaitable(value) or isinstance(value, AsyncGenerator | Generator)


def is_async(function: object) -> bool:
    """Return whether calling a function, or a callable object, returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def is_generator(function: object) -> bool:
    """Return whether calling a function returns a generator, async or not."""
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


RequestHandler: TypeAlias = Callable[[P, Context], MaybeAwaitable[T]]
"""Handles a request: takes the parameters and the context, and returns the result or an awaitable for it."""


def check_middleware(function: object) -> None:
    """Raise `UsageError` for a value that cannot be called as middleware."""
    try:
        inspect.signature(cast(Any, function)).bind(None, None, None)
    except TypeError as error:
        text = f"middleware must be an async function of (ctx, params, call_next), not {function!r}"
        raise UsageError(text) from error


async def run_middleware(functions: Sequence[Middleware], handle: RequestHandler[P, T], params: P, ctx: Context) -> T:
    """Handle a request within middleware; the first function is the outermost."""
    if not functions:
        return await await_if_needed(handle(params, ctx))

    def call_next(changed: P | None = None) -> Any:
        return run_middleware(functions[1:], handle, params if changed is None else changed, ctx)

    function = functions[0]
    result = await await_if_needed(function(ctx, params, cast(CallNext, call_next)))
    if result is None:
        name = getattr(function, "__name__", repr(function))
        raise UsageError(f"middleware {name!r} returned None; it must return a result, such as that of call_next()")
    return cast(T, result)


async def await_if_needed(value: MaybeAwaitable[T]) -> T:
    """Return a value, or the result of an awaitable."""
    return cast(T, await value) if is_awaitable(value) else value
