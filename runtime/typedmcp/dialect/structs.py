"""The types, as msgspec Structs of the dialect. Each is made when it is first used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpspec.v2026_07_28.structs import *
else:
    from mcpspec.v2026_07_28 import structs as _types

    __all__, __dir__ = _types.__all__, _types.__dir__

    def __getattr__(name: str) -> object:
        found = globals()[name] = getattr(_types, name)
        return found
