"""Resources: data that clients read by a URI, or by a URI that matches a template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, get_origin

from msgspec.structs import replace

from mcpspec.support.objects import is_array
from typedmcp import dialect
from typedmcp.app.calls import call_with_texts
from typedmcp.app.content import BYTES_TYPES, MediaFile, encode_base64, encode_text, file_contents, to_everyday
from typedmcp.app.functions import read_signature
from typedmcp.app.options import ResourceOptions, convert_metadata
from typedmcp.app.templates import UriTemplate, normalize_uri
from typedmcp.errors import ResourceNotFoundError, UsageError
from typedmcp.protocol.backends import check_struct
from typedmcp.server.principal import check_scopes
from typedmcp_schemas.signatures import Signature, SignatureError, name_of

if TYPE_CHECKING:
    from typedmcp.server.context import Context

__all__ = ["Contents", "Resource"]

D = dialect.structs

Contents: TypeAlias = D.TextResourceContents | D.BlobResourceContents

_MEDIA_TYPES: Final[Mapping[type, str]] = {
    str: "text/plain", dict: "application/json", **dict.fromkeys(BYTES_TYPES, "application/octet-stream"),
}  # fmt: skip
"""Media types of contents by the type of what a function returns."""
_CONTENTS_NAMES = frozenset({"TextResourceContents", "BlobResourceContents"})
_RESULT_NAMES = _CONTENTS_NAMES | {"ReadResourceResult", "InputRequiredResult"}

# Patterns are compiled on first use: a server without resources starts faster.
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_NOT_OF_URIS = r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]|%(?![0-9A-Fa-f]{2})"
"""Characters that no URI has, https://datatracker.ietf.org/doc/html/rfc3986#section-2"""
_DRIVE = r"[A-Za-z]:"


class Resource:
    """A function registered as a resource, or as a resource template if its URI has variables.

    Raises `UsageError` for a function that does not fit its URI.
    """

    def __init__(self, function: Callable[..., Any], uri: str, **options: Unpack[ResourceOptions]) -> None:
        if not re.match(_SCHEME, uri):
            raise UsageError(f"resource {uri!r}: a URI begins with a scheme, such as data://{uri}")
        what = f"resource {uri!r}"
        self.uri: str = uri
        self.name: str = options.get("name") or name_of(function)
        self.scopes: tuple[str, ...] = check_scopes(f"{what}: scopes", options.get("scopes", ()))
        """The scopes that reading needs."""
        self.mime_type: str | None = options.get("mime_type")
        self.signature: Signature = read_signature(function, what)
        self.normal_uri: str = normalize_uri(uri)
        self.template: UriTemplate | None = UriTemplate(self.normal_uri) if "{" in uri or "}" in uri else None
        self._check_parameters(f"{what}: {name_of(function)}()")
        if (wrong := re.search(_NOT_OF_URIS, re.sub(r"\{[^{}]*\}", "", uri))) is not None:
            from urllib.parse import quote

            raise UsageError(f"{what}: a URI cannot have {wrong[0]!r}; percent-encode it: {quote(wrong[0])}")
        self._thread, self._safe = options.get("thread", True), options.get("safe", True)
        description = options.get("description")
        metadata = convert_metadata(
            what,
            title=options.get("title"),
            description=(self.signature.docstring.text if description is None else description) or None,
            mime_type=self.mime_type or _media_type_of(self.signature),
            icons=options.get("icons"),
            meta=options.get("meta"),
            size=options.get("size") if self.template is None else None,
            annotations=options.get("annotations"),
        )
        self.spec: D.Resource | D.ResourceTemplate = (
            D.Resource(name=self.name, uri=uri, **metadata)
            if self.template is None
            else D.ResourceTemplate(name=self.name, uri_template=uri, **metadata)
        )
        """The resource, or the template, in lists."""

    def _check_parameters(self, where: str) -> None:
        """Check that the function's parameters match the variables of the URI."""
        named = set(self.template.names) if self.template is not None else set[str]()
        optional = set(self.template.optional) if self.template is not None else set[str]()
        for parameter in self.signature.parameters:
            if parameter.required and parameter.wire not in named:
                known = f"its variables are {', '.join(sorted(named))}" if named else "it has none"
                raise UsageError(f"{where}, parameter {parameter.name!r}: the URI has no such variable; {known}")
            if parameter.required and parameter.wire in optional:
                raise UsageError(f"{where}, parameter {parameter.name!r}: needs a default, as a URI may omit it")
        missing = named - {parameter.wire for parameter in self.signature.parameters}
        if missing and not self.signature.takes_rest:
            raise UsageError(f"{where}: needs a parameter for the variable {min(missing)!r} of the URI")

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values in a normal URI that matches the template; None if it does not match, or is unsafe."""
        values = None if self.template is None else self.template.match(uri)
        if values is not None and self._safe and not all(map(_is_safe_path, values.values())):
            return None
        return values

    async def read(
        self, uri: str, values: Mapping[str, str], ctx: Context
    ) -> D.ReadResourceResult | D.InputRequiredResult:
        """Read the resource.

        Raises `InsufficientScopeError` if the access token lacks scopes, `InvalidParamsError` for values that do not
        fit the function's types, and `ResourceNotFoundError` if the file that the function returned does not exist.
        """
        ctx.require_scopes(*self.scopes)
        make = partial(_to_result, uri=uri, mime_type=self.mime_type)
        made = await call_with_texts(self.signature, values, ctx, make, uri, thread=self._thread)
        if self.scopes and isinstance(made, D.ReadResourceResult):
            return replace(made, cache_scope="private")  # a shared cache would give it to clients without the scopes
        return made


def _is_safe_path(value: str) -> bool:
    """Return whether a value is text that, used as a path, stays below the folder that it is joined to."""
    if "\0" in value or "\ufffd" in value or value.startswith(("/", "\\")) or re.match(_DRIVE, value):
        return False
    return ".." not in re.split(r"[/\\]", value)


# Contents


def _media_type_of(signature: Signature) -> str | None:
    """Return the media type of contents by the return annotation, or None where only the value tells."""
    with suppress(SignatureError):  # an unknown name in it
        hint = signature.return_hint
        kind = get_origin(hint) or hint
        return _MEDIA_TYPES.get(kind) if isinstance(kind, type) else None
    return None


def _to_result(value: object, uri: str, mime_type: str | None) -> D.ReadResourceResult | D.InputRequiredResult:
    """Convert the return value of a function: a result, a string, bytes, data as JSON, or a list of contents."""
    value = to_everyday(value, _RESULT_NAMES)
    if isinstance(value, D.ReadResourceResult | D.InputRequiredResult):
        return check_struct(value)
    if is_array(value):
        value = [to_everyday(item, _CONTENTS_NAMES) for item in value]
        if value and all(isinstance(item, Contents) for item in value):
            return check_struct(D.ReadResourceResult(contents=value))
    contents = check_struct(value) if isinstance(value, Contents) else _to_one_contents(value, uri, mime_type)
    return D.ReadResourceResult(contents=[contents])


def _to_one_contents(value: Any, uri: str, mime_type: str | None) -> Contents:
    if isinstance(value, MediaFile):
        try:
            data = value.read()
        except FileNotFoundError as error:  # of the function itself it may mean anything, and is an internal error
            raise ResourceNotFoundError(uri) from error
        return file_contents(uri, data, mime_type or value.mime_type(data))
    if isinstance(value, BYTES_TYPES):
        blob = encode_base64(bytes(value))
        return D.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type or _MEDIA_TYPES[bytes])
    if isinstance(value, str):
        return D.TextResourceContents(uri=uri, text=value, mime_type=mime_type or _MEDIA_TYPES[str])
    text = "" if value is None else encode_text(value)
    return D.TextResourceContents(uri=uri, text=text, mime_type=mime_type or _MEDIA_TYPES[dict])
