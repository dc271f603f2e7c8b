"""`typedmcp call`: call a tool."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from typedmcp import Client, types
from typedmcp_cli.arguments import parse_arguments
from typedmcp_cli.contents import print_or_save, split_contents
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.options import CommonOptions, Output, Pairs, Target, await_result, check_output, describe_unknown
from typedmcp_cli.output import print_json, print_text, print_value
from typedmcp_cli.status import FAILED, OK, CommandExit
from typedmcp_cli.targets import run_with_client

__all__ = ["call"]


def call(
    target: Target,
    tool: Annotated[str, Parameter(help="The name of the tool.")],
    /,
    *pairs: Pairs,
    json_args: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Arguments as a JSON object; KEY=VALUE adds to it. - reads standard input.",
        ),
    ] = None,
    output: Output = None,
    options: CommonOptions = CommonOptions(),  # noqa: B008  # it is frozen
) -> int:
    """Call a tool and print its result."""
    check_output(output, options)

    async def work(client: Client, display: NotificationDisplay) -> int:
        known = {found.name: found async for found in client.tools()}
        if tool not in known:
            raise CommandExit(describe_unknown("tool", tool, known))
        arguments = parse_arguments(pairs, known[tool].input_schema, json_args, tool)
        result = await await_result(client.call_tool(tool, arguments, on_progress=display.show_progress), options)
        display.hide_progress()
        _print_result(result, output, is_json=options.json)
        return FAILED if result.is_error is True else OK

    return run_with_client(target, options, work, with_tasks=True)


def _print_result(result: types.CallToolResult, output: str | None, *, is_json: bool) -> None:
    if is_json:
        print_json(result)
    elif result.is_error is True:
        for part in split_contents(result.content):
            print_text(part.text, stderr=True)
    elif result.content or result.structured_content is None:
        print_or_save([*split_contents(result.content)], output)
    else:
        print_value(msgspec.json.format(msgspec.json.encode(result.structured_content), indent=2).decode())
