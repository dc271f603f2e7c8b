"""Fixtures for the tests of others. Nothing of the runtime imports this room."""
