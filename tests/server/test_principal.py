"""Principals are told apart by issuer and subject, and handlers ask for scopes."""

from __future__ import annotations

import asyncio
import itertools

import pytest

import typedmcp
from tests.cases import each
from typedmcp import Context, InsufficientScopeError, Principal
from typedmcp.server.connection import ServerConnection


def test_principals_of_different_issuers_have_different_keys() -> None:
    principals = [
        Principal("ada"),
        Principal("ada", issuer="https://a.test"),
        Principal("ada", issuer="https://b.test"),
        Principal("https://a.test ada"),
        Principal(" ada"),
        Principal("", issuer="ada"),
        Principal("x ada", issuer="https://a.test"),
    ]
    for one, other in itertools.combinations(principals, 2):
        assert one.key != other.key


def test_a_principal_has_the_same_key_with_another_token() -> None:
    first = Principal("ada", frozenset(["read"]), 1.0, "https://a.test", "app", {"jti": "1"})
    second = Principal("ada", frozenset(["write"]), 2.0, "https://a.test", "other", {"jti": "2"})
    assert first.key == second.key


def test_the_text_of_a_principal_has_no_claims() -> None:
    assert repr(Principal("ada", claims={"email": "ada@home.test"})) == "Principal('ada', issuer=None, scopes=[])"


def test_a_client_without_http_passes_a_check_for_scopes() -> None:
    server = typedmcp.Server()

    @server.tool
    async def write(ctx: Context) -> bool:
        ctx.require_scopes("files:write")
        return ctx.has_scopes("files:write")

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            assert await client.call_tool("write", result_type=bool)

    asyncio.run(asyncio.wait_for(main(), 60))


@each("scopes, allowed", [(frozenset(["files:write", "x"]), True), (frozenset(["x"]), False)])
def test_a_handler_can_require_scopes(scopes: frozenset[str], allowed: bool) -> None:
    server = typedmcp.Server()
    seen: list[object] = []

    @server.tool
    async def write(ctx: Context) -> None:
        seen.append(ctx.principal)
        ctx.require_scopes("files:write", "x")

    async def main() -> None:
        ada = Principal("ada", scopes)
        ends = typedmcp.memory_pair()
        connection = ServerConnection(typedmcp.ServerConfig(server), ends[0], principal=ada)
        serving = asyncio.create_task(connection.run())
        async with typedmcp.connect(ends[1]) as client:
            if allowed:
                await client.call_tool("write")
            else:
                with pytest.raises(InsufficientScopeError, match="required scopes: files:write x"):
                    await client.call_tool("write")
        connection.stop()
        await serving
        assert seen == [ada]

    asyncio.run(asyncio.wait_for(main(), 60))
