"""`typedmcp call`, `read` and `prompt`: one request, and what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import Parameter
from msgspec import UNSET

from typedmcp import dialect
from typedmcp.cli.arguments import arguments_of, utf8
from typedmcp.cli.contents import emit, parts_of
from typedmcp.cli.messages import Messages
from typedmcp.cli.options import Options, Target
from typedmcp.cli.output import document, heading, say
from typedmcp.cli.status import FAILED, OK, Stop, near
from typedmcp.cli.targets import talk
from typedmcp.client.client import Client
from typedmcp.errors import Error, InvalidParams, MethodNotFound, RemoteError
from typedmcp.server.templates import UriTemplate

__all__ = ["call", "prompt", "read"]

D = dialect.structs
T = TypeVar("T")

Output: TypeAlias = Annotated[
    str | None,
    Parameter(
        alias="-o",
        allow_leading_hyphen=True,
        help="Save images and other data to this file, or the text where there is nothing else. "
        "Further ones are FILE-2 and so on; - is standard output.",
    ),
]
Pairs: TypeAlias = Annotated[str, Parameter(name="KEY=VALUE", help="Arguments.")]


def call(
    target: Target,
    tool: Annotated[str, Parameter(help="The name of the tool.")],
    /,
    *pairs: Pairs,
    json_args: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Arguments as a JSON object, which KEY=VALUE adds to; - reads standard input.",
        ),
    ] = None,
    output: Output = None,
    options: Options = Options(),  # noqa: B008
) -> int:
    """Print what it gives."""
    _check_output(output, options)

    async def work(client: Client, messages: Messages) -> int:
        known = {found.name: found async for found in client.tools()}
        if tool not in known:
            raise Stop(_unknown("tool", tool, known))
        arguments = arguments_of(pairs, known[tool].input_schema, json_args, tool)
        wanted = client.call_tool(tool, arguments, on_progress=messages.progress)
        result = await _answer(wanted, options)
        messages.pause()
        failed = result.is_error is True
        if options.json:
            document(result)
        elif failed:
            for part in parts_of(result.content):
                say(part.text, stderr=True)
        else:
            _show_result(result, output)
        return FAILED if failed else OK

    return talk(target, options, work)


def _show_result(result: D.CallToolResult, output: str | None) -> None:
    if result.content or result.structured_content is UNSET:
        emit([*parts_of(result.content)], output)
    else:
        document(result.structured_content)


def read(
    target: Target,
    uri: Annotated[str, Parameter(help="The URI of the resource.")],
    /,
    *,
    output: Output = None,
    options: Options = Options(),  # noqa: B008
) -> int:
    """Print what is there."""
    _check_output(output, options)
    utf8(uri)

    async def work(client: Client, _: Messages) -> int:
        try:
            result = await _answer(client.read_resource(uri), options)
        except InvalidParams as error:
            raise await _with_near(error, client, uri) from None
        if options.json:
            document(result)
        else:
            emit([*parts_of(result.contents)], output)
        return OK

    return talk(target, options, work)


def _check_output(output: str | None, options: Options) -> None:
    if output is not None and options.json:
        raise Stop("--output saves contents, and --json prints them: one of the two")


async def _with_near(error: RemoteError, client: Client, uri: str) -> Exception:
    """The error for a resource that is not there, with those that are called alike.

    It has none where a template stands for it: then it is called right.
    """
    try:
        known = [resource.uri async for resource in client.resources()]
        if await _is_of_template(client, uri):
            return error
    except Error:
        return error
    return Stop(f"the server answered: {error.message} ({error.code}){near(uri, known)}", FAILED)


async def _is_of_template(client: Client, uri: str) -> bool:
    try:
        return any(
            [UriTemplate(found.uri_template).match(uri) is not None async for found in client.resource_templates()]
        )
    except MethodNotFound:  # as servers may answer that have none
        return False


def prompt(
    target: Target,
    name: Annotated[str, Parameter(help="The name of the prompt.")],
    /,
    *pairs: Pairs,
    options: Options = Options(),  # noqa: B008
) -> int:
    """Print its messages."""

    async def work(client: Client, _: Messages) -> int:
        known = {found.name: found async for found in client.prompts()}
        if name not in known:
            raise Stop(_unknown("prompt", name, known))
        arguments = _texts(arguments_of(pairs, _schema_of(known[name]), None, name))
        result = await _answer(client.get_prompt(name, arguments), options)
        if options.json:
            document(result)
            return OK
        for number, message in enumerate(result.messages):
            if number:
                say("")
            heading(f"{message.role}:")
            emit([*parts_of([message.content])])
        return OK

    return talk(target, options, work)


def _schema_of(found: D.Prompt) -> dict[str, Any]:
    arguments = [] if found.arguments is UNSET else found.arguments
    return {
        "properties": {argument.name: {"type": "string"} for argument in arguments},
        "required": [argument.name for argument in arguments if argument.required is True],
        "additionalProperties": False,
    }


def _texts(arguments: dict[str, Any]) -> dict[str, str]:
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise Stop(f"{name}: arguments of prompts are texts: {name}=…")
    return arguments


def _unknown(kind: str, name: str, known: Sequence[str] | dict[str, Any]) -> str:
    return f"no {kind} {name!r}{near(name, known)}" if known else f"no {kind} {name!r}: the server has no {kind}s"


async def _answer(wanted: Awaitable[T], options: Options) -> T:
    """What a call gives. With `--json` an error that is the answer is a document, too."""
    try:
        return await wanted
    except RemoteError as error:
        if options.json:
            data = {} if error.data is None else {"data": error.data}
            document({"error": {"code": error.code, "message": error.message, **data}})
        raise
