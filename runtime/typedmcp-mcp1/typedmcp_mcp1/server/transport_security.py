"""The hosts and origins of requests over HTTP, under the names of `mcp.server.transport_security`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field

__all__ = ["TransportSecuritySettings"]


class TransportSecuritySettings(BaseModel):
    """The hosts and the origins that are accepted. `name:*` is a host with any port."""

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: list[str] = Field(default_factory=list)
    allowed_origins: list[str] = Field(default_factory=list)

    @classmethod
    def local(cls) -> TransportSecuritySettings:
        """Return the settings that accept the hosts of the loopback interface."""
        return cls(allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"])

    @classmethod
    def open(cls) -> TransportSecuritySettings:
        """Return the settings that accept all hosts."""
        return cls(enable_dns_rebinding_protection=False)

    def allowed(self) -> Any:
        """Return the options of `typedmcp.asgi` for these settings."""
        if not self.enable_dns_rebinding_protection:
            return {"hosts": ["*"], "origins": ["*"]}
        return {"hosts": _names(self.allowed_hosts), "origins": [*self._origins()]}

    def _origins(self) -> Iterable[str]:
        # An origin with any port is that of a host: those of accepted hosts are accepted by themselves.
        return (each for each in self.allowed_origins if not each.endswith(":*"))


def _names(hosts: Iterable[str]) -> list[str]:
    return [each.removesuffix(":*") for each in hosts]
