"""Access over HTTP: hosts, origins, credentials, limits, and the options of several workers."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import (
    ACCEPT,
    MODERN,
    CompleteResponse,
    OpenRequest,
    Served,
    ToolHandler,
    in_loop,
    make_served,
    message,
    messages,
    serving,
    verify,
)
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp import (
    Auth,
    InsufficientScopeError,
    MemoryStore,
    Principal,
    StateSigner,
    StaticTokens,
    UsageError,
)
from typedmcp.server.http.asgi import AsgiApp
from typedmcp_auth import IntrospectionVerifier, JwtVerifier

MODERN_HEADERS = ((b"mcp-protocol-version", MODERN_REVISION.encode()), (b"mcp-method", b"tools/list"))
LISTING = message(id=1, method="tools/list", params={"_meta": MODERN})
BASE = ((b"accept", ACCEPT.encode()), (b"content-type", b"application/json"), *MODERN_HEADERS)
INITIALIZE = message(
    id=0,
    method="initialize",
    params={"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
)


async def request_to(served: Served, **headers: str | None) -> CompleteResponse:
    """Return a request with a host, and perhaps an origin."""
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if value is not None]
    replies = [await served.post(LISTING, [*given, *BASE], bare=True) for _ in range(2)]
    assert replies[0].status == replies[1].status
    assert replies[0].json == replies[1].json
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


@each("hosts, host, is_taken", HOSTS, ids=repr)
@in_loop
async def test_only_allowed_hosts_are_served(hosts: Sequence[str] | None, host: str | None, is_taken: bool) -> None:
    options = {} if hosts is None else {"hosts": hosts}
    async with serving(**options) as served:
        reply = await request_to(served, host=host)
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


@each("options, origin, is_taken", ORIGINS, ids=repr)
@in_loop
async def test_only_pages_of_allowed_origins_have_access(
    options: Mapping[str, Any], origin: str | None, is_taken: bool
) -> None:
    async with serving(**options) as served:
        reply = await request_to(served, host="localhost:8000", origin=origin)
        assert reply.status == (200 if is_taken else 403), reply.body
        if not is_taken:
            text = reply.json["error"]["message"]
            assert "origins=[" in text
            assert repr(origin) in text


@each("name", ["host", "origin"])
@in_loop
async def test_an_accepted_host_does_not_make_other_hosts_accepted(name: str) -> None:
    async with serving() as served:
        for value, is_taken in (("http://localhost", True), ("http://evil.test", False), ("http://localhost", True)):
            header = value.partition("//")[2] if name == "host" else value
            given = {"host": "localhost", "origin": "http://localhost", name: header}
            assert ((await request_to(served, **given)).status == 200) is is_taken


@in_loop
async def test_the_error_quotes_a_rejected_host_shortened_and_in_ascii() -> None:
    async with serving() as served:
        reply = await request_to(served, host="<script>\xff\x00" + "x" * 5000)
        assert reply.status == 421
        assert len(reply.body) < 500
        assert b"\xff" not in reply.body
        assert reply.headers["content-type"] == "application/json"


@each("header", ["host", "origin"])
@each("method, path", [("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages"), ("GET", "/x")])
@in_loop
async def test_hosts_and_origins_are_checked_on_every_path(method: str, path: str, header: str) -> None:
    async with serving(sse_path="/sse") as served:
        session = await served.session()
        headers = {**session.headers, header: "http://evil.test"}
        assert (await served.request(method, headers, path=path)).status == (421 if header == "host" else 403)


@each("value", ["localhost", None, 7])
@each("option", ["hosts", "origins"])
def test_a_value_that_is_not_a_list_is_rejected(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{option} must be a list"):
        typedmcp.asgi(ToolHandler(), **cast(Any, {option: value}))


@in_loop
async def test_other_paths_are_not_found() -> None:
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
async def test_an_application_may_be_mounted_below_a_path() -> None:
    async with serving() as served:
        for root, path, status in (
            ("/api", "/api/mcp", 200),
            ("/api", "/mcp", 200),
            ("", "/api/mcp", 404),
            ("/api", "/apix/mcp", 404),
        ):
            assert (await served.post(LISTING, MODERN_HEADERS, path=path, root_path=root)).status == status


@each(
    "options, root, path, expected",
    [
        ({}, "/mcp", "/mcp/", 'the MCP endpoint is at /mcp/mcp; asgi(…, path="/") puts it at /mcp/'),
        ({}, "/api", "/api/x", "the MCP endpoint is at /api/mcp"),
        ({"path": "/"}, "/api", "/api/mcp", "the MCP endpoint is at /api"),
        ({"path": "/"}, "", "/mcp", "the MCP endpoint is at /"),
        ({}, "", "/", "the MCP endpoint is at /mcp"),
    ],
)
@in_loop
async def test_a_wrong_path_in_a_mount_is_answered_with_the_right_one(
    options: Any, root: str, path: str, expected: str
) -> None:
    async with serving(**options) as served:
        reply = await served.post(LISTING, MODERN_HEADERS, path=path, root_path=root)
        assert (reply.status, reply.json["error"]["message"]) == (404, f"not found: {expected}")


@in_loop
async def test_an_application_with_the_path_of_its_mount_is_served_there() -> None:
    async with serving(path="/") as served:
        for path in ("/mcp", "/mcp/"):
            assert (await served.post(LISTING, MODERN_HEADERS, path=path, root_path="/mcp")).status == 200


# Credentials


def auth(check: Any = verify, scopes: Sequence[str] = (), resource: str = "https://mcp.test/mcp") -> Auth:
    return Auth(check, resource=resource, issuers=["https://issuer.test"], scopes=scopes)


def challenge(reply: CompleteResponse) -> dict[str, str]:
    """Return the parameters of the challenge."""
    header = reply.headers["www-authenticate"]
    assert re.fullmatch(r'Bearer (\w+="[^"\\]*"(, |$))+', header), header
    return dict(re.findall(r'(\w+)="([^"]*)"', header))


@each(
    "root, path, resource",
    [
        ("/mcp", "/", "https://mcp.test/mcp"),
        ("/api", "/mcp", "https://mcp.test/api/mcp"),
        ("", "/mcp", "https://mcp.test/mcp"),
    ],
)
@in_loop
async def test_the_challenge_names_metadata_that_is_served_in_a_mount(root: str, path: str, resource: str) -> None:
    async with serving(path=path, auth=auth(resource=resource)) as served:
        reply = await served.post(LISTING, MODERN_HEADERS, path=root + path, root_path=root)
        assert reply.status == 401
        url = challenge(reply)["resource_metadata"]
        assert url.startswith(f"https://mcp.test{root}/.well-known/")
        found = await served.request("GET", path=url.removeprefix("https://mcp.test"), root_path=root)
        assert (found.status, found.json["resource"]) == (200, resource)


@in_loop
async def test_a_missing_scope_in_a_mount_is_answered_with_metadata_that_is_served() -> None:
    async with serving(path="/", auth=auth(scopes=["rare"], resource="https://mcp.test/mcp")) as served:
        headers = [*MODERN_HEADERS, (b"authorization", b"Bearer ann")]
        for _ in range(2):
            reply = await served.post(LISTING, headers, path="/mcp", root_path="/mcp")
            assert reply.status == 403
            assert challenge(reply)["resource_metadata"] == "https://mcp.test/mcp/.well-known/oauth-protected-resource"


# Static tokens


@in_loop
async def test_static_tokens_need_no_issuer() -> None:
    tokens = StaticTokens({"first.token": Principal("ann"), "second~token==": Principal("ben")})
    async with serving(auth=tokens) as served:
        for token, status in (
            ("first.token", 200),
            ("second~token==", 200),
            ("first", 401),
            ("first.token2", 401),
            ("", 401),
            ("\xff", 401),
        ):
            headers = [*MODERN_HEADERS, (b"authorization", f"Bearer {token}".encode("latin-1"))]
            for _ in range(2):
                assert (await served.post(LISTING, headers)).status == status
        reply = await served.post(LISTING, MODERN_HEADERS)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert (await served.request("GET", path="/.well-known/oauth-protected-resource")).status == 404


@in_loop
async def test_static_tokens_can_lack_scopes() -> None:
    tokens = StaticTokens({"a": Principal("ann", frozenset(["read"])), "b": Principal("ben")}, scopes=["read"])
    async with serving(auth=tokens) as served:
        for token, status in ((b"a", 200), (b"b", 403)):
            headers = [*MODERN_HEADERS, (b"authorization", b"Bearer " + token)]
            assert (await served.post(LISTING, headers)).status == status


def test_static_tokens_keep_and_show_no_token() -> None:
    tokens = StaticTokens({"secret-token": Principal("ann")})
    assert repr(tokens) == "StaticTokens(ann)"
    assert "secret-token" not in repr(vars(tokens))


@each(
    "tokens, expected",
    [
        ({}, "StaticTokens needs at least one token"),
        ({"": Principal("a")}, "token 1 must be a string of letters, digits"),
        ({"ok": Principal("a"), "hush hush": Principal("a")}, "token 2 must be a string of letters, digits"),
        ({"hush": "ann"}, "token 1 needs a Principal, not str"),
    ],
)
def test_wrong_static_tokens_are_rejected_and_not_shown(tokens: Any, expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as caught:
        StaticTokens(tokens)
    assert "hush" not in str(caught.value)


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


@each("method, path", REQUESTS)
@each("header, error", WRONG, ids=repr)
@in_loop
async def test_a_request_without_a_valid_token_gets_a_challenge(
    header: str | None, error: str | None, method: str, path: str
) -> None:
    async with serving(auth=auth(scopes=["mcp"]), sse_path="/sse") as served:
        headers = {} if header is None else {"authorization": header}
        for _ in range(2):
            reply = await served.request(method, headers, LISTING if method == "POST" else b"", path=path)
            assert reply.status == 401
            expected = {"resource_metadata": METADATA, "scope": "mcp"}
            if error:
                expected |= {"error": error, "error_description": "the token is not valid, or has expired"}
            assert challenge(reply) == expected
            assert "id" not in reply.json


@in_loop
async def test_a_request_like_an_earlier_one_needs_its_own_token() -> None:
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
async def test_the_body_of_a_request_without_a_valid_token_is_not_read() -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        for _ in range(2):
            assert (await served.post(LISTING, MODERN_HEADERS)).status == 200
            headers = [*MODERN_HEADERS, (b"authorization", b"Bearer nobody")]
            opened = served.open("POST", headers, LISTING[:9], ends=False)
            assert (await opened.reply()).status == 401


@each("header", ["Bearer ann", "bearer ann", "BEARER  ann ", " Bearer ann"])
@in_loop
async def test_a_token_may_be_written_in_several_ways(header: str) -> None:
    async with serving(auth=auth()) as served:
        for _ in range(2):
            assert (await served.call("who", headers={"authorization": header}).reply()).text == "ann"


@in_loop
async def test_a_principal_without_an_expiry_does_not_expire() -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        replies = [await served.call("who").reply() for _ in range(200)]
        assert {reply.status for reply in replies} == {200}


@each("expires, status", [(None, 200), (60, 200), (-1, 401), (-1e12, 401)])
@in_loop
async def test_an_expired_principal_is_rejected(expires: float | None, status: int) -> None:
    def check(token: str) -> Principal:
        return Principal(token, expires=None if expires is None else max(0.0, time.time() + expires))

    async with serving(auth=auth(check)) as served:
        served.bearer = "ann"
        reply = await served.call("who").reply()
        assert reply.status == status
        assert status == 200 or challenge(reply)["error"] == "invalid_token"


def short_lived(token: str) -> Principal:
    """Verify a token that expires soon after each request."""
    return Principal(token, expires=time.time() + 0.2)


@in_loop
async def test_a_listener_ends_when_its_token_expires() -> None:
    async with serving(auth=auth(short_lived)) as served:
        served.bearer = "ann"
        listener = served.listen(id=7, toolsListChanged=True)
        said = messages(await listener.rest())
        assert [each.get("method") for each in said] == [
            "notifications/subscriptions/acknowledged",
            "notifications/cancelled",
            None,
        ]
        assert said[-1]["id"] == 7
        await listener.done()
        await served.assert_settled()
        served.app.config.changes.tools_changed()


@each("revision", LEGACY)
@in_loop
async def test_a_standalone_stream_ends_when_its_token_expires(revision: str) -> None:
    async with serving(auth=auth(short_lived)) as served:
        served.bearer = "ann"
        session = await served.session(revision)
        first = await session.listening()
        await first.rest()
        await first.done()
        assert served.streams == 0
        again = await session.listening("all-1.0")
        await again.rest()
        await again.done()


@in_loop
async def test_a_resumed_stream_ends_when_its_token_expires_and_can_be_resumed_again() -> None:
    async with serving(auth=auth(short_lived)) as served:
        served.bearer = "ann"
        session = await served.session()
        call = session.call("wait")
        last = (await call.event()).id
        again = session.get(last)
        assert messages(await again.rest()) == []
        await again.done()
        served.handler.go.set()
        assert (await session.get(last).reply()).text == "waited"


@in_loop
async def test_a_call_goes_on_when_its_token_expires() -> None:
    async with serving(auth=auth(short_lived)) as served:
        served.bearer = "ann"
        session = await served.session()
        calls = [served.call("wait"), session.call("wait")]
        await served.listen().rest()  # by now both tokens have expired
        served.handler.go.set()
        assert [(await call.reply()).text for call in calls] == ["waited", "waited"]


@in_loop
async def test_a_verifier_may_be_async() -> None:
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


@each("waits", [False, True])
@each("kind", [BrokenError, ConnectionError, OSError, ValueError, asyncio.TimeoutError])
@in_loop
async def test_a_verifier_that_fails_rejects_the_request_without_details(kind: type[Exception], waits: bool) -> None:
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


@each("found", ["ann", True, {"name": "ann"}, ("ann",)])
@in_loop
async def test_a_value_that_is_not_a_principal_is_rejected(found: Any) -> None:
    def check(token: str) -> Any:
        return found

    async with serving(auth=auth(check)) as served:
        served.bearer = "ann"
        assert (await served.call("who").reply()).status in (401, 503)


@in_loop
async def test_a_token_without_the_required_scopes_is_rejected() -> None:
    async with serving(auth=auth(scopes=["read", "write"])) as served:
        for token, status in (("ann:read,write,more", 200), ("ann:read", 403), ("ann", 403)):
            served.bearer = token
            for _ in range(2):
                reply = await served.call("who").reply()
                assert reply.status == status
                if status == 403:
                    assert challenge(reply) == {
                        "error": "insufficient_scope",
                        "error_description": "required scopes: read write",
                        "scope": "read write",
                        "resource_metadata": METADATA,
                    }


@in_loop
async def test_a_challenge_names_the_scopes_of_the_server_and_of_the_operation() -> None:
    async with serving(auth=auth(scopes=["mcp", "files:read"])) as served:
        served.bearer = "ann:mcp,files:read"
        reply = await scoped(served, MODERN_REVISION, scopes=["files:read", "files:write"])
        assert reply.status == 403
        assert challenge(reply)["scope"] == "mcp files:read files:write"


@in_loop
async def test_a_challenge_describes_the_error_in_the_words_of_the_handler() -> None:
    class Careful(ToolHandler):
        async def careful(self, ctx: Any) -> str:
            raise InsufficientScopeError("a", "offline_access", description='writing "files" needs\r\npermission')

    async with serving(Careful(), auth=auth()) as served:
        served.bearer = "ann"
        reply = await served.call("careful").reply()
        assert challenge(reply)["error_description"] == "writing files needspermission"
        assert challenge(reply)["scope"] == "a"  # offline_access is nothing that a request needs


def narrower(scope: str) -> list[str]:
    return {"admin": ["write", "audit"], "write": ["read"]}.get(scope, [])


IMPLIES: list[Any] = [
    {"admin": ["write", "audit"], "write": ["read"], "read": ["read", "write"]},
    narrower,
]


@each("implies", IMPLIES, ids=["a mapping", "a function"])
@in_loop
async def test_a_broader_scope_implies_narrower_ones(implies: Any) -> None:
    allowing = Auth(verify, scopes=["read", "audit"], implies=implies)
    async with serving(auth=allowing) as served:
        for token, status in (("ann:read", 403), ("ann:write", 403), ("ann:admin", 200), ("ann:other", 403)):
            served.bearer = token
            for _ in range(2):
                reply = await served.call("who").reply()
                assert (reply.status, token) == (status, token)


@in_loop
async def test_the_first_verifier_that_knows_a_token_counts() -> None:
    first = StaticTokens({"known": Principal("service")})
    allowing = Auth([first, verify], resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(auth=allowing) as served:
        for token, expected in (("known", "service"), ("ann", "ann")):
            served.bearer = token
            assert (await served.call("who").reply()).text == expected
        served.bearer = "nobody"
        assert (await served.call("who").reply()).status == 401


def test_the_issuers_of_verifiers_are_in_the_metadata() -> None:
    tokens = JwtVerifier("https://a.test", audience="https://mcp.test/mcp")
    others = IntrospectionVerifier("https://b.test", "id", "secret", audience=None)
    metadata = json.loads(Auth([tokens, others, verify], resource="https://mcp.test/mcp").metadata)
    assert metadata["authorization_servers"] == ["https://a.test", "https://b.test"]


@in_loop
async def test_a_token_that_is_bound_to_a_key_is_no_bearer_token() -> None:
    def bound(_token: str) -> Principal:
        return Principal("ann", claims={"cnf": {"jkt": "x"}})

    async with serving(auth=auth(bound)) as served:
        served.bearer = "ann"
        reply = await served.call("who").reply()
        assert (reply.status, challenge(reply)["error"]) == (401, "invalid_token")


@each("query", [b"access_token=ann", b"a=b&access_token=nobody"])
@in_loop
async def test_a_token_in_the_query_is_rejected(query: bytes) -> None:
    async with serving(auth=auth()) as served:
        for bearer in ("ann", None):
            served.bearer = bearer
            for _ in range(2):
                reply = await served.post(LISTING, MODERN_HEADERS, query=query)
                assert (reply.status, reply.json["error"]["message"][:37]) == (
                    400,
                    "an access token is not accepted in th",
                )


async def scoped(served: Served, wire: str, **arguments: Any) -> CompleteResponse:
    """Call the tool that requires more scopes."""
    if wire == MODERN_REVISION:
        return await served.call("scoped", arguments).reply()
    if served.app._has_sessions:  # pyright: ignore[reportPrivateUsage]
        return await (await served.session(wire)).call("scoped", arguments).reply()
    content = message(id=1, method="tools/call", params={"name": "scoped", "arguments": arguments})
    return await served.post(content, {"mcp-protocol-version": wire})


@each("sessions", [True, False])
@each("wire", [*LEGACY, MODERN_REVISION])
@in_loop
async def test_a_handler_can_require_more_scopes(wire: str, sessions: bool) -> None:
    async with serving(auth=auth(), sessions=sessions) as served:
        served.bearer = "ann"
        reply = await scoped(served, wire, scopes=["files:read", "files:write"])
        assert (reply.status, reply.code, reply.json["id"]) == (403, -31403, 1)
        assert challenge(reply) == {
            "error": "insufficient_scope",
            "error_description": "required scopes: files:read files:write",
            "scope": "files:read files:write",
            "resource_metadata": METADATA,
        }
        assert reply.json["error"]["data"] == {"requiredScopes": ["files:read", "files:write"]}


@each("wire", [*LEGACY, MODERN_REVISION])
@in_loop
async def test_the_challenge_of_a_handler_names_the_scopes_of_every_request_as_well(wire: str) -> None:
    async with serving(auth=auth(scopes=["base"])) as served:
        served.bearer = "ann:base"
        reply = await scoped(served, wire, scopes=["files:write"])
        assert reply.status == 403
        assert challenge(reply)["scope"] == "base files:write"


@each("wire", [*LEGACY[1:], MODERN_REVISION])
@in_loop
async def test_a_handler_that_waits_can_require_more_scopes(wire: str) -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        reply = await scoped(served, wire, waits=True)
        assert reply.status == 403
        assert challenge(reply)["scope"] == "files:write"


@each("scope", ['a"b', "a\\b", 'x", error="none', "a\r\nset-cookie: b", "ü", "a\x00"])
@in_loop
async def test_scopes_cannot_inject_parameters_into_the_challenge(scope: str) -> None:
    async with serving(auth=auth()) as served:
        served.bearer = "ann"
        reply = await scoped(served, MODERN_REVISION, scopes=[scope])
        assert reply.status == 403
        assert challenge(reply)["error"] == "insufficient_scope"
        assert "\r" not in reply.headers["www-authenticate"]
        assert reply.headers["www-authenticate"].isascii()


@in_loop
async def test_without_auth_missing_scopes_have_no_challenge() -> None:
    async with serving() as served:
        reply = await scoped(served, MODERN_REVISION)
        assert (reply.status, reply.code) == (403, -31403)
        assert "www-authenticate" not in reply.headers


@each("data", [None, [], "a b", {"requiredScopes": "a b"}, {"requiredScopes": [1, None, "a"]}, {"requiredScopes": {}}])
@in_loop
async def test_an_error_with_the_code_of_missing_scopes_may_have_any_data(data: Any) -> None:
    class Odd(ToolHandler):
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


@each("resource, suffixes", RESOURCES)
@in_loop
async def test_the_resource_metadata_is_served_without_a_token(resource: str, suffixes: list[str]) -> None:
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
        url = challenge(await served.post(LISTING, MODERN_HEADERS))["resource_metadata"]
        path = "/" + url.split("/", 3)[3]
        assert (await served.request("GET", path=path)).status == 200
        assert (await served.request("GET", path="/.well-known/oauth-protected-resource/x")).status == 404


@in_loop
async def test_without_auth_there_is_no_resource_metadata() -> None:
    async with serving() as served:
        assert (await served.request("GET", path="/.well-known/oauth-protected-resource")).status == 404


@each(
    "options, says",
    [
        ({"resource": "mcp.test/mcp"}, "resource"),
        ({"resource": "https://mcp.test/mcp#a"}, "resource"),
        ({"resource": "https:///mcp"}, "resource"),
        ({"issuers": "https://issuer.test"}, "issuers"),
        ({"issuers": []}, "issuers"),
        ({"scopes": "a b"}, "scopes"),
        ({"scopes": ["offline_access"]}, "offline_access is between clients and authorization servers"),
        ({"verify": []}, "verify must be a function"),
        ({"verify": ["token"]}, "verify must be a function"),
        ({"verify": object()}, "verify must be a function"),
        ({"implies": ["a"]}, "implies must be a mapping"),
        ({"implies": {"write": "read"}}, "the values are lists"),
    ],
)
def test_wrong_options_of_auth_are_rejected(options: dict[str, Any], says: str) -> None:
    known: dict[str, Any] = {"verify": verify, "resource": "https://mcp.test/mcp", "issuers": ["https://issuer.test"]}
    with pytest.raises(UsageError, match=says):
        Auth(**{**known, **options})


@each("scopes", [["files:read"], "files:read", {"files:read"}, None], ids=repr)
def test_the_scopes_of_a_principal_are_a_frozenset(scopes: Any) -> None:
    with pytest.raises(UsageError, match="scopes must be a frozenset, such as frozenset"):
        Principal("ann", scopes)


@in_loop
async def test_a_verifier_that_returns_something_else_is_reported() -> None:
    def wrong(token: str) -> Any:
        return {"sub": token}

    async with serving(auth=Auth(wrong)) as served:
        served.bearer = "ann"
        assert (await served.call("turn").reply()).status == 503
        (report,) = served.reports
        assert "a verifier returned a dict, expected a Principal or None" in repr(report.error)


@in_loop
async def test_request_state_is_valid_for_its_principal_only() -> None:
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
async def test_the_list_of_tools_is_read_for_each_principal() -> None:
    class Own(ToolHandler):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            result = await super().list_tools(params, ctx)
            result.tools = result.tools if ctx.principal and ctx.principal.subject == "ann" else []
            return result

    async with serving(Own(), auth=auth()) as served:
        for _ in range(2):
            served.bearer = "ann"
            assert (await served.call("query", {"region": "eu"}).reply()).code == -32020
            served.bearer = "bob"
            assert (await served.call("query", {"region": "eu"}).reply()).code != -32020


# Limits


def post_of_size(
    served: Served, body: bytes | Sequence[bytes], length: str | None = None, **options: Any
) -> OpenRequest:
    headers = [*MODERN_HEADERS, *([(b"content-length", length.encode())] if length is not None else [])]
    return served.open("POST", headers, body, **options)


def body_of_size(size: int) -> bytes:
    """Return a request of this many bytes."""
    return LISTING + b" " * (size - len(LISTING))


@each(
    "size, length, status",
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
async def test_the_limit_of_a_body_does_not_depend_on_the_announced_length(
    size: int, length: str | None, status: int
) -> None:
    async with serving(limits=typedmcp.Limits(http_body_bytes=1000)) as served:
        headers = [*MODERN_HEADERS, *([(b"content-length", length.encode("latin-1"))] if length is not None else [])]
        for chunks in (body_of_size(size), [body_of_size(size)[:300], body_of_size(size)[300:]]):
            reply = await served.post(chunks, headers)
            assert reply.status == status
            assert status == 200 or "1000 bytes" in reply.json["error"]["message"]


@in_loop
async def test_a_body_without_an_end_is_rejected_at_the_limit() -> None:
    async with serving(limits=typedmcp.Limits(http_body_bytes=1000)) as served:
        opened = post_of_size(served, [b"x" * 100] * 50, ends=False)
        assert (await opened.reply()).status == 413
        assert opened.unread > 30


@in_loop
async def test_a_body_that_is_announced_as_too_long_is_not_read() -> None:
    async with serving(limits=typedmcp.Limits(http_body_bytes=1000)) as served:
        opened = post_of_size(served, [b"x"], "1001", ends=False)
        assert (await opened.reply()).status == 413
        assert opened.unread == 1


@each(
    "extra, status",
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
    async with serving(limits=typedmcp.Limits(http_header_bytes=1000)) as served:
        for _ in range(2):
            assert (await served.post(LISTING, [*MODERN_HEADERS, *extra])).status == status


def changed(**changes: bytes | None) -> list[tuple[bytes, bytes]]:
    """Return the headers of an accepted request with these changes; None removes a header."""
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
"""Changes of the headers of an accepted request."""


@in_loop
async def test_a_header_template_accepts_no_request_that_fails_the_checks() -> None:
    async def statuses(*looks: str) -> list[int]:
        async with serving(limits=typedmcp.Limits(http_header_bytes=1000)) as served:
            return [(await served.post(LISTING, LOOKS[look], bare=True)).status for look in looks]

    alone = {look: await statuses(look) for look in LOOKS}
    for first, second in itertools.product(LOOKS, LOOKS):
        expected = [*alone[first], *alone[second], *alone[second]]
        assert await statuses(first, second, second) == expected, (first, second)


@each("name", ["host", "origin", "content-type", "content-length", "authorization", "mcp-session-id", "last-event-id"])
@in_loop
async def test_headers_that_must_be_unique_must_not_be_repeated(name: str) -> None:
    async with serving() as served:
        value = {"host": b"localhost", "origin": b"http://localhost", "content-type": b"application/json"}.get(
            name, b"1"
        )
        reply = await served.post(LISTING, [*MODERN_HEADERS, (name.encode(), value), (name.encode(), value)])
        assert reply.status == 400
        assert name in reply.json["error"]["message"]


@in_loop
async def test_other_headers_may_be_repeated() -> None:
    async with serving() as served:
        twice = [(b"x-forwarded-for", b"1"), (b"x-forwarded-for", b"2"), (b"cookie", b"a"), (b"cookie", b"b")]
        assert (await served.post(LISTING, [*MODERN_HEADERS, *twice])).status == 200


@each("option", ["keep_alive"])
@each("value", [0, -1])
def test_limits_must_be_positive(option: str, value: int) -> None:
    with pytest.raises(UsageError, match=option):
        typedmcp.asgi(ToolHandler(), **cast(Any, {option: value}))


# Options


@each(
    "options",
    [
        {"sse_path": "/sse", "messages_path": "/sse"},
        {"sse_path": "/mcp"},
        {"sse_path": "/sse", "messages_path": "/mcp"},
    ],
)
def test_endpoints_must_not_share_a_path(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="path"):
        typedmcp.asgi(ToolHandler(), **options)


@each(
    "options, text",
    [
        ({"auth": "a token"}, "auth must be Auth.verify. or StaticTokens.*, not <class 'str'>"),
        ({"auth": verify}, "auth must be Auth.verify. or StaticTokens.*, not <class 'function'>"),
        ({"auth": {"token": "ann"}}, "auth must be Auth.verify. or StaticTokens.*, not <class 'dict'>"),
        ({"keep_alive": "3"}, "keep_alive must be a number of seconds, not '3'"),
        ({"strict": "yes"}, "strict must be True or False, not 'yes'"),
        ({"retry": "3"}, "retry must be an integer, not '3'"),
        (
            {"store": "redis://localhost"},
            r"store must be a Store, such as typedmcp_redis\.RedisStore\(url\), not a string",
        ),
    ],
    ids=str,
)
def test_an_option_of_another_type_is_rejected(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        typedmcp.asgi(ToolHandler(), **options)


def test_a_server_config_takes_no_further_options() -> None:
    config = typedmcp.ServerConfig(ToolHandler())
    with pytest.raises(TypeError, match="name"):
        typedmcp.asgi(config, name="x")
    with pytest.raises(typedmcp.UsageError, match=r"unknown option 'nonsense' of asgi; known: name, .*, hosts, "):
        typedmcp.asgi(ToolHandler(), nonsense=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


class Shared(MemoryStore):
    is_shared = True


KEY = StateSigner(b"a key of 16 bytes")


def loaded_by(server: str, make: Callable[[], AsgiApp], *, is_child: bool = True, **names: Any) -> AsgiApp:
    """Make an application as a function of a server does that has these local variables."""
    names = {name: SimpleNamespace(**value) if isinstance(value, dict) else value for name, value in names.items()}
    space = {"__name__": server, "make": make}
    exec(f"def load({', '.join(names) or '*_'}):\n    return make()", space)  # noqa: S102
    load: Any = space["load"]
    with patch.object(multiprocessing, "parent_process", lambda: is_child or None):
        return load(**names)  # type: ignore[no-any-return]


async def refusal(app: AsgiApp) -> str | None:
    """Return why an application does not open, if it does not."""
    try:
        await app.open()
    except UsageError as error:
        return str(error)
    await app.close()
    return None


def test_workers_that_share_a_store_need_a_shared_key() -> None:
    with pytest.raises(UsageError, match=r"state_signer=StateSigner\(key\)"):
        typedmcp.asgi(ToolHandler(), store=Shared())
    typedmcp.asgi(ToolHandler(), store=Shared(), state_signer=KEY)


SEVERAL: list[tuple[str, dict[str, Any]]] = [
    ("uvicorn.config", {"self": {"workers": 2}}),
    ("uvicorn._subprocess", {"config": {"workers": 16, "should_reload": False}}),
    ("hypercorn.asyncio.run", {"config": {"workers": 2}}),
    ("granian.server.mp", {"self": {"workers": 2}}),
    ("granian.server.mp", {"worker_id": 2}),
    ("gunicorn.workers.base", {"self": {"cfg": SimpleNamespace(workers=2)}}),
    ("gunicorn.arbiter", {"self": {"cfg": SimpleNamespace(workers=1), "num_workers": 2}}),
]


@each("server, names", SEVERAL)
@in_loop
async def test_several_workers_do_not_start_without_a_shared_key_and_store(server: str, names: dict[str, Any]) -> None:
    """All that is missing is named at once, when the lifespan begins: an import that fails would be repeated."""
    text = await refusal(loaded_by(server, lambda: typedmcp.asgi(ToolHandler()), **names))
    assert text is not None
    assert re.match(r"with \d+ workers, pass to each worker the same key: state_signer=StateSigner\(key\); and ", text)
    assert text.endswith("store=typedmcp_redis.RedisStore(url), or sessions=False")
    text = await refusal(loaded_by(server, lambda: typedmcp.asgi(ToolHandler(), state_signer=KEY), **names))
    assert text is not None
    assert "StateSigner" not in text
    complete = loaded_by(server, lambda: typedmcp.asgi(ToolHandler(), store=Shared(), state_signer=KEY), **names)
    assert await refusal(complete) is None
    without = loaded_by(server, lambda: typedmcp.asgi(ToolHandler(), sessions=False, state_signer=KEY), **names)
    assert await refusal(without) is None


@in_loop
async def test_states_for_single_use_need_a_shared_store_with_several_workers() -> None:
    signer = StateSigner(b"a key of 16 bytes", single_use=True)
    options: dict[str, Any] = {"state_signer": signer, "sessions": False}
    names: dict[str, Any] = {"self": {"workers": 2}}
    text = await refusal(loaded_by("uvicorn.config", lambda: typedmcp.asgi(ToolHandler(), **options), **names))
    assert text == (
        "with 2 workers, pass to each worker the same store, for single use: store=typedmcp_redis.RedisStore(url)"
    )
    options["store"] = Shared()
    assert await refusal(loaded_by("uvicorn.config", lambda: typedmcp.asgi(ToolHandler(), **options), **names)) is None


ALONE: list[tuple[str, bool, dict[str, Any]]] = [
    ("uvicorn.config", True, {"self": {"workers": 1}}),
    ("uvicorn.config", True, {"self": {"workers": None}}),
    ("uvicorn.config", True, {"self": {"workers": 4, "should_reload": True}}),
    ("uvicorn.config", False, {"self": {"workers": 4}}),  # uvicorn.Server(Config(…, workers=4)).run() has one
    ("hypercorn.run", False, {"config": {"workers": 4}}),  # the process that starts workers, when it reloads
    ("granian.server.mp", True, {"worker_id": 1}),
    ("gunicorn.arbiter", False, {"self": {"cfg": SimpleNamespace(workers=1), "num_workers": 1}}),
    ("celery.worker", True, {"self": {"workers": 4}}),
    ("uvicornlike.config", True, {"self": {"workers": 4}}),
]


@each("server, is_child, names", ALONE)
@in_loop
async def test_one_worker_needs_neither_key_nor_store(server: str, is_child: bool, names: dict[str, Any]) -> None:
    app = loaded_by(server, lambda: typedmcp.asgi(ToolHandler()), is_child=is_child, **names)
    assert await refusal(app) is None


def test_variables_for_other_servers_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts such as Heroku set `WEB_CONCURRENCY` for every process, also for one that serves alone."""
    monkeypatch.setenv("WEB_CONCURRENCY", "4")
    monkeypatch.setattr(sys, "argv", ["server.py", "--workers", "4"])
    typedmcp.asgi(ToolHandler())


@in_loop
async def test_a_refusal_is_the_message_of_a_failed_lifespan_and_the_answer_without_one() -> None:
    app = loaded_by("uvicorn.config", lambda: typedmcp.asgi(ToolHandler()), self={"workers": 2})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    await app({"type": "lifespan"}, receive, send)
    ((message),) = sent
    assert message["type"] == "lifespan.startup.failed"
    assert message["message"].startswith("the server cannot start: UsageError: with 2 workers")
    with pytest.raises(UsageError, match="with 2 workers"):
        await app({"type": "http", "method": "POST", "headers": []}, receive, send)


def test_an_application_can_be_made_outside_of_a_loop() -> None:
    served = make_served()

    async def main() -> None:
        reply = await served.post(LISTING, MODERN_HEADERS)
        assert json.loads(reply.body)["id"] == 1
        await served.app.close()

    asyncio.run(main())


# The store


class Down(MemoryStore):
    is_down = False

    async def load_session(self, session: str) -> dict[str, str] | None:
        if self.is_down:
            raise ConnectionError("a secret")
        return await super().load_session(session)


@each("method", ["POST", "GET", "DELETE"])
@in_loop
async def test_an_unreachable_store_is_answered_with_503(method: str) -> None:
    store = Down()
    async with serving(store=store) as served:
        session = await served.session()
        store.is_down = True
        content = message(id=1, method="ping") if method == "POST" else b""
        reply = await served.request(method, session.headers, content)
        assert reply.status == 503
        assert "retry-after" in reply.headers
        assert b"secret" not in reply.body
        assert served.kinds == ["connection error"]
        store.is_down = False
        assert (await session.ask("ping").reply()).status == 200


@in_loop
async def test_initialize_gets_503_at_the_limit_of_sessions_and_can_be_repeated() -> None:
    class Full(MemoryStore):
        is_down = True

        async def create_session(self, session: str, fields: Mapping[str, str], client: str | None = None) -> None:
            if self.is_down:
                raise ConnectionError("down")
            await super().create_session(session, fields, client)

    store = Full()
    async with serving(store=store) as served:
        assert (await served.post(INITIALIZE)).status == 503
        store.is_down = False
        assert (await served.post(INITIALIZE)).status == 200
