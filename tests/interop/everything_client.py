"""Use of npm's everything server by the official Python client, which prints its observations as JSON.

    python everything_client.py modern|legacy COMMAND [ARGUMENT …]

It runs in an environment of its own, with `mcp` 1.x or 2.x.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

scenario: Any = importlib.import_module("python_client")  # by name: it is beside this script
plain, types = scenario.plain, scenario.types

DOCUMENT = "demo://resource/static/document/features.md"
CALLS: dict[str, dict[str, Any]] = {
    "echo": {"message": "Grüße"},
    "get-sum": {"a": 2, "b": 40},
    "get-structured-content": {"location": "Chicago"},
    "get-tiny-image": {},
    "get-annotated-message": {"messageType": "error", "includeImage": True},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
    "trigger-sampling-request": {"prompt": "Say something", "maxTokens": 20},
}


async def observe(peer: Any) -> dict[str, Any]:
    """Use the server's features, and return what the client got."""
    progress: list[Any] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total, message])

    session = peer.session
    tools = [tool["name"] for tool in plain(await session.list_tools())["tools"]]
    seen: dict[str, Any] = {
        "tools": tools,
        "calls": {name: await peer.call(name, arguments) for name, arguments in CALLS.items()},
        "resources": plain(await session.list_resources())["resources"],
        "templates": plain(await session.list_resource_templates())["resourceTemplates"],
        "document": await peer.read(DOCUMENT),
        "prompts": plain(await session.list_prompts())["prompts"],
        "prompt": plain(await session.get_prompt("args-prompt", {"city": "Oslo", "state": "Norway"}))["messages"],
        "completion": plain(
            await session.complete(
                types.PromptReference(type="ref/prompt", name="completable-prompt"),
                {"name": "department", "value": "E"},
            )
        )["completion"],
    }
    arguments = {"duration": 0.2, "steps": 2}
    seen["long"] = await peer.call("trigger-long-running-operation", arguments, progress_callback=on_progress)
    return {**seen, "progress": progress, "asked": [asked for asked in peer.asked if asked != "roots"]}


async def main(mode: str, command: list[str]) -> None:
    peer: Any = scenario.Newer() if hasattr(scenario.mcp, "Client") else scenario.Older()
    async with peer.connected(mode, "stdio", command) as about:
        await asyncio.sleep(2)  # the server offers some tools only once it knows the client
        print(json.dumps({"revision": about["protocolVersion"], **await observe(peer)}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
