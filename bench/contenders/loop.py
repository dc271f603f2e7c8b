"""The floor: a blocking loop that decodes, calls and encodes with the generated types, and does nothing else."""

import os
import sys

import msgspec

import mcpspec
from mcpspec._support.structs import dec_hook

REVISION = sys.argv[1]
structs = mcpspec.revision(REVISION).structs
decoder = msgspec.json.Decoder(structs.CallToolRequest, dec_hook=dec_hook)
encoder = msgspec.json.Encoder()
extra = {"result_type": "complete"} if "result_type" in structs.CallToolResult.__struct_fields__ else {}


class Response(msgspec.Struct):
    jsonrpc: str
    id: int | str
    result: object


def echo(params):
    return structs.CallToolResult(content=[structs.TextContent(text=params.arguments["text"])], **extra)


rest = b""
while data := os.read(0, 1 << 16):
    *lines, rest = (rest + data).split(b"\n")
    out = bytearray()
    for line in lines:
        if b'"tools/call"' not in line:
            continue
        request = decoder.decode(line)
        encoder.encode_into(Response("2.0", request.id, echo(request.params)), out, -1)
        out += b"\n"
    os.write(1, out)
