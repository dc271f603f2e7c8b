"""The HTTP side of the client."""
