"""Rewrite imports of the official SDK's types to `mcpspec.compat`, in the source code of others."""
