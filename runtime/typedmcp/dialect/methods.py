"""The methods of the dialect, plain."""

from mcpspec.v2026_07_28.plain.methods import *
