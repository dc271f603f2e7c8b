"""FastAPI takes and returns the types as they are on the wire, and documents them."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from fastapi import Body, FastAPI
from fastapi.openapi.models import OpenAPI
from pydantic import VERSION, BaseModel

from mcpspec.v2026_07_28 import models as everyday_models
from mcpspec.v2026_07_28 import structs as everyday_structs
from mcpspec.v2026_07_28.exact import models, structs
from tests.cases import each
from tests.generated.json_schemas import check_schema

MODULES = {"exact.models": models, "models": everyday_models, "exact.structs": structs, "structs": everyday_structs}
TOOL = {"name": "weather", "inputSchema": {"type": "object", "x-mine": 1}, "annotations": {"readOnlyHint": True}}
BLOCKS = [{"type": "text", "text": "rain"}, {"type": "image", "data": "", "mimeType": "image/png"}]


def application(types: Any) -> FastAPI:
    """Return an application that takes and returns the types of a module."""
    app = FastAPI()

    def call(tool: Any) -> Any:
        return types.CallToolResult(content=[types.TextContent(text=tool.name)])

    call.__annotations__ = {"tool": in_body(types.Tool), "return": types.CallToolResult}
    app.post("/call")(call)
    app.post("/tool")(echo(types.Tool))
    app.post("/block")(echo(types.ContentBlock))
    app.post("/blocks")(echo(list[types.ContentBlock]))
    return app


def echo(kind: Any) -> Any:
    """Return a function that takes a type and returns it."""

    def function(body: Any) -> Any:
        return body

    function.__annotations__ = {"body": in_body(kind), "return": kind}
    return function


def in_body(kind: Any) -> Any:
    """Return the annotation of a parameter that is the body. FastAPI takes Structs for queries if it is not told.

    Older versions of FastAPI take aliases for queries, too.
    """
    body: Any = Annotated[kind, Body()]
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else body


@pytest.fixture(params=MODULES, scope="module")
def app(request: pytest.FixtureRequest) -> FastAPI:
    if request.param == "exact.models" and VERSION.startswith("2.12."):
        pytest.skip("Pydantic 2.12 itself cannot serialize a union of models that have MISSING; our `encode` can")
    return application(MODULES[request.param])


def request_json(app: FastAPI, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request to an application; return the status and the body of the response."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
        "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


@each(
    "path, body, expected",
    [
        ("/call", TOOL, {"resultType": "complete", "content": [{"type": "text", "text": "weather"}]}),
        ("/tool", TOOL, TOOL),
        ("/block", BLOCKS[0], BLOCKS[0]),
        ("/blocks", BLOCKS, BLOCKS),
    ],
)
def test_bodies_are_as_on_the_wire(app: FastAPI, path: str, body: Any, expected: Any) -> None:
    assert request_json(app, "POST", path, body) == (200, expected)


@each(
    "path, body, place",
    [
        ("/tool", {**TOOL, "name": 3}, ["body", "name"]),
        ("/tool", {**TOOL, "inputSchema": []}, ["body", "inputSchema"]),
    ],
)
def test_an_invalid_body_is_rejected_at_its_place(app: FastAPI, path: str, body: Any, place: list[str]) -> None:
    status, found = request_json(app, "POST", path, body)
    assert (status, found["detail"][0]["loc"]) == (422, place)


@each("types", [models, everyday_models])
def test_an_invalid_block_is_rejected_at_its_place(types: Any) -> None:
    status, found = request_json(application(types), "POST", "/block", {"type": "text"})
    assert (status, [error["loc"] for error in found["detail"]]) == (422, [["body", "text", "text"]])


def test_the_document_is_valid_and_describes_the_members(app: FastAPI) -> None:
    status, document = request_json(app, "GET", "/openapi.json")
    assert status == 200
    OpenAPI.model_validate(document)
    schemas = document["components"]["schemas"]
    check_schema(json.loads(json.dumps({"$defs": schemas}).replace("#/components/schemas/", "#/$defs/")))
    call = document["paths"]["/call"]["post"]
    assert call["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/Tool")
    assert call["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/CallToolResult")
    assert schemas["Tool"]["required"] == ["name", "inputSchema"]
    arguments = {**schemas.get("ToolInputSchema", {}), **schemas["Tool"]["properties"]["inputSchema"]}
    assert arguments["description"] == "JSON Schema of the tool's arguments."
    assert {"content", "isError", "structuredContent"} <= schemas["CallToolResult"]["properties"].keys()
