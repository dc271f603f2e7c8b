"""A server of an older revision over stdio that notes each start, and ends in some way at `server/discover`.

Arguments: the file for the notes; what to do: "die" with an error, "plan" to end with status 64, or "start" not at all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

INITIALIZED: dict[str, Any] = {
    "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "frail", "version": "1"},
}  # fmt: skip


def main(notes: Path, behaviour: str) -> None:
    with notes.open("a", encoding="utf-8") as file:
        file.write("started\n")
    if behaviour == "start":
        sys.exit(1)
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "server/discover":
            sys.exit(64 if behaviour == "plan" else 1)
        if "id" in message:
            result = INITIALIZED if message["method"] == "initialize" else {}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


main(Path(sys.argv[1]), sys.argv[2])
