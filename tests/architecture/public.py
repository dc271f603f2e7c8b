"""The public modules: what stands in their `__all__` is for everyone, and satellites import nothing else."""

from __future__ import annotations

from tools.dist import SATELLITES

__all__ = ["PUBLIC", "SCHEMAS"]

PUBLIC = (
    "typedmcp",
    "typedmcp.app",
    "typedmcp.app.templates",
    "typedmcp.auth",
    "typedmcp.building",
    "typedmcp.client",
    "typedmcp.client.results.decoder",
    "typedmcp.dialect.handlers",
    "typedmcp.dialect.methods",
    "typedmcp.dialect.models",
    "typedmcp.dialect.structs",
    "typedmcp.errors",
    "typedmcp.extensions",
    "typedmcp.frames",
    "typedmcp.limits",
    "typedmcp.observers",
    "typedmcp.protocol.framing",
    "typedmcp.protocol.pending",
    "typedmcp.revisions.features",
    "typedmcp.revisions.input_requests",
    "typedmcp.server.http.asgi",
    "typedmcp.services",
    "typedmcp.stores",
    "typedmcp.sync",
    "typedmcp.transports",
    "typedmcp.transports.process",
    "typedmcp.transports.stdio",
    "typedmcp.types",
    *(satellite.package.name for satellite in SATELLITES),
    "typedmcp_extensions.apps",
    "typedmcp_extensions.tasks",
    "typedmcp_hosts.sync",
)

SCHEMAS = (
    "typedmcp_schemas",
    "typedmcp_schemas.annotations",
    "typedmcp_schemas.flat",
    "typedmcp_schemas.hosts",
    "typedmcp_schemas.integers",
    "typedmcp_schemas.keywords",
    "typedmcp_schemas.lazy",
    "typedmcp_schemas.nesting",
    "typedmcp_schemas.signatures",
    "typedmcp_schemas.validate",
    "typedmcp_schemas.value_parts",
)
"""The modules of `typedmcp_schemas` from which the core and satellites import."""
