"""Parameters and results that are not those of the method."""

from __future__ import annotations

from typing import TypeVar

from mcpspec.v2026_07_28 import methods, models, models_methods, structs
from mcpspec.v2026_07_28.methods import Method

P = TypeVar("P")
R = TypeVar("R")


def use(*values: object) -> None:
    """Accept any value, so that expressions are used."""
    assert values


async def send(method: Method[P, R], params: P) -> R:
    raise NotImplementedError(method.name, params)


async def send_wrong_parameters(page: structs.PaginatedRequestParams, call: models.CallToolRequestParams) -> None:
    await send(methods.TOOLS_CALL, page)  # E
    await send(methods.TOOLS_CALL, call)  # E
    await send(methods.TOOLS_CALL, {"name": "grep"})  # E
    await send(methods.TOOLS_CALL, None)  # E
    await send(models_methods.TOOLS_CALL, page)  # E
    await send(models_methods.TOOLS_CALL, call)


async def expect_a_wrong_result(page: structs.PaginatedRequestParams, call: structs.CallToolRequestParams) -> None:
    listed: structs.ListToolsResult = await send(methods.TOOLS_LIST, page)
    prompts: structs.ListPromptsResult = await send(methods.TOOLS_LIST, page)  # E
    called: structs.CallToolResult = await send(methods.TOOLS_CALL, call)  # E
    use(listed, prompts, called)


def change_a_record() -> None:
    methods.TOOLS_CALL.name = "tools/run"  # E
    methods.METHODS["tools/run"] = methods.TOOLS_CALL  # E
