"""The revisions that the tests of the runtime speak.

There is one modern revision among them: the dialect, or the older one that `TYPEDMCP_TEST_REVISION` names. So the same
tests show that peers of older revisions are served as before when the dialect has moved to a later revision.
"""

from __future__ import annotations

import os
from typing import Final

from typedmcp.revisions.features import DIALECT, LEGACY

__all__ = ["LEGACY", "MODERN_REVISION", "SUPPORTED"]

MODERN_REVISION: Final = os.environ.get("TYPEDMCP_TEST_REVISION", DIALECT)
"""The modern revision that the tests speak."""

SUPPORTED: Final = (MODERN_REVISION, *LEGACY)
"""The revisions that the tests speak, newest first."""
