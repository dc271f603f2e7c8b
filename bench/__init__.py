"""Benchmarks that anyone can run: `make bench`, or `make bench QUICK=1` for under a minute."""
