"""Access to a server over HTTP: hosts, origins and credentials.

A web page must not reach a server on the visitor's machine by resolving its own host name to that address (DNS
rebinding). So requests are accepted only for the configured hosts, and from pages of the configured origins.
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-%26-endpoint
https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from mcpspec.support.objects import is_object
from typedmcp.errors import UsageError
from typedmcp.protocol.option_checks import check_list
from typedmcp.server.http.messages import Headers, HTTPException, cache_short_values
from typedmcp.server.principal import Principal, check_scopes
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["LOOPBACK", "AllowedHosts", "Auth", "ProofVerifier", "StaticTokens", "Verifier"]

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that are accepted by default."""

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_UNQUOTABLE = re.compile(r'[^\x20-\x7e]|["\\]')
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""Bearer tokens (RFC 6750)."""
_EXPANDED_SCOPES = 256
"""Sets of scopes whose implied scopes are cached."""
_OFFLINE_ACCESS = "offline_access"
_MAX_DESCRIPTION = 300
"""Characters of a description in a challenge."""


class AllowedHosts:
    """The hosts and origins that are accepted.

    `hosts` are names with or without a port; "*" accepts all. `origins` are accepted in addition to those of the hosts,
    such as `https://app.example.com`; "*" accepts all.
    """

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = _lowered("hosts", hosts)
        self.origins: set[str] = {origin.rstrip("/") for origin in _lowered("origins", origins)}
        """The origins beside those of the hosts, in lower case."""
        self._allows_host = cache_short_values(self._check_host)
        self._allows_origin = cache_short_values(self._check_origin)

    def check(self, headers: Headers) -> None:
        """Raise `HTTPException` for a request to a host, or from a page of an origin, that is not accepted."""
        host = headers.get(b"host", b"")
        if not self._allows_host(host):
            name = _quoted(host)
            raise HTTPException(421, f"the host {name} is not served here; asgi(…, hosts=[{name}]) allows it")
        origin = headers.get(b"origin")
        if origin is not None and not self._allows_origin(origin):
            name = _quoted(origin)
            raise HTTPException(403, f"pages of {name} have no access; asgi(…, origins=[{name}]) allows it")

    def _check_host(self, host: bytes) -> bool:
        if "*" in self._hosts:
            return True
        text = host.decode("latin-1").lower()
        return text in self._hosts or _without_port(text) in self._hosts

    def _check_origin(self, origin: bytes) -> bool:
        text = origin.decode("latin-1").lower()
        if "*" in self.origins or text in self.origins:
            return True
        scheme, _, host = text.partition("://")
        return scheme in ("http", "https") and "*" not in self._hosts and self._check_host(host.encode("latin-1"))


def _lowered(option: str, values: Iterable[str]) -> set[str]:
    check_list(option, values)
    if not isinstance(cast(object, values), Iterable):
        raise UsageError(f"{option} must be a list of strings, not {values!r}")
    return {value.lower() for value in values}


def _without_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() and not name.endswith(":") else host


def _quoted(value: bytes) -> str:
    """Quote the value of a header for an error message: shortened, and in ASCII."""
    return ascii(value[:100].decode("latin-1"))


Verifier: TypeAlias = Callable[[str], "Principal | Awaitable[Principal | None] | None"]
"""Returns the principal of a bearer token, or None for a token that is not valid for this server. Plain or async."""


Implies: TypeAlias = Mapping[str, Iterable[str]] | Callable[[str], Iterable[str]]
"""The narrower scopes that a scope implies: by the broader one, or a function that returns them."""


class ProofVerifier(Protocol):
    """Verifies the proofs of tokens that are bound to a key. `DpopVerifier` is one."""

    @property
    def required(self) -> bool:
        """True if bearer tokens are rejected."""
        ...

    @property
    def algorithms(self) -> Sequence[str]:
        """The algorithms of proofs that are accepted."""
        ...

    def new_nonce(self) -> str | None:
        """Return a nonce for the next proof of a client, or None without nonces."""
        ...

    async def check(self, proof: str, token: str, method: str, thumbprint: str) -> tuple[str, str] | None:
        """Return None if a proof is valid for a request with this token, method and key.

        Otherwise return the error of the challenge, such as `invalid_dpop_proof`, and its description.
        """
        ...


class Auth:
    """Authentication with access tokens, required for every request. Raises `UsageError` for invalid options.

    `verify` returns the principal of a token, or None: a `JwtVerifier`, an `IntrospectionVerifier`, or a function of
    yours, which must also check that the token was issued for this server. In a list, the first one that knows a token
    counts. `resource` is the URL of the MCP endpoint as clients know it, `issuers` are the URLs of the authorization
    servers, by default those of the verifiers. Without `resource` there is no metadata: clients get their tokens in
    another way.

    `scopes` are the scopes that every request needs. `implies` maps a scope to the narrower ones that it includes, such
    as `{"files:write": ["files:read"]}`, or is a function that returns them. `dpop`, a `DpopVerifier(resource)`, also
    takes tokens that are bound to a key, with a proof for each request.
    """

    def __init__(
        self,
        verify: Verifier | Sequence[Verifier],
        *,
        resource: str | None = None,
        issuers: Sequence[str] = (),
        scopes: Sequence[str] = (),
        implies: Implies | None = None,
        dpop: ProofVerifier | None = None,
    ) -> None:
        is_one = callable(verify) or not isinstance(cast(object, verify), Sequence)
        verifiers = cast("list[Verifier]", [verify] if is_one else [*cast("Sequence[Verifier]", verify)])
        if not verifiers or not all(map(callable, verifiers)):
            raise UsageError(f"verify must be a function that returns the principal of a token, not {verify!r}")
        if dpop is not None and not callable(getattr(dpop, "check", None)):
            raise UsageError(f"dpop must be a DpopVerifier, not {dpop!r}")
        self._verifiers = verifiers
        self._dpop = dpop
        self._schemes: dict[str, str] = {} if dpop is not None and dpop.required else {"bearer": "Bearer"}
        """The schemes of credentials that are accepted, by their names in lower case."""
        if dpop is not None:
            self._schemes["dpop"] = "DPoP"
        self._scopes = check_scopes("scopes", scopes)
        self._hierarchy = None if implies is None else ScopeHierarchy(implies)
        self._origin: str | None = None
        self._path = ""
        self.metadata_paths: tuple[str, ...] = ()
        """The paths at which clients look for the metadata."""
        self.metadata: bytes = b""
        """The protected resource metadata (RFC 9728), from which clients learn how to get a token."""
        known: list[Any] = [getattr(each, "issuer", None) for each in verifiers]
        if resource is not None or issuers:
            self._add_metadata(resource, issuers or [each for each in known if isinstance(each, str)])

    def _add_metadata(self, resource: str | None, issuers: Sequence[str]) -> None:
        parts = urlsplit(resource or "")
        if resource is None or parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
            raise UsageError(f"resource must be the URL of the endpoint, without a fragment, not {resource!r}")
        if isinstance(issuers, str) or not issuers:
            raise UsageError("issuers must be a list of URLs of authorization servers, with at least one")
        self._origin, self._path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        self.metadata_paths = (_WELL_KNOWN + self._path, _WELL_KNOWN)
        self.metadata = msgspec.json.encode(self._describe_resource(resource, issuers))

    def _describe_resource(self, resource: str, issuers: Sequence[str]) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "resource": resource,
            "authorization_servers": list(dict.fromkeys(issuers)),
            "bearer_methods_supported": ["header"],
        }
        if self._scopes:
            metadata["scopes_supported"] = self._scopes
        if self._dpop is not None:
            metadata["dpop_signing_alg_values_supported"] = list(self._dpop.algorithms)
            metadata["dpop_bound_access_tokens_required"] = self._dpop.required
        return metadata

    async def principal(self, headers: Headers, root: str = "", method: str = "POST") -> Principal:
        """Return the principal of a request to an application that is mounted at `root`.

        Raises `HTTPException` with a challenge.
        """
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").strip(" \t").partition(" ")
        scheme, token = scheme.lower(), token.strip()
        if not token or scheme not in self._schemes:
            needed = "a token that is bound to a key, with a proof," if "bearer" not in self._schemes else "a token"
            raise self._unauthorized(f"{needed} is required", root)
        principal = await self._verify(token)
        if principal is None or (principal.expires is not None and principal.expires <= time.time()):
            raise self._unauthorized("the token is not valid, or has expired", root, "invalid_token")
        if scheme == "dpop" or "cnf" in principal.claims:
            await self._check_binding(principal, scheme, token, headers.get(b"dpop"), method, root)
        if self._hierarchy is not None:
            principal = self._hierarchy.expand(principal)
        if self._scopes and not principal.scopes.issuperset(self._scopes):
            raise self.insufficient_scope((), root)
        return principal

    async def _check_binding(
        self, principal: Principal, scheme: str, token: str, proof: bytes | None, method: str, root: str
    ) -> None:
        """Check that a token is bound to the key of a proof. Raises `HTTPException` with a challenge."""
        bound: Any = principal.claims.get("cnf")
        thumbprint: Any = bound.get("jkt") if is_object(bound) and len(bound) == 1 else None
        if scheme != "dpop" or self._dpop is None or not isinstance(thumbprint, str):
            text = "the token is not bound to a key" if bound is None else "the token is bound to a key"
            raise self._unauthorized(text, root, "invalid_token")
        found = await self._dpop.check((proof or b"").decode("latin-1"), token, method, thumbprint)
        if found is None:
            return
        error, text = found
        headers = [self._challenge(error, self._scopes, root, text, ["DPoP"])]
        nonce = self._dpop.new_nonce() if error == "use_dpop_nonce" else None
        if nonce is not None:
            headers.append((b"dpop-nonce", nonce.encode()))
        raise HTTPException(401, text, headers)

    async def _verify(self, token: str) -> Principal | None:
        for verify in self._verifiers:
            verified = verify(token)
            principal = await verified if is_awaitable(verified) else verified
            if principal is not None:
                if not isinstance(principal, Principal):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise TypeError(f"a verifier returned a {type(principal).__name__}, expected a Principal or None")
                return principal
        return None

    def _unauthorized(self, text: str, root: str, error: str | None = None) -> HTTPException:
        return HTTPException(401, text, [self._challenge(error, self._scopes, root, text)])

    def insufficient_scope(self, scopes: Sequence[str], root: str = "", text: str | None = None) -> HTTPException:
        """Return the response to a request that lacks scopes: some of these, or of those that every request needs.

        The challenge names all of them, so that the client has to ask only once. `text` describes the error.
        """
        needed = list(dict.fromkeys([*self._scopes, *scopes]))
        text = text or f"required scopes: {' '.join(needed)}"
        return HTTPException(403, text, [self._challenge("insufficient_scope", needed, root, text)])

    def _challenge(
        self, error: str | None, scopes: Sequence[str], root: str, text: str, schemes: Sequence[str] = ()
    ) -> tuple[bytes, bytes]:
        """Return the header with a challenge for each scheme: by default, for all that are accepted."""
        parameters = {
            "error": error,
            "error_description": text[:_MAX_DESCRIPTION] if error else None,
            "scope": " ".join([scope for scope in scopes if scope != _OFFLINE_ACCESS]),
            "resource_metadata": self._metadata_url(root),
        }
        quoted = [f'{name}="{_UNQUOTABLE.sub("", value)}"' for name, value in parameters.items() if value]
        challenges: list[str] = []
        for scheme in schemes or self._schemes.values():
            algorithms = self._dpop.algorithms if self._dpop is not None and scheme == "DPoP" else ()
            members = [*quoted, *([f'algs="{" ".join(algorithms)}"'] if algorithms else [])]
            challenges.append(f"{scheme} {', '.join(members)}".rstrip())
        return b"www-authenticate", ", ".join(challenges).encode("ascii")

    def _metadata_url(self, root: str) -> str | None:
        """Return the URL of the metadata: below `root`, since a mounted application gets no other requests."""
        if self._origin is None:
            return None
        root = root.rstrip("/")
        if root and f"{self._path}/".startswith(f"{root}/"):
            return f"{self._origin}{root}{_WELL_KNOWN}"
        return f"{self._origin}{_WELL_KNOWN}{self._path}"


class ScopeHierarchy:
    """The scopes that others imply, directly or not."""

    def __init__(self, implies: Implies) -> None:
        if not callable(implies) and not isinstance(cast(object, implies), Mapping):
            raise UsageError(f"implies must be a mapping of scopes to lists of scopes, or a function, not {implies!r}")
        if not callable(implies) and any(isinstance(narrower, str) for narrower in implies.values()):
            raise UsageError('implies: the values are lists of scopes, such as {"write": ["read"]}')
        self._implied: Callable[[str], Iterable[str]] = (
            implies if callable(implies) else lambda scope: implies.get(scope, ())
        )
        self._expand = lru_cache(_EXPANDED_SCOPES)(self._close)

    def expand(self, principal: Principal) -> Principal:
        """Return the principal with the scopes that its own ones imply."""
        scopes = self._expand(principal.scopes)
        return principal if scopes is principal.scopes else msgspec.structs.replace(principal, scopes=scopes)

    def _close(self, scopes: frozenset[str]) -> frozenset[str]:
        found, open_scopes = set(scopes), [*scopes]
        while open_scopes:
            narrower = [scope for scope in self._implied(open_scopes.pop()) if scope not in found]
            found.update(narrower)
            open_scopes.extend(narrower)
        return scopes if len(found) == len(scopes) else frozenset(found)


class StaticTokens(Auth):
    """Authentication with tokens that are known when the server starts, such as one that all clients share.

    `tokens` has the principal of each token. `scopes` are those that every request needs. It is also a verifier, for an
    `Auth` that has others as well. Only keyed hashes of the
    tokens are kept. Raises `UsageError` for a token that no header can carry.
    """

    def __init__(self, tokens: Mapping[str, Principal], *, scopes: Sequence[str] = ()) -> None:
        super().__init__(self.__call__, scopes=scopes)
        self._key = secrets.token_bytes(32)
        self._principals: dict[bytes, Principal] = {}
        for number, (token, principal) in enumerate(cast("Mapping[Any, Any]", tokens).items(), 1):
            if not isinstance(token, str) or not _TOKEN.fullmatch(token):  # the errors do not show the token
                raise UsageError(f"token {number} must be a string of letters, digits and -._~+/=, and not empty")
            if not isinstance(principal, Principal):
                raise UsageError(f"token {number} needs a Principal, not {type(principal).__name__}")
            self._principals[self._hash(token)] = principal
        if not self._principals:
            raise UsageError("StaticTokens needs at least one token")

    def __repr__(self) -> str:
        """Name the subjects, without the tokens."""
        return f"StaticTokens({', '.join(sorted({each.subject for each in self._principals.values()}))})"

    def _hash(self, token: str) -> bytes:
        return blake2b(token.encode("latin-1"), key=self._key).digest()

    def __call__(self, token: str) -> Principal | None:
        """Return the principal of a token, or None."""
        # How long the search takes depends on the hash, which clients cannot predict without the key.
        return self._principals.get(self._hash(token))
