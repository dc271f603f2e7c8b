"""Sampling: a tool lets the client's model write a product description, and announces changed resources.

The same code works in all revisions. In older ones the tool waits for the response; since 2026-07-28 the client
repeats the call with it. Run `python catalogue.py`.
"""

import asyncio
import sys
from dataclasses import dataclass

import typedmcp
from typedmcp import Context, Server, text_of
from typedmcp.dialect import structs

server = Server("catalogue", version="1.0")
ALL = "catalogue://all"


@dataclass
class Product:
    name: str
    price: float
    description: str


products: list[Product] = []


@server.resource(ALL)
def all_products() -> list[str]:
    """List the names of all products."""
    return [product.name for product in products]


@server.tool
async def add_product(name: str, price: float, ctx: Context) -> Product:
    """Add a product with a generated description."""
    message = await ctx.sample(f"Describe in one sentence: {name}", max_tokens=100)
    # Side effects come after `sample`: the code before it may run more than once.
    product = Product(name, price, text_of(message))
    products.append(product)
    server.add_resource(lambda: product, f"catalogue://product/{len(products)}", name=name)
    server.resource_updated(ALL)
    return product


def model(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    """Stand in for a real model."""
    name = text_of(params.messages).removeprefix("Describe in one sentence: ")
    text = structs.TextContent(text=f"A {name} that you will want to keep.")
    return structs.CreateMessageResult(role="assistant", model="canned", content=text)


async def main(revision: str) -> None:
    command = [sys.executable, __file__, "serve"]
    async with typedmcp.connect(command, revisions=[revision], sample=model) as client:
        print("on", client.revision)
        async with client.listen(resources=True, uris=[ALL]) as changes:
            await client.call_tool("add_product", {"name": "teapot", "price": 24.5})
            for _ in range(2):
                change = await anext(changes)
                print("  changed:", change.kind, change.uri or "list")
        async for resource in client.resources():
            print(f"  {resource.uri}:", text_of(await client.read_resource(resource.uri)))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main("2026-07-28"))
        asyncio.run(main("2025-11-25"))
