"""Bytes to typed messages and back, without I/O and without a clock."""
