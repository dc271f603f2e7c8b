"""Server configurations of desktop hosts: a JSON file with the command or the URL of each server.

```json
{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files-server", "${HOME}"]},
                "wiki": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}
```

VS Code uses `servers` instead, and allows comments and trailing commas. In every string `${NAME}` and `${env:NAME}` are
replaced by a variable of the environment, and `${NAME:-text}` by the text if the variable is unset or empty. A `~` at
the beginning of `command`, `cwd` or an argument is the home directory.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, Unpack, cast

import msgspec

from typedmcp import Client, ConnectOptions, Diagnostic, DiagnosticKind, StdioServerParameters, connect
from typedmcp.building import is_array, is_object
from typedmcp.client import URL_OPTIONS, Target, describe_target, is_url
from typedmcp.errors import UsageError, missing_extra
from typedmcp_hosts.hiding import HiddenValues
from typedmcp_schemas import convert

__all__ = ["Config", "ServerEntry", "load_config", "load_entries", "read_config"]

Config: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""The path of a file, or its content. For `connect_all` also a mapping of names to entries or targets."""

_log = logging.getLogger("typedmcp")

_SERVER_MEMBERS: Final = ("mcpServers", "servers")
"""The member of a configuration that holds the servers, in most hosts and in VS Code."""
_TRANSPORT_MEMBERS: Final = {
    "stdio": "command",
    "http": "url",
    "streamable-http": "url",
    "streamable_http": "url",
    "streamableHttp": "url",
    "sse": "url",
}
"""The values of `type` and `transport`, each with the member that it needs."""
_URL_MEMBERS: Final = ("url", "headers", "auth")
_COMMAND_MEMBERS: Final = ("command", "args", "env", "cwd")
_OTHER_MEMBERS: Final = ("type", "transport", "disabled", "disabledTools")
_OF_HOSTS: Final = frozenset(
    ("name", "description", "alwaysAllow", "autoApprove", "disabledAutoApproveTools", "timeout", "watchPaths")
)
"""Members about the host itself, such as what it asks its user, or how long it waits, in a unit of its own."""
_SPELLINGS: Final = {"httpUrl": "url", "serverUrl": "url", "baseUrl": "url", "excludeTools": "disabledTools"}
"""Names of members in other hosts."""
_ENABLED: Final = ("enabled", "isActive")
"""Members that say the opposite of `disabled`."""
_OWN_OF_HOSTS: Final = frozenset(("baseUrl", "isActive", "excludeTools"))
"""Spellings that only hosts write, which is nothing to report."""

_ADDRESS = re.compile(r"[A-Za-z]+:")
_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_NAME = re.compile(r"(?:env:)?(?P<name>[^\s{}:$]+)(?::-(?P<default>[^{}]*))?\Z")
_STRING = r'"(?:[^"\\]|\\.)*+"?'
_OPEN_COMMENT = r"/\*(?:[^*]|\*(?!/))*+\Z"
"""A string or comment that does not end is read once, and stays, so that the file is not valid JSON."""
_COMMENT = re.compile(rf"({_STRING}|{_OPEN_COMMENT})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING}|[\[{{,:]\s*,)|,(?=\s*[\]}}])", re.DOTALL)
"""Strings and commas without a value before them, which stay, or a comma after the last value."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of a configuration."""

    name: str
    target: Target = field(repr=False)  # may hold secrets
    """A target of `connect`. None if there is a `problem`."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The headers of every request to a URL."""
    disabled: bool = False
    problem: str | None = None
    """Why no connection is possible, such as a variable that is not set."""
    sse: bool = False
    """True if the entry says that the URL speaks HTTP with SSE."""
    oauth: bool = False
    """True if the entry says that a person signs in (`"auth": "oauth"`). The tokens are kept in files."""
    disabled_tools: frozenset[str] = frozenset()
    """The tools that the entry switches off (`disabledTools`). Groups and gateways neither list nor call them."""
    inserted: frozenset[str] = field(default=frozenset(), repr=False)
    """The values of variables in the entry, which no error and no diagnostic shows."""

    def connect(self, **options: Unpack[ConnectOptions]) -> Client:
        """Return a client of the server. The option `headers` is added to the entry's own headers.

        Raises `UsageError` if the entry has a `problem`.
        """
        if self.problem is not None:
            raise UsageError(self.problem)
        hidden = HiddenValues(self.inserted)
        if hidden:
            options = hidden.hide_in_options(options)
        if self.headers:
            options["headers"] = _merge_headers(self.headers, options.get("headers"))
        if self.sse:
            options.setdefault("sse", True)
        if self.oauth and "auth" not in options:
            try:
                from typedmcp_auth import FileStorage, OAuth  # loaded where it is used
            except ImportError as error:
                raise UsageError(missing_extra('"auth": "oauth"', "auth")) from error
            options["auth"] = OAuth(storage=FileStorage())
        try:
            return connect(self.target, **options)
        except UsageError as error:
            raise hidden.hide_in_error(error) from None

    def describe(self) -> str:
        """Return the target as text for messages: its address or command, without the values of variables."""
        return HiddenValues(self.inserted).hide(describe_target(self.target))

    def select_options(self, options: ConnectOptions) -> ConnectOptions:
        """Return the options that apply to this server. Its own headers and credentials take precedence."""
        selected: dict[str, Any] = {**options}
        if not is_url(self.target):
            for name in URL_OPTIONS:
                selected.pop(name, None)
        if "headers" in selected:
            selected["headers"] = _merge_headers(selected["headers"], self.headers)
        if self.oauth or any(name.lower() == "authorization" for name in self.headers):
            selected.pop("auth", None)
        return cast("ConnectOptions", selected)


def _merge_headers(*headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return all headers, in lower case. The last value of a name wins."""
    return {name.lower(): value for some in headers for name, value in (some or {}).items()}


def load_config(
    config: Config,
    *,
    variables: Mapping[str, str] | None = None,
    on_diagnostic: Callable[[Diagnostic], object] | None = None,
) -> dict[str, ServerEntry]:
    """Return the servers of a configuration by name, in order.

    `config` is the path of a file, or a mapping with `mcpServers` or `servers`. `variables` replace those of the
    environment. An entry that is not valid has a `problem`, with file, server and member, as has one with a variable
    that is not set. Unknown members and other spellings are reported to `on_diagnostic`, or logged without it. Raises
    `UsageError` for a file that has no servers.
    """
    place, content = (
        ("configuration", config) if isinstance(config, Mapping) else (os.fspath(config), read_config(config))
    )
    if not isinstance(content, Mapping):
        raise UsageError(f"{place}: expected an object, got {type(content).__name__}")
    member = next((name for name in _SERVER_MEMBERS if name in content), None)
    if member is None:
        raise UsageError(f"{place}: expected a member {' or '.join(_SERVER_MEMBERS)}, found neither")
    servers = cast("Mapping[str, Any]", content)[member]
    if not isinstance(servers, Mapping):
        raise UsageError(f"{place}: {member}: expected an object, got {type(servers).__name__}")
    reader = _EntryReader(place, os.environ if variables is None else variables, on_diagnostic)
    return {name: reader.read(name, members) for name, members in cast("Mapping[str, Any]", servers).items()}


def load_entries(config: Config, on_diagnostic: Callable[[Diagnostic], object] | None = None) -> dict[str, ServerEntry]:
    """Return the servers of a configuration, or of a mapping of names to entries, to their members, or to targets."""
    if not isinstance(config, Mapping) or any(isinstance(config.get(name), Mapping) for name in _SERVER_MEMBERS):
        return load_config(config, on_diagnostic=on_diagnostic)
    reader = _EntryReader("configuration", os.environ, on_diagnostic)
    return {name: _to_entry(name, value, reader) for name, value in config.items()}


def _to_entry(name: str, value: Any, reader: _EntryReader) -> ServerEntry:
    if isinstance(value, ServerEntry):
        return value
    return reader.read(name, value) if isinstance(value, Mapping) else ServerEntry(name, value)


# Files


def read_config(path: str | os.PathLike[str]) -> Any:
    """Return the content of a configuration, which may have comments and trailing commas. Raises `UsageError`."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a user whose folder is not known
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{os.fspath(path)}: {reason}") from error
    for pattern in (_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(_blank, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{os.fspath(path)}: not valid JSON: {error}") from error


def _blank(match: re.Match[str]) -> str:
    """Replace anything but a string with blanks, so that lines and columns stay the same."""
    return match[1] or re.sub(r"[^\n]", " ", match[0])


# Servers


class _EntryMembers(msgspec.Struct):
    """The members of an entry. Null is the same as absent."""

    command: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    auth: Literal["oauth"] | None = None
    type: str | None = None
    transport: str | None = None
    disabled: bool | None = None
    disabled_tools: list[str] | None = msgspec.field(name="disabledTools", default=None)


@dataclass(frozen=True)
class _EntryReader:
    """Reads the entries of a configuration. `place` names it in errors."""

    place: str
    variables: Mapping[str, str]
    on_diagnostic: Callable[[Diagnostic], object] | None

    def read(self, name: str, value: Any) -> ServerEntry:
        """Return the entry of a server. One that is not valid has a `problem`, and the others can be used."""
        place = f"{self.place}: server {name!r}"
        value = self._normalized(place, value) if is_object(value) else value
        try:
            return self._read(name, value, place)
        except ValueError as error:
            from typedmcp_schemas import explain  # few programs have faults in their files

            return ServerEntry(name, None, problem=f"{place}: {explain(error)}")
        except UsageError as error:
            return ServerEntry(name, None, problem=str(error))

    def _normalized(self, place: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of an entry as this library writes them."""
        members = {_SPELLINGS.get(name, name): member for name, member in value.items()}
        changed = [name for name in value if name in _SPELLINGS and name not in _OWN_OF_HOSTS]
        for name in _ENABLED:
            if isinstance(enabled := members.get(name), bool):
                changed += [name] if name not in _OWN_OF_HOSTS else []
                del members[name]
                members.setdefault("disabled", not enabled)
        if members.get("command") and members.get("url") == "":  # a form whose field is empty
            del members["url"]
        env: Any = members.get("env")
        if is_object(env) and (numbers := [name for name, each in env.items() if type(each) in (int, float, bool)]):
            changed += [f"env.{name}" for name in numbers]
            members["env"] = {name: json.dumps(each) if name in numbers else each for name, each in env.items()}
        for name in changed:
            self._report(
                f"{place}: {name}: understood, though most hosts write it otherwise", None, DiagnosticKind.TOLERATED
            )
        return members

    def _read(self, name: str, value: Any, place: str) -> ServerEntry:
        members = convert(value, _EntryMembers)
        kind = self._kind(members, place)
        known = {*(_URL_MEMBERS if kind == "url" else _COMMAND_MEMBERS), *_OTHER_MEMBERS, *_OF_HOSTS}
        for member in value:
            if member not in known:
                self._report(f"{place}: {member}: unknown for a server with a {kind}", value[member])
        disabled, off = bool(members.disabled), frozenset(members.disabled_tools or ())
        try:
            inserted: set[str] = set()
            expanded = msgspec.structs.replace(members, **self._expand(members, inserted))
        except _VariableError as error:
            return ServerEntry(name, None, disabled=disabled, problem=f"{place}: {error}")
        if kind == "url":
            if not _ADDRESS.match(expanded.url or ""):
                text = f"{place}: url: expected https://host/path, got {members.url!r}"
                return ServerEntry(name, None, disabled=disabled, problem=text)
            is_sse = "sse" in (members.type, members.transport)
            headers: dict[str, str] = expanded.headers or {}
            is_oauth = members.auth is not None
            return ServerEntry(
                name, expanded.url, headers, disabled,
                sse=is_sse, oauth=is_oauth, inserted=frozenset(inserted), disabled_tools=off,
            )  # fmt: skip
        parameters = _to_parameters(expanded)
        return ServerEntry(name, parameters, {}, disabled, inserted=frozenset(inserted), disabled_tools=off)

    def _kind(self, members: _EntryMembers, place: str) -> str:
        """Return the member that locates the server: "command" or "url"."""
        kinds = [kind for kind in ("command", "url") if getattr(members, kind) is not None]
        if len(kinds) != 1:
            raise UsageError(f"{place}: expected command or url, found {'both' if kinds else 'neither'}")
        for member in ("type", "transport"):
            value = getattr(members, member)
            if value is not None and value not in _TRANSPORT_MEMBERS:
                raise UsageError(f"{place}: {member}: unknown value {value!r}; known: {', '.join(_TRANSPORT_MEMBERS)}")
            if value is not None and _TRANSPORT_MEMBERS[value] != kinds[0]:
                needed = _TRANSPORT_MEMBERS[value]
                raise UsageError(f"{place}: {member}: {value!r} needs a {needed}, but the server has a {kinds[0]}")
        return kinds[0]

    def _expand(self, members: _EntryMembers, inserted: set[str]) -> dict[str, Any]:
        """Return the members with variables replaced, and add the values of these to `inserted`."""
        expanded: dict[str, Any] = {}
        for member, value in msgspec.structs.asdict(members).items():
            try:
                expanded[member] = _expand(value, self.variables, inserted)
            except _VariableError as error:
                raise _VariableError(f"{member}: {error}") from None
        return expanded

    def _report(self, text: str, value: Any, kind: DiagnosticKind = DiagnosticKind.INVALID_DATA) -> None:
        if self.on_diagnostic is None:
            _log.warning("%s", text)
        else:
            self.on_diagnostic(Diagnostic(kind, text, params=value))


def _to_parameters(members: _EntryMembers) -> StdioServerParameters:
    args = [os.path.expanduser(text) for text in members.args or ()]
    cwd = os.path.expanduser(members.cwd) if members.cwd else None
    return StdioServerParameters(
        os.path.expanduser(members.command or ""), args or (), env=members.env or None, cwd=cwd
    )


# Variables


class _VariableError(ValueError):
    """A string refers to a variable that is not set, or in an invalid way."""


def _expand(value: Any, variables: Mapping[str, str], inserted: set[str]) -> Any:
    """Return a value with the variables in its strings replaced. Values of variables are not expanded again."""
    if isinstance(value, str):

        def insert(match: re.Match[str]) -> str:
            inserted.add(text := _value(match, variables))
            return text

        return _VARIABLE.sub(insert, value)
    if is_array(value):
        return [_expand(item, variables, inserted) for item in value]
    if is_object(value):
        return {name: _expand(item, variables, inserted) for name, item in value.items()}
    return value


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str:
    reference = _NAME.match(match[1]) if match[0].endswith("}") else None
    if reference is None:
        text = f"invalid variable {match[0]}"
        raise _VariableError(f"{text}; expected ${{NAME}}, ${{NAME:-text}} or ${{env:NAME}}")
    value, default = variables.get(reference["name"]), reference["default"]
    if default is not None:
        return value or default
    if value is None:
        raise _VariableError(f"the variable {reference['name']} is not set")
    return value
