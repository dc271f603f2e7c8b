"""Run the lines of another library in the table: `peers.py MCPServer < rows.json`.

Prints the errors as JSON, by the name of the row. A line runs above a function, inside a function with a context, or by
itself, like our lines. The library's own client calls the functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import logging
import re
import sys
import textwrap
import warnings
from collections.abc import Awaitable
from typing import Any

ONLY_COMPILED = re.compile(r"(await )?mcp\.run|.*auth=(settings|verifier)|get_http_request|FASTMCP_")
"""Lines that would block, or that need more than the line contains: they are only compiled."""

IMPORTS = {
    "MCPServer": """
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider, PrivateKeyJWTOAuthProvider
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.server.apps import Apps
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.settings import AuthSettings
from mcp.server.caching import CacheHint
from mcp.server.extension import Extension
from mcp.server.mcpserver import *
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
from mcp.server.mcpserver.resources import DirectoryResource, FileResource, TextResource
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (CallToolResult, CreateMessageResult, Icon, InputRequiredResult, PromptReference, SamplingMessage,
    TextContent, ToolAnnotations)
Made = MCPServer
""",
    "fastmcp": """
from fastmcp import Client, Context, FastMCP
from fastmcp.apps import AppConfig
from fastmcp.client.auth import ClientCredentialsOAuthProvider, OAuth, PrivateKeyJWTOAuthProvider
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from fastmcp.dependencies import Depends
from fastmcp.exceptions import NotFoundError, ResourceError, ToolError
from fastmcp.prompts import Message, PromptResult
from fastmcp.resources import DirectoryResource, FileResource, ResourceContent, ResourceResult, TextResource
from fastmcp.resources.security import ResourceSecurity
from fastmcp.server.auth import OAuthProxy
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.auth.providers.jwt import JWTVerifier, StaticTokenVerifier
from fastmcp.server.dependencies import get_access_token, get_context, get_http_headers, get_http_request
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.middleware import Middleware
from fastmcp.server.middleware.timing import TimingMiddleware
from fastmcp.server.providers import FileSystemProvider
from fastmcp.server.server import create_proxy
from fastmcp.server.transforms import Namespace
from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
from fastmcp.tools import Tool, ToolResult
from fastmcp.utilities.authorization import require_scopes
from fastmcp.utilities.types import Audio, File, Image
from mcp.server.request_state import RequestStateSecurity
from mcp_types import CreateMessageResult, Icon, InputRequiredResult, PromptReference, SamplingMessage, TextContent
import fastmcp.server.lifespan
import httpx2
Made = FastMCP
app, tool, http = FastMCP("s").http_app(), Tool.from_function(lambda: 1, name="a"), httpx2.AsyncClient()
""",
}
IMPORTS_OF_ALL = """
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from pydantic import BaseModel, Field
from starlette.applications import Starlette
class Point(BaseModel): x: int
class Person(BaseModel): name: str
class Thing:
    def method(self, a: int) -> int: return a
thing, path, key, store = Thing(), Path(__file__), bytes(32), None
def f(a: int = 1) -> int: return a
@asynccontextmanager
async def lifespan(server): yield {"opened": 1}
try: a = b = fastmcp.server.lifespan.lifespan(lifespan)
except NameError: pass
async def m(ctx, call_next): return await call_next(ctx)
def ask() -> Person: return Person(name="Ada")
async def answer(*args, **options): return None
async def on_progress(*args): return None
"""
SERVER = """
mcp, sub = Made("s"), Made("sub")
@mcp.tool(name="f")
async def of_clients(ctx: Context, a: int = 1) -> int: return a
@mcp.resource("data://motd")
def motd() -> str: return "hello"
@mcp.prompt()
def p(x: str) -> str: return x
@mcp.completion()
async def completion(ref, argument, context): return None
"""


def function_under(decorator: str) -> str:
    """Return the source of a function that fits a decorator."""
    if ".completion" in decorator:
        return "async def g(ref, argument, context): return None"
    if ".custom_route" in decorator:
        return "async def g(request): return None"
    if "task=True" in decorator:
        return "async def g() -> int: return 1"
    named = re.findall(r"\{([+?]?)(\w+)\*?\}", decorator) if ".resource(" in decorator else [("?", "a")]
    takes = ", ".join(f"{name}: str{' = str()' if operator == '?' else ''}" for operator, name in named)
    return f"def g({takes}) -> str: return 'x'"


async def run(code: str, names: dict[str, Any]) -> Any:
    """Run code, and return the value of an expression."""
    flags = 0x2000  # allow `await` at the top level
    try:
        compiled = compile(f"_ = ({code}\n)", "row", "exec", flags=flags, dont_inherit=True)
    except SyntaxError:
        compiled = compile(code, "row", "exec", flags=flags, dont_inherit=True)
    made = eval(compiled, names)  # noqa: S307
    if inspect.iscoroutine(made):
        await made
    return names.get("_")


async def check(theme: str, code: str, library: str, names: dict[str, Any]) -> None:
    """Run a line in the context that it needs."""
    if code.startswith("@"):
        await run(f"{code}\n{function_under(code)}", names)
    elif code.startswith(("Annotated", "x: int")):
        hint = code.removeprefix("x: ")
        await run(f"@mcp.tool()\nasync def g(name: str, *, a: {hint}) -> str: return name", names)
    elif code.startswith('"'):
        await run(f"@mcp.tool()\nasync def g(a: int):\n    {code}", names)
    elif code.startswith("def "):
        await run(f"@mcp.{'prompt' if 'xs' in code else 'tool'}()\n{code}", names)
    elif code.startswith(("return", "raise", "yield", "get_")) or re.match(r"(await )?ctx\.", code):
        await check_inside(theme, code, library, names)
    elif "client." in code:
        older = {"mode": "legacy"} if "ping" in code or "logging" in code else {}
        async with names["Client"](names["mcp"], **older) as client:
            await run(code, names | {"client": client})
    else:
        if ".remove_" in code:
            await run("@mcp.prompt()\ndef f(x: str) -> str: return x", names)
            await run("@mcp.resource('data://a')\ndef g() -> str: return ''", names)
        await run(code, names | {"client": names.get("http")})


async def check_inside(theme: str, code: str, library: str, names: dict[str, Any]) -> None:
    """Run a line inside a tool, a resource or a prompt, depending on the table."""
    kind = {"Resources": "resource('data://a')", "Prompts and completion": "prompt()"}.get(theme, "tool()")
    body = code if code.startswith(("return", "raise", "yield")) else f"return str({code})"
    takes = "" if theme == "Resources" else "ctx: Context"
    await run(f"@mcp.{kind}\n{'def' if 'yield' in code else 'async def'} g({takes}):\n    {body}", names)
    async with names["Client"](names["mcp"], **options_for(code, library)) as client:
        fails = code.startswith("raise")
        if kind != "tool()":
            reading = client.read_resource("data://a") if theme == "Resources" else client.get_prompt("g")
            assert isinstance(await outcome(reading), Exception) is fails
            return
        more = {"raise_on_error": False} if library == "fastmcp" else {}
        made = await outcome(client.call_tool("g", **more))
        if "MCPError" not in code and "InputRequired" not in code:
            assert bool(made.is_error) is fails, made


async def outcome(call: Awaitable[Any]) -> Any:
    """Return the result of a call, or the exception that it raises."""
    try:
        return await call
    except Exception as error:
        return error


def options_for(code: str, library: str) -> dict[str, Any]:
    """Return the options of a client that answers the input requests of a line."""
    if not re.search("elicit|create_message|list_roots", code):
        return {}
    if library == "fastmcp":
        given = {"elicitation_handler": answer_form, "sampling_handler": answer_sampling, "roots": ["file:///a"]}
    else:
        given = {
            "elicitation_callback": answer_form,
            "sampling_callback": answer_sampling,
            "list_roots_callback": roots,
        }
    return {"mode": "legacy", **given}


async def answer_form(*args: object) -> Any:
    """Answer an elicitation."""
    from mcp_types import ElicitResult

    asked = repr(args)
    content: dict[str, Any] | None = {"value": "a"} if "Which" in asked else {"name": "Ada"} if "Who" in asked else None
    return ElicitResult(action="accept", content=content)


async def answer_sampling(*args: object) -> Any:
    """Answer a sampling request."""
    from mcp_types import CreateMessageResult, TextContent

    return CreateMessageResult(role="assistant", model="m", content=TextContent(text="hello"))


async def roots(*args: object) -> Any:
    """Answer a request for roots."""
    from mcp_types import ListRootsResult

    return ListRootsResult.model_validate({"roots": [{"uri": "file:///a"}]})


async def failures(library: str, rows: list[tuple[str, str, str]]) -> dict[str, str]:
    """Return the error of each row that fails."""
    found: dict[str, str] = {}
    imported: dict[str, Any] = {"__name__": "row", "__file__": __file__}
    exec(IMPORTS[library] + IMPORTS_OF_ALL, imported)  # noqa: S102
    for theme, what, code in rows:
        names = {**imported}
        exec(SERVER, names)  # noqa: S102
        try:
            if ONLY_COMPILED.match(code):
                compile(f"async def g():\n{textwrap.indent(code, '    ')}", what, "exec")
            else:
                await asyncio.wait_for(check(theme, code, library, names), 10)
        except Exception as error:
            found[what] = f"{code}: {type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        bad = asyncio.run(failures(sys.argv[1], json.load(sys.stdin)))
    print(json.dumps(bad, indent=1))
