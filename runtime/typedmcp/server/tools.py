"""Tools: functions that models call."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from typedmcp import dialect
from typedmcp.dispatch import is_awaitable
from typedmcp.errors import InputUnavailable, RemoteError, ToolError, UsageError
from typedmcp.server.failures import described, failure, told
from typedmcp.server.parts import check_errors, parts_of
from typedmcp.server.results import Misfit, Output
from typedmcp.server.signatures import BadArgument, Signature, name_of
from typedmcp.validation import Check, compiled

if TYPE_CHECKING:
    from typedmcp.context import Context

__all__ = ["Tool", "called", "is_async"]

D = dialect.structs

_Result, _Text = D.CallToolResult, D.TextContent
_convert, _members = msgspec.convert, msgspec.structs.astuple


class Tool:
    """A function as a tool: what it is called with is checked, what it returns becomes a result.

    The options are those of `Server.tool`; `shown` are the server's own `errors`. Raises `UsageError` for a function
    that cannot be one.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: D.ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        structured: bool | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        thread: bool = True,
        timeout: float | None = None,
        errors: tuple[type[Exception], ...] = (),
        shown: tuple[type[Exception], ...] = (),
        debug: bool = False,
    ) -> None:
        self.name: str = name or name_of(function)
        what = f"tool {self.name!r}"
        if self.name == "<lambda>":
            raise UsageError("a tool that is a lambda needs a name: server.add_tool(function, name=…)")
        self.signature: Signature = Signature(function, what)
        self.output: Output = Output(self.signature.returns, False if output_schema is not None else structured, what)
        self._call = self.signature.call
        self._bind = self.signature.bind
        if timeout is not None and not (isinstance(cast(Any, timeout), int | float) and timeout > 0):
            raise UsageError(f"{what}: timeout is a positive number of seconds, not {timeout!r}")
        check_errors(what, errors)
        self._thread, self._timeout = thread, timeout
        self._runs_at_once = not (thread or is_async(function) or _is_generator(function))
        self._shown: tuple[type[Exception], ...] = (ToolError, *shown, *errors)
        self._debug = debug
        self._input = None if input_schema is None else _checked(input_schema, f"{what}: input_schema")
        self._output = None if output_schema is None else _checked(output_schema, f"{what}: output_schema")
        self._struct = self.signature.struct
        self._is_hot = is_async(function) and timeout is None and self._input is None and self.signature.is_plain
        self._spread = function if self.signature.is_simple and self.signature.context is None else None
        """What is called with the arguments alone."""
        self._gives_text = self.output.schema is None and self._output is None and not self.output.is_nothing
        if input_schema is not None and input_schema.get("type") != "object":
            raise UsageError(f'{what}: input_schema: it is the schema of an object: {{"type": "object", …}}')
        self._given_input = None if input_schema is None else D.from_builtins(dict(input_schema), D.ToolInputSchema)
        self._shown_output = self.output.schema if output_schema is None else output_schema
        self._description = description
        self._parts = parts_of(
            what, D.ToolAnnotations, title=title, icons=icons, meta=meta, annotations=annotations
        )  # fmt: skip

    @cached_property
    def spec(self) -> D.Tool:
        """What lists say of it. Made for the first of them, since servers with many tools are to start soon."""
        schema = self._given_input or D.from_builtins(self.signature.schema(), D.ToolInputSchema)
        made = D.Tool(name=self.name, input_schema=schema, **self._parts)
        if text := self.signature.described.text if self._description is None else self._description:
            made.description = text
        if self._shown_output is not None:
            made.output_schema = D.from_builtins(dict(self._shown_output), D.ToolOutputSchema)
        return made

    def call(self, arguments: Any, ctx: Context) -> Any:
        """Call it: a result, or something to be awaited for one."""
        return self._call_hot(arguments, ctx) if self._is_hot else self._call_any(arguments, ctx)

    async def _call_hot(self, arguments: Any, ctx: Context) -> Any:
        """Call an async function whose arguments need no further look: the hot path, in one coroutine."""
        try:
            bound = _convert(arguments if arguments.__class__ is dict else {}, self._struct)
        except Exception:
            bound = None
        if bound is None:  # what is wrong is said there
            made = self._call_any(arguments, ctx)
            return await made if is_awaitable(made) else made
        try:
            spread = self._spread
            value = await (self._call(bound, ctx) if spread is None else spread(*_members(bound)))
        except Exception as error:
            return self._failed(error, ctx)
        if value.__class__ is str and self._gives_text:
            return _Result(content=[_Text(text=value)], result_type="complete")
        return self._result(value, ctx)

    def _call_any(self, arguments: Any, ctx: Context) -> Any:
        given: Mapping[str, Any] = arguments if arguments.__class__ is dict else {}
        if self._input is not None and (wrong := self._input.fault(given, "")) is not None:
            return failure(wrong)
        try:
            bound = self._bind(given)
        except BadArgument as error:
            return failure(str(error))
        if not self._runs_at_once:
            return self._awaited(bound, ctx)
        try:
            value = self._call(bound, ctx)
        except Exception as error:
            return self._failed(error, ctx)
        return self._awaited_value(value, ctx) if is_later(value) else self._result(value, ctx)

    async def _awaited(self, bound: Any, ctx: Context) -> Any:
        return await self._awaited_value(called(self.signature, bound, ctx, thread=self._thread), ctx)

    async def _awaited_value(self, value: Any, ctx: Context) -> Any:
        clock = asyncio.timeout(self._timeout)
        try:
            async with clock:
                value = await in_full(value)
        except Exception as error:
            if isinstance(error, TimeoutError) and clock.expired():
                return failure(f"{self.name} took longer than {self._timeout:g} s")
            return self._failed(error, ctx)
        return self._result(value, ctx)

    def _result(self, value: Any, ctx: Context) -> Any:
        try:
            made = self.output.result(value, self.name)
            if self._output is not None and isinstance(made, _Result) and made.is_error is not True:
                self._check_output(made, value)
        except Exception as error:
            return self._failed(error, ctx)
        return made

    def _check_output(self, made: Any, value: Any) -> None:
        """Against a schema that was given, rather than read off the annotation."""
        if made is value and made.structured_content is UNSET:
            raise Misfit("there is no structuredContent")
        if made.structured_content is UNSET:
            from typedmcp.jsontypes import plain

            made.structured_content = plain(value)
        wrong = cast(Check, self._output).fault(made.structured_content, "")
        if wrong is not None:
            raise Misfit(wrong)

    def _failed(self, error: Exception, ctx: Context) -> D.CallToolResult:
        """What the client is told of an exception: what it may know. Errors of the protocol go on."""
        if isinstance(error, RemoteError | InputUnavailable):
            raise error
        if isinstance(error, self._shown):
            return told(error)
        ctx.report(f"tool {self.name!r} failed: {described(error)}", error)
        if isinstance(error, Misfit):
            return failure(f"{self.name} failed: its result does not fit its schema" + self._told(error))
        return failure(f"{self.name} failed" + self._told(error))

    def _told(self, error: Exception) -> str:
        return f": {described(error)}" if self._debug else ""


async def called(signature: Signature, bound: Any, ctx: Context, *, thread: bool) -> Any:
    """What a function gives, where it is to be waited for: plain ones run in a thread, if they may."""
    if thread and not is_async(signature.function) and not inspect.isasyncgenfunction(signature.function):
        return await in_full(await ctx.in_thread(_taken, signature, bound, ctx))
    return await in_full(signature.call(bound, ctx))


def _taken(signature: Signature, bound: Any, ctx: Context) -> Any:
    """In a thread: what a generator gives is taken there, too."""
    value = signature.call(bound, ctx)
    return [*cast("Generator[Any]", value)] if isinstance(value, Generator) else value


def is_later(value: Any) -> bool:
    """Whether a function gave what is yet to give something, as those do that wrap another."""
    return is_awaitable(value) or isinstance(value, AsyncGenerator | Generator)


async def in_full(value: Any) -> Any:
    """What comes of a value in the end: what it is awaited for, or what it generates."""
    if is_awaitable(value):
        value = await value
    if isinstance(value, AsyncGenerator):
        return [item async for item in cast("AsyncGenerator[Any]", value)]
    return [*cast("Generator[Any]", value)] if isinstance(value, Generator) else value


def is_async(function: Any) -> bool:
    """Whether calling a function gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _is_generator(function: Any) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _checked(schema: Any, what: str) -> Check:
    if not isinstance(schema, Mapping):
        raise UsageError(f"{what}: a schema is a mapping, not {schema!r}")
    try:
        return compiled(cast("Mapping[str, Any]", schema))
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from error
