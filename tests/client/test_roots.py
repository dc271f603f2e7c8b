"""Roots: absolute `file://` URIs, checked before a server gets them."""

from __future__ import annotations

from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.test_misbehaviour import played
from tests.conformance import server
from tests.server.scripted import run
from typedmcp.client import connect
from typedmcp.client.options import to_root
from typedmcp.dialect import structs

VALID = [
    "file:///",
    "file:///home/ada",
    "FILE:///home/ada/",
    "file://localhost/home/ada",
    "file://server/share",
    "file:///C:/Users/Ada",
    "file:///a%20b/%C3%A9..txt",
    "file:///...",
    structs.Root(uri="file:///a", name="A"),
]
INVALID: dict[Any, str] = {
    "http://evil/x": "is not a file:// URI",
    "/etc": "is not a file:// URI",
    "file:/etc": "is not a file:// URI",
    "": "is not a file:// URI",
    "file://": "has no absolute path",
    "file://server": "has no absolute path",
    "file:///home/../etc": "has segments that lead out of a folder",
    "file:///home/%2e%2E/etc": "has segments that lead out of a folder",
    "file:///home/.": "has segments that lead out of a folder",
    "file:///home/..%2Fetc": "has segments that lead out of a folder",
    "file:///home/..%5Cetc": "has segments that lead out of a folder",
    "file:///a%00b": "has segments that lead out of a folder",
    "file:///a b": "has characters that must be percent-encoded",
    "file:///\u00e9": "has characters that must be percent-encoded",
    "file:///a\nb": "has characters that must be percent-encoded",
    "file:///a?b": "has characters that must be percent-encoded",
    "file:///a#b": "has characters that must be percent-encoded",
    "file:///a%2": "has characters that must be percent-encoded",
    "file:///a\\b": "has characters that must be percent-encoded",
    3: "is neither a URI nor a Root",
}


@each("root", VALID, ids=str)
def test_absolute_file_uris_are_roots(root: Any) -> None:
    assert to_root(root) == (structs.Root(uri=root) if isinstance(root, str) else root)


@each("root", INVALID, ids=repr)
def test_other_values_are_rejected_before_the_client_connects(root: Any) -> None:
    for given in (root, structs.Root(uri=root)):
        with pytest.raises(typedmcp.UsageError, match=f"^roots: .*{INVALID[root]}"):
            connect(server.Everything(), roots=[given])


def test_the_roots_of_a_callback_are_checked_for_each_request() -> None:
    roots = ["file:///a"]

    async def main() -> None:
        async with played("2025-06-18", roots=lambda: roots) as (_, script):
            script.send(id=1, method="roots/list")
            assert (await script.receive())["result"]["roots"] == [{"uri": "file:///a"}]
            roots.append("http://evil/x")
            script.send(id=2, method="roots/list")
            answer = await script.receive()
            assert answer["error"]["code"] == -32603
            assert "is not a file:// URI" in answer["error"]["message"]

    run(main)
