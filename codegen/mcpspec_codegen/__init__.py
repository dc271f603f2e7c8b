"""Compiles the official MCP schemas into the Python package `mcpspec`. Run as `mcpspec-codegen`."""
