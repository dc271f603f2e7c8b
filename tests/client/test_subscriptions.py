"""Subscriptions: changes belong to the request that they name, and a smaller grant is reported."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.cases import each
from tests.client.test_misbehaviour import Script, played
from tests.server.scripted import Json, run
from typedmcp.client import ChangeEvent, Client, Subscription

ID = "io.modelcontextprotocol/subscriptionId"
EVERYTHING: Json = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["a:1", "a:2"]}


async def subscribe(client: Client, script: Script, granted: Json, **asked: Any) -> tuple[Subscription, int]:
    subscription = client.listen(**asked)
    entering = asyncio.create_task(subscription.__aenter__())
    id = (await script.receive())["id"]
    script.send(method="notifications/subscriptions/acknowledged", params={"notifications": granted, "_meta": {ID: id}})
    await entering
    return subscription, id


@each("named", [{}, {"_meta": {}}, {"_meta": {ID: 99}}, {"_meta": {ID: "x"}}, {"_meta": {ID: [1]}}])
def test_a_change_without_the_id_of_a_subscription_is_reported_and_not_delivered(named: Json) -> None:
    async def main() -> None:
        async with played() as (client, script):
            subscription, id = await subscribe(client, script, EVERYTHING, tools=True, prompts=True)
            script.send(method="notifications/tools/list_changed", params=named)
            script.send(method="notifications/prompts/list_changed", params={"_meta": {ID: id}})
            assert await anext(subscription) == ChangeEvent("prompts")
            assert script.kinds() == ["unexpected message"]
            assert script.reports[0].method == "notifications/tools/list_changed"
            await subscription.close()

    run(main)


def test_each_subscription_gets_the_changes_that_name_it() -> None:
    async def main() -> None:
        async with played() as (client, script):
            first, one = await subscribe(client, script, EVERYTHING, tools=True, prompts=True)
            second, two = await subscribe(client, script, EVERYTHING, tools=True, prompts=True)
            script.send(method="notifications/tools/list_changed", params={"_meta": {ID: two}})
            script.send(method="notifications/prompts/list_changed", params={"_meta": {ID: str(one)}})
            assert await anext(first) == ChangeEvent("prompts")
            assert await anext(second) == ChangeEvent("tools")
            assert script.kinds() == []
            await first.close()
            await second.close()

    run(main)


def test_a_change_for_a_subscription_that_was_closed_is_late() -> None:
    async def main() -> None:
        async with played() as (client, script):
            subscription, id = await subscribe(client, script, EVERYTHING, tools=True)
            await subscription.close()
            script.send(method="notifications/tools/list_changed", params={"_meta": {ID: id}})
            await script.settled()
            assert script.kinds() == ["late message"]

    run(main)


def test_a_legacy_server_names_no_subscription() -> None:
    async def main() -> None:
        async with played("2025-06-18") as (client, script), client.listen(tools=True) as changes:
            script.send(method="notifications/tools/list_changed")
            assert await anext(changes) == ChangeEvent("tools")
            assert script.kinds() == []

    run(main)


GRANTS: dict[str, tuple[Json, list[str]]] = {
    "everything": (EVERYTHING, []),
    "more than was asked": ({**EVERYTHING, "resourcesListChanged": True}, []),
    "nothing": ({}, ["prompts", "tools", "a:1", "a:2"]),
    "no prompts": ({**EVERYTHING, "promptsListChanged": False}, ["prompts"]),
    "one resource": ({**EVERYTHING, "resourceSubscriptions": ["a:2", "a:3"]}, ["a:1"]),
}


@each("name", GRANTS)
def test_changes_that_the_server_does_not_grant_are_reported(name: str) -> None:
    granted, missing = GRANTS[name]

    async def main() -> None:
        async with played() as (client, script):
            asked: Json = {"tools": True, "prompts": True, "uris": ["a:1", "a:2"]}
            subscription, id = await subscribe(client, script, granted, **asked)
            assert subscription.not_granted == missing
            found = [(str(report.kind), report.id, report.params) for report in script.reports]
            assert found == ([("not granted", id, missing)] if missing else [])
            await subscription.close()

    run(main)
