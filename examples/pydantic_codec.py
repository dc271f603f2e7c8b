"""A handler whose parameters and results are Pydantic models.

Run `python pydantic_codec.py`. Needs the extra `pydantic`.
"""

import asyncio
import sys
from typing import Any

from pydantic import BaseModel, Field, ValidationError

import typedmcp
from typedmcp import Context, text_of
from typedmcp.dialect import models, models_handlers


class Order(BaseModel):
    """The arguments of the tool."""

    item: str = Field(min_length=1)
    number: int = Field(default=1, ge=1, le=100)


ORDER = models.Tool(
    name="order",
    description="Order something.",
    input_schema=Order.model_json_schema(),
)


class Shop(models_handlers.ServerStub[Context]):
    async def list_tools(self, params: models.PaginatedRequestParams, ctx: Context) -> models.ListToolsResult:
        return models.ListToolsResult(tools=[ORDER], ttl_ms=60_000, cache_scope="public")

    async def call_tool(self, params: models.CallToolRequestParams, ctx: Context) -> models.CallToolResult:
        try:
            order = Order.model_validate(params.arguments)
        except ValidationError as error:
            return text_result(f"{error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}", is_error=True)
        return text_result(f"{order.number} × {order.item}", structured_content=order.model_dump())


def text_result(text: str, **members: Any) -> models.CallToolResult:
    content = models.TextContent(type="text", text=text)
    return models.CallToolResult(content=[content], **members)


async def main() -> None:
    async with typedmcp.connect([sys.executable, __file__, "serve"]) as client:
        async for tool in client.tools():
            print(f"{tool.name}:", *tool.input_schema["properties"])
        print(text_of(await client.call_tool("order", {"item": "pen", "number": 12})))
        print(text_of(await client.call_tool("order", {"item": "pen", "number": 1000})))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        typedmcp.serve(Shop(), name="shop", version="1.0", codec="pydantic")
    else:
        asyncio.run(main())
