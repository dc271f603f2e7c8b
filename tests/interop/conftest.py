"""What all tests with other implementations share."""

from __future__ import annotations

import os

import pytest

from tests.interop import peers


@pytest.fixture(scope="session", autouse=True)
def shared_observations(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let all workers of this run share the observations of clients."""
    own = tmp_path_factory.getbasetemp()
    peers.shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
