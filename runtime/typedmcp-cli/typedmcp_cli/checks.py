"""The check of a server: items that the specification forbids, that hosts refuse, or that models know little of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from typedmcp.building import header_params
from typedmcp.types import Prompt, Resource, Tool
from typedmcp_schemas.hosts import Finding, check_collisions, check_descriptions, check_schemas, check_tool_name

__all__ = ["check_completions", "check_items"]


def check_items(
    tools: Sequence[Tool],
    prompts: Sequence[Prompt],
    resources: Sequence[Any],
    page: int | None,
    is_recommended_name: Callable[[str], bool],
) -> Iterator[Finding]:
    """Yield the findings about the items of a server, in their order. `page` is the size of pages of lists, if any."""
    for tool in tools:
        item = f"tool {tool.name}"
        yield from check_tool_name(tool.name, is_valid=is_recommended_name(tool.name))
        try:
            header_params(tool.input_schema)
        except ValueError as error:
            yield Finding("header", "error", item, str(error))
        yield from check_schemas(item, tool.description, tool.input_schema, tool.output_schema)
    yield from check_collisions([tool.name for tool in tools])
    for prompt in prompts:
        missing = [each.name for each in prompt.arguments or () if not each.description]
        yield from check_descriptions(f"prompt {prompt.name}", prompt.description, missing)
    for resource in resources:
        uri = resource.uri if isinstance(resource, Resource) else resource.uri_template
        yield from check_descriptions(f"resource {uri}", resource.description)
    for kind, count in Counter(type(item).__name__ for item in (*tools, *prompts, *resources)).items():
        if page is not None and count > page:
            text = f"clients of several frameworks read only the first {page} of {count}; leave out page={page}"
            yield Finding("page", "warning", f"list of {kind}", text)


def check_completions(completed: Sequence[tuple[str, str, Any]]) -> Iterator[Finding]:
    """Yield the functions for arguments that do not exist, from names, arguments and the items of these names."""
    for name, argument, item in completed:
        if item is None or not item.signature.accepts(argument):
            text = f"it has no argument {argument!r}" if item else "no prompt or resource template has this name"
            yield Finding("completion", "error", f"completion {name}", text)
