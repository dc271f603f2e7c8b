"""The other end for clients: a blocking loop that decodes, echoes and encodes, and does nothing else."""

import os

import msgspec

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode_into

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "echo", "version": "1"},
}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "large")]

rest = b""
while data := os.read(0, 1 << 16):
    *lines, rest = (rest + data).split(b"\n")
    out = bytearray()
    for line in lines:
        message = decode(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "tools/call":
            arguments = message["params"]["arguments"]
            text = arguments["text"] if "text" in arguments else "x" * arguments["size"]
            answer["result"] = {"content": [{"type": "text", "text": text}]}
        elif message["method"] == "initialize":
            answer["result"] = INITIALIZED
        elif message["method"] == "tools/list":
            answer["result"] = {"tools": TOOLS}
        else:
            answer["error"] = {"code": -32601, "message": "method not found"}
        encode(answer, out, -1)
        out += b"\n"
    view = memoryview(out)
    while view:
        view = view[os.write(1, view) :]
    view.release()
