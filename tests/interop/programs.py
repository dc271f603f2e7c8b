"""Programs for the official SDK 1.x and for fastmcp 2, run here with other imports: `python -m tests.interop.programs`.

The examples come from the source distributions of the libraries, which `tests/interop/install.py` downloads. Each runs
with its library and with ours. A server is asked for all that it has, over each transport that it serves; of a client,
what it prints is compared. The command writes the tables of docs/mcp1.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import typedmcp
from tests.interop import asking, install
from tests.interop.asking import ask_all
from tests.paths import ROOT
from tests.ports import reserved_port
from typedmcp.building import is_array, is_object

__all__ = ["Comparison", "Program", "compare", "is_installed", "list_programs", "render", "rewrite"]

PAGE: Final = ROOT / "docs" / "mcp1.md"
MARKS: Final = ("<!-- programs: python -m tests.interop.programs --write -->", "<!-- end of programs -->")
LAUNCH: Final = Path(__file__).with_name("launch_example.py")
PATIENCE: Final = 60.0
JSON = dict[str, Any]

OFFICIAL, FASTMCP = "examples-1", "examples-fastmcp-2"

PATHS: Final = os.pathsep.join(
    str(path) for path in (ROOT / "generated", ROOT / "runtime", *sorted((ROOT / "runtime").glob("typedmcp-*")))
)
"""The packages of this checkout."""


@dataclass(frozen=True)
class Program:
    """One example."""

    environment: str
    name: str
    """The path of its file in the source distribution, or the page and the number of a block of code."""
    text: str
    transports: tuple[str, ...] = ("stdio", "streamable-http")
    """The transports that it is asked over; "script" and "module" run it as it is, over stdio; "client" compares what
    it prints."""
    server: str = ""
    """The example that a client connects to over HTTP, and its transport."""

    @property
    def changed_lines(self) -> int:
        """The number of lines that the change of imports touches."""
        old, new = self.text.splitlines(), rewrite(self).splitlines()
        return sum(before != after for before, after in zip(old, new, strict=True))


@dataclass
class Comparison:
    """One program over one transport, and how ours differs."""

    program: Program
    transport: str
    differences: list[str] = field(default_factory=list[str])
    failure: str = ""
    """The end of an error of ours, if the program does not run."""
    skipped: str = ""
    """The end of an error of the library's own run."""
    asked: int = 0
    """The number of answers that were compared."""


TITLES: Final = {OFFICIAL: "the official SDK 1.30", FASTMCP: "fastmcp 2.14"}

REASONS: Final[dict[str, dict[str, str]]] = {
    OFFICIAL: {
        r"^capabilities/resources/subscribe: null → true": "`resources.subscribe` is declared where it is served",
        r"^tools/list/tools/\d+/outputSchema/": "the schema of a block of content is that of our types",
    },
    FASTMCP: {
        r"^resources/.*mimeType: \"text/plain\" → null": "no media type is listed for what a function returns",
        r"/mimeType: \"text/plain\" → \"application/json\"": "data that becomes JSON has the media type of JSON",
        r"outputSchema(/.*)?/additionalProperties: true → null": "schemas leave out `additionalProperties: true`",
        r"outputSchema/title: null → ": "the schema of a result has the name of its type",
        r"^tools/call process_data/(content|error|isError)": "a resource that is not found is an error of the protocol",
        r"/text: \"Error calling tool .* failed\"$": "texts of unexpected exceptions are kept from clients",
        r"^tools/call analyze_data/told: ": "a client gets log messages from `info` on, unless it asks for others",
        r"unknown option 'tags'": "does not run: the protocol has no tags",
        r"no attribute 'Depends'": "does not run: the lifespan takes the place of `Depends`",
        r"unknown option 'on_duplicate_": "does not run: `replace=True` takes the place of `on_duplicate_…`",
        r"unknown option 'tool_serializer'": "does not run: the option `text` of a tool does the same",
        r"/error: \"Error .* → \"internal error in": "texts of unexpected exceptions are kept from clients",
        r"no attribute '(CurrentContext|get_context)'": "does not run: the context is a parameter, `ctx: Context`",
        r"no attribute 'get_http_": "does not run: `ctx.headers` has the headers",
        r"no attribute 'get_access_token'": "does not run: `ctx.principal` is the owner of the token",
        r"no attribute 'ResourceError'": "does not run: `ResourceError` is `RemoteError`",
        r"it is a type of the protocol": "does not run: types are in `typedmcp.types`",
        r"no attribute 'ToolResult'": "does not run: `ToolResult` is `CallToolResult`, whose content is blocks",
        r"annotations: unknown member 'readOnlyHint'": "does not run: resources have no `readOnlyHint`",
        r"/text: .*(request_id|accessed_at)": "the id of a request is the number that the client sent",
    },
}
"""Reasons of differences and failures, by patterns for their texts."""

GENERAL: Final[dict[str, dict[str, str]]] = {
    OFFICIAL: {},
    FASTMCP: {
        r"^capabilities/": "capabilities are declared for what the server has",
        r"/inputSchema/additionalProperties: null → false": "arguments have no other members than the parameters",
        r"/outputSchema/description: \"Generic wrapper": "the object around a value has no description",
        r"/outputSchema: {\"description\": \"Generic wrapper.*\"string\".* → null": "a text has no structured content",
        r"/structuredContent: {\"result\": \".*\"} → null": "a text has no structured content",
        r"/told/\d+/params/data: {\"msg\":": "a log message that is a text is sent as it is",
    },
}
"""Reasons of differences that many programs have, which no row repeats."""


# The change of imports

_WIDE: Final = re.compile(r"^(\s*)import mcp\.([\w.]+)(\s*)$", re.MULTILINE)
_NAMED: Final = re.compile(r"^(\s*)import mcp\.([\w.]+) as", re.MULTILINE)
_FROM: Final = re.compile(r"^(\s*)from mcp(\.[\w.]+)? import", re.MULTILINE)

_FASTMCP_NAMES: Final = {
    "FastMCP": "Server as FastMCP", "Client": "connect as Client", "Context": "Context", "Image": "Image",
    "Audio": "Audio", "File": "File", "Message": "UserMessage as Message", "ToolError": "ToolError",
}  # fmt: skip
"""Our names in `typedmcp` for those of fastmcp."""


def rewrite(program: Program) -> str:
    """Return the text of a program with our imports. No other line changes."""
    text = _WIDE.sub(r"\1import typedmcp_mcp1.\2, typedmcp_mcp1 as mcp\3", program.text)
    text = _NAMED.sub(r"\1import typedmcp_mcp1.\2 as", text)
    text = _FROM.sub(lambda found: f"{found[1]}from typedmcp_mcp1{found[2] or ''} import", text)
    if program.environment == FASTMCP:
        text = re.sub(r"^(\s*)from fastmcp[\w.]* import (.+)$", _fastmcp_import, text, flags=re.MULTILINE)
    return text


def _fastmcp_import(found: re.Match[str]) -> str:
    names = [each.strip() for each in found[2].split(",")]
    return f"{found[1]}from typedmcp import {', '.join(_FASTMCP_NAMES.get(each, each) for each in names)}"


# The programs


def is_installed() -> bool:
    """Return whether the source distributions are there."""
    return all((install.source(each) / "PKG-INFO").exists() for each in (OFFICIAL, FASTMCP))


LEFT_OUT: Final = {
    "desktop": "lists the files of the desktop of the user",
    "memory": "needs PostgreSQL and a key of OpenAI",
    "screenshot": "needs a screen",
    "text_me": "needs an account for text messages",
    "oauth_server": "needs an authorization server",
    "completion_complete": "",
}
"""Examples that need what a test has not, with the reason."""


@cache
def list_programs() -> list[Program]:
    """List all programs."""
    return [*_official_servers(), *_official_clients(), *_fastmcp_examples(), *_fastmcp_pages()]


def _official_servers() -> Iterator[Program]:
    examples = install.source(OFFICIAL) / "examples"
    for path in sorted([*(examples / "fastmcp").glob("*.py"), *(examples / "snippets" / "servers").rglob("*.py")]):
        if path.stem in LEFT_OUT or path.stem == "__init__":
            continue
        text = path.read_text(encoding="utf-8")
        transports: tuple[str, ...] = ("stdio", "streamable-http")
        if re.search(r"^app = Starlette", text, re.MULTILINE):
            transports = ("asgi",)
        elif re.search(r"^(server|app) = Server", text, re.MULTILINE):
            transports = ("stdio",)
        elif not re.search(r"^mcp = FastMCP", text, re.MULTILINE):
            continue  # parts of programs
        yield Program(OFFICIAL, str(path.relative_to(examples)), text, transports)
    for name in ("pagination", "prompt", "resource", "tool", "streamablehttp", "streamablehttp-stateless"):
        path = examples / "servers" / f"simple-{name}" / f"mcp_simple_{name.replace('-', '_')}" / "server.py"
        has_streams = name.startswith("streamable")
        transports = ("click-http",) if has_streams else ("click", "click-sse")
        yield Program(OFFICIAL, str(path.relative_to(examples)), path.read_text(encoding="utf-8"), transports)
    path = examples / "servers" / "everything-server" / "mcp_everything_server" / "server.py"
    yield Program(OFFICIAL, str(path.relative_to(examples)), path.read_text(encoding="utf-8"), ("click-http",))
    path = examples / "servers" / "structured-output-lowlevel" / "mcp_structured_output_lowlevel" / "__main__.py"
    yield Program(OFFICIAL, str(path.relative_to(examples)), path.read_text(encoding="utf-8"), ("script",))


_CLIENTS: Final = {
    "completion_client": "",
    "display_utilities": "",
    "sse_client": "elicitation sse",
    "stdio_client": "",
    "streamable_basic": "fastmcp_quickstart streamable-http",
    "url_elicitation_client": "elicitation sse",
}


def _official_clients() -> Iterator[Program]:
    examples = install.source(OFFICIAL) / "examples"
    for name, server in _CLIENTS.items():
        path = examples / "snippets" / "clients" / f"{name}.py"
        yield Program(OFFICIAL, str(path.relative_to(examples)), path.read_text(encoding="utf-8"), ("client",), server)


def _fastmcp_examples() -> Iterator[Program]:
    examples = install.source(FASTMCP) / "examples"
    for path in sorted(examples.glob("*.py")):
        if path.stem not in LEFT_OUT:
            yield Program(FASTMCP, str(path.relative_to(examples.parent)), path.read_text(encoding="utf-8"))


_PAGES: Final = (
    "README.md", "docs/getting-started/quickstart.mdx", "docs/servers/tools.mdx", "docs/servers/resources.mdx",
    "docs/servers/prompts.mdx", "docs/servers/context.mdx", "docs/servers/progress.mdx", "docs/servers/logging.mdx",
)  # fmt: skip
_BLOCK: Final = re.compile(r"^ *```python[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def _fastmcp_pages() -> Iterator[Program]:
    """Yield the blocks of code that are whole programs: they make a server that has something."""
    source = install.source(FASTMCP)
    for page in _PAGES:
        for number, found in enumerate(_BLOCK.finditer((source / page).read_text(encoding="utf-8")), 1):
            text = found[1]
            if re.search(r"^from fastmcp import", text, re.MULTILINE) and re.search(r"^@mcp\.", text, re.MULTILINE):
                yield Program(FASTMCP, f"{page}, block {number}", text, ("stdio",))


# Running


def _environment(program: Program, ours: bool, folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", "FASTMCP_SHOW_CLI_BANNER": "false"}
    env |= {"UV_INDEX": "", "FASTMCP_LOG_LEVEL": "ERROR"}
    return {**env, "PYTHONPATH": PATHS} if ours else env


def _write(program: Program, ours: bool, folder: Path) -> Path:
    """Write a program and what stands beside it into a folder, with the imports of one of the libraries."""
    source = install.source(program.environment)
    path = source / "examples" / program.name if program.environment == OFFICIAL else source / program.name
    folder = folder / "example"
    folder.mkdir()
    (folder / "__init__.py").touch()
    target = folder / (path.name if path.suffix == ".py" else "program.py")
    for each in path.parent.iterdir() if path.parent.is_dir() and path.suffix == ".py" else ():
        if each.is_file() and each.suffix in (".py", ".png", ".wav", ".json") and each.stem != "__init__":
            if each.suffix == ".py":
                beside = Program(program.environment, program.name, each.read_text(encoding="utf-8"))
                (folder / each.name).write_text(rewrite(beside) if ours else beside.text, encoding="utf-8")
            else:
                (folder / each.name).write_bytes(each.read_bytes())
    target.write_text(rewrite(program) if ours else program.text, encoding="utf-8")
    return target


_CALL_MAIN: Final = "import sys; sys.path.insert(0, '.'); from example import server; server.main()"


def _command(program: Program, transport: str, file: Path, port: int) -> list[str]:
    python = str(install.python(program.environment))
    match transport:
        case "script":
            return [python, str(LAUNCH), str(file)]
        case "click":
            return [python, "-c", _CALL_MAIN]
        case "click-http" | "click-sse":
            rest = ["--port", str(port)] + (["--transport", "sse"] if transport == "click-sse" else [])
            return [python, "-c", _CALL_MAIN, *rest]
        case _:
            return [python, str(LAUNCH), str(file), transport, str(port)]


def _url(program: Program, transport: str, port: int) -> str:
    if transport in ("click-sse", "sse"):
        return f"http://127.0.0.1:{port}/sse"
    code = re.sub(r"^\s*#.*$", "", program.text, flags=re.MULTILINE)
    paths = re.findall(r"streamable_http_path ?= ?\"(.*?)\"", code)
    mounts = re.findall(r"Mount\(\"(.*?)\"", code)
    path = paths[0] if paths else "/mcp"
    if transport == "asgi":
        path = (mounts[0].rstrip("/") if mounts else "") + ("" if path == "/" else path)
    return f"http://127.0.0.1:{port}{path}"


_OVER_STDIO: Final = ("stdio", "script", "click")


async def _observe(program: Program, transport: str, ours: bool) -> JSON:
    """Run a server, ask it for all that it has, and return its answers by what was asked."""
    with tempfile.TemporaryDirectory() as name, reserved_port() as port:
        folder = Path(name)
        file = _write(program, ours, folder)
        command, env = _command(program, transport, file, port), _environment(program, ours, folder)
        if transport in _OVER_STDIO:
            target = typedmcp.StdioServerParameters(command[0], command[1:], env=env, cwd=folder, stderr="capture")
            return await ask_all(target)
        with (folder / "stderr").open("w+b") as errors:
            process = await asyncio.create_subprocess_exec(
                *command, env=env, cwd=folder, stdout=errors, stderr=errors, stdin=subprocess.DEVNULL
            )
            try:
                await _wait_for(port, process)
                return await ask_all(_url(program, transport, port), sse=transport in ("click-sse", "sse"))
            except Exception as error:
                errors.seek(0)
                tail = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                raise RuntimeError(f"{error} {' '.join(tail)}") from error
            finally:
                if process.returncode is None:
                    process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), 10)
                except TimeoutError:
                    process.kill()
                    await process.wait()


async def _wait_for(port: int, process: Any) -> None:
    """Wait until a server listens. Raises `RuntimeError` if its process ends before."""
    for _ in range(int(PATIENCE / 0.1)):
        if process.returncode is not None:
            raise RuntimeError(f"exit status {process.returncode}")
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise RuntimeError("the server does not listen")


def _print_of(program: Program, ours: bool) -> JSON:
    """Run a client, and return what it prints."""
    with tempfile.TemporaryDirectory() as name, reserved_port() as port:
        folder = Path(name)
        file = _write(program, ours, folder)
        servers = install.source(OFFICIAL) / "examples" / "snippets" / "servers"
        python = install.python(OFFICIAL)
        (folder / "bin").mkdir()
        shim = folder / "bin" / "uv"  # the clients start servers with `uv run server NAME TRANSPORT`
        shim.write_text(f'#!/bin/sh\nexec "{python}" "{LAUNCH}" "{servers}/$3.py" "$4"\n', encoding="utf-8")
        shim.chmod(0o755)
        text = file.read_text(encoding="utf-8").replace("localhost:8000", f"127.0.0.1:{port}")
        file.write_text(text, encoding="utf-8")
        env = _environment(program, ours, folder)
        server: subprocess.Popen[bytes] | None = None
        if program.server:
            name, transport = program.server.split()
            command = [str(python), str(LAUNCH), str(servers / f"{name}.py"), transport, str(port)]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            asyncio.run(_wait_for(port, server))
        try:
            done = subprocess.run(
                [str(python), str(file)], env=env, cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                input="list-tools\nsecure-payment\nn\nconnect-service\nn\nquit\n",
            )  # fmt: skip
        finally:
            if server is not None:
                server.terminate()
                server.wait()
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        text = done.stdout.replace(str(port), "PORT")
        return {f"line {number}": line for number, line in enumerate(text.splitlines(), 1)}


# Comparing


def _run(program: Program, transport: str, ours: bool) -> JSON:
    if transport == "client":
        return _print_of(program, ours)
    return asyncio.run(asyncio.wait_for(_observe(program, transport, ours), PATIENCE))


def _library_answers(program: Program, transport: str) -> JSON:
    """Return what a program answers with its library, without what differs between two runs.

    The versions are exact, so the answers are kept in `.interop`. Raises `RuntimeError` if it does not run.
    """
    parts = [program.text, program.server, transport, _read(LAUNCH), _read(Path(asking.__file__))]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    kept = install.INTEROP / program.environment / "answers" / f"{key}.json"
    if not kept.exists():
        try:
            first, second = (_run(program, transport, ours=False) for _ in range(2))
            found: JSON = {"answers": {name: value for name, value in first.items() if value == second.get(name)}}
        except Exception as error:
            found = {"failure": _last_line(error)}
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
    found = json.loads(_read(kept))
    if "failure" in found:
        raise RuntimeError(found["failure"])
    answers: JSON = found["answers"]
    return answers


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def compare(program: Program, transport: str) -> Comparison:
    """Run a program with its library and with ours."""
    found = Comparison(program, transport)
    try:
        before = _library_answers(program, transport)
    except RuntimeError as error:
        found.skipped = str(error)
        return found
    try:
        after = _run(program, transport, ours=True)
    except Exception as error:
        found.failure = _last_line(error)
        return found
    found.asked = len(before)
    found.differences = [
        f"{name}{place}: {was} → {now}"
        for name in before
        for place, was, now in _find_differences(before[name], json.loads(json.dumps(after.get(name))))
    ]
    return found


def _find_differences(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the places in two values that differ, each with both values as JSON."""
    if is_object(before) and is_object(after):
        for key in {**before, **after}:
            yield from _find_differences(before.get(key), after.get(key), f"{place}/{key}")
    elif is_array(before) and is_array(after) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _find_differences(one, other, f"{place}/{number}")
    elif before != after:
        yield place, json.dumps(before), json.dumps(after)


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:300]


def compare_all(programs: Sequence[Program], workers: int = 3) -> Iterator[Comparison]:
    """Compare all programs over all their transports."""
    cases = [(program, transport) for program in programs for transport in program.transports]
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(compare, *zip(*cases, strict=True))


_RUNS: Final = {"stdio": "stdio", "script": "stdio", "click": "stdio", "client": "its output", "click-sse": "SSE"}
"""Words for transports; the others are HTTP."""


def explain(program: Program, difference: str) -> str | None:
    """Return the reason of a difference or of a failure, or None for one that nobody has looked at."""
    reasons = {**GENERAL[program.environment], **REASONS[program.environment]}
    return next((reason for pattern, reason in reasons.items() if re.search(pattern, difference)), None)


def find_unexplained(found: Iterable[Comparison]) -> list[str]:
    """Return the differences and failures that have no reason."""
    return [
        f"{each.program.name} over {each.transport}: {text}"
        for each in found
        for text in [*each.differences, *([each.failure] if each.failure else [])]
        if explain(each.program, text) is None
    ]


def render(found: Sequence[Comparison]) -> str:
    """Return the tables of all comparisons: the counts, and a row for each program that does not do the same."""
    groups: dict[Program, list[Comparison]] = {}
    for each in found:
        if not each.skipped:  # it does not run with its own library
            groups.setdefault(each.program, []).append(each)
    counts = ["| written for | programs | the same answers | other answers | do not run |", "|---|---|---|---|---|"]
    rows = ["| program | lines changed | over | what differs |", "|---|---|---|---|"]
    for environment, title in TITLES.items():
        states = [_state_of(each) for program, each in groups.items() if program.environment == environment]
        numbers = " | ".join(str(states.count(state)) for state in ("same", "other", "failed"))
        counts.append(f"| {title} | {len(states)} | {numbers} |")
        theirs = [(program, each) for program, each in groups.items() if program.environment == environment]
        rows += [_row(program, each) for program, each in theirs if _state_of(each) != "same"]
    general = "; ".join(dict.fromkeys(GENERAL[FASTMCP].values()))
    note = f"What is not counted, since nearly all programs for fastmcp have it: {general}."
    return "\n".join([*counts, "", *wrap(note, 120), "", *rows])


def _state_of(found: Sequence[Comparison]) -> str:
    if any(each.failure for each in found):
        return "failed"
    return "other" if any(_own_differences(each) for each in found) else "same"


def _own_differences(found: Comparison) -> list[str]:
    """Return the differences and failures of a program that are not general."""
    general = GENERAL[found.program.environment]
    texts = [*found.differences, *([found.failure] if found.failure else [])]
    return [text for text in texts if not any(re.search(pattern, text) for pattern in general)]


def _row(program: Program, found: Sequence[Comparison]) -> str:
    reasons = [explain(program, text) or text for each in found for text in _own_differences(each)]
    over = ", ".join(dict.fromkeys(_RUNS.get(each.transport, "HTTP") for each in found))
    name = f"`{program.name.partition(',')[0]}`{program.name[len(program.name.partition(',')[0]) :]}"
    return f"| {name} | {program.changed_lines} | {over} | {'; '.join(dict.fromkeys(reasons)) or '–'} |"


def main() -> None:
    is_written, wanted = "--write" in sys.argv, [each for each in sys.argv[1:] if each != "--write"]
    programs = [each for each in list_programs() if not wanted or any(part in each.name for part in wanted)]
    found: list[Comparison] = []
    for each in compare_all(programs):
        found.append(each)
        state = f"SKIP {each.skipped}" if each.skipped else f"FAIL {each.failure}" if each.failure else "ok"
        print(f"{each.program.name} {each.transport} [{each.program.changed_lines}] {each.asked} {state}", flush=True)
        for difference in each.differences:
            print("     ", difference[:700], "" if explain(each.program, difference) else "(no reason)")
    if is_written:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), render(found)), encoding="utf-8")


def with_tables(page: str, tables: str) -> str:
    """Return a page with these tables between its marks."""
    begin, end = MARKS
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{tables}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    main()
