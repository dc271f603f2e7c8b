"""`typedmcp dev`: try a server on a page in the browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from typedmcp.errors import missing_extra
from typedmcp_cli.interrupts import run_async
from typedmcp_cli.options import ConnectionOptions, Target
from typedmcp_cli.references import parse_command, parse_reference
from typedmcp_cli.status import OK, CommandExit
from typedmcp_cli.targets import find_entry, make_connect_options

__all__ = ["dev"]


def dev(
    target: Target,
    /,
    *,
    port: Annotated[
        int, Parameter(validator=Number(gte=0, lte=65535), help="Port of the page; 0 chooses a free one.")
    ] = 0,
    keep: Annotated[
        int, Parameter(validator=Number(gte=1), help="MiB of messages and results that the page keeps.")
    ] = 32,
    reload: Annotated[
        bool,
        Parameter(help="Connect again when a *.py file in the folder of the server's file, or below, changes."),
    ] = True,
    options: ConnectionOptions = ConnectionOptions(),  # noqa: B008  # it is frozen
) -> int:
    """Serve a page for one server until Ctrl-C."""
    if find_spec("uvicorn") is None:
        raise CommandExit(missing_extra("typedmcp dev", "cli,http"))
    from typedmcp_cli.dev.inspector import Inspector, PageLimits
    from typedmcp_cli.dev.serve import serve_page

    entry = find_entry(target, options)
    folder = _watched_folder(target, options) if reload else None
    connect_options = make_connect_options(options)
    name = " ".join(command) if (command := parse_command(target)) is not None else target

    async def work() -> int:
        await serve_page(Inspector(name, entry, connect_options, PageLimits(keep << 20)), port, folder)
        return OK

    return run_async(work())


def _watched_folder(target: str, options: ConnectionOptions) -> Path | None:
    """Return the folder to watch, if the target is a Python file or module."""
    if options.config is not None or parse_command(target) is not None or "://" in target:
        return None
    reference = parse_reference(target)
    if reference is None:
        return None
    return Path(reference.source).resolve().parent if reference.is_file else Path.cwd()
