"""Identity providers as they are: a client signs in at each, and again after its refresh token has ended."""

from __future__ import annotations

import pytest

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.docs.markdown import replace_block
from tests.docs.providers import BLOCK, PAGE, PROVIDERS, Provider, render
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import protected, sign_in

NAMES = {one.name: one for one in PROVIDERS}


async def call(url: str, option: auth.OAuth) -> None:
    async with typedmcp.connect(url, auth=option, timeout=10, on_diagnostic=print) as client:
        await client.call_tool("echo")


async def sign_in_twice(provider: Provider) -> list[str]:
    """Sign in, let the token end, sign in again, and return the grants that were requested."""
    async with protected() as (url, script, server):
        provider.serve(server)
        script.challenge = "Bearer"
        issuer = f"{server.url}{provider.issuer if provider.named is None else provider.named}"
        script.resource = {"authorization_servers": [issuer], "scopes_supported": ["use"]}
        storage = auth.MemoryStorage()
        if provider.options:
            with pytest.raises(typedmcp.SignInError, match=provider.without):
                await call(url, sign_in())
        for _ in range(2):
            await call(url, sign_in(storage=storage, **provider.options))
            server.tokens.clear()
        forms = server.forms()
        assert {"resource" in form for form in forms} == {not provider.refuses_resource}
        assert all("code_verifier" in form for form in forms if form["grant_type"] == "authorization_code")
        return [form["grant_type"] for form in forms]


@each("name", NAMES)
def test_a_client_signs_in_at_a_provider_with_the_options_of_the_table(name: str) -> None:
    has_refresh_token = NAMES[name].token.get("refresh_token", "") is not None
    renewal = ["refresh_token"] if has_refresh_token else []
    assert run(lambda: sign_in_twice(NAMES[name])) == ["authorization_code", *renewal, "authorization_code"]


def test_pkce_is_never_assumed_against_the_metadata() -> None:
    async def main() -> None:
        async with protected(metadata={"code_challenge_methods_supported": ["plain"]}) as (url, _, server):
            with pytest.raises(typedmcp.SignInError, match="does not support PKCE with S256"):
                await call(url, sign_in(assume_pkce=True))
            assert "/authorize" not in server.paths()

    run(main)


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_block(text, BLOCK, render()) == text
