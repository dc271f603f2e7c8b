"""Interfaces and stubs of handlers, on Pydantic models of the dialect."""

from mcpspec.v2026_07_28.models_handlers import *
