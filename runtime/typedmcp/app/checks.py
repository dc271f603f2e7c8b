"""The check of a server: items that the specification forbids, that hosts refuse, or that models know little of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from typedmcp import dialect
from typedmcp.app.tools import is_recommended_name
from typedmcp.protocol.headers import header_params
from typedmcp_schemas import find_refusals, replace_forbidden
from typedmcp_schemas.hosts import MAX_NAME, find_invalid_patterns, find_undescribed, find_wrong_defaults

__all__ = ["Finding", "Rule", "check_completions", "check_items"]

D = dialect.structs

Rule: TypeAlias = Literal[
    "name", "host-name", "name-collision", "host-schema", "header", "default", "description", "completion"
]
"""The rule that is broken; `docs/cli.md` describes them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of `Server.check`."""

    rule: Rule
    severity: Literal["error", "warning"]
    """`error` if clients or hosts refuse the item, `warning` if it works less well than it could."""
    item: str
    """The kind of the item and its name or URI, such as `tool add`."""
    text: str
    """The fault, and how to write it."""
    hosts: tuple[str, ...] = ()
    """The APIs whose hosts refuse it; empty if it does not depend on the host."""

    def __str__(self) -> str:
        hosts = f" ({', '.join(self.hosts)})" if self.hosts else ""
        return f"{self.item}: {self.severity}: {self.text}{hosts} [{self.rule}]"


def check_items(tools: Sequence[D.Tool], prompts: Sequence[D.Prompt], resources: Sequence[Any]) -> Iterator[Finding]:
    """Yield the findings about the items of a server, in their order."""
    for tool in tools:
        yield from _check_tool_name(tool.name)
        yield from _check_schema(tool)
        for text in find_wrong_defaults(tool.input_schema):
            yield Finding("default", "warning", f"tool {tool.name}", text)
        yield from _check_descriptions(f"tool {tool.name}", tool.description, find_undescribed(tool.input_schema))
    yield from _check_collisions([tool.name for tool in tools])
    for prompt in prompts:
        missing = [each.name for each in prompt.arguments or () if not each.description]
        yield from _check_descriptions(f"prompt {prompt.name}", prompt.description, missing)
    for resource in resources:
        uri = resource.uri if isinstance(resource, D.Resource) else resource.uri_template
        yield from _check_descriptions(f"resource {uri}", resource.description, ())


def check_completions(completed: Sequence[tuple[str, str, Any]]) -> Iterator[Finding]:
    """Yield the functions for arguments that do not exist, from names, arguments and the items of these names."""
    for name, argument, item in completed:
        if item is None:
            text = "neither a prompt nor a resource template has this name"
        elif not item.signature.accepts(argument):
            text = f"it has no argument {argument!r}"
        else:
            continue
        yield Finding("completion", "error", f"completion {name}", text)


def _check_tool_name(name: str) -> Iterator[Finding]:
    item = f"tool {name}"
    if not is_recommended_name(name):
        text = "the name is not 1 to 128 of the characters A-Z a-z 0-9 _ - ."
        yield Finding("name", "error", item, text)
    elif len(name) > MAX_NAME:
        text = f"the name has {len(name)} characters; APIs allow {MAX_NAME}"
        yield Finding("host-name", "error", item, text, ("openai", "anthropic", "gemini"))
    elif replace_forbidden(name) != name:
        text = f"hosts have to write the name as {replace_forbidden(name)}"
        yield Finding("host-name", "warning", item, text, ("openai", "anthropic", "gemini"))


def _check_collisions(names: Sequence[str]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(replace_forbidden(name)[:MAX_NAME], name)
        if other != name:
            yield Finding("name-collision", "error", f"tool {name}", f"in the APIs of hosts it has the name of {other}")


def _check_schema(tool: D.Tool) -> Iterator[Finding]:
    item = f"tool {tool.name}"
    try:
        header_params(tool.input_schema)
    except ValueError as error:
        yield Finding("header", "error", item, str(error))
    found = [("input", each) for each in find_refusals(tool.input_schema)]
    found += [("output", each) for each in find_invalid_patterns(tool.output_schema or {})]
    for name, refusal in found:
        place = f"{refusal.path}: " if refusal.path else ""
        # Hosts of one API alone often convert. One output schema breaks the whole list of TypeScript's SDK 1.x.
        is_error = len(refusal.hosts) > 1 or name == "output"
        severity: Literal["error", "warning"] = "error" if is_error else "warning"
        yield Finding("host-schema", severity, item, f"{name} schema: {place}{refusal.text}", refusal.hosts)


def _check_descriptions(item: str, description: str | None, undescribed: Sequence[str]) -> Iterator[Finding]:
    if not description:
        yield Finding("description", "warning", item, "it has no description; write a docstring")
    for name in undescribed:
        text = f"the parameter {name} has no description; write it in the docstring, or as Annotated[…, text]"
        yield Finding("description", "warning", item, text)
