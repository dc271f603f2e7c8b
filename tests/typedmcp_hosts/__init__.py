"""Tools for the APIs of language models."""
