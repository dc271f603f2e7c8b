"""The methods, on Pydantic models of the dialect, plain."""

from mcpspec.v2026_07_28.plain.models_methods import *
