"""Resources, under the names of `mcp.server.fastmcp.resources`."""

from typedmcp_mcp1.server.fastmcp.resources.types import (
    BinaryResource,
    DirectoryResource,
    FileResource,
    FunctionResource,
    HttpResource,
    Resource,
    ResourceTemplate,
    TextResource,
)

__all__ = [
    "BinaryResource", "DirectoryResource", "FileResource", "FunctionResource", "HttpResource", "Resource",
    "ResourceTemplate", "TextResource",
]  # fmt: skip
