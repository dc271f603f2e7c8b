"""A catalogue of products, whose descriptions are written by the client's own model.

The tool `add_product` asks that model within the call (sampling), adds a resource, and says that another has changed.
The same code serves revisions where the client is asked while the tool waits, and those where the call is made again
with the answer. Run `python catalogue.py`.
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
    """The names of all products."""
    return [product.name for product in products]


@server.tool
async def add_product(name: str, price: float, ctx: Context) -> Product:
    """Add a product. Its description is written for it."""
    answer = await ctx.sample(f"Describe in one sentence: {name}", max_tokens=100)
    # What has effects comes after the last question: up to there, a call may be made more than once.
    product = Product(name, price, text_of(answer))
    products.append(product)
    server.add_resource(lambda: product, f"catalogue://product/{len(products)}", name=name)
    server.resource_updated(ALL)
    return product


def model(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    """Stands for a real model."""
    thing = text_of(params.messages).removeprefix("Describe in one sentence: ")
    text = structs.TextContent(text=f"A {thing} that you will want to keep.")
    return structs.CreateMessageResult(role="assistant", model="canned", content=text)


async def main(revision: str) -> None:
    command = [sys.executable, __file__, "serve"]
    async with typedmcp.connect(command, revisions=[revision], sample=model) as client:
        print("on", client.revision)
        async with client.listen(resources=True, uris=[ALL]) as changes:
            await client.call_tool("add_product", {"name": "teapot", "price": 24.5})
            for _ in range(2):
                changed = await anext(changes)
                print("  changed:", changed.kind, changed.uri or "list")
        async for resource in client.resources():
            print(f"  {resource.uri}:", text_of(await client.read_resource(resource.uri)))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main("2026-07-28"))
        asyncio.run(main("2025-11-25"))
