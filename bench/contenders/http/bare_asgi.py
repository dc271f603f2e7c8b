"""The floor for servers over HTTP: ASGI applications that read the body and send a constant response of usual size."""

RESULT = (
    b'{"jsonrpc":"2.0","id":100000000,"result":{"content":[{"type":"text","text":"xxxxxxxxxxxxxxxxxxxx"}],'
    b'"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}}}}'
)
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":100000000,"progress":1.0}}'


def make_start(content_type, *headers):
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", content_type), *headers]}


def make_event(data, **more):
    return {"type": "http.response.body", "body": b"event: message\r\ndata: " + data + b"\r\n\r\n", **more}


JSON = make_start(b"application/json", (b"content-length", str(len(RESULT)).encode()))
BODY = {"type": "http.response.body", "body": RESULT}
EVENTS = make_start(b"text/event-stream", (b"cache-control", b"no-cache"))
FIRST, LAST = make_event(PROGRESS, more_body=True), make_event(RESULT)


async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send(JSON)
    await send(BODY)


async def streams(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send(EVENTS)
    await send(FIRST)
    await send(LAST)
