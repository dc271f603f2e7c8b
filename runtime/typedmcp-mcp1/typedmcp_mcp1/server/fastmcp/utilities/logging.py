"""Logs, under the names of `mcp.server.fastmcp.utilities.logging`."""

from __future__ import annotations

import logging

__all__ = ["configure_logging", "get_logger"]


def get_logger(name: str) -> logging.Logger:
    """Return a logger of this name."""
    return logging.getLogger(name)


def configure_logging(level: str = "INFO") -> None:
    """Write logs of this level and above to standard error, unless the program has configured logging."""
    logging.basicConfig(format="%(message)s", level=level)
