"""Handlers: a method for each message that a side may receive, Protocols by capability, and stubs."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType, NoneType, SimpleNamespace
from typing import Any, get_args, get_origin

import pytest

import mcpspec
from mcpspec.support.objects import spread_union
from tests.cases import each
from tests.generated.backends import annotations_of
from tests.generated.vectors import has_definition, minimal_value

TASKS = "ext/tasks"
SIDES = ("Server", "Client")


@dataclass(frozen=True)
class Target:
    """The handlers of a version for one backend."""

    version: str
    backend: str

    def module(self, name: str) -> ModuleType:
        folder = "ext.tasks" if self.version == TASKS else f"v{self.version.replace('-', '_')}"
        return import_module(f"mcpspec.{folder}.{'models_' if self.backend == 'models' else ''}{name}")

    @property
    def types(self) -> Any:
        return sys.modules[next(iter(self.module("methods").METHODS.values())).message.__module__]

    @property
    def handlers(self) -> ModuleType:
        return self.module("handlers")

    def received(self, side: str) -> list[Any]:
        """The records of the messages that the other side may send."""
        other = {"Server": "client", "Client": "server"}[side]
        return [r for r in self.module("methods").METHODS.values() if r.sender in (other, "both")]

    def protocols(self, side: str) -> list[Any]:
        """The Protocols of the capabilities of a side."""
        names = [name for name in self.handlers.__all__ if name.startswith(side)]
        return [getattr(self.handlers, name) for name in names if name not in (f"{side}Handler", f"{side}Stub")]

    def __str__(self) -> str:
        return f"{self.version}-{self.backend}"


TARGETS = [Target(version, backend) for version in (*mcpspec.VERSIONS, TASKS) for backend in ("structs", "models")]

each_side = each("target, side", [(target, side) for target in TARGETS for side in SIDES], ids=str)
each_received = each(
    "target, side, method",
    ((target, side, record.name) for target in TARGETS for side in SIDES for record in target.received(side)),
    ids=str,
)


def stub(target: Target, side: str) -> Any:
    return getattr(target.handlers, f"{side}Stub")()


def public_methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def own_methods(kind: type) -> set[str]:
    return {name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")}


def handler_name(target: Target, method: str) -> str:
    return str(target.module("methods").METHODS[method].handler)


# Stubs


@each_received
def test_every_method_of_a_stub_raises_an_error_with_its_name(target: Target, side: str, method: str) -> None:
    refuse = getattr(stub(target, side), handler_name(target, method))
    with pytest.raises(target.handlers.UnimplementedMethodError) as caught:
        refuse(SimpleNamespace(), SimpleNamespace())
    assert caught.value.method == method
    assert caught.value.code == -32601
    assert str(caught.value) == f"method not found: {method}"


@each_side
def test_a_stub_has_a_method_for_each_message_that_it_may_receive(target: Target, side: str) -> None:
    received = {record.handler for record in target.received(side)}
    assert received
    assert public_methods(getattr(target.handlers, f"{side}Stub")) == received


@each_side
def test_a_stub_is_generic_in_the_context(target: Target, side: str) -> None:
    kind = getattr(target.handlers, f"{side}Stub")
    assert get_args(kind[int]) == (int,)
    assert isinstance(kind[int](), kind)


def test_the_stubs_of_all_revisions_and_backends_raise_the_same_error() -> None:
    (kind,) = {target.handlers.UnimplementedMethodError for target in TARGETS}
    assert issubclass(kind, NotImplementedError)


# Protocols


@each_side
def test_the_handler_of_a_side_joins_all_its_capabilities(target: Target, side: str) -> None:
    handler = getattr(target.handlers, f"{side}Handler")
    bases = [get_origin(base) for base in handler.__orig_bases__]
    assert bases[:-1] == target.protocols(side)
    assert public_methods(handler) == {record.handler for record in target.received(side)}


@each_side
def test_no_capability_is_empty_and_none_shares_a_method_with_another(target: Target, side: str) -> None:
    protocols = target.protocols(side)
    assert protocols
    assert all(own_methods(protocol) for protocol in protocols)
    assert sum(len(own_methods(protocol)) for protocol in protocols) == len(target.received(side))


@each_side
def test_protocols_are_generic_in_the_context(target: Target, side: str) -> None:
    for protocol in [*target.protocols(side), getattr(target.handlers, f"{side}Handler")]:
        assert protocol._is_protocol
        assert len(protocol.__parameters__) == 1
        assert protocol.__parameters__[0].__contravariant__
        assert get_args(protocol[int]) == (int,)


@each_side
def test_protocols_cannot_be_instantiated(target: Target, side: str) -> None:
    with pytest.raises(TypeError, match="Protocols cannot be instantiated"):
        getattr(target.handlers, f"{side}Handler")()


def test_isinstance_takes_stubs_and_no_protocols() -> None:
    handlers: Any = mcpspec.v2026_07_28.handlers
    assert isinstance(handlers.ServerStub(), handlers.ServerStub)
    with pytest.raises(TypeError, match="runtime_checkable"):
        isinstance(handlers.ServerStub(), handlers.ServerHandler)


@each_received
def test_stub_and_protocol_agree_on_the_signature(target: Target, side: str, method: str) -> None:
    name = handler_name(target, method)
    signatures = {
        str(inspect.signature(getattr(getattr(target.handlers, f"{side}{kind}"), name))) for kind in ("Handler", "Stub")
    }
    assert len(signatures) == 1


@each_received
def test_a_method_takes_the_parameters_of_its_record_and_a_context_by_position(
    target: Target, side: str, method: str
) -> None:
    record = target.module("methods").METHODS[method]
    signature = inspect.signature(getattr(getattr(target.handlers, f"{side}Handler"), record.handler))
    own, params, ctx = signature.parameters.values()
    assert own.name == "self"
    assert {own.kind, params.kind, ctx.kind} == {inspect.Parameter.POSITIONAL_ONLY}
    annotations = annotations_of(record)
    annotation = annotations[re.sub(r"(?<=[a-z])(?=[A-Z])|/", "_", method).upper()]
    types = (params.annotation, signature.return_annotation.removeprefix("MaybeAwaitable[").removesuffix("]"))
    assert annotation == f"Final[Method[{types[0]}, {types[1]}]]"
    assert ctx.annotation == "ContextT"


@each_received
@each("kind", ["Handler", "Stub"])
def test_the_docstring_of_a_method_names_and_describes_its_message(
    target: Target, side: str, method: str, kind: str
) -> None:
    function = getattr(getattr(target.handlers, f"{side}{kind}"), handler_name(target, method))
    message = target.module("methods").METHODS[method].message
    description = (message.__doc__ or "").partition(" https://")[0].partition("\n")[0]  # without the link
    described = description not in ("", message.__name__)  # a link alone stands after the name
    assert inspect.getdoc(function) == (f"`{method}`: {description}" if described else f"`{method}`")


@each_received
@each("is_async", [False, True])
def test_a_handler_gets_and_returns_the_types_that_its_annotations_name(
    target: Target, side: str, method: str, is_async: bool
) -> None:
    record, types = target.module("methods").METHODS[method], target.types
    stub: Any = getattr(target.handlers, f"{side}Stub")
    annotated: dict[str, Any] = inspect.get_annotations(stub.__dict__[record.handler])
    names: dict[str, Any] = {"structs": types, "models": types, **vars(target.handlers)}
    expected: Any = eval(annotated["params"], names)  # noqa: S307  # our own code
    returned: Any = eval(annotated["return"], names)  # noqa: S307
    params = None
    if record.params is not NoneType:
        params = types.from_builtins(params_of(target, record), record.params)
    seen: list[Any] = []

    def plain(_self: object, params: Any, _ctx: object) -> Any:
        seen.append(params)
        return None if record.result is NoneType else result_of(target, record)

    async def asynchronous(self: object, params: Any, ctx: object) -> Any:
        return plain(self, params, ctx)

    kind = type(f"Mine{side}", (getattr(target.handlers, f"{side}Stub"),), {})
    setattr(kind, record.handler, asynchronous if is_async else plain)
    made = getattr(kind(), record.handler)(params, object())
    result = asyncio.run(made) if is_async else made
    assert seen[0] is None or type(seen[0]) in classes_in(expected)
    assert result is None or type(result) in classes_in(returned)


def result_of(target: Target, record: Any) -> Any:
    """Return a result as the protocol's minimal one, decoded as the type of a record."""
    name = next(kind.__name__ for kind in spread_union(record.result))
    return target.types.from_builtins(value_of(target, name), record.result)


def params_of(target: Target, record: Any) -> Any:
    """Return small parameters of a method."""
    message = value_of(target, record.message.__name__)
    return message.get("params", message)


def value_of(target: Target, name: str) -> Any:
    """Return a small value of a definition: of this revision, or of the newest that has it, or of the extension."""
    if target.version == TASKS and "Task" in name:
        has_task = name.startswith(("GetTaskResult", "TaskStatusNotification"))
        return TASK if has_task else {"taskId": "1", "inputResponses": {}, "resultType": "complete"}
    version = next(v for v in (target.version, *reversed(mcpspec.VERSIONS)) if v != TASKS and has_definition(v, name))
    return json.loads(minimal_value(version, name))


TASK = {
    "taskId": "1", "status": "working", "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
    "ttlMs": None, "resultType": "complete",
}  # fmt: skip


def classes_in(hint: Any) -> list[type]:
    return [get_origin(kind) or kind for kind in spread_union(hint)]


# Names


@each(
    "version, message, name",
    [
        ("2026-07-28", "CallToolRequest", "call_tool"),
        ("2026-07-28", "ListToolsRequest", "list_tools"),
        ("2026-07-28", "ListResourceTemplatesRequest", "list_resource_templates"),
        ("2026-07-28", "ProgressNotification", "progress"),
        ("2026-07-28", "ToolListChangedNotification", "tool_list_changed"),
        ("2026-07-28", "ElicitRequest", "elicit"),
        ("2026-07-28", "CreateMessageRequest", "create_message"),
        ("2026-07-28", "DiscoverRequest", "discover"),
        ("2025-11-25", "GetTaskPayloadRequest", "get_task_payload"),
        ("2024-11-05", "SetLevelRequest", "set_level"),
        ("2024-11-05", "InitializeRequest", "initialize"),
        ("2024-11-05", "PingRequest", "ping"),
        (TASKS, "UpdateTaskRequest", "update_task"),
    ],
)
@each("backend", ["structs", "models"])
def test_a_handler_is_named_after_its_message(version: str, backend: str, message: str, name: str) -> None:
    records = Target(version, backend).module("methods").METHODS.values()
    types = import_module(records_module(version, backend))
    assert [record.handler for record in records if record.message is getattr(types, message)] == [name]


def records_module(version: str, backend: str) -> str:
    return f"mcpspec.{'ext.tasks' if version == TASKS else 'v' + version.replace('-', '_')}.{backend}"


@each(
    "version, side, capabilities",
    [
        ("2024-11-05", "Server", {"Completion", "Core", "Logging", "Prompts", "Resources", "Roots", "Tools"}),
        ("2024-11-05", "Client", {"Core", "Prompts", "Resources", "Roots", "Sampling", "Tools"}),
        ("2026-07-28", "Server", {"Completion", "Core", "Prompts", "Resources", "Subscriptions", "Tools"}),
        (TASKS, "Server", {"Tasks"}),
    ],
)
@each("backend", ["structs", "models"])
def test_capabilities_are_the_first_parts_of_method_names(
    version: str, side: str, capabilities: set[str], backend: str
) -> None:
    found = Target(version, backend).protocols(side)
    assert {protocol.__name__.removeprefix(side) for protocol in found} == capabilities


@each_side
def test_a_method_belongs_to_the_capability_that_its_name_begins_with(target: Target, side: str) -> None:
    for protocol in target.protocols(side):
        capability = protocol.__name__.removeprefix(side).lower()
        for record in target.received(side):
            if record.handler in own_methods(protocol) and capability != "core":
                assert record.name.removeprefix("notifications/").split("/")[0] == capability


# Use


@each("backend", ["structs", "models"])
def test_a_handler_overrides_its_methods_and_rejects_the_others(backend: str) -> None:
    target = Target("2026-07-28", backend)
    types = import_module(f"mcpspec.v2026_07_28.{backend}")
    base: Any = target.handlers.ServerStub

    class Server(base):  # type: ignore[misc]
        def call_tool(self, params: Any, ctx: str, /) -> Any:
            return types.CallToolResult(content=[types.TextContent(text=f"{params} {ctx}")], result_type="complete")

        async def complete(self, params: Any, ctx: str, /) -> Any:
            return f"{params} {ctx}"

    server: Any = Server()
    assert server.call_tool("grep", "me").content[0].text == "grep me"
    assert asyncio.run(server.complete("p", "me")) == "p me"
    with pytest.raises(target.handlers.UnimplementedMethodError, match="tools/list"):
        server.list_tools("p", "me")
