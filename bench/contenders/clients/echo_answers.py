"""Responses of the servers that measured clients call, over stdio and over HTTP."""

VERSIONS = ["2025-11-25", "2026-07-28"]
INFO = {"name": "echo", "version": "1"}
COMPLETE = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
CACHEABLE = {"ttlMs": 60_000, "cacheScope": "public"}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "large", "length")]


def make_response(message):
    """Make the response to a request. Clients of older revisions ignore the members of the newest."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": make_result(message["method"], message.get("params"))}


def make_result(method, params):
    if method == "tools/call":
        arguments = params["arguments"]
        text = arguments["text"] if "text" in arguments else "x" * arguments["size"]
        text = str(len(text)) if params["name"] == "length" else text
        return {"content": [{"type": "text", "text": text}], **COMPLETE}
    if method == "server/discover":
        return {"supportedVersions": VERSIONS, "capabilities": {"tools": {}}, **COMPLETE, **CACHEABLE}
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    return {"tools": TOOLS, **COMPLETE, **CACHEABLE}
