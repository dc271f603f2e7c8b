"""Tools that run as tasks, apart from the request that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcpspec.support.handlers import MaybeAwaitable
from typedmcp.app.calls import await_if_needed
from typedmcp.app.content import encode_text
from typedmcp.app.options import ToolOptions
from typedmcp.app.results import ToolResult
from typedmcp.app.tools import Tool
from typedmcp.errors import UsageError
from typedmcp.server.config import TaskSupport
from typedmcp.server.context import Context
from typedmcp.server.extension_setup import OfferedExtension, ToolTask

__all__ = ["TaskTool", "check_task_options"]

_CHOICES = ("optional", "required")
_REMEDY = "Server(…, extensions=[typedmcp_extensions.tasks.ServerTasks()])"


class TaskTool(Tool):
    """A tool with the option `task`: an extension of the server runs it."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self._wish = ToolTask(self.name, options.get("task") == "required", bool(options.get("retry")))
        self.task_support: TaskSupport = "required" if self._wish.is_required else "optional"

    def call(self, arguments: object, ctx: Context) -> MaybeAwaitable[ToolResult]:
        """Return the task that runs the function, or the result for a client without tasks.

        Raises `InsufficientScopeError` before there is a task, so that clients get 403.
        """
        ctx.require_scopes(*self.scopes)
        run = next((each.run_tool for each in ctx.config.extensions if each.run_tool is not None), None)
        if run is not None:
            return run(self._wish, ctx, lambda ctx: self._run(arguments, ctx))
        if self._wish.is_required:  # its server is mounted in one without tasks
            raise UsageError(f"tool {self.name!r}: task needs an extension of the server that is served: {_REMEDY}")
        return super().call(arguments, ctx)

    async def _run(self, arguments: object, ctx: Context) -> ToolResult:
        """Call the function. Its result is encoded apart from a request, so it is tried here."""
        made: ToolResult = await await_if_needed(super().call(arguments, ctx))
        try:
            encode_text(made)
        except ValueError as error:
            return self.reject_result(error, made, ctx)
        return made


def check_task_options(options: ToolOptions, extensions: Sequence[OfferedExtension]) -> None:
    """Raise `UsageError` for options of a tool that make no sense, or that no extension of the server serves."""
    task, name = options.get("task"), options.get("name")
    what = "tool" if name is None else f"tool {name!r}"
    if task not in _CHOICES:
        if task is None:
            raise UsageError(f"{what}: retry is for tasks: set task to 'optional' or 'required'")
        raise UsageError(f"{what}: task must be 'optional' or 'required', not {task!r}")
    if all(each.run_tool is None for each in extensions):
        raise UsageError(f"{what}: task needs an extension of the server: {_REMEDY}")
