"""Whole flows against a real authorization server, oidc-provider, and our own server as the protected resource."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt.algorithms import ECAlgorithm

import typedmcp
import typedmcp_auth as auth
import typedmcp_hosts
from tests.browser import CHROMIUM, DRIVER, browser
from tests.client.http.scripted_http import Request, Wire, serving
from tests.server.scripted import run
from tests.typedmcp_auth.provider import Person, Provider, needs_provider, provider, resource
from typedmcp_auth.dpop import DpopKey

pytestmark = [pytest.mark.long, needs_provider]

OPTIONS: Any = {"timeout": 20, "on_diagnostic": print}
LIFETIME = 3
"""Seconds until an access token expires: up to one less, as the provider counts in whole seconds."""
KEY = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
SERVICE = {"redirect_uris": [], "response_types": [], "grant_types": ["client_credentials"], "scope": "read write"}
CLIENTS = [
    {**SERVICE, "client_id": "service", "client_secret": "s/e:c r%t"},
    {
        **SERVICE,
        "client_id": "signer",
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_signing_alg": "ES256",
        "jwks": {"keys": [ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)]},
    },
]


@pytest.fixture(scope="module")
def shared() -> Generator[Provider]:
    with provider(clients=CLIENTS) as server:
        yield server


@pytest.fixture(scope="module")
def url(shared: Provider) -> Generator[str]:
    with resource(shared.issuer) as found:
        yield found


@pytest.fixture
def issuer(shared: Provider) -> Generator[Provider]:
    yield shared
    shared.change(accessSeconds=3600, nonces=False)


@pytest.fixture(scope="module")
def bound_url(shared: Provider) -> Generator[str]:
    """Run a server that takes only tokens that are bound to a key."""
    with resource(shared.issuer, kind="dpop") as found:
        yield found


async def call(url: str, option: Any, name: str = "read") -> str:
    async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
        return await client.call_tool(name, result_type=str)


def grant_of(folder: Path) -> Any:
    """Return the stored grant of the only server."""
    found = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
    return next(value for value in found if "access_token" in value)


def test_a_person_signs_in_and_the_client_calls(issuer: Provider, url: str) -> None:
    ada = Person()
    assert asyncio.run(call(url, ada.sign_in())) == "ada"
    assert ada.asked[0]["scope"] == "read offline_access"
    assert ada.asked[0]["resource"] == url
    assert "You can close this page" in ada.page


def test_an_expired_token_is_renewed_without_the_person(issuer: Provider, url: str, tmp_path: Path) -> None:
    async def main() -> None:
        ada = Person()
        issuer.change(accessSeconds=LIFETIME)
        option = ada.sign_in(storage=auth.FileStorage(tmp_path))
        async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
            first = grant_of(tmp_path)
            await asyncio.sleep(LIFETIME + 0.1)
            assert await client.call_tool("read", result_type=str) == "ada"
        assert len(ada.asked) == 1
        second = grant_of(tmp_path)
        assert first["access_token"] != second["access_token"]
        assert first["refresh_token"] != second["refresh_token"]

    run(main)


def client_process(url: str, folder: Path, calls: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.typedmcp_auth.client_process", url, str(folder), str(calls)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_restarted_client_uses_and_renews_the_stored_token(issuer: Provider, url: str, tmp_path: Path) -> None:
    issuer.change(accessSeconds=LIFETIME)
    asyncio.run(call(url, Person().sign_in(storage=auth.FileStorage(tmp_path))))
    with client_process(url, tmp_path, 3) as process:
        output, errors = process.communicate(timeout=30)
    assert (output.split(), errors) == (["ada"] * 3, "")


def test_processes_at_once_never_use_one_refresh_token_twice(issuer: Provider, url: str, tmp_path: Path) -> None:
    """The provider would revoke all tokens if one were used twice, and the processes cannot ask a person."""
    issuer.change(accessSeconds=LIFETIME)
    asyncio.run(call(url, Person().sign_in(storage=auth.FileStorage(tmp_path))))
    processes = [client_process(url, tmp_path, 8) for _ in range(3)]
    try:
        results = [process.communicate(timeout=40) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [(output.split(), errors) for output, errors in results] == [(["ada"] * 8, "")] * 3


def test_a_revoked_grant_leads_to_another_sign_in(issuer: Provider, url: str) -> None:
    async def main() -> None:
        ada = Person()
        async with typedmcp.connect(url, auth=ada.sign_in(), **OPTIONS) as client:
            issuer.change(forget=["tokens"])
            assert await client.call_tool("read", result_type=str) == "ada"
        assert len(ada.asked) == 2
        assert ada.asked[0]["client_id"] == ada.asked[1]["client_id"]

    run(main)


def test_a_forgotten_client_registers_again(issuer: Provider, url: str) -> None:
    async def main() -> None:
        ada = Person()
        async with typedmcp.connect(url, auth=ada.sign_in(), **OPTIONS) as client:
            issuer.change(forget=["clients", "tokens"])
            assert await client.call_tool("read", result_type=str) == "ada"
        assert len(ada.asked) == 2
        assert ada.asked[0]["client_id"] != ada.asked[1]["client_id"]

    run(main)


def test_a_forgotten_client_without_a_token_registers_at_the_second_attempt(
    issuer: Provider, url: str, tmp_path: Path
) -> None:
    """The provider shows the person an error, and never answers the client."""
    ada = Person()
    asyncio.run(call(url, ada.sign_in(storage=auth.FileStorage(tmp_path))))
    for path in tmp_path.glob("*.json"):
        if "access_token" in json.loads(path.read_bytes()):
            path.unlink()
    issuer.change(forget=["clients", "tokens"])
    with pytest.raises(typedmcp.SignInError, match=r"within 0\.5 s"):
        asyncio.run(call(url, ada.sign_in(0.5, storage=auth.FileStorage(tmp_path))))
    assert "invalid_client" in ada.page
    assert asyncio.run(call(url, ada.sign_in(storage=auth.FileStorage(tmp_path)))) == "ada"


def test_a_person_refuses(issuer: Provider, url: str, tmp_path: Path) -> None:
    ada = Person(refuses=True)
    with pytest.raises(typedmcp.SignInError, match="End-User aborted") as caught:
        asyncio.run(call(url, ada.sign_in(storage=auth.FileStorage(tmp_path))))
    assert caught.value.code == "access_denied"
    ada.refuses = False
    asyncio.run(call(url, ada.sign_in(storage=auth.FileStorage(tmp_path))))
    assert ada.asked[0]["client_id"] == ada.asked[1]["client_id"]


def test_missing_scopes_are_requested_beside_the_granted_ones(issuer: Provider, url: str) -> None:
    async def main() -> None:
        ada = Person()
        async with typedmcp.connect(url, auth=ada.sign_in(), **OPTIONS) as client:
            assert await client.call_tool("write", result_type=str) == "written"
            assert await client.call_tool("admin", result_type=str) == "administered"
            assert await client.call_tool("write", result_type=str) == "written"
        assert [asked["scope"] for asked in ada.asked] == [
            "read offline_access",
            "read write offline_access",
            "read write admin offline_access",
        ]

    run(main)


def test_another_authorization_server_gets_a_registration_of_its_own(issuer: Provider, tmp_path: Path) -> None:
    async def main(second: Provider) -> None:
        ada = Person()
        storage = auth.FileStorage(tmp_path)
        with resource(issuer.issuer) as url:
            await call(url, ada.sign_in(storage=storage))
        for moved in (second, issuer):
            with resource(moved.issuer, urlsplit(url).port or 0) as again:
                assert again == url
                assert await call(url, ada.sign_in(storage=storage)) == "ada"
        first, other, back = (asked["client_id"] for asked in ada.asked)
        assert first == back
        assert first != other

    with provider() as second:
        asyncio.run(main(second))


def test_servers_with_one_authorization_server_get_tokens_of_their_own(issuer: Provider, url: str) -> None:
    async def main() -> None:
        ada = Person()
        storage = auth.MemoryStorage()
        with resource(issuer.issuer) as other:
            servers = {"one": url, "two": other}
            async with typedmcp_hosts.connect_all(servers, auth=ada.sign_in(storage=storage), **OPTIONS) as group:
                assert not group.failures
            assert {asked["resource"] for asked in ada.asked} == {url, other}
            assert len({asked["client_id"] for asked in ada.asked}) == 1
            stored = [await storage.load(f"token {one}") for one in servers.values()]
            token, wrong = (json.loads(value or b"")["access_token"] for value in stored)
            assert await call(url, token) == "ada"
            with pytest.raises(typedmcp.AuthorizationRequiredError):
                await call(url, wrong)

    run(main)


def test_a_person_signs_in_on_another_machine(issuer: Provider, url: str) -> None:
    shown: list[str] = []
    ada = Person()

    def ask(_prompt: str) -> str:
        return ada.sign_in_elsewhere(shown[0].splitlines()[1]) or ""

    assert asyncio.run(call(url, auth.OAuth(sign_in=auth.ConsoleSignIn(show=shown.append, ask=ask)))) == "ada"


def test_the_blocking_client_signs_in(issuer: Provider, url: str) -> None:
    with typedmcp.sync.connect(url, auth=Person().sign_in(), timeout=20) as client:
        assert client.call_tool("write", result_type=str) == "written"


@pytest.mark.parametrize(
    ("client_id", "options"),
    [("service", {"client_secret": "s/e:c r%t"}), ("signer", {"private_key": PEM})],
    ids=["secret", "private key"],
)
def test_a_client_signs_in_as_itself(issuer: Provider, url: str, client_id: str, options: Any) -> None:
    async def main() -> None:
        issuer.change(accessSeconds=LIFETIME)
        option = auth.ClientCredentials(client_id, issuer=issuer.issuer, **options)
        async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
            assert await client.call_tool("read", result_type=str) == client_id
            await asyncio.sleep(LIFETIME + 0.1)
            assert await client.call_tool("read", result_type=str) == client_id
            assert await client.call_tool("write", result_type=str) == "written"
            with pytest.raises(typedmcp.SignInError) as caught:  # it is registered without this scope
                await client.call_tool("admin")
            assert caught.value.code == "invalid_scope"

    run(main)


@pytest.mark.parametrize("nonces", [False, True])
def test_bound_tokens_are_renewed_and_used_by_other_processes_with_one_key(
    issuer: Provider, bound_url: str, tmp_path: Path, nonces: bool
) -> None:
    issuer.change(accessSeconds=LIFETIME, nonces=nonces)
    ada = Person()
    assert asyncio.run(call(bound_url, ada.sign_in(storage=auth.FileStorage(tmp_path)))) == "ada"
    first = grant_of(tmp_path)
    processes = [client_process(bound_url, tmp_path, 5) for _ in range(2)]
    try:
        results = [process.communicate(timeout=40) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [(output.split(), errors) for output, errors in results] == [(["ada"] * 5, "")] * 2
    second = grant_of(tmp_path)
    assert first["access_token"] != second["access_token"]
    assert first["dpop_key"] == second["dpop_key"]
    assert [asked["dpop_jkt"] for asked in ada.asked] == [DpopKey.load(first["dpop_key"], {}).thumbprint]


def test_a_stolen_bound_token_is_of_no_use_without_its_key(issuer: Provider, bound_url: str, tmp_path: Path) -> None:
    async def steal() -> None:
        thief = auth.MemoryStorage()
        another = DpopKey.generate("ES256", {}).dump()
        await thief.save(f"token {bound_url}", json.dumps({**stolen, "dpop_key": another}).encode())
        mallory = auth.BrowserSignIn(lambda _: False, timeout=0.5)
        with pytest.raises(typedmcp.SignInError):
            await call(bound_url, auth.OAuth(sign_in=mallory, storage=thief))
        with pytest.raises(typedmcp.AuthorizationRequiredError):
            await call(bound_url, stolen["access_token"])

    asyncio.run(call(bound_url, Person().sign_in(storage=auth.FileStorage(tmp_path))))
    stolen = grant_of(tmp_path)
    asyncio.run(steal())
    assert asyncio.run(call(bound_url, Person(refuses=True).sign_in(storage=auth.FileStorage(tmp_path)))) == "ada"


def test_a_client_signs_in_as_itself_with_a_key_for_its_tokens(issuer: Provider, bound_url: str) -> None:
    async def main() -> None:
        issuer.change(accessSeconds=LIFETIME, nonces=True)
        option = auth.ClientCredentials("service", "s/e:c r%t", issuer=issuer.issuer)
        async with typedmcp.connect(bound_url, auth=option, **OPTIONS) as client:
            assert await client.call_tool("read", result_type=str) == "service"
            await asyncio.sleep(LIFETIME + 0.1)
            assert await client.call_tool("write", result_type=str) == "written"
        with pytest.raises(typedmcp.SignInError, match="dpop=False"):
            await call(bound_url, auth.ClientCredentials("service", "s/e:c r%t", dpop=False))

    run(main)


def test_a_bound_token_needs_more_scopes(issuer: Provider, bound_url: str) -> None:
    async def main() -> None:
        ada = Person()
        async with typedmcp.connect(bound_url, auth=ada.sign_in(), **OPTIONS) as client:
            assert await client.call_tool("write", result_type=str) == "written"
            issuer.change(forget=["tokens"])
            assert await client.call_tool("write", result_type=str) == "written"
        assert len({asked["dpop_jkt"] for asked in ada.asked}) == 1
        assert len(ada.asked) == 3

    run(main)


@pytest.mark.parametrize(
    "option",
    [
        auth.ClientCredentials("service", "wrong"),
        auth.ClientCredentials("signer", private_key=PEM.replace(PEM.splitlines()[1][:8], "AAAAAAAA")),
        auth.ClientCredentials(
            "signer",
            private_key=ec.generate_private_key(ec.SECP256R1())
            .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            .decode(),
        ),
    ],
    ids=["secret", "damaged key", "another key"],
)
def test_wrong_credentials_are_an_error_that_shows_none_of_them(issuer: Provider, url: str, option: Any) -> None:
    with pytest.raises(typedmcp.SignInError) as caught:
        asyncio.run(call(url, option))
    assert "wrong" not in str(caught.value)
    assert "PRIVATE" not in str(caught.value)


def test_another_name_of_an_authorization_server_is_another_issuer(issuer: Provider) -> None:
    async def main() -> None:
        ada = Person()
        renamed = issuer.issuer.replace("127.0.0.1", "localhost")
        with resource(renamed) as url, pytest.raises(typedmcp.SignInError, match="the issuer is"):
            await call(url, ada.sign_in())
        assert ada.asked == []

    run(main)


class Attacker:
    """An authorization server that sends people to an honest one, in the hope of getting their codes (mix-up)."""

    def __init__(self, honest: str) -> None:
        self.honest = honest
        self.issuer = ""
        self.promises_iss = False
        self.forms: list[bytes] = []

    async def answer(self, request: Request, wire: Wire) -> None:
        if request.target == "/.well-known/oauth-authorization-server":
            metadata = {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.honest}/auth",
                "registration_endpoint": f"{self.honest}/reg",
                "token_endpoint": f"{self.issuer}/token",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": self.promises_iss,
            }
            wire.json(metadata)
        else:
            self.forms.append(request.body)
            wire.reply(404)


@pytest.mark.parametrize("promises_iss", [False, True])
def test_a_mixed_up_code_does_not_reach_the_attacker(issuer: Provider, promises_iss: bool) -> None:
    async def main() -> None:
        attacker = Attacker(issuer.issuer)
        attacker.promises_iss = promises_iss
        ada = Person()
        async with serving(attacker) as place:
            attacker.issuer = place.removesuffix("/mcp")
            with resource(attacker.issuer) as url, pytest.raises(typedmcp.SignInError, match="the response comes from"):
                await call(url, ada.sign_in())
        assert len(ada.asked) == 1  # the person has signed in at the honest server
        assert attacker.forms == []

    run(main)


def test_an_injected_code_of_another_sign_in_is_rejected(issuer: Provider, url: str) -> None:
    """The attacker knows the state, and puts a code of its own in place of the person's."""
    mallory = Person("mallory")
    codes: list[str] = []

    def keep_code(address: str) -> None:
        redirect = mallory.sign_in_elsewhere(address)
        assert redirect is not None
        codes.append(parse_qs(urlsplit(redirect).query)["code"][0])

    def inject(address: str) -> None:
        asked = parse_qs(urlsplit(address).query)
        query = urlencode({"code": codes[0], "state": asked["state"][0], "iss": issuer.issuer})
        with urlopen(f"{asked['redirect_uri'][0]}?{query}", timeout=10) as page:  # noqa: S310  # of the test
            page.read()

    async def main() -> None:
        storage = auth.MemoryStorage()  # with the registration, so that both use one client
        with pytest.raises(typedmcp.SignInError, match="within"):
            await call(url, auth.OAuth(sign_in=auth.BrowserSignIn(keep_code, timeout=0.5), storage=storage))
        known = mallory.asked[0]  # so that nothing but the verifier differs
        sign_in = auth.BrowserSignIn(inject, redirect_uri=known["redirect_uri"], timeout=10)
        option = auth.OAuth(client_id=known["client_id"], sign_in=sign_in)
        with pytest.raises(typedmcp.SignInError) as caught:
            await call(url, option)
        assert caught.value.code == "invalid_grant"

    run(main)


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the path")
def test_a_person_signs_in_with_a_browser(issuer: Provider, url: str, tmp_path: Path) -> None:
    with browser(800, 600, tmp_path) as window:

        def visit(address: str) -> None:
            window.send("url", url=address)
            window.wait_for("document.querySelector('[name=login]')")
            script = "document.querySelector('[name=login]').value = 'grace'; document.querySelector('[name=password]')"
            window.run(f"{script}.value = 'any'; document.forms[0].submit()")
            window.wait_for("document.querySelector('[value=consent]')")
            window.run("document.forms[0].submit()")

        option = auth.OAuth(sign_in=auth.BrowserSignIn(visit, timeout=30))
        assert asyncio.run(call(url, option)) == "grace"
        assert "You can close this page" in window.wait_for("document.body.innerText")
        assert window.run("return document.title") == "Sign-in"
