"""Upstream's own examples, in both backends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import official
from tests.cases import each
from tests.generated.backends import BACKENDS, backend, same_json

_COUNT = 129

_LOSSY: dict[tuple[str, str], str] = {
    ("exact.structs", "ListRootsRequest/list-roots-request.json"): "carries an `id`, which its type does not declare",
    ("exact.structs", "ReadResourceResultResponse/read-resource-result-response.json"): (
        "its result lacks `ttlMs` and `cacheScope`: valid only as an InputRequiredResult, which has no `contents`"
    ),
}
"""Examples that violate upstream's own schema, and are not encoded unchanged, each with the reason."""


@pytest.fixture(scope="module", autouse=True)
def _needs_upstream() -> None:
    official.folder()


def test_all_examples_are_present() -> None:
    assert len(official.examples()) == _COUNT


def test_every_known_loss_names_an_example() -> None:
    names = {f"{path.parent.name}/{path.name}" for path in official.examples()}
    assert {name for _, name in _LOSSY} <= names


@each("name", BACKENDS)
@each("path", official.examples(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_example_is_decoded_and_encoded_unchanged(path: Path, name: str) -> None:
    types = backend(official.EXAMPLES_VERSION, name)
    raw = path.read_bytes()
    same = same_json(types.encode(types.decode(raw, types.type(path.parent.name))), raw)
    known_loss = (name, f"{path.parent.name}/{path.name}") in _LOSSY
    assert same != known_loss, "an entry of _LOSSY has been mended: delete it" if known_loss else "lost something"
