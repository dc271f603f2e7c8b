"""The server that clients call over stdio: a blocking loop that decodes, echoes and encodes, and nothing else."""

import os

import msgspec
from echo_answers import make_response

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode_into

parts = []
while data := os.read(0, 1 << 16):
    parts.append(data)
    if b"\n" not in data:
        continue
    *lines, rest = b"".join(parts).split(b"\n")
    parts = [rest]
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
