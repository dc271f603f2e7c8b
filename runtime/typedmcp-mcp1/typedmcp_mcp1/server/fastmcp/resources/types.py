"""Resources and templates, under the names of `mcp.server.fastmcp.resources.types`."""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, Field, field_validator, model_validator

from typedmcp_mcp1 import types
from typedmcp_mcp1.server.fastmcp.context import Context
from typedmcp_mcp1.server.fastmcp.functions import Arguments, call, find_context_parameter, to_text

__all__ = [
    "BinaryResource", "DirectoryResource", "FileResource", "FunctionResource", "HttpResource", "Resource",
    "ResourceTemplate", "TextResource",
]  # fmt: skip


class Resource(BaseModel, ABC):
    """A resource, which clients read. A subclass has the content."""

    uri: types.AnyUrl
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str = "text/plain"
    icons: list[types.Icon] | None = None
    annotations: types.Annotations | None = None
    meta: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _name_by_uri(self) -> Resource:
        if not self.name:
            self.name = str(self.uri)
        return self

    @abstractmethod
    async def read(self) -> str | bytes:
        """Return the content."""

    def describe(self) -> types.Resource:
        """Return the resource as lists have it."""
        return types.Resource(
            uri=types.Uri(self.uri),
            name=self.name or "",
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            icons=self.icons,
            annotations=self.annotations,
            meta=self.meta,
        )


class TextResource(Resource):
    """A text."""

    text: str

    async def read(self) -> str:
        """Return the text."""
        return self.text


class BinaryResource(Resource):
    """Bytes."""

    data: bytes

    async def read(self) -> bytes:
        """Return the bytes."""
        return self.data


class FunctionResource(Resource):
    """A function without parameters, whose value is read: text, bytes, or what becomes JSON."""

    fn: Callable[..., Any] = Field(exclude=True)

    async def read(self) -> str | bytes:
        """Call the function."""
        try:
            return await _to_content(await call(self.fn, {}))
        except Exception as error:
            raise ValueError(f"Error reading resource {self.uri}: {error}") from error


async def _to_content(made: Any) -> str | bytes:
    if isinstance(made, Resource):
        return await made.read()
    return made if isinstance(made, bytes) else to_text(made)


class _PathResource(Resource):
    path: Path

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: Path) -> Path:
        if not path.is_absolute():
            raise ValueError("Path must be absolute")
        return path


class FileResource(_PathResource):
    """A file: bytes with `is_binary`, or if its media type is not one of text."""

    is_binary: bool = False

    async def read(self) -> str | bytes:
        """Read the file in a thread."""
        read = self.path.read_text if self._is_text else self.path.read_bytes
        return await asyncio.to_thread(read)

    @property
    def _is_text(self) -> bool:
        return not self.is_binary and self.mime_type.startswith("text/")


class DirectoryResource(_PathResource):
    """The names of the files in a folder, as JSON."""

    recursive: bool = False
    pattern: str | None = None
    mime_type: str = "application/json"

    def list_files(self) -> list[Path]:
        """List the files and folders that fit the pattern."""
        if not self.path.is_dir():
            raise NotADirectoryError(f"Not a directory: {self.path}")
        pattern = self.pattern or "*"
        return [*(self.path.rglob(pattern) if self.recursive else self.path.glob(pattern))]

    async def read(self) -> str:
        """List the files in a thread."""
        files = await asyncio.to_thread(lambda: [each for each in self.list_files() if each.is_file()])
        return json.dumps({"files": [str(each.relative_to(self.path)) for each in files]}, indent=2)


class HttpResource(Resource):
    """The document at a URL. It needs httpx."""

    url: str
    mime_type: str = "application/json"

    async def read(self) -> str:
        """Fetch the document."""
        httpx: Any = import_module("httpx")  # few servers have such a resource
        async with httpx.AsyncClient() as client:
            response = await client.get(self.url)
            response.raise_for_status()
            return str(response.text)


class ResourceTemplate:
    """A function as resources: the variables of their URIs are its parameters."""

    def __init__(self, fn: Callable[..., Any], uri_template: str, **members: Any) -> None:
        self.fn: Callable[..., Any] = fn
        self.uri_template: str = uri_template
        self.name: str = members.pop("name", None) or fn.__name__
        self.mime_type: str = members.pop("mime_type", None) or "text/plain"
        self.description: str = members.pop("description", None) or fn.__doc__ or ""
        self.meta: dict[str, Any] | None = members.pop("meta", None)
        self._members = members
        self._context = find_context_parameter(fn, Context)
        self._arguments = Arguments(fn, self.name, self._context)
        variables = set(re.findall(r"{(\w+)}", uri_template))
        parameters = {*self._arguments.signature.parameters} - {self._context}
        if variables != parameters:
            raise ValueError(f"Mismatch between URI parameters {variables} and function parameters {parameters}")
        pieces = re.split(r"{(\w+)}", uri_template)
        self._pattern = re.compile(
            "".join(f"(?P<{each}>[^/]+)" if number % 2 else re.escape(each) for number, each in enumerate(pieces))
        )

    def describe(self) -> types.ResourceTemplate:
        """Return the template as lists have it."""
        return types.ResourceTemplate(
            uri_template=self.uri_template,
            name=self.name,
            description=self.description,
            mime_type=self.mime_type,
            meta=self.meta,
            **self._members,
        )

    def matches(self, uri: str) -> dict[str, str] | None:
        """Return the variables of a URI; None for one that does not fit."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    async def call(self, variables: Mapping[str, str], context: Context[Any, Any, Any] | None) -> Any:
        """Call the function with the variables of a URI, and return what it returns."""
        values = self._arguments.convert(variables)
        if self._context is not None:
            values[self._context] = context
        return await call(self.fn, values)

    async def read(self, variables: Mapping[str, str], context: Context[Any, Any, Any] | None) -> str | bytes:
        """Return the content for the variables of a URI. Raises `ValueError` with what the function raises."""
        try:
            return await _to_content(await self.call(variables, context))
        except Exception as error:
            raise ValueError(f"Error creating resource from template: {error}") from error
