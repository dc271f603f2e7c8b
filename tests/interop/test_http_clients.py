"""Clients of all revisions use one server over HTTP at the same time, and none gets the messages of another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cases import each
from tests.interop import install
from tests.interop.peers import PEERS, SERVER, Peer, scenario
from tests.listening import listening

pytestmark = pytest.mark.long

TOGETHER = [peer for peer in PEERS if peer.transport != "stdio" and peer.client not in install.PROGRAMS]
"""Clients in compiled languages are left out: the others are as many as two cores serve within the tests' patience."""
OWN = ["about", "calls", "reads", "prompts", "completions", "asking", "logging", "errors", "rounds"]
"""The steps of the scenario in which clients do not affect each other.

Progress is left out: a busy client may get the last notification together with the response, and the TypeScript client
then reports only the response.
"""


@pytest.fixture(scope="module")
def together() -> dict[Peer, dict[str, Any]]:
    """The observations of each client."""
    with listening(SERVER) as server, ThreadPoolExecutor(len(TOGETHER)) as threads:
        running = {peer: threads.submit(scenario, peer, server.address) for peer in TOGETHER}
        return {peer: future.result() for peer, future in running.items()}


@each("peer", TOGETHER, ids=str)
def test_a_client_among_others_sees_the_same_as_alone(peer: Peer, together: dict[Peer, dict[str, Any]]) -> None:
    for step in OWN:
        assert together[peer].get(step) == peer.saw(step), step
