"""Interfaces and stubs of handlers of the dialect, plain."""

from mcpspec.v2026_07_28.plain.handlers import *
