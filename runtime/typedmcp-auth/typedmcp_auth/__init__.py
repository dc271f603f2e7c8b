"""Authorization for clients and servers: `connect(url, auth=OAuth())`, and `Auth(JwtVerifier(…))`.

A name is imported when it is first used: a client that signs in loads no verifiers, and neither does it load PyJWT.
https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_auth.flows import Assertion, ClientCredentials, EnterpriseManaged, JwtBearer, OAuth, TokenExchange
    from typedmcp_auth.sign_in import BrowserSignIn, ConsoleSignIn, Redirect, SignIn
    from typedmcp_auth.storage import FileStorage, KeyringStorage, MemoryStorage, TokenStorage
    from typedmcp_auth.tokens import ClientCredential
    from typedmcp_auth.verifiers.dpop import DpopVerifier
    from typedmcp_auth.verifiers.introspection import IntrospectionVerifier
    from typedmcp_auth.verifiers.jwt import JwtVerifier
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".flows": ["Assertion", "ClientCredentials", "EnterpriseManaged", "JwtBearer", "OAuth", "TokenExchange"],
        ".sign_in": ["BrowserSignIn", "ConsoleSignIn", "Redirect", "SignIn"],
        ".storage": ["FileStorage", "KeyringStorage", "MemoryStorage", "TokenStorage"],
        ".tokens": ["ClientCredential"],
        ".verifiers.dpop": ["DpopVerifier"],
        ".verifiers.introspection": ["IntrospectionVerifier"],
        ".verifiers.jwt": ["JwtVerifier"],
    })  # fmt: skip

__all__ = [
    "Assertion", "BrowserSignIn", "ClientCredential", "ClientCredentials", "ConsoleSignIn", "DpopVerifier",
    "EnterpriseManaged", "FileStorage", "IntrospectionVerifier", "JwtBearer", "JwtVerifier", "KeyringStorage",
    "MemoryStorage", "OAuth", "Redirect", "SignIn", "TokenExchange", "TokenStorage",
]  # fmt: skip
