"""The floor for servers: a blocking loop that decodes, calls and encodes with the generated types, and nothing else."""

import os
import sys

import msgspec

import mcpspec
from mcpspec.support.structs import dec_hook

REVISION = sys.argv[1]
structs = mcpspec.revision(REVISION).exact.structs
decoder = msgspec.json.Decoder(structs.CallToolRequest, dec_hook=dec_hook)
encoder = msgspec.json.Encoder()
extra = {"result_type": "complete"} if "result_type" in structs.CallToolResult.__struct_fields__ else {}
initialized = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}'
initialized += b',"serverInfo":{"name":"floor","version":"1"}}}\n'


class EchoResponse(msgspec.Struct):
    jsonrpc: str
    id: int | str
    result: object


def call_tool(params):
    arguments = params.arguments
    text = arguments["text"] if params.name == "echo" else "x" * arguments["size"]
    return structs.CallToolResult(content=[structs.TextContent(text=text)], **extra)


rest = b""
while data := os.read(0, 1 << 16):
    *lines, rest = (rest + data).split(b"\n")
    out = bytearray()
    for line in lines:
        if b'"tools/call"' in line:
            request = decoder.decode(line)
            encoder.encode_into(EchoResponse("2.0", request.id, call_tool(request.params)), out, -1)
            out += b"\n"
        elif b'"initialize"' in line:
            out += initialized
    os.write(1, out)
