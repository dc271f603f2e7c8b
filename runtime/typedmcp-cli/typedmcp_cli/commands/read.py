"""`typedmcp read`: read a resource."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from typedmcp import Client
from typedmcp.app.templates import UriTemplate
from typedmcp.errors import Error, InvalidParamsError, MethodNotFoundError, RemoteError
from typedmcp_cli.arguments import require_utf8
from typedmcp_cli.contents import print_or_save, split_contents
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.options import CommonOptions, Output, Target, await_result, check_output
from typedmcp_cli.output import print_json
from typedmcp_cli.status import FAILED, OK, CommandExit, suggest_names
from typedmcp_cli.targets import run_with_client

__all__ = ["read"]


def read(
    target: Target,
    uri: Annotated[str, Parameter(help="The URI of the resource.")],
    /,
    *,
    output: Output = None,
    options: CommonOptions = CommonOptions(),  # noqa: B008  # it is frozen
) -> int:
    """Read a resource and print its contents."""
    check_output(output, options)
    require_utf8(uri)

    async def work(client: Client, _: NotificationDisplay) -> int:
        try:
            result = await await_result(client.read_resource(uri), options)
        except InvalidParamsError as error:
            raise await _add_suggestion(error, client, uri) from None
        if options.json:
            print_json(result)
        else:
            print_or_save([*split_contents(result.contents)], output)
        return OK

    return run_with_client(target, options, work)


async def _add_suggestion(error: RemoteError, client: Client, uri: str) -> Exception:
    """Return an error that names similar resources, or `error` itself if the URI matches a template."""
    try:
        known = [resource.uri async for resource in client.resources()]
        if await _matches_template(client, uri):
            return error
    except Error:
        return error
    text = f"the server returned an error: {error.message} ({error.code}){suggest_names(uri, known)}"
    return CommandExit(text, FAILED)


async def _matches_template(client: Client, uri: str) -> bool:
    try:
        templates = [found.uri_template async for found in client.resource_templates()]
    except MethodNotFoundError:  # a server without templates may answer so
        return False
    return any(UriTemplate(template).match(uri) is not None for template in templates)
