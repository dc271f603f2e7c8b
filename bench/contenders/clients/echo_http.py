"""The other end for clients over HTTP: an ASGI application that decodes, echoes and encodes, and does nothing else."""

import msgspec

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode

VERSIONS = ["2025-11-25", "2026-07-28"]
INFO = {"name": "echo", "version": "1"}
COMPLETE = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
KEPT = {"ttlMs": 60_000, "cacheScope": "public"}
TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}]

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}
OPENED = {**START, "headers": [*START["headers"], (b"mcp-session-id", b"the-only-one")]}
ACCEPTED = {"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]}
NOT_HERE = {"type": "http.response.start", "status": 405, "headers": [(b"content-length", b"0"), (b"allow", b"POST")]}
EMPTY = {"type": "http.response.body", "body": b""}


def answered(method, params):
    """The result of a request: on older revisions what the newest adds is not known, and does no harm."""
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}], **COMPLETE}
    if method == "server/discover":
        return {"supportedVersions": VERSIONS, "capabilities": {"tools": {}}, **COMPLETE, **KEPT}
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    return {"tools": TOOLS, **COMPLETE, **KEPT}


async def app(scope, receive, send):
    if scope["method"] != "POST":
        await send(NOT_HERE)
        return await send(EMPTY)
    data = b""
    while True:
        part = await receive()
        data += part["body"]
        if not part.get("more_body"):
            break
    message = decode(data)
    if "id" not in message:
        await send(ACCEPTED)
        return await send(EMPTY)
    method = message["method"]
    result = answered(method, message.get("params"))
    body = encode({"jsonrpc": "2.0", "id": message["id"], "result": result})
    await send(OPENED if method == "initialize" else START)
    return await send({"type": "http.response.body", "body": body})
