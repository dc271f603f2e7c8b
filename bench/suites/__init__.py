"""The suites. Each module has `measure_tables(plan)`, which yields its tables."""
