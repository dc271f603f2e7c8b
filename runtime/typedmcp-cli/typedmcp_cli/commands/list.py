"""`typedmcp list`: list a server's tools, resources, templates and prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from typedmcp import Client, types
from typedmcp.building import is_object
from typedmcp_cli.features import JSON_NAMES, Feature, Kind, list_features
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.options import CommonOptions, Target
from typedmcp_cli.output import print_heading, print_json, print_table, print_text
from typedmcp_cli.schemas import list_required
from typedmcp_cli.status import OK
from typedmcp_cli.targets import run_with_client

__all__ = ["list"]


def list(  # named like the command
    target: Target,
    kind: Annotated[Kind | None, Parameter(help="List only this kind.")] = None,
    /,
    *,
    options: CommonOptions = CommonOptions(),  # noqa: B008  # it is frozen
) -> int:
    """List names with their arguments and descriptions."""

    async def work(client: Client, _: NotificationDisplay) -> int:
        found = await list_features(client, kind)
        if options.json:
            print_json({JSON_NAMES[name]: items for name, items in found.items()})
        else:
            _print_lists(found)
        return OK

    return run_with_client(target, options, work)


def _print_lists(found: Mapping[Kind, Sequence[Feature]]) -> None:
    shown = {kind: items for kind, items in found.items() if items}
    for number, (kind, items) in enumerate(shown.items()):
        if number:
            print_text("")
        print_heading(kind.capitalize())
        print_table([_row(item) for item in items])
    if not shown:
        empty = f"no {' or '.join(found)}" if found else "the server has no tools, resources or prompts"
        print_text(empty, stderr=True)


def _row(item: Feature) -> tuple[str, str, str]:
    if isinstance(item, types.Tool):
        schema: dict[str, Any] = item.input_schema
        properties = schema.get("properties")
        names = properties if is_object(properties) else ()
        return item.name, _signature(names, list_required(schema)), _summary(item)
    if isinstance(item, types.Prompt):
        arguments = item.arguments or []
        required = [argument.name for argument in arguments if argument.required]
        return item.name, _signature([argument.name for argument in arguments], required), _summary(item)
    uri = item.uri if isinstance(item, types.Resource) else item.uri_template
    return uri, item.mime_type or "", _summary(item) or item.name


def _signature(names: Iterable[str], required: Sequence[str]) -> str:
    return " ".join(name if name in required else f"[{name}]" for name in names)


def _summary(item: Feature) -> str:
    """Return the first line of the description, or the title."""
    text = item.description or item.title or ""
    return text.strip().partition("\n")[0]
