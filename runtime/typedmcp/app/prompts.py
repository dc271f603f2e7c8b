"""Prompts: message templates that a user picks, with arguments filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from mcpspec.support.objects import is_object
from typedmcp import dialect
from typedmcp.app.calls import call_with_texts
from typedmcp.app.content import SEQUENCE_TYPES, to_block_of, to_everyday
from typedmcp.app.functions import read_signature
from typedmcp.app.options import PromptOptions, convert_metadata
from typedmcp.protocol.backends import check_struct
from typedmcp.server.principal import check_scopes
from typedmcp_schemas import to_builtins
from typedmcp_schemas.signatures import Parameter, Signature, name_of

if TYPE_CHECKING:
    from typedmcp.server.context import Context

__all__ = ["AssistantMessage", "Prompt", "UserMessage", "to_prompt_result"]

D = dialect.structs

_RESULT_NAMES = frozenset({"GetPromptResult", "InputRequiredResult"})
_MESSAGE_NAMES = frozenset({"PromptMessage"})


class Prompt:
    """A function registered as a prompt. Raises `UsageError` for a function that cannot be one."""

    def __init__(self, function: Callable[..., Any], **options: Unpack[PromptOptions]) -> None:
        self.name: str = options.get("name") or name_of(function)
        what = f"prompt {self.name!r}"
        self.signature: Signature = read_signature(function, what)
        self.scopes: tuple[str, ...] = check_scopes(f"{what}: scopes", options.get("scopes", ()))
        """The scopes that getting the prompt needs."""
        self._thread = options.get("thread", True)
        description = options.get("description")
        metadata = convert_metadata(
            what,
            title=options.get("title"),
            description=(self.signature.docstring.text if description is None else description) or None,
            icons=options.get("icons"),
            meta=options.get("meta"),
        )
        self.spec: D.Prompt = D.Prompt(name=self.name, **metadata)
        """The prompt in lists."""
        arguments = [_argument(each, self.signature.description_of(each)) for each in self.signature.parameters]
        if arguments:
            self.spec.arguments = arguments

    async def get(self, arguments: Mapping[str, str], ctx: Context) -> D.GetPromptResult | D.InputRequiredResult:
        """Return the prompt's messages.

        Raises `InsufficientScopeError` if the access token lacks scopes, and `InvalidParamsError` for arguments that do
        not fit.
        """
        ctx.require_scopes(*self.scopes)
        place = f"prompt {self.name!r}"
        made = await call_with_texts(self.signature, arguments, ctx, to_prompt_result, place, thread=self._thread)
        if isinstance(made, D.GetPromptResult) and isinstance(self.spec.description, str):
            made.description = made.description or self.spec.description
        return made


def _argument(parameter: Parameter, description: str) -> D.PromptArgument:
    made = D.PromptArgument(name=parameter.wire, required=parameter.required)
    if description:
        made.description = description
    return made


def UserMessage(content: object) -> D.PromptMessage:  # noqa: N802  # reads as the type that it makes
    """Return a message with the role of the user: text, a content block, or any value that a tool may return."""
    return _message(content, "user")


def AssistantMessage(content: object) -> D.PromptMessage:  # noqa: N802
    """Return a message with the role of the model: text, a content block, or any value that a tool may return."""
    return _message(content, "assistant")


def _message(content: object, role: Literal["user", "assistant"]) -> D.PromptMessage:
    return D.PromptMessage(role=role, content=to_block_of(content, "message"))


def to_prompt_result(value: object) -> D.GetPromptResult | D.InputRequiredResult:
    """Convert the return value of a prompt's function to a result: a string, a message, or several of them."""
    value = to_everyday(value, _RESULT_NAMES)
    if isinstance(value, D.GetPromptResult | D.InputRequiredResult):
        return check_struct(value)
    items = [*cast("Iterable[object]", value)] if isinstance(value, SEQUENCE_TYPES) else [value]
    return D.GetPromptResult(messages=[_to_message(item) for item in items])


def _to_message(value: object) -> D.PromptMessage:
    value = to_everyday(value, _MESSAGE_NAMES)
    if isinstance(value, D.PromptMessage):
        return check_struct(value)
    if is_object(value) and "role" in value and "content" in value:
        content: Any = value["content"]
        block = {"type": "text", "text": content} if isinstance(content, str) else content
        return D.from_builtins({"role": value["role"], "content": to_builtins(block)}, D.PromptMessage)
    return UserMessage(value)
