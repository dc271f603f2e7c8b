"""Mistakes with plain types: misspelt members, unchecked cases, absence, results of other methods."""

from __future__ import annotations

from typing import Any, TypeVar, assert_never

from mcpspec.v2026_07_28 import methods, models, models_methods, structs
from mcpspec.v2026_07_28.methods import Method

P = TypeVar("P")
R = TypeVar("R")


def use(*values: object) -> None:
    """Accept any value, so that expressions are used."""
    assert values


async def send(method: Method[P, R], params: P) -> R:
    raise NotImplementedError(method.name, params)


def misspell_an_argument(schema: dict[str, Any]) -> None:
    structs.Tool(name="x", input_schema=schema, titel="X")  # E
    structs.Tool(name="x", inputSchema=schema)  # E
    models.Tool(name="x", input_schema=schema, titel="X")  # E
    models.Tool(name="x", inputSchema=schema)  # E


def misspell_an_attribute(tool: structs.Tool, model: models.Tool, result: structs.Result) -> None:
    tool.titel = "X"  # E
    model.titel = "X"  # E
    result.results_type = "complete"  # E
    use(tool.titel)  # E
    use(model.titel)  # E


def give_another_type(schema: dict[str, Any]) -> None:
    structs.Tool(name=1, input_schema=schema)  # E
    structs.Tool(name="x", input_schema=[])  # E
    structs.TextContent(type="image", text="x")  # E
    models.Tool(name=1, input_schema=schema)  # E
    models.Tool(name="x", input_schema=[])  # E
    models.TextContent(type="image", text="x")  # E


def use_what_may_be_none(tool: structs.Tool, model: models.Tool) -> None:
    use(tool.title.upper())  # E
    use(model.title.upper())  # E
    title: str = tool.title  # E
    use(title)


def forget_a_case(block: structs.ContentBlock, model: models.ContentBlock, request: structs.ClientRequest) -> None:
    match block:
        case structs.TextContent() | structs.ImageContent() | structs.AudioContent() | structs.ResourceLink():
            pass
        case _:
            assert_never(block)  # E
    match model.type:
        case "text" | "image" | "audio" | "resource_link":
            pass
        case _:
            assert_never(model)  # E
    match request:
        case structs.CallToolRequest():
            pass
        case _:
            assert_never(request)  # E


async def expect_another_result(page: structs.PaginatedRequestParams, model: models.PaginatedRequestParams) -> None:
    await send(methods.TOOLS_CALL, page)  # E
    prompts: structs.ListPromptsResult = await send(methods.TOOLS_LIST, page)  # E
    model_prompts: models.ListPromptsResult = await send(models_methods.TOOLS_LIST, model)  # E
    use(prompts, model_prompts)


def validate_as_another_type(tool: structs.Tool, raw: bytes) -> None:
    prompt: structs.Prompt = structs.validate(tool)  # E
    text: structs.TextContent = structs.decode(raw, structs.ContentBlock)  # E
    use(prompt, text)
