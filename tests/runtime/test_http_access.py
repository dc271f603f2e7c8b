"""Who is let in over HTTP, and how much: hosts, origins, credentials, limits, workers."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import typedmcp
from tests.runtime.asgi_driver import (
    ACCEPT,
    MODERN,
    Open,
    Reply,
    Served,
    Workshop,
    in_loop,
    message,
    served_app,
    serving,
    verify,
)
from typedmcp import Auth, MemoryStore, Principal, Sealer, UsageError
from typedmcp.edge.revisions import DIALECT, LEGACY

MODERN_HEADERS = ((b"mcp-protocol-version", DIALECT.encode()), (b"mcp-method", b"tools/list"))
LISTING = message(id=1, method="tools/list", params={"_meta": MODERN})
BASE = ((b"accept", ACCEPT.encode()), (b"content-type", b"application/json"), *MODERN_HEADERS)
INITIALIZE = message(
    id=0,
    method="initialize",
    params={"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
)


async def asked(served: Served, **headers: str | None) -> Reply:
    """A request with a host, and perhaps an origin."""
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if value is not None]
    replies = [await served.post(LISTING, [*given, *BASE], bare=True) for _ in range(2)]
    assert replies[0].status == replies[1].status
    assert replies[0].body == replies[1].body
    return replies[0]


# Hosts and origins


HOSTS: list[tuple[Sequence[str] | None, str | None, bool]] = [
    (None, "localhost", True),
    (None, "localhost:8000", True),
    (None, "LocalHost:1", True),
    (None, " localhost ", True),
    (None, "127.0.0.1", True),
    (None, "127.0.0.1:65535", True),
    (None, "[::1]", True),
    (None, "[::1]:8000", True),
    (None, "::1", False),
    (None, "127.0.0.2", False),
    (None, "localhost.evil.test", False),
    (None, "evil.test", False),
    (None, "evil.test:8000", False),
    (None, "localhost@evil.test", False),
    (None, "evil.test@localhost", False),
    (None, "localhost:8000@evil.test", False),
    (None, "localhost:8000:8000", False),
    (None, "localhost:evil", False),
    (None, "localhost/", False),
    (None, "localhost,evil.test", False),
    (None, "evil.test localhost", False),
    (None, "[::1]:8000.evil.test", False),
    (None, "[::1", False),
    (None, "*", False),
    (None, "", False),
    (None, None, False),
    (["mcp.test"], "mcp.test", True),
    (["mcp.test"], "MCP.test:443", True),
    (["Mcp.Test"], "mcp.test", True),
    (["mcp.test"], "localhost", False),
    (["mcp.test"], "a.mcp.test", False),
    (["mcp.test"], "mcp.test.", False),
    (["mcp.test:8000"], "mcp.test:8000", True),
    (["mcp.test:8000"], "mcp.test:8001", False),
    (["mcp.test:8000"], "mcp.test", False),
    (["[2001:db8::1]"], "[2001:DB8::1]:80", True),
    (["*"], "anything.test", True),
    (["*"], None, True),
    ([], "localhost", False),
]


@pytest.mark.parametrize(("hosts", "host", "is_taken"), HOSTS, ids=repr)
@in_loop
async def test_only_known_hosts_are_served(hosts: Sequence[str] | None, host: str | None, is_taken: bool) -> None:
    options = {} if hosts is None else {"hosts": hosts}
    async with serving(**options) as served:
        reply = await asked(served, host=host)
        assert reply.status == (200 if is_taken else 421), reply.body
        if not is_taken:
            text = reply.json["error"]["message"]
            assert "hosts=[" in text
            assert repr((host or "").strip()) in text
            assert "id" not in reply.json


ORIGINS: list[tuple[Mapping[str, Any], str | None, bool]] = [
    ({}, None, True),
    ({}, "http://localhost", True),
    ({}, "https://localhost:3000", True),
    ({}, "HTTP://LOCALHOST:3000", True),
    ({}, "http://[::1]:3000", True),
    ({}, "http://127.0.0.1:1", True),
    ({}, "null", False),
    ({}, "", False),
    ({}, "*", False),
    ({}, "localhost", False),
    ({}, "//localhost", False),
    ({}, "ftp://localhost", False),
    ({}, "file://localhost", False),
    ({}, "javascript://localhost", False),
    ({}, "http://evil.test", False),
    ({}, "http://localhost.evil.test", False),
    ({}, "http://localhost@evil.test", False),
    ({}, "http://evil.test@localhost", False),
    ({}, "http://localhost:80@evil.test", False),
    ({}, "http://evil.test#localhost", False),
    ({}, "http://evil.test/://localhost", False),
    ({}, "http://localhost/", False),
    ({}, "http://localhost http://evil.test", False),
    ({}, "http://localhost, http://evil.test", False),
    ({"origins": ["https://app.test"]}, "https://app.test", True),
    ({"origins": ["https://app.test/"]}, "https://app.test", True),
    ({"origins": ["https://App.test"]}, "https://app.TEST", True),
    ({"origins": ["https://app.test"]}, "http://app.test", False),
    ({"origins": ["https://app.test"]}, "https://app.test:8443", False),
    ({"origins": ["https://app.test"]}, "https://a.app.test", False),
    ({"origins": ["*"]}, "https://evil.test", True),
    ({"origins": ["*"]}, "null", True),
    ({"origins": ["null"]}, "null", True),
    ({"hosts": ["*"]}, "https://evil.test", False),
    ({"hosts": ["*"], "origins": ["https://app.test"]}, "https://app.test", True),
    ({"hosts": ["mcp.test", "localhost"]}, "https://mcp.test", True),
]


@pytest.mark.parametrize(("options", "origin", "is_taken"), ORIGINS, ids=repr)
@in_loop
async def test_only_pages_of_known_origins_have_access(
    options: Mapping[str, Any], origin: str | None, is_taken: bool
) -> None:
    async with serving(**options) as served:
        reply = await asked(served, host="localhost:8000", origin=origin)
        assert reply.status == (200 if is_taken else 403), reply.body
        if not is_taken:
            text = reply.json["error"]["message"]
            assert "origins=[" in text
            assert repr(origin) in text


@pytest.mark.parametrize("name", ["host", "origin"])
@in_loop
async def test_what_was_let_in_once_lets_in_nothing_else(name: str) -> None:
    async with serving() as served:
        for value, is_taken in (("http://localhost", True), ("http://evil.test", False), ("http://localhost", True)):
            said = value.partition("//")[2] if name == "host" else value
            given = {"host": "localhost", "origin": "http://localhost", name: said}
            assert ((await asked(served, **given)).status == 200) is is_taken


@in_loop
async def test_what_is_refused_is_shown_short_and_harmless() -> None:
    async with serving() as served:
        reply = await asked(served, host="<script>\xff\x00" + "x" * 5000)
        assert reply.status == 421
        assert len(reply.body) < 500
        assert b"\xff" not in reply.body
        assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("header", ["host", "origin"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages"), ("GET", "/x")]
)
@in_loop
async def test_hosts_and_origins_count_everywhere(method: str, path: str, header: str) -> None:
    async with serving(sse_path="/sse") as served:
        session = await served.session()
        headers = {**session.headers, header: "http://evil.test"}
        assert (await served.request(method, headers, path=path)).status == (421 if header == "host" else 403)


def test_lists_that_are_texts_are_refused() -> None:
    for option in ("hosts", "origins"):
        with pytest.raises(UsageError, match=option):
            typedmcp.asgi(Workshop(), **{option: "localhost"})


@in_loop
async def test_there_is_nothing_elsewhere() -> None:
    async with serving(path="/a/b/") as served:
        for path, status in (
            ("/a/b", 200),
            ("/a/b/", 200),
            ("/a", 404),
            ("/", 404),
            ("/a/b/c", 404),
            ("/A/B", 404),
            ("/a/bx", 404),
        ):
            reply = await served.post(LISTING, MODERN_HEADERS, path=path)
            assert reply.status == status
            assert status == 200 or "/a/b" in reply.json["error"]["message"]


@in_loop
async def test_an_application_may_be_below_a_path() -> None:
    async with serving() as served:
        for root, path, status in (
            ("/api", "/api/mcp", 200),
            ("/api", "/mcp", 200),
            ("", "/api/mcp", 404),
            ("/api", "/apix/mcp", 404),
        ):
            assert (await served.post(LISTING, MODERN_HEADERS, path=path, root_path=root)).status == status


# Credentials


def auth(check: Any = verify, scopes: Sequence[str] = (), resource: str = "https://mcp.test/mcp") -> Auth:
    return Auth(check, resource=resource, issuers=["https://issuer.test"], scopes=scopes)


def challenge(reply: Reply) -> dict[str, str]:
    """The parameters of the challenge."""
    said = reply.headers["www-authenticate"]
    assert re.fullmatch(r'Bearer (\w+="[^"\\]*"(, |$))+', said), said
    return dict(re.findall(r'(\w+)="([^"]*)"', said))


METADATA = "https://mcp.test/.well-known/oauth-protected-resource/mcp"

WRONG: list[tuple[str | None, str | None]] = [
    (None, None),
    ("", None),
    ("Basic YTpi", None),
    ("Bearer", None),
    ("Bearer ", None),
    ("ann", None),
    ("Bearer nobody", "invalid_token"),
    ("bearer nobody", "invalid_token"),
]
REQUESTS = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("PUT", "/mcp"),
    ("GET", "/sse"),
    ("POST", "/messages"),
]


@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize(("said", "error"), WRONG, ids=repr)
@in_loop
async def test_who_brings_no_valid_token_is_told_where_to_get_one(
    said: str | None, error: str | None, method: str, path: str
) -> None:
    async with serving(auth=auth(scopes=["mcp"]), sse_path="/sse") as served:
        headers = {} if said is None else {"authorization": said}
        for _ in range(2):
            reply = await served.request(method, headers, LISTING if method == "POST" else b"", path=path)
            assert reply.status == 401
            expected = {"resource_metadata": METADATA, "scope": "mcp", **({"error": error} if error else {})}
            assert challenge(reply) == expected
            assert "id" not in reply.json


@in_loop
async def test_a_known_request_needs_its_token_too() -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        for _ in range(2):
            assert (await served.call("who").reply()).text == "ann"
        served.bearer = "bob"
        assert (await served.call("who").reply()).text == "bob"
        for token in ("nobody", None):
            served.bearer = token
            assert (await served.call("who").reply()).status == 401
        twice = [(b"authorization", b"Bearer ann"), (b"authorization", b"Bearer bob"), *MODERN_HEADERS]
        assert (await served.post(LISTING, twice)).status == 400


@in_loop
async def test_of_who_brings_no_valid_token_nothing_is_read() -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        for _ in range(2):
            assert (await served.post(LISTING, MODERN_HEADERS)).status == 200
            headers = [*MODERN_HEADERS, (b"authorization", b"Bearer nobody")]
            opened = served.open("POST", headers, LISTING[:9], ends=False)
            async with asyncio.timeout(4):
                assert (await opened.reply()).status == 401


@pytest.mark.parametrize("said", ["Bearer ann", "bearer ann", "BEARER  ann ", " Bearer ann"])
@in_loop
async def test_a_token_may_be_written_in_several_ways(said: str) -> None:
    async with serving(auth=auth()) as served:
        for _ in range(2):
            assert (await served.call("who", headers={"authorization": said}).reply()).text == "ann"


@in_loop
async def test_principals_who_do_not_expire_do_not() -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        replies = [await served.call("who").reply() for _ in range(200)]
        assert {reply.status for reply in replies} == {200}


@pytest.mark.parametrize(("expires", "status"), [(None, 200), (60, 200), (-1, 401), (-1e12, 401)])
@in_loop
async def test_a_principal_who_has_expired_is_nobody(expires: float | None, status: int) -> None:
    def check(token: str) -> Principal:
        return Principal(token, expires=None if expires is None else max(0.0, time.time() + expires))

    async with serving(auth=auth(check)) as served:
        served.bearer = "ann"
        reply = await served.call("who").reply()
        assert reply.status == status
        assert status == 200 or challenge(reply)["error"] == "invalid_token"


@in_loop
async def test_verifiers_may_wait() -> None:
    async def check(token: str) -> Principal | None:
        await asyncio.sleep(0)
        return verify(token)

    async with serving(auth=auth(check)) as served:
        served.bearer = "ann"
        assert (await served.call("who").reply()).text == "ann"
        served.bearer = "nobody"
        assert (await served.call("who").reply()).status == 401


class BrokenError(Exception):
    pass


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("kind", [BrokenError, ConnectionError, OSError, ValueError, asyncio.TimeoutError])
@in_loop
async def test_a_verifier_that_fails_lets_nobody_in_and_says_nothing(kind: type[Exception], waits: bool) -> None:
    async def check_later(token: str) -> Principal | None:
        raise kind("a secret")

    def check(token: str) -> Principal | None:
        raise kind("a secret")

    async with serving(auth=auth(check_later if waits else check)) as served:
        served.bearer = "ann"
        reply = await served.call("who").reply()
        assert reply.status in (500, 503)
        assert b"secret" not in reply.body
        assert "www-authenticate" not in reply.headers
        (report,) = served.reports
        assert "secret" in report.text
        assert "store" not in report.text


@pytest.mark.parametrize("found", ["ann", True, {"name": "ann"}, ("ann",)])
@in_loop
async def test_what_is_no_principal_is_nobody(found: Any) -> None:
    def check(token: str) -> Any:
        return found

    async with serving(auth=auth(check)) as served:
        served.bearer = "ann"
        assert (await served.call("who").reply()).status in (401, 503)


@in_loop
async def test_a_token_without_the_scopes_of_all_requests_is_not_enough() -> None:
    async with serving(auth=auth(scopes=["read", "write"])) as served:
        for token, status in (("ann:read,write,more", 200), ("ann:read", 403), ("ann", 403)):
            served.bearer = token
            for _ in range(2):
                reply = await served.call("who").reply()
                assert reply.status == status
                if status == 403:
                    assert challenge(reply) == {
                        "error": "insufficient_scope",
                        "scope": "read write",
                        "resource_metadata": METADATA,
                    }


async def scoped(served: Served, wire: str, **arguments: Any) -> Reply:
    """Call the tool that needs more scopes."""
    if wire == DIALECT:
        return await served.call("scoped", arguments).reply()
    if served.app._has_sessions:  # pyright: ignore[reportPrivateUsage]
        return await (await served.session(wire)).call("scoped", arguments).reply()
    content = message(id=1, method="tools/call", params={"name": "scoped", "arguments": arguments})
    return await served.post(content, {"mcp-protocol-version": wire})


@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("wire", [*LEGACY, DIALECT])
@in_loop
async def test_a_handler_can_ask_for_more_scopes(wire: str, sessions: bool) -> None:
    async with serving(auth=auth(), sessions=sessions) as served:
        served.bearer = "ann"
        reply = await scoped(served, wire, scopes=["files:read", "files:write"])
        assert (reply.status, reply.code, reply.json["id"]) == (403, -31403, 1)
        assert challenge(reply) == {
            "error": "insufficient_scope",
            "scope": "files:read files:write",
            "resource_metadata": METADATA,
        }
        assert reply.json["error"]["data"] == {"requiredScopes": ["files:read", "files:write"]}


@pytest.mark.parametrize("wire", [*LEGACY[1:], DIALECT])
@in_loop
async def test_a_handler_can_ask_for_more_scopes_after_a_while(wire: str) -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        reply = await scoped(served, wire, waits=True)
        assert reply.status == 403
        assert challenge(reply)["scope"] == "files:write"


@pytest.mark.parametrize("scope", ['a"b', "a\\b", 'x", error="none', "a\r\nset-cookie: b", "ü", "a\x00"])
@in_loop
async def test_scopes_cannot_break_out_of_the_challenge(scope: str) -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        reply = await scoped(served, DIALECT, scopes=[scope])
        assert reply.status == 403
        assert challenge(reply)["error"] == "insufficient_scope"
        assert "\r" not in reply.headers["www-authenticate"]
        assert reply.headers["www-authenticate"].isascii()


@in_loop
async def test_without_credentials_scopes_have_no_challenge() -> None:
    async with serving() as served:
        reply = await scoped(served, DIALECT)
        assert (reply.status, reply.code) == (403, -31403)
        assert "www-authenticate" not in reply.headers


@pytest.mark.parametrize(
    "data", [None, [], "a b", {"requiredScopes": "a b"}, {"requiredScopes": [1, None, "a"]}, {"requiredScopes": {}}]
)
@in_loop
async def test_an_error_with_the_code_of_missing_scopes_may_say_anything(data: Any) -> None:
    class Odd(Workshop):
        async def echo(self, ctx: Any, text: str = "") -> str:
            raise typedmcp.RemoteError(-31403, "odd", data)

    async with serving(Odd(), auth=auth()) as served:
        served.bearer = "ann"
        reply = await served.call("echo").reply()
        assert (reply.status, reply.code) == (403, -31403)
        assert challenge(reply)["error"] == "insufficient_scope"


RESOURCES = [
    ("https://mcp.test/mcp", ["/mcp", ""]),
    ("https://mcp.test", [""]),
    ("https://mcp.test/", [""]),
    ("https://mcp.test/mcp/", ["/mcp/", "/mcp", ""]),
    ("https://mcp.test:8443/a/b", ["/a/b", ""]),
]


@pytest.mark.parametrize(("resource", "suffixes"), RESOURCES)
@in_loop
async def test_whoever_asks_is_told_how_to_get_a_token(resource: str, suffixes: list[str]) -> None:
    async with serving(auth=auth(resource=resource, scopes=["a", "b"])) as served:
        for suffix in suffixes:
            reply = await served.request("GET", path=f"/.well-known/oauth-protected-resource{suffix}")
            assert reply.status == 200
            assert reply.json == {
                "resource": resource,
                "authorization_servers": ["https://issuer.test"],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["a", "b"],
            }
            assert (await served.post(LISTING, path=f"/.well-known/oauth-protected-resource{suffix}")).status in (
                404,
                405,
            )
        told = challenge(await served.post(LISTING, MODERN_HEADERS))["resource_metadata"]
        path = "/" + told.split("/", 3)[3]
        assert (await served.request("GET", path=path)).status == 200
        assert (await served.request("GET", path="/.well-known/oauth-protected-resource/x")).status == 404


@in_loop
async def test_without_credentials_there_is_nothing_to_tell() -> None:
    async with serving() as served:
        assert (await served.request("GET", path="/.well-known/oauth-protected-resource")).status == 404


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"resource": "mcp.test/mcp"}, "resource"),
        ({"resource": "https://mcp.test/mcp#a"}, "resource"),
        ({"resource": "https:///mcp"}, "resource"),
        ({"issuers": "https://issuer.test"}, "issuers"),
        ({"issuers": []}, "issuers"),
        ({"scopes": "a b"}, "scopes"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], says: str) -> None:
    options = {"resource": "https://mcp.test/mcp", "issuers": ["https://issuer.test"], **options}
    with pytest.raises(UsageError, match=says):
        Auth(verify, **options)


@in_loop
async def test_what_is_brought_back_must_be_brought_by_the_same_principal() -> None:
    async with serving(auth=auth()) as served:
        meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
        served.bearer = "ann"
        result = (await served.call("name", meta=meta).reply()).json["result"]
        ((key, _),) = result["inputRequests"].items()
        again = {
            "name": "name",
            "arguments": {},
            "requestState": result["requestState"],
            "inputResponses": {key: {"action": "decline"}},
        }
        served.bearer = "bob"
        assert (await served.ask("tools/call", again, meta=meta).reply()).code == -32602
        served.bearer = "ann:other"
        assert (await served.ask("tools/call", again, meta=meta).reply()).text == "decline None"


@in_loop
async def test_each_principal_has_a_list_of_tools_of_its_own() -> None:
    class Own(Workshop):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            result = await super().list_tools(params, ctx)
            result.tools = result.tools if ctx.principal == "ann" else []
            return result

    async with serving(Own(), auth=auth()) as served:
        for _ in range(2):
            served.bearer = "ann"
            assert (await served.call("query", {"region": "eu"}).reply()).code == -32020
            served.bearer = "bob"
            assert (await served.call("query", {"region": "eu"}).reply()).code != -32020


# Limits


def posted(served: Served, body: bytes | Sequence[bytes], length: str | None = None, **options: Any) -> Open:
    headers = [*MODERN_HEADERS, *([(b"content-length", length.encode())] if length is not None else [])]
    return served.open("POST", headers, body, **options)


def sized(size: int) -> bytes:
    """A request of so many bytes."""
    return LISTING + b" " * (size - len(LISTING))


@pytest.mark.parametrize(
    ("size", "length", "status"),
    [
        (1000, None, 200),
        (1001, None, 413),
        (1000, "1000", 200),
        (1001, "1001", 413),
        (500, "1001", 413),
        (1001, "500", 413),
        (1000, "0", 200),
        (1001, "0", 413),
        (1000, "9" * 18, 413),
        (500, "9" * 19, 413),
        (500, "9" * 5000, 413),
        (500, "-1", 200),
        (500, "abc", 200),
        (500, "", 200),
        (500, "²", 200),
    ],
)
@in_loop
async def test_a_body_has_a_limit_whatever_is_said_of_its_length(size: int, length: str | None, status: int) -> None:
    async with serving(body_limit=1000) as served:
        headers = [*MODERN_HEADERS, *([(b"content-length", length.encode("latin-1"))] if length is not None else [])]
        for chunks in (sized(size), [sized(size)[:300], sized(size)[300:]]):
            reply = await served.post(chunks, headers)
            assert reply.status == status
            assert status == 200 or "1000 bytes" in reply.json["error"]["message"]


@in_loop
async def test_a_body_that_never_ends_is_not_kept() -> None:
    async with serving(body_limit=1000) as served:
        opened = posted(served, [b"x" * 100] * 50, ends=False)
        assert (await opened.reply()).status == 413
        assert len(opened._chunks) > 30  # pyright: ignore[reportPrivateUsage]


@in_loop
async def test_a_body_that_is_said_to_be_too_long_is_not_read() -> None:
    async with serving(body_limit=1000) as served:
        opened = posted(served, [b"x"], "1001", ends=False)
        assert (await opened.reply()).status == 413
        assert opened._chunks == [b"x"]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ([(b"x", b"y" * 500)], 200),
        ([(b"x", b"y" * 1500)], 431),
        ([(b"y" * 1500, b"x")], 431),
        ([(b"x", b"y" * 100)] * 20, 431),
        ([(f"x{number}".encode(), b"y" * 100) for number in range(20)], 431),
        ([(b"x", b"")] * 100, 200),
        ([(b"x", b"")] * 200, 431),
        ([(f"x{number}".encode(), b"") for number in range(200)], 431),
        ([(b"x", b"")] * 100_000, 431),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, list) else None,  # pyright: ignore[reportUnknownArgumentType]
)
@in_loop
async def test_headers_have_a_limit(extra: list[tuple[bytes, bytes]], status: int) -> None:
    async with serving(header_limit=1000) as served:
        for _ in range(2):
            assert (await served.post(LISTING, [*MODERN_HEADERS, *extra])).status == status


def changed(**changes: bytes | None) -> list[tuple[bytes, bytes]]:
    """The headers of a request that is taken, but for these; None is for one that is not there."""
    headers = {
        **dict(BASE),
        b"host": b"localhost",
        b"x": b"1",
        **{k.replace("_", "-").encode(): v for k, v in changes.items()},
    }
    return [(name, value) for name, value in headers.items() if value is not None]


LOOKS: dict[str, list[tuple[bytes, bytes]]] = {
    "good": changed(),
    "another value": changed(x=b"2"),
    "longer": changed(x=b"y" * 500),
    "too long": changed(x=b"y" * 1500),
    "too long a method": changed(mcp_method=b"y" * 1500),
    "another host": changed(host=b"evil.example"),
    "another origin": changed(origin=b"http://evil.example"),
    "an origin in the place of another header": [
        (b"origin", b"http://evil.example") if name == b"x" else (name, value) for name, value in changed()
    ],
    "another type": changed(content_type=b"text/plain"),
    "nothing accepted": changed(accept=b"text/plain"),
    "another method": changed(mcp_method=b"tools/call"),
    "another revision": changed(mcp_protocol_version=b"2025-11-25"),
    "no revision": changed(mcp_protocol_version=None),
    "no method": changed(mcp_method=None),
    "in another order": changed()[::-1],
    "fewer": changed(x=None),
    "more": [*changed(), (b"y", b"1")],
    "twice": [*changed(x=None), (b"host", b"localhost")],
    "twice in the place of another": [*changed(x=None)[:-1], (b"host", b"localhost"), changed()[-2]],
    "long": changed(content_length=b"9" * 18),
}
"""What requests may look like."""


@pytest.mark.parametrize("first", LOOKS)
@in_loop
async def test_what_was_found_of_a_request_says_nothing_of_others(first: str) -> None:
    async def status(served: Served, look: str) -> int:
        return (await served.post(LISTING, LOOKS[look], bare=True)).status

    for second in LOOKS:
        async with serving(header_limit=1000) as fresh:
            expected = await status(fresh, second)
        async with serving(header_limit=1000) as served:
            await status(served, first)
            assert [await status(served, second) for _ in range(2)] == [expected] * 2, second


@pytest.mark.parametrize(
    "name", ["host", "origin", "content-type", "content-length", "authorization", "mcp-session-id", "last-event-id"]
)
@in_loop
async def test_headers_that_must_be_there_once_are_not_there_twice(name: str) -> None:
    async with serving() as served:
        value = {"host": b"localhost", "origin": b"http://localhost", "content-type": b"application/json"}.get(
            name, b"1"
        )
        reply = await served.post(LISTING, [*MODERN_HEADERS, (name.encode(), value), (name.encode(), value)])
        assert reply.status == 400
        assert name in reply.json["error"]["message"]


@in_loop
async def test_other_headers_may_be_there_twice() -> None:
    async with serving() as served:
        twice = [(b"x-forwarded-for", b"1"), (b"x-forwarded-for", b"2"), (b"cookie", b"a"), (b"cookie", b"b")]
        assert (await served.post(LISTING, [*MODERN_HEADERS, *twice])).status == 200


@pytest.mark.parametrize("option", ["body_limit", "header_limit", "streams", "high_water", "keep_alive"])
@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_positive(option: str, value: int) -> None:
    with pytest.raises(UsageError, match=option):
        typedmcp.asgi(Workshop(), **{option: value})


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"sse_path": "/sse", "messages_path": "/sse"},
        {"sse_path": "/mcp"},
        {"sse_path": "/sse", "messages_path": "/mcp"},
    ],
)
def test_endpoints_do_not_share_a_path(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="path"):
        typedmcp.asgi(Workshop(), **options)


def test_a_service_has_its_options_already() -> None:
    service = typedmcp.Service(Workshop())
    with pytest.raises(TypeError, match="name"):
        typedmcp.asgi(service, name="x")
    with pytest.raises(TypeError, match="nonsense"):
        typedmcp.asgi(Workshop(), nonsense=1)


class Shared(MemoryStore):
    is_shared = True


KEY = Sealer(b"a key of 16 bytes")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process that nothing says of that it is one of several."""
    monkeypatch.delenv("WEB_CONCURRENCY", raising=False)
    monkeypatch.setattr(sys, "argv", ["uvicorn"])
    return monkeypatch


def test_workers_that_share_a_store_need_a_key(alone: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"sealer=Sealer\(key\)"):
        typedmcp.asgi(Workshop(), store=Shared())
    typedmcp.asgi(Workshop(), store=Shared(), sealer=KEY)


SEVERAL = [
    ("2", ["uvicorn"]),
    ("16", ["uvicorn"]),
    ("1", ["uvicorn", "app:app", "--workers", "2"]),
    ("", ["uvicorn", "--workers=2"]),
    ("", ["granian", "-w", "3"]),
    ("", ["hypercorn", "-w3"]),
]


@pytest.mark.parametrize(("concurrency", "argv"), SEVERAL)
def test_several_workers_need_a_key_and_a_store_that_they_share(
    concurrency: str, argv: list[str], alone: pytest.MonkeyPatch
) -> None:
    alone.setenv("WEB_CONCURRENCY", concurrency)
    alone.setattr(sys, "argv", argv)
    with pytest.raises(UsageError, match="Sealer"):
        typedmcp.asgi(Workshop())
    with pytest.raises(UsageError, match="RedisStore"):
        typedmcp.asgi(Workshop(), sealer=KEY)
    typedmcp.asgi(Workshop(), store=Shared(), sealer=KEY)


ALONE = [
    ("1", ["uvicorn"]),
    ("", ["uvicorn"]),
    ("x", ["uvicorn", "--workers"]),
    ("0", ["uvicorn", "--workers", "1"]),
    ("1", ["pytest", "-w", "x"]),
]


@pytest.mark.parametrize(("concurrency", "argv"), ALONE)
def test_one_worker_needs_neither(concurrency: str, argv: list[str], alone: pytest.MonkeyPatch) -> None:
    alone.setenv("WEB_CONCURRENCY", concurrency)
    alone.setattr(sys, "argv", argv)
    typedmcp.asgi(Workshop())


def test_applications_are_made_outside_of_a_loop() -> None:
    served = served_app()

    async def main() -> None:
        reply = await served.post(LISTING, MODERN_HEADERS)
        assert json.loads(reply.body)["id"] == 1
        await served.app.close()

    asyncio.run(main())


# The store


class Down(MemoryStore):
    is_down = False

    async def load(self, session: str) -> dict[str, str] | None:
        if self.is_down:
            raise ConnectionError("a secret")
        return await super().load(session)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@in_loop
async def test_a_store_that_cannot_be_reached_is_no_fault_of_the_client(method: str) -> None:
    store = Down()
    async with serving(store=store) as served:
        session = await served.session()
        store.is_down = True
        content = message(id=1, method="ping") if method == "POST" else b""
        reply = await served.request(method, session.headers, content)
        assert reply.status == 503
        assert "retry-after" in reply.headers
        assert b"secret" not in reply.body
        assert served.kinds == ["broken"]
        store.is_down = False
        assert (await session.ask("ping").reply()).status == 200


@in_loop
async def test_without_a_store_initialize_is_refused_and_can_be_tried_again() -> None:
    class Full(MemoryStore):
        is_down = True

        async def create(self, session: str, fields: Mapping[str, str]) -> None:
            if self.is_down:
                raise ConnectionError("down")
            await super().create(session, fields)

    store = Full()
    async with serving(store=store) as served:
        assert (await served.post(INITIALIZE)).status == 503
        store.is_down = False
        assert (await served.post(INITIALIZE)).status == 200
