"""Servers made of functions, in sessions of clients with a handshake: what they declare and announce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cases import each
from tests.server.scripted import LEGACY, run, served
from typedmcp import Server

NEWEST = LEGACY[0]

ITEMS: dict[str, Callable[[Server, str], Any]] = {
    "tools": lambda server, name: server.add_tool(lambda: "", name=name),
    "resources": lambda server, name: server.add_resource(lambda: "", f"data://{name}"),
    "prompts": lambda server, name: server.add_prompt(lambda: "", name=name),
}
KINDS = [*ITEMS, "completions"]


def suggest(_ref: Any, _argument: Any) -> list[str]:
    return []


@each("kind", KINDS)
def test_the_handshake_declares_what_the_server_has(kind: str) -> None:
    async def main() -> None:
        server = Server()
        if kind == "completions":
            server.completion(suggest)
        else:
            ITEMS[kind](server, "a")
        async with served(server) as client:
            await client.open(NEWEST)
            assert {*client.opened["capabilities"]} & {*KINDS} == {kind}

    run(main)


@each("kind", ITEMS)
def test_a_changed_list_is_announced_to_the_session(kind: str) -> None:
    async def main() -> None:
        server = Server()
        for add in ITEMS.values():
            add(server, "early")
        async with served(server) as client:
            await client.open(NEWEST)
            assert client.opened["capabilities"][kind]["listChanged"] is True
            await client.settled()  # the session is open
            ITEMS[kind](server, "late")
            assert (await client.receive())["method"] == f"notifications/{kind}/list_changed"
            assert len((await client.result(f"{kind}/list"))[kind]) == 2
            await client.settled()
            assert client.unread() == []

    run(main)


def test_names_differ_by_upper_and_lower_case() -> None:
    async def main() -> None:
        server = Server()
        server.add_tool(lambda: "upper", name="A")
        server.add_tool(lambda: "lower", name="a")
        async with served(server) as client:
            await client.open(NEWEST)
            for name, expected in (("A", "upper"), ("a", "lower")):
                assert (await client.call(name))["content"][0]["text"] == expected

    run(main)
