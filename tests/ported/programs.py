"""The programs in the folders `official` and `fastmcp`, and what is changed to run them here.

`python -m tests.ported.programs` writes the tables in `docs/coming-from.md`. Each program is ours. It uses the features
of the example that its docstring names, in the same way.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from tests.paths import ROOT

FOLDER = Path(__file__).parent
PAGE = ROOT / "docs" / "coming-from.md"
MARKS = ("<!-- programs: python -m tests.ported.programs -->", "<!-- end of programs -->")

HEADS = {
    "official": "programs for `MCPServer`, and the example of the official SDK that each corresponds to",
    "fastmcp": "programs for `fastmcp`, and the page of its documentation that each corresponds to",
}

NAMES = {
    "CallToolResult": ("typedmcp.dialect.structs", "CallToolResult"),
    "Client": ("typedmcp", "connect"),
    "Context": ("typedmcp", "Context"),
    "FastMCP": ("typedmcp", "Server"),
    "Icon": ("typedmcp.dialect.structs", "Icon"),
    "Image": ("typedmcp", "Image"),
    "MCPServer": ("typedmcp", "Server"),
    "Message": ("typedmcp", "UserMessage"),
    "TextContent": ("typedmcp.dialect.structs", "TextContent"),
    "ToolAnnotations": ("typedmcp.dialect.structs", "ToolAnnotations"),
    "ToolError": ("typedmcp", "ToolError"),
    "ToolResult": ("typedmcp.dialect.structs", "CallToolResult"),
    "lifespan": ("contextlib", "asynccontextmanager"),
}
"""Our names, by those of the other libraries."""


class Change(NamedTuple):
    """A line of a program that needs another change than that of an import, and the reason."""

    old: str
    new: str
    reason: str


_RESPONSE_TYPE = Change("response_type=", "schema=", "`response_type=` is `schema=`")
_MIME_TYPE = Change("mimeType=", "mime_type=", "members of types have Python names, such as `mime_type=`")

CHANGES: dict[str, list[Change]] = {
    "fastmcp/context": [
        Change(
            "result.contents[0].content", "result[0].text",
            "`ctx.read_resource` returns the list of contents, which have `text` or `blob`",
        ),
    ],
    "fastmcp/elicitation": [
        _RESPONSE_TYPE,
        Change('["small", "large"]', 'Literal["small", "large"]', "a choice is a `Literal`, and no list"),
        Change("from dataclasses", "from typing import Literal\nfrom dataclasses", "the import of `Literal`"),
    ],
    "fastmcp/icons": [_MIME_TYPE],
    "fastmcp/lifespan": [Change("ctx.lifespan_context", "ctx.lifespan", "`ctx.lifespan_context` is `ctx.lifespan`")],
    "fastmcp/mounting": [Change("namespace=", "prefix=", "`namespace=` is `prefix=`")],
    "fastmcp/pagination": [Change("list_page_size=", "page=", "`list_page_size=` is `page=`")],
    "fastmcp/prompts": [
        Change('Message("I am ready.", role="assistant")', 'AssistantMessage("I am ready.")',
               "`Message(…, role=\"assistant\")` is `AssistantMessage(…)`"),
        Change("UserMessage as Message", "AssistantMessage, UserMessage as Message", "its import"),
    ],
    "fastmcp/sampling": [
        Change("messages=", "params=", "`messages=` is `params=`, or a positional argument"),
        Change('result.text or ""', "text_of(result)", "`result.text` is `text_of(result)`"),
        Change("import Context;", "import Context, text_of;", "the import of `text_of`"),
    ],
    "fastmcp/tool_results": [
        Change(
            'content=f"Counted: {text}",', 'content=[TextContent(text=f"Counted: {text}")],',
            "a result has blocks of content, and no text",
        ),
        Change("as ToolResult", "as ToolResult, TextContent", "the import of `TextContent`"),
    ],
    "fastmcp/tools": [
        Change(
            'title="Harvest", readOnlyHint=True, openWorldHint=False',
            'title="Harvest", read_only_hint=True, open_world_hint=False',
            "members of types have Python names, such as `read_only_hint=`",
        )
    ],
}  # fmt: skip


def programs() -> list[Path]:
    """Return the files of all programs."""
    return [file for library in HEADS for file in sorted((FOLDER / library).glob("*.py"))]


def name_of(file: Path) -> str:
    """Return the folder and the name of a program."""
    return f"{file.parent.name}/{file.stem}"


@cache
def ported(file: Path) -> str:
    """Return the text of a program for this library."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("mcp", "fastmcp"):
            lines[node.lineno - 1] = "; ".join(_import_of(alias.name) for alias in node.names)
    made = "\n".join(lines)
    for change in CHANGES.get(name_of(file), []):
        assert change.old in made, change
        made = made.replace(change.old, change.new)
    return made


def _import_of(name: str) -> str:
    module, own = NAMES[name]
    return f"from {module} import {own}" if own == name else f"from {module} import {own} as {name}"


def tables() -> str:
    """Return the tables of the page, and the sentence with the counts."""
    files = programs()
    unchanged = [file for file in files if not CHANGES.get(name_of(file))]
    sentence = (
        f"The folder `tests/ported` has {len(files)} programs for the other libraries. {len(unchanged)} of them run "
        "here after a change of their imports and nothing else; the table has the others. The tests run each program "
        "here and with its library, and compare the results."
    )
    parts = [fill(sentence, 120)]
    for library, head in HEADS.items():
        rows = [_row(file) for file in files if file.parent.name == library and file not in unchanged]
        if not rows:
            continue
        parts.append("\n".join([f"| {head} | uses | changed beside imports |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _row(file: Path) -> str:
    example, uses = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split(": ", 1)
    changes = "; ".join(change.reason for change in CHANGES.get(name_of(file), []))
    return f"| `{name_of(file)}.py`: {example} | {uses.removesuffix('.')} | {changes or '–'} |"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{tables()}\n\n{MARKS[1]}{after}", encoding="utf-8")
