"""The table of docs/gateway.md with official clients and servers. `python -m tests.docs.crossings` makes it.

`tests/interop/install.py` has to install them before.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from tests.docs.gateways import PAGE
from tests.docs.markdown import replace_block
from tests.interop.crossing import CASES, CLIENTS, SERVERS, CrossedServer, limits, offering, use_server
from tests.interop.install import NODE_PACKAGES, PYTHON_PACKAGES
from tests.interop.peers import Peer

__all__ = ["Crossings", "crossing_table", "expected_crossings", "run_crossings", "use_over"]

Crossings: TypeAlias = dict[tuple[Peer, str], list[str]]
"""The cases that could not be said, by the client, which has a transport, and the label of the server."""

_PEERS: Final = [peer for peers in CLIENTS.values() for peer in peers]
_CLIENTS: Final = {"python 1": "Python 1", "python 2": "Python 2", "typescript": "TypeScript"}
_TRANSPORTS: Final = {"stdio": "stdio", "http": "HTTP", "sse": "SSE"}
_SHORT: Final = {"elicitation (form)": "form", "elicitation (URL)": "URL"}


def expected_crossings() -> Crossings:
    """Return what each official client and each server should not be able to say."""
    return {(peer, label): [*limits(peer, server)] for peer in _PEERS for label, server in SERVERS.items()}


def use_over(transport: str, server: CrossedServer) -> Crossings:
    """Let each official client use a server through the proxy, over a transport.

    A client that fails beside the limits of the revisions tries again: on a machine with much to do, requests time out.
    """
    made: Crossings = {}
    with offering(server, transport) as target:
        for peer in CLIENTS[transport]:
            for _ in range(2):
                failures = {name: text for name, text in use_server(peer, server, target).items() if text is not None}
                print(peer, "|", server, failures, flush=True)
                made[peer, server.label] = [*failures]
                if [*failures] == [*limits(peer, server)]:
                    break
    return made


def run_crossings() -> Crossings:
    """Let each official client use each server through the proxy, over each transport: 300 runs of clients."""
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(use_over, transport, server) for transport in CLIENTS for server in SERVERS.values()]
        return {key: failed for each in runs for key, failed in each.result().items()}


def crossing_table(crossings: Crossings) -> str:
    """Render the table. Transports with the same cells share a row, servers of a revision with the same a column."""
    columns: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for label, server in SERVERS.items():
        cells = tuple(_cell(peer, server, crossings[peer, label]) for peer in _PEERS)
        columns.setdefault((server.revision, cells), []).append(label)
    first = [labels[0] for labels in columns.values()]
    servers = [f"{revision}: {', '.join(map(_name, labels))}" for (revision, _), labels in columns.items()]
    heads = ["client", "over", *servers]
    made = f"\nThe cases: {', '.join(CASES)}.\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    for client in CLIENTS["stdio"]:
        rows: dict[tuple[str, ...], list[str]] = {}
        for transport, name in _TRANSPORTS.items():
            peer = client.over(transport)
            if peer in CLIENTS[transport]:
                cells = tuple(_cell(peer, SERVERS[label], crossings[peer, label]) for label in first)
                rows.setdefault(cells, []).append(name)
        for cells, names in rows.items():
            made += f"| {_CLIENTS[client.client]}, {client.revision} | {', '.join(names)} | {' | '.join(cells)} |\n"
    return f"{made}\n{_versions()}\n"


def _name(label: str) -> str:
    return label.partition(",")[0]


def _cell(peer: Peer, server: CrossedServer, failed: Iterable[str]) -> str:
    """Return the text of a cell: what could not be said, and whose revision lacks it."""
    lacking = limits(peer, server)
    by_side: dict[str, list[str]] = {}
    for case in failed:
        by_side.setdefault(lacking.get(case, "fails"), []).append(_SHORT.get(case, case))
    texts = [f"{', '.join(cases)} ({side})" for side, cases in by_side.items()]
    return f"all but {'; '.join(texts)}" if texts else "all"


def _versions() -> str:
    """Return the sentence with the versions of the packages."""
    requirements = [*PYTHON_PACKAGES["py1"], *PYTHON_PACKAGES["py2"]]
    python = [each.removeprefix("mcp==") for each in requirements if each.startswith("mcp==")]
    npm = {name: version for name, _, version in (each.rpartition("@") for each in NODE_PACKAGES["node"])}
    names = [f"@modelcontextprotocol/{name}" for name in ("client", "server", "node", "server-everything")]
    return f"Versions: `mcp` {' and '.join(python)}; {', '.join(f'`{name}` {npm[name]}' for name in names)}."


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(text, "crossings", crossing_table(run_crossings())), encoding="utf-8")
