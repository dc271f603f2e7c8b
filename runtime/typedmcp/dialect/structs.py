"""The types, as msgspec Structs of the dialect."""

from mcpspec.v2026_07_28.structs import *
