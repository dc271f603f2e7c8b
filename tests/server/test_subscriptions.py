"""Subscriptions: what a handler grants, and what a listener gets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typedmcp
from tests.cases import each
from tests.server.scripted import LEGACY, MODERN_REVISION, SUPPORTED, Client, Json, run, served
from typedmcp import RemoteError, Server
from typedmcp.dialect import models, structs
from typedmcp.protocol.meta import SUBSCRIPTION

each_revision = each("revision", SUPPORTED)
each_legacy = each("revision", LEGACY)


async def subscribe(client: Client, *uris: str) -> list[str]:
    """Subscribe to resources as the client's revision does, and return those that the server grants."""
    if client.is_modern:
        client.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": [*uris]}})
        answer: Json = await client.receive()
        granted: list[str] = answer["params"]["notifications"].get("resourceSubscriptions", [])
        return granted
    answers = {uri: await client.request("resources/subscribe", {"uri": uri}) for uri in uris}
    return [uri for uri, answer in answers.items() if "result" in answer]


async def updated(client: Client) -> str:
    """Return the URI of the next update."""
    message: Json = await client.receive()
    assert message["method"] == "notifications/resources/updated"
    uri: str = message["params"]["uri"]
    return uri


class Library:
    """A handler that lets clients subscribe to public books only."""

    def __init__(self, types: Any = structs) -> None:
        self.types = types
        self.asked: list[tuple[str, Any]] = []

    async def read_resource(self, params: Any, ctx: typedmcp.Context) -> structs.ReadResourceResult:
        raise NotImplementedError

    async def authorize_subscriptions(self, params: Any, ctx: typedmcp.Context) -> Any:
        wanted: list[str] = params.notifications.resource_subscriptions or []
        self.asked.append((ctx.method, params))
        # More than the client wants is not granted.
        public = ["book://public/unwanted", *(uri for uri in wanted if uri.startswith("book://public"))]
        return self.types.SubscriptionFilter(resource_subscriptions=public)


@each_revision
@each("types", [structs, models], ids=["structs", "models"])
def test_a_handler_decides_what_a_client_may_subscribe_to(revision: str, types: Any) -> None:
    async def main() -> None:
        changes, handler = typedmcp.Changes(), Library(types)
        codec = "msgspec" if types is structs else "pydantic"
        async with served(handler, changes=changes, codec=codec) as client:
            await client.open(revision)
            assert await subscribe(client, "book://public/a", "book://secret/b") == ["book://public/a"]
            for uri in ("book://secret/b", "book://public/unwanted", "book://public/a"):
                changes.resource_updated(uri)
            assert await updated(client) == "book://public/a"
            await client.settled()
            assert client.unread() == []
        (method, params), *_ = handler.asked
        assert method == ("subscriptions/listen" if revision == MODERN_REVISION else "resources/subscribe")
        assert isinstance(params, types.SubscriptionsListenRequestParams)

    run(main)


def open_server() -> Server:
    server = Server()

    @server.resource("book://{shelf}/{name}")
    def book(shelf: str, name: str) -> str:
        return shelf + name

    return server


@each_revision
def test_without_middleware_a_server_grants_every_resource(revision: str) -> None:
    async def main() -> None:
        async with served(open_server()) as client:
            await client.open(revision)
            assert await subscribe(client, "book://a/b", "book://new") == ["book://a/b", "book://new"]

    run(main)


@each_revision
def test_middleware_is_asked_before_a_subscription_and_left_before_its_first_change(revision: str) -> None:
    server, inside = open_server(), list[str]()

    @server.middleware
    async def only_public(ctx: typedmcp.Context, params: Any, call_next: typedmcp.CallNext) -> Any:
        inside.append(ctx.method)
        try:
            if not isinstance(params, structs.SubscriptionsListenRequestParams):
                return await call_next()
            granted: structs.SubscriptionFilter = await call_next()
            uris = [uri for uri in granted.resource_subscriptions or [] if "secret" not in uri]
            return structs.SubscriptionFilter(resource_subscriptions=uris)
        finally:
            inside.pop()

    async def main() -> None:
        async with served(server) as client:
            await client.open(revision)
            assert await subscribe(client, "book://secret/a", "book://public/b") == ["book://public/b"]
            assert inside == []
            server.resource_updated("book://secret/a")
            server.resource_updated("book://public/b")
            assert await updated(client) == "book://public/b"

    run(main)


@each_revision
def test_middleware_can_reject_a_subscription(revision: str) -> None:
    server = open_server()

    @server.middleware
    async def closed(ctx: typedmcp.Context, params: Any, call_next: typedmcp.CallNext) -> Any:
        raise RemoteError(-1, "not today")

    async def main() -> None:
        async with served(server) as client:
            await client.open(revision)
            if revision == MODERN_REVISION:
                error = await client.error("subscriptions/listen", {"notifications": {}})
            else:
                error = await client.error("resources/subscribe", {"uri": "book://a/b"})
            assert (error["code"], error["message"]) == (-1, "not today")
            server.resource_updated("book://a/b")
            assert client.unread() == []

    run(main)


@each_revision
def test_a_mounted_server_decides_about_its_own_resources(revision: str) -> None:
    outer, inner, owners = open_server(), open_server(), list[Any]()
    outer.mount(inner, "inner")

    @inner.middleware
    async def nothing(ctx: typedmcp.Context, params: Any, call_next: typedmcp.CallNext) -> Any:
        owners.append((ctx.owner, params.notifications.resource_subscriptions))
        return structs.SubscriptionFilter()

    async def main() -> None:
        async with served(outer) as client:
            await client.open(revision)
            assert await subscribe(client, "book://inner/a/b", "book://a/b") == ["book://a/b"]
            assert owners == [(inner, ["book://a/b"])]

    run(main)


@each_legacy
def test_a_resource_that_is_not_granted_looks_like_one_that_does_not_exist(revision: str) -> None:
    async def main() -> None:
        async with served(Library()) as client:
            await client.open(revision)
            error = await client.error("resources/subscribe", {"uri": "book://secret"})
            assert (error["code"], error["message"]) == (-32002, "resource not found: book://secret")

    run(main)


def test_every_message_to_a_listener_has_the_id_of_its_subscription() -> None:
    async def main() -> None:
        server = open_server()
        async with served(server) as client:
            id = client.start("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
            acknowledged = await client.receive()
            server.changes.resources_changed()
            changed = await client.receive()
            client.connection.stop()
            cancelled, result = await client.receive(), await client.receive()
            assert cancelled["method"] == "notifications/cancelled"
            for message in (acknowledged["params"], changed["params"], cancelled["params"], result["result"]):
                assert message["_meta"][SUBSCRIPTION] == id

    run(main)


def test_a_request_is_answered_while_many_listeners_are_notified() -> None:
    count = 500

    async def main() -> None:
        server = open_server()
        async with served(server) as client:
            wanted = {"notifications": {"resourcesListChanged": True}}
            ids = [client.start("subscriptions/listen", wanted) for _ in range(count)]
            for _ in ids:
                await client.receive()
            server.changes.resources_changed()
            server.changes.resources_changed()  # before most listeners have got the first one, which is enough for them
            asked = client.start("server/discover")
            seen = [await client.receive() for _ in range(count + 1)]
            await client.settled()
            notified = Counter(
                each["params"]["_meta"][SUBSCRIPTION] for each in [*seen, *client.unread()] if "method" in each
            )
            assert seen.index(next(each for each in seen if each.get("id") == asked)) < count // 2
            assert {*notified} == {*ids}
            assert notified.total() < count + 50

    run(main)
