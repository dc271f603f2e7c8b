"""The tasks of a blocking client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from mcpspec.ext.tasks import structs
from typedmcp import CallOptions, Client
from typedmcp.sync import SyncClient
from typedmcp_extensions.tasks.client import TaskCalls
from typedmcp_extensions.tasks.journal import KnownTask

__all__ = ["SyncTaskCalls"]


class SyncTaskCalls:
    """The tasks of a blocking client, with the methods of `TaskCalls`: `SyncTaskCalls(client).resume(id)`.

    Raises `UsageError` if `ClientTasks` is not one of the client's extensions.
    """

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self._calls: TaskCalls = client.async_client.extension(TaskCalls)

    def list(self) -> list[KnownTask]:
        """Return the tasks that were begun, here or by an earlier process with the same journal, and have not ended."""
        return self._calls.list()

    def begin(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]) -> Any:
        """Call a tool without waiting for its task, which `resume` does. Return the task, or the tool's result."""
        return self._client.run(_begin, tool, arguments, **options)

    def get(self, id: str, **options: Unpack[CallOptions]) -> structs.GetTaskResult:
        """Return the state of a task."""
        return self._client.run(_get, id, **options)

    def cancel(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Ask the server to cancel a task, and forget it."""
        self._client.run(_cancel, id, **options)

    def resume(self, id: str, **options: Unpack[CallOptions]) -> Any:
        """Wait for the end of a task, answer its questions, and return its `CallToolResult`."""
        return self._client.run(_resume, id, **options)


async def _begin(
    client: Client, tool: str, arguments: Mapping[str, Any] | None, **options: Unpack[CallOptions]
) -> structs.CreateTaskResult | Any:
    return await client.extension(TaskCalls).begin(tool, arguments, **options)


async def _get(client: Client, id: str, **options: Unpack[CallOptions]) -> structs.GetTaskResult:
    return await client.extension(TaskCalls).get(id, **options)


async def _cancel(client: Client, id: str, **options: Unpack[CallOptions]) -> None:
    await client.extension(TaskCalls).cancel(id, **options)


async def _resume(client: Client, id: str, **options: Unpack[CallOptions]) -> Any:
    return await client.extension(TaskCalls).resume(id, **options)
