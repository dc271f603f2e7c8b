"""Verify a signed token, store tokens, and sign in at a server that is not there."""

import asyncio
import tempfile
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

import typedmcp
from typedmcp.auth import Authorizer
from typedmcp_auth import ClientCredentials, DpopVerifier, FileStorage, JwtVerifier, OAuth

ISSUER, RESOURCE = "https://auth.example.com", "https://mcp.example.com/mcp"

key = ec.generate_private_key(ec.SECP256R1())
keys = {"keys": [{**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "use": "sig"}]}
auth = typedmcp.Auth(
    JwtVerifier(ISSUER, audience=RESOURCE, jwks=keys), resource=RESOURCE, scopes=["read"], dpop=DpopVerifier(RESOURCE)
)


async def main() -> None:
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "scope": "read", "exp": time.time() + 60}
    token = jwt.encode(claims, key, "ES256")
    principal = await auth.principal({b"authorization": f"Bearer {token}".encode()})
    assert (principal.subject, principal.scopes) == ("ada", {"read"}), principal

    with tempfile.TemporaryDirectory() as folder:
        storage = FileStorage(folder)
        await storage.save("key", b"value")
        assert await storage.load("key") == b"value"
        flows: list[Authorizer] = [OAuth(storage=storage), ClientCredentials("service", "secret", storage=storage)]
        for flow in flows:
            try:
                await typedmcp.connect("http://127.0.0.1:1/mcp", auth=flow).__aenter__()
            except typedmcp.ConnectionLostError:
                continue
            raise AssertionError("a client has connected to nothing")


asyncio.run(main())
