"""The types, as Pydantic models of the dialect."""

from mcpspec.v2026_07_28.models import *
