"""Servers as desktop hosts configure them: a file of JSON that names each, with its command or its URL.

```json
{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files-server", "${HOME}"]},
                "wiki": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}
```

VS Code says `servers` instead, and allows comments and commas before closing brackets. In every string `${NAME}` and
`${env:NAME}` stand for a variable of the environment, `${NAME:-text}` for the text where that is unset or empty.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec

from mcpspec._support.objects import is_array, is_object
from typedmcp.client.client import Client, connect
from typedmcp.client.targets import Target, is_url
from typedmcp.errors import UsageError
from typedmcp.jsonfaults import convert, fault
from typedmcp.peer import Kind, Report
from typedmcp.transports.process import StdioServerParameters

__all__ = ["Config", "ServerEntry", "entries_of", "load_config"]

Config: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""A file, or what stands in one; for `connect_all` also a mapping of names to entries or targets."""

_log = logging.getLogger("typedmcp")

_LISTS: Final = ("mcpServers", "servers")
"""The members of a configuration that hold its servers: of most hosts, and of VS Code."""
_TRANSPORTS: Final = {
    "stdio": "command",
    "http": "url",
    "streamable-http": "url",
    "streamableHttp": "url",
    "sse": "url",
}
"""What a server may be said to speak, each with the member that it needs."""
_OF_URLS: Final = ("url", "headers")
_OF_COMMANDS: Final = ("command", "args", "env", "cwd")
_FOR_URLS: Final = ("headers", "auth", "proxy", "tls", "reconnects")
"""Options of `connect` that other targets do not take."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_NAME = re.compile(r"(?:env:)?(?P<name>[^\s{}:$]+)(?::-(?P<default>[^{}]*))?\Z")
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])')


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of a configuration."""

    name: str
    target: Target = field(repr=False)  # which may hold secrets
    """What `connect` takes; None where there is a `problem`."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What is sent with every request to a URL."""
    disabled: bool = False
    problem: str | None = None
    """Why it cannot be connected to, such as a variable that is not set."""

    def connect(self, **options: Any) -> Client:
        """A client of it, with the options of `typedmcp.connect`; `headers` are added to its own.

        Raises `UsageError` where it has a `problem`.
        """
        if self.problem is not None:
            raise UsageError(self.problem)
        if self.headers:
            options["headers"] = _merged(self.headers, options.get("headers"))
        return connect(self.target, **options)

    def fitting(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the options for many servers that this one takes; the headers that it has go before theirs."""
        made = {name: value for name, value in options.items() if is_url(self.target) or name not in _FOR_URLS}
        if "headers" in made:
            made["headers"] = _merged(made["headers"], self.headers)
        if any(name.lower() == "authorization" for name in self.headers):
            made.pop("auth", None)
        return made


def _merged(*headers: Mapping[str, str] | None) -> dict[str, str]:
    """All of these headers; the last of a name counts, however it is written."""
    return {name.lower(): value for some in headers for name, value in (some or {}).items()}


def load_config(
    config: Config,
    *,
    variables: Mapping[str, str] | None = None,
    on_report: Callable[[Report], object] | None = None,
) -> dict[str, ServerEntry]:
    """The servers of a configuration by name, in order: of a file, or of a mapping with `mcpServers` or `servers`.

    `variables` are those that strings may refer to, without it the environment's. One that is not set is the `problem`
    of its server. Members that are unknown are told to `on_report`, without it they are logged. Raises `UsageError`,
    with the names of file, server and member, for what is missing or of a wrong type.
    """
    where, found = ("configuration", config) if isinstance(config, Mapping) else (os.fspath(config), _read(config))
    if not isinstance(found, Mapping):
        raise UsageError(f"{where}: expected an object, got {type(found).__name__}")
    listed = next((name for name in _LISTS if name in found), None)
    if listed is None:
        raise UsageError(f"{where}: it has neither {' nor '.join(_LISTS)}")
    servers = cast("Mapping[str, Any]", found)[listed]
    if not isinstance(servers, Mapping):
        raise UsageError(f"{where}: {listed}: expected an object, got {type(servers).__name__}")
    reader = _Reader(where, os.environ if variables is None else variables, on_report)
    return {name: reader.entry(name, given) for name, given in cast("Mapping[str, Any]", servers).items()}


def entries_of(config: Config, on_report: Callable[[Report], object] | None = None) -> dict[str, ServerEntry]:
    """The servers of a configuration, or of a mapping of names to entries, to their members, or to targets."""
    if not isinstance(config, Mapping) or any(isinstance(config.get(name), Mapping) for name in _LISTS):
        return load_config(config, on_report=on_report)
    reader = _Reader("configuration", os.environ, on_report)
    return {name: _entry_of(name, given, reader) for name, given in config.items()}


def _entry_of(name: str, given: Any, reader: _Reader) -> ServerEntry:
    if isinstance(given, ServerEntry):
        return given
    return reader.entry(name, given) if isinstance(given, Mapping) else ServerEntry(name, given)


# Files


def _read(path: str | os.PathLike[str]) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{os.fspath(path)}: {reason}") from error
    for needless in (_COMMENT, _LAST_COMMA):
        text = needless.sub(_blanked, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{os.fspath(path)}: {error}") from error


def _blanked(found: re.Match[str]) -> str:
    """A string as it is; anything else as blanks, which leave lines and columns what they are."""
    return found[1] or re.sub(r"[^\n]", " ", found[0])


# Servers


class _Members(msgspec.Struct):
    """What an entry may have; null is absence."""

    command: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    type: str | None = None
    transport: str | None = None
    disabled: bool | None = None


@dataclass(frozen=True)
class _Reader:
    """Makes entries of what a configuration says."""

    where: str
    variables: Mapping[str, str]
    on_report: Callable[[Report], object] | None

    def entry(self, name: str, given: Any) -> ServerEntry:
        """The entry of a server. Raises `UsageError`."""
        place = f"{self.where}: server {name!r}"
        try:
            members = convert(given, _Members)
        except ValueError as error:
            raise UsageError(f"{place}: {fault(error)}") from error
        kind = self._kind(members, place)
        meant = {*_OF_URLS} if kind == "url" else {*_OF_COMMANDS}
        for member in given:
            if member not in meant | {"type", "transport", "disabled"}:
                self._report(f"{place}: {member}: unknown for a server with a {kind}", given[member])
        disabled = bool(members.disabled)
        try:
            filled = msgspec.structs.replace(members, **self._filled(members))
        except _Unset as error:
            return ServerEntry(name, None, disabled=disabled, problem=f"{place}: {error}")
        target, headers = (filled.url, filled.headers) if kind == "url" else (_command(filled), None)
        return ServerEntry(name, target, headers or {}, disabled)

    def _kind(self, members: _Members, place: str) -> str:
        """The member that says where the server is: its command, or its URL."""
        kinds = [kind for kind in ("command", "url") if getattr(members, kind) is not None]
        if len(kinds) != 1:
            raise UsageError(f"{place}: it has {'both command and' if kinds else 'neither command nor'} url")
        for member in ("type", "transport"):
            said = getattr(members, member)
            if said is not None and said not in _TRANSPORTS:
                raise UsageError(f"{place}: {member}: {said!r} is unknown; there are {', '.join(_TRANSPORTS)}")
            if said is not None and _TRANSPORTS[said] != kinds[0]:
                raise UsageError(f"{place}: {member}: {said!r} needs a {_TRANSPORTS[said]}, and it has a {kinds[0]}")
        return kinds[0]

    def _filled(self, members: _Members) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for member, value in msgspec.structs.asdict(members).items():
            try:
                made[member] = _filled(value, self.variables)
            except _Unset as error:
                raise _Unset(f"{member}: {error}") from None
        return made

    def _report(self, text: str, value: Any) -> None:
        if self.on_report is None:
            _log.warning("%s", text)
        else:
            self.on_report(Report(Kind.PROBLEM, text, params=value))


def _command(members: _Members) -> StdioServerParameters:
    return StdioServerParameters(
        members.command or "", members.args or (), env=members.env or None, cwd=members.cwd or None
    )


# Variables


class _Unset(ValueError):  # noqa: N818
    """A string refers to what there is not."""


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    """A value with the variables in its strings replaced. What a variable holds is not looked into."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _value(found, variables), value)
    if is_array(value):
        return [_filled(item, variables) for item in value]
    return {name: _filled(item, variables) for name, item in value.items()} if is_object(value) else value


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    meant = _NAME.match(found[1]) if found[0].endswith("}") else None
    if meant is None:
        raise _Unset(f"{found[0]} is no variable: ${{NAME}}, ${{NAME:-text}} and ${{env:NAME}} are")
    value, default = variables.get(meant["name"]), meant["default"]
    if default is not None:
        return value or default
    if value is None:
        raise _Unset(f"the variable {meant['name']} is not set")
    return value
