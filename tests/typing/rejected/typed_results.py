"""Invalid result types, results used as another type, and arguments that are not objects."""

from __future__ import annotations

from dataclasses import dataclass

import typedmcp
import typedmcp_hosts


@dataclass
class Forecast:
    city: str


async def wrong_types(client: typedmcp.Client) -> None:
    await client.call_tool("x", result_type=3)  # E
    await client.call_tool("x", result_type=Forecast("Oslo"))  # E
    await client.call_tool("x", result_type=Forecast, colour="red")  # E
    await client.call_tool("x", raise_on_error="yes")  # E


async def other_types(client: typedmcp.Client, group: typedmcp_hosts.ClientGroup) -> None:
    forecast = await client.call_tool("x", result_type=Forecast)
    print(forecast.days)  # E
    number: int = await client.call_tool("x", result_type=str)  # E
    numbers: list[int] = await group.call_tool("x", result_type=list[str])  # E
    print(number, numbers)


async def wrong_arguments(client: typedmcp.Client) -> None:
    await client.call_tool("x", 3)  # E
    await client.call_tool("x", ["a"])  # E
    await client.call_tool("x", {1: "a"})  # E


def wrong_types_blocking(client: typedmcp.sync.SyncClient) -> None:
    client.call_tool("x", result_type=3)  # E
    number: int = client.call_tool("x", result_type=str)  # E
    print(number)
