"""The server that clients call over HTTP: an ASGI application that decodes, echoes and encodes, and nothing else."""

import msgspec
from echo_answers import make_response

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode

JSON = (b"content-type", b"application/json")
SESSION = (b"mcp-session-id", b"the-only-one")
ACCEPTED = {"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]}
METHOD_NOT_ALLOWED = {
    "type": "http.response.start",
    "status": 405,
    "headers": [(b"content-length", b"0"), (b"allow", b"POST")],
}
EMPTY = {"type": "http.response.body", "body": b""}


async def app(scope, receive, send):
    if scope["method"] != "POST":
        await send(METHOD_NOT_ALLOWED)
        return await send(EMPTY)
    data = bytearray()  # to which parts are added without a copy of all before
    while True:
        part = await receive()
        data += part["body"]
        if not part.get("more_body"):
            break
    message = decode(data)
    if "id" not in message:
        await send(ACCEPTED)
        return await send(EMPTY)
    body = encode(make_response(message))
    headers = [JSON, (b"content-length", b"%d" % len(body))]
    if message["method"] == "initialize":
        headers.append(SESSION)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    return await send({"type": "http.response.body", "body": body})
