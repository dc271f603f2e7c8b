"""Authorization for clients of URLs: `connect(url, auth=OAuth())`.

https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
"""

from typedmcp.auth.exchange import (
    AccessGrant,
    Authorization,
    Authorizer,
    AuthRequest,
    AuthResponse,
    ProtectedServer,
    RequestSigner,
)
from typedmcp.auth.flows import Assertion, ClientCredentials, EnterpriseManaged, JwtBearer, OAuth, TokenExchange
from typedmcp.auth.sign_in import BrowserSignIn, ConsoleSignIn, Redirect, SignIn
from typedmcp.auth.storage import FileStorage, KeyringStorage, MemoryStorage, TokenStorage
from typedmcp.auth.tokens import ClientCredential

__all__ = [
    "AccessGrant", "Assertion", "AuthRequest", "AuthResponse", "Authorization", "Authorizer", "BrowserSignIn",
    "ClientCredential", "ClientCredentials", "ConsoleSignIn", "EnterpriseManaged", "FileStorage", "JwtBearer",
    "KeyringStorage", "MemoryStorage", "OAuth", "ProtectedServer", "Redirect", "RequestSigner", "SignIn",
    "TokenExchange", "TokenStorage",
]  # fmt: skip
