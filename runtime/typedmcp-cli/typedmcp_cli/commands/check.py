"""`typedmcp check`: check a server before hosts and models use it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from typedmcp import Server, ServerConfig
from typedmcp_cli.loader import find_server, get_app_config
from typedmcp_cli.output import print_json, print_text
from typedmcp_cli.status import FAILED, OK, CommandExit

__all__ = ["check"]


def check(
    file: Annotated[
        str, Parameter(name="FILE", help="server.py, server.py:object or package.module:object, with a Server.")
    ],
    /,
    *,
    strict: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Fail for warnings, too, and not only for errors.")
    ] = False,
    json: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Print one JSON document instead of lines.")
    ] = False,
) -> int:
    """Print the names, schemas and missing descriptions that hosts refuse or models stumble over."""
    _, server = find_server(file)
    server = get_app_config(server) or server
    if isinstance(server, ServerConfig):
        server = server.handler
    if not isinstance(server, Server):
        raise CommandExit(f"{file} has no typedmcp.Server to check")
    findings = server.check()
    errors = sum(finding.severity == "error" for finding in findings)
    if json:
        print_json({"file": file, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print_text(str(finding))
        print_text(f"{errors} errors, {len(findings) - errors} warnings")
    return FAILED if errors or (strict and findings) else OK
