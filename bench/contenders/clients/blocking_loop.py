"""The floor for clients: a blocking loop that encodes and sends calls, and receives and decodes the responses.

Usage: `blocking_loop.py TARGET REVISION`. TARGET is the script of a server, or a URL, with a connection for each
concurrent call.
"""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from selectors import EVENT_READ, DefaultSelector
from urllib.parse import urlsplit

import msgspec
from pacing import TEXT, read_turns


class Params(msgspec.Struct, omit_defaults=True):
    name: str
    arguments: dict[str, str]
    meta: dict[str, object] = msgspec.field(name="_meta", default_factory=dict)


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


class CallResponse(msgspec.Struct):
    id: int
    result: Result


TARGET, REVISION = sys.argv[1:3]
URL = urlsplit(TARGET)
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "floor", "version": "1"},
}
HEAD = f"POST {URL.path} HTTP/1.1\r\nHost: {URL.netloc}\r\nContent-Type: application/json\r\n"
HEAD += f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\n"
HEAD += "Mcp-Method: tools/call\r\nMcp-Name: echo\r\n" if REVISION == MODERN else "Mcp-Session-Id: the-only-one\r\n"

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(CallResponse).decode


def make_request(id):
    params = Params("echo", {"text": TEXT}, META if REVISION == MODERN else {})
    return encode(Request("2.0", id, "tools/call", params))


def check(data, id):
    response = decode(data)
    if response.id != id or response.result.content[0].text != TEXT:
        raise RuntimeError("the response is not an echo")


def measure_stdio(process, depth, seconds, least=0):
    """Return calls per second. Each response triggers the next call."""
    read, write = process.stdout.fileno(), process.stdin.fileno()
    start = time.perf_counter()
    sent, answered, rest = depth, 0, b""
    os.write(write, b"".join(make_request(id) + b"\n" for id in range(depth)))
    while answered < sent:
        *whole, rest = (rest + os.read(read, 1 << 16)).split(b"\n")
        for line in whole:
            check(line, answered)
            answered += 1
        if whole and (sent < least or time.perf_counter() - start < seconds):
            os.write(write, b"".join(make_request(id) + b"\n" for id in range(sent, sent + len(whole))))
            sent += len(whole)
    return answered / (time.perf_counter() - start)


def post(connection, id):
    body = make_request(id)
    connection.sendall(b"%bContent-Length: %d\r\n\r\n%b" % (HEAD.encode(), len(body), body))


def receive(connection):
    """Receive the body of the next response."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive_more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += receive_more(connection)
    return body


def receive_more(connection):
    if data := connection.recv(1 << 16):
        return data
    raise RuntimeError("the server closed the connection")


def measure_http(_, depth, seconds, least=0):
    """Return calls per second. Each response triggers the next call on its connection."""
    with ExitStack() as stack, DefaultSelector() as selector:
        for id in range(depth):
            connection = stack.enter_context(socket.create_connection((URL.hostname, URL.port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connection, EVENT_READ, id)
        start = time.perf_counter()
        sent = answered = 0
        pending = {}
        for key in list(selector.get_map().values()):
            post(key.fileobj, sent)
            pending[key.fileobj] = sent
            sent += 1
        while answered < sent:
            for key, _ in selector.select():
                check(receive(key.fileobj), pending[key.fileobj])
                answered += 1
                if sent < least or time.perf_counter() - start < seconds:
                    post(key.fileobj, sent)
                    pending[key.fileobj] = sent
                    sent += 1
        return answered / (time.perf_counter() - start)


def take_turns(measure, process=None):
    measure(process, 1, 0)
    for depth, seconds, least in read_turns():
        measure(process, depth, seconds / 5)
        print(measure(process, depth, seconds, least), flush=True)


if URL.scheme == "http":
    take_turns(measure_http)
else:
    command = [sys.executable, TARGET]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603
        take_turns(measure_stdio, process)
