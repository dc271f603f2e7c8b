"""Prompts: messages that a person picks, with some blanks filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typedmcp import dialect
from typedmcp.errors import InvalidParams
from typedmcp.server.parts import parts_of
from typedmcp.server.results import messages
from typedmcp.server.signatures import BadArgument, Parameter, Signature, name_of
from typedmcp.server.tools import called

if TYPE_CHECKING:
    from typedmcp.context import Context

__all__ = ["Prompt"]

D = dialect.structs


class Prompt:
    """A function as a prompt. The options are those of `Server.prompt`.

    Raises `UsageError` for a function that cannot be one.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        thread: bool = True,
    ) -> None:
        self.name: str = name or name_of(function)
        self.signature: Signature = Signature(function, f"prompt {self.name!r}")
        self._thread = thread
        text = self.signature.described.text if description is None else description
        members = parts_of(f"prompt {self.name!r}", title=title, description=text or None, icons=icons, meta=meta)
        self.spec: D.Prompt = D.Prompt(name=self.name, **members)
        arguments = [_argument(each, self.signature.description_of(each)) for each in self.signature.parameters]
        if arguments:
            self.spec.arguments = arguments

    async def get(self, arguments: Mapping[str, str], ctx: Context) -> Any:
        """Its messages. Raises `InvalidParams` for arguments that the function does not take."""
        try:
            bound = self.signature.bind_texts(arguments)
        except BadArgument as error:
            raise InvalidParams(f"prompt {self.name!r}: {error}") from error
        made = messages(await called(self.signature, bound, ctx, thread=self._thread))
        if isinstance(made, D.GetPromptResult) and isinstance(self.spec.description, str):
            made.description = made.description or self.spec.description
        return made


def _argument(parameter: Parameter, description: str) -> D.PromptArgument:
    made = D.PromptArgument(name=parameter.wire, required=parameter.required)
    if description:
        made.description = description
    return made
