"""Results of extensions: which a handler may return, and to which clients."""

from __future__ import annotations

from typing import Any, TypeAlias

import typedmcp
from mcpspec.ext.tasks import structs as plain_task_structs
from mcpspec.ext.tasks.exact import models as task_models
from mcpspec.ext.tasks.exact import structs as task_structs
from tests.cases import each
from tests.server.scripted import MODERN_REVISION, SUPPORTED, Json, run, served
from typedmcp.dialect import structs

Context: TypeAlias = typedmcp.Context

TASKS = "io.modelcontextprotocol/tasks"
EXTENSION = typedmcp.Extension(TASKS, results={"tools/call": plain_task_structs.CreateTaskResult})
TASK: Json = {
    "resultType": "task", "taskId": "t1", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
    "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": 1000, "_meta": {"own": 1},
}  # fmt: skip


class Deferring:
    """A handler that returns a result of an extension."""

    def __init__(self, result: Any) -> None:
        self.result = result

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        return self.result


RESULTS: dict[str, Any] = {
    "exact": task_structs.from_builtins(TASK, task_structs.CreateTaskResult),
    "plain": plain_task_structs.from_builtins(TASK, plain_task_structs.CreateTaskResult),
    "a model": task_models.from_builtins(TASK, task_models.CreateTaskResult),
    "a dict": TASK,
}


@each("result", RESULTS.values(), ids=RESULTS)
def test_a_result_of_a_declared_extension_is_sent(result: Any) -> None:
    async def main() -> None:
        async with served(Deferring(result), extensions=[EXTENSION]) as client:
            await client.open(MODERN_REVISION, extensions={TASKS: {}})
            sent = await client.result("tools/call", {"name": "x"})
            meta = sent.pop("_meta")
            assert sent == {name: value for name, value in TASK.items() if name != "_meta"}
            assert meta["own"] == 1
            assert "io.modelcontextprotocol/serverInfo" in meta

    run(main)


@each("revision", SUPPORTED)
def test_a_client_that_has_not_declared_the_extension_gets_an_error(revision: str) -> None:
    async def main() -> None:
        async with served(Deferring(TASK), extensions=[EXTENSION]) as client:
            await client.open(revision)
            error = await client.error("tools/call", {"name": "x"})
            assert error["code"] == (-32021 if client.is_modern else -32600)
            assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}

    run(main)


@each("name", ["task", "unheard-of"])
def test_a_result_type_that_no_extension_of_the_server_adds_is_an_internal_error(name: str) -> None:
    async def main() -> None:
        async with served(Deferring({**TASK, "resultType": name})) as client:
            await client.open(MODERN_REVISION, extensions={TASKS: {}})
            assert (await client.error("tools/call", {"name": "x"}))["code"] == -32603
            (report,) = client.of_kind(typedmcp.DiagnosticKind.INTERNAL_ERROR)
            assert f"a result of the type '{name}', which no extension of the server adds" in report.text

    run(main)


def test_a_server_with_extensions_can_be_limited_to_older_revisions() -> None:
    async def main() -> None:
        async with served(Deferring(TASK), extensions=[EXTENSION], revisions=[SUPPORTED[-1]]) as client:
            await client.open(SUPPORTED[-1])
            assert await client.result("ping") == {}

    run(main)
