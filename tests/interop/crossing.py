"""Clients of others use servers of others through `typedmcp proxy`: the servers, what is done, and what has to be seen.

Everything is real: the official clients in environments of their own, `typedmcp proxy` as a process, and processes of
servers. The transport is the same on both sides of the proxy, as far as a server has it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.interop.peers import HTTP, SSE, STDIO, Peer, printed
from tests.interop.test_servers import EVERYTHING, PYTHON_1, PYTHON_2, TYPESCRIPT
from tests.listening import running_on
from tests.ports import reserved_port
from tests.spoken import SUPPORTED
from tests.typedmcp_gateway.everyday_server import starting
from typedmcp.revisions.features import FEATURES, is_modern, structs_of

__all__ = [
    "CASES", "CLIENTS", "PROXY", "SERVERS", "CrossedServer", "limits", "offering", "serving_proxy", "use_server",
]  # fmt: skip

PROXY: Final = (sys.executable, "-m", "typedmcp", "proxy")
CLIENTS: Final = {
    transport: [peer for peer in peers if peer.client.startswith(("python", "typescript"))]
    for transport, peers in {"stdio": STDIO, "http": HTTP, "sse": SSE}.items()
}
"""The official clients by transport."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A call of a tool, and the parts that its result has, written without spaces."""

    tool: str
    arguments: Json = field(default_factory=dict[str, Any])
    parts: tuple[str, ...] = ()
    more: Json = field(default_factory=dict[str, Any])
    """What the client needs to know beside the call."""

    @property
    def plan(self) -> Json:
        return {"tool": self.tool, "arguments": self.arguments, **self.more}


def _call(tool: str, **arguments: Any) -> Json:
    return {"tool": tool, "arguments": arguments}


@dataclass(frozen=True)
class Uses:
    """What a client does with a kind of servers: by case, what it needs to know and the parts that it has to see."""

    steps: dict[str, Step]
    plans: dict[str, Json]
    parts: dict[str, tuple[str, ...]]
    forms: Json
    """The content that the user fills into forms."""

    def plan(self, revision: str) -> str:
        """Return the plan for the script of a client."""
        cases = {**self.plans, **{name: step.plan for name, step in self.steps.items()}}
        made = {"revision": revision, "forms": self.forms, "cases": {name: cases[name] for name in CASES}}
        return json.dumps(made)

    def parts_of(self, case: str) -> tuple[str, ...]:
        return self.steps[case].parts if case in self.steps else self.parts[case]


CASES: Final = (
    "list", "read and get", "text", "picture", "structure", "errors", "progress", "cancel", "sampling",
    "elicitation (form)", "elicitation (URL)", "roots", "completion", "subscriptions",
)  # fmt: skip
_NEEDED: Final = {"elicitation (form)": "ElicitRequest", "elicitation (URL)": "ElicitRequestURLParams"}
"""The type that a revision needs for a case. All revisions have those of the other cases."""
ANSWER: Final = "Paris,ofcourse."
ROOT: Final = "file:///home/ada/project"

OURS: Final = Uses(
    steps={
        "text": Step("text", parts=('"text":"plaintext"',)),
        "picture": Step("picture", parts=('"mimeType":"image/png"', '"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAA')),
        "structure": Step("add", {"a": 1, "b": 2}, ('"sum":3',)),
        "progress": Step("count", parts=('"text":"3"', '"seen":[[1,3],[2,3],[3,3]]')),
        "cancel": Step("hang", more={"count": _call("cancellations", at_least=0), "uncounted": False}),
        "sampling": Step("ask_model", parts=(f'"text":"{ANSWER}"', '"text":"Whichcolour?"')),
        "elicitation (form)": Step("ask_person", parts=('"text":"Ada36True"', '"message":"Whoareyou?"')),
        "elicitation (URL)": Step("ask_url", parts=('"text":"accept"', '"url":"https://example.com/sign-in"')),
        "roots": Step("ask_roots", parts=(f'["{ROOT}"]',)),
    },
    plans={
        "list": {},
        "read and get": {"uri": "note://tea", "prompt": {"name": "greeting", "arguments": {"name": "Ada"}}},
        "errors": {"tool": _call("fail"), "uri": "note://coffee", "prompt": "unknown"},
        "completion": {"prompt": "greeting", "argument": "name", "value": "A"},
        "subscriptions": {
            "uri": "note://tea", "change": [_call("touch")], "end": [], "expected": ["note://tea", "tools"],
        },
    },
    parts={
        "list": ('"add"', '"prompts":["greeting"]', '"resources":["note://tea"]', '"templates":["city://{name}"]'),
        "read and get": ('"uri":"note://tea"', '"text":"SayhellotoAda."'),
        "errors": ('"isError":true', '"data":{"uri":"note://coffee"}', "thistoolfails"),
        "completion": ('"values":["Ada","Alan"]',),
        "subscriptions": ('["note://tea","tools"]',),
    },
    forms={"name": "Ada", "age": 36, "value": True},
)  # fmt: skip
OFFER: Final = Uses(
    steps={
        "text": Step("text", parts=("Grüße,世界!", "🎈")),
        "picture": Step("kinds", parts=('"mimeType":"image/png"', '"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAA')),
        "structure": Step("structured", parts=('"degrees":12.5,"sky":"blue"',)),
        "progress": Step("progress", parts=('"done"', '"seen":[[1,5],[2,5],[3,5],[4,5],[5,5]]')),
        "cancel": Step("wait", more={"count": _call("cancelled"), "uncounted": False}),
        "sampling": Step("sample", parts=(f'"text":"{ANSWER}"', "WhatisthecapitalofFrance?")),
        "elicitation (form)": Step("elicit", parts=('"plan":"paid"', '"action":"accept"', '"message":"Whoareyou?"')),
        "elicitation (URL)": Step("visit", parts=('"action":"accept"', '"url":"https://example.org/sign-in')),
        "roots": Step("roots", parts=(f'"uri":"{ROOT}"',)),
    },
    plans={
        "list": {},
        "read and get": {"uri": "test://bytes", "prompt": {"name": "greet", "arguments": {"name": "Ada"}}},
        "errors": {"tool": _call("failed"), "uri": "test://no-such-resource", "prompt": "no_such_prompt"},
        "completion": {"prompt": "greet", "argument": "style", "value": "f"},
        "subscriptions": {
            "uri": "test://watched", "change": [_call("change", what="tools"), _call("change", what="test://watched")],
            "end": [], "expected": ["test://watched", "tools"],
        },
    },
    parts={
        "list": ('"roots_changes"', '"prompts":["greet","talk","asked","b","c"]', "%C3%BC%20b.txt", '"test://d/{x}/{y}"'),
        "read and get": ('"blob":"AAEC/w=="', '"text":"HelloAda,plainly."'),
        "errors": ('"isError":true', "Itdidnotwork.", '"data":{"uri":"test://no-such-resource"}'),
        "completion": ('"values":["formal","friendly","funny"]',),
        "subscriptions": ('["test://watched","tools"]',),
    },
    forms={"name": "Ada", "age": 36, "plan": "paid", "ok": True},
)  # fmt: skip
EVERYTHING_USES: Final = Uses(
    steps={
        "text": Step("echo", {"message": "Grüße"}, ('"text":"Echo:Grüße"',)),
        "picture": Step("get-tiny-image", parts=('"mimeType":"image/png"', '"data":"iVBORw0KGgoAAAANSUhEUgAAABQAAAAU')),
        "structure": Step("get-structured-content", {"location": "Chicago"}, ('"temperature":', '"humidity":')),
        "progress": Step(
            "trigger-long-running-operation", {"duration": 2, "steps": 2}, ('"seen":[[1,2],[2,2]]', "completed.")
        ),
        "cancel": Step(
            "trigger-long-running-operation", {"duration": 4, "steps": 40},
            more={"count": _call("echo", message="still"), "uncounted": True},
        ),
        "sampling": Step("trigger-sampling-request", {"prompt": "Say it", "maxTokens": 7}, (ANSWER, "Sayit")),
        "elicitation (form)": Step("trigger-elicitation-request", parts=("Name:Ada", '"requestedSchema"')),
        "elicitation (URL)": Step(
            "trigger-url-elicitation", {"url": "https://example.org/page", "message": "Go.", "elicitationId": "one"},
            ("✅", '"url":"https://example.org/page"'),
        ),
        "roots": Step("get-roots-list", parts=("(1total)", ROOT)),
    },
    plans={
        "list": {},
        "read and get": {
            "uri": "demo://resource/static/document/features.md",
            "prompt": {"name": "args-prompt", "arguments": {"city": "Oslo", "state": "Norway"}},
        },
        "errors": {"tool": _call("get-sum", a="one"), "uri": "demo://none", "prompt": "none"},
        "completion": {"prompt": "completable-prompt", "argument": "department", "value": "E"},
        "subscriptions": {
            "uri": "demo://resource/dynamic/text/1", "change": [_call("toggle-subscriber-updates")],
            "end": [_call("toggle-subscriber-updates")], "expected": ["demo://resource/dynamic/text/1"],
        },
    },
    parts={
        "list": ('"echo"', '"simple-prompt"', "features.md", '"demo://resource/dynamic/blob/{resourceId}"'),
        "read and get": ("#EverythingServer", "What'sweatherinOslo,Norway?"),
        "errors": ('"isError":true', "Resourcedemo://nonenotfound", "Promptnonenotfound"),
        "completion": ('"values":["Engineering"]',),
        "subscriptions": ('"demo://resource/dynamic/text/1"',),
    },
    forms={"name": "Ada", "check": True},
)  # fmt: skip


@dataclass(frozen=True)
class CrossedServer:
    """A server behind the proxy."""

    label: str
    """Its name in tables."""
    kind: str
    """"ours", "official" or "everything"."""
    revision: str
    """The revision that it speaks with the proxy."""
    uses: Uses

    def __str__(self) -> str:
        return self.label

    @property
    def proxy_options(self) -> list[str]:
        """The options of the proxy: it tries no other revision, which a server that starts slowly could miss."""
        return ["--revision", self.revision]


def _official(name: str, revision: str) -> CrossedServer:
    return CrossedServer(f"{name}, {revision}", name, revision, OFFER)


SERVERS: Final = {
    server.label: server
    for server in (
        *(CrossedServer(f"typedmcp, {revision}", "ours", revision, OURS) for revision in SUPPORTED),
        _official("Python 2", SUPPORTED[0]),
        _official("Python 2", "2025-11-25"),
        _official("Python 1", "2025-11-25"),
        *(_official("TypeScript", revision) for revision in SUPPORTED),
        CrossedServer("everything, 2025-11-25", "everything", "2025-11-25", EVERYTHING_USES),
    )
}
"""The servers behind the proxy, by their names in tables."""

_OFFICIAL: Final = {"Python 1": PYTHON_1, "Python 2": PYTHON_2, "TypeScript": TYPESCRIPT, "everything": EVERYTHING}


def _has_sse(server: CrossedServer) -> bool:
    return server.kind != "TypeScript" and not is_modern(server.revision)


@contextmanager
def offering(server: CrossedServer, transport: str) -> Generator[list[str]]:
    """Yield the target for clients: the command of the proxy, or the address of a running one."""
    options = [*PROXY, *server.proxy_options]
    if transport == "stdio":
        yield [*options, "--", *_command(server, "stdio")]
        return
    upstream = "sse" if transport == "sse" and _has_sse(server) else "http"
    if server.kind == "ours" and not FEATURES[server.revision].has_streamable_http:
        upstream = "sse"
    with _running(server, upstream) as url, serving_proxy([*options, "--http", "0", url]) as address:
        yield [address + ("/sse" if transport == "sse" else "/mcp")]


def _command(server: CrossedServer, transport: str) -> list[str]:
    if server.kind == "ours":
        return starting(server.revision, transport)
    parameters = _OFFICIAL[server.kind].parameters()
    return [parameters.command, *parameters.args]


@contextmanager
def _running(server: CrossedServer, transport: str) -> Generator[str]:
    """Start a server over HTTP or HTTP with SSE, and yield its URL."""
    if server.kind == "everything":
        with _everything(transport) as url:
            yield url
        return
    arguments = [] if server.kind == "ours" else [transport]
    command = [*_command(server, "http"), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline().strip()
            path = "/sse" if transport == "sse" else "/mcp"
            yield line if line.startswith("http") else f"http://127.0.0.1:{int(line)}{path}"
        finally:
            process.terminate()


@contextmanager
def _everything(transport: str) -> Generator[str]:
    """Start npm's everything server over HTTP. It prints no URL, and does not end by itself."""
    parameters = EVERYTHING.parameters("sse" if transport == "sse" else "streamableHttp")
    command = [parameters.command, *parameters.args]
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    with (
        reserved_port() as port,
        subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, **pipes) as process,
    ):
        assert process.stderr is not None
        try:
            assert any("port" in line.lower() for line in process.stderr), "the server ended"
            yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
        finally:
            process.kill()


@contextmanager
def serving_proxy(command: list[str]) -> Generator[str]:
    """Start the proxy over HTTP, and yield its address."""
    with running_on(command) as url:
        yield url.removesuffix("/mcp")


def use_server(peer: Peer, server: CrossedServer, target: list[str]) -> dict[str, str | None]:
    """Let a client use a server. Return the message of each case that could not be said, and None for the others."""
    env = {**os.environ, "PLAN": server.uses.plan(peer.revision)}
    seen: Json = json.loads(printed(peer.command(*target, script="plan"), env))
    assert seen["about"]["protocolVersion"] == peer.revision
    uses = server.uses
    return {name: _failure(name, seen[name], uses.steps.get(name), uses.parts_of(name)) for name in CASES}


def _failure(case: str, seen: Any, step: Step | None, parts: tuple[str, ...]) -> str | None:
    """Return None if an observation has all parts, else what was said instead."""
    text = re.sub(r"\s|\\n", "", json.dumps(seen, ensure_ascii=False)).replace("\\", "")
    text = re.sub(r"(\d)\.0\b", r"\1", text)
    if "failed" in seen:
        return text
    if case == "cancel" and step is not None:
        is_counted = "answered" in seen["after"] and (step.more["uncounted"] or seen["after"] != seen["before"])
        return None if is_counted and seen["ended"] == "cancelled" else text
    missing = [part for part in parts if part not in text]
    return f"{missing[0]} is missing in {text}" if missing else None


def limits(peer: Peer, server: CrossedServer) -> dict[str, str]:
    """Return the cases that a revision has no message for, and whose revision that is: client, server or both."""
    revisions = {"client": structs_of(peer.revision), "server": structs_of(server.revision)}
    found: dict[str, str] = {}
    for case, name in _NEEDED.items():
        lacking = [side for side, structs in revisions.items() if not hasattr(structs, name)]
        if lacking:
            found[case] = "both" if len(lacking) == 2 else lacking[0]
    return found
