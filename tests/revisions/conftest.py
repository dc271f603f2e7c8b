"""The later revision, compiled once for all tests of a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.revisions import later


@pytest.fixture(scope="session")
def later_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with types that include the later revision, and a runtime whose dialect it is."""
    return later.build(tmp_path_factory.mktemp("later"))


@pytest.fixture(scope="session")
def environment(later_folder: Path) -> dict[str, str]:
    """Return the environment of a process in which the later revision is the dialect."""
    return later.environment_of(later_folder)
