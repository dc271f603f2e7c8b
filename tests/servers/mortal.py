"""A server over standard input and output that ends where a file tells it to: `mortal.py REVISION FOLDER`.

It starts fast, since it imports nothing of the project. If the folder has a file `end`, the server removes it and ends
at the next request for tools. It writes each tool call into the file `calls` before it does anything else.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

revision, folder = sys.argv[1], Path(sys.argv[2])
INFO: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "mortal", "version": "1"}}
COMPLETE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
RESULTS: dict[str, Any] = {
    "tools/list": {**COMPLETE, "tools": [{"name": "x", "inputSchema": {"type": "object"}}]},
    "tools/call": {"resultType": "complete", "content": [{"type": "text", "text": "done"}]},
}
if revision < "2026":
    RESULTS.update({"initialize": {"protocolVersion": revision, **INFO}, "ping": {}})
else:
    RESULTS["server/discover"] = {**COMPLETE, "supportedVersions": [revision], **INFO}

for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "tools/call":
        with (folder / "calls").open("a") as calls:
            calls.write("x")
    if method.startswith("tools/") and (folder / "end").exists():
        (folder / "end").unlink()
        os._exit(3)
    if "id" in message:
        found = RESULTS.get(method)
        answer = {"error": {"code": -32601, "message": "no"}} if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
