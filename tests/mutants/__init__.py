"""Seeded faults: whether the tests notice a small mistake in the code."""
