"""`typedmcp replay`: answer a client from a recording, or compare a server with it."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from cyclopts import Parameter

from typedmcp import Client, ConnectOptions, serve
from typedmcp.building import visible
from typedmcp.revisions.features import SUPPORTED
from typedmcp_cli.interrupts import run_async
from typedmcp_cli.options import ConnectionOptions
from typedmcp_cli.output import print_json, print_text
from typedmcp_cli.recording.reader import Recording, read_recording
from typedmcp_cli.references import parse_command
from typedmcp_cli.replay import ReplayDifference, ReplayHandler, compare_with_server, replay_server
from typedmcp_cli.status import FAILED, OK, CommandExit, print_error
from typedmcp_cli.targets import find_entry, make_connect_options

__all__ = ["replay"]

_DEFAULTS = ConnectionOptions()


def replay(
    file: Annotated[str, Parameter(name="FILE", help="A recording.")],
    target: Annotated[
        str, Parameter(name="TARGET", help="A server to compare with the recording; without it, clients are served.")
    ] = "",
    /,
    *,
    ignore: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A member of results that may differ. Can be repeated."),
    ] = (),
    json: Annotated[
        bool, Parameter(negative=(), show_default=False, help="With TARGET: print one JSON document.")
    ] = False,
    transport: Annotated[Literal["stdio", "http"], Parameter(help="Without TARGET: how to serve clients.")] = "stdio",
    port: Annotated[int | None, Parameter(help="With --transport http: the port.")] = None,
    options: ConnectionOptions = _DEFAULTS,
) -> int:
    """Serve a recording to a client; with TARGET, send its requests to a server and compare the responses."""
    if parse_command(file) is not None:  # `place_command` puts a command before FILE
        file, target = target, file
    if not file:
        raise CommandExit("replay needs FILE, a recording, before the server")
    if target:
        return run_async(_compare(read_recording(file), target, ignore, options, as_json=json))
    if ignore or json:
        raise CommandExit("--ignore and --json compare a server with the recording; name the server after FILE")
    revisions = SUPPORTED if options.revision is None else [options.revision]
    config = replay_server(file, revisions=revisions)
    for method, count in cast(ReplayHandler, config.handler).recording.skipped.items():
        print_error(f"not replayed: {count} × {visible(method)}, which belongs to no request", "note")
    serve(config, transport, port=port)
    return OK


async def _compare(
    recording: Recording, target: str, ignore: tuple[str, ...], options: ConnectionOptions, *, as_json: bool
) -> int:
    entry = find_entry(target, options)

    def connect(answers: ConnectOptions) -> Client:
        merged: ConnectOptions = {**make_connect_options(options), **answers}
        return entry.connect(**merged)

    count, differences = 0, list[ReplayDifference]()
    async for exchange, found in compare_with_server(recording, connect, ignore=ignore):
        count += 1
        differences += found
        if not as_json:
            print_text(f"{'~' if found else '='} {visible(str(exchange))}")
            for each in found:
                print_text(f"    {visible(f'{each.path}: {each.recorded} => {each.received}')}")
    if as_json:
        print_json({"file": recording.file, "requests": count, "differences": [vars(each) for each in differences]})
    else:
        changed = len({each.line for each in differences})
        print_text(f"{count} request{'' if count == 1 else 's'}, {changed or 'none'} with another response")
    return FAILED if differences else OK
