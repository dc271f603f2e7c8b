"""Official clients use official servers through `typedmcp proxy`: every client, transport and kind of server.

`python -m tests.docs.crossings` tries all combinations; these are some of them.
"""

from __future__ import annotations

import pytest

from tests.interop.crossing import SERVERS, limits, offering, use_server
from tests.interop.peers import Peer

pytestmark = pytest.mark.long

NEWEST = "2026-07-28"
PYTHON_1 = Peer("python 1", "2025-11-25")
PYTHON_2 = Peer("python 2", NEWEST)
TYPESCRIPT = Peer("typescript", NEWEST)

PAIRS = [
    (PYTHON_1, f"typedmcp, {NEWEST}"),
    (PYTHON_2, "everything, 2025-11-25"),
    (TYPESCRIPT, "Python 1, 2025-11-25"),
    (Peer("typescript", "2024-11-05"), f"TypeScript, {NEWEST}"),
    (PYTHON_1.over("http"), f"TypeScript, {NEWEST}"),
    (PYTHON_2.over("http"), "typedmcp, 2024-11-05"),
    (TYPESCRIPT.over("http"), "everything, 2025-11-25"),
    (Peer("typescript", "2025-06-18", "http"), f"Python 2, {NEWEST}"),
    (PYTHON_1.over("sse"), f"Python 2, {NEWEST}"),
    (Peer("python 2", "2025-11-25", "sse"), "everything, 2025-11-25"),
    (Peer("typescript", "2025-03-26", "sse"), "Python 1, 2025-11-25"),
]


@pytest.mark.parametrize(("peer", "label"), PAIRS, ids=str)
def test_a_client_uses_a_server_through_the_proxy(peer: Peer, label: str) -> None:
    server = SERVERS[label]
    with offering(server, peer.transport) as target:
        failures = {name: text for name, text in use_server(peer, server, target).items() if text is not None}
    assert [*failures] == [*limits(peer, server)], failures
