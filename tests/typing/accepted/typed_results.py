"""`call_tool` returns the result, or `result_type`; and accepts several types of arguments."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, assert_type

import msgspec
import pydantic

import typedmcp
import typedmcp_hosts
from typedmcp.dialect import structs


@dataclass
class Forecast:
    city: str


class AsDict(TypedDict):
    city: str


class AsStruct(msgspec.Struct):
    city: str


class AsModel(pydantic.BaseModel):
    city: str


async def typed(client: typedmcp.Client, kind: type[Forecast]) -> None:
    assert_type(await client.call_tool("x", result_type=Forecast), Forecast)
    assert_type(await client.call_tool("x", {"a": 1}, result_type=AsDict, timeout=1), AsDict)
    assert_type(await client.call_tool("x", result_type=AsStruct), AsStruct)
    assert_type(await client.call_tool("x", result_type=AsModel), AsModel)
    assert_type(await client.call_tool("x", result_type=kind), Forecast)
    assert_type(await client.call_tool("x", result_type=str), str)
    assert_type(await client.call_tool("x", result_type=list[Forecast]), list[Forecast])
    assert_type(await client.call_tool("x", result_type=dict[str, int]), dict[str, int])
    assert_type(await client.call_tool("x", result_type=Forecast | None), Forecast | None)
    assert_type(await client.call_tool("x", result_type=int | str), int | str)
    assert_type(await client.call_tool("x", result_type=Literal["a", "b"]), Literal["a", "b"])
    assert_type(await client.call_tool("x", result_type=Annotated[int, "a note"]), int)
    assert_type(await client.call_tool("x", result_type=Any), Any)
    assert_type(await client.call_tool("x", raise_on_error=True), structs.CallToolResult)
    assert_type(await client.call_tool("x", result_type=None), structs.CallToolResult)


async def arguments(client: typedmcp.Client, mapping: Mapping[str, int], as_dict: AsDict) -> None:
    await client.call_tool("x", mapping)
    await client.call_tool("x", as_dict)
    await client.call_tool("x", Forecast("Oslo"))
    await client.call_tool("x", AsStruct("Oslo"))
    await client.call_tool("x", AsModel(city="Oslo"))


async def together(group: typedmcp_hosts.ClientGroup) -> None:
    assert_type(await group.call_tool("a_x", Forecast("Oslo"), result_type=list[int]), list[int])
    assert_type(await group.call_tool("a_x"), structs.CallToolResult)
    assert_type(await group.list_tools(), list[structs.Tool])
    assert_type(group.tools(), AsyncIterator[structs.Tool])
    assert_type(group.clients, Mapping[str, typedmcp.Client])


def blocking(client: typedmcp.sync.SyncClient) -> None:
    assert_type(client.call_tool("x", result_type=Forecast), Forecast)
    assert_type(client.call_tool("x", Forecast("Oslo"), result_type=int | None, timeout=1), int | None)
    assert_type(client.call_tool("x", raise_on_error=True), structs.CallToolResult)
