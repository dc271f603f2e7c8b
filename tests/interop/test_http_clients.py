"""Clients of all revisions talk to one server at the same time, over HTTP, and none gets what is another's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interop.peers import HTTP, SERVER, SSE, Peer, scenario
from tests.listening import listening

pytestmark = pytest.mark.long

PEERS = HTTP + SSE
OWN = ["about", "calls", "reads", "prompts", "completions", "asking", "logging", "errors", "rounds"]
"""The steps of the scenario in which no client changes anything for the others.

Progress is left out: a client that has no time to read may get the last of it together with the answer, and the
TypeScript one then tells only of the answer.
"""


@pytest.fixture(scope="module")
def together() -> dict[Peer, dict[str, Any]]:
    """What each client saw."""
    with listening(SERVER) as server, ThreadPoolExecutor(len(PEERS)) as threads:
        running = {peer: threads.submit(scenario, peer, server.address) for peer in PEERS}
        return {peer: future.result() for peer, future in running.items()}


@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_a_client_sees_the_same_as_if_it_were_alone(peer: Peer, together: dict[Peer, dict[str, Any]]) -> None:
    for step in OWN:
        assert together[peer].get(step) == peer.saw(step), step
