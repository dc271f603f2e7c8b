"""Clients that sign in: the whole flow against servers that follow a script."""

from __future__ import annotations

import asyncio
import logging
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from urllib.request import urlopen

import pytest

import typedmcp
import typedmcp_auth as auth
import typedmcp_hosts
from tests.cases import each
from tests.client.http.scripted_http import Request, Wire, serving
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import ProtectedScript, pass_time, protected, sign_in, visit
from typedmcp_cli.options import CommonOptions
from typedmcp_cli.targets import run_with_client

OPTIONS: Any = {"timeout": 10, "on_diagnostic": print}


async def call(url: str, option: Any, name: str = "echo") -> typedmcp.Client:
    async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
        await client.call_tool(name)
    return client


def test_a_client_discovers_registers_signs_in_and_calls() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            await call(url, sign_in())
            assert server.paths() == ["/.well-known/oauth-authorization-server", "/register", "/authorize", "/token"]
            registered = server.requests[1].json
            assert registered["application_type"] == "native"
            assert registered["grant_types"] == ["authorization_code", "refresh_token"]
            asked = parse_qs(urlsplit(server.requests[2].target).query)
            assert (asked["scope"], asked["resource"]) == (["read"], [url])
            assert server.forms()[0]["resource"] == url
            assert script.seen[:2] == ["", "access-2"]

    run(main)


def test_a_client_uses_the_tokens_of_an_earlier_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            count = len(server.requests)
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            assert len(server.requests) == count
            assert script.seen.count("") == 1
        files = list(tmp_path.iterdir())
        assert files
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}

    run(main)


def test_a_rejected_token_is_renewed_once_for_all_calls() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await client.call_tool("echo")
                server.tokens.clear()
                await asyncio.gather(*[client.call_tool("echo") for _ in range(20)])
            assert [form["grant_type"] for form in server.forms()] == ["authorization_code", "refresh_token"]

    run(main)


def test_a_token_is_renewed_before_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with protected(token={"expires_in": 600}) as (url, script, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await client.call_tool("echo")
                server.token["expires_in"] = 3600
                pass_time(monkeypatch, 600)
                await client.call_tool("echo")
            assert script.seen.count("") == 1
            assert [form["grant_type"] for form in server.forms()] == ["authorization_code", "refresh_token"]

    run(main)


def test_clients_with_one_storage_never_use_a_refresh_token_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            server.tokens.clear()
            await asyncio.gather(*[call(url, sign_in(storage=auth.FileStorage(tmp_path))) for _ in range(5)])
            assert server.reused == []
            assert [form["grant_type"] for form in server.forms()] == ["authorization_code", "refresh_token"]

    run(main)


def test_a_revoked_grant_leads_to_another_sign_in() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await client.call_tool("echo")
                server.tokens.clear()
                server.refresh_tokens.clear()
                await client.call_tool("echo")
            kinds = [form["grant_type"] for form in server.forms()]
            assert kinds == ["authorization_code", "refresh_token", "authorization_code"]

    run(main)


def test_missing_scopes_are_requested_beside_the_known_ones_and_only_once() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.needs = {"write": "write", "admin": "admin"}
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await client.call_tool("write")
                asked = [request for request in server.requests if request.target.startswith("/authorize")]
                assert parse_qs(asked[-1].target)["scope"] == ["read write"]
                server.granted = "read write"
                with pytest.raises(typedmcp.AuthorizationRequiredError):
                    await client.call_tool("admin")
            assert len([form for form in server.forms() if form["grant_type"] == "authorization_code"]) == 3

    run(main)


def test_servers_with_one_storage_get_tokens_of_their_own() -> None:
    async def main() -> None:
        storage = auth.MemoryStorage()
        async with protected() as (url, script, server):
            other = ProtectedScript(server)
            async with serving(other) as second:
                await call(url, sign_in(storage=storage))
                await call(second, sign_in(storage=storage))
            assert {*script.seen} & {*other.seen} == {""}
            assert [form["resource"] for form in server.forms()] == [url, second]

    run(main)


@each(
    "uri", ["http://example.com/callback", "https://127.0.0.1/callback", "http://127.0.0.1.example.com/", "app:/back"]
)
def test_a_redirect_uri_is_on_this_machine(uri: str) -> None:
    with pytest.raises(typedmcp.UsageError, match="redirect_uri must be"):
        auth.BrowserSignIn(visit, redirect_uri=uri)


def test_another_authorization_server_gets_no_credentials_of_the_first() -> None:
    async def main() -> None:
        async with protected() as (url, script, first), protected() as (_, _, second):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await client.call_tool("echo")
                script.server = second
                await client.call_tool("echo")
            assert second.paths() == ["/.well-known/oauth-authorization-server", "/register", "/authorize", "/token"]
            assert [form["grant_type"] for form in first.forms()] == ["authorization_code"]

    run(main)


def test_credentials_of_a_registered_client_do_not_move_to_another_authorization_server() -> None:
    async def main() -> None:
        async with protected() as (url, script, _), protected() as (_, _, second):
            option = sign_in(client_id="mine", client_secret="secret")  # noqa: S106  # of the test
            async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
                await client.call_tool("echo")
                script.server = second
                with pytest.raises(typedmcp.SignInError, match="register the client there"):
                    await client.call_tool("echo")
            assert second.forms() == []

    run(main)


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": (
        {"metadata": {"issuer": "http://127.0.0.1:1"}},
        r"the issuer is 'http://127\.0\.0\.1:1', expected",
    ),
    "no PKCE": ({"metadata": {"code_challenge_methods_supported": None}}, "PKCE"),
    "plain PKCE": ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "PKCE"),
    "an endpoint over HTTP": ({"metadata": {"token_endpoint": "http://example.com/token"}}, "must use https"),
    "an endpoint of another kind": ({"metadata": {"authorization_endpoint": "file:///etc/passwd"}}, "not a valid URL"),
    "an endpoint with options": ({"metadata": {"authorization_endpoint": "-version"}}, "not a valid URL"),
    "no endpoint": ({"metadata": {"token_endpoint": None}}, "token_endpoint"),
    "no registration": ({"metadata": {"registration_endpoint": None}}, "client_id="),
    "no issuer in the response": ({"redirect": {"iss": None}}, "names no issuer"),
    "the issuer of another server": ({"redirect": {"iss": "https://evil.example"}}, "comes from"),
    "an issuer with a slash": ({"redirect": {"iss": "{url}/"}}, "comes from"),
    "a refusal": ({"redirect": {"code": None, "error": "access_denied"}}, "did not sign in: access_denied"),
    "a refusal of another server": (
        {"redirect": {"iss": "https://evil.example", "code": None, "error": "shown"}},
        r"comes from 'https://evil\.example', expected",
    ),
    "no code": ({"redirect": {"code": None}}, "has no code"),
    "another kind of token": ({"token": {"token_type": "mac"}}, "expected Bearer"),
    "a token with a line end": ({"token": {"access_token": "a\r\nx: y"}}, "header can hold"),
}


@each("lie", LIES)
def test_a_lying_authorization_server_gets_an_error(lie: str) -> None:
    options, expected = LIES[lie]

    async def main() -> None:
        async with protected(**options) as (url, script, _):
            with pytest.raises(typedmcp.SignInError, match=expected):
                await call(url, sign_in())
            assert set(script.seen) == {""}

    run(main)


RESOURCES: dict[str, tuple[dict[str, Any], str]] = {
    "another origin": ({"resource": "https://evil.example/mcp"}, "about another resource"),
    "another path": ({"resource": "{url}/other"}, "about another resource"),
    "a sibling": ({"resource": "{url}/mc"}, "about another resource"),
    "no servers": ({"authorization_servers": []}, "name no authorization server"),
    "a server over HTTP": ({"authorization_servers": ["http://example.com"]}, "must use https"),
    "a server with a fragment": ({"authorization_servers": ["https://example.com#x"]}, "not a valid URL"),
    "a wrong type": ({"authorization_servers": {"x": "y"}}, "authorization_servers"),
    "a text that is no URL": ({"authorization_servers": "x"}, "the issuer is not a valid URL"),
}


@each("name", RESOURCES)
def test_metadata_of_another_resource_are_rejected(name: str) -> None:
    members, expected = RESOURCES[name]

    async def main() -> None:
        async with protected() as (url, script, server):
            base = url.removesuffix("/mcp")
            script.resource = {
                key: value.replace("{url}", base) if isinstance(value, str) else value for key, value in members.items()
            }
            with pytest.raises(typedmcp.SignInError, match=expected):
                await call(url, sign_in())
            assert server.requests == []

    run(main)


def redirect_elsewhere(request: Request, wire: Wire) -> bool:
    wire.reply(307, location="http://127.0.0.1:1/stolen")
    return True


def redirect_token(request: Request, wire: Wire) -> bool:
    return request.target == "/token" and redirect_elsewhere(request, wire)


def send_too_much(request: Request, wire: Wire) -> bool:
    wire.reply(200, b" " * (1 << 19))
    return True


@each(
    "handle, expected",
    [
        (redirect_elsewhere, "another origin"),
        (redirect_token, "requests with credentials are not redirected"),
        (send_too_much, "more than the limit"),
    ],
)
def test_redirects_and_large_documents_are_rejected(handle: Callable[[Request, Wire], bool], expected: str) -> None:
    async def main() -> None:
        async with protected(handle=handle) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match=expected):
                await call(url, sign_in())

    run(main)


def test_metadata_are_found_without_a_challenge() -> None:
    async def main() -> None:
        async with protected() as (url, script, _):
            script.challenge = "Bearer"
            await call(url, sign_in())

    run(main)


def test_a_redirect_with_another_state_is_ignored() -> None:
    pages: list[int] = []

    def open_with_noise(url: str) -> None:
        uri = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
        for query in ("", "code=evil&state=guess", "code=1&code=2"):
            try:
                with urlopen(f"{uri}?{query}") as page:  # noqa: S310  # of the test
                    pages.append(page.status)
            except OSError as error:
                pages.append(getattr(error, "code", 0))
                getattr(error, "close", lambda: None)()
        visit(url)

    async def main() -> None:
        async with protected() as (url, _, server):
            await call(url, auth.OAuth(sign_in=auth.BrowserSignIn(open_with_noise, timeout=10)))
            assert pages == [400, 400, 400]
            assert len(server.forms()) == 1

    run(main)


def test_a_person_can_paste_the_redirect() -> None:
    shown: list[str] = []

    async def main() -> None:
        async with protected() as (url, _, server):

            def ask(_prompt: str) -> str:
                asked = dict(parse_qsl(urlsplit(shown[0].splitlines()[1]).query))
                server.codes["pasted"] = asked
                query = urlencode({"code": "pasted", "state": asked["state"], "iss": server.url})
                return f"{asked['redirect_uri']}?{query}\n"

            await call(url, auth.OAuth(sign_in=auth.ConsoleSignIn(show=shown.append, ask=ask)))

    run(main)


def test_a_failed_sign_in_fails_all_calls_that_wait_for_it() -> None:
    async def main() -> None:
        async with protected() as (url, _, server), typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
            server.redirect.update(code=None, error="access_denied")
            server.tokens.clear()
            server.refresh_tokens.clear()
            before = server.paths().count("/authorize")
            calls = [client.call_tool("echo") for _ in range(5)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(result) for result in results} == {typedmcp.SignInError}
            assert server.paths().count("/authorize") == before + 1

    run(main)


def test_a_sign_in_has_its_own_time() -> None:
    async def open_late(url: str) -> None:
        await asyncio.sleep(1.5)
        await asyncio.to_thread(visit, url)

    async def main() -> None:
        async with protected() as (url, _, _server):
            option = auth.OAuth(sign_in=auth.BrowserSignIn(open_late))
            async with typedmcp.connect(url, auth=option, timeout=1, probe=0.2) as client:
                assert client.revision == "2026-07-28"

    run(main)


def test_a_cancelled_sign_in_closes_its_listener() -> None:
    opened = asyncio.Event()
    uris: list[str] = []

    async def wait(url: str) -> None:
        uris.append(dict(parse_qsl(urlsplit(url).query))["redirect_uri"])
        opened.set()

    async def main() -> None:
        async with protected() as (url, _, _server):
            task = asyncio.create_task(call(url, auth.OAuth(sign_in=auth.BrowserSignIn(wait))))
            await asyncio.wait_for(opened.wait(), 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            port = urlsplit(uris[0]).port
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

    run(main)


def test_plain_http_to_another_machine_is_rejected() -> None:
    for option in (sign_in(), auth.ClientCredentials("id", "secret")):
        with pytest.raises(typedmcp.UsageError, match="need https"):
            typedmcp.connect("http://mcp.example.com/mcp", auth=option)
    plain = "http://idp.example.com/token"
    with pytest.raises(typedmcp.UsageError, match="need https"):
        auth.EnterpriseManaged("me", id_token="", idp_token_endpoint=plain, idp_client_id="idp")


def test_a_client_signs_in_as_itself() -> None:
    async def main() -> None:
        async with protected(token={"refresh_token": None}) as (url, script, server):
            script.needs = {"write": "write"}
            async with typedmcp.connect(url, auth=auth.ClientCredentials("id:1", "s/2"), **OPTIONS) as client:
                await client.call_tool("write")
                server.tokens.clear()
                await client.call_tool("write")
            meta = script.of("tools/call")[0].json["params"]["_meta"]
            declared = meta["io.modelcontextprotocol/clientCapabilities"]["extensions"]
            assert declared == {"io.modelcontextprotocol/oauth-client-credentials": {}}
            assert [form["scope"] for form in server.forms()] == ["read", "read write", "read write"]
            assert {r.headers.get("authorization") for r in server.requests if r.target == "/token"} == {
                "Basic aWQlM0ExOnMlMkYy"
            }

    run(main)


def test_the_blocking_client_and_groups_sign_in() -> None:
    async def main() -> None:
        async with protected() as (url, _, first), protected() as (other, _, second):
            config = {"a": url, "b": other}
            async with typedmcp_hosts.connect_all(config, auth=sign_in(), **OPTIONS) as group:
                assert not group.failures
            assert {first.paths().count("/token"), second.paths().count("/token")} == {1}

            def block() -> None:
                with typedmcp.sync.connect(url, auth=sign_in(), **OPTIONS) as client:
                    client.call_tool("echo")

            await asyncio.to_thread(block)

    run(main)


def test_secrets_are_not_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    diagnostics: list[Any] = []

    async def main() -> None:
        async with protected() as (url, _, server):
            storage = auth.FileStorage(tmp_path)
            option = sign_in(client_id="me", client_secret="hidden-secret", storage=storage)  # noqa: S106
            options: Any = {**OPTIONS, "on_diagnostic": diagnostics.append}
            async with typedmcp.connect(url, auth=option, **options) as client:
                await client.call_tool("echo")
                server.tokens.clear()
                server.refresh_tokens.clear()
                server.redirect.update(code=None, error="access_denied")
                with pytest.raises(typedmcp.SignInError) as caught:
                    await client.call_tool("echo")
                text = f"{caught.value!r} {option!r} {storage!r} {client!r} {diagnostics} {caplog.text}"
        for secret in ("hidden-secret", "access-", "refresh-", "code_verifier"):
            assert secret not in text

    run(main)


@each("mode", [0o644, 0o640, 0o604, 0o620])
def test_files_that_others_may_read_or_write_are_rejected(mode: int, tmp_path: Path) -> None:
    async def main() -> None:
        storage = auth.FileStorage(tmp_path)
        await storage.save("key", b"value")
        assert await storage.load("key") == b"value"
        next(tmp_path.iterdir()).chmod(mode)
        with pytest.raises(typedmcp.UsageError, match="0600"):
            await storage.load("key")

    run(main)


def test_an_entry_of_a_configuration_signs_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", visit)

    async def main() -> None:
        async with protected() as (url, script, server):
            for _ in range(2):
                entries = {"protected": {"url": url, "auth": "oauth"}}
                async with typedmcp_hosts.connect_all(entries, auth="of the other servers", **OPTIONS) as group:
                    assert not group.failures
            assert "of the other servers" not in script.seen
            assert len(server.forms()) == 1

    run(main)


def test_the_command_line_signs_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", visit)

    async def main() -> None:
        async with protected() as (url, _, server):
            for _ in range(2):
                await asyncio.to_thread(run_with_client, url, CommonOptions(oauth=True), list_tools)
            assert len(server.forms()) == 1

    async def list_tools(client: typedmcp.Client, _display: object) -> int:
        await client.list_tools()
        return 0

    run(main)
