"""`typedmcp inspect`: show everything a server offers, with schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typedmcp import Client, types
from typedmcp.building import is_object
from typedmcp_cli.features import JSON_NAMES, Feature, Kind, list_features
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.options import CommonOptions, Target
from typedmcp_cli.output import print_heading, print_json, print_table, print_text
from typedmcp_cli.schemas import describe_type, list_required
from typedmcp_cli.status import OK
from typedmcp_cli.targets import run_with_client

__all__ = ["inspect"]


def inspect(target: Target, /, *, options: CommonOptions = CommonOptions()) -> int:  # noqa: B008  # it is frozen
    """Show capabilities, instructions, and all features with their schemas."""

    async def work(client: Client, _: NotificationDisplay) -> int:
        found = await list_features(client)
        if options.json:
            print_json({**_server_members(client), **{JSON_NAMES[name]: items for name, items in found.items()}})
            return OK
        _print_server(client)
        for kind, items in found.items():
            for item in items:
                _print_feature(kind, item)
        return OK

    return run_with_client(target, options, work)


def _server_members(client: Client) -> dict[str, object]:
    server = client.server
    members: dict[str, object] = {
        "protocolVersion": server.revision,
        "serverInfo": server.info,
        "capabilities": server.capabilities,
    }
    return members if server.instructions is None else {**members, "instructions": server.instructions}


def _print_server(client: Client) -> None:
    server = client.server
    print_heading("a server" if server.info is None else f"{server.info.name} {server.info.version}")
    capabilities: dict[str, Any] = types.to_builtins(server.capabilities)
    described = ", ".join(_describe_capability(name, value) for name, value in capabilities.items())
    print_table([("revision", server.revision), ("capabilities", described or "none")])
    if server.instructions:
        print_text(f"\n{server.instructions.strip()}")


def _describe_capability(name: str, value: object) -> str:
    members = [member for member, given in value.items() if given is not False] if is_object(value) else []
    return f"{name} ({', '.join(members)})" if members else name


def _print_feature(kind: Kind, item: Feature) -> None:
    print_text("")
    print_heading(f"{kind.removesuffix('s')} {_identifier(item)}")
    if text := item.description or item.title:
        print_text("\n".join(f"  {line}".rstrip() for line in text.strip().splitlines()))
    if isinstance(item, types.Tool):
        _print_tool(item)
    elif isinstance(item, types.Prompt):
        arguments = item.arguments or []
        rows = [
            (argument.name, "required" if argument.required else "", argument.description or "")
            for argument in arguments
        ]
        print_table(rows, indent=4)
    else:
        print_table(_resource_rows(item), indent=4)


def _identifier(item: Feature) -> str:
    if isinstance(item, types.Resource):
        return item.uri
    return item.uri_template if isinstance(item, types.ResourceTemplate) else item.name


def _print_tool(tool: types.Tool) -> None:
    _print_schema(tool.input_schema)
    if tool.output_schema is not None:
        _print_schema(tool.output_schema, "returns ")
    if tool.annotations is not None:
        hints = [name for name, value in types.to_builtins(tool.annotations).items() if value is True]
        if hints:
            print_text(f"    ({', '.join(hints)})")


def _resource_rows(item: types.Resource | types.ResourceTemplate) -> Sequence[tuple[str, str]]:
    rows = [("name", item.name)]
    if item.mime_type is not None:
        rows.append(("type", item.mime_type))
    return rows


def _print_schema(schema: Mapping[str, Any], prefix: str = "") -> None:
    """Print the members of an object schema. Print another schema only if it has a prefix."""
    properties = schema.get("properties")
    if not is_object(properties):
        if prefix:
            print_text(f"  {prefix}{describe_type(schema, schema)}")
        return
    required = list_required(schema)
    rows = [
        (f"{prefix}{name}", *_member_cells(member, schema, is_required=name in required))
        for name, member in properties.items()
    ]
    print_table(rows, indent=4)


def _member_cells(schema: object, root: Mapping[str, Any], *, is_required: bool) -> tuple[str, str, str]:
    members = schema if is_object(schema) else {}
    default = f"= {types.encode(members['default']).decode()}" if "default" in members else ""
    return describe_type(schema, root), "required" if is_required else default, str(members.get("description", ""))
