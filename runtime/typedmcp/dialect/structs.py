"""The types, as msgspec Structs of the dialect, plain."""

from mcpspec.v2026_07_28.plain.structs import *
