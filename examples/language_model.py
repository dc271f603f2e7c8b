"""A loop of a language model with tools, in the format of Anthropic's API. The model here is a fake: it needs no key.

It needs the extra `hosts`.

    python examples/language_model.py

With the SDK, `ask_model` is `(await anthropic.AsyncAnthropic().messages.create(…)).model_dump()`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import typedmcp
from typedmcp_hosts import call_for, tools_for

server = typedmcp.Server("weather")


@server.tool
def forecast(city: str, days: int = 1) -> str:
    """Forecast the weather of a city.

    Args:
        city: The name of the city.
        days: The number of days.

    """
    if city != "Bergen":
        raise typedmcp.ToolError(f"unknown city: {city}")
    return f"rain in {city}, for {days} days"


def ask_model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer like the model: ask for the first tool, and repeat its result."""
    last = messages[-1]["content"]
    if isinstance(last, str):
        call = {"type": "tool_use", "id": "toolu_1", "name": tools[0]["name"], "input": {"city": "Bergen", "days": 2}}
        return {"role": "assistant", "content": [call], "stop_reason": "tool_use"}
    text = f"I expect {last[0]['content'][0]['text']}."
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}


async def main() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How will the weather be in Bergen?"}]
    async with typedmcp.connect(server) as client:
        tools = await tools_for(client, "anthropic")
        answer = ask_model(messages, tools)
        while answer["stop_reason"] == "tool_use":
            messages.append({"role": "assistant", "content": answer["content"]})
            calls = [part for part in answer["content"] if part["type"] == "tool_use"]
            results = [await call_for(client, "anthropic", part) for part in calls]
            messages.append({"role": "user", "content": results})
            answer = ask_model(messages, tools)
    print(answer["content"][0]["text"])  # I expect rain in Bergen, for 2 days.


if __name__ == "__main__":
    asyncio.run(main())
