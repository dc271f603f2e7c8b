"""The floor: a blocking loop that answers with constants, of the size that the others answer."""

import json
import os

from many import COUNT

PROPERTIES = {
    "city": {"type": "string", "description": "Where."},
    "days": {"type": "integer", "description": "For how many days.", "default": 3},
    "unit": {"type": "string", "description": "The unit of temperatures.", "default": "celsius"},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["city"]}
ABOUT = "Tell what the weather is going to be."
TOOLS = [{"name": f"tool_{n}", "description": ABOUT, "inputSchema": SCHEMA} for n in range(COUNT)]
INFO = {"name": "many", "version": "1"}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
ANSWERS = {
    b'"initialize"': json.dumps({"jsonrpc": "2.0", "id": 0, "result": OPENED}).encode() + b"\n",
    b'"tools/list"': json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": TOOLS}}).encode() + b"\n",
}

while line := os.read(0, 1 << 16):
    for method, answer in ANSWERS.items():
        if method in line:
            left = memoryview(answer)
            while left:
                left = left[os.write(1, left) :]
