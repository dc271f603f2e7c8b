"""Use of a server as the environment variable PLAN says: it prints what the official Python client saw, by case.

    python python_plan.py modern|legacy stdio COMMAND [ARGUMENT …]
    python python_plan.py modern|legacy http|sse URL

It runs in an environment of its own, with `mcp` 1.x or 2.x. `tests/interop/crossing.py` makes the plans, and
`typescript_plan.mjs` does the same with the official TypeScript client.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

scenario: Any = importlib.import_module("python_client")  # by name: it is beside this script
plain, types, refused = scenario.plain, scenario.types, scenario.refused

Plan = dict[str, Any]
Case = Callable[[Any, Plan], Awaitable[Any]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__.replace("_", " ").strip()] = function
    return function


async def items(function: Any, member: str, name: str) -> list[str]:
    """Return a member of all items of a list, from all its pages."""
    page = plain(await function())
    found = [item[name] for item in page[member]]
    while page.get("nextCursor"):
        page = plain(await function(cursor=page["nextCursor"]))
        found += [item[name] for item in page[member]]
    return found


async def use(peer: Any, step: Plan, **options: Any) -> Plan:
    """Return the result of a tool, or its error, with what the client was asked."""
    peer.asked.clear()
    got = await refused(lambda: peer.call(step["tool"], step["arguments"], **options))
    return {**got, "asked": list(peer.asked)}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(500):
        if await holds():
            return
        await asyncio.sleep(0.02)


@case
async def list_(peer: Any, _step: Plan) -> Plan:
    session = peer.session
    return {
        "tools": await items(session.list_tools, "tools", "name"),
        "prompts": await items(session.list_prompts, "prompts", "name"),
        "resources": await items(session.list_resources, "resources", "uri"),
        "templates": await items(session.list_resource_templates, "resourceTemplates", "uriTemplate"),
    }


@case
async def read_and_get(peer: Any, step: Plan) -> Plan:
    prompt = step["prompt"]
    messages = plain(await peer.session.get_prompt(prompt["name"], prompt["arguments"]))["messages"]
    return {"contents": await peer.read(step["uri"]), "messages": messages}


@case
async def errors(peer: Any, step: Plan) -> Plan:
    return {
        "tool": await use(peer, step["tool"]),
        "resource": await refused(lambda: peer.read(step["uri"])),
        "prompt": await refused(lambda: peer.session.get_prompt(step["prompt"], {})),
    }


@case
async def progress(peer: Any, step: Plan) -> Plan:
    seen: list[Any] = []

    async def hear(done: float, total: float | None, _message: str | None) -> None:
        seen.append([done, total])

    return {**await use(peer, step, progress_callback=hear), "seen": seen}


@case
async def cancel(peer: Any, step: Plan) -> Plan:
    running = asyncio.Event()

    async def hear(*_progress: Any) -> None:
        running.set()

    before = await use(peer, step["count"])
    call = asyncio.create_task(peer.session.call_tool(step["tool"], step["arguments"], progress_callback=hear))
    await running.wait()
    await peer.cancel(call)
    await asyncio.wait([call])
    after: Plan = {}

    async def is_counted() -> bool:
        after.update(await use(peer, step["count"]))
        return after != before or step["uncounted"]

    await until(is_counted)
    return {"before": before, "after": after, "ended": "cancelled" if call.cancelled() else "answered"}


@case
async def completion(peer: Any, step: Plan) -> Any:
    ref = types.PromptReference(type="ref/prompt", name=step["prompt"])
    argument = {"name": step["argument"], "value": step["value"]}
    return plain(await peer.session.complete(ref, argument))["completion"]


@case
async def subscriptions(peer: Any, step: Plan) -> list[str]:
    async def is_heard() -> bool:
        return set(step["expected"]) <= set(peer.changed)

    peer.watched = step["uri"]
    peer.changed.clear()
    async with peer.listening():
        await asyncio.sleep(0.1)
        for each in step["change"]:
            await use(peer, each)
        await until(is_heard)
        for each in step["end"]:
            await use(peer, each)
    return sorted(set(peer.changed))


async def main(mode: str, transport: str, target: list[str]) -> None:
    plan = json.loads(os.environ["PLAN"])
    peer: Any = scenario.Newer() if hasattr(scenario.mcp, "Client") else scenario.Older()
    peer.forms = {**peer.forms, **plan["forms"]}
    if transport == "stdio":  # a proxy that starts slowly could miss the client's first request
        peer.modern_mode = plan["revision"]
    async with peer.connected(mode, transport, target) as about:
        seen: Plan = {"about": about}
        for name, step in plan["cases"].items():
            function: Case = CASES.get(name, use)
            try:
                seen[name] = await asyncio.wait_for(function(peer, step), 30)
            except Exception as error:
                seen[name] = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
