"""The hosts that `typedmcp install` knows: where each keeps its configuration, and how an entry is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from typedmcp_cli.status import CommandExit

__all__ = ["HOSTS", "Host"]

_APPLICATION_DATA: Final = {
    "darwin": ("Library", "Application Support"),
    "win32": ("AppData", "Roaming"),
    "linux": (".config",),
}
"""The folder of the settings of applications below the home directory, by platform."""


_EXTENSIONS: Final = ("Code", "User", "globalStorage")
"""The folder of the data of extensions of VS Code."""


@dataclass(frozen=True)
class Host:
    """A host that reads its servers from a JSON file."""

    title: str
    file: Sequence[str] | None
    """The path of the user's file, below the home directory, or below the folder for settings of applications.

    None if the host keeps its servers elsewhere, and takes an entry in its settings.
    """
    project_file: Sequence[str] | None = None
    """The path of the file of a project, below its folder."""
    member: str = "mcpServers"
    """The member of the file that has the servers."""
    url_member: str | None = "url"
    """The member of an entry that has the URL of a server over HTTP. None if the file cannot have one."""
    types: Mapping[str, str] | None = None
    """The values of the member `type`, by "stdio" and "http", if entries need one."""
    in_application_data: bool = False
    next_step: str = "Restart it to load the server."

    def find_file(self, home: Path, platform: str = sys.platform) -> Path:
        """Return the path of the user's file. Raises `CommandExit` if the host has none."""
        if self.file is None:
            raise CommandExit(f"{self.title} has no file; leave out --write. {self.next_step}")
        if not self.in_application_data:
            return home.joinpath(*self.file)
        if platform == "win32" and (folder := os.environ.get("APPDATA")):
            return Path(folder, *self.file)
        return home.joinpath(*_APPLICATION_DATA.get(platform, _APPLICATION_DATA["linux"]), *self.file)

    def find_project_file(self, folder: Path) -> Path:
        """Return the path of the file of a project. Raises `CommandExit` if the host has none."""
        if self.project_file is None:
            raise CommandExit(f"{self.title} has no configuration of projects; leave out --project")
        return folder.joinpath(*self.project_file)

    def make_command_entry(self, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
        """Return the entry of a server that the host starts."""
        kind = {} if self.types is None else {"type": self.types["stdio"]}
        return {**kind, "command": command[0], "args": [*command[1:]], **({"env": {**env}} if env else {})}

    def make_url_entry(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the entry of a server over HTTP. Raises `CommandExit` if the file cannot have one."""
        if self.url_member is None:
            remedy = "its file takes commands, such as typedmcp proxy URL"
            raise CommandExit(f"{self.title} takes URLs in its settings only, under Connectors; {remedy}")
        kind = {} if self.types is None else {"type": self.types["http"]}
        return {**kind, self.url_member: url, **({"headers": {**headers}} if headers else {})}


HOSTS: Final[Mapping[str, Host]] = {
    "claude-desktop": Host(
        "Claude Desktop",
        ("Claude", "claude_desktop_config.json"),
        url_member=None,
        in_application_data=True,
        next_step="Quit and start it again to load the server.",
    ),
    "claude-code": Host(
        "Claude Code",
        (".claude.json",),
        (".mcp.json",),
        types={"stdio": "stdio", "http": "http"},
        next_step="Start a new session; /mcp shows its servers.",
    ),
    "cursor": Host("Cursor", (".cursor", "mcp.json"), (".cursor", "mcp.json")),
    "vscode": Host(
        "VS Code",
        ("Code", "User", "mcp.json"),
        (".vscode", "mcp.json"),
        member="servers",
        types={"stdio": "stdio", "http": "http"},
        in_application_data=True,
        next_step="The command “MCP: List Servers” starts the server.",
    ),
    "windsurf": Host("Windsurf", (".codeium", "windsurf", "mcp_config.json"), url_member="serverUrl"),
    "cline": Host(
        "Cline",
        (*_EXTENSIONS, "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"),
        types={"stdio": "stdio", "http": "streamableHttp"},
        in_application_data=True,
        next_step="Its list of servers shows it at once.",
    ),
    "roo": Host(
        "Roo Code",
        (*_EXTENSIONS, "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json"),
        (".roo", "mcp.json"),
        types={"stdio": "stdio", "http": "streamable-http"},
        in_application_data=True,
        next_step="Its list of servers shows it at once.",
    ),
    "cherry-studio": Host(
        "Cherry Studio",
        None,
        types={"stdio": "stdio", "http": "streamableHttp"},
        next_step="Paste the entry under Settings, MCP Servers, Add, Import from JSON.",
    ),
    "inspector": Host(
        "MCP Inspector",
        (".mcp-inspector", "mcp.json"),
        types={"stdio": "stdio", "http": "streamable-http"},
        next_step="npx @modelcontextprotocol/inspector shows it.",
    ),
    "gemini-cli": Host("Gemini CLI", (".gemini", "settings.json"), (".gemini", "settings.json"), url_member="httpUrl"),
}
"""By the name that `--host` takes."""
