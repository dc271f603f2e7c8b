"""Results of extensions: a client reads those of the extensions that it declares, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest

import typedmcp
from mcpspec.ext.tasks import structs as tasks
from mcpspec.ext.tasks.methods import EXTENSION_ID
from tests.cases import each
from tests.client.test_misbehaviour import played
from tests.server.scripted import Json, run
from typedmcp.client import Client
from typedmcp.client.extensions import ExtendedCall
from typedmcp.dialect import methods, structs

TASK: Json = {
    "resultType": "task", "taskId": "1", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": None,
}  # fmt: skip
TASKS = typedmcp.Extension(EXTENSION_ID, results={"tools/call": tasks.CreateTaskResult})
DECLARED: Json = {"extensions": [TASKS]}


class Ticket(msgspec.Struct):
    """The result of an extension of a vendor."""

    number: int
    result_type: Literal["ticket"] = msgspec.field(name="resultType")


async def call(result: Json, send: Any, revision: str = "2026-07-28", **options: Any) -> Any:
    async with played(revision, **options) as (client, script):
        calling = asyncio.create_task(send(client))
        script.send(id=(await script.receive())["id"], result=result)
        return await calling


SENDERS: dict[str, Callable[[Any], Any]] = {
    "call_tool": lambda client: client.call_tool("x"),
    "call_tool with a type": lambda client: client.call_tool("x", result_type=str),
    "send": lambda client: client.send(methods.TOOLS_CALL, {"name": "x"}),
    "send an exact record": lambda client: client.send(methods.TOOLS_CALL.exact, {"name": "x"}),
}


@each("name", SENDERS)
def test_a_client_that_declares_tasks_gets_a_task(name: str) -> None:
    async def main() -> None:
        result = await call(TASK, SENDERS[name], **DECLARED)
        assert type(result) is tasks.CreateTaskResult
        assert (result.task_id, result.status, result.ttl_ms) == ("1", "working", None)

    run(main)


UNKNOWN: dict[str, tuple[Json, Json]] = {
    "an extension that is not declared": (TASK, {}),
    "an extension that is declared without its results": (TASK, {"capabilities": {"extensions": {EXTENSION_ID: {}}}}),
    "another type": ({**TASK, "resultType": "ticket"}, DECLARED),
    "a type that is no string": ({**TASK, "resultType": 1}, DECLARED),
}


@each("name", UNKNOWN)
def test_any_other_result_type_is_invalid(name: str) -> None:
    result, options = UNKNOWN[name]

    async def main() -> None:
        with pytest.raises(typedmcp.ProtocolError, match=r"result\.resultType: "):
            await call(result, SENDERS["call_tool"], **options)

    run(main)


def test_other_methods_do_not_have_the_result() -> None:
    def get_prompt(client: Client) -> Any:
        return client.get_prompt("x")

    async def main() -> None:
        with pytest.raises(typedmcp.ProtocolError, match=r"result\.resultType: "):
            await call(TASK, get_prompt, **DECLARED)

    run(main)


def test_an_invalid_result_of_an_extension_names_the_place() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ProtocolError, match=r"result\.status: "):
            await call({**TASK, "status": "asleep"}, SENDERS["call_tool"], **DECLARED)

    run(main)


def test_an_extension_of_a_vendor_adds_a_result() -> None:
    tickets = typedmcp.Extension("com.example/tickets", results={"tools/call": [Ticket]})

    async def main() -> None:
        result = await call({"resultType": "ticket", "number": 7}, SENDERS["call_tool"], extensions=[tickets])
        assert result == Ticket(number=7, result_type="ticket")

    run(main)


def test_a_function_turns_a_result_of_an_extension_into_that_of_the_call() -> None:
    tickets = typedmcp.ClientExtension(typedmcp.Extension("com.example/tickets", results={"tools/call": Ticket}))

    @tickets.completes(Ticket)
    async def redeem(ticket: Ticket, call: ExtendedCall) -> structs.CallToolResult:
        assert (call.method, call.params.name) == ("tools/call", "x")
        return structs.CallToolResult(content=[structs.TextContent(text=f"number {ticket.number}")])

    async def main() -> None:
        sent = {"resultType": "ticket", "number": 7}
        for name, wanted in {"call_tool with a type": "number 7", "call_tool": "number 7"}.items():
            made = await call(sent, SENDERS[name], extensions=[tickets])
            assert (made if isinstance(made, str) else typedmcp.text_of(made)) == wanted

    run(main)


class NoType(msgspec.Struct):
    """A Struct without a `resultType`."""

    number: int


class Complete(msgspec.Struct):
    """A Struct with a `resultType` of the protocol."""

    result_type: Literal["complete"] = msgspec.field(name="resultType")


@each(
    "kind, fault",
    [
        (NoType, "NoType needs a member resultType with one constant"),
        (Complete, "tools/call has results of the resultType 'complete' already"),
    ],
)
def test_a_type_that_cannot_be_a_result_is_named(kind: Any, fault: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=fault):
        typedmcp.Extension("com.example/x", results={"tools/call": kind})
