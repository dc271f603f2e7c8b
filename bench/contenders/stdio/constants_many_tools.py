"""The floor for many tools: a blocking loop that sends constant responses of usual size."""

import json
import os

from many_tools import COUNT

PROPERTIES = {
    "city": {"type": "string", "description": "The city."},
    "days": {"type": "integer", "description": "How many days.", "default": 3},
    "unit": {"type": "string", "description": "The unit of temperatures.", "default": "celsius"},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["city"]}
ABOUT = "Forecast the weather for a city."
TOOLS = [{"name": f"tool_{n}", "description": ABOUT, "inputSchema": SCHEMA} for n in range(COUNT)]
INFO = {"name": "many", "version": "1"}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
RESPONSES = {
    b'"initialize"': json.dumps({"jsonrpc": "2.0", "id": 0, "result": INITIALIZED}).encode() + b"\n",
    b'"tools/list"': json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": TOOLS}}).encode() + b"\n",
}

while line := os.read(0, 1 << 16):
    for method, response in RESPONSES.items():
        if method in line:
            left = memoryview(response)
            while left:
                left = left[os.write(1, left) :]
