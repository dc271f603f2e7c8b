"""What the other ends for clients answer, over stdio and over HTTP."""

VERSIONS = ["2025-11-25", "2026-07-28"]
INFO = {"name": "echo", "version": "1"}
COMPLETE = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
KEPT = {"ttlMs": 60_000, "cacheScope": "public"}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "large")]


def answer(message):
    """The answer to a request: on older revisions what the newest adds is not known, and does no harm."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": result(message["method"], message.get("params"))}


def result(method, params):
    if method == "tools/call":
        arguments = params["arguments"]
        text = arguments["text"] if "text" in arguments else "x" * arguments["size"]
        return {"content": [{"type": "text", "text": text}], **COMPLETE}
    if method == "server/discover":
        return {"supportedVersions": VERSIONS, "capabilities": {"tools": {}}, **COMPLETE, **KEPT}
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    return {"tools": TOOLS, **COMPLETE, **KEPT}
