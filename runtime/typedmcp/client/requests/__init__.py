"""Requests: options, arguments, encoding and headers."""
