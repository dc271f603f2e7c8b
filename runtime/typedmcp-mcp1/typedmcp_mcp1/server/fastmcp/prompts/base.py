"""Prompts and their messages, under the names of `mcp.server.fastmcp.prompts.base`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from typedmcp_mcp1 import types
from typedmcp_mcp1.server.fastmcp.context import Context
from typedmcp_mcp1.server.fastmcp.functions import Arguments, call, find_context_parameter, to_text

__all__ = ["AssistantMessage", "Message", "Prompt", "UserMessage"]


class Message(BaseModel):
    """A message of a prompt. `content` is a block, or a text."""

    role: Literal["user", "assistant"]
    content: types.ContentBlock

    def __init__(self, content: Any, **members: Any) -> None:
        block = types.TextContent(text=content) if isinstance(content, str) else content
        super().__init__(content=block, **members)


class UserMessage(Message):
    """A message of the user."""

    role: Literal["user", "assistant"] = "user"

    def __init__(self, content: Any, **members: Any) -> None:
        super().__init__(content, **members)


class AssistantMessage(Message):
    """A message of the model."""

    role: Literal["user", "assistant"] = "assistant"

    def __init__(self, content: Any, **members: Any) -> None:
        super().__init__(content, **members)


class Prompt:
    """A function as a prompt. `from_function` makes it."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        title: str | None = None,
        description: str | None = None,
        icons: list[types.Icon] | None = None,
    ) -> None:
        self.fn: Callable[..., Any] = fn
        self.name: str = name
        self.title: str | None = title
        self.description: str = description or fn.__doc__ or ""
        self.icons: list[types.Icon] | None = icons
        self._context = find_context_parameter(fn, Context)
        self._arguments = Arguments(fn, name, self._context)
        required = self._arguments.schema.get("required", [])
        self.arguments: list[types.PromptArgument] = [
            types.PromptArgument(name=each, description=member.get("description"), required=each in required)
            for each, member in self._arguments.schema.get("properties", {}).items()
        ]

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: list[types.Icon] | None = None,
    ) -> Prompt:
        """Make a prompt of a function, which returns a text, a message, or several."""
        found = name or fn.__name__
        if found == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        return cls(fn, found, title, description, icons)

    def describe(self) -> types.Prompt:
        """Return the prompt as lists have it."""
        return types.Prompt(
            name=self.name, title=self.title, description=self.description, arguments=self.arguments, icons=self.icons
        )

    async def render(
        self, arguments: Mapping[str, Any] | None = None, context: Context[Any, Any, Any] | None = None
    ) -> list[Message]:
        """Return the messages with these arguments. Raises `ValueError` for those that do not fit."""
        given = arguments or {}
        required = {each.name for each in self.arguments if each.required}
        if missing := required - given.keys():
            raise ValueError(f"Missing required arguments: {missing}")
        try:
            values = self._arguments.convert(given)
            if self._context is not None:
                values[self._context] = context
            made = await call(self.fn, values)
            several: list[Any] = [*made] if isinstance(made, list | tuple) else [made]
            return [_to_message(each) for each in several]
        except Exception as error:
            raise ValueError(f"Error rendering prompt {self.name}: {error}") from error


def _to_message(made: Any) -> Message:
    if isinstance(made, Message):
        return made
    if isinstance(made, dict):
        try:
            members: dict[str, Any] = {**made, "content": _to_block(made["content"])}
            return Message(**members)
        except (KeyError, ValidationError) as error:
            raise ValueError(f"Could not convert prompt result to message: {made}") from error
    if isinstance(made, types.PromptMessage):
        return Message(role=made.role, content=made.content)
    return UserMessage(content=to_text(made))


def _to_block(content: Any) -> Any:
    return TypeAdapter(types.ContentBlock).validate_python(content) if isinstance(content, dict) else content
