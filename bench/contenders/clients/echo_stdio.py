"""The server that clients call over stdio: a blocking loop that decodes, echoes and encodes, and nothing else."""

import os

import msgspec
from echo_answers import make_response

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode_into

rest = b""
while data := os.read(0, 1 << 16):
    *lines, rest = (rest + data).split(b"\n")
    out = bytearray()
    for line in lines:
        message = decode(line)
        if "id" in message:
            encode(make_response(message), out, -1)
            out += b"\n"
    view = memoryview(out)
    while view:
        view = view[os.write(1, view) :]
    view.release()
