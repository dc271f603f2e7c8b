"""The one revision that handlers and clients are written in: a re-export.

A newer revision only adds types to `mcpspec`; what handlers receive changes when this module does.
"""

from __future__ import annotations

from mcpspec.v2026_07_28 import handlers as handlers
from mcpspec.v2026_07_28 import methods as methods
from mcpspec.v2026_07_28 import structs as structs

__all__ = ["handlers", "methods", "structs"]
