"""Tasks of servers behind a gateway: their ids, questions, changes, and to whom they belong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import typedmcp
from mcpspec.ext.tasks import methods
from tests.cases import each
from tests.helpers import LEGACY, run
from tests.serving import serving_http
from typedmcp import Context, Diagnostic
from typedmcp.revisions.features import MODERN
from typedmcp_extensions.tasks import ClientTasks, ServerTasks, TaskCalls
from typedmcp_gateway import Gateway, filters


class Jobs:
    """A server whose tools run as tasks."""

    def __init__(self, name: str = "jobs", **options: Any) -> None:
        self.go = asyncio.Event()
        self.ends: list[str] = []
        self.name = name
        self.server = typedmcp.Server(name, extensions=[ServerTasks(poll_interval=0.01)])
        self.server.add_tool(self.greet, task="optional")
        self.server.add_tool(self.wait, task="optional")
        self.server.add_tool(self.fail, task="required")
        self.config = typedmcp.ServerConfig(self.server, revisions=[*MODERN], **options)

    async def greet(self, ctx: Context) -> str:
        """Ask for a name."""
        await ctx.progress(1, 2, "asking")
        answer = await ctx.elicit("Your name?", str)
        return f"{self.name}: hello, {answer.data}"

    async def wait(self) -> str:
        """Wait until the test lets it go."""
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        return f"{self.name}: gone"

    async def fail(self) -> str:
        """Fail as a method does."""
        raise typedmcp.RemoteError(-32000, "not today", {"until": "tomorrow"})


async def eventually(is_true: Any) -> None:
    """Wait until something is true. `run` ends a test that waits too long."""
    while not is_true():
        await asyncio.sleep(0.01)


SERVERS = {"one server": ("jobs",), "several servers": ("a", "b", "a:b")}


def gateway_to(*names: str, **options: Any) -> tuple[Gateway, list[str]]:
    """Return a gateway to servers, and the prefixes of their tools."""
    if len(names) == 1:
        return Gateway(Jobs().config, **options), [""]
    servers = {name: Jobs(name).config for name in names}
    return Gateway(servers=servers, **options), [f"{name}_" for name in names]


@each("listen", [False, True], ids=["polled", "listening"])
@each("names", SERVERS.values(), ids=SERVERS)
def test_a_call_waits_for_its_task_and_answers_the_questions_of_the_task(names: tuple[str, ...], listen: bool) -> None:
    states: list[str] = []
    tasks = ClientTasks(listen=listen, on_status=lambda task: states.append(task.status))

    async def main() -> None:
        gateway, prefixes = gateway_to(*names)
        async with typedmcp.connect(gateway, extensions=[tasks], elicit=lambda params: {"value": "Ada"}) as client:
            calls = [client.call_tool(f"{prefix}greet", result_type=str) for prefix in prefixes]
            assert await asyncio.gather(*calls) == [f"{name}: hello, Ada" for name in names]
            with pytest.raises(typedmcp.RemoteError, match="not today") as caught:
                await client.call_tool(f"{prefixes[0]}fail")
            assert caught.value.data == {"until": "tomorrow"}

    run(main())
    assert "input_required" in states


@each("names", SERVERS.values(), ids=SERVERS)
def test_a_task_is_cancelled_at_its_server(names: tuple[str, ...]) -> None:
    jobs = {name: Jobs(name) for name in names}
    single = len(names) == 1

    async def main() -> None:
        gateway = (
            Gateway(jobs[names[0]].config)
            if single
            else Gateway(servers={name: each.config for name, each in jobs.items()})
        )
        async with typedmcp.connect(gateway, extensions=[ClientTasks()]) as client:
            last = names[-1]
            task = await client.extension(TaskCalls).begin("wait" if single else f"{last}_wait")
            assert task.task_id.startswith("" if single else f"{last}:")
            assert (await client.extension(TaskCalls).get(task.task_id)).task_id == task.task_id
            await client.extension(TaskCalls).cancel(task.task_id)
            await eventually(lambda: jobs[last].ends)
            assert (await client.extension(TaskCalls).get(task.task_id)).status == "cancelled"
            assert [each.ends for each in jobs.values()] == [[]] * (len(names) - 1) + [["cancelled"]]

    run(main())


def test_a_client_without_tasks_waits_for_the_result_or_gets_the_error_of_the_server() -> None:
    async def main() -> None:
        async with typedmcp.connect(Jobs().config, elicit=lambda params: {"value": "Ada"}) as direct:
            with pytest.raises(typedmcp.MissingCapabilityError) as expected:
                await direct.call_tool("fail")
        async with typedmcp.connect(gateway_to("jobs")[0], elicit=lambda params: {"value": "Ada"}) as client:
            assert await client.call_tool("greet", result_type=str) == "jobs: hello, Ada"
            with pytest.raises(typedmcp.MissingCapabilityError) as caught:
                await client.call_tool("fail")
            assert (caught.value.code, caught.value.data) == (expected.value.code, expected.value.data)
            with pytest.raises(typedmcp.MissingCapabilityError):
                await client.send("tasks/get", {"taskId": "x"})

    run(main())


@each("revision", LEGACY)
def test_legacy_clients_have_no_tasks(revision: str) -> None:
    async def main() -> None:
        extensions: list[Any] = [ClientTasks(), typedmcp.Extension("com.example/other")]
        async with typedmcp.connect(
            gateway_to("jobs")[0], revisions=[revision], extensions=extensions, elicit=lambda params: {"value": "Ada"}
        ) as client:
            assert "io.modelcontextprotocol/tasks" not in (client.server.capabilities.extensions or {})
            with pytest.raises(typedmcp.MethodNotFoundError):
                await client.send_raw("tasks/get", {"taskId": "x"})

    run(main())


def test_a_call_of_an_older_revision_that_wants_a_task_is_a_usual_call() -> None:
    """The gateway declares no tasks there, and a receiver without them ignores the wish."""

    async def main() -> None:
        server = typedmcp.ServerConfig(Jobs().server, revisions=LEGACY)
        gateway = Gateway(server)
        async with typedmcp.connect(gateway, revisions=LEGACY[:1], elicit=lambda params: {"value": "Ada"}) as client:
            result = await client.send("tools/call", {"name": "greet", "task": {"ttl": 1000}})
            assert result["content"][0]["text"] == "jobs: hello, Ada"

    run(main())


UNKNOWN: dict[str, Any] = {
    "of no server": "c:x", "of none that is named": "x", "empty": "", "of no type": 7, "unknown to its server": "a:x",
}  # fmt: skip


@each("id", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_task_is_an_error(id: Any) -> None:
    async def main() -> None:
        async with typedmcp.connect(gateway_to("a", "b")[0], extensions=[ClientTasks()]) as client:
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                with pytest.raises(typedmcp.InvalidParamsError):
                    await client.send(method, {"taskId": id, "inputResponses": {}})

    run(main())


@each("names", SERVERS.values(), ids=SERVERS)
def test_a_task_belongs_to_the_principal_that_began_it(names: tuple[str, ...]) -> None:
    """The gateway has one identity for all at the server, which cannot tell the principals apart."""
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("ada"), "b": typedmcp.Principal("bob")})

    async def main() -> None:
        gateway, prefixes = gateway_to(*names)
        async with (
            serving_http(gateway.asgi(auth=auth)) as url,
            typedmcp.connect(f"{url}/mcp", auth="a", extensions=[ClientTasks(listen=True)]) as ada,
            typedmcp.connect(f"{url}/mcp", auth="b", extensions=[ClientTasks()]) as bob,
        ):
            task = await ada.extension(TaskCalls).begin(f"{prefixes[-1]}wait")
            own = task.task_id.partition(":")[2]
            for id in (task.task_id, own, f"x:{own}"):
                with pytest.raises(typedmcp.InvalidParamsError):
                    await bob.extension(TaskCalls).get(id)
                async with bob.listen(members={"taskIds": [id]}) as subscription:
                    assert subscription.granted_members == {"taskIds": []}
            with pytest.raises(typedmcp.InvalidParamsError):
                await ada.extension(TaskCalls).get(own)
            assert (await ada.extension(TaskCalls).get(task.task_id)).status == "working"
            await ada.extension(TaskCalls).cancel(task.task_id)

    run(main())


def test_the_key_of_the_gateway_decides_whether_ids_outlive_it() -> None:
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("ada")})
    jobs = Jobs()

    async def get_again(signers: tuple[typedmcp.StateSigner | None, typedmcp.StateSigner | None]) -> str:
        async with serving_http(typedmcp.asgi(jobs.server)) as inner:
            id = status = ""
            for signer in signers:
                app = Gateway(f"{inner}/mcp").asgi(auth=auth, state_signer=signer)
                async with (
                    serving_http(app) as url,
                    typedmcp.connect(f"{url}/mcp", auth="a", extensions=[ClientTasks()]) as client,
                ):
                    id = id or (await client.extension(TaskCalls).begin("wait")).task_id
                    status = (await client.extension(TaskCalls).get(id)).status
        return status

    async def main() -> None:
        key = b"0123456789abcdef"
        assert await get_again((typedmcp.StateSigner(key), typedmcp.StateSigner(key))) == "working"
        with pytest.raises(typedmcp.InvalidParamsError, match="unknown task"):
            await get_again((None, None))

    run(main())


def test_a_header_that_names_another_task_is_rejected() -> None:
    """The gateway checks `Mcp-Name` as the extension demands."""

    async def main() -> None:
        async with (
            serving_http(Gateway(Jobs().config).asgi()) as url,
            typedmcp.connect(f"{url}/mcp", extensions=[typedmcp.Extension(methods.EXTENSION_ID)]) as client,
        ):
            with pytest.raises(typedmcp.HeaderMismatchError, match="Mcp-Name"):
                await client.send("tasks/get", {"taskId": "x"})  # without the header

    run(main())


def test_subscriptions_of_one_client_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_MAX_SUBSCRIPTIONS", 4)
    reports: list[Diagnostic] = []
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("ada"), "b": typedmcp.Principal("bob")})

    async def main() -> None:
        app = Gateway(Jobs().config).asgi(auth=auth, on_diagnostic=reports.append)
        async with (
            serving_http(app) as url,
            typedmcp.connect(f"{url}/mcp", auth="a", extensions=[ClientTasks()]) as ada,
            typedmcp.connect(f"{url}/mcp", auth="b", extensions=[ClientTasks()]) as bob,
        ):
            granted: list[int] = []
            for client in (ada, bob):
                id = (await client.extension(TaskCalls).begin("wait")).task_id
                wanted = [client.listen(members={"taskIds": [id]}) for _ in range(3)]
                for subscription in wanted:
                    await subscription.__aenter__()
                granted.append(sum(each.granted_members["taskIds"] == [id] for each in wanted))
                for subscription in wanted:
                    await subscription.close()
            assert granted == [1, 1]

    run(main())
    assert "the client has 1 (max_connections, client_share_percent)" in reports[0].text
