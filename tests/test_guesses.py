"""Names that people expect, from other libraries or by guessing: the error says what to use."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mcpspec
import typedmcp
from tests.cases import each
from typedmcp.types import CallToolResult, TextContent

anything: Any = typedmcp.Server("guessed")
result: Any = CallToolResult(content=[TextContent(text="a")])
package: Any = mcpspec
runtime: Any = typedmcp


@each(
    "guess, meant",
    {
        "mcpspec.Tool": (lambda: package.Tool, "mcpspec.v2026_07_28.structs (msgspec)"),
        "mcpspec.latest": (lambda: package.latest, "mcpspec.v2026_07_28.models (Pydantic)"),
        "mcpspec.types": (lambda: package.types, "mcpspec.v2026_07_28.structs"),
        "mcpspec.v2026_07_28.Tool": (lambda: package.v2026_07_28.Tool, "mcpspec.v2026_07_28.structs"),
        "mcpspec.v2026_07_28.exact.Tool": (lambda: package.v2026_07_28.exact.Tool, "mcpspec.v2026_07_28.exact.structs"),
        "typedmcp.TextContent": (lambda: runtime.TextContent, "from typedmcp.types import TextContent"),
        "typedmcp.Tool": (lambda: runtime.Tool, "from typedmcp.types import Tool"),
        "typedmcp.FastMCP": (lambda: runtime.FastMCP, "Server"),
        'Client("x")': (lambda: runtime.Client("x"), "typedmcp.connect(…)"),
        "Server(auth=…)": (lambda: runtime.Server("x", auth=1), "typedmcp.asgi(server, auth=…)"),
        "Server(host=…)": (lambda: runtime.Server("x", host="a"), "server.run"),
        "Server(lifspan=…)": (lambda: runtime.Server("x", lifspan=1), "did you mean 'lifespan'"),
        ".http_app": (lambda: anything.http_app(), "typedmcp.asgi(server)"),
        ".run_async": (lambda: anything.run_async(), "typedmcp.serve_async(server)"),
        ".add_middleware": (lambda: anything.add_middleware(print), "server.middleware(function)"),
        "tags= of a tool": (lambda: anything.tool(tags={"a"})(print), "meta={…}"),
        "result.data": (lambda: result.data, "`structured_content`"),
    }.values(),
)
def test_an_error_about_a_name_that_people_expect_says_what_to_use(guess: Callable[[], object], meant: str) -> None:
    with pytest.raises((AttributeError, typedmcp.UsageError), match=re.escape(meant)):
        guess()


@each("guess, meant", [("isError", "is_error"), ("structuredContent", "structured_content")])
def test_python_suggests_the_attribute_for_a_name_on_the_wire(guess: str, meant: str) -> None:
    code = f"from typedmcp.types import CallToolResult; CallToolResult(content=[]).{guess}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"Did you mean: '{meant}'?" in done.stderr


def test_an_attribute_that_nobody_guesses_has_the_usual_error() -> None:
    for value in (anything, result, package, runtime):
        with pytest.raises(AttributeError, match=r"has no attribute 'xyz'$"):
            _ = value.xyz


def test_the_types_of_the_runtime_are_those_of_the_newest_revision() -> None:
    newest: Any = mcpspec.revision(mcpspec.LATEST).structs
    assert all(getattr(typedmcp.types, name) is getattr(newest, name) for name in newest.__all__)
