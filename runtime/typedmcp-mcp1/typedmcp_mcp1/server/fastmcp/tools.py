"""Tools, under the names of `mcp.server.fastmcp.tools`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typedmcp_mcp1 import types
from typedmcp_mcp1.server.fastmcp.context import Context
from typedmcp_mcp1.server.fastmcp.exceptions import ToolError
from typedmcp_mcp1.server.fastmcp.functions import Arguments, Output, call, find_context_parameter
from typedmcp_mcp1.shared.exceptions import UrlElicitationRequiredError

__all__ = ["Tool"]


class Tool:
    """A function as a tool. `from_function` makes it."""

    def __init__(self, fn: Callable[..., Any], name: str, structured_output: bool | None, **members: Any) -> None:
        self.fn: Callable[..., Any] = fn
        self.name: str = name
        self.description: str = members.pop("description", None) or fn.__doc__ or ""
        self._members = members
        self._context = find_context_parameter(fn, Context)
        self._arguments = Arguments(fn, name, self._context)
        self._output = Output(self._arguments.signature, name, structured_output)

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: types.ToolAnnotations | None = None,
        icons: list[types.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> Tool:
        """Make a tool of a function."""
        found = name or fn.__name__
        if found == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        members = {"title": title, "description": description, "annotations": annotations, "icons": icons, "meta": meta}
        return cls(fn, found, structured_output, **members)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self._arguments.schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content; None without such content."""
        return self._output.schema

    def describe(self) -> types.Tool:
        """Return the tool as lists have it."""
        return types.Tool(
            name=self.name,
            description=self.description,
            input_schema=self.parameters,
            output_schema=self.output_schema,
            **self._members,
        )

    async def run(
        self,
        arguments: Mapping[str, Any],
        context: Context[Any, Any, Any] | None = None,
        convert_result: bool = False,
    ) -> Any:
        """Call the function. Raises `ToolError` with what it raises."""
        try:
            values = self._arguments.convert(arguments)
            if self._context is not None:
                values[self._context] = context
            made = await call(self.fn, values)
            return self._output.convert(made) if convert_result else made
        except UrlElicitationRequiredError:
            raise
        except Exception as error:
            raise ToolError(f"Error executing tool {self.name}: {error}") from error
