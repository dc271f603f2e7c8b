"""The web application of `typedmcp dev`: the files of the page, a stream of events, and actions as JSON.

It is plain ASGI: five paths need no framework.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final, TypeAlias

import msgspec

from typedmcp.building import decode_json
from typedmcp.revisions.features import SUPPORTED
from typedmcp_cli.dev.access import SECURITY_HEADERS, AccessDeniedError, AccessGuard, Receive, Scope, Send
from typedmcp_cli.dev.inspector import Inspector
from typedmcp_cli.dev.questions import AnswerError
from typedmcp_cli.features import Kind

__all__ = ["InspectorApp"]

_MAX_BODY_BYTES: Final = 8 << 20
"""Bytes of one action. Files in arguments are text in JSON."""
_TYPES: Final = {"html": b"text/html", "css": b"text/css", "js": b"text/javascript"}


class _Connect(msgspec.Struct, tag="connect", tag_field="action"):
    revision: str | None


class _Call(msgspec.Struct, tag="call", tag_field="action"):
    id: str
    kind: Kind
    name: str
    arguments: dict[str, Any]


class _Cancel(msgspec.Struct, tag="cancel", tag_field="action"):
    id: str


class _Answer(msgspec.Struct, tag="answer", tag_field="action"):
    id: str
    answer: dict[str, Any]


class _Clear(msgspec.Struct, tag="clear", tag_field="action"):
    pass


_Action: TypeAlias = _Connect | _Call | _Cancel | _Answer | _Clear


class InspectorApp:
    """Serves the page to the browser that has the token."""

    def __init__(self, inspector: Inspector, guard: AccessGuard) -> None:
        self._inspector = inspector
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._respond(self._guard.check(scope), scope, receive, send)
        except AccessDeniedError as error:
            await _send_whole(send, error.status, b"text/plain", f"{error}\n".encode())

    async def _respond(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path == "actions" and scope["method"] == "POST":
            await self._act(scope, receive, send)
        elif scope["method"] != "GET":
            await _send_whole(send, 405, b"text/plain", b"method not allowed\n")
        elif path == "events":
            await self._stream(send)
        else:
            await _send_file(send, path or "index.html")

    async def _stream(self, send: Send) -> None:
        await send(_start(200, b"text/event-stream"))
        try:
            async for event in self._inspector.events.stream():
                await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            pass  # the page is closed

    async def _act(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run an action. The content type is one that no form of another page can send."""
        if dict(scope["headers"]).get(b"content-type", b"") != b"application/json":
            await _send_whole(send, 415, b"text/plain", b"expected application/json\n")
            return
        body = await _read_body(receive)
        if body is None:
            await _send_whole(send, 413, b"text/plain", f"at most {_MAX_BODY_BYTES} bytes\n".encode())
            return
        try:
            await self._run(decode_json(body, _Action))
        except AnswerError as error:  # the page shows it; the request was right
            await _send_whole(send, 200, b"text/plain", str(error).encode(errors="replace"))
        except ValueError as error:
            await _send_whole(send, 400, b"text/plain", f"{error}\n".encode(errors="replace"))
        else:
            await _send_whole(send, 204, b"text/plain", b"")

    async def _run(self, action: _Action) -> None:
        inspector = self._inspector
        if isinstance(action, _Connect):
            if action.revision not in (None, *SUPPORTED):
                raise AnswerError("revision: unknown")
            await inspector.connect(action.revision, "chosen on the page")
        elif isinstance(action, _Call):
            inspector.start_call(action.id, action.kind, action.name, action.arguments)
        elif isinstance(action, _Answer):
            inspector.questions.answer(action.id, action.answer)
        elif isinstance(action, _Cancel):
            inspector.cancel_call(action.id)
        else:
            inspector.events.clear()


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body of a request, or None if it is too long."""
    body = b""
    while len(body) <= _MAX_BODY_BYTES:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body if len(body) <= _MAX_BODY_BYTES else None
    return None


async def _send_file(send: Send, name: str) -> None:
    folder = files("typedmcp_cli.dev") / "static"
    if name not in {file.name for file in folder.iterdir()}:
        await _send_whole(send, 404, b"text/plain", b"not found\n")
        return
    kind = _TYPES[name.rpartition(".")[2]]
    await _send_whole(send, 200, kind + b"; charset=utf-8", (folder / name).read_bytes())


async def _send_whole(send: Send, status: int, kind: bytes, body: bytes) -> None:
    await send(_start(status, kind))
    await send({"type": "http.response.body", "body": body})


def _start(status: int, kind: bytes) -> dict[str, Any]:
    headers = [(b"content-type", kind), *SECURITY_HEADERS]
    return {"type": "http.response.start", "status": status, "headers": headers}
