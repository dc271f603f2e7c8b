"""A recorder between a client and a server: it forwards every byte, and writes a line of JSON for each message.

Let a host start `python recorder.py LOG COMMAND …` instead of the server `COMMAND …`. Each line has the revision, the
sender, the method, a summary of the typed message, and the members that the revision does not declare. Run
`python recorder.py`: it records a call of `quickstart.py`.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import shorten
from threading import Lock, Thread
from typing import IO, Any

import mcpspec
import typedmcp
from mcpspec.support.envelope import ErrorFrame, NotificationFrame, RequestFrame, ResultFrame, parse_frame, split_batch
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import is_object
from mcpspec.support.unknown import unknown_members

VERSION_IN_META = "io.modelcontextprotocol/protocolVersion"


class Recorder:
    """Describes messages, and knows of each response which request it belongs to."""

    def __init__(self, log: IO[str]) -> None:
        self.log = log
        self.lock = Lock()  # both directions write
        self.revision = mcpspec.LATEST  # until a message says another one
        self.methods: dict[tuple[str, str | int], str] = {}

    def record(self, sender: str, line: bytes) -> None:
        with self.lock:
            for message in split_messages(line):
                described = self.describe(sender, message)
                print(json.dumps({"revision": self.revision, "from": sender, **described}), file=self.log, flush=True)

    def describe(self, sender: str, message: bytes) -> dict[str, Any]:
        try:
            frame = parse_frame(message)
        except DecodeError as error:
            return {"kind": "invalid", "error": str(error)}
        match frame:
            case RequestFrame(id=id, method=method, params=params):
                self.methods[sender, id] = method
                return {"kind": "request", "id": id, "method": method, **self.read(method, "params", params)}
            case NotificationFrame(method=method, params=params):
                return {"kind": "notification", "method": method, **self.read(method, "params", params)}
            case ResultFrame(id=id, result=result):
                method = self.methods.pop(("server" if sender == "client" else "client", id), "")
                return {"kind": "result", "id": id, "method": method, **self.read(method, "result", result)}
            case ErrorFrame(id=id, error=body):
                return {"kind": "error", "id": id, "error": json.loads(body)}

    def read(self, method: str, part: str, text: bytes | None) -> dict[str, Any]:
        """Decode parameters or a result with the types of the revision, and return what is to be recorded."""
        if text is None:
            return {}
        try:
            self.revision = find_revision(json.loads(text)) or self.revision
            package = mcpspec.revision(self.revision)
            if (record := package.methods.METHODS.get(method)) is None:
                return {"error": "the revision does not have this method"}
            kind = getattr(record, part)
            value = package.structs.decode(text, kind)
            return {"message": shorten(repr(value), 120), "unknown": unknown_members(text, kind)}
        except ValueError as error:  # not JSON, or not what the revision allows
            return {"error": str(error)}


def split_messages(line: bytes) -> list[bytes]:
    try:
        return split_batch(line)
    except DecodeError:
        return [line]  # `describe` says what is wrong


def find_revision(plain: dict[str, Any]) -> str | None:
    """Return the revision that a message names, in a handshake or in `_meta`."""
    meta = plain.get("_meta")
    named = plain.get("protocolVersion", meta.get(VERSION_IN_META) if is_object(meta) else None)
    return named if named in mcpspec.VERSIONS else None


def forward(sender: str, source: IO[bytes], target: IO[bytes], recorder: Recorder) -> None:
    for line in iter(source.readline, b""):
        recorder.record(sender, line)
        target.write(line)
        target.flush()
    target.close()


def start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # the user's


def serve(log: Path, command: list[str]) -> int:
    with log.open("a") as file, start(command) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        recorder = Recorder(file)
        Thread(target=forward, args=("client", sys.stdin.buffer, server.stdin, recorder), daemon=True).start()
        forward("server", server.stdout, sys.stdout.buffer, recorder)
    return server.returncode


async def main() -> None:
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "messages.jsonl"
        command = [sys.executable, __file__, str(log), sys.executable, str(here / "quickstart.py")]
        async with typedmcp.connect(command) as client:
            await client.call_tool("greet", {"name": "Ada"})
        for line in log.read_text().splitlines():
            found = json.loads(line)
            print(found["revision"], found["from"], found["kind"], found["method"], found["message"])


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(serve(Path(sys.argv[1]), sys.argv[2:]))
    asyncio.run(main())
