"""Interfaces and stubs of handlers of the dialect."""

from mcpspec.v2026_07_28.handlers import *
