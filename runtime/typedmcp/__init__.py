"""typedmcp: the runtime on top of the generated protocol types in `mcpspec`."""

__all__ = ["__version__"]

__version__ = "0.1.0"
