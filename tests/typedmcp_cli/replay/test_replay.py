"""A recording answers clients of every revision, and shows what a server answers otherwise."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

import typedmcp
import typedmcp_cli
from tests.cases import each
from tests.growth import growth
from typedmcp import Context
from typedmcp.server.config import ServerConfig
from typedmcp_cli.recording.reader import read_recording
from typedmcp_cli.replay import ReplayDifference, ReplayHandler, compare_with_server, replay_server

NEWEST, OLDER, OLDEST_WITH_FORMS = "2026-07-28", "2025-11-25", "2025-06-18"
REVISIONS = [OLDEST_WITH_FORMS, OLDER, NEWEST]


def make_server(greeting: str = "Hello") -> typedmcp.Server:
    server = typedmcp.Server("accounts", version="3.1", instructions="Ask politely.")
    numbers = iter(range(100))

    @server.tool
    async def greet(name: str, password: str = "") -> str:
        """Greet a person."""
        return f"{greeting}, {name}! {password}"

    @server.tool
    async def next_number() -> int:
        return next(numbers)

    @server.tool
    async def steps(ctx: Context) -> dict[str, int]:
        for done in range(3):
            await ctx.progress(done, 3, f"step {done}")
        await ctx.warning("nearly done")
        return {"steps": 3}

    @server.tool
    async def introduce(ctx: Context) -> str:
        await ctx.progress(1)
        name = await ctx.elicit("Your name?", str)
        await ctx.progress(2)
        poem = await ctx.sample(f"A poem about {name.data}")
        return f"{name.data}: {typedmcp.text_of(poem)}"

    @server.tool
    async def publish(ctx: Context) -> str:
        ctx.changes.resource_updated("data://news")
        return "published"

    @server.resource("data://news")
    def news() -> str:
        return "nothing new"

    @server.prompt
    def pack(city: str) -> str:
        return f"What do I need in {city}?"

    return server


async def use(target: Any, revision: str, **options: Any) -> dict[str, Any]:
    """Use every feature, and return what the client observed."""
    heard: list[Any] = []

    def fill(params: Any) -> dict[str, Any]:
        heard.append(params.message)
        return dict.fromkeys(params.requested_schema["properties"], "Ada")

    async with typedmcp.connect(
        target,
        revisions=[revision],
        elicit=fill,
        sample=lambda _params: "Roses are red.",
        on_log=lambda message: heard.append([message.level, message.data]),
        **options,
    ) as client:

        def on_progress(params: Any) -> None:
            heard.append([params.progress, params.total, params.message])

        seen: dict[str, Any] = {
            "server": [client.server.info, client.server.instructions],
            "tools": [tool async for tool in client.tools()],
            "greeting": typedmcp.text_of(await client.call_tool("greet", {"name": "Ada"})),
            "numbers": [(await client.call_tool("next_number")).structured_content for _ in range(3)],
            "steps": (await client.call_tool("steps", on_progress=on_progress)).structured_content,
            "introduction": typedmcp.text_of(await client.call_tool("introduce", on_progress=on_progress)),
            "news": (await client.read_resource("data://news")).contents,
            "prompt": (await client.get_prompt("pack", {"city": "Oslo"})).messages,
        }
        async with client.listen(uris=["data://news"]) as subscription:
            await client.call_tool("publish")
            seen["change"] = (await asyncio.wait_for(anext(subscription), 60)).uri
        with pytest.raises(typedmcp.RemoteError) as error:
            await client.call_tool("nothing")
        seen["error"] = [error.value.code, error.value.message]
    return {**seen, "heard": heard}


async def _replays(recorded: str, replayed: str, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    expected = await use(make_server(), recorded, record=typedmcp_cli.Recorder(file))
    config = replay_server(file)
    found = await use(config, replayed)
    if {recorded, replayed} & {OLDEST_WITH_FORMS} and recorded != replayed:
        hide_what_a_revision_lacks(expected, found)
    if recorded == NEWEST != replayed:  # each attempt began its progress anew, which one request may not
        del expected["heard"][7:], found["heard"][7:]
        expected["heard"][6] = [2, None, None]
    assert found == expected
    handler = cast(ReplayHandler, config.handler)
    assert handler.problems == []
    assert handler.unused == []


def hide_what_a_revision_lacks(*seen: dict[str, Any]) -> None:
    """Leave out what one of the revisions cannot express."""
    for one in seen:
        one["tools"] = [tool.name for tool in one["tools"]]


@each("recorded", REVISIONS)
@each("replayed", REVISIONS)
def test_a_client_of_any_revision_sees_what_the_recorded_one_saw(recorded: str, replayed: str, tmp_path: Path) -> None:
    asyncio.run(_replays(recorded, replayed, tmp_path))


def record(file: Path, *calls: tuple[str, dict[str, Any]], server: Any = None, **options: Any) -> Path:
    async def main() -> None:
        async with typedmcp.connect(server or make_server(), record=typedmcp_cli.Recorder(file), **options) as client:
            for name, arguments in calls:
                await client.call_tool(name, arguments)

    asyncio.run(main())
    return file


def replayed_error(config: ServerConfig, name: str, arguments: dict[str, Any]) -> str:
    async def main() -> str:
        async with typedmcp.connect(config) as client:
            with pytest.raises(typedmcp.RemoteError) as error:
                await client.call_tool(name, arguments)
            return error.value.message

    return asyncio.run(main())


def test_a_request_that_was_not_recorded_is_an_error_with_the_recorded_ones(tmp_path: Path) -> None:
    config = replay_server(record(tmp_path / "a.jsonl", ("greet", {"name": "Ada"})))
    text = replayed_error(config, "greet", {"name": "Bob\x1b[31m"})
    assert text.startswith("a.jsonl has no tools/call with ")
    assert '"Bob\\u001b[31m"' in text
    assert '"Ada"' in text
    (problem,) = cast(ReplayHandler, config.handler).problems
    assert problem.endswith("Record it again if the client has changed")


def test_a_masked_argument_matches_any_value(tmp_path: Path) -> None:
    file = record(tmp_path / "a.jsonl", ("greet", {"name": "Ada", "password": "correct horse"}))

    async def main() -> None:
        async with typedmcp.connect(replay_server(file)) as client:
            result = await client.call_tool("greet", {"name": "Ada", "password": "another one"})
            assert typedmcp.text_of(result) == "Hello, Ada! [masked]"

    asyncio.run(main())


def test_the_last_response_is_repeated_after_all_were_replayed(tmp_path: Path) -> None:
    file = record(tmp_path / "a.jsonl", ("next_number", {}), ("next_number", {}))

    async def main() -> None:
        async with typedmcp.connect(replay_server(file)) as client:
            numbers = [(await client.call_tool("next_number")).structured_content for _ in range(4)]
            assert numbers == [{"result": 0}, {"result": 1}, {"result": 1}, {"result": 1}]

    asyncio.run(main())


def test_another_answer_to_a_question_is_a_problem_and_not_an_error(tmp_path: Path) -> None:
    def answering(name: str) -> dict[str, Any]:
        def fill(params: Any) -> dict[str, str]:
            return dict.fromkeys(params.requested_schema["properties"], name)

        def sample(params: Any) -> str:
            return "x"

        return {"elicit": fill, "sample": sample}

    file = record(tmp_path / "a.jsonl", ("introduce", {}), **answering("Ada"))

    async def main() -> None:
        config = replay_server(file)
        async with typedmcp.connect(config, **answering("Bob")) as client:
            assert typedmcp.text_of(await client.call_tool("introduce")) == "Ada: x"
        (problem,) = cast(ReplayHandler, config.handler).problems
        assert '"Bob"' in problem
        assert '"Ada"' in problem

    asyncio.run(main())


def test_a_list_that_was_not_recorded_is_empty(tmp_path: Path) -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server(), record=typedmcp_cli.Recorder(tmp_path / "a.jsonl")) as client:
            await client.read_resource("data://news")
        async with typedmcp.connect(replay_server(tmp_path / "a.jsonl")) as client:
            assert [tool async for tool in client.tools()] == []

    asyncio.run(main())


def test_a_recording_that_ends_in_a_call_says_so(tmp_path: Path) -> None:
    file = record(tmp_path / "a.jsonl", ("greet", {"name": "Ada"}))
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]))
    assert replayed_error(replay_server(file), "greet", {"name": "Ada"}).endswith(
        'no response to tools/call "greet" is recorded'
    )


@each(
    "content, fault",
    [
        ("", "no request of a client is recorded there"),
        ("{}", ":1: not a line of a recording: Object missing required field"),
        ("\n[[", ":2: not a line of a recording"),
        ('{"sender": "client", "revision": "1999-01-01", "message": null}', ':1: unknown revision "1999-01-01"'),
        ('{"sender": "proxy", "revision": "2026-07-28", "message": null}', ":1: not a line of a recording"),
    ],
)
def test_a_file_that_is_no_recording_is_an_error_with_its_line(content: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(typedmcp.UsageError) as error:
        replay_server(tmp_path / "a.jsonl")
    assert fault in str(error.value)


def test_strange_messages_of_a_recording_do_no_harm(tmp_path: Path) -> None:
    file = record(tmp_path / "a.jsonl", ("greet", {"name": "Ada"}))
    strange: list[Any] = [
        None, [], [1, None], {}, {"method": 3}, {"method": "tools/call", "id": [1]}, {"id": {}, "result": 4},
        {"method": "notifications/progress", "params": {"progressToken": {}}}, {"id": 1, "error": []},
        {"method": "notifications/cancelled", "params": {"requestId": []}}, {"method": "x", "id": 9, "params": 3},
        {"id": 9, "result": {"resultType": "input_required", "inputRequests": [1]}}, {"id": 10, "method": ["x"]},
        {"id": 11, "method": "tools/call", "params": {"name": "ask"}},
        {"id": 11, "result": {"resultType": "input_required", "inputRequests": {"a": {"method": {}}, "b": 1}}},
    ]  # fmt: skip
    lines = [
        json.dumps({"sender": sender, "revision": NEWEST, "message": message})
        for message in strange
        for sender in ("client", "server")
    ]
    file.write_text("\n".join([*lines, file.read_text()]))
    config = replay_server(file)
    assert {"array", "object", "1"} <= read_recording(file).skipped.keys()

    async def main() -> None:
        async with typedmcp.connect(config) as client:
            assert typedmcp.text_of(await client.call_tool("greet", {"name": "Ada"})) == "Hello, Ada! "

    asyncio.run(main())


def test_reading_takes_a_time_in_proportion_to_the_recording(tmp_path: Path) -> None:
    asked: Any = {"resultType": "input_required", "requestState": "", "inputRequests": {}}

    def read_many(text: str) -> None:
        """Read as many requests as the text has characters, all open while the server notifies, and then repeated."""
        numbers, file = range(len(text)), tmp_path / f"{len(text)}.jsonl"
        if not file.exists():
            call: Any = {"method": "tools/call"}
            lines: list[tuple[str, Any]] = [
                *[("client", {**call, "id": n, "params": {"name": str(n)}}) for n in numbers],
                *[("server", {"method": "notifications/message", "params": {}}) for _ in numbers],
                *[("server", {"id": n, "result": asked}) for n in numbers],
                *[
                    ("client", {**call, "id": -n - 1, "params": {"name": str(n), "requestState": ""}})
                    for n in reversed(numbers)
                ],
            ]
            file.write_text(
                "".join(json.dumps({"sender": who, "revision": NEWEST, "message": each}) + "\n" for who, each in lines)
            )
        assert len(read_recording(file).exchanges) == len(text)

    assert growth(read_many, "x", characters=100, times=20) < 5


def differences(file: Path, server: Any, **options: Any) -> list[ReplayDifference]:
    async def main() -> list[ReplayDifference]:
        recording = read_recording(file)
        compared = compare_with_server(recording, lambda answers: typedmcp.connect(server, **answers), **options)
        return [each async for _, found in compared for each in found]

    return asyncio.run(main())


@each("recorded", REVISIONS)
def test_a_server_that_has_not_changed_responds_as_recorded_on_any_revision(recorded: str, tmp_path: Path) -> None:
    asyncio.run(use(make_server(), recorded, record=typedmcp_cli.Recorder(tmp_path / "a.jsonl")))
    found = differences(tmp_path / "a.jsonl", make_server())
    if recorded == OLDEST_WITH_FORMS:  # it has no output schemas of other types than objects
        found = [each for each in found if each.request == "tools/call"]
    assert found == []


def test_a_changed_response_is_shown_with_its_place(tmp_path: Path) -> None:
    file = record(tmp_path / "a.jsonl", ("greet", {"name": "Ada"}), ("next_number", {}))
    found = differences(file, make_server("Goodbye"))
    text = 'tools/call "greet": result.content[0].text: "Hello, Ada! " => "Goodbye, Ada! "'
    assert text in [str(each) for each in found]
    assert {each.line for each in found} == {next(each.line for each in found)}
    assert differences(file, make_server("Goodbye"), ignore=["text", "structuredContent"]) == []


def decline(params: Any) -> None:
    """Answer no question."""


def test_a_question_that_was_not_recorded_is_a_difference(tmp_path: Path) -> None:
    server, asking = typedmcp.Server("a"), typedmcp.Server("a")

    @server.tool(name="order")
    async def order() -> str:
        return "tea"

    @asking.tool(name="order")
    async def order_asking(ctx: Context) -> str:
        return str((await ctx.elicit("Which tea?", str)).data)

    file = record(tmp_path / "a.jsonl", ("order", {}), server=server, elicit=decline)
    found = [str(each) for each in differences(file, asking)]
    assert any("question elicitation/create: nothing" in text or "Which tea?" in text for text in found)
