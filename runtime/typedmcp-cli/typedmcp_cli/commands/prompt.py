"""`typedmcp prompt`: get a prompt with its arguments filled in."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from typedmcp import Client, types
from typedmcp_cli.arguments import parse_arguments
from typedmcp_cli.contents import print_or_save, split_contents
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.options import CommonOptions, Pairs, Target, await_result, describe_unknown
from typedmcp_cli.output import print_heading, print_json, print_text
from typedmcp_cli.status import OK, CommandExit
from typedmcp_cli.targets import run_with_client

__all__ = ["prompt"]


def prompt(
    target: Target,
    name: Annotated[str, Parameter(help="The name of the prompt.")],
    /,
    *pairs: Pairs,
    options: CommonOptions = CommonOptions(),  # noqa: B008  # it is frozen
) -> int:
    """Get a prompt and print its messages."""

    async def work(client: Client, _: NotificationDisplay) -> int:
        known = {found.name: found async for found in client.prompts()}
        if name not in known:
            raise CommandExit(describe_unknown("prompt", name, known))
        arguments = _require_strings(parse_arguments(pairs, _arguments_schema(known[name]), None, name))
        result = await await_result(client.get_prompt(name, arguments), options)
        if options.json:
            print_json(result)
        else:
            _print_messages(result)
        return OK

    return run_with_client(target, options, work)


def _arguments_schema(found: types.Prompt) -> dict[str, Any]:
    """Make an object schema of the arguments of a prompt."""
    arguments = found.arguments or []
    return {
        "properties": {argument.name: {"type": "string"} for argument in arguments},
        "required": [argument.name for argument in arguments if argument.required is True],
        "additionalProperties": False,
    }


def _require_strings(arguments: dict[str, Any]) -> dict[str, str]:
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise CommandExit(f"{name}: arguments of prompts are strings; use {name}=…")
    return arguments


def _print_messages(result: types.GetPromptResult) -> None:
    for number, message in enumerate(result.messages):
        if number:
            print_text("")
        print_heading(f"{message.role}:")
        print_or_save([*split_contents([message.content])])
