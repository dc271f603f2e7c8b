"""The same handler for clients with an access token, which is verified once. Prints such a token if it is run."""

import time

import jwt
from typedmcp_handler import HttpEchoHandler

import typedmcp
from typedmcp_auth import JwtVerifier

ISSUER, RESOURCE, SECRET = "https://auth.test", "https://mcp.test/mcp", "known to the benchmark alone, of 40 B"
SECONDS = 86_400

auth = typedmcp.Auth(JwtVerifier(ISSUER, audience=RESOURCE, secret=SECRET), scopes=["echo"])
app = streams = typedmcp.asgi(HttpEchoHandler(), name="echo", version="1", auth=auth)

if __name__ == "__main__":
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "benchmark", "scope": "echo", "exp": int(time.time()) + SECONDS}
    print(jwt.encode(claims, SECRET, "HS256"))
