"""The floor: an ASGI application that reads the body and answers a constant, of the size that the others answer."""

BODY = (
    b'{"jsonrpc":"2.0","id":100000000,"result":{"content":[{"type":"text","text":"xxxxxxxxxxxxxxxxxxxx"}],'
    b'"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}}}}'
)
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())],
}
END = {"type": "http.response.body", "body": BODY}


async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send(START)
    await send(END)
