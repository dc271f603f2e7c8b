"""Discovery: the metadata of the protected resource, and of the authorization server that it names."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from typedmcp.auth import AuthRequest, AuthResponse
from typedmcp.building import visible
from typedmcp.errors import SignInError
from typedmcp_auth.challenge import Challenge
from typedmcp_auth.documents import read_document
from typedmcp_auth.urls import check_url, is_same_issuer, origin_of, resource_urls, server_urls

__all__ = [
    "Deviation",
    "Discovery",
    "NoMetadataError",
    "ServerMetadata",
    "Steps",
    "decode_document",
    "discover",
    "discover_server",
]

_JSON = {"accept": "application/json"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deviation:
    """A member or a status that a standard does not allow, though only one thing can be meant."""

    text: str


Steps: TypeAlias = Generator[AuthRequest | Deviation, AuthResponse, T]
"""A part of a flow, without I/O: it yields requests, takes their responses, and returns its outcome.

It also yields deviations, which are reported; a strict client throws `SignInError` into the generator for one.
"""


class ResourceMetadata(Struct):
    """The metadata of a protected resource.

    https://www.rfc-editor.org/rfc/rfc9728#section-2
    """

    resource: str
    authorization_servers: list[str] = []
    scopes_supported: list[str] | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    dpop_bound_access_tokens_required: bool = False


class ServerMetadata(Struct):
    """The metadata of an authorization server.

    https://www.rfc-editor.org/rfc/rfc8414#section-2
    """

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    scopes_supported: list[str] = []
    code_challenge_methods_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False
    dpop_signing_alg_values_supported: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """The outcome of discovery: the server's identifier, its scopes, and its authorization server."""

    resource: str
    scopes: tuple[str, ...]
    """All scopes that the server names as supported."""
    server: ServerMetadata
    dpop_algorithms: tuple[str, ...] | None = None
    """The algorithms of proofs (DPoP) that the server takes, empty if it names none. None: it takes no proofs."""
    requires_dpop: bool = False
    """True if the server takes no bearer tokens."""
    is_assumed: bool = False
    """True if the authorization server has no metadata, and its endpoints are those that 2025-03-26 names."""


class NoMetadataError(SignInError):
    """An authorization server has no metadata at the well-known URLs."""


D = TypeVar("D", bound=Struct)


def discover(
    server: str, challenge: Challenge | None, issuer: str | None, known: str | None = None
) -> Steps[Discovery]:
    """Find the authorization server of an MCP server.

    `issuer` is the only one to accept. Without it, `known` is taken if the MCP server names it, else the first one.
    Raises `SignInError` for metadata that are missing or not valid.
    """
    tried = list[str]()
    resource = yield from _discover_resource(server, challenge, tried)
    if resource is None:  # up to 2025-03-26 the server is its own authorization server
        return (yield from _discover_own_server(server, challenge, issuer or origin_of(server), tried))
    _check_resource(resource.resource, server)
    named = resource.authorization_servers
    if not named:
        raise SignInError("the metadata of the server name no authorization server")
    if issuer is not None and not any(is_same_issuer(issuer, one) for one in named):
        others = ", ".join([visible(one, 200) for one in named[:5]])
        raise SignInError(f"the server trusts other authorization servers than {issuer}: {others}")
    is_named = known is not None and any(is_same_issuer(known, one) for one in named)
    found = yield from discover_server(issuer or (is_named and known) or named[0], server)
    scopes = tuple(resource.scopes_supported or ())
    return Discovery(resource.resource, scopes, found, *_find_dpop(challenge, resource))


def _discover_own_server(
    server: str, challenge: Challenge | None, issuer: str, tried: Iterable[str]
) -> Steps[Discovery]:
    """Find the authorization server of an MCP server without metadata: it is one itself.

    Without metadata of its own, it has the endpoints that 2025-03-26 names.
    https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization#fallbacks-for-servers-without-metadata-discovery
    """
    is_assumed = False
    try:
        found = yield from discover_server(issuer, server, tried)
    except NoMetadataError as error:
        if not is_same_issuer(issuer, origin_of(server)):
            raise
        is_assumed = True
        yield Deviation(f"{error.args[0]}: the endpoints that 2025-03-26 names are tried")
        found = ServerMetadata(
            issuer=issuer,
            token_endpoint=f"{issuer}/token",
            authorization_endpoint=f"{issuer}/authorize",
            registration_endpoint=f"{issuer}/register",
        )
    return Discovery(_canonical(server), (), found, *_find_dpop(challenge, None), is_assumed)


def _find_dpop(challenge: Challenge | None, resource: ResourceMetadata | None) -> tuple[tuple[str, ...] | None, bool]:
    """Return the algorithms of proofs that the server takes, if it takes any, and whether it takes nothing else.

    https://www.rfc-editor.org/rfc/rfc9728#section-2
    """
    requires = challenge is not None and challenge.scheme == "dpop"
    named = challenge.parameters.get("algs") if challenge is not None else None
    algorithms = None if named is None and not requires else tuple((named or "").split())
    if resource is not None:
        requires = requires or resource.dpop_bound_access_tokens_required
        if resource.dpop_signing_alg_values_supported is not None:
            algorithms = tuple(resource.dpop_signing_alg_values_supported)
    return (() if algorithms is None and requires else algorithms), requires


def _canonical(server: str) -> str:
    return origin_of(server) + urlsplit(server).path.removesuffix("/")


def _discover_resource(server: str, challenge: Challenge | None, tried: list[str]) -> Steps[ResourceMetadata | None]:
    """Return the metadata of the first place that has any, or None if there are none.

    `tried` gets what is wrong with the other places. Raises `SignInError` if there may be metadata that nobody can get.
    """
    named = None if challenge is None else challenge.parameters.get("resource_metadata")
    urls, statuses = resource_urls(server), list[int]()
    if named is not None:
        urls = list(dict.fromkeys([check_url(named, "resource_metadata of the challenge", server), *urls]))
    for url in urls:
        try:
            response = yield AuthRequest(url, _JSON)
            statuses.append(response.status)
            if response.status == 200:
                return (yield from decode_document(response, ResourceMetadata, url))
            if url == named or response.status >= 500:
                raise SignInError(f"{url} answered {response.status}, expected the metadata of the server")
        except SignInError as error:
            tried.append(str(error))
    if named is None and len(statuses) == len(urls) and max(statuses) < 500:
        return None
    raise SignInError("; ".join(tried))


def _check_resource(resource: str, server: str) -> None:
    """Raise `SignInError` unless the server's URL is the resource, or lies below it."""
    parts = urlsplit(check_url(resource, "resource of the metadata", server))
    path = parts.path.rstrip("/")
    is_parent = urlsplit(server).path.rstrip("/") == path or urlsplit(server).path.startswith(f"{path}/")
    if origin_of(resource) != origin_of(server) or not is_parent or parts.query:
        shown = visible(resource, 200)
        raise SignInError(f"the metadata are about another resource, {shown!r}, and not about {server}")


def discover_server(issuer: str, server: str, tried: Iterable[str] = ()) -> Steps[ServerMetadata]:
    """Get the metadata of an authorization server, from the first place that has those of this issuer.

    Raises `SignInError` with what is wrong with each place. `tried` are earlier attempts that belong to that.
    """
    check_url(issuer, "the issuer", server)
    wrong = list[str]()
    for url in server_urls(issuer):
        try:
            response = yield AuthRequest(url, _JSON)
            if 300 <= response.status < 500:
                continue
            if response.status != 200:
                raise SignInError(f"{url} answered {response.status}")
            found = yield from decode_document(response, ServerMetadata, url)
            if not is_same_issuer(found.issuer, issuer):
                raise SignInError(f"{url}: the issuer is {visible(found.issuer, 200)!r}, expected {issuer!r}")
            _check_endpoints(found, server)
        except SignInError as error:
            wrong.append(str(error))
            continue
        if found.issuer != issuer:
            yield Deviation(f"{url}: the issuer is {found.issuer!r}, and {issuer!r} was expected")
        return found
    if not wrong:
        text = f"{issuer} has no metadata of an authorization server at the well-known URLs"
        raise NoMetadataError("; ".join([text, *tried]))
    raise SignInError("; ".join([*wrong, *tried]))


def _check_endpoints(found: ServerMetadata, server: str) -> None:
    for name in ("token_endpoint", "authorization_endpoint", "registration_endpoint"):
        url: str | None = getattr(found, name)
        if url is not None:
            check_url(url, f"{name} of {found.issuer}", server)


def decode_document(response: AuthResponse, kind: type[D], place: str) -> Steps[D]:
    """Decode a JSON document. Raises `SignInError` if it is not one of this kind."""
    document, deviation = read_document(response, kind, place)
    if deviation:
        yield Deviation(f"{place}: {deviation}")
    return document
