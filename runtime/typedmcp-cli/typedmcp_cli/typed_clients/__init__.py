"""Typed clients of live servers: their code, and what has changed since it was generated."""
