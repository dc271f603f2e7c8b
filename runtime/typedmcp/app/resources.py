"""Resources: data that clients read by a URI, or by a URI that matches a template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from mcpspec.support.objects import is_array
from typedmcp import dialect
from typedmcp.app.calls import call_function
from typedmcp.app.content import BYTES_TYPES, MediaFile, encode_base64, encode_text, file_contents
from typedmcp.app.options import ResourceOptions, convert_metadata
from typedmcp.app.signatures import ArgumentError, Signature, name_of
from typedmcp.app.templates import UriTemplate
from typedmcp.errors import InvalidParamsError, UsageError

if TYPE_CHECKING:
    from typedmcp.server.context import Context

__all__ = ["Contents", "Resource"]

D = dialect.structs

Contents: TypeAlias = D.TextResourceContents | D.BlobResourceContents

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_DRIVE = re.compile(r"[A-Za-z]:")


class Resource:
    """A function registered as a resource, or as a resource template if its URI has variables.

    Raises `UsageError` for a function that does not fit its URI.
    """

    def __init__(self, function: Callable[..., Any], uri: str, **options: Unpack[ResourceOptions]) -> None:
        if not _SCHEME.match(uri):
            raise UsageError(f"resource {uri!r}: a URI begins with a scheme, such as data://{uri}")
        what = f"resource {uri!r}"
        self.uri: str = uri
        self.name: str = options.get("name") or name_of(function)
        self.mime_type: str | None = options.get("mime_type")
        self.signature: Signature = Signature(function, what)
        self.template: UriTemplate | None = UriTemplate(uri) if "{" in uri or "}" in uri else None
        self._check_parameters(f"{what}: {name_of(function)}()")
        self._thread, self._safe = options.get("thread", True), options.get("safe", True)
        description = options.get("description")
        metadata = convert_metadata(
            what,
            title=options.get("title"),
            description=(self.signature.docstring.text if description is None else description) or None,
            mime_type=self.mime_type,
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
                raise UsageError(f"{where}, parameter {parameter.name!r}: the URI has no such variable")
            if parameter.required and parameter.wire in optional:
                raise UsageError(f"{where}, parameter {parameter.name!r}: needs a default, as a URI may omit it")
        missing = named - {parameter.wire for parameter in self.signature.parameters}
        if missing and not self.signature.takes_rest:
            raise UsageError(f"{where}: needs a parameter for the variable {min(missing)!r} of the URI")

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values in a URI that matches the template; None if it does not match, or is unsafe."""
        values = None if self.template is None else self.template.match(uri)
        if values is not None and self._safe and not all(map(_is_safe_path, values.values())):
            return None
        return values

    async def read(self, uri: str, values: Mapping[str, str], ctx: Context) -> list[Contents]:
        """Read the resource. Raises `InvalidParamsError` for values that do not fit the function's types."""
        try:
            bound = self.signature.bind_texts(values)
        except ArgumentError as error:
            raise InvalidParamsError(f"{uri}: {error}") from error
        value = await call_function(self.signature, bound, ctx, thread=self._thread)
        return _to_contents(value, uri, self.mime_type)


def _is_safe_path(value: str) -> bool:
    """Return whether a value, used as a path, stays below the folder that it is joined to."""
    if "\0" in value or value.startswith(("/", "\\")) or _DRIVE.match(value):
        return False
    return ".." not in re.split(r"[/\\]", value)


# Contents


def _to_contents(value: object, uri: str, mime_type: str | None) -> list[Contents]:
    """Convert the return value of a function to contents: a string, bytes, data as JSON, or a list of contents."""
    if isinstance(value, D.ReadResourceResult):
        return value.contents
    if is_array(value) and value and all(isinstance(item, Contents) for item in value):
        return value
    return [value if isinstance(value, Contents) else _to_one_contents(value, uri, mime_type)]


def _to_one_contents(value: Any, uri: str, mime_type: str | None) -> Contents:
    if isinstance(value, MediaFile):
        data = value.read()
        return file_contents(uri, data, mime_type or value.mime_type(data))
    if isinstance(value, BYTES_TYPES):
        blob = encode_base64(bytes(value))
        return D.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type or "application/octet-stream")
    if isinstance(value, str):
        return D.TextResourceContents(uri=uri, text=value, mime_type=mime_type or "text/plain")
    text = "" if value is None else encode_text(value)
    return D.TextResourceContents(uri=uri, text=text, mime_type=mime_type or "application/json")
