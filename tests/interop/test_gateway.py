"""Official clients use official servers through `typedmcp proxy`."""

from __future__ import annotations

import pytest

from tests.interop.crossing import CLIENTS, SERVERS, CrossedServer, limits, offering, use_server
from tests.interop.peers import Peer
from tests.pairs import pairs

pytestmark = pytest.mark.long

CROSSINGS = pairs(
    [(peer, server) for peers in CLIENTS.values() for peer in peers for server in SERVERS.values()],
    lambda row: (row[0].client, row[0].revision, row[0].transport, row[1].kind, row[1].revision),
)


@pytest.mark.parametrize(("peer", "server"), CROSSINGS, ids=str)
def test_a_client_uses_a_server_through_the_proxy(peer: Peer, server: CrossedServer) -> None:
    with offering(server, peer.transport) as target:
        failures = {name: text for name, text in use_server(peer, server, target).items() if text is not None}
    assert [*failures] == [*limits(peer, server)], failures
