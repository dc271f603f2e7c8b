"""Access of clients to tasks: the owner of a task, and the tasks that a request may use."""

from __future__ import annotations

import hashlib

from typedmcp import Context
from typedmcp.errors import INTERNAL_ERROR, InvalidParamsError, RemoteError, UsageError
from typedmcp_extensions.tasks.engine import TaskEngine
from typedmcp_extensions.tasks.store import TaskRecord

__all__ = ["TaskAccess", "owner_of", "unreachable"]

_SESSION = "\0session "
"""The beginning of the owner that is a session. No principal has such a key."""


class TaskAccess:
    """The tasks of a server, as its requests may use them. `key` is the extension whose lifespan yields the engine."""

    def __init__(self, key: object) -> None:
        self._key = key

    def engine(self, ctx: Context) -> TaskEngine:
        """Return the engine of the tasks. Raises `UsageError` if the server that is served has none."""
        engine: TaskEngine | None = ctx.state_of(self._key)
        if engine is None:
            raise UsageError("the server that is served does not have this ServerTasks among its extensions")
        return engine

    async def load(self, id: str, ctx: Context) -> TaskRecord:
        """Return a task of the client. Raises `InvalidParamsError` for one that it does not have."""
        try:
            record = await self.engine(ctx).store.load(id)
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        if record is None or record.owner != owner_of(ctx):
            raise InvalidParamsError("unknown task: it never was, or it was deleted", {"path": "params.taskId"})
        return record


def owner_of(ctx: Context) -> str | None:
    """Return the owner of the tasks that a request begins or uses: its principal, or its legacy session.

    Requests without both have no owner: the id of a task is enough for them, which nobody can guess.
    """
    if ctx.principal is not None:
        return ctx.principal.key
    if ctx.is_modern or ctx.session_id is None:
        return None
    return _SESSION + hashlib.sha256(ctx.session_id.encode()).hexdigest()


def unreachable(ctx: Context, error: ConnectionError) -> RemoteError:
    """Return the error for a client while the store cannot be reached, which is reported."""
    ctx.report("the store of tasks cannot be reached", error)
    return RemoteError(INTERNAL_ERROR, "the tasks cannot be reached: try again later")
