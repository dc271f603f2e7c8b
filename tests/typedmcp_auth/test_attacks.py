"""Attacks on clients that sign in. Those that need a real authorization server are in `test_full_flows.py`."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.client.http.scripted_http import Request, Script, Wire, serving
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import AuthorizationServer, protected, sign_in, visit
from tests.typedmcp_auth.test_sign_in import OPTIONS, call
from typedmcp_auth.urls import check_url

INNER_ADDRESSES = [
    "https://127.0.0.1/x",
    "https://localhost./x",
    "https://a.localhost/x",
    "https://0.0.0.0/x",
    "https://[::ffff:169.254.169.254]/x",
    "https://[::ffff:7f00:1]/x",
    "https://[64:ff9b::a9fe:a9fe]/x",
    "https://[2002:7f00:1::]/x",
    "https://[fe80::1%25eth0]/x",
    "https://[fd00::1]/x",
    "https://100.64.0.1/x",
    "https://2130706433/x",
    "https://0x7f000001/x",
    "https://0177.0.0.1/x",
    "https://127.1/x",
    "https://127.0.0.1./x",
    "https://a.example@127.0.0.1/x",
    "https://127.0.0.1:443\\@a.example/x",
]


@each("url", INNER_ADDRESSES)
def test_a_public_server_cannot_name_an_address_within_the_network(url: str) -> None:
    with pytest.raises(typedmcp.SignInError):
        check_url(url, "the URL", "https://mcp.example.com")


def tls_context(folder: Path) -> ssl.SSLContext:
    """Return a context with a certificate that nobody has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "inner.example.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("inner.example.com")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + secret)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    return context


def test_a_public_name_with_an_inner_address_gets_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server would need a certificate for that name."""
    resolve = socket.getaddrinfo
    asked: list[str] = []

    def resolve_to_loopback(host: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(str(host))
        return resolve("127.0.0.1" if host == "inner.example.com" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_to_loopback)

    async def main() -> None:
        inner = AuthorizationServer()
        async with serving(inner, tls_context(tmp_path)) as place, protected() as (url, script, _):
            port = urlsplit(place).port
            script.resource["authorization_servers"] = [f"https://inner.example.com:{port}"]
            with pytest.raises(typedmcp.SignInError, match="certificate verify failed"):
                await call(url, sign_in())
        assert "inner.example.com" in asked
        assert inner.requests == []

    run(main)


def test_a_token_does_not_follow_a_redirect_to_another_origin() -> None:
    async def main() -> None:
        other = Script()
        async with serving(other) as stolen, protected() as (url, script, server):

            def redirect(_request: Request, wire: Wire) -> None:
                wire.reply(307, location=stolen)

            script.handlers["tools/call"] = redirect
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                with pytest.raises(typedmcp.HttpStatusError, match="another origin"):
                    await client.call_tool("echo")
            assert server.tokens
            assert other.requests == []

    run(main)


def test_metadata_of_the_resource_do_not_come_from_a_redirect_to_another_origin() -> None:
    async def main() -> None:
        other = Script()
        async with serving(other) as elsewhere, protected() as (url, script, server):
            script.describe_resource = lambda _request, wire: wire.reply(302, location=elsewhere)
            with pytest.raises(typedmcp.SignInError, match="another origin"):
                await call(url, sign_in())
            assert (server.requests, other.requests) == ([], [])

    run(main)


def test_slow_metadata_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import typedmcp.fetch

    monkeypatch.setattr(typedmcp.fetch, "_TIMEOUT", 0.3)

    def trickle(_request: Request, wire: Wire) -> bool:
        wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        return True

    async def main() -> None:
        async with protected(handle=trickle) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match=r"no response within 0\.3 s"):
                await call(url, sign_in())

    run(main)


# Text of servers on a terminal

ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202egnol\r\nforged line"


def assert_harmless(error: BaseException) -> None:
    for text in (str(error), repr(error)):
        assert text.isprintable()
        assert "owned" in text


@each("member", ["error", "error_description"])
def test_a_refusal_in_the_redirect_controls_no_terminal(member: str) -> None:
    async def main() -> None:
        redirect = {"code": None, "error": "access_denied", member: ESCAPES}
        async with protected(redirect=redirect) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError) as caught:
                await call(url, sign_in())
            assert_harmless(caught.value)
            assert (caught.value.code or "").isprintable()

    run(main)


@each("path", ["/token", "/register", "/.well-known/oauth-authorization-server"])
def test_an_error_of_an_endpoint_controls_no_terminal(path: str) -> None:
    def refuse(request: Request, wire: Wire) -> bool:
        if request.target != path:
            return False
        if path.startswith("/.well-known"):
            wire.json({"issuer": ESCAPES, "token_endpoint": "https://a.example"})
        else:
            wire.json({"error": ESCAPES, "error_description": ESCAPES, "error_uri": ESCAPES}, 400)
        return True

    async def main() -> None:
        async with protected(handle=refuse) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError) as caught:
                await call(url, sign_in())
            assert_harmless(caught.value)

    run(main)


@each("member", ["resource", "authorization_servers"])
def test_metadata_of_a_server_control_no_terminal(member: str) -> None:
    async def main() -> None:
        async with protected() as (url, script, _):
            script.resource[member] = ESCAPES if member == "resource" else [ESCAPES]
            with pytest.raises(typedmcp.SignInError) as caught:
                await call(url, sign_in())
            assert_harmless(caught.value)

    run(main)


def test_a_challenge_controls_no_terminal() -> None:
    async def main() -> None:
        async with protected() as (url, script, _):
            script.challenge = 'Bearer error="owned\x1b[2J"'
            with pytest.raises(typedmcp.Error) as caught:
                await call(url, "a token that is not valid")
            assert str(caught.value).isprintable()
            assert repr(caught.value).isprintable()

    run(main)


def test_an_authorization_endpoint_shows_nothing_but_a_url() -> None:
    shown: list[str] = []

    async def main() -> None:
        async with protected(metadata={"authorization_endpoint": f"https://a.example/{ESCAPES}"}) as (url, _, _server):
            option = auth.OAuth(sign_in=auth.ConsoleSignIn(show=shown.append, ask=lambda _: ""))
            with pytest.raises(typedmcp.SignInError, match="not a valid URL"):
                await call(url, option)
        assert shown == []

    run(main)


# The listener, which everyone on this machine can reach


async def send(port: int, data: bytes) -> bytes:
    """Send bytes to the listener, and return what it answers, up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_the_listener_answers_nothing_but_the_redirect() -> None:
    answers: dict[str, bytes] = {}

    async def attack(url: str) -> None:
        asked = dict(parse_qsl(urlsplit(url).query))
        port = urlsplit(asked["redirect_uri"]).port or 0
        real = urlencode({"state": asked["state"], "code": "evil"})
        requests = {
            "a guess": b"GET /callback?code=evil&state=guess HTTP/1.1\r\n\r\n",
            "the state twice": f"GET /callback?{real}&state={asked['state']} HTTP/1.1\r\n\r\n".encode(),
            "many members": b"GET /callback?" + b"&".join([b"a=1"] * 30) + b" HTTP/1.1\r\n\r\n",
            "another method": f"POST /callback?{real} HTTP/1.1\r\nContent-Length: 0\r\n\r\n".encode(),
            "another path": f"GET /callback/../x?{real} HTTP/1.1\r\n\r\n".encode(),
            "a script": b"GET /callback?<script>alert(1)</script> HTTP/1.1\r\n\r\n",
            "no HTTP": b"\x16\x03\x01\x00\xff\r\n\r\n",
            "half a request": b"GET /callback",
            "other bytes": b"GET /callback?\xff\xfe HTTP/1.1\r\n\r\n",
            "a long head": b"GET /callback HTTP/1.1\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
        }
        for name, request in requests.items():
            answers[name] = await send(port, request)
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        await asyncio.to_thread(visit, url)
        for _, writer in idle:
            writer.close()

    async def main() -> None:
        async with protected() as (url, _, server):
            await call(url, auth.OAuth(sign_in=auth.BrowserSignIn(attack, timeout=20)))
            assert [form["code"] for form in server.forms()] == ["code-1"]

    run(main)
    statuses = {name: answer[:12].removeprefix(b"HTTP/1.1 ").decode() for name, answer in answers.items()}
    assert {name: status for name, status in statuses.items() if status} == {
        "a guess": "400",
        "the state twice": "400",
        "many members": "400",
        "another method": "400",
        "another path": "404",
        "a script": "400",
    }
    assert all(b"evil" not in answer and b"script" not in answer for answer in answers.values())


def test_a_response_is_accepted_once() -> None:
    """The first one counts. A state that has been used is not valid for the next sign-in."""
    uses: list[dict[str, str]] = []

    async def replay(url: str) -> None:
        asked = dict(parse_qsl(urlsplit(url).query))
        port = urlsplit(asked["redirect_uri"]).port or 0
        if uses:
            old = urlencode({"code": "evil", "state": uses[0]["state"]})
            assert b"400 Bad" in await send(port, f"GET /callback?{old} HTTP/1.1\r\n\r\n".encode())
        await asyncio.to_thread(visit, url)
        late = urlencode({"code": "evil", "state": asked["state"]})
        with suppress(ConnectionRefusedError):  # the listener has been closed
            await send(port, f"GET /callback?{late} HTTP/1.1\r\n\r\n".encode())
        uses.append(asked)

    async def main() -> None:
        async with protected() as (url, _, server):
            option = auth.OAuth(sign_in=auth.BrowserSignIn(replay, timeout=20))
            async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
                server.tokens.clear()
                server.refresh_tokens.clear()
                await client.call_tool("echo")
            codes = [form["code"] for form in server.forms() if "code" in form]
            assert len(codes) == 2
            assert "evil" not in codes

    run(main)
    assert len({use["state"] for use in uses}) == len({use["code_challenge"] for use in uses}) == 2


def test_another_process_at_the_registered_port_gets_no_redirect() -> None:
    async def main() -> None:
        seen: list[bytes] = []

        async def steal(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.read(1000))
            writer.close()

        storage = auth.MemoryStorage()
        async with protected() as (url, _, server):
            await call(url, sign_in(storage=storage))
            registered = str(server.requests[1].json["redirect_uris"][0])
            await storage.save(f"token {url}", None)
            thief = await asyncio.start_server(steal, "127.0.0.1", urlsplit(registered).port)
            async with thief:
                await call(url, sign_in(storage=storage))
                uris = [
                    request.json["redirect_uris"][0] for request in server.requests if request.target == "/register"
                ]
                asked = parse_qs(urlsplit(server.requests[-2].target).query)
                assert asked["redirect_uri"] == [uris[1]] != [registered]
                fixed = auth.BrowserSignIn(visit, redirect_uri=registered, timeout=10)
                with pytest.raises(typedmcp.SignInError, match="cannot listen at"):
                    await call(url, auth.OAuth(sign_in=fixed))
            assert seen == []

    run(main)


def test_a_port_cannot_be_taken_while_the_client_listens_at_it() -> None:
    async def main() -> None:
        async with auth.BrowserSignIn(visit).open_redirect(None) as redirect:
            port = urlsplit(redirect.uri).port or 0
            for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                with socket.socket() as thief:
                    thief.setsockopt(socket.SOL_SOCKET, option, 1)
                    with pytest.raises(OSError, match="in use"):
                        thief.bind(("127.0.0.1", port))

    run(main)
