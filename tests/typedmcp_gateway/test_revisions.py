"""Clients of every revision use servers of every revision through a gateway, in one process."""

from __future__ import annotations

import typedmcp
from tests.cases import each
from tests.helpers import run
from tests.spoken import SUPPORTED
from tests.typedmcp_gateway.cases import CASES, connect_options, run_case, unsaid
from tests.typedmcp_gateway.everyday_server import make_server
from typedmcp_gateway import Gateway


@each("server", SUPPORTED)
@each("client", SUPPORTED)
def test_everything_passes_between_a_client_and_a_server_of_any_revisions(client: str, server: str) -> None:
    async def main() -> dict[str, str | None]:
        gateway = Gateway(typedmcp.ServerConfig(make_server(), revisions=[server]))
        async with typedmcp.connect(gateway, **connect_options(client)) as caller:
            assert caller.server.instructions == "Add numbers, and ask people."
            return {name: await run_case(case, caller) for name, case in CASES.items()}

    for name, result in run(main()).items():
        expected = unsaid(name, client, server)
        if expected is None:
            assert result is None, name
        else:
            assert result is not None, name
            assert expected in result
