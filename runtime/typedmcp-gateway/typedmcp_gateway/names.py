"""The names of tools and prompts behind a gateway: prefixes, filters and other names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from glob import escape
from typing import Literal, TypeAlias

__all__ = ["Kind", "NameRules"]

Kind: TypeAlias = Literal["tools", "prompts", "resources", "methods"]


@dataclass(frozen=True)
class NameRules:
    """The names of one server at the gateway. The URIs of resources never change."""

    prefix: str = ""
    include: Sequence[str] = ("*",)
    """The own names that appear, as patterns with `*` and `?`."""
    exclude: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names, by the server's own ones. They get no prefix."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_own", {name: own for own, name in self.rename.items()})
        object.__setattr__(self, "_has_filter", bool(self.exclude) or "*" not in self.include)

    def without(self, names: Collection[str]) -> NameRules:
        """Return these rules, by which names do not appear either."""
        return replace(self, exclude=(*self.exclude, *map(escape, names))) if names else self

    def expose(self, own: str) -> str | None:
        """Return the name of something at the gateway; None if it does not appear."""
        if self.__dict__["_has_filter"] and not self._passes(own):
            return None
        return self.rename.get(own) or self.prefix + own

    def _passes(self, own: str) -> bool:
        is_included = any(fnmatchcase(own, pattern) for pattern in self.include)
        return is_included and not any(fnmatchcase(own, pattern) for pattern in self.exclude)

    def resolve(self, name: str) -> str | None:
        """Return the server's own name of something; None if it can be none of this server."""
        renamed: Mapping[str, str] = self.__dict__["_own"]
        own = renamed.get(name)
        if own is None:
            if not name.startswith(self.prefix):
                return None
            own = name[len(self.prefix) :]
        return own if self.expose(own) == name else None
