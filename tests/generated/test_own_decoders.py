"""Decoders that users make of msgspec read the types, with our hook."""

from __future__ import annotations

import msgspec
import pytest

from mcpspec.support.structs import dec_hook
from mcpspec.v2026_07_28 import structs as plain
from mcpspec.v2026_07_28.exact import structs
from tests.cases import each
from tests.generated.backends import backend
from tests.generated.vectors import REVISIONS, valid_values


@each("version", REVISIONS)
@each("face", ["exact.structs", "structs"])
def test_with_the_hook_msgspec_decodes_as_our_functions_do(version: str, face: str) -> None:
    types = backend(version, face)
    compared = 0
    for vector in valid_values(version):
        kind = types.type(vector.definition)
        if face == "exact.structs" or b"null" not in vector.text:  # plain types tell null from absence only in `decode`
            assert msgspec.json.decode(vector.text, type=kind, dec_hook=dec_hook) == types.decode(vector.text, kind)
            compared += 1
    assert compared > 100


TOOL = b'{"name": "a", "inputSchema": {"type": "object"}}'


def test_without_the_hook_msgspec_names_the_type_that_it_does_not_know() -> None:
    """msgspec asks classes nothing, so that no error of ours can tell what to do."""
    with pytest.raises(msgspec.ValidationError, match=r"Expected `ToolInputSchema`, got `dict` - at `\$.inputSchema`"):
        msgspec.json.decode(TOOL, type=structs.Tool)


def test_plain_types_without_unions_need_no_hook() -> None:
    """Their JSON Schemas and metadata are plain dicts."""
    page = b'{"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": [%s], "_meta": {"a": 1}}' % TOOL
    assert msgspec.json.decode(page, type=plain.ListToolsResult) == plain.decode(page, plain.ListToolsResult)
