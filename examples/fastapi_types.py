"""FastAPI endpoints that take and return the types of the protocol, with their schemas in the OpenAPI document.

Serve it with `uvicorn fastapi_types:app`. Or run `python fastapi_types.py`, which serves it on a free port and calls
it. Needs FastAPI and the extra `http`.
"""

import asyncio
import json
import socket
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import uvicorn
from fastapi import FastAPI

from mcpspec.v2025_11_25.models import CallToolRequestParams, CallToolResult, TextContent, Tool

app = FastAPI()


@app.get("/tools", response_model_exclude_defaults=True)  # absent members are not null on the wire
def list_tools() -> list[Tool]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return [Tool(name="shout", description="Say it louder.", input_schema=schema)]


@app.post("/call", response_model_exclude_defaults=True)
def call_tool(params: CallToolRequestParams) -> CallToolResult:
    text = str((params.arguments or {}).get("text", "")).upper()
    return CallToolResult(content=[TextContent(text=text)])


def fetch(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"})) as page:  # noqa: S310  # our own URL
        return json.load(page)


def call(url: str) -> None:
    print(fetch(f"{url}/tools"))
    print(fetch(f"{url}/call", {"name": "shout", "arguments": {"text": "hello"}}))
    try:
        fetch(f"{url}/call", {"name": 7})
    except HTTPError as error:
        with error:
            print(error.code, json.load(error)["detail"][0]["msg"])
    document = fetch(f"{url}/openapi.json")
    print(sorted({"CallToolRequestParams", "CallToolResult", "Tool"} & document["components"]["schemas"].keys()))


async def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        await asyncio.to_thread(call, f"http://127.0.0.1:{listener.getsockname()[1]}")
        web.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main())
