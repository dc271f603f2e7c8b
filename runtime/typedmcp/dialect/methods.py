"""The methods of the dialect."""

from mcpspec.v2026_07_28.methods import *
