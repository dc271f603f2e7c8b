"""Benchmarks: typedmcp compared with other libraries. See `docs/benchmarks.md`."""
