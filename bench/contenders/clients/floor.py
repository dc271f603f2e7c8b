"""The floor: a blocking loop that encodes calls, writes, reads and decodes the answers: `floor.py SERVER`."""

import os
import subprocess
import sys
import time

import msgspec
from pacing import TEXT, turns


class Params(msgspec.Struct):
    name: str
    arguments: dict[str, str]


class Request(msgspec.Struct):
    jsonrpc: str
    id: int
    method: str
    params: Params


class Content(msgspec.Struct):
    type: str
    text: str


class Result(msgspec.Struct):
    content: list[Content]


class Response(msgspec.Struct):
    id: int
    result: Result


encode = msgspec.json.Encoder().encode_lines
decode = msgspec.json.Decoder(Response).decode


def requests(first, count):
    return encode(
        [Request("2.0", id, "tools/call", Params("echo", {"text": TEXT})) for id in range(first, first + count)]
    )


def rate(process, depth, seconds):
    """Calls a second: as many are sent as have been answered."""
    read, write = process.stdout.fileno(), process.stdin.fileno()
    start = time.perf_counter()
    sent, answered, rest = depth, 0, b""
    os.write(write, requests(0, depth))
    while answered < sent:
        *whole, rest = (rest + os.read(read, 1 << 16)).split(b"\n")
        for line in whole:
            response = decode(line)
            if response.id != answered or response.result.content[0].text != TEXT:
                raise RuntimeError("no echo")
            answered += 1
        if whole and time.perf_counter() - start < seconds:
            os.write(write, requests(sent, len(whole)))
            sent += len(whole)
    return answered / (time.perf_counter() - start)


command = [sys.executable, sys.argv[1]]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603
    rate(process, 1, 0)
    for depth, seconds in turns():
        rate(process, depth, seconds / 5)
        print(rate(process, depth, seconds), flush=True)
