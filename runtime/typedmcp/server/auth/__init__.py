"""Verification of access tokens: signed ones (JWT), and opaque ones that the authorization server looks up.

https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#token-handling
"""

from typedmcp.server.auth.dpop import DpopVerifier
from typedmcp.server.auth.introspection import IntrospectionVerifier
from typedmcp.server.auth.jwt import JwtVerifier

__all__ = ["DpopVerifier", "IntrospectionVerifier", "JwtVerifier"]
