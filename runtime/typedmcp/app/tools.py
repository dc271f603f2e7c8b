"""Tools: functions that a client's model calls."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import msgspec

from mcpspec.support.handlers import MaybeAwaitable
from mcpspec.support.structs import OpenObject
from typedmcp import dialect
from typedmcp.app.calls import call_function, is_async, is_generator, is_pending, resolve
from typedmcp.app.failures import describe_failure, result_failure
from typedmcp.app.functions import read_return_hint, read_signature
from typedmcp.app.options import ToolOptions, check_errors, convert_metadata
from typedmcp.app.results import ReturnTypeError, ToolOutput, ToolResult, error_result, error_result_of
from typedmcp.errors import InputUnavailableError, RemoteError, ToolError, UsageError, missing_extra
from typedmcp.protocol.nulls import from_null, to_null
from typedmcp.protocol.text import visible
from typedmcp.server.config import TaskSupport
from typedmcp.server.principal import check_scopes
from typedmcp.transports.concurrency import is_awaitable
from typedmcp_schemas import ArgumentError, examine, has_keyword, join_faults, join_repairs, to_builtins, type_name
from typedmcp_schemas.signatures import Signature, name_of

if TYPE_CHECKING:
    from typedmcp.server.context import Context
    from typedmcp_schemas import SchemaValidator

__all__ = ["Tool", "is_recommended_name"]

D = dialect.structs
X = dialect.exact

_RECOMMENDED_NAME = re.compile("[A-Za-z0-9_.-]{1,128}")
"""https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-names"""

# Names of the module are looked up faster than attributes: see `Tool._call_fast`.
_Result = D.CallToolResult
_PARAMS = frozenset(D.CallToolRequestParams.__struct_encode_fields__) | {"task"}
"""The parameters of `tools/call`."""
_blank_result: Any = _Result(content=[])
_copy_result: Callable[[], D.CallToolResult] = _blank_result.__copy__
_blank_text: Any = D.TextContent(text="")
_copy_text: Callable[[], D.TextContent] = _blank_text.__copy__
"""Copying a result and its text is far faster than constructing them: their classes check and fill in members."""
_convert, _members = msgspec.convert, msgspec.structs.astuple


def is_recommended_name(name: str) -> bool:
    """Return whether the specification recommends a name for tools."""
    return _RECOMMENDED_NAME.fullmatch(name) is not None


class Tool:
    """A function registered as a tool. Arguments are checked, and the return value becomes a result.

    `server_errors` are exceptions whose text clients get from every tool; with `debug` clients get the text of every
    exception. With `server_strict` arguments are not repaired, unless the option of the tool says otherwise. Raises
    `UsageError` for a function that cannot be a tool.
    """

    task_support: TaskSupport = "forbidden"
    """The support for tasks that `tools/list` names."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        server_errors: tuple[type[Exception], ...] = (),
        debug: bool = False,
        server_strict: bool = False,
        **options: Unpack[ToolOptions],
    ) -> None:
        self.name: str = options.get("name") or name_of(function)
        if self.name == "<lambda>":
            raise UsageError("a lambda needs a name: server.add_tool(function, name=…)")
        what = f"tool {self.name!r}"
        if not is_recommended_name(self.name):
            text = f"{what}: some clients reject a name that is not 1 to 128 of the characters A-Z a-z 0-9 _ - ."
            warnings.warn(text, stacklevel=_author_level())
        timeout, errors = options.get("timeout"), options.get("errors", ())
        if timeout is not None and not (isinstance(cast(object, timeout), int | float) and timeout > 0):
            raise UsageError(f"{what}: timeout must be a positive number of seconds, not {timeout!r}")
        check_errors(what, errors)
        self._visible_errors: tuple[type[Exception], ...] = (ToolError, *server_errors, *errors)
        self.scopes: tuple[str, ...] = check_scopes(f"{what}: scopes", options.get("scopes", ()))
        """The scopes that a call needs."""
        self._timeout, self._debug = timeout, debug
        self._text = options.get("text")
        if self._text is not None and not callable(self._text):
            raise UsageError(f"{what}: text must be a function that returns the text of a result, not {self._text!r}")
        chosen = options.get("strict")
        self._is_strict = server_strict if chosen is None else chosen
        self.signature: Signature = read_signature(function, what)
        self._init_schemas(options, what)
        self._init_calls(function, thread=options.get("thread", True))
        self._description = options.get("description")
        self._metadata = convert_metadata(
            what, D.ToolAnnotations, title=options.get("title"), icons=options.get("icons"), meta=options.get("meta"),
            annotations=options.get("annotations"),
        )  # fmt: skip

    def _init_schemas(self, options: ToolOptions, what: str) -> None:
        given_input, given_output = options.get("input_schema"), options.get("output_schema")
        structured = False if given_output is not None else options.get("structured")
        self._references = bool(options.get("references"))
        self.output: ToolOutput = ToolOutput(
            read_return_hint(self.signature), structured, what, references=self._references
        )
        self._input_validator = None if given_input is None else _compile(given_input, f"{what}: input_schema")
        self._output_validator = None if given_output is None else _compile(given_output, f"{what}: output_schema")
        if given_input is not None and given_input.get("type") != "object":
            raise UsageError(f'{what}: input_schema must be the schema of an object: {{"type": "object", …}}')
        self._given_input = None if given_input is None else _checked(given_input, X.ToolInputSchema)
        self._check_headers(what)
        self._output_schema = self.output.schema if given_output is None else given_output

    def _check_headers(self, what: str) -> None:
        """Raise `UsageError` for an `x-mcp-header` annotation that makes clients leave the tool out of their lists."""
        has_headers = self._given_input is not None or any(
            has_keyword(parameter.hint, "x-mcp-header") for parameter in self.signature.parameters
        )
        if not has_headers:
            return
        from typedmcp.protocol.headers import header_params  # few tools have such annotations

        try:
            header_params(self._given_input or self.signature.schema())
        except ValueError as error:
            raise UsageError(f"{what}: {error}") from error

    def _init_calls(self, function: Callable[..., Any], *, thread: bool) -> None:
        signature = self.signature
        self._call, self._bind, self._struct = signature.call, signature.bind_exact, signature.struct
        self._thread = thread
        self._is_immediate = not (thread or is_async(function) or is_generator(function))
        """True if the function runs in the event loop, without being awaited."""
        self._is_fast = (
            is_async(function) and self._timeout is None and self._input_validator is None and signature.is_plain
        )
        self._spread = function if signature.is_simple and signature.context is None else None
        """The function, if it takes the members of the Struct and nothing else."""
        has_schema = self.output.schema is not None or self._output_validator is not None
        self._returns_text = not has_schema and not self.output.is_nothing and self._text is None

    @cached_property
    def spec(self) -> D.Tool:
        """The tool in lists. Made on first use, so that servers with many tools start fast."""
        schema = self._given_input or _checked(self.signature.schema(references=self._references), X.ToolInputSchema)
        made = D.Tool(name=self.name, input_schema=schema, **self._metadata)
        if text := self.signature.docstring.text if self._description is None else self._description:
            made.description = text
        if self._output_schema is not None:
            made.output_schema = _checked(self._output_schema, X.ToolOutputSchema)
        return made

    def call(self, arguments: object, ctx: Context) -> MaybeAwaitable[ToolResult]:
        """Call the function: return a result, or an awaitable for one.

        Raises `InsufficientScopeError` if the access token lacks scopes of the tool.
        """
        if self.scopes:
            ctx.require_scopes(*self.scopes)
        return self._call_fast(arguments, ctx) if self._is_fast else self._call_slow(arguments, ctx)

    async def _call_fast(self, arguments: object, ctx: Context) -> ToolResult:
        """Call an async function in one coroutine, if its arguments need nothing but `msgspec.convert`."""
        try:
            bound = _convert(arguments if arguments.__class__ is dict else {}, self._struct)
        except Exception:
            bound = None
        if bound is None:  # the slow path says what is wrong
            made = self._call_slow(arguments, ctx)
            return await made if is_awaitable(made) else made
        try:
            spread = self._spread
            value = await (self._call(bound, ctx) if spread is None else spread(*_members(bound)))
        except Exception as error:
            return self._failed(error, ctx)
        if value.__class__ is str and self._returns_text:
            made, text = _copy_result(), _copy_text()
            text.text = value
            made.content = [text]
            return made
        return self._to_result(value, ctx)

    def _call_slow(self, arguments: object, ctx: Context) -> MaybeAwaitable[ToolResult]:
        given = cast("Mapping[str, Any]", arguments if arguments.__class__ is dict else {})
        try:
            if self._input_validator is not None and self._input_validator.find_error(given, "") is not None:
                given = self._repair(given, self._input_validator, ctx)
            bound = self._bind(given)
        except ArgumentError as error:
            return self._reject_arguments(error, given, ctx)
        except Exception:
            try:
                bound = self.signature.bind(given, None if self._is_strict else partial(self._tolerate, ctx))
            except ArgumentError as error:
                return self._reject_arguments(error, given, ctx)
        if not self._is_immediate:
            return self._await_result(call_function(self.signature, bound, ctx, thread=self._thread), ctx)
        try:
            value = self._call(bound, ctx)
        except Exception as error:
            return self._failed(error, ctx)
        return self._await_result(value, ctx) if is_pending(value) else self._to_result(value, ctx)

    def _reject_arguments(self, error: ArgumentError, given: Mapping[str, Any], ctx: Context) -> ToolResult:
        """Return the result for arguments that do not fit. Members beside `arguments` may be meant as these."""
        text = str(error)
        if not given and (unknown := ctx.raw_params().keys() - _PARAMS):
            mistake = f"params.{visible(min(unknown), 50)} is unknown; meant arguments?"
            ctx.config.log.add_mistake(f"rejected request tools/call: {mistake}")
            text = f"{mistake}\n{text}"
        return error_result(text)

    def _repair(self, given: Mapping[str, Any], validator: SchemaValidator, ctx: Context) -> Mapping[str, Any]:
        """Return arguments so repaired that the given schema accepts them. Raises `ArgumentError` with all faults."""
        schema = dict(self._given_input or {})
        found = examine(given, schema, member="argument", is_strict=self._is_strict, has_formats=False)
        wrong = validator.find_error(found.value, "")
        if wrong is not None:
            raise ArgumentError(join_faults(validator.find_faults(found.value, found.faults)) or wrong)
        if found.repairs:
            self._tolerate(ctx, join_repairs(found.repairs))
        return cast("Mapping[str, Any]", found.value)

    def _tolerate(self, ctx: Context, repairs: str) -> None:
        """Report repairs. Raises `InvalidParamsError` if the application is strict in all that it accepts."""
        ctx.tolerate(f"tool {self.name!r}: its arguments do not fit their schema: {repairs}")

    async def _await_result(self, value: object, ctx: Context) -> ToolResult:
        clock = asyncio.timeout(self._timeout)
        try:
            async with clock:
                value = await resolve(value)
        except Exception as error:
            if isinstance(error, TimeoutError) and clock.expired():
                return error_result(f"{self.name} took longer than {self._timeout:g} s")
            return self._failed(error, ctx)
        return self._to_result(value, ctx)

    def _to_result(self, value: object, ctx: Context) -> ToolResult:
        try:
            made = self.output.to_result(value, self.name)
            if self._text is not None and isinstance(made, _Result):
                self._describe(made, value, self._text)
            if self._output_validator is not None and isinstance(made, _Result) and made.is_error is not True:
                self._check_output(self._output_validator, made, value)
        except Exception as error:
            return self.reject_result(error, value, ctx)
        return made

    def _describe(self, made: D.CallToolResult, value: object, text: Callable[[Any], str]) -> None:
        """Replace the text of a result, unless the function returned a result: a Struct, an exact type, or a model."""
        if type(value).__name__ != "CallToolResult":
            made.content = [D.TextContent(text=str(text(value)))]

    def _check_output(self, validator: SchemaValidator, made: D.CallToolResult, value: object) -> None:
        """Check structured content against the given `output_schema`."""
        if made.structured_content is None:
            if made is value:
                raise ReturnTypeError("structuredContent: required by the output schema, but missing")
            made.structured_content = to_null(to_builtins(value))
        wrong = validator.find_error(from_null(made.structured_content), "")
        if wrong is not None:
            raise ReturnTypeError(wrong)

    def _failed(self, error: Exception, ctx: Context) -> D.CallToolResult:
        """Return the result of a failed call, with the text of the exception if the client may see it.

        Errors of the protocol are raised again: they are not results.
        """
        if isinstance(error, RemoteError | InputUnavailableError):
            raise error
        if isinstance(error, self._visible_errors):
            return error_result_of(error)
        description = describe_failure(error)
        ctx.report(f"tool {self.name!r} failed: {description}", error)
        return error_result(f"{self.name} failed" + (f": {description}" if self._debug else ""))

    def reject_result(self, error: Exception, value: object, ctx: Context) -> D.CallToolResult:
        """Return the result of a call whose function returned a value that cannot be its result.

        The report says what the function returned, and where the function is. The traceback would show neither.
        """
        if isinstance(error, (OSError, RemoteError, *self._visible_errors)):  # such as a file that cannot be read
            return self._failed(error, ctx)
        from typedmcp.protocol.tracebacks import has_author_frame  # nothing has failed before

        is_misfit = isinstance(error, ReturnTypeError)
        text = result_failure(self.signature.function, value, error, self._remedy if is_misfit else None)
        reported = ReturnTypeError(text)
        reported.__cause__ = error if has_author_frame(error) else None  # such as a serializer of the author
        ctx.report(f"tool {self.name!r} failed: {text}", reported)
        reason = ": its result does not fit its schema" if is_misfit else ""
        return error_result(f"{self.name} failed{reason}" + (f": {text}" if self._debug else ""))

    @property
    def _remedy(self) -> str:
        if self._output_validator is not None:
            return "change the value or `output_schema`"
        return f"change the value or the return annotation, {type_name(self.signature.return_hint)}"


def _author_level() -> int:
    """Return the `stacklevel` of a warning of the caller for the first line outside of this package."""
    folder, level, frame = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}", 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(folder):
        level, frame = level + 1, frame.f_back
    return level


def _checked(schema: Mapping[str, Any], kind: type[OpenObject]) -> dict[str, Any]:
    """Return a schema as a dict. Raises `DecodeError` if tools cannot have it."""
    return dict(X.from_builtins(dict(schema), kind))


def _compile(schema: object, what: str) -> SchemaValidator:
    from typedmcp_schemas import can_validate, compile_schema  # few servers give schemas

    if not isinstance(schema, Mapping):
        raise UsageError(f"{what}: a schema is a mapping, not {schema!r}")
    if not can_validate():
        raise UsageError(f"{what}: {missing_extra('a schema of your own', 'jsonschema')}")
    try:
        return compile_schema(cast("Mapping[str, Any]", schema), is_trusted=True)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from error
