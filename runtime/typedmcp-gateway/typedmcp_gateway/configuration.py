"""The configuration of a gateway: that of its servers, and rules for their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from typedmcp.building import is_object
from typedmcp.errors import UsageError
from typedmcp_gateway.names import NameRules
from typedmcp_hosts import Config, read_config

__all__ = ["load_rules"]

_MEMBER: Final = "gateway"


class _RuleMembers(msgspec.Struct, forbid_unknown_fields=True):
    prefix: str | None = None
    include: list[str] | None = None
    exclude: list[str] | None = None
    rename: dict[str, str] | None = None


def load_rules(config: Config, prefixes: Mapping[str, str]) -> dict[str, NameRules]:
    """Return the rules in the member `gateway` of a configuration, by server. `prefixes` are those without rules.

    ```json
    {"mcpServers": {…}, "gateway": {"files": {"prefix": "f_", "exclude": ["delete_*"], "rename": {"ls": "list"}}}}
    ```

    Raises `UsageError`, with server and member, for rules that are not valid.
    """
    content: object = config if isinstance(config, Mapping) else read_config(config)
    given: object = content.get(_MEMBER) if is_object(content) and "mcpServers" in content else None
    if given is None:
        return {}
    if not is_object(given):
        raise UsageError(f"{_MEMBER}: expected an object with the rules of each server, got {type(given).__name__}")
    return {name: _to_rules(name, members, prefixes) for name, members in given.items()}


def _to_rules(name: str, members: object, prefixes: Mapping[str, str]) -> NameRules:
    try:
        rules = msgspec.convert(members, _RuleMembers)
    except msgspec.ValidationError as error:
        raise UsageError(f"{_MEMBER}: server {name!r}: {error}") from error
    prefix = prefixes.get(name, "") if rules.prefix is None else rules.prefix
    return NameRules(prefix, rules.include or ("*",), rules.exclude or (), rules.rename or {})
