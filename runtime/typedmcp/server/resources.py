"""Resources: what clients read by a URI, or by one that fits a template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typedmcp import dialect
from typedmcp.errors import InvalidParams, UsageError
from typedmcp.server.parts import parts_of
from typedmcp.server.results import contents
from typedmcp.server.signatures import BadArgument, Signature, name_of
from typedmcp.server.templates import UriTemplate
from typedmcp.server.tools import called

if TYPE_CHECKING:
    from typedmcp.context import Context

__all__ = ["Resource"]

D = dialect.structs

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_DRIVE = re.compile(r"[A-Za-z]:")


class Resource:
    """A function as a resource, or as a template of resources where its URI has variables.

    The options are those of `Server.resource`. Raises `UsageError` for a function that cannot be one.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: D.Annotations | Mapping[str, Any] | None = None,
        icons: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        thread: bool = True,
        safe: bool = True,
    ) -> None:
        if not _URI.match(uri):
            raise UsageError(f"resource {uri!r}: a URI begins with a scheme, such as data://{uri}")
        self.uri: str = uri
        self.name: str = name or name_of(function)
        self.mime_type: str | None = mime_type
        self.signature: Signature = Signature(function, f"resource {uri!r}")
        self.template: UriTemplate | None = UriTemplate(uri) if "{" in uri or "}" in uri else None
        self._check(function)
        self._thread, self._safe = thread, safe
        text = self.signature.described.text if description is None else description
        members = parts_of(
            f"resource {uri!r}",
            title=title, description=text or None, mime_type=mime_type, icons=icons, meta=meta,
            size=size if self.template is None else None, annotations=annotations,
        )  # fmt: skip
        self.spec: Any = (
            D.Resource(name=self.name, uri=uri, **members)
            if self.template is None
            else D.ResourceTemplate(name=self.name, uri_template=uri, **members)
        )

    def _check(self, function: Callable[..., Any]) -> None:
        """That the function takes what is in the URI, and nothing that is not."""
        named = set(self.template.names) if self.template is not None else set[str]()
        optional = set(self.template.optional) if self.template is not None else set[str]()
        where = f"resource {self.uri!r}: {name_of(function)}()"
        for parameter in self.signature.parameters:
            if parameter.required and parameter.wire not in named:
                raise UsageError(f"{where}, parameter {parameter.name!r}: the URI has no such variable")
            if parameter.required and parameter.wire in optional:
                raise UsageError(f"{where}, parameter {parameter.name!r}: needs a default, for it may be missing")
        missing = named - {parameter.wire for parameter in self.signature.parameters}
        if missing and not self.signature.takes_rest:
            raise UsageError(f"{where}: takes no {min(missing)!r}, which is in the URI")

    def match(self, uri: str) -> dict[str, str] | None:
        """The values in a URI that fits the template. None for one that does not, or is up to no good."""
        values = None if self.template is None else self.template.match(uri)
        if values is not None and self._safe and not all(map(_is_safe, values.values())):
            return None
        return values

    async def read(self, uri: str, values: Mapping[str, str], ctx: Context) -> Any:
        """What is there. Raises `InvalidParams` for values that the function does not take."""
        try:
            bound = self.signature.bind_texts(values)
        except BadArgument as error:
            raise InvalidParams(f"{uri}: {error}") from error
        value = await called(self.signature, bound, ctx, thread=self._thread)
        return contents(value, uri, self.mime_type)


def _is_safe(value: str) -> bool:
    """Whether a value, taken for a path, would stay below where it is put."""
    if "\0" in value or value.startswith(("/", "\\")) or _DRIVE.match(value):
        return False
    return ".." not in re.split(r"[/\\]", value)
