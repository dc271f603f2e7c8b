"""`typedmcp list` and `typedmcp inspect`: what a server has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter
from msgspec import UNSET

from mcpspec._support.objects import is_object
from typedmcp import dialect
from typedmcp.cli.messages import Messages
from typedmcp.cli.options import Options, Target
from typedmcp.cli.output import document, heading, say, table
from typedmcp.cli.schemas import required_of, type_text
from typedmcp.cli.status import OK
from typedmcp.cli.targets import talk
from typedmcp.client.client import Client
from typedmcp.errors import MethodNotFound

__all__ = ["inspect", "list"]

D = dialect.structs
Kind: TypeAlias = Literal["tools", "resources", "templates", "prompts"]

_MEMBERS: dict[Kind, str] = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resourceTemplates",
    "prompts": "prompts",
}
"""What each kind is called in the protocol's lists."""


def list(  # it is what the command is called
    target: Target,
    kind: Annotated[Kind | None, Parameter(help="Only these.")] = None,
    /,
    *,
    options: Options = Options(),  # noqa: B008  # it is frozen
) -> int:
    """Show names and what they are for."""

    async def work(client: Client, _: Messages) -> int:
        found = await everything(client, kind)
        if options.json:
            document({_MEMBERS[name]: items for name, items in found.items()})
        else:
            _show(found)
        return OK

    return talk(target, options, work)


async def everything(client: Client, kind: Kind | None = None) -> dict[Kind, Sequence[Any]]:
    """All that a server has, of one kind or of those that it has declared."""
    declared = client.server.capabilities
    found: dict[Kind, Sequence[Any]] = {}
    if kind is not None:
        found[kind] = await _all(client, kind)
        return found
    if declared.tools is not UNSET:
        found["tools"] = await _all(client, "tools")
    if declared.resources is not UNSET:
        found["resources"] = await _all(client, "resources")
        try:
            found["templates"] = await _all(client, "templates")
        except MethodNotFound:  # as servers may answer that have none
            found["templates"] = ()
    if declared.prompts is not UNSET:
        found["prompts"] = await _all(client, "prompts")
    return found


async def _all(client: Client, kind: Kind) -> Sequence[Any]:
    pages: dict[Kind, Callable[[], AsyncIterator[Any]]] = {
        "tools": client.tools,
        "resources": client.resources,
        "templates": client.resource_templates,
        "prompts": client.prompts,
    }
    return [item async for item in pages[kind]()]


def _show(found: Mapping[Kind, Sequence[Any]]) -> None:
    shown = {kind: items for kind, items in found.items() if items}
    for number, (kind, items) in enumerate(shown.items()):
        if number:
            say("")
        heading(kind.capitalize())
        table([_row(item) for item in items])
    if not shown:
        say(f"no {' or '.join(found)}" if found else "the server has nothing", stderr=True)


def _row(item: Any) -> tuple[str, str, str]:
    if isinstance(item, D.Tool):
        schema: dict[str, Any] = item.input_schema
        properties = schema.get("properties")
        return item.name, _signature(properties if is_object(properties) else (), required_of(schema)), _about(item)
    if isinstance(item, D.Prompt):
        arguments = [] if item.arguments is UNSET else item.arguments
        return (
            item.name,
            _signature([a.name for a in arguments], [a.name for a in arguments if a.required]),
            _about(item),
        )
    kind = "" if item.mime_type is UNSET else item.mime_type
    return item.uri if isinstance(item, D.Resource) else item.uri_template, kind, _about(item) or item.name


def _signature(names: Any, required: Sequence[str]) -> str:
    return " ".join(name if name in required else f"[{name}]" for name in names)


def _about(item: Any) -> str:
    """The first line of what it is for, or its title."""
    text = item.description or item.title or ""
    return text.strip().partition("\n")[0]


def inspect(target: Target, /, *, options: Options = Options()) -> int:  # noqa: B008
    """Show capabilities, instructions, and everything with its schemas."""

    async def work(client: Client, _: Messages) -> int:
        found = await everything(client)
        server = client.server
        if options.json:
            said = {"protocolVersion": server.revision, "serverInfo": server.info, "capabilities": server.capabilities}
            if server.instructions is not None:
                said["instructions"] = server.instructions
            document({**said, **{_MEMBERS[name]: items for name, items in found.items()}})
            return OK
        _show_server(client)
        for kind, items in found.items():
            for item in items:
                _show_item(kind, item)
        return OK

    return talk(target, options, work)


def _show_server(client: Client) -> None:
    server = client.server
    heading("a server" if server.info is None else f"{server.info.name} {server.info.version}")
    capabilities: dict[str, Any] = D.to_builtins(server.capabilities)
    table([
        ("revision", server.revision),
        ("capabilities", ", ".join(_capability(name, value) for name, value in capabilities.items()) or "none"),
    ])  # fmt: skip
    if server.instructions:
        say(f"\n{server.instructions.strip()}")


def _capability(name: str, value: Any) -> str:
    members = [member for member, given in value.items() if given is not False] if is_object(value) else []
    return f"{name} ({', '.join(members)})" if members else name


def _show_item(kind: Kind, item: Any) -> None:
    name = getattr(item, "name", "")
    if kind in ("resources", "templates"):
        name = item.uri if kind == "resources" else item.uri_template
    say("")
    heading(f"{kind.removesuffix('s')} {name}")
    if text := item.description or item.title:
        say("\n".join(f"  {line}".rstrip() for line in text.strip().splitlines()))
    if isinstance(item, D.Tool):
        _show_schema(item.input_schema, "")
        if item.output_schema is not UNSET:
            _show_schema(item.output_schema, "gives ")
        _show_hints(item)
    elif isinstance(item, D.Prompt) and item.arguments is not UNSET:
        table([(a.name, "required" if a.required else "", a.description or "") for a in item.arguments], indent=4)
    elif isinstance(item, D.Resource | D.ResourceTemplate):
        table(_facts(item), indent=4)


def _facts(item: D.Resource | D.ResourceTemplate) -> Sequence[tuple[str, str]]:
    facts = [("name", item.name)]
    if item.mime_type is not UNSET:
        facts.append(("type", item.mime_type))
    return facts


def _show_schema(schema: Mapping[str, Any], lead: str) -> None:
    """The members of an object, or what else a value is."""
    properties = schema.get("properties")
    if not is_object(properties):
        if lead:
            say(f"  {lead}{type_text(schema, schema)}")
        return
    required = required_of(schema)
    rows = [(f"{lead}{name}", *_member(name in required, given, schema)) for name, given in properties.items()]
    table(rows, indent=4)


def _member(is_required: bool, schema: Any, root: Mapping[str, Any]) -> tuple[str, str, str]:
    said = schema if is_object(schema) else {}
    default = f"= {D.encode(said['default']).decode()}" if "default" in said else ""
    return type_text(schema, root), "required" if is_required else default, str(said.get("description", ""))


def _show_hints(tool: D.Tool) -> None:
    if tool.annotations is UNSET:
        return
    hints = [name for name, value in D.to_builtins(tool.annotations).items() if value is True]
    if hints:
        say(f"    ({', '.join(hints)})")
