"""Compiles the official MCP schemas into the Python package `mcpspec`. Run as `python -m codegen`."""
